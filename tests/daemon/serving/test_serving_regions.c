// SPDX-License-Identifier: Apache-2.0
// Memory shared with a running daemon.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct inf_fixture fixture;
static struct inf_raw raw;

static void start_server(void)
{
    inf_fixture_start(&fixture, NULL);
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_regions, .init = start_server, .fini = stop_server, .timeout = 120);

// Tries to register `fd` and expects this error. Closes `fd`.
static void check_refused(uint64_t id, int fd, uint64_t size, bool writable, enum inf_code code,
                          enum inf_reason reason)
{
    const union inf_message message = {
        .region = {.region_id = id, .size = size, .writable = writable}};
    const struct inf_frame_header header = {.type = INF_FRAME_MEM_REGISTER,
                                            .stream_id = ++raw.last_stream};
    inf_raw_send(&raw, header, INF_MESSAGE_REGION_REGISTER, &message, (struct inf_span){0}, fd);
    close(fd);
    inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
    cr_assert_eq(raw.frame.header.stream_id, raw.last_stream);
    inf_raw_check_failure(&raw, code, reason);
}

static void unregister_region(uint64_t id)
{
    const union inf_message message = {.region = {.region_id = id}};
    const struct inf_frame_header header = {.type = INF_FRAME_MEM_UNREGISTER,
                                            .stream_id = ++raw.last_stream};
    inf_raw_send(&raw, header, INF_MESSAGE_REGION_UNREGISTER, &message, (struct inf_span){0}, -1);
}

// Fills in a request for two rows of the model `add`. All tensors are in region 1: input a at
// offset 0, input b at 64, output y at 128.
static void region_request(union inf_message *message)
{
    inf_add_request(message, 2);
    struct inf_infer_request *request = &message->infer_request;
    request->inputs[0].location.region_id = 1;
    request->inputs[1].location.region_id = 1;
    request->output_count = 1;
    request->outputs[0] = (struct inf_tensor_entry){
        .name = "y", .location = {.present = true, .region_id = 1, .offset = 128, .length = 32}};
}

static void check_infer_refused(const union inf_message *message, enum inf_code code,
                                enum inf_reason reason)
{
    inf_raw_call(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, message,
                 (struct inf_span){0});
    inf_raw_check_failure(&raw, code, reason);
}

// Sends a request for a region that the daemon creates.
static void send_alloc(uint64_t id, uint64_t size)
{
    const union inf_message message = {.region = {.region_id = id, .size = size}};
    const struct inf_frame_header header = {.type = INF_FRAME_MEM_ALLOC,
                                            .stream_id = ++raw.last_stream};
    inf_raw_send(&raw, header, INF_MESSAGE_REGION_ALLOC, &message, (struct inf_span){0}, -1);
}

Test(serving_regions, are_made_by_the_daemon_and_work_as_others_do)
{
    union inf_message message;
    send_alloc(1, 5000);
    inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
    cr_assert_eq(raw.frame.header.stream_id, raw.last_stream);
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
    cr_assert_eq(raw.frame.fd_count, 1);
    int fd = raw.frame.fds[0];
    inf_raw_decode(&raw, INF_MESSAGE_REGION_REGISTERED);
    cr_assert_eq(raw.message.region.region_id, 1);
    cr_assert_eq(raw.message.region.size, 5000);
    // Expect seals that prevent the client and any other process with the descriptor from shrinking
    // the region.
    cr_assert_eq(fcntl(fd, F_GET_SEALS) & SEALS, SEALS);
    cr_assert_eq(ftruncate(fd, 0), -1);
    float *memory = mmap(NULL, 5000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(memory, MAP_FAILED);
    close(fd);
    for (int i = 0; i < 1250; i++)
        cr_assert_eq(memory[i], 0.0f);
    for (int i = 0; i < 8; i++) {
        memory[i] = (float)i;
        memory[16 + i] = 100.0f;
    }
    region_request(&message);
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){0});
    inf_raw_expect_infer(&raw, stream);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(memory[32 + i], 100.0f + (float)i);
    inf_raw_wait_for(&raw, 0, 1);
    cr_assert_eq(inf_fixture_memfds(&fixture), 1);
    unregister_region(1);
    inf_raw_expect(&raw, INF_FRAME_MEM_RELEASED);
    inf_raw_wait_for(&raw, 0, 0);
    munmap(memory, 5000);
}

// Expects that the daemon has `wanted` descriptors of regions, now or soon, because another thread
// of the daemon closes the copies of those that were sent.
static void expect_region_fds(uint32_t wanted)
{
    for (int i = 0; i < 1000 && inf_fixture_fds_of(&fixture, "/memfd:inferd-") != wanted; i++)
        usleep(10000);
    cr_assert_eq(inf_fixture_fds_of(&fixture, "/memfd:inferd-"), wanted);
}

Test(serving_regions, of_the_daemons_own_come_with_their_descriptors_among_other_replies)
{
    for (uint64_t id = 1; id <= 100; id++) {
        send_alloc(id, 64 * id);
        inf_raw_send(&raw, (struct inf_frame_header){.type = INF_FRAME_PING, .stream_id = id},
                     INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    }
    for (uint64_t id = 1; id <= 100; id++) {
        inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
        cr_assert_eq(raw.frame.fd_count, 1);
        struct stat file;
        cr_assert_eq(fstat(raw.frame.fds[0], &file), 0);
        cr_assert_eq(file.st_size, (off_t)(64 * id));
        close(raw.frame.fds[0]);
        inf_raw_expect(&raw, INF_FRAME_PONG);
        cr_assert_eq(raw.frame.header.stream_id, id);
    }
    // The daemon keeps one descriptor for each region, to check its pages.
    expect_region_fds(100);
    for (uint64_t id = 1; id <= 100; id++) {
        unregister_region(id);
        inf_raw_expect(&raw, INF_FRAME_MEM_RELEASED);
    }
    expect_region_fds(0);
}

static void check_alloc_refused(uint64_t id, uint64_t size, enum inf_code code,
                                enum inf_reason reason)
{
    send_alloc(id, size);
    inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
    cr_assert_eq(raw.frame.fd_count, 0);
    inf_raw_check_failure(&raw, code, reason);
}

Test(serving_regions, of_the_daemons_own_have_the_limits_of_others)
{
    check_alloc_refused(0, 4096, INF_INVALID, INF_REASON_BAD_PARAMETER);
    check_alloc_refused(1, 0, INF_INVALID, INF_REASON_BAD_PARAMETER);
    check_alloc_refused(1, INF_LIMIT_REGION_BYTES + 1, INF_INVALID, INF_REASON_BAD_PARAMETER);
    send_alloc(1, INF_LIMIT_REGION_BYTES);
    inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
    cr_assert_eq(raw.frame.fd_count, 1);
    close(raw.frame.fds[0]);
    check_alloc_refused(1, 64, INF_EXISTS, INF_REASON_REGION_EXISTS);
    check_alloc_refused(2, 64, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    inf_raw_wait_for(&raw, 0, 1);
}

// Creates region 1 of 4096 bytes, and also maps it into the test process.
static float *make_region(bool writable)
{
    int fd = inf_memfd(4096, SEALS);
    float *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(memory, MAP_FAILED);
    inf_raw_register(&raw, 1, fd, 4096, writable);
    return memory;
}

Test(serving_regions, carry_inputs_and_outputs)
{
    union inf_message message;
    float *memory = make_region(true);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++) {
            memory[i] = (float)(i + round);
            memory[16 + i] = 100.0f * (float)i;
            memory[32 + i] = -1;
        }
        region_request(&message);
        uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                          &message, (struct inf_span){0});
        inf_raw_expect_infer(&raw, stream);
        const struct inf_location *location = &raw.message.infer_reply.outputs[0].location;
        cr_assert_eq(location->region_id, 1);
        cr_assert_eq(location->offset, 128);
        cr_assert_eq(location->length, 32);
        cr_assert_eq(raw.frame.header.data_bytes, 0);
        for (int i = 0; i < 8; i++)
            cr_assert_eq(memory[32 + i], (float)(i + round) + 100.0f * (float)i);
        cr_assert_eq(memory[40], 0);
    }
    // Expect that tensors at the very end of a region work, although kernels read past the end of
    // their operands.
    for (int i = 0; i < 8; i++)
        memory[1016 + i] = 7;
    region_request(&message);
    message.infer_request.inputs[0].location.offset = 4096 - 64;
    message.infer_request.inputs[1].location.offset = 4096 - 64;
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){0});
    inf_raw_expect_infer(&raw, stream);
    munmap(memory, 4096);
}

Test(serving_regions, may_be_sealed_against_writing_for_inputs)
{
    union inf_message message;
    float *memory;
    int fd = memfd_create("inferd-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(fd, 4096), 0);
    memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (int i = 0; i < 1024; i++)
        memory[i] = 2;
    munmap(memory, 4096);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_WRITE), 0);
    inf_raw_register(&raw, 1, fd, 4096, false);
    region_request(&message);
    message.infer_request.output_count = 0;
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){0});
    inf_raw_expect_infer(&raw, stream);
    cr_assert_eq(((const float *)raw.frame.data)[7], 4.0f);

    region_request(&message);
    check_infer_refused(&message, INF_PRECONDITION, INF_REASON_BAD_PARAMETER);
    fd = inf_memfd(4096, SEALS | F_SEAL_WRITE);
    check_refused(2, fd, 4096, true, INF_PRECONDITION, INF_REASON_BAD_PARAMETER);
}

Test(serving_regions, must_be_sealed_memfds_of_their_size)
{
    check_refused(1, inf_memfd(4096, 0), 4096, false, INF_PRECONDITION, INF_REASON_SEALS_MISSING);
    check_refused(1, inf_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW), 4096, false, INF_PRECONDITION,
                  INF_REASON_SEALS_MISSING);
    check_refused(1, inf_memfd(4096, F_SEAL_SHRINK | F_SEAL_SEAL), 4096, false, INF_PRECONDITION,
                  INF_REASON_SEALS_MISSING);
    check_refused(1, inf_memfd(4096, F_SEAL_GROW | F_SEAL_SEAL), 4096, false, INF_PRECONDITION,
                  INF_REASON_SEALS_MISSING);
    check_refused(1, inf_memfd(4096, SEALS), 4097, false, INF_INVALID, INF_REASON_SIZE_MISMATCH);
    check_refused(1, inf_memfd(4096, SEALS), 0, false, INF_INVALID, INF_REASON_BAD_PARAMETER);
    check_refused(1, inf_memfd(4096, SEALS), INF_LIMIT_REGION_BYTES + 1, false, INF_INVALID,
                  INF_REASON_BAD_PARAMETER);
    check_refused(1, inf_memfd(4096, SEALS), UINT64_MAX, false, INF_INVALID,
                  INF_REASON_BAD_PARAMETER);

    // Expect that a sparse file is refused. A hole of 256 MiB costs the client nothing, but reading
    // it would allocate all pages for the daemon.
    int sparse = memfd_create("inferd-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_eq(ftruncate(sparse, 256 << 20), 0);
    cr_assert_eq(fcntl(sparse, F_ADD_SEALS, SEALS), 0);
    check_refused(1, sparse, 256 << 20, false, INF_PRECONDITION, INF_REASON_REGION_SPARSE);

    int pipes[2];
    cr_assert_eq(pipe(pipes), 0);
    check_refused(1, pipes[0], 4096, false, INF_PRECONDITION, INF_REASON_SEALS_MISSING);
    close(pipes[1]);
    check_refused(1, open("/dev/zero", O_RDWR), 4096, false, INF_PRECONDITION,
                  INF_REASON_SEALS_MISSING);
    check_refused(1, open("/proc/self/exe", O_RDONLY), 4096, false, INF_PRECONDITION,
                  INF_REASON_SEALS_MISSING);
    check_refused(1, open("/tmp", O_RDONLY | O_DIRECTORY), 4096, false, INF_PRECONDITION,
                  INF_REASON_SEALS_MISSING);
    check_refused(1, dup(raw.fd), 4096, false, INF_PRECONDITION, INF_REASON_SEALS_MISSING);
    inf_raw_wait_for(&raw, 0, 0);
    cr_assert_eq(inf_fixture_memfds(&fixture), 0);

    inf_raw_register(&raw, 1, inf_memfd(8192, SEALS), 4096, false);
    check_refused(1, inf_memfd(4096, SEALS), 4096, false, INF_EXISTS, INF_REASON_REGION_EXISTS);
}

Test(serving_regions, come_with_exactly_one_descriptor)
{
    const union inf_message message = {.region = {.region_id = 1, .size = 4096}};
    struct inf_frame_header header = {.type = INF_FRAME_MEM_REGISTER, .stream_id = 1};
    uint8_t bytes[256];
    size_t meta_bytes;
    struct inf_error err;

    inf_raw_send(&raw, header, INF_MESSAGE_REGION_REGISTER, &message, (struct inf_span){0}, -1);
    inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
    inf_raw_check_failure(&raw, INF_INVALID, INF_REASON_BAD_PARAMETER);

    // Given a frame that announces one descriptor and carries none, or a descriptor that the frame
    // does not announce, expect an error.
    cr_assert_eq(inf_message_encode(&message, INF_MESSAGE_REGION_REGISTER,
                                    bytes + INF_FRAME_HEADER_BYTES, 200, &meta_bytes, raw.scratch,
                                    &err),
                 INF_OK);
    header.meta_bytes = (uint32_t)meta_bytes;
    for (int announced = 0; announced < 2; announced++) {
        struct inf_raw other;
        int fd = inf_memfd(4096, SEALS);
        inf_raw_open(&other, fixture.socket);
        header.fd_count = (uint8_t)announced;
        inf_frame_header_encode(&header, bytes);
        inf_raw_send_bytes(&other, bytes, INF_FRAME_HEADER_BYTES + meta_bytes,
                           announced == 1 ? -1 : fd);
        inf_raw_expect_error(&other, INF_INVALID, INF_REASON_BAD_FRAME);
        inf_raw_close(&other);
        close(fd);
    }
}

Test(serving_regions, are_used_within_their_bounds)
{
    union inf_message message;
    struct inf_infer_request *request = &message.infer_request;
    float *memory = make_region(true);
    static const uint64_t outside[] = {4096, 4096 - 64 + 64, 1u << 20, UINT64_MAX - 63,
                                       (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        region_request(&message);
        request->inputs[0].location.offset = outside[i];
        check_infer_refused(&message, INF_RANGE, INF_REASON_REGION_BOUNDS);
        region_request(&message);
        request->outputs[0].location.offset = outside[i];
        check_infer_refused(&message, INF_RANGE, INF_REASON_REGION_BOUNDS);
    }
    region_request(&message);
    request->outputs[0].location.length = UINT64_MAX;
    check_infer_refused(&message, INF_RANGE, INF_REASON_REGION_BOUNDS);
    region_request(&message);
    request->inputs[1].location.offset = 4;
    check_infer_refused(&message, INF_INVALID, INF_REASON_BAD_PARAMETER);
    region_request(&message);
    request->inputs[1].location.region_id = 2;
    check_infer_refused(&message, INF_NOT_FOUND, INF_REASON_REGION_NOT_FOUND);

    // Place the output over an input, then in a range that is too small. Expect that the daemon
    // writes nothing.
    region_request(&message);
    request->outputs[0].location.offset = 64;
    check_infer_refused(&message, INF_INVALID, INF_REASON_BAD_PARAMETER);
    memory[32] = 5;
    region_request(&message);
    request->outputs[0].location.length = 28;
    check_infer_refused(&message, INF_RANGE, INF_REASON_OUTPUT_TOO_SMALL);
    cr_assert_str_eq(raw.message.status.tensor, "y");
    cr_assert_str_eq(raw.message.status.expected, "32");
    cr_assert_str_eq(raw.message.status.actual, "28");
    cr_assert_eq(memory[32], 5);

    region_request(&message);
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){0});
    inf_raw_expect_infer(&raw, stream);
    munmap(memory, 4096);
}

Test(serving_regions, belong_to_one_connection)
{
    struct inf_raw other;
    union inf_message message;
    float *memory = make_region(true);
    inf_raw_open(&other, fixture.socket);
    region_request(&message);
    inf_raw_call(&other, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){0});
    inf_raw_check_failure(&other, INF_NOT_FOUND, INF_REASON_REGION_NOT_FOUND);
    inf_raw_register(&other, 1, inf_memfd(4096, SEALS), 4096, false);
    inf_raw_close(&other);
    inf_raw_wait_for(&raw, 0, 1);
    munmap(memory, 4096);
}

// Sends a request for the model `slow` or `brief` with its input in region 1.
static uint64_t send_slow(struct inf_raw *client, const char *model)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.model_name = model;
    message.infer_request.inputs[0].location.region_id = 1;
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           (struct inf_span){0});
}

Test(serving_regions, stay_while_a_request_uses_them)
{
    union inf_message message;
    float *memory = make_region(true);
    uint64_t brief = send_slow(&raw, "brief");
    unregister_region(1);
    uint64_t stream = raw.last_stream;
    unregister_region(1);
    // The second unregistration of region 1 is answered first, with an error: the reply to the
    // first one waits until the request `brief` ends.
    inf_raw_expect(&raw, INF_FRAME_MEM_RELEASED);
    inf_raw_check_failure(&raw, INF_NOT_FOUND, INF_REASON_REGION_NOT_FOUND);
    region_request(&message);
    check_infer_refused(&message, INF_NOT_FOUND, INF_REASON_REGION_NOT_FOUND);
    check_refused(1, inf_memfd(4096, SEALS), 4096, false, INF_EXISTS, INF_REASON_REGION_EXISTS);
    cr_assert_eq(inf_raw_server_status(&raw).regions, 1);

    inf_raw_expect_infer(&raw, brief);
    inf_raw_expect(&raw, INF_FRAME_MEM_RELEASED);
    cr_assert_eq(raw.frame.header.stream_id, stream);
    cr_assert_eq(raw.frame.header.flags & INF_FRAME_FLAG_ERROR, 0);
    inf_raw_decode(&raw, INF_MESSAGE_REGION_RELEASED);
    cr_assert_eq(raw.message.region.region_id, 1);
    inf_raw_wait_for(&raw, 0, 0);
    munmap(memory, 4096);
    memory = make_region(true);
    unregister_region(1);
    inf_raw_expect(&raw, INF_FRAME_MEM_RELEASED);
    munmap(memory, 4096);
}

Test(serving_regions, outlive_a_client_that_vanishes_and_then_go)
{
    uint32_t fds = inf_fixture_fds(&fixture);
    for (int i = 0; i < 20; i++) {
        struct inf_raw other;
        inf_raw_open(&other, fixture.socket);
        inf_raw_register(&other, 1, inf_memfd(1 << 20, SEALS), 1 << 20, true);
        send_slow(&other, "slow");
        if (i % 2 == 1)
            inf_raw_server_status(&other);
        inf_raw_close(&other);
    }
    inf_raw_wait_for(&raw, 0, 0);
    cr_assert_eq(inf_raw_server_status(&raw).region_bytes, 0);
    for (int i = 0; i < 100 && inf_fixture_memfds(&fixture) > 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    cr_assert_eq(inf_fixture_memfds(&fixture), 0);
    inf_fixture_expect_fds(&fixture, fds);
}

Test(serving_regions, are_limited_in_number)
{
    for (uint64_t id = 1; id <= INF_LIMIT_REGIONS; id++)
        inf_raw_register(&raw, id, inf_memfd(4096, SEALS), 4096, false);
    check_refused(1000, inf_memfd(4096, SEALS), 4096, false, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    unregister_region(17);
    inf_raw_expect(&raw, INF_FRAME_MEM_RELEASED);
    inf_raw_register(&raw, 1000, inf_memfd(4096, SEALS), 4096, false);
}
