// SPDX-License-Identifier: Apache-2.0
// Clients that attack a real daemon. While an attack runs, an innocent client sends pings. The test
// limits the slowest reply to a ping and the memory growth of the daemon.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"
#include "tests/support/models/tfjs_writer.h"
#include "tests/support/sanitized.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

// Limits for the delay of a ping and the memory growth. They are higher with sanitizers, which make
// everything slower and larger.
#define SCALE        (INF_TESTS_SANITIZED ? 8u : 1u)
#define PING_MS_MAX  (50u * SCALE)
#define GROWTH_BYTES ((uint64_t)64 * SCALE << 20)
// How long close() of a socket in these tests blocks at most. It ends when a test closes the other
// end of the connection, which each test does; so the time is long enough for a busy machine.
#define LINGER_S 60
// The highest number of descriptors that the kernel allows in one message.
#define FDS_MAX 253

static struct inf_fixture fixture;

// --- the innocent client that sends pings ---

static struct {
    struct inf_raw raw;
    pthread_t thread;
    atomic_bool stop;
    uint64_t worst_ns;
    // Longest time that usleep(1000) took. Other processes on this machine cause the excess, and
    // delay the daemon in the same way.
    uint64_t late_ns;
    uint64_t rss_before;
} innocent;

// Mutex that a thread holds during a ping, and that a test holds while it stops the daemon with
// SIGSTOP, so that no ping is sent to a stopped daemon.
static pthread_mutex_t daemon_runs = PTHREAD_MUTEX_INITIALIZER;

// Returns when all threads of the daemon have stopped. kill() alone returns earlier, so the daemon
// could still receive what the test sends next.
static void pause_daemon(void)
{
    int status;
    pthread_mutex_lock(&daemon_runs);
    cr_assert_eq(kill(fixture.pid, SIGSTOP), 0);
    cr_assert_eq(waitpid(fixture.pid, &status, WUNTRACED), fixture.pid);
    cr_assert(WIFSTOPPED(status));
}

static void resume_daemon(void)
{
    cr_assert_eq(kill(fixture.pid, SIGCONT), 0);
    pthread_mutex_unlock(&daemon_runs);
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// Returns the resident memory of the daemon, in bytes.
static uint64_t read_rss(void)
{
    char path[64];
    unsigned long pages = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)fixture.pid);
    FILE *file = fopen(path, "re");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%*u %lu", &pages), 1);
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void *send_pings(void *context)
{
    (void)context;
    while (!atomic_load(&innocent.stop)) {
        pthread_mutex_lock(&daemon_runs);
        uint64_t begin_ns = clock_ns();
        const struct inf_frame_header ping = {.type = INF_FRAME_PING, .stream_id = 7};
        inf_raw_send(&innocent.raw, ping, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
        bool answered =
            inf_raw_next(&innocent.raw, 60000) && innocent.raw.frame.header.type == INF_FRAME_PONG;
        uint64_t took_ns = clock_ns() - begin_ns;
        pthread_mutex_unlock(&daemon_runs);
        // If a test failed, the daemon may have ended already, so a missing answer is no further
        // error.
        if (!answered)
            break;
        if (took_ns > innocent.worst_ns)
            innocent.worst_ns = took_ns;
        begin_ns = clock_ns();
        usleep(1000);
        took_ns = clock_ns() - begin_ns;
        if (took_ns > innocent.late_ns)
            innocent.late_ns = took_ns;
    }
    return NULL;
}

static void start_pings(void)
{
    inf_raw_open(&innocent.raw, fixture.socket);
    atomic_store(&innocent.stop, false);
    innocent.worst_ns = innocent.late_ns = 0;
    innocent.rss_before = read_rss();
    cr_assert_eq(pthread_create(&innocent.thread, NULL, send_pings, NULL), 0);
}

// Stops the pings and checks both limits: ping delay and memory growth.
static void check_innocent(void)
{
    uint64_t rss = read_rss();
    uint64_t growth = rss > innocent.rss_before ? rss - innocent.rss_before : 0;
    atomic_store(&innocent.stop, true);
    cr_assert_eq(pthread_join(innocent.thread, NULL), 0);
    inf_raw_close(&innocent.raw);
    fprintf(stderr, "worst ping %.1f ms, worst wake-up %.1f ms, growth %.1f MiB\n",
            (double)innocent.worst_ns / 1e6, (double)innocent.late_ns / 1e6,
            (double)growth / (1 << 20));
    uint64_t worst_ns = innocent.worst_ns - INF_MIN(innocent.late_ns, innocent.worst_ns);
    cr_expect_leq(worst_ns, (uint64_t)PING_MS_MAX * 1000000u, "%.1f ms, wanted at most %u",
                  (double)innocent.worst_ns / 1e6, PING_MS_MAX);
    cr_expect_leq(growth, GROWTH_BYTES, "%" PRIu64 " bytes, wanted at most %" PRIu64, growth,
                  GROWTH_BYTES);
}

static void start_server(void)
{
    inf_fixture_start(&fixture, NULL);
    start_pings();
}

static void stop_server(void)
{
    inf_fixture_stop(&fixture);
}

TestSuite(serving_attacks, .init = start_server, .fini = stop_server, .timeout = 120);

// --- attacks with descriptors whose close() blocks ---

// Returns a TCP socket with unsent data, whose last close() blocks until the caller closes
// `*listener`, which is the other end of the connection, but at most for LINGER_S seconds.
static int make_stuck_socket(int *listener)
{
    static const char data[1 << 16];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
    *listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(*listener, (const struct sockaddr *)&address, size), 0);
    cr_assert_eq(listen(*listener, 1), 0);
    cr_assert_eq(getsockname(*listener, (struct sockaddr *)&address, &size), 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd, (const struct sockaddr *)&address, size), 0);
    cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    while (send(fd, data, sizeof data, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ;
    return fd;
}

// Sends bytes together with descriptors. Returns false if the daemon has closed the connection.
static bool send_fds(int socket, const void *bytes, size_t size, const int *fds, size_t count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * FDS_MAX)];
    } control;
    memset(&control, 0, sizeof control);
    struct iovec part = {(void *)(uintptr_t)bytes, size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)size;
}

// Sends a MEM_REGISTER frame with `count` descriptors. The frame announces at most
// INF_LIMIT_FRAME_FDS of them.
static bool send_register(struct inf_raw *raw, const int *fds, size_t count)
{
    static uint8_t bytes[INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES];
    const union inf_message message = {.region = {.region_id = 1, .size = 4096}};
    const struct inf_frame_header header = {
        .type = INF_FRAME_MEM_REGISTER,
        .stream_id = ++raw->last_stream,
        .fd_count = (uint8_t)(count < INF_LIMIT_FRAME_FDS ? count : INF_LIMIT_FRAME_FDS)};
    size_t size = inf_raw_encode(raw, header, INF_MESSAGE_REGION_REGISTER, &message,
                                 (struct inf_span){0}, bytes, sizeof bytes);
    return send_fds(raw->fd, bytes, size, fds, count);
}

// Registers a socket whose close() blocks. The daemon is stopped until the test has closed its own
// copy of the descriptor, so that the daemon's close() is the last one.
static void send_stuck(struct inf_raw *raw, int *listener)
{
    int stuck = make_stuck_socket(listener);
    pause_daemon();
    cr_assert(send_register(raw, &stuck, 1));
    close(stuck);
    resume_daemon();
}

// Registers two sockets whose close() blocks. 1,100 other descriptors are sent between them.
static void flood_with_fds(void)
{
    struct inf_raw raw;
    int listeners[2], fds[INF_LIMIT_FRAME_FDS];
    inf_raw_open(&raw, fixture.socket);
    send_stuck(&raw, &listeners[0]);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < INF_LIMIT_FRAME_FDS; i++)
        fds[i] = null;
    for (int i = 0; i < 70; i++)
        cr_assert(send_register(&raw, fds, INF_LIMIT_FRAME_FDS));
    send_stuck(&raw, &listeners[1]);
    for (int i = 0; i < 72; i++) {
        inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
        cr_assert_neq(raw.frame.header.flags & INF_FRAME_FLAG_ERROR, 0);
    }
    usleep(200000);
    close(null);
    inf_raw_close(&raw);
    for (int i = 0; i < 2; i++)
        close(listeners[i]);
}

Test(serving_attacks, with_descriptors_that_do_not_close_delay_no_other_client)
{
    flood_with_fds();
    check_innocent();
}

Test(serving_attacks, with_more_descriptors_than_a_frame_may_have_delay_no_other_client)
{
    struct inf_raw raw;
    int listener, fds[FDS_MAX];
    int stuck = make_stuck_socket(&listener);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < FDS_MAX; i++)
        fds[i] = null;
    fds[FDS_MAX - 1] = stuck;
    inf_raw_open(&raw, fixture.socket);
    pause_daemon();
    cr_assert(send_register(&raw, fds, FDS_MAX));
    close(stuck);
    close(null);
    resume_daemon();
    inf_raw_expect_error(&raw, INF_INVALID, INF_REASON_BAD_FRAME);
    usleep(200000);
    inf_raw_close(&raw);
    check_innocent();
    close(listener);
}

Test(serving_attacks, with_descriptors_that_the_daemon_does_not_receive_delay_no_other_client)
{
    int listener;
    int stuck = make_stuck_socket(&listener);
    // Given bytes that are not a frame, expect the daemon to close the connection and to leave the
    // rest unread.
    static const char garbage[65536] = "no frame, as long as one read of the daemon";
    struct inf_raw raw;
    inf_raw_connect(&raw, fixture.socket);
    pause_daemon();
    cr_assert_eq(send(raw.fd, garbage, sizeof garbage, MSG_NOSIGNAL), (ssize_t)sizeof garbage);
    cr_assert(send_fds(raw.fd, "x", 1, &stuck, 1));
    close(stuck);
    resume_daemon();
    inf_raw_expect_error(&raw, INF_INVALID, INF_REASON_BAD_FRAME);
    inf_raw_close(&raw);
    usleep(200000);
    check_innocent();
    close(listener);
}

Test(serving_attacks, beyond_the_limit_of_descriptors_end_the_connection)
{
    struct inf_raw raw;
    int listeners[2], fds[INF_LIMIT_FRAME_FDS];
    check_innocent();
    inf_fixture_restart(&fixture, (const char *const[]){"--fds-per-uid-max=100", NULL});
    start_pings();
    inf_raw_open(&raw, fixture.socket);
    for (int i = 0; i < 2; i++)
        send_stuck(&raw, &listeners[i]);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < INF_LIMIT_FRAME_FDS; i++)
        fds[i] = null;
    bool open = true;
    for (int i = 0; i < 100 && open; i++) {
        open = send_register(&raw, fds, INF_LIMIT_FRAME_FDS);
        open = open && inf_raw_next(&raw, 30000) && raw.frame.header.type != INF_FRAME_ERROR;
    }
    cr_assert(!open, "1,600 descriptors wait to be closed, wanted at most 100");
    cr_assert_lt(inf_fixture_fds(&fixture), 400);
    close(null);
    inf_raw_close(&raw);
    check_innocent();
    for (int i = 0; i < 2; i++)
        close(listeners[i]);
}

// --- attacks with many unfinished uploads ---

// Sends DATA frames on `count` new streams, or until the daemon closes the connection.
static void flood_with_streams(struct inf_raw *raw, uint32_t count, uint64_t total_bytes)
{
    static uint8_t frame[INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES];
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_frame_header header = {.type = INF_FRAME_DATA,
                                                .stream_id = ++raw->last_stream};
        const union inf_message message = {.data = {.total_bytes = total_bytes}};
        size_t size = inf_raw_encode(raw, header, INF_MESSAGE_DATA, &message, (struct inf_span){0},
                                     frame, sizeof frame);
        if (send(raw->fd, frame, size, MSG_NOSIGNAL) != (ssize_t)size)
            return;
    }
}

Test(serving_attacks, with_data_on_ever_new_streams_end_the_connection)
{
    // Announced data sizes: one within the limits, and one larger than a request may be.
    static const uint64_t totals[] = {1, UINT64_MAX};
    for (size_t k = 0; k < 2; k++) {
        struct inf_raw raws[32];
        for (int i = 0; i < 32; i++)
            inf_raw_open(&raws[i], fixture.socket);
        for (int i = 0; i < 32; i++)
            flood_with_streams(&raws[i], 10000, totals[k]);
        flood_with_streams(&raws[0], 60000, totals[k]);
        for (int i = 0; i < 32; i++) {
            inf_raw_expect_error(&raws[i], INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
            inf_raw_close(&raws[i]);
        }
    }
    check_innocent();
}

// --- attacks that register files other than plain memfds ---

// Tries to register `fd`, which must be refused. Closes `fd`.
static void check_refused(int fd, uint64_t size, enum inf_reason reason)
{
    struct inf_raw raw;
    inf_raw_open(&raw, fixture.socket);
    const union inf_message message = {.region = {.region_id = 1, .size = size, .writable = true}};
    const struct inf_frame_header header = {.type = INF_FRAME_MEM_REGISTER, .stream_id = 1};
    inf_raw_send(&raw, header, INF_MESSAGE_REGION_REGISTER, &message, (struct inf_span){0}, fd);
    close(fd);
    inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
    inf_raw_check_failure(&raw, INF_PRECONDITION, reason);
    inf_raw_close(&raw);
}

// The kernel rounds the mapping of a file with huge pages up to a whole page, which would overwrite
// the memory behind the mapping. Expect the daemon to refuse such a file.
Test(serving_attacks, with_memfds_of_huge_pages_are_refused)
{
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd < 0) {
        cr_log_warn("the kernel has no huge pages: %s", strerror(errno));
    } else {
        cr_assert_eq(ftruncate(fd, 2 << 20), 0);
        cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
        check_refused(fd, 4096, INF_REASON_SEALS_MISSING);
    }
    check_innocent();
}

// --- regions whose pages the daemon would have to allocate ---

#define SPARSE_BYTES ((uint64_t)256 << 20)

// Asks for the sum of two large inputs in region 1, and checks that the request is refused.
static void check_sparse_refused(struct inf_raw *raw, enum inf_code code, enum inf_reason reason)
{
    const int64_t rows = (int64_t)(SPARSE_BYTES / 4 / 16);
    union inf_message message;
    inf_add_request(&message, rows);
    struct inf_infer_request *request = &message.infer_request;
    for (uint32_t i = 0; i < 2; i++) {
        request->inputs[i].location.region_id = 1;
        request->inputs[i].location.offset = i * SPARSE_BYTES / 4;
        request->inputs[i].location.length = SPARSE_BYTES / 4;
    }
    request->output_count = 1;
    request->outputs[0] = (struct inf_tensor_entry){.name = "y",
                                                    .location = {.present = true,
                                                                 .region_id = 1,
                                                                 .offset = SPARSE_BYTES / 2,
                                                                 .length = SPARSE_BYTES / 4}};
    inf_raw_call(raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){0});
    inf_raw_check_failure(raw, code, reason);
}

Test(serving_attacks, with_regions_that_are_freed_after_registration_are_refused)
{
    struct inf_raw raw;
    inf_raw_open(&raw, fixture.socket);
    int fd = inf_memfd(SPARSE_BYTES, SEALS);
    inf_raw_register(&raw, 1, dup(fd), SPARSE_BYTES, true);
    cr_assert_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)SPARSE_BYTES),
                 0);
    check_sparse_refused(&raw, INF_PRECONDITION, INF_REASON_REGION_SPARSE);
    check_innocent();
    close(fd);
    inf_raw_close(&raw);
}

Test(serving_attacks, with_regions_of_the_daemon_that_are_never_written_are_refused)
{
    struct inf_raw raw;
    inf_raw_open(&raw, fixture.socket);
    const union inf_message message = {.region = {.region_id = 1, .size = SPARSE_BYTES}};
    const struct inf_frame_header header = {.type = INF_FRAME_MEM_ALLOC,
                                            .stream_id = ++raw.last_stream};
    inf_raw_send(&raw, header, INF_MESSAGE_REGION_ALLOC, &message, (struct inf_span){0}, -1);
    inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
    cr_assert_eq(raw.frame.header.flags & INF_FRAME_FLAG_ERROR, 0);
    check_sparse_refused(&raw, INF_PRECONDITION, INF_REASON_REGION_SPARSE);
    check_innocent();
    inf_raw_close(&raw);
}

// Blocks beyond the end of a memfd must not make up for a hole in it.
Test(serving_attacks, with_blocks_beyond_the_end_of_a_memfd_are_refused)
{
    const uint64_t size = SPARSE_BYTES / 8;
    int fd = memfd_create("beyond", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, (off_t)size), 0);
    cr_assert_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)size, (off_t)size), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    check_refused(fd, size, INF_REASON_REGION_SPARSE);
    // Blocks between the end of the region and the end of a memfd must not make up for a hole
    // either.
    fd = memfd_create("larger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, (off_t)(2 * size)), 0);
    cr_assert_eq(fallocate(fd, 0, (off_t)size, (off_t)size), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    check_refused(fd, size, INF_REASON_REGION_SPARSE);
    check_innocent();
}

// --- floods of sessions ---

// Opens sessions with state pairs of long names until the daemon refuses one. Returns how many were
// opened.
static uint32_t open_sessions(struct inf_raw *raw, uint32_t count)
{
    static char input[INF_LIMIT_TENSOR_NAME + 1], output[INF_LIMIT_TENSOR_NAME + 1];
    memset(input, 'i', INF_LIMIT_TENSOR_NAME);
    memset(output, 'o', INF_LIMIT_TENSOR_NAME);
    for (uint32_t i = 0; i < count; i++) {
        union inf_message message = {
            .session = {
                .session_id = i + 1, .model_name = "", .model_version = "", .state_count = 1}};
        message.session.states[0] = (struct inf_session_state){.output = output, .input = input};
        inf_raw_call(raw, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, &message,
                     (struct inf_span){0});
        if ((raw->frame.header.flags & INF_FRAME_FLAG_ERROR) != 0) {
            inf_raw_check_failure(raw, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
            return i;
        }
    }
    return count;
}

Test(serving_attacks, with_many_sessions_are_charged_for_their_names_and_structs)
{
    enum {
        CONNECTIONS = 10,
        SESSIONS = 256
    };
    struct inf_raw raws[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++) {
        inf_raw_open(&raws[i], fixture.socket);
        cr_assert_eq(open_sessions(&raws[i], SESSIONS), SESSIONS);
    }
    check_innocent();
    for (int i = 0; i < CONNECTIONS; i++)
        inf_raw_close(&raws[i]);
    // With the lowest limit, 1 MiB, the user may have fewer sessions.
    inf_fixture_restart(&fixture, (const char *const[]){"--session_bytes_per_uid_max=1M", NULL});
    uint32_t opened = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        inf_raw_open(&raws[i], fixture.socket);
        opened += open_sessions(&raws[i], SESSIONS);
    }
    cr_expect_gt(opened, 100u);
    cr_expect_lt(opened, CONNECTIONS * SESSIONS);
    for (int i = 0; i < CONNECTIONS; i++)
        inf_raw_close(&raws[i]);
}

// --- requests that each have a new shape ---

// One row of the model `wide` needs 256 KiB of intermediate results. The model computes y = the
// sums of x + w.
#define WIDE_COLUMNS 65536

static void write_wide_model(void)
{
    static const float weights[WIDE_COLUMNS];
    char model[128];
    char version[160];
    snprintf(model, sizeof model, "%s/wide", fixture.repository);
    snprintf(version, sizeof version, "%s/1", model);
    cr_assert_eq(mkdir(model, 0700), 0);
    cr_assert_eq(mkdir(version, 0700), 0);
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(version);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (int64_t[]){-1, 1}, 2);
    inf_tfjs_writer_floats(writer, "w", weights, (int64_t[]){1, WIDE_COLUMNS}, 2);
    inf_tfjs_writer_ints(writer, "axes", (int32_t[]){1}, (int64_t[]){1}, 1);
    inf_tfjs_writer_node(writer, "wide", "AddV2", "x,w");
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_node(writer, "y", "Sum", "wide,axes");
    inf_tfjs_writer_attr_bool(writer, "keep_dims", 0);
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_attr_type(writer, "Tidx", "DT_INT32");
    inf_tfjs_writer_output(writer, "y", "y");
    inf_tfjs_writer_end(writer);
}

static void call_wide(struct inf_raw *raw, int64_t rows)
{
    static const float x[1024];
    union inf_message message = {
        .infer_request = {
            .model_name = "wide",
            .model_version = "",
            .device = "",
            .precision = "",
            .mode = "",
            .id = "",
            .input_count = 1,
            .inputs = {{.name = "x",
                        .dtype = INF_DTYPE_F32,
                        .shape = INF_SHAPE(rows, 1),
                        .location = {.present = true, .length = (uint64_t)rows * sizeof *x}}}}};
    do {
        inf_raw_call(raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                     (struct inf_span){(const uint8_t *)x, (size_t)rows * sizeof *x});
        if ((raw->frame.header.flags & INF_FRAME_FLAG_ERROR) == 0)
            return;
        inf_raw_decode(raw, INF_MESSAGE_STATUS);
        usleep(10000);
    } while (raw->message.status.code == INF_UNAVAILABLE ||
             raw->message.status.code == INF_NOT_FOUND);
}

// Makes a daemon that is built with AddressSanitizer keep little freed memory back for its checks:
// by default it keeps 256 MiB, which would count as growth. Other builds ignore the variable.
static void limit_quarantine(void)
{
    const char *given = getenv("ASAN_OPTIONS");
    char options[512];
    snprintf(options, sizeof options, "%s:quarantine_size_mb=8", given != NULL ? given : "");
    cr_assert_eq(setenv("ASAN_OPTIONS", options, 1), 0);
}

Test(serving_attacks, with_ever_new_shapes_keep_a_share_of_the_memory)
{
    struct inf_raw raw;
    check_innocent();
    write_wide_model();
    limit_quarantine();
    inf_fixture_restart(&fixture, (const char *const[]){"--backends=ref", "--batch_rows_max=1",
                                                        "--arena_bytes_per_uid_max=48M", NULL});
    inf_raw_open(&raw, fixture.socket);
    call_wide(&raw, 1); // waits until the model is loaded
    start_pings();
    // Run eight shapes, each of which needs about 27 MiB of intermediate results.
    for (int64_t rows = 104; rows < 112; rows++) {
        call_wide(&raw, rows);
        cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL, "%s", raw.message.status.message);
    }
    // This shape needs 64 MiB of intermediate results.
    call_wide(&raw, 256);
    inf_raw_check_failure(&raw, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    call_wide(&raw, 104);
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
    check_innocent();
    inf_raw_close(&raw);
}
