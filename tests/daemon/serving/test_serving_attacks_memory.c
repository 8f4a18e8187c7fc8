// SPDX-License-Identifier: Apache-2.0
// Clients that attack the memory of a real daemon: with files that are no plain memfds, sparse
// regions, many sessions, and ever new shapes.
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/daemon/serving/attacks_case.h"
#include "tests/support/models/tfjs_writer.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

TestSuite(serving_attacks_memory, .init = start_server, .fini = stop_server, .timeout = 120);

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
Test(serving_attacks_memory, with_memfds_of_huge_pages_are_refused)
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

Test(serving_attacks_memory, with_regions_that_are_freed_after_registration_are_refused)
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

Test(serving_attacks_memory, with_regions_of_the_daemon_that_are_never_written_are_refused)
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
Test(serving_attacks_memory, with_blocks_beyond_the_end_of_a_memfd_are_refused)
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

Test(serving_attacks_memory, with_many_sessions_are_charged_for_their_names_and_structs)
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

Test(serving_attacks_memory, with_ever_new_shapes_keep_a_share_of_the_memory)
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
