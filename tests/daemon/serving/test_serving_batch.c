// SPDX-License-Identifier: Apache-2.0
// Requests that run as one batch: each request gets its own rows, and the failure of one request
// does not affect the others.
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;

// All requests run on the first device. The model `slow` keeps the only worker of that device busy
// while requests queue up.
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

TestSuite(serving_batch, .init = start_server, .fini = stop_server, .timeout = 120);

#define ROWS_MAX 40

// Sends a request for the slow model `slow`, which keeps the only worker busy while other requests
// queue up.
static uint64_t occupy_worker(struct inf_raw *client)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.device = "";
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

// Sends a request for a + b. The values identify the request: element e of row r of the sum is base
// + 4 r + e + 1000.
static uint64_t add_row(struct inf_raw *client, int64_t rows, float base)
{
    static float data[2 * ROWS_MAX * 4 + 16];
    union inf_message message;
    inf_add_request(&message, rows);
    // Offset of input b in the data, counted in floats. Input b begins at the next multiple of 64
    // bytes behind input a.
    size_t b = (size_t)(rows * 16 + 63) / 64 * 16;
    memset(data, 0, sizeof data);
    for (int64_t i = 0; i < rows * 4; i++) {
        data[i] = base + (float)i;
        data[b + (size_t)i] = 1000.0f;
    }
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           (struct inf_span){(const uint8_t *)data, (b + (size_t)rows * 4) * 4});
}

// Checks that the last reply has the sums of this request. Returns the number of rows in the run
// that computed this request.
static uint32_t check_sum(struct inf_raw *client, int64_t rows, float base)
{
    cr_assert_eq(client->frame.header.flags, INF_FRAME_FINAL);
    inf_raw_decode(client, INF_MESSAGE_INFER_REPLY);
    const struct inf_infer_reply *reply = &client->message.infer_reply;
    cr_assert_eq(reply->output_count, 1);
    cr_assert_eq(reply->outputs[0].shape.dims[0], rows);
    cr_assert_eq(client->frame.header.data_bytes, rows * 16);
    const float *y = (const float *)client->frame.data;
    for (int64_t i = 0; i < rows * 4; i++)
        cr_assert_eq(y[i], base + (float)i + 1000.0f, "element %ld of %ld rows", (long)i,
                     (long)rows);
    cr_assert_eq((reply->flags & INF_INFER_PADDED) != 0, reply->padded_to != 0);
    // The largest of the runs of a split request need not be the one that was padded.
    cr_assert(reply->padded_to == 0 || reply->padded_to > reply->batch_size ||
              (reply->flags & INF_INFER_SPLIT) != 0);
    return reply->batch_size;
}

Test(serving_batch, queued_requests_run_together_and_get_their_own_rows)
{
    enum {
        COUNT = 60
    };
    uint64_t busy = occupy_worker(&raw);
    uint64_t first = 0;
    for (int i = 0; i < COUNT; i++) {
        uint64_t stream = add_row(&raw, 1 + i % 5, (float)i * 100);
        first = i == 0 ? stream : first;
    }
    uint32_t together = 0;
    for (int seen = 0; seen < COUNT;) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        uint64_t stream = raw.frame.header.stream_id;
        if (stream == busy)
            continue;
        int i = (int)(stream - first);
        uint32_t rows = check_sum(&raw, 1 + i % 5, (float)i * 100);
        cr_assert_leq(rows, 16);
        together += rows > (uint32_t)(1 + i % 5);
        seen++;
    }
    cr_assert_gt(together, COUNT / 2, "only %u of %d ran with others", together, COUNT);
}

// Sends one request over each connection while the worker is busy. Returns how many of these
// requests ran together in one batch.
static int ask_each(struct inf_raw *others, int count)
{
    int together = 0;
    uint64_t busy = occupy_worker(&raw);
    for (int i = 0; i < count; i++)
        add_row(&others[i], 2, (float)i * 100);
    for (int i = 0; i < count; i++) {
        inf_raw_expect(&others[i], INF_FRAME_RESPONSE);
        together += check_sum(&others[i], 2, (float)i * 100) == 2 * (uint32_t)count;
    }
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw.frame.header.stream_id, busy);
    return together;
}

Test(serving_batch, joins_requests_of_several_connections)
{
    struct inf_raw others[4];
    for (int i = 0; i < 4; i++)
        inf_raw_open(&others[i], fixture.socket);
    // Repeat, because on a busy machine the test may be too slow to send the requests while the
    // worker runs.
    int together = 0;
    for (int round = 0; round < 50 && together < 4; round++)
        together = ask_each(others, 4);
    cr_expect_eq(together, 4);
    for (int i = 0; i < 4; i++)
        inf_raw_close(&others[i]);
}

Test(serving_batch, odd_numbers_of_rows_and_many_are_right)
{
    static const int64_t rows[] = {1, 3, 5, 7, 13, 16, 17, 33, ROWS_MAX};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        add_row(&raw, rows[i], 5);
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        check_sum(&raw, rows[i], 5);
    }
}

// One request has a region that is too small, one is cancelled, and one misses its deadline. Expect
// that the other requests still succeed.
Test(serving_batch, a_request_that_fails_fails_alone)
{
    union inf_message message;
    static const float zeros[32];
    inf_raw_register(&raw, 1, inf_memfd(4096, 7), 4096, true);
    occupy_worker(&raw);
    uint64_t first = add_row(&raw, 2, 0);
    inf_add_request(&message, 2);
    message.infer_request.output_count = 1;
    message.infer_request.outputs[0] = (struct inf_tensor_entry){
        .name = "y", .location = {.present = true, .region_id = 1, .offset = 0, .length = 16}};
    uint64_t small = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                     &message, (struct inf_span){(const uint8_t *)zeros, 96});
    uint64_t cancelled = add_row(&raw, 2, 200);
    uint64_t last = add_row(&raw, 2, 300);
    inf_raw_send(&raw, (struct inf_frame_header){.type = INF_FRAME_CANCEL, .stream_id = cancelled},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    for (int i = 0; i < 5; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        uint64_t stream = raw.frame.header.stream_id;
        if (stream == small)
            inf_raw_check_failure(&raw, INF_RANGE, INF_REASON_OUTPUT_TOO_SMALL);
        else if (stream == cancelled)
            inf_raw_check_failure(&raw, INF_CANCELLED, INF_REASON_BY_CLIENT);
        else if (stream == first)
            check_sum(&raw, 2, 0);
        else if (stream == last)
            check_sum(&raw, 2, 300);
    }
}

Test(serving_batch, outputs_go_to_the_regions_that_were_named)
{
    struct inf_span none = {0};
    int fd = inf_memfd(4096, 7);
    float *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(memory, MAP_FAILED);
    inf_raw_register(&raw, 1, fd, 4096, true);
    memset(memory, 0, 4096);
    for (int i = 0; i < 4 * 64; i++)
        memory[i] = (float)i;
    occupy_worker(&raw);
    // Send four requests of two rows. a and b use the same range, and the outputs follow each other
    // in the region.
    for (uint64_t i = 0; i < 4; i++) {
        union inf_message message;
        inf_add_request(&message, 2);
        for (int k = 0; k < 2; k++)
            message.infer_request.inputs[k].location = (struct inf_location){
                .present = true, .region_id = 1, .offset = i * 64, .length = 32};
        message.infer_request.output_count = 1;
        message.infer_request.outputs[0] = (struct inf_tensor_entry){
            .name = "y",
            .location = {.present = true, .region_id = 1, .offset = 2048 + i * 64, .length = 32}};
        inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message, none);
    }
    for (int i = 0; i < 5; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++)
            cr_expect_eq(memory[512 + i * 16 + k], k < 8 ? 2.0f * (float)(i * 16 + k) : 0.0f,
                         "request %d, element %d", i, k);
}
