// SPDX-License-Identifier: Apache-2.0
// Sessions: the tensors that a connection keeps between its requests. With the state pair y -> b,
// the model `add` computes a running sum, so every expected value below is such a sum.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;

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

TestSuite(serving_session, .init = start_server, .fini = stop_server, .timeout = 120);

// --- sending requests that belong to a session ---

// Opens a session that keeps a sum: output y becomes the next input b. If `first` has a rank, the
// first b is zeros of that shape.
static void open_sum(uint64_t id, struct inf_shape first)
{
    union inf_message message = {.session = {.session_id = id, .state_count = 1}};
    message.session.states[0] = (struct inf_session_state){
        .output = "y", .input = "b", .shaped = first.rank > 0, .shape = first};
    inf_raw_call(&raw, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, &message,
                 (struct inf_span){0});
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
}

static void close_session(uint64_t id)
{
    const union inf_message message = {.session = {.session_id = id}};
    inf_raw_call(&raw, INF_METHOD_SESSION_CLOSE, INF_MESSAGE_SESSION_CLOSE, &message,
                 (struct inf_span){0});
}

// Fills in a request for the model `add` in a session. The request has one row of input a; input b
// comes from the session.
static void a_request(union inf_message *message, uint64_t session_id)
{
    inf_add_request(message, 1);
    message->infer_request.input_count = 1;
    message->infer_request.session_id = session_id;
}

static void want_y(union inf_message *message)
{
    message->infer_request.output_count = 1;
    message->infer_request.outputs[0] = (struct inf_tensor_entry){.name = "y"};
}

static uint64_t send_a(const union inf_message *message, float value)
{
    const float a[4] = {value, 2 * value, 3 * value, 4 * value};
    return inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, message,
                           (struct inf_span){(const uint8_t *)a, sizeof a});
}

static void expect_sum(uint64_t stream, float sum)
{
    inf_raw_expect_infer(&raw, stream);
    cr_assert_eq(raw.message.infer_reply.output_count, 1);
    const float *y = (const float *)raw.frame.data;
    for (int i = 0; i < 4; i++)
        cr_assert_eq(y[i], sum * (float)(i + 1), "%g, wanted %g", (double)y[i],
                     (double)(sum * (float)(i + 1)));
}

// Adds `value` to the sum of a session, and checks that the result is `sum`.
static void send_add(uint64_t session_id, float value, float sum)
{
    union inf_message message;
    a_request(&message, session_id);
    want_y(&message);
    expect_sum(send_a(&message, value), sum);
}

static void check_refused(const union inf_message *message, enum inf_code code,
                          enum inf_reason reason)
{
    send_a(message, 1);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_check_failure(&raw, code, reason);
}

static struct inf_memory_info memory_info(struct inf_raw *from)
{
    inf_raw_call(from, INF_METHOD_MEMORY_INFO, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(from, INF_MESSAGE_MEMORY_INFO);
    return from->message.memory_info;
}

static void wait_for_no_sessions(struct inf_raw *from)
{
    struct inf_memory_info info = memory_info(from);
    for (int i = 0; i < 1000 && info.sessions > 0; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        info = memory_info(from);
    }
    cr_assert_eq(info.sessions, 0);
    cr_assert_eq(info.session_bytes, 0);
}

// --- values that sessions keep ---

Test(serving_session, a_pair_keeps_an_output_for_the_next_request)
{
    open_sum(7, INF_SHAPE(1, 4));
    send_add(7, 1, 1);
    send_add(7, 10, 11);
    send_add(7, 100, 111);
    struct inf_memory_info info = memory_info(&raw);
    cr_assert_eq(info.sessions, 1);
    // The session keeps each value of 16 bytes in two buffers, so expect at least 32 bytes.
    cr_assert(info.session_bytes >= 32 && info.session_bytes <= 1024, "%llu",
              (unsigned long long)info.session_bytes);
    close_session(7);
    wait_for_no_sessions(&raw);
}

Test(serving_session, an_output_of_a_pair_is_not_returned_unless_asked_for)
{
    union inf_message message;
    open_sum(1, INF_SHAPE(1, 4));
    a_request(&message, 1);
    inf_raw_expect_infer(&raw, send_a(&message, 5));
    cr_assert_eq(raw.message.infer_reply.output_count, 0);
    cr_assert_eq(raw.frame.header.data_bytes, 0);
    send_add(1, 1, 6);
}

Test(serving_session, a_pair_may_name_its_tensors_as_tensorflow_does)
{
    union inf_message message = {.session = {.session_id = 3, .state_count = 2}};
    // Two pairs that mean the same output and input: only the first is kept.
    message.session.states[0] = (struct inf_session_state){
        .output = "y:0", .input = "b:0", .shaped = true, .shape = INF_SHAPE(1, 4)};
    message.session.states[1] = (struct inf_session_state){
        .output = "y", .input = "b", .shaped = true, .shape = INF_SHAPE(1, 4)};
    inf_raw_call(&raw, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, &message,
                 (struct inf_span){0});
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
    send_add(3, 1, 1);
    send_add(3, 2, 3);
    send_add(3, 4, 7);
}

Test(serving_session, a_given_input_restarts_the_sequence)
{
    union inf_message message;
    static const float ab[20] = {1, 2, 3, 4, [16] = 50, 100, 150, 200};
    open_sum(1, (struct inf_shape){0});
    inf_add_request(&message, 1);
    message.infer_request.session_id = 1;
    for (int i = 0; i < 2; i++) {
        inf_raw_expect_infer(
            &raw, inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                                  (struct inf_span){(const uint8_t *)ab, sizeof ab}));
        send_add(1, 1, 52);
        send_add(1, 1, 53);
    }
}

Test(serving_session, tensors_are_taken_and_kept_by_name)
{
    union inf_message message = {.session = {.session_id = 3}};
    inf_raw_call(&raw, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, &message,
                 (struct inf_span){0});
    inf_add_request(&message, 1);
    struct inf_infer_request *request = &message.infer_request;
    request->session_id = 3;
    request->output_count = 1;
    request->outputs[0] = (struct inf_tensor_entry){.name = "y", .session_tensor = "eleven"};
    static const float ab[20] = {1, 2, 3, 4, [16] = 10, 20, 30, 40};
    inf_raw_expect_infer(&raw, inf_raw_request(&raw, INF_METHOD_MODEL_INFER,
                                               INF_MESSAGE_INFER_REQUEST, &message,
                                               (struct inf_span){(const uint8_t *)ab, sizeof ab}));
    cr_assert_eq(raw.message.infer_reply.output_count, 0);
    // Both inputs come from the same session tensor, so only the answer is transferred, not the
    // inputs.
    for (int i = 0; i < 2; i++)
        request->inputs[i] =
            (struct inf_tensor_entry){.name = i == 0 ? "a" : "b", .session_tensor = "eleven"};
    want_y(&message);
    for (int i = 0; i < 2; i++)
        expect_sum(inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                   &message, (struct inf_span){0}),
                   22);
}

Test(serving_session, requests_of_one_run_in_order_however_many_are_sent)
{
    union inf_message message;
    uint64_t streams[2][200];
    open_sum(1, INF_SHAPE(1, 4));
    open_sum(2, INF_SHAPE(1, 4));
    for (int i = 0; i < 200; i++) {
        for (uint64_t session = 0; session < 2; session++) {
            a_request(&message, session + 1);
            want_y(&message);
            streams[session][i] = send_a(&message, (float)(session + 1));
        }
    }
    int seen[2] = {0, 0};
    for (int i = 0; i < 400; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
        uint64_t stream = raw.frame.header.stream_id;
        int session = seen[0] < 200 && stream == streams[0][seen[0]] ? 0 : 1;
        cr_assert(seen[session] < 200 && stream == streams[session][seen[session]],
                  "stream %llu came out of order", (unsigned long long)stream);
        seen[session]++;
        cr_assert_eq(*(const float *)raw.frame.data, (float)(seen[session] * (session + 1)));
    }
}

Test(serving_session, answers_are_those_of_feeding_by_hand_to_the_bit)
{
    union inf_message message;
    float b[4] = {0};
    open_sum(1, INF_SHAPE(1, 4));
    for (int i = 1; i <= 20; i++) {
        float ab[20] = {[16] = b[0], b[1], b[2], b[3]};
        float kept[4];
        for (int k = 0; k < 4; k++)
            ab[k] = 1.0f / (float)(3 * i + k);
        a_request(&message, 1);
        want_y(&message);
        inf_raw_expect_infer(&raw, inf_raw_request(&raw, INF_METHOD_MODEL_INFER,
                                                   INF_MESSAGE_INFER_REQUEST, &message,
                                                   (struct inf_span){(const uint8_t *)ab, 16}));
        memcpy(kept, raw.frame.data, sizeof kept);
        inf_add_request(&message, 1);
        inf_raw_expect_infer(
            &raw, inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                                  (struct inf_span){(const uint8_t *)ab, sizeof ab}));
        memcpy(b, raw.frame.data, sizeof b);
        cr_assert_arr_eq(kept, b, sizeof b);
    }
}

// --- opening and closing sessions, and the order of their requests ---

Test(serving_session, dies_with_its_connection)
{
    struct inf_raw other;
    open_sum(1, INF_SHAPE(1, 4));
    send_add(1, 1, 1);
    inf_raw_open(&other, fixture.socket);
    cr_assert_eq(memory_info(&other).sessions, 1);
    inf_raw_close(&raw);
    wait_for_no_sessions(&other);
    raw = other;
    union inf_message message;
    a_request(&message, 1);
    check_refused(&message, INF_ABORTED, INF_REASON_SESSION_LOST);
}

Test(serving_session, belongs_to_one_connection_alone)
{
    struct inf_raw first = raw;
    open_sum(1, INF_SHAPE(1, 4));
    send_add(1, 1, 1);
    first = raw;
    inf_raw_open(&raw, fixture.socket);
    union inf_message message;
    a_request(&message, 1);
    check_refused(&message, INF_ABORTED, INF_REASON_SESSION_LOST);
    open_sum(1, INF_SHAPE(1, 4));
    send_add(1, 2, 2);
    inf_raw_close(&raw);
    raw = first;
    send_add(1, 10, 11);
}

// Sends a request for the model `slow` in a session that feeds its output back to its input.
static uint64_t send_slow(uint64_t session_id, uint64_t timeout_ns)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.session_id = session_id;
    message.infer_request.timeout_ns = timeout_ns;
    return inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

static void cancel_stream(uint64_t stream_id)
{
    inf_raw_send(&raw, (struct inf_frame_header){.type = INF_FRAME_CANCEL, .stream_id = stream_id},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
}

static void expect_cancelled(uint64_t stream_id)
{
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw.frame.header.stream_id, stream_id);
    inf_raw_check_failure(&raw, INF_CANCELLED, INF_REASON_BY_CLIENT);
}

Test(serving_session, closing_lets_what_was_asked_before_finish)
{
    union inf_message message;
    open_sum(1, INF_SHAPE(1, 4));
    uint64_t slow = send_slow(1, 0);
    a_request(&message, 1);
    want_y(&message);
    uint64_t behind = send_a(&message, 3);
    // The reply to closing comes first, because closing does not wait for the running request.
    close_session(1);
    check_refused(&message, INF_ABORTED, INF_REASON_SESSION_LOST);
    open_sum(1, INF_SHAPE(1, 4)); // the id may be used again
    send_add(1, 1, 1);
    cancel_stream(slow); // the test does not need its result
    expect_cancelled(slow);
    expect_sum(behind, 3);
    close_session(1);
    wait_for_no_sessions(&raw);
}

Test(serving_session, a_request_that_waits_can_be_cancelled_or_run_out_of_time)
{
    union inf_message message;
    open_sum(1, INF_SHAPE(1, 4));
    uint64_t slow = send_slow(1, 0);
    a_request(&message, 1);
    want_y(&message);
    uint64_t cancelled = send_a(&message, 100);
    message.infer_request.timeout_ns = 20000000;
    uint64_t late = send_a(&message, 1000);
    message.infer_request.timeout_ns = 0;
    message.infer_request.queue_timeout_ns = 30000000;
    uint64_t impatient = send_a(&message, 2000);
    message.infer_request.queue_timeout_ns = 0;
    uint64_t last = send_a(&message, 7);
    cancel_stream(cancelled);
    for (int i = 0; i < 3; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        bool was_cancelled = raw.frame.header.stream_id == cancelled;
        cr_assert(was_cancelled || raw.frame.header.stream_id == late ||
                  raw.frame.header.stream_id == impatient);
        inf_raw_check_failure(&raw, was_cancelled ? INF_CANCELLED : INF_DEADLINE,
                              was_cancelled ? INF_REASON_BY_CLIENT : INF_REASON_IN_QUEUE);
    }
    cancel_stream(slow); // the test does not need its result
    expect_cancelled(slow);
    expect_sum(last, 7); // expect that none of the three requests changed the sum
}

Test(serving_session, leaving_with_requests_of_all_kinds_leaves_nothing)
{
    struct inf_raw other;
    union inf_message message;
    inf_raw_open(&other, fixture.socket);
    for (int i = 0; i < 3; i++) {
        open_sum(1, INF_SHAPE(1, 4));
        send_slow(1, 0);
        a_request(&message, 1);
        for (int k = 0; k < 20; k++)
            send_a(&message, 1);
        inf_raw_close(&raw);
        inf_raw_open(&raw, fixture.socket);
    }
    wait_for_no_sessions(&other);
    inf_raw_wait_for(&other, 0, 0);
    inf_raw_close(&other);
}

// --- errors and limits of one session ---

Test(serving_session, errors_give_the_reason)
{
    union inf_message message;
    open_sum(1, (struct inf_shape){0});
    // The session has no value for b yet, and its shape is not known, because `add` accepts any
    // number of rows.
    a_request(&message, 1);
    check_refused(&message, INF_INVALID, INF_REASON_TENSOR_MISSING);
    cr_assert_str_eq(raw.message.status.tensor, "b");

    message.session = (struct inf_session_message){.session_id = 1};
    inf_raw_call(&raw, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, &message,
                 (struct inf_span){0});
    inf_raw_check_failure(&raw, INF_EXISTS, INF_REASON_SESSION_EXISTS);

    close_session(9);
    inf_raw_check_failure(&raw, INF_ABORTED, INF_REASON_SESSION_LOST);

    a_request(&message, 1);
    message.infer_request.input_count = 2;
    message.infer_request.inputs[1] =
        (struct inf_tensor_entry){.name = "b", .session_tensor = "never kept"};
    check_refused(&message, INF_INVALID, INF_REASON_TENSOR_MISSING);
    message.infer_request.session_id = 0;
    check_refused(&message, INF_INVALID, INF_REASON_BAD_PARAMETER);
    message.infer_request.session_id = 9;
    check_refused(&message, INF_ABORTED, INF_REASON_SESSION_LOST);

    open_sum(2, INF_SHAPE(1, 5)); // the rows of the model have four elements, not five
    a_request(&message, 2);
    check_refused(&message, INF_INVALID, INF_REASON_SHAPE_MISMATCH);
    cr_assert_str_eq(raw.message.status.tensor, "b");
    open_sum(3, INF_SHAPE(1, 4));
    send_add(3, 1, 1);
}

Test(serving_session, a_request_that_fails_keeps_nothing)
{
    union inf_message message;
    open_sum(1, INF_SHAPE(1, 4));
    send_add(1, 1, 1);
    inf_raw_register(&raw, 5, inf_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 4096,
                     true);
    a_request(&message, 1);
    want_y(&message);
    message.infer_request.outputs[0].location =
        (struct inf_location){.present = true, .region_id = 5, .length = 8};
    check_refused(&message, INF_RANGE, INF_REASON_OUTPUT_TOO_SMALL);
    send_add(1, 1, 2);
    // Given enough space in the region, expect that the output is both written to the region and
    // kept in the session.
    message.infer_request.outputs[0].location.length = 16;
    inf_raw_expect_infer(&raw, send_a(&message, 1));
    cr_assert_eq(raw.message.infer_reply.outputs[0].location.region_id, 5);
    send_add(1, 1, 4);
}

Test(serving_session, a_connection_has_so_many_and_no_more)
{
    union inf_message message = {.session = {.state_count = 0}};
    for (uint64_t id = 1; id <= INF_LIMIT_SESSIONS + 1; id++) {
        message.session.session_id = id;
        inf_raw_call(&raw, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, &message,
                     (struct inf_span){0});
        if (id <= INF_LIMIT_SESSIONS)
            cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
    }
    inf_raw_check_failure(&raw, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
    close_session(1);
    inf_raw_call(&raw, INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, &message,
                 (struct inf_span){0});
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
}

// --- the limit of the bytes that one user's sessions keep ---

static void start_small(void)
{
    start_with((const char *const[]){"--session-bytes-per-uid-max=1M", NULL});
}

TestSuite(serving_session_quota, .init = start_small, .fini = stop_server, .timeout = 120);

// Runs a request that keeps y of 20000 rows (320,000 bytes) under this name.
static void keep_large(const char *name)
{
    static uint8_t data[640000];
    union inf_message message;
    inf_add_request(&message, 20000);
    message.infer_request.session_id = 1;
    message.infer_request.output_count = 1;
    message.infer_request.outputs[0] =
        (struct inf_tensor_entry){.name = "y", .session_tensor = name};
    inf_raw_call(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){data, sizeof data});
}

Test(serving_session_quota, bytes_of_a_users_sessions_have_a_limit)
{
    open_sum(1, INF_SHAPE(1, 4));
    send_add(1, 1, 1);
    static const char *const names[] = {"p", "q", "r"};
    for (int i = 0; i < 3; i++) {
        keep_large(names[i]);
        cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
    }
    uint64_t before = memory_info(&raw).session_bytes;
    cr_assert_geq(before, 3 * 320000);
    for (int i = 0; i < 3; i++) {
        keep_large("s");
        inf_raw_check_failure(&raw, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    }
    cr_assert_eq(memory_info(&raw).session_bytes, before);
    send_add(1, 1, 2);
    close_session(1);
    wait_for_no_sessions(&raw);
    open_sum(1, INF_SHAPE(1, 4));
    keep_large("s");
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
}
