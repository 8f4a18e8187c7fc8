// SPDX-License-Identifier: Apache-2.0
// Hostile, broken and slow byte streams against a running daemon.
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;
static uint8_t bytes[INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES + INF_LIMIT_DATA_BYTES];
static const float rows[32]; // two rows of a and two of b, all 0

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

TestSuite(serving_frames, .init = start_server, .fini = stop_server, .timeout = 120);

static struct inf_span add_data(void)
{
    return (struct inf_span){(const uint8_t *)rows, 96};
}

// Encodes a request frame for the model `add` on the client's next stream into `bytes`. Returns the
// size in bytes.
static size_t encode_add(struct inf_raw *from)
{
    union inf_message message;
    inf_add_request(&message, 2);
    const struct inf_frame_header header = {.type = INF_FRAME_REQUEST,
                                            .stream_id = ++from->last_stream,
                                            .method = INF_METHOD_MODEL_INFER};
    return inf_raw_encode(from, header, INF_MESSAGE_INFER_REQUEST, &message, add_data(), bytes,
                          sizeof bytes);
}

// Checks that the daemon still answers on this connection.
static void check_serves(struct inf_raw *client)
{
    inf_raw_send_bytes(client, bytes, encode_add(client), -1);
    inf_raw_expect_infer(client, client->last_stream);
}

static void check_others_are_served(void)
{
    check_serves(&raw);
}

Test(serving_frames, come_one_byte_at_a_time)
{
    size_t size = encode_add(&raw);
    for (size_t i = 0; i < size; i++)
        inf_raw_send_bytes(&raw, bytes + i, 1, -1);
    inf_raw_expect_infer(&raw, raw.last_stream);
}

Test(serving_frames, come_split_anywhere_and_many_in_one_write)
{
    size_t size = encode_add(&raw);
    for (size_t split = 1; split < size; split++) {
        raw.last_stream++;
        memcpy(bytes + 8, &raw.last_stream, sizeof raw.last_stream);
        inf_raw_send_bytes(&raw, bytes, split, -1);
        sched_yield();
        inf_raw_send_bytes(&raw, bytes + split, size - split, -1);
        inf_raw_expect_infer(&raw, raw.last_stream);
    }
    uint8_t *many = malloc(size * 100);
    for (int i = 0; i < 100; i++) {
        raw.last_stream++;
        memcpy(many + size * (size_t)i, bytes, size);
        memcpy(many + size * (size_t)i + 8, &raw.last_stream, sizeof raw.last_stream);
    }
    inf_raw_send_bytes(&raw, many, size * 100, -1);
    free(many);
    for (int i = 99; i >= 0; i--)
        inf_raw_expect_infer(&raw, raw.last_stream - (uint64_t)i);
}

Test(serving_frames, cut_off_anywhere_affect_no_other_client)
{
    for (size_t size = 0; size < encode_add(&raw); size += 7) {
        struct inf_raw other;
        inf_raw_open(&other, fixture.socket);
        cr_assert(inf_raw_send_bytes(&other, bytes, size, -1));
        inf_raw_close(&other);
    }
    check_others_are_served();
    inf_raw_wait_for(&raw, 0, 0);
    cr_assert_eq(inf_raw_server_status(&raw).connections, 1);
}

Test(serving_frames, too_large_are_refused_and_skipped)
{
    static const uint8_t zeros[1 << 16];
    struct inf_frame_header header = {.type = INF_FRAME_REQUEST,
                                      .method = INF_METHOD_MODEL_INFER,
                                      .data_bytes = INF_LIMIT_DATA_BYTES + 1};
    for (int i = 0; i < 2; i++) {
        header.stream_id = ++raw.last_stream;
        inf_frame_header_encode(&header, bytes);
        inf_raw_send_bytes(&raw, bytes, INF_FRAME_HEADER_BYTES, -1);
        for (size_t left = header.data_bytes + header.meta_bytes; left > 0;) {
            size_t part = INF_MIN(left, sizeof zeros);
            inf_raw_send_bytes(&raw, zeros, part, -1);
            left -= part;
        }
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        cr_assert_eq(raw.frame.header.stream_id, raw.last_stream);
        inf_raw_check_failure(&raw, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE);
        check_serves(&raw);
        header.data_bytes = 0;
        header.meta_bytes = INF_LIMIT_META_BYTES + 1;
    }
    header.stream_id = ++raw.last_stream;
    header.data_bytes = INF_LIMIT_SKIP_BYTES + 1;
    header.meta_bytes = 0;
    inf_frame_header_encode(&header, bytes);
    inf_raw_send_bytes(&raw, bytes, INF_FRAME_HEADER_BYTES, -1);
    inf_raw_expect_error(&raw, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE);
}

// Sends one frame header on a new connection after HELLO, and expects an ERROR frame.
static void check_header_breaks(const struct inf_frame_header *header, size_t at, uint8_t byte)
{
    struct inf_raw other;
    inf_raw_open(&other, fixture.socket);
    inf_frame_header_encode(header, bytes);
    if (at < INF_FRAME_HEADER_BYTES)
        bytes[at] = byte;
    inf_raw_send_bytes(&other, bytes, INF_FRAME_HEADER_BYTES, -1);
    inf_raw_expect_error(&other, INF_INVALID, INF_REASON_BAD_FRAME);
    inf_raw_close(&other);
}

Test(serving_frames, with_impossible_headers_end_the_connection)
{
    const struct inf_frame_header ping = {.type = INF_FRAME_PING};
    check_header_breaks(&ping, 16, 0); // byte 16, the frame type, is not that of any frame
    check_header_breaks(&ping, 18, 8); // byte 18 has an invalid flag
    check_header_breaks(&ping, 22, 1); // byte 22 is reserved and must be 0
    // byte 17 announces a descriptor, which a PING must not have
    check_header_breaks(&ping, 17, 1);
    check_header_breaks(&ping, 17, 17); // byte 17 announces more descriptors than are allowed
    const struct inf_frame_header unknown = {.type = 99, .flags = INF_FRAME_CRITICAL};
    check_header_breaks(&unknown, 99, 0);
    const struct inf_frame_header streamless = {.type = INF_FRAME_REQUEST};
    check_header_breaks(&streamless, 99, 0);
    static const uint8_t of_server[] = {INF_FRAME_HELLO_ACK,    INF_FRAME_RESPONSE,
                                        INF_FRAME_MEM_RELEASED, INF_FRAME_MEM_REGISTERED,
                                        INF_FRAME_GOAWAY,       INF_FRAME_ERROR};
    for (size_t i = 0; i < sizeof of_server; i++) {
        const struct inf_frame_header header = {.type = of_server[i], .stream_id = 1};
        check_header_breaks(&header, 99, 0);
    }
    const struct inf_frame_header data = {.type = INF_FRAME_DATA};
    check_header_breaks(&data, 99, 0);
    const struct inf_frame_header hello = {.type = INF_FRAME_HELLO};
    check_header_breaks(&hello, 99, 0);
    check_others_are_served();
}

Test(serving_frames, of_unknown_types_are_skipped)
{
    struct inf_frame_header header = {.type = 99, .meta_bytes = 3, .data_bytes = 70};
    inf_frame_header_encode(&header, bytes);
    memset(bytes + INF_FRAME_HEADER_BYTES, 0xff, 73);
    inf_raw_send_bytes(&raw, bytes, INF_FRAME_HEADER_BYTES + 73, -1);
    check_serves(&raw);
}

Test(serving_frames, need_streams_that_increase)
{
    check_serves(&raw);
    raw.last_stream--;
    size_t size = encode_add(&raw);
    inf_raw_send_bytes(&raw, bytes, size, -1);
    inf_raw_expect_error(&raw, INF_INVALID, INF_REASON_BAD_FRAME);
}

Test(serving_frames, begin_with_a_hello_of_this_version)
{
    struct inf_raw other;
    inf_raw_connect(&other, fixture.socket);
    inf_raw_send_bytes(&other, bytes, encode_add(&other), -1);
    inf_raw_expect_error(&other, INF_INVALID, INF_REASON_BAD_FRAME);
    inf_raw_close(&other);

    union inf_message message = {.hello = {.major = 2}};
    inf_raw_connect(&other, fixture.socket);
    inf_raw_send(&other, (struct inf_frame_header){.type = INF_FRAME_HELLO}, INF_MESSAGE_HELLO,
                 &message, (struct inf_span){0}, -1);
    inf_raw_expect_error(&other, INF_UNSUPPORTED, INF_REASON_FEATURE);
    inf_raw_close(&other);

    inf_raw_connect(&other, fixture.socket);
    inf_raw_send_bytes(&other, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 36, -1);
    inf_raw_expect(&other, INF_FRAME_ERROR);
    inf_raw_close(&other);
    check_others_are_served();
}

Test(serving_frames, of_a_later_minor_version_are_served)
{
    struct inf_raw other;
    union inf_message message = {.hello = {.major = 1,
                                           .minor = 9,
                                           .client_name = "later",
                                           .feature_count = 2,
                                           .features = {"inferd.session", "inferd.unheard_of"}}};
    inf_raw_connect(&other, fixture.socket);
    inf_raw_send(&other, (struct inf_frame_header){.type = INF_FRAME_HELLO}, INF_MESSAGE_HELLO,
                 &message, (struct inf_span){0}, -1);
    inf_raw_expect(&other, INF_FRAME_HELLO_ACK);
    inf_raw_decode(&other, INF_MESSAGE_HELLO_ACK);
    const struct inf_hello_ack *ack = &other.message.hello_ack;
    cr_assert_eq(ack->major, 1);
    cr_assert_eq(ack->minor, INF_PROTOCOL_MINOR);
    bool sessions = false;
    for (uint32_t i = 0; i < ack->feature_count; i++) {
        sessions = sessions || strcmp(ack->features[i], "inferd.session") == 0;
        cr_assert_str_neq(ack->features[i], "inferd.unheard_of");
    }
    cr_assert(sessions);
    check_serves(&other);
    inf_raw_close(&other);
}

Test(serving_frames, ping_is_answered)
{
    inf_raw_send(&raw, (struct inf_frame_header){.type = INF_FRAME_PING, .stream_id = 77},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    inf_raw_expect(&raw, INF_FRAME_PONG);
    cr_assert_eq(raw.frame.header.stream_id, 77);
}

// Sends an inference request frame whose metadata is replaced by these bytes.
static void send_meta(const uint8_t *meta, size_t size)
{
    const struct inf_frame_header header = {.meta_bytes = (uint32_t)size,
                                            .type = INF_FRAME_REQUEST,
                                            .stream_id = ++raw.last_stream,
                                            .method = INF_METHOD_MODEL_INFER};
    uint8_t head[INF_FRAME_HEADER_BYTES];
    inf_frame_header_encode(&header, head);
    inf_raw_send_bytes(&raw, head, sizeof head, -1);
    inf_raw_send_bytes(&raw, meta, size, -1);
}

Test(serving_frames, with_protobuf_bombs_are_refused_cheaply)
{
    static uint8_t meta[INF_LIMIT_META_BYTES];
    // Metadata fields that an attacker may repeat many times: an unknown varint, a scalar, bytes, a
    // sub-message (inputs, field 5), and a map entry (field 4). See section 8.5 of reliability.md.
    static const uint8_t patterns[][2] = {{0x78, 0x01}, {0x10, 0x01}, {0x1a, 0x00},
                                          {0x2a, 0x00}, {0x22, 0x00}, {0xff, 0xff}};
    uint64_t before = inf_raw_server_status(&raw).resident_bytes;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        for (size_t k = 0; k < sizeof meta; k++)
            meta[k] = patterns[i][k % 2];
        for (int times = 0; times < 20; times++) {
            send_meta(meta, sizeof meta);
            inf_raw_expect(&raw, INF_FRAME_RESPONSE);
            inf_raw_check_failure(&raw, INF_INVALID, INF_REASON_BAD_FRAME);
        }
    }
    // Nested messages: each level is a field 5 that contains all deeper levels.
    for (size_t size = 0; size + 4 < 60000; size += 4) {
        uint8_t level[4] = {0x2a, (uint8_t)(0x80 | ((59996 - size) & 0x7f)),
                            (uint8_t)(0x80 | ((59996 - size) >> 7 & 0x7f)),
                            (uint8_t)((59996 - size) >> 14)};
        memcpy(meta + size, level, 4);
    }
    send_meta(meta, 60000);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_check_failure(&raw, INF_INVALID, INF_REASON_BAD_FRAME);
    cr_assert_lt(inf_raw_server_status(&raw).resident_bytes, before + (4u << 20));
    check_serves(&raw);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

Test(serving_frames, must_be_complete_in_time)
{
    struct inf_raw silent;
    struct inf_raw trickling;
    int64_t begin = now_ms();
    inf_raw_connect(&silent, fixture.socket);
    inf_raw_open(&trickling, fixture.socket);
    struct inf_raw uploading;
    const union inf_message upload = {.data = {.total_bytes = 1000}};
    inf_raw_open(&uploading, fixture.socket);
    inf_raw_send(&uploading, (struct inf_frame_header){.type = INF_FRAME_DATA, .stream_id = 1},
                 INF_MESSAGE_DATA, &upload, add_data(), -1);
    size_t size = encode_add(&trickling);
    cr_assert_gt(size, 40);
    // Send one byte now and one more every 300 ms, so that the frame is never complete. Expect the
    // daemon to close the connection.
    for (size_t i = 0; i < 40 && now_ms() - begin < 9000; i++) {
        inf_raw_send_bytes(&trickling, bytes + i, 1, -1);
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        if (inf_raw_next(&silent, 0))
            cr_assert_geq(now_ms() - begin, 4900);
    }
    cr_assert_eq(silent.frame.header.type, INF_FRAME_ERROR);
    inf_raw_check_failure(&silent, INF_DEADLINE, INF_REASON_BAD_FRAME);
    inf_raw_expect_error(&trickling, INF_DEADLINE, INF_REASON_BAD_FRAME);
    cr_assert(now_ms() - begin >= 9900 && now_ms() - begin < 13000);
    inf_raw_expect_error(&uploading, INF_DEADLINE, INF_REASON_BAD_FRAME);
    inf_raw_close(&uploading);
    inf_raw_close(&silent);
    inf_raw_close(&trickling);
    check_others_are_served();
}

Test(serving_frames, that_are_not_read_end_the_connection)
{
    struct inf_raw deaf;
    union inf_message message;
    int64_t rows_each = (512 << 10) / 16;
    inf_raw_open(&deaf, fixture.socket);
    inf_add_request(&message, rows_each);
    static uint8_t data[INF_LIMIT_DATA_BYTES];
    const struct inf_frame_header header = {
        .type = INF_FRAME_REQUEST, .stream_id = 1, .method = INF_METHOD_MODEL_INFER};
    size_t size = inf_raw_encode(&deaf, header, INF_MESSAGE_INFER_REQUEST, &message,
                                 (struct inf_span){data, sizeof data}, bytes, sizeof bytes);
    // Send requests until the daemon stops reading, which it does when 16 MiB of its replies are
    // unread.
    int flags = fcntl(deaf.fd, F_GETFL);
    fcntl(deaf.fd, F_SETFL, flags | O_NONBLOCK);
    int64_t begin = now_ms();
    size_t sent = 0;
    uint64_t stream = 1;
    bool open = true;
    while (open && now_ms() - begin < 25000) {
        ssize_t part = send(deaf.fd, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (part > 0)
            sent += (size_t)part;
        else if (errno == EAGAIN)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        else
            open = false;
        if (sent == size) {
            stream++;
            memcpy(bytes + 8, &stream, sizeof stream);
            sent = 0;
        }
        cr_assert_lt(stream, 200, "the daemon reads on although its replies are not read");
    }
    cr_assert_not(open, "the connection is still open");
    cr_assert_geq(now_ms() - begin, 9900);
    inf_raw_close(&deaf);
    check_others_are_served();
    inf_raw_wait_for(&raw, 0, 0);
}

Test(serving_frames, beyond_the_credit_are_refused)
{
    struct inf_raw one;
    union inf_message hello = {.hello = {.major = INF_PROTOCOL_MAJOR, .limits = {.streams = 1}}};
    union inf_message message;
    inf_raw_connect(&one, fixture.socket);
    inf_raw_send(&one, (struct inf_frame_header){.type = INF_FRAME_HELLO}, INF_MESSAGE_HELLO,
                 &hello, (struct inf_span){0}, -1);
    inf_raw_expect(&one, INF_FRAME_HELLO_ACK);
    inf_raw_decode(&one, INF_MESSAGE_HELLO_ACK);
    cr_assert_eq(one.message.hello_ack.credit_requests, 1);
    inf_slow_request(&message);
    message.infer_request.model_name = "brief";
    uint64_t brief = inf_raw_request(&one, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                     &message, inf_slow_data());
    uint64_t second = inf_raw_request(&one, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, inf_slow_data());
    inf_raw_expect(&one, INF_FRAME_RESPONSE);
    cr_assert_eq(one.frame.header.stream_id, second);
    inf_raw_check_failure(&one, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
    inf_raw_expect_infer(&one, brief);
    inf_raw_close(&one);
}
