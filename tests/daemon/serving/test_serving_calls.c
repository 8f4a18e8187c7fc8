// SPDX-License-Identifier: Apache-2.0
// Calls that end without a result, because the client cancels or disconnects, a deadline passes, or
// there are too many requests.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"

// The delay allowed for an answer. The goal is one millisecond, but test machines are busy. The
// limit is less than the run time of the model `slow`.
#define LATE_MAX_US 700000

static struct inf_fixture fixture;
static struct inf_raw raw;
static const float rows[32];

static void start_with(const char *const *arguments)
{
    inf_fixture_start(&fixture, arguments);
    inf_raw_open(&raw, fixture.socket);
}

static void start_server(void)
{
    start_with(NULL);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_calls, .init = start_server, .fini = stop_server, .timeout = 120);

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint64_t send_slow(struct inf_raw *client, uint64_t timeout_ns)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.timeout_ns = timeout_ns;
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

static uint64_t send_add(struct inf_raw *client, const char *device)
{
    union inf_message message;
    inf_add_request(&message, 2);
    message.infer_request.device = device;
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           (struct inf_span){(const uint8_t *)rows, 96});
}

static void cancel_stream(struct inf_raw *client, uint64_t stream_id)
{
    inf_raw_send(client,
                 (struct inf_frame_header){.type = INF_FRAME_CANCEL, .stream_id = stream_id},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
}

static void expect_failure(struct inf_raw *client, uint64_t stream_id, enum inf_code code,
                           enum inf_reason reason)
{
    inf_raw_expect(client, INF_FRAME_RESPONSE);
    cr_assert_eq(client->frame.header.stream_id, stream_id);
    cr_assert((client->frame.header.flags & INF_FRAME_FINAL) != 0);
    inf_raw_check_failure(client, code, reason);
}

Test(serving_calls, are_cancelled_in_the_queue_and_while_they_run)
{
    uint64_t running = send_slow(&raw, 0);
    uint64_t waiting = send_slow(&raw, 0);
    uint64_t last = send_add(&raw, "ref");
    cancel_stream(&raw, waiting);
    expect_failure(&raw, waiting, INF_CANCELLED, INF_REASON_BY_CLIENT);
    cr_assert_str_eq(raw.message.status.phase, "queue");
    // Cancel it again, and cancel a stream that never existed: expect no effect.
    cancel_stream(&raw, waiting);
    cancel_stream(&raw, 99999);
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    int64_t begin = now_us();
    cancel_stream(&raw, running);
    expect_failure(&raw, running, INF_CANCELLED, INF_REASON_BY_CLIENT);
    cr_assert_str_eq(raw.message.status.phase, "exec");
    cr_assert_lt(now_us() - begin, LATE_MAX_US, "cancelling waits for the run");
    // Expect that the worker stops the cancelled job between two steps, and runs the next job.
    inf_raw_expect_infer(&raw, last);
    inf_raw_wait_for(&raw, 0, 0);
    cr_assert_not(inf_raw_next(&raw, 100), "a second final reply");
}

// Sends a request for the model `add` with an order key, on a device that the model `slow` does not
// use.
static uint64_t send_ordered(uint64_t key, bool wrong)
{
    union inf_message message;
    inf_add_request(&message, 2);
    message.infer_request.device = "cpu";
    message.infer_request.order_key = key;
    if (wrong)
        message.infer_request.model_name = "absent";
    return inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           (struct inf_span){(const uint8_t *)rows, 96});
}

static void expect_stream(uint64_t stream_id, bool failed)
{
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw.frame.header.stream_id, stream_id, "stream %llu came, wanted %llu",
                 (unsigned long long)raw.frame.header.stream_id, (unsigned long long)stream_id);
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL | (failed ? INF_FRAME_FLAG_ERROR : 0));
}

Test(serving_calls, of_one_order_key_are_answered_in_order)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.order_key = 7;
    uint64_t slow = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                    &message, inf_slow_data());
    uint64_t behind[3];
    for (int i = 0; i < 3; i++)
        // The second request has wrong data, so the daemon refuses it at once.
        behind[i] = send_ordered(7, i == 1);
    uint64_t other[2] = {send_ordered(8, false), send_ordered(8, true)};
    uint64_t without = send_ordered(0, true);
    // Given a request with another order key, or without one, expect its reply before the reply of
    // the slow request.
    bool came[3] = {false, false, false};
    for (int i = 0; i < 3; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        uint64_t stream = raw.frame.header.stream_id;
        cr_assert(stream == other[0] || stream == other[1] || stream == without);
        came[stream == other[0] ? 0 : stream == other[1] ? 1 : 2] = true;
        cr_assert(came[0] || !came[1], "the second of a key came first");
    }
    cr_assert_not(inf_raw_next(&raw, 50), "an answer of the key came before the first one's");
    cancel_stream(&raw, slow);
    expect_stream(slow, true);
    for (int i = 0; i < 3; i++)
        expect_stream(behind[i], i == 1);
    inf_raw_wait_for(&raw, 0, 0);
}

Test(serving_calls, whose_replies_wait_for_earlier_ones_use_credit)
{
    union inf_message message;
    enum {
        // Number of slow requests ahead of the request under test, so that the request under test
        // does not start before the test ends.
        BLOCKERS = 8
    };
    for (int i = 0; i < BLOCKERS; i++)
        send_slow(&raw, 0);
    inf_slow_request(&message);
    message.infer_request.order_key = 7;
    uint64_t slow = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                    &message, inf_slow_data());
    uint64_t last = 0;
    for (uint32_t i = BLOCKERS + 1; i < INF_LIMIT_STREAMS; i++)
        last = send_ordered(7, true); // the daemon has the answer, but must not send it yet
    uint64_t beyond = send_ordered(0, false);
    expect_stream(beyond, true);
    inf_raw_check_failure(&raw, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
    cancel_stream(&raw, slow);
    for (uint64_t stream = slow; stream <= last; stream++)
        expect_stream(stream, true);
    for (uint64_t stream = 1; stream <= BLOCKERS; stream++)
        cancel_stream(&raw, stream);
    for (int i = 0; i < BLOCKERS; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        inf_raw_check_failure(&raw, INF_CANCELLED, INF_REASON_BY_CLIENT);
    }
    inf_raw_expect_infer(&raw, send_ordered(0, false));
}

Test(serving_calls, with_an_order_key_leave_nothing_when_the_client_does)
{
    struct inf_raw other;
    union inf_message message;
    inf_raw_open(&other, fixture.socket);
    for (int round = 0; round < 3; round++) {
        inf_slow_request(&message);
        message.infer_request.order_key = 7;
        inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                        inf_slow_data());
        for (int i = 0; i < 20; i++)
            send_ordered(7, i % 2 == 0);
        inf_raw_close(&raw);
        inf_raw_open(&raw, fixture.socket);
    }
    inf_raw_wait_for(&other, 0, 0);
    inf_raw_close(&other);
}

Test(serving_calls, race_with_their_cancellation_and_get_one_reply)
{
    for (int i = 0; i < 3000; i++) {
        uint64_t stream = send_add(&raw, "");
        if (i % 3 != 0)
            for (volatile int spin = 0; spin < i * 10; spin++)
                ;
        cancel_stream(&raw, stream);
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        cr_assert_eq(raw.frame.header.stream_id, stream);
        if ((raw.frame.header.flags & INF_FRAME_FLAG_ERROR) != 0)
            inf_raw_check_failure(&raw, INF_CANCELLED, INF_REASON_BY_CLIENT);
    }
    cr_assert_not(inf_raw_next(&raw, 100), "a reply too many");
    inf_raw_wait_for(&raw, 0, 0);
}

Test(serving_calls, end_at_their_deadline_although_the_device_is_busy)
{
    int64_t begin = now_us();
    uint64_t running = send_slow(&raw, 300000000);
    uint64_t waiting = send_slow(&raw, 100000000);
    expect_failure(&raw, waiting, INF_DEADLINE, INF_REASON_IN_QUEUE);
    int64_t first = now_us() - begin;
    expect_failure(&raw, running, INF_DEADLINE, INF_REASON_IN_EXEC);
    int64_t second = now_us() - begin;
    cr_assert(first >= 100000 && first < 100000 + LATE_MAX_US, "after %ld us", (long)first);
    cr_assert(second >= 300000 && second < 300000 + LATE_MAX_US, "after %ld us", (long)second);
    uint64_t next = send_add(&raw, "ref");
    inf_raw_expect_infer(&raw, next);
    cr_assert_not(inf_raw_next(&raw, 100), "a reply too many");
    // Given a deadline far in the future or beyond the range of the clock, expect that it never
    // passes.
    union inf_message message;
    inf_add_request(&message, 2);
    message.infer_request.timeout_ns = UINT64_MAX;
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){(const uint8_t *)rows, 96});
    inf_raw_expect_infer(&raw, stream);
}

// Sends a slow request like send_slow(), with an additional timeout for the time in the queue.
static uint64_t send_impatient(uint64_t queue_timeout_ns, uint64_t timeout_ns)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.queue_timeout_ns = queue_timeout_ns;
    message.infer_request.timeout_ns = timeout_ns;
    return inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

Test(serving_calls, must_start_in_time_and_may_then_take_longer)
{
    int64_t begin = now_us();
    uint64_t running = send_impatient(50000000, 0);
    uint64_t waiting = send_impatient(100000000, 0);
    uint64_t patient = send_impatient(UINT64_MAX, 0);
    uint64_t sooner = send_impatient(3000000000, 20000000);
    expect_failure(&raw, sooner, INF_DEADLINE, INF_REASON_IN_QUEUE);
    expect_failure(&raw, waiting, INF_DEADLINE, INF_REASON_IN_QUEUE);
    cr_assert_str_eq(raw.message.status.phase, "queue");
    int64_t took = now_us() - begin;
    cr_assert(took >= 100000 && took < 100000 + LATE_MAX_US, "after %ld us", (long)took);
    // The queue timeout of the first request has also passed, but this has no effect, because the
    // request has already started. The third request has no queue timeout.
    cancel_stream(&raw, patient);
    expect_failure(&raw, patient, INF_CANCELLED, INF_REASON_BY_CLIENT);
    cr_assert_str_eq(raw.message.status.phase, "queue");
    cancel_stream(&raw, running);
    expect_failure(&raw, running, INF_CANCELLED, INF_REASON_BY_CLIENT);
    cr_assert_str_eq(raw.message.status.phase, "exec");
    inf_raw_expect_infer(&raw, send_add(&raw, "ref"));
    cr_assert_not(inf_raw_next(&raw, 100), "a reply too many");
}

Test(serving_calls, with_no_time_at_all_end_at_once)
{
    send_slow(&raw, 0);
    for (int i = 0; i < 100; i++)
        send_slow(&raw, 1);
    for (int i = 0; i < 100; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        inf_raw_check_failure(&raw, INF_DEADLINE, INF_REASON_IN_QUEUE);
    }
    cancel_stream(&raw, 1);
}

// Starts a daemon with a short queue. Expect that requests beyond the queue limit are refused.
Test(serving_queue, is_bounded, .timeout = 120)
{
    static const char *const arguments[] = {"--queue-requests-max=2", NULL};
    start_with(arguments);
    uint64_t streams[5];
    // One job runs and two are queued. Wait here until the worker has taken the first job, which
    // runs for more than a second.
    streams[0] = send_slow(&raw, 0);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    for (int i = 1; i < 5; i++)
        streams[i] = send_slow(&raw, 0);
    expect_failure(&raw, streams[3], INF_EXHAUSTED, INF_REASON_QUEUE_FULL);
    cr_assert_gt(raw.message.status.retry_after_ms, 0);
    expect_failure(&raw, streams[4], INF_EXHAUSTED, INF_REASON_QUEUE_FULL);
    // Expect that a request on another device is accepted, because each device has its own queue.
    uint64_t other = send_add(&raw, "");
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw.frame.header.stream_id, other);
    for (int i = 0; i < 3; i++)
        cancel_stream(&raw, streams[i]);
    for (int i = 0; i < 3; i++)
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_wait_for(&raw, 0, 0);
    stop_server();
}

Test(serving_calls, of_a_client_that_vanishes_are_dropped)
{
    uint32_t fds = inf_fixture_fds(&fixture);
    for (int i = 0; i < 50; i++) {
        struct inf_raw other;
        inf_raw_open(&other, fixture.socket);
        send_add(&other, "");
        send_slow(&other, 0);
        send_slow(&other, 0);
        if (i % 2 == 0)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        inf_raw_close(&other);
    }
    // A hundred slow runs would take minutes. The daemon needs less than five seconds, so it has
    // dropped the requests without running them.
    int64_t begin = now_us();
    inf_raw_wait_for(&raw, 0, 0);
    cr_assert_lt(now_us() - begin, 5000000);
    struct inf_server_status status = inf_raw_server_status(&raw);
    cr_assert_eq(status.connections, 1);
    cr_assert_eq(status.requests_accepted, status.requests_ok + status.requests_failed + 1);
    inf_fixture_expect_fds(&fixture, fds);
    uint64_t next = send_add(&raw, "ref");
    inf_raw_expect_infer(&raw, next);
}

// Opens session 1, which keeps a running sum.
static void open_sum(struct inf_raw *client)
{
    const union inf_message message = {
        .session = {
            .session_id = 1,
            .state_count = 1,
            .states = {{.output = "y", .input = "b", .shaped = true, .shape = INF_SHAPE(2, 4)}}}};
    inf_raw_call(client, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, &message,
                 (struct inf_span){0});
    cr_assert_eq(client->frame.header.flags, INF_FRAME_FINAL);
}

// Sends a request that belongs to a session, or has an order key (replies with equal keys come in
// the order of the requests), or both. A random choice gives it a deadline that is too short.
static void send_tied(struct inf_raw *client, unsigned *seed)
{
    union inf_message message;
    unsigned what = (unsigned)rand_r(seed);
    inf_add_request(&message, 2);
    struct inf_infer_request *request = &message.infer_request;
    request->order_key = what % 4;
    request->timeout_ns = what % 7 == 0 ? 1000000 : 0;
    request->device = what % 3 == 0 ? "ref" : "cpu";
    if (what % 5 != 0) {
        request->session_id = 1;
        request->input_count = 1;
    }
    inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                    (struct inf_span){(const uint8_t *)rows, request->input_count == 1 ? 32 : 96});
}

// Performs one random action (send, cancel, disconnect and so on) on one of several connections.
static void do_something(struct inf_raw *client, unsigned *seed, uint32_t *sent)
{
    unsigned what = (unsigned)rand_r(seed) % 16;
    union inf_message message;
    if (what < 4) {
        send_add(client, what % 2 == 0 ? "" : "ref");
    } else if (what < 8) {
        send_tied(client, seed);
    } else if (what < 10) {
        send_slow(client, 1000000u * (unsigned)(rand_r(seed) % 20));
        cancel_stream(client, client->last_stream);
    } else if (what == 10) {
        send_slow(client, 1000000);
    } else if (what == 11) {
        inf_add_request(&message, 2);
        message.infer_request.model_name = "absent";
        inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                        (struct inf_span){(const uint8_t *)rows, 96});
    } else if (what == 12) {
        inf_raw_request(client, (uint16_t)rand_r(seed), INF_MESSAGE_EMPTY, NULL,
                        (struct inf_span){0});
    } else {
        if (client->last_stream > 0)
            cancel_stream(client, 1 + (uint64_t)rand_r(seed) % client->last_stream);
        return;
    }
    ++*sent;
}

Test(serving_calls, of_every_kind_get_exactly_one_final_reply)
{
    enum {
        CLIENTS = 4,
        ROUNDS = 400,
        STREAMS = ROUNDS * 4
    };
    static uint8_t finals[CLIENTS][STREAMS];
    struct inf_raw clients[CLIENTS];
    uint32_t sent[CLIENTS] = {0};
    uint32_t got[CLIENTS] = {0};
    unsigned seed = 7;
    for (int c = 0; c < CLIENTS; c++) {
        inf_raw_open(&clients[c], fixture.socket);
        open_sum(&clients[c]);
    }
    for (int i = 0; i < ROUNDS * CLIENTS; i++) {
        int c = i % CLIENTS;
        for (int k = rand_r(&seed) % 3; k >= 0; k--)
            do_something(&clients[c], &seed, &sent[c]);
        while (inf_raw_next(&clients[c], 0)) {
            cr_assert_eq(clients[c].frame.header.type, INF_FRAME_RESPONSE);
            cr_assert_eq(clients[c].frame.header.flags & INF_FRAME_FINAL, INF_FRAME_FINAL);
            cr_assert_eq(finals[c][clients[c].frame.header.stream_id]++, 0, "a second final reply");
            got[c]++;
        }
    }
    for (int c = 0; c < CLIENTS; c++) {
        while (got[c] < sent[c]) {
            inf_raw_expect(&clients[c], INF_FRAME_RESPONSE);
            cr_assert_eq(finals[c][clients[c].frame.header.stream_id]++, 0, "a second final reply");
            got[c]++;
        }
        cr_assert_not(inf_raw_next(&clients[c], 20), "a reply too many");
        inf_raw_close(&clients[c]);
    }
    inf_raw_wait_for(&raw, 0, 0);
    struct inf_server_status status = inf_raw_server_status(&raw);
    cr_assert_eq(status.requests_accepted, status.requests_ok + status.requests_failed + 1);
}
