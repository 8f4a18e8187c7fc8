// SPDX-License-Identifier: Apache-2.0
// Data of requests and replies in several DATA frames, and the credit for their bytes.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/daemon/fixture.h"

// Number of rows of 16 bytes each. The inputs a and b of one request take 3 MiB together, and the
// reply half of that.
#define ROWS        (int64_t)(96 << 10)
#define SIDE_BYTES  ((size_t)ROWS * 16)
#define TOTAL_BYTES (2 * SIDE_BYTES)

static struct inf_fixture fixture;
static struct inf_raw raw;
static float sides[2 * SIDE_BYTES / sizeof(float)];

static void open_with(struct inf_raw *client, const char *feature)
{
    const struct inf_hello hello = {.major = INF_PROTOCOL_MAJOR,
                                    .limits = {.streams = 8},
                                    .feature_count = feature != NULL,
                                    .features = {feature}};
    inf_raw_open_as(client, fixture.socket, &hello);
}

static void start_server(void)
{
    static const char *const arguments[] = {"--request_bytes_per_uid_max=8M", NULL};
    inf_fixture_start(&fixture, arguments);
    open_with(&raw, "inferd.data");
    for (size_t i = 0; i < (size_t)ROWS * 4; i++) {
        sides[i] = (float)(i % 1000);
        sides[(size_t)ROWS * 4 + i] = (float)(i % 7) * 0.5f;
    }
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_data, .init = start_server, .fini = stop_server, .timeout = 120);

static void send_piece(struct inf_raw *client, uint64_t stream, uint64_t total, size_t from,
                       size_t size)
{
    const struct inf_frame_header header = {.type = INF_FRAME_DATA, .stream_id = stream};
    const union inf_message message = {.data = {.total_bytes = total}};
    inf_raw_send(client, header, INF_MESSAGE_DATA, &message,
                 (struct inf_span){(const uint8_t *)sides + from, size}, -1);
}

// Sends DATA frames of `piece` bytes until `left` bytes of the data remain.
static void send_pieces(struct inf_raw *client, uint64_t stream, size_t piece, size_t left)
{
    for (size_t at = 0; TOTAL_BYTES - at > left;) {
        size_t size = INF_MIN(piece, TOTAL_BYTES - left - at);
        send_piece(client, stream, TOTAL_BYTES, at, size);
        at += size;
    }
}

// Sends the REQUEST frame for the model `add` on this stream. The frame carries the last `size`
// bytes of the data; the earlier bytes were sent in DATA frames.
static void send_request(struct inf_raw *client, uint64_t stream, size_t size)
{
    union inf_message message;
    const struct inf_frame_header header = {
        .type = INF_FRAME_REQUEST, .stream_id = stream, .method = INF_METHOD_MODEL_INFER};
    inf_add_request(&message, ROWS);
    inf_raw_send(client, header, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){(const uint8_t *)sides + TOTAL_BYTES - size, size}, -1);
}

// Reads the reply of a request for the model `add`, which comes in several DATA frames, and checks
// every number.
static void expect_sum(struct inf_raw *client, uint64_t stream)
{
    float *sum = malloc(SIDE_BYTES);
    size_t got = 0;
    bool final = false;
    uint32_t frames = 0;
    while (!final) {
        cr_assert(inf_raw_next(client, 30000));
        const struct inf_frame_header *header = &client->frame.header;
        if (header->type == INF_FRAME_RESPONSE && (header->flags & INF_FRAME_FLAG_ERROR) != 0) {
            inf_raw_decode(client, INF_MESSAGE_STATUS);
            cr_assert_fail("%s", client->message.status.message);
        }
        cr_assert_eq(header->stream_id, stream);
        final = header->type == INF_FRAME_RESPONSE;
        cr_assert_eq(header->flags, final ? INF_FRAME_FINAL : 0);
        inf_raw_decode(client, final ? INF_MESSAGE_INFER_REPLY : INF_MESSAGE_DATA);
        if (!final)
            cr_assert_eq(client->message.data.total_bytes, SIDE_BYTES);
        cr_assert_leq(got + header->data_bytes, SIDE_BYTES);
        memcpy((uint8_t *)sum + got, client->frame.data, header->data_bytes);
        got += header->data_bytes;
        frames++;
    }
    cr_assert_eq(got, SIDE_BYTES);
    cr_assert_gt(frames, 1);
    cr_assert_eq(client->message.infer_reply.outputs[0].location.length, SIDE_BYTES);
    for (size_t i = 0; i < (size_t)ROWS * 4; i++)
        cr_assert_eq(sum[i], sides[i] + sides[(size_t)ROWS * 4 + i], "element %zu", i);
    free(sum);
}

static void expect_refused(struct inf_raw *client, uint64_t stream, enum inf_code code,
                           enum inf_reason reason)
{
    inf_raw_expect(client, INF_FRAME_RESPONSE);
    cr_assert_eq(client->frame.header.stream_id, stream);
    inf_raw_check_failure(client, code, reason);
}

Test(serving_data, of_requests_and_replies_comes_in_pieces_of_any_size)
{
    static const size_t pieces[][2] = {
        {1 << 20, 1 << 20}, {1 << 20, 0}, {999999, 17}, {12345, 1}, {TOTAL_BYTES / 3, 1000}};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        uint64_t stream = ++raw.last_stream;
        send_pieces(&raw, stream, pieces[i][0], pieces[i][1]);
        send_request(&raw, stream, pieces[i][1]);
        expect_sum(&raw, stream);
    }
}

Test(serving_data, that_exceeds_a_frame_is_refused_without_the_feature)
{
    struct inf_raw plain;
    open_with(&plain, NULL);
    send_pieces(&plain, 1, 1 << 20, 100);
    send_request(&plain, 1, 100);
    expect_refused(&plain, 1, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE);
    inf_raw_close(&plain);
}

Test(serving_data, of_several_requests_may_be_mixed_with_others)
{
    union inf_message message;
    uint64_t first = ++raw.last_stream;
    uint64_t second = ++raw.last_stream;
    send_piece(&raw, first, TOTAL_BYTES, 0, 1 << 20);
    send_piece(&raw, second, TOTAL_BYTES, 0, 1 << 19);
    inf_add_request(&message, 2);
    uint64_t small = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                     &message, (struct inf_span){(const uint8_t *)sides, 96});
    inf_raw_expect_infer(&raw, small);
    send_piece(&raw, first, TOTAL_BYTES, 1 << 20, 1 << 20);
    send_piece(&raw, second, TOTAL_BYTES, 1 << 19, 1 << 20);
    send_request(&raw, first, 1 << 20);
    expect_sum(&raw, first);
    send_piece(&raw, second, TOTAL_BYTES, 3 << 19, 1 << 20);
    send_request(&raw, second, 1 << 19);
    expect_sum(&raw, second);
}

Test(serving_data, that_is_not_what_was_announced_is_refused_with_its_request)
{
    static const struct {
        uint64_t totals[2], sizes[2];
        size_t last;
        enum inf_code code;
        enum inf_reason reason;
    } wrong[] = {
        {{1000, 1000}, {600, 600}, 0, INF_INVALID, INF_REASON_SIZE_MISMATCH},
        {{1000, 1000}, {500, 500}, 1, INF_INVALID, INF_REASON_SIZE_MISMATCH},
        {{1000, 1000}, {500, 499}, 0, INF_INVALID, INF_REASON_SIZE_MISMATCH},
        {{1000, 1001}, {500, 500}, 1, INF_INVALID, INF_REASON_SIZE_MISMATCH},
        // The data of this request is smaller than the inputs of the model `add`, so expect an
        // error.
        {{1000, 1000}, {500, 500}, 0, INF_RANGE, INF_REASON_REGION_BOUNDS},
        {{0, 0}, {0, 0}, 0, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE},
        {{INF_LIMIT_STREAM_DATA_BYTES + 1, INF_LIMIT_STREAM_DATA_BYTES + 1},
         {10, 10},
         10,
         INF_EXHAUSTED,
         INF_REASON_FRAME_TOO_LARGE},
        {{UINT64_MAX, 5}, {5, 5}, 0, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint64_t stream = ++raw.last_stream;
        for (int k = 0; k < 2; k++)
            send_piece(&raw, stream, wrong[i].totals[k], 0, wrong[i].sizes[k]);
        send_request(&raw, stream, wrong[i].last);
        expect_refused(&raw, stream, wrong[i].code, wrong[i].reason);
    }
    uint64_t stream = ++raw.last_stream;
    send_pieces(&raw, stream, 1 << 20, 8);
    send_request(&raw, stream, 8);
    expect_sum(&raw, stream);
}

Test(serving_data, of_a_cancelled_request_is_dropped_and_skipped)
{
    uint64_t stream = ++raw.last_stream;
    send_piece(&raw, stream, TOTAL_BYTES, 0, 1 << 20);
    inf_raw_send(&raw, (struct inf_frame_header){.type = INF_FRAME_CANCEL, .stream_id = stream},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    send_piece(&raw, stream, TOTAL_BYTES, 1 << 20, 1 << 20);
    stream = ++raw.last_stream;
    send_pieces(&raw, stream, 1 << 20, 0);
    send_request(&raw, stream, 0);
    // The first request was cancelled, so expect a reply for the second one only.
    expect_sum(&raw, stream);
    send_request(&raw, stream - 1, 8);
    inf_raw_expect_error(&raw, INF_INVALID, INF_REASON_BAD_FRAME);
}

Test(serving_data, of_clients_that_vanish_or_are_refused_is_not_charged)
{
    // The limit of a user is 8 MiB, so four requests of 3 MiB succeed only if each is refunded
    // before the next.
    for (int i = 0; i < 4; i++) {
        struct inf_raw gone;
        open_with(&gone, "inferd.data");
        send_pieces(&gone, 1, 1 << 20, 1000);
        inf_raw_close(&gone);
    }
    struct inf_raw greedy;
    open_with(&greedy, "inferd.data");
    for (uint64_t stream = 1; stream <= 3; stream++)
        send_pieces(&greedy, stream, 1 << 20, 1000);
    send_request(&greedy, 3, 1000); // the third upload exceeds the limit of the user
    expect_refused(&greedy, 3, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    send_request(&greedy, 1, 1000);
    expect_sum(&greedy, 1);
    send_request(&greedy, 2, 1000);
    expect_sum(&greedy, 2);
    inf_raw_close(&greedy);
    inf_raw_wait_for(&raw, 0, 0);
    send_pieces(&raw, ++raw.last_stream, 1 << 20, 1000);
    uint64_t stream = raw.last_stream;
    send_request(&raw, stream, 1000);
    expect_sum(&raw, stream);
}

Test(serving_data, in_flight_has_a_credit_that_is_announced)
{
    struct inf_raw admin;
    inf_raw_open(&admin, fixture.admin_socket);
    cr_assert_eq(admin.message.hello_ack.credit_bytes, 64 << 20);
    const union inf_message message = {
        .flag_set = {.name = "request_bytes_per_connection_max", .value = "4M"}};
    inf_raw_request(&admin, INF_METHOD_FLAG_SET, INF_MESSAGE_FLAG_SET, &message,
                    (struct inf_span){0});
    inf_raw_expect(&raw, INF_FRAME_CREDIT);
    inf_raw_decode(&raw, INF_MESSAGE_CREDIT);
    cr_assert_eq(raw.message.credit.requests, 8);
    cr_assert_eq(raw.message.credit.bytes, 4 << 20);
    inf_raw_close(&admin);
    uint64_t first = ++raw.last_stream;
    send_pieces(&raw, first, 1 << 20, 1000);
    uint64_t second = ++raw.last_stream;
    send_pieces(&raw, second, 1 << 20, 1000);
    send_request(&raw, second, 1000);
    expect_refused(&raw, second, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    cr_assert_gt(raw.message.status.retry_after_ms, 0);
    send_request(&raw, first, 1000);
    expect_sum(&raw, first);
    uint64_t third = ++raw.last_stream;
    send_pieces(&raw, third, 1 << 20, 1000);
    send_request(&raw, third, 1000);
    expect_sum(&raw, third);
}

Test(serving_data, of_ordered_replies_comes_in_their_order)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.model_name = "brief";
    message.infer_request.device = "ref";
    message.infer_request.order_key = 5;
    uint64_t first = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                     &message, inf_slow_data());
    uint64_t second = ++raw.last_stream;
    send_pieces(&raw, second, 1 << 20, 0);
    const struct inf_frame_header header = {
        .type = INF_FRAME_REQUEST, .stream_id = second, .method = INF_METHOD_MODEL_INFER};
    inf_add_request(&message, ROWS);
    message.infer_request.order_key = 5;
    inf_raw_send(&raw, header, INF_MESSAGE_INFER_REQUEST, &message, (struct inf_span){0}, -1);
    inf_raw_expect_infer(&raw, first);
    expect_sum(&raw, second);
}

Test(serving_data, of_clients_that_read_nothing_goes_with_them)
{
    struct inf_raw deaf;
    open_with(&deaf, "inferd.data");
    for (uint64_t stream = 1; stream <= 2; stream++) {
        send_pieces(&deaf, stream, 1 << 20, 0);
        send_request(&deaf, stream, 0);
    }
    inf_raw_wait_for(&raw, 0, 0);
    inf_raw_close(&deaf);
    inf_raw_wait_for(&raw, 0, 0);
    uint64_t stream = ++raw.last_stream;
    send_pieces(&raw, stream, 1 << 20, 0);
    send_request(&raw, stream, 0);
    expect_sum(&raw, stream);
}

Test(serving_data, more_requests_than_the_credit_for_too_long_end_the_connection)
{
    union inf_message message;
    inf_slow_request(&message);
    inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                    inf_slow_data());
    send_piece(&raw, ++raw.last_stream, 1 << 20, 0, 1);
    for (int i = 0; i < 6; i++)
        send_piece(&raw, ++raw.last_stream, 1 << 10, 0, 1);
    uint32_t refused = 0;
    bool ended = false;
    for (int i = 0; i < 10000 && !ended; i++) {
        inf_raw_request(&raw, INF_METHOD_SERVER_LIVE, INF_MESSAGE_EMPTY, NULL,
                        (struct inf_span){0});
        cr_assert(inf_raw_next(&raw, 30000));
        ended = raw.frame.header.type == INF_FRAME_ERROR;
        refused += !ended;
    }
    cr_assert(ended);
    cr_assert_gt(refused, 1000);
}
