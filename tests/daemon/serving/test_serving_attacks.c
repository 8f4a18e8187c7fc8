// SPDX-License-Identifier: Apache-2.0
// Clients that attack a real daemon with descriptors and with unfinished uploads.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/daemon/serving/attacks_case.h"

// How long close() of a socket in these tests blocks at most. It ends when a test closes the other
// end of the connection, which each test does; so the time is long enough for a busy machine.
#define LINGER_S 60
// The highest number of descriptors that the kernel allows in one message.
#define FDS_MAX 253

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

// Registers two sockets whose close() blocks: as many as may block for one user. The daemon is
// stopped until the test has closed its own copies of the descriptors, so that the daemon's close()
// is the last one. It is stopped once, because SIGSTOP ends a close() that waits.
static void send_two_stuck(struct inf_raw *raw, int listeners[2])
{
    int stuck[2] = {make_stuck_socket(&listeners[0]), make_stuck_socket(&listeners[1])};
    pause_daemon();
    for (int i = 0; i < 2; i++) {
        cr_assert(send_register(raw, &stuck[i], 1));
        close(stuck[i]);
    }
    resume_daemon();
}

// Registers two sockets whose close() blocks, and then 1,100 other descriptors.
static void flood_with_fds(void)
{
    struct inf_raw raw;
    int listeners[2], fds[INF_LIMIT_FRAME_FDS];
    inf_raw_open(&raw, fixture.socket);
    send_two_stuck(&raw, listeners);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (size_t i = 0; i < INF_LIMIT_FRAME_FDS; i++)
        fds[i] = null;
    for (int i = 0; i < 70; i++)
        cr_assert(send_register(&raw, fds, INF_LIMIT_FRAME_FDS));
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

// Returns the size of the daemon's table of descriptors.
static unsigned long read_fd_slots(void)
{
    char path[64], line[256];
    unsigned long slots = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)fixture.pid);
    FILE *file = fopen(path, "re");
    cr_assert_not_null(file);
    while (slots == 0 && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "FDSize: %lu", &slots);
    fclose(file);
    cr_assert_gt(slots, 0u);
    return slots;
}

Test(serving_attacks, with_descriptors_that_do_not_close_delay_no_other_client)
{
    // While the table grows, the daemon waits in recvmsg().
    unsigned long slots = read_fd_slots();
    flood_with_fds();
    cr_expect_eq(read_fd_slots(), slots);
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
    send_two_stuck(&raw, listeners);
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
