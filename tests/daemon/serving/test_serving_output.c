// SPDX-License-Identifier: Apache-2.0
// Clients that do not read their replies, or read them too slowly.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"

// Limits of unread replies in all tests. Only reply_soft_ms differs, the time for which replies
// beyond the soft limit may be unread.
#define LIMITS "--reply_bytes_soft_max=1M", "--reply_bytes_hard_max=4M", "--direct_reply_bytes=64K"

// The data size of one reply, which has rows of 16 bytes.
#define REPLY_BYTES (64 << 10)

static struct inf_fixture fixture;
static struct inf_raw raw;

static void start_server(void)
{
    static const char *const arguments[] = {LIMITS, "--reply_soft_ms=2000", NULL};
    inf_fixture_start(&fixture, arguments);
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_output, .init = start_server, .fini = stop_server, .timeout = 120);

// Sends `count` requests at once. All of them wait in the queue behind a slow request, so the
// daemon has received them all before the first reply is ready.
static void send_request(struct inf_raw *client, uint32_t count)
{
    static uint8_t data[2 * REPLY_BYTES];
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.model_name = "brief";
    message.infer_request.device = "ref";
    inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                    inf_slow_data());
    for (uint32_t i = 0; i < count; i++) {
        inf_add_request(&message, REPLY_BYTES / 16);
        message.infer_request.device = "ref";
        inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                        (struct inf_span){data, sizeof data});
    }
}

// Reads replies until an ERROR frame arrives. Returns the number of replies.
static uint32_t count_replies(struct inf_raw *client)
{
    uint32_t count = 0;
    while (inf_raw_next(client, 30000) && client->frame.header.type != INF_FRAME_ERROR)
        count += client->frame.header.type == INF_FRAME_RESPONSE;
    cr_assert_eq(client->frame.header.type, INF_FRAME_ERROR);
    inf_raw_check_failure(client, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    cr_assert_not(inf_raw_next(client, 30000));
    cr_assert(client->closed);
    return count;
}

Test(serving_output, beyond_the_hard_limit_ends_the_connection_at_once)
{
    struct inf_raw deaf;
    inf_raw_open(&deaf, fixture.socket);
    send_request(&deaf, 100);
    for (int i = 0; i < 1000 && inf_raw_server_status(&raw).requests_accepted < 101; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    inf_raw_wait_for(&raw, 0, 0);
    cr_assert_lt(count_replies(&deaf), 100);
    inf_raw_close(&deaf);
}

Test(serving_output, beyond_the_hard_limit_is_cut_off_between_pieces)
{
    const struct inf_hello hello = {.major = INF_PROTOCOL_MAJOR,
                                    .limits = {.streams = INF_LIMIT_STREAMS, .data_bytes = 10000},
                                    .feature_count = 1,
                                    .features = {"inferd.data"}};
    struct inf_raw deaf;
    inf_raw_open_as(&deaf, fixture.socket, &hello);
    send_request(&deaf, 100);
    for (int i = 0; i < 1000 && inf_raw_server_status(&raw).requests_accepted < 101; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    inf_raw_wait_for(&raw, 0, 0);
    cr_assert_lt(count_replies(&deaf), 100);
    inf_raw_close(&deaf);
}

Test(serving_output, beyond_the_soft_limit_for_long_ends_the_connection)
{
    static uint8_t bytes[4096];
    struct inf_raw slow;
    inf_raw_open(&slow, fixture.socket);
    send_request(&slow, 50);
    // Read at most one MiB per second, which is too slow for the daemon's limit.
    size_t got = 0;
    ssize_t part;
    do {
        nanosleep(&(struct timespec){.tv_nsec = 4000000}, NULL);
        part = recv(slow.fd, bytes, sizeof bytes, 0);
        got += part > 0 ? (size_t)part : 0;
    } while (part > 0 && got < 51 * REPLY_BYTES);
    cr_assert_lt(got, 50 * REPLY_BYTES, "all was sent");
    inf_raw_close(&slow);
    inf_raw_wait_for(&raw, 0, 0);
    cr_assert_eq(inf_raw_server_status(&raw).connections, 1);
}

// Only one request is in flight at a time, so workers reply directly until the socket is full in
// the middle of a reply. Then the loop writes the rest and all later replies. Expect complete
// replies.
Test(serving_output, of_single_requests_stays_complete_for_a_slow_reader)
{
    static float data[2 * REPLY_BYTES / sizeof(float)];
    static const char *const patient[] = {LIMITS, "--reply_soft_ms=600000", NULL};
    struct inf_raw lazy;
    union inf_message message;
    // On a busy machine the first reply may be unread for seconds until the last one is written.
    inf_raw_close(&raw);
    inf_fixture_restart(&fixture, patient);
    inf_raw_open(&raw, fixture.socket);
    inf_raw_open(&lazy, fixture.socket);
    uint64_t before = inf_raw_server_status(&raw).requests_ok;
    uint32_t asked = 0;
    for (uint32_t i = 0; i < 12; i++) {
        for (size_t k = 0; k < INF_ARRAY_LENGTH(data); k++)
            data[k] = (float)(k % 1000 + i);
        inf_add_request(&message, REPLY_BYTES / 16);
        inf_raw_request(&lazy, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                        (struct inf_span){(const uint8_t *)data, sizeof data});
        // Wait until the daemon has counted the reply. The counter also includes the status
        // requests of this loop.
        while (inf_raw_server_status(&raw).requests_ok < before + ++asked + i + 1)
            ;
    }
    for (uint32_t i = 0; i < 12; i++) {
        inf_raw_expect_infer(&lazy, i + 1);
        cr_assert_eq(lazy.frame.header.data_bytes, REPLY_BYTES);
        const float *sums = (const float *)(const void *)lazy.frame.data;
        size_t half = REPLY_BYTES / sizeof(float);
        for (size_t k = 0; k < half; k++)
            cr_assert_eq(sums[k], (float)(k % 1000 + i) + (float)((k + half) % 1000 + i));
    }
    inf_raw_close(&lazy);
    inf_raw_wait_for(&raw, 0, 0);
}

Test(serving_output, below_the_soft_limit_may_wait)
{
    struct inf_raw lazy;
    inf_raw_open(&lazy, fixture.socket);
    send_request(&lazy, 1);
    nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
    inf_raw_expect_infer(&lazy, 1);
    inf_raw_expect_infer(&lazy, 2);
    inf_raw_close(&lazy);
}
