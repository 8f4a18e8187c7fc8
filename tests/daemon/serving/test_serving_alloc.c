// SPDX-License-Identifier: Apache-2.0
// Tests that a warmed-up daemon allocates no memory between a request and its reply, on any thread.
// If an allocation fails, a request or a client connection fails, but never the daemon.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;
// The counters that count_alloc.c shares with the test; the layout must match that file.
static struct {
    _Atomic uint64_t calls;
    _Atomic uint64_t fail_at;
} * counter;

// Starts a daemon that counts its allocations.
static void start_server(void)
{
    char path[] = "/tmp/inferd-count-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, sizeof *counter), 0);
    counter = mmap(NULL, sizeof *counter, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(counter, MAP_FAILED);
    setenv("INF_COUNT_ALLOC", path, 1);
    setenv("LD_PRELOAD", getenv("COUNT_ALLOC"), 1);
    inf_fixture_start(&fixture, NULL);
    unsetenv("LD_PRELOAD");
    unlink(path);
    close(fd);
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_alloc, .init = start_server, .fini = stop_server, .timeout = 120);

static uint8_t data[256 << 10];

// Runs one inference with `rows_each` rows on a device. The tensors are inline, or in region 1 if
// `by_region` is set.
static void send_infer(int64_t rows_each, const char *device, bool by_region)
{
    union inf_message message;
    struct inf_infer_request *request = &message.infer_request;
    inf_add_request(&message, rows_each);
    request->device = device;
    request->timeout_ns = 20000000000;
    request->id = "an id";
    struct inf_span inlined = {data, request->inputs[1].location.offset +
                                         request->inputs[1].location.length};
    if (by_region) {
        request->inputs[0].location.region_id = request->inputs[1].location.region_id = 1;
        request->output_count = 1;
        request->outputs[0] =
            (struct inf_tensor_entry){.name = "y",
                                      .location = {.present = true,
                                                   .region_id = 1,
                                                   .offset = inf_size_align(inlined.size, 64),
                                                   .length = request->inputs[0].location.length}};
        inlined.size = 0;
    }
    uint64_t stream =
        inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message, inlined);
    inf_raw_expect_infer(&raw, stream);
}

// Runs one inference of each kind (inline, in a region, on each device), as a client repeats them.
static void infer_all(void)
{
    send_infer(1, "", false);
    send_infer(2, "ref", false);
    send_infer(8192, "", false);
    send_infer(3, "", true);
    send_infer(2000, "ref", true);
}

Test(serving_alloc, does_not_happen_between_request_and_reply)
{
    inf_raw_register(&raw, 1, inf_memfd(1 << 20, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
                     1 << 20, true);
    for (int i = 0; i < 20; i++)
        infer_all();
    uint64_t before = atomic_load(&counter->calls);
    cr_assert_gt(before, 0, "nothing is counted");
    for (int i = 0; i < 200; i++)
        infer_all();
    uint64_t after = atomic_load(&counter->calls);
    // Allow two allocations. A worker may still be writing a reply when the client sends the next
    // request, so whether a buffer is free depends on timing.
    cr_assert_leq(after - before, 2, "%lu allocations in 1000 requests",
                  (unsigned long)(after - before));
}

#define STREAMS     100 // number of requests in flight at once
#define WARM_ROUNDS 10
#define ROUNDS      100
// Upper limit of the allocations while the number of streams grows. The number of frames, buffers
// and jobs in use depends on timing, but never exceeds this number per stream.
#define MADE_MAX (4 * STREAMS)

// Given failing requests or many streams at once, expect no allocations either.
Test(serving_alloc, does_not_happen_with_many_streams_and_failures)
{
    uint64_t before = 0;
    for (int round = 0; round < WARM_ROUNDS + ROUNDS; round++) {
        if (round == WARM_ROUNDS)
            before = atomic_load(&counter->calls);
        union inf_message message;
        for (int i = 0; i < STREAMS; i++) {
            inf_add_request(&message, 1);
            if (i % 4 == 3)
                message.infer_request.model_name = "absent";
            if (i % 4 == 2)
                message.infer_request.timeout_ns = 1;
            inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                            (struct inf_span){data, 80});
        }
        for (int i = 0; i < STREAMS; i++)
            inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    }
    uint64_t made = atomic_load(&counter->calls) - before;
    cr_assert_lt(made, MADE_MAX, "%lu allocations in %d requests", (unsigned long)made,
                 ROUNDS * STREAMS);
}

// Connects, registers a region and runs an inference. Returns true if all three succeeded. Each of
// them may fail here, but the daemon must survive.
static bool try_everything(void)
{
    struct inf_raw client;
    union inf_message message = {.hello = {.major = INF_PROTOCOL_MAJOR}};
    const struct inf_frame_header region = {.type = INF_FRAME_MEM_REGISTER, .stream_id = 1};
    bool good = true;
    inf_raw_connect(&client, fixture.socket);
    inf_raw_send(&client, (struct inf_frame_header){.type = INF_FRAME_HELLO}, INF_MESSAGE_HELLO,
                 &message, (struct inf_span){0}, -1);
    message.region = (struct inf_region_message){.region_id = 1, .size = 4096};
    int fd = inf_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    inf_raw_send(&client, region, INF_MESSAGE_REGION_REGISTER, &message, (struct inf_span){0}, fd);
    close(fd);
    for (int64_t rows = 64; rows <= 4096; rows *= 64) {
        inf_add_request(&message, rows);
        inf_raw_request(&client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                        (struct inf_span){data, (size_t)rows * 32});
    }
    for (int i = 0; i < 4 && good; i++)
        good =
            inf_raw_next(&client, 10000) && (client.frame.header.flags & INF_FRAME_FLAG_ERROR) == 0;
    inf_raw_close(&client);
    return good;
}

Test(serving_alloc, that_fails_hurts_one_client_only)
{
    int failed = 0;
    cr_assert(try_everything());
    for (uint64_t k = 1; k <= 60; k++) {
        atomic_store(&counter->fail_at, atomic_load(&counter->calls) + k);
        failed += !try_everything();
        atomic_store(&counter->fail_at, 0);
        send_infer(1, "", false);
        inf_raw_wait_for(&raw, 0, 0);
    }
    cr_assert_gt(failed, 3, "nothing was made to fail");
    cr_assert(try_everything());
}
