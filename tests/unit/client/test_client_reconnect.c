// SPDX-License-Identifier: Apache-2.0
// Tests of clients that connect again by themselves after their connection ended: the order of the
// requests that waited, and how often a client connects. Also tests of waiting for credit.
#include <criterion/criterion.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/error.h"
#include "tests/support/daemon/client_script.h"

// --- order and credit of the requests that waited ---

// Ends the connection from the daemon's side, and starts requests 1, 2 and 3 before there is a new
// one. Returns the stream number of request 2.
static uint64_t queue_three(inferd_client *client, struct client_answers *answers)
{
    struct inferd_error err;
    struct client_answers first = {0};
    client_script_send(client, 0, 0, &first);
    cr_assert_neq(inferd_wait(client, &err), INFERD_OK);
    cr_assert_eq(first.failed, 1u);
    client_script_send(client, 1, 0, answers);
    uint64_t second = client_script_send(client, 2, 0, answers);
    client_script_send(client, 3, 0, answers);
    poll(NULL, 0, 5); // all three are due when the client connects
    return second;
}

Test(client_reconnect, keeps_the_order_of_requests)
{
    struct client_script script = {.actions = {CLIENT_HANG_UP}, .action_count = 1};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 2, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
    struct client_answers answers = {0};
    queue_three(client, &answers);
    client_script_run_until_answered(client, &answers, 3);
    cr_assert_eq(answers.ok, 3u);
    for (unsigned i = 1; i <= 3; i++)
        cr_assert_eq(script.numbers[i], (int32_t)i);
    client_script_stop(client, daemon);
}

Test(client_reconnect, sends_no_more_than_the_daemon_allows)
{
    struct client_script script = {.actions = {CLIENT_HANG_UP, CLIENT_HOLD, CLIENT_HOLD},
                                   .action_count = 3};
    script.refusal = (struct inf_status){
        .code = INF_CANCELLED, .reason = INF_REASON_BY_CLIENT, .message = "cancelled"};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 2, 1, CLIENT_SCRIPT_NEVER_MS, &daemon);
    struct client_answers answers = {0};
    uint64_t second = queue_three(client, &answers);
    struct inferd_error err;
    client_script_run_until_arrived(client, &script, 2);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(inferd_process(client, &err), INFERD_OK, "%s", err.text);
        poll(NULL, 0, 1);
    }
    cr_assert_eq((unsigned)script.arrived, 2u, "the credit is one request");
    cr_assert_eq(inferd_cancel(client, second - 1, &err), INFERD_OK, "%s", err.text);
    client_script_run_until_arrived(client, &script, 3);
    // A request keeps the number that inferd_infer_async() returned, and is cancelled by it.
    cr_assert_eq(inferd_cancel(client, second, &err), INFERD_OK, "%s", err.text);
    client_script_run_until_answered(client, &answers, 3);
    cr_assert_eq(answers.failed, 2u);
    cr_assert_eq(answers.ok, 1u);
    client_script_stop(client, daemon);
}

// --- new connections ---

Test(client_reconnect, does_not_wait_on_a_connection_that_ended)
{
    struct client_script script = {.actions = {CLIENT_REFUSE_AND_HANG_UP},
                                   .action_count = 1,
                                   .refusal = client_script_queue_full};
    script.refusal.retry_after_ms = CLIENT_SCRIPT_NEVER_MS;
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 2, 0, CLIENT_SCRIPT_NEVER_MS * 2, &daemon);
    struct inferd_error err;
    uint64_t begin_ns = inf_client_now_ns();
    cr_assert_eq(client_case_ask(client, 0, &err), INFERD_OK, "%s", err.text);
    cr_assert_lt(inf_client_now_ns() - begin_ns, (uint64_t)CLIENT_SCRIPT_NEVER_MS / 2 * 1000000);
    cr_assert_eq((unsigned)script.arrived, 2u);
    client_script_stop(client, daemon);
}

Test(client_reconnect, makes_no_new_connection_unless_told_to_retry)
{
    // The second daemon would answer.
    struct client_script script = {.actions = {CLIENT_REFUSE_AND_HANG_UP},
                                   .action_count = 1,
                                   .refusal = client_script_loading};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 2, 0, 0, &daemon);
    struct inferd_error err;
    for (int i = 0; i < 2; i++)
        cr_assert_eq(client_case_ask(client, 0, &err), INFERD_UNAVAILABLE);
    cr_assert_eq((unsigned)script.arrived, 1u);
    inferd_close(client);
    inferd_close(client_case_connect(daemon));
    fake_daemon_stop(daemon);
}

Test(client_reconnect, says_why_there_is_no_new_connection)
{
    struct client_script script = {.actions = {CLIENT_HANG_UP}, .action_count = 1};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 0, 30, &daemon);
    struct inferd_error err;
    cr_assert_eq(client_case_ask(client, 0, &err), INFERD_UNAVAILABLE);
    fake_daemon_stop(daemon); // removes the socket
    cr_assert_eq(client_case_ask(client, 0, &err), INFERD_UNAVAILABLE);
    cr_assert(strstr(err.text, "/socket'") != NULL, "%s", err.text);
    inferd_close(client);
}

Test(client_reconnect, leaves_a_daemon_that_drains)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        struct client_script script = {.actions = {CLIENT_ANSWER_AND_GO_AWAY}, .action_count = 1};
        struct fake_daemon *daemon;
        inferd_client *client = client_script_start(&script, 2, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
        struct client_answers answers = {0};
        struct inferd_error err;
        cr_assert_eq(client_case_ask(client, 0, &err), INFERD_OK, "%s", err.text);
        if (blocking) {
            cr_expect_eq(client_case_ask(client, 0, &err), INFERD_OK, "%s", err.text);
        } else {
            client_script_send(client, 7, 0, &answers);
            client_script_run_until_answered(client, &answers, 1);
            cr_expect_eq(answers.ok, 1u, "%s", answers.last.text);
        }
        client_script_stop(client, daemon);
    }
}

Test(client_reconnect, sends_what_a_draining_daemon_does_not_begin_to_the_next_one)
{
    struct client_script script = {.actions = {CLIENT_ANSWER_AND_GO_AWAY, CLIENT_HOLD},
                                   .action_count = 2};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 2, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
    struct client_answers answers = {0};
    client_script_send(client, 1, 0, &answers);
    client_script_send(client, 2, 0, &answers);
    client_script_run_until_answered(client, &answers, 2);
    cr_assert_eq(answers.ok, 2u, "%s", answers.last.text);
    // The first daemon has received the second request, and does not begin it.
    cr_assert_eq((unsigned)script.arrived, 3u);
    cr_assert_eq(script.numbers[2], 2);
    client_script_stop(client, daemon);
}

Test(client_reconnect, registers_memory_once_for_each_connection)
{
    // The refused request stays in the queue for some rounds of the event loop.
    struct client_script script = {
        .actions = {CLIENT_HANG_UP, CLIENT_ANSWER, CLIENT_ANSWER, CLIENT_REFUSE},
        .action_count = 4,
        .refusal = client_script_queue_full};
    script.refusal.retry_after_ms = 20;
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 2, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
    struct client_answers answers = {0};
    struct inferd_error err;
    inferd_memory *memory = NULL;
    cr_assert_eq(inferd_memory_alloc(client, 64, &memory, &err), INFERD_OK, "%s", err.text);
    queue_three(client, &answers);
    client_script_run_until_answered(client, &answers, 3);
    cr_assert_eq(answers.ok, 3u);
    cr_assert_eq(fake_daemon_counts(daemon)->registrations, 2u);
    inferd_memory_free(memory);
    client_script_stop(client, daemon);
}

static void greet_and_hang_up(struct fake_daemon *daemon, void *context)
{
    atomic_uint *connections = context;
    if (atomic_fetch_add(connections, 1) == 0)
        fake_greet(daemon);
    fake_hang_up(daemon);
}

Test(client_reconnect, connects_no_more_often_than_every_ten_milliseconds)
{
    enum {
        CONNECTIONS = 6
    };
    atomic_uint connections = 0;
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){
        .script = greet_and_hang_up, .context = &connections, .connections = CONNECTIONS});
    inferd_client *client = client_case_connect(daemon);
    inferd_set_retry(client, CLIENT_SCRIPT_NEVER_MS);
    struct client_answers answers = {0};
    struct inferd_error err;
    for (int i = 0; i < 10000 && inferd_process(client, &err) == INFERD_OK; i++)
        poll(NULL, 0, 1);
    uint64_t begin_ns = inf_client_now_ns();
    uint64_t stream = client_script_send(client, 7, 0, &answers);
    for (int i = 0; i < 10000 && connections < CONNECTIONS; i++) {
        (void)inferd_process(client, &err);
        poll(NULL, 0, 1);
    }
    cr_assert_eq((unsigned)connections, (unsigned)CONNECTIONS);
    // The first attempt comes at once, and 10 ms lie between two attempts.
    cr_assert_geq(inf_client_now_ns() - begin_ns, (CONNECTIONS - 2) * 10000000u);
    cr_assert_eq(inferd_cancel(client, stream, &err), INFERD_OK, "%s", err.text);
    client_script_stop(client, daemon);
}

static void serve_the_third(struct fake_daemon *daemon, void *context)
{
    struct fake_frame frame;
    atomic_uint *connections = context;
    unsigned index = atomic_fetch_add(connections, 1);
    if (index == 0) {
        fake_greet(daemon);
        fake_hang_up(daemon);
    } else if (index == 1) {
        while (fake_read(daemon, &frame))
            ; // without an answer to the greeting
    } else {
        fake_greet(daemon);
        fake_serve(daemon);
    }
}

Test(client_reconnect, leaves_a_connection_that_is_not_greeted_in_time)
{
    atomic_uint connections = 0;
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){
        .script = serve_the_third, .context = &connections, .connections = 3});
    inferd_client *client = NULL;
    struct client_answers answers = {0};
    struct inferd_error err;
    cr_assert_eq(inferd_connect_timeout(&client, fake_daemon_path(daemon), 1000, &err), INFERD_OK);
    inferd_set_retry(client, CLIENT_SCRIPT_NEVER_MS);
    for (int i = 0; i < 10000 && inferd_process(client, &err) == INFERD_OK; i++)
        poll(NULL, 0, 1);
    uint64_t begin_ns = inf_client_now_ns();
    client_script_send(client, 7, 0, &answers);
    client_script_run_until_answered(client, &answers, 1);
    cr_assert_eq(answers.ok, 1u, "%s", answers.last.text);
    cr_assert_geq(inf_client_now_ns() - begin_ns, 1000000000u);
    cr_assert_eq((unsigned)connections, 3u);
    client_script_stop(client, daemon);
}

struct reluctant {
    unsigned connections;
    atomic_bool full; // the client has written as much as the socket takes
};

static void read_nothing_at_first(struct fake_daemon *daemon, void *context)
{
    struct reluctant *reluctant = context;
    fake_greet(daemon);
    if (reluctant->connections++ == 0) {
        while (!reluctant->full)
            poll(NULL, 0, 1);
        fake_hang_up(daemon);
    } else {
        fake_serve(daemon);
    }
}

Test(client_reconnect, sends_what_did_not_fit_the_socket_on_the_next_connection)
{
    enum {
        REQUESTS = 60,
        BYTES = 16000
    };
    struct reluctant reluctant = {0};
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){
        .script = read_nothing_at_first, .context = &reluctant, .connections = 2});
    inferd_client *client = client_case_connect(daemon);
    inferd_set_retry(client, CLIENT_SCRIPT_NEVER_MS);
    struct client_answers answers = {0};
    struct inferd_error err;
    uint8_t *bytes = calloc(1, BYTES);
    inferd_tensor in = {.name = "in",
                        .dtype = INFERD_UINT8,
                        .rank = 1,
                        .shape = {BYTES},
                        .data = bytes,
                        .size = BYTES};
    inferd_request request = {.model = "echo", .inputs = &in, .input_count = 1};
    for (int i = 0; i < REQUESTS; i++)
        cr_assert_eq(inferd_infer_async(client, &request, client_case_count, &answers, NULL, &err),
                     INFERD_OK, "%s", err.text);
    reluctant.full = true;
    client_script_run_until_answered(client, &answers, REQUESTS);
    // Requests that the first daemon may have received fail. The next daemon answers the others.
    cr_assert_gt(answers.failed, 0u);
    cr_assert_gt(answers.ok, 0u);
    free(bytes);
    client_script_stop(client, daemon);
}

// --- waiting for credit ---

Test(client_credit, is_waited_for_within_the_time_of_the_request)
{
    struct client_script script = {
        .actions = {CLIENT_HOLD}, .action_count = 1, .refusal = client_script_queue_full};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 1, 0, &daemon);
    struct client_answers answers = {0};
    struct inferd_error err;
    client_script_send(client, 1, 0, &answers);
    cr_assert_eq(client_case_ask(client, 50, &err), INFERD_DEADLINE_EXCEEDED);
    cr_assert_str_eq(err.reason, "IN_QUEUE");
    cr_assert_eq((unsigned)script.arrived, 1u);
    client_script_stop(client, daemon);
}

static bool answer_late(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    struct client_script *script = context;
    (void)daemon;
    if (frame->header.type != INF_FRAME_REQUEST || frame->header.method != INF_METHOD_MODEL_INFER)
        return false;
    client_script_note_arrival(script, frame);
    if (script->arrived == 1)
        poll(NULL, 0, 60);
    return false;
}

Test(client_credit, is_waited_for_in_the_time_that_the_daemon_is_told)
{
    struct client_script script = {.action_count = 0};
    struct fake_daemon *daemon = fake_daemon_start(
        &(struct fake_options){.on_frame = answer_late, .context = &script, .credit = 1});
    inferd_client *client = client_case_connect(daemon);
    struct client_answers answers = {0};
    struct inferd_error err;
    client_script_send(client, 1, 0, &answers);
    while (script.arrived == 0)
        poll(NULL, 0, 1);
    uint64_t begin_ns = inf_client_now_ns();
    cr_assert_eq(client_case_ask(client, CLIENT_SCRIPT_NEVER_MS, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq((unsigned)script.arrived, 2u);
    uint64_t waited_ns = script.times_ns[1] - begin_ns;
    cr_assert_leq(script.timeouts_ns[1],
                  (uint64_t)CLIENT_SCRIPT_NEVER_MS * 1000000 - (waited_ns / 2000000) * 1000000);
    client_script_stop(client, daemon);
}

static bool grant_all(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    (void)context;
    if (frame->header.type != INF_FRAME_REQUEST || frame->header.method != INF_METHOD_MODEL_INFER)
        return false;
    static const int32_t small = 7;
    union inf_message reply = {
        .infer_reply = {.model_name = "grow", .output_count = 1, .credit_return = UINT32_MAX}};
    reply.infer_reply.outputs[0] = (struct inf_tensor_entry){
        .name = "small", .dtype = INF_DTYPE_I32, .location = {true, 0, 0, sizeof small}};
    reply.infer_reply.outputs[0].shape = INF_SHAPE(1);
    struct inf_frame_header header = {
        .type = INF_FRAME_RESPONSE, .stream_id = frame->header.stream_id, .flags = INF_FRAME_FINAL};
    fake_send(daemon, header, &reply, INF_MESSAGE_INFER_REPLY, &small, sizeof small);
    return true;
}

Test(client_credit, has_a_largest_value)
{
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = grant_all, .credit = 4});
    inferd_client *client = client_case_connect(daemon);
    struct client_answers answers = {0};
    for (unsigned i = 1; i <= 20; i++) {
        client_script_send(client, 7, 0, &answers);
        client_script_run_until_answered(client, &answers, i);
    }
    cr_assert_eq(answers.ok, 20u, "%s", answers.last.text);
    client_script_stop(client, daemon);
}
