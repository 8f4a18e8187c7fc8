// SPDX-License-Identifier: Apache-2.0
// Tests of requests that are sent again: which ones, when, and how they end without success.
#include <criterion/criterion.h>
#include <poll.h>

#include "client/lib/error.h"
#include "proto/core/span.h"
#include "tests/support/daemon/client_script.h"

// Sends a request with inferd_infer() if `blocking`, else with inferd_infer_async(), and waits
// until it is answered.
static void send_and_wait(inferd_client *client, bool blocking, uint64_t timeout_ms,
                          struct client_answers *answers)
{
    if (blocking) {
        int code = client_case_ask(client, timeout_ms, &answers->last);
        answers->ok += code == INFERD_OK;
        answers->failed += code != INFERD_OK;
        if (code != INFERD_OK)
            cr_assert_eq(answers->last.code, code);
    } else {
        client_script_send(client, 7, timeout_ms, answers);
        client_script_run_until_answered(client, answers, 1);
    }
}

// --- failures after which a request is sent again ---

struct failure {
    enum inf_code code;
    enum inf_reason reason;
    bool is_sent_again;
};

static const struct failure failures[] = {
    {INF_UNAVAILABLE, INF_REASON_DRAINING, true},
    {INF_EXHAUSTED, INF_REASON_QUEUE_FULL, true},
    {INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS, true},
    {INF_EXHAUSTED, INF_REASON_QUOTA_TIME, true},
    {INF_UNAVAILABLE, INF_REASON_LOADING, true},
    {INF_UNAVAILABLE, INF_REASON_NOT_BEGUN, true},
    {INF_UNAVAILABLE, INF_REASON_OUTCOME_UNKNOWN, false},
    {INF_UNAVAILABLE, INF_REASON_DEVICE_LOST, false},
    {INF_UNAVAILABLE, INF_REASON_NONE, false},
    {INF_EXHAUSTED, INF_REASON_QUOTA_BYTES, false},
    {INF_EXHAUSTED, INF_REASON_HOST_OOM, false},
    {INF_INTERNAL, INF_REASON_QUEUE_FULL, false},
    {INF_DEADLINE, INF_REASON_IN_QUEUE, false},
    {INF_CANCELLED, INF_REASON_DRAINING, false},
};

Test(client_retry, sends_again_only_what_was_certainly_not_begun)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(failures) * 2; i++) {
        const struct failure *failure = &failures[i / 2];
        struct client_script script = {
            .action_count = 1,
            .refusal = {.code = failure->code, .reason = failure->reason, .message = "refused"}};
        struct fake_daemon *daemon;
        inferd_client *client = client_script_start(&script, 1, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
        struct client_answers answers = {0};
        send_and_wait(client, i % 2 == 1, 0, &answers);
        inferd_statistics statistics;
        inferd_client_statistics(client, &statistics);
        cr_expect_eq(answers.ok == 1, failure->is_sent_again, "failure %zu: %s", i / 2,
                     answers.last.text);
        cr_expect_eq((unsigned)script.arrived, failure->is_sent_again ? 2u : 1u, "failure %zu",
                     i / 2);
        cr_expect_eq(statistics.resent, failure->is_sent_again ? 1u : 0u, "failure %zu", i / 2);
        client_script_stop(client, daemon);
    }
}

Test(client_retry, sends_a_request_with_an_order_once)
{
    struct client_script script = {.action_count = 1, .refusal = client_script_queue_full};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
    struct client_answers answers = {0};
    struct inferd_error err;
    int32_t count = 7;
    inferd_tensor in = client_case_tensor(&count);
    inferd_request request = {.model = "grow", .inputs = &in, .input_count = 1, .order_key = 1};
    cr_assert_eq(inferd_infer_async(client, &request, client_case_count, &answers, NULL, &err),
                 INFERD_OK);
    client_script_run_until_answered(client, &answers, 1);
    cr_assert_eq(answers.failed, 1u);
    cr_assert_str_eq(answers.last.reason, "QUEUE_FULL");
    cr_assert_eq((unsigned)script.arrived, 1u);
    client_script_stop(client, daemon);
}

Test(client_retry, does_not_send_again_what_the_daemon_may_have_begun)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        struct client_script script = {.actions = {CLIENT_HANG_UP}, .action_count = 1};
        struct fake_daemon *daemon;
        inferd_client *client = client_script_start(&script, 2, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
        struct client_answers answers = {0};
        send_and_wait(client, blocking, 0, &answers);
        cr_assert_eq(answers.failed, 1u);
        cr_assert_eq(answers.last.code, INFERD_UNAVAILABLE);
        cr_expect_str_eq(answers.last.reason, "DISCONNECT");
        // The next request was not sent before the connection failed, so that it may be sent again.
        cr_expect_eq(client_case_ask(client, 0, &answers.last), INFERD_OK, "%s", answers.last.text);
        cr_expect_eq((unsigned)script.arrived, 2u);
        client_script_stop(client, daemon);
    }
}

// --- times at which a request is sent again ---

Test(client_retry, waits_for_the_time_that_the_daemon_names)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        struct client_script script = {.action_count = 1, .refusal = client_script_queue_full};
        script.refusal.retry_after_ms = 60;
        struct fake_daemon *daemon;
        inferd_client *client = client_script_start(&script, 1, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
        struct client_answers answers = {0};
        send_and_wait(client, blocking, CLIENT_SCRIPT_NEVER_MS, &answers);
        cr_expect_eq(answers.ok, 1u);
        cr_expect_geq(script.times_ns[1] - script.times_ns[0], 60000000u);
        // The daemon is told how much time is left.
        cr_expect_leq(script.timeouts_ns[0], (uint64_t)CLIENT_SCRIPT_NEVER_MS * 1000000);
        cr_expect_leq(script.timeouts_ns[1] + 59000000, script.timeouts_ns[0]);
        client_script_stop(client, daemon);
    }
}

Test(client_retry, ends_at_once_if_the_time_that_the_daemon_names_is_too_late)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        struct client_script script = {.action_count = 1, .refusal = client_script_queue_full};
        script.refusal.retry_after_ms = CLIENT_SCRIPT_NEVER_MS;
        struct fake_daemon *daemon;
        inferd_client *client =
            client_script_start(&script, 1, 0, CLIENT_SCRIPT_NEVER_MS / 2, &daemon);
        struct client_answers answers = {0};
        send_and_wait(client, blocking, 0, &answers);
        cr_expect_eq(answers.ok, 0u);
        cr_expect_eq(answers.last.code, INFERD_RESOURCE_EXHAUSTED);
        cr_expect_str_eq(answers.last.reason, "QUEUE_FULL");
        cr_expect_eq(answers.last.retry_after_ms, (uint64_t)CLIENT_SCRIPT_NEVER_MS);
        cr_expect_eq((unsigned)script.arrived, 1u);
        client_script_stop(client, daemon);
    }
}

Test(client_retry, ends_with_the_last_failure_when_the_time_is_up)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        struct client_script script = {.action_count = CLIENT_SCRIPT_ARRIVALS,
                                       .refusal = client_script_queue_full};
        script.refusal.retry_after_ms = 40;
        struct fake_daemon *daemon;
        inferd_client *client = client_script_start(&script, 1, 0, 100, &daemon);
        struct client_answers answers = {0};
        uint64_t begin_ns = inf_client_now_ns();
        send_and_wait(client, blocking, 0, &answers);
        cr_expect_eq(answers.ok, 0u);
        cr_expect_eq(answers.last.code, INFERD_RESOURCE_EXHAUSTED);
        cr_expect_str_eq(answers.last.reason, "QUEUE_FULL");
        cr_expect_eq(answers.last.retry_after_ms, 40u);
        // 40 ms lie between two attempts, and no attempt begins after 100 ms.
        cr_expect_leq((unsigned)script.arrived, 3u);
        cr_expect_lt(inf_client_now_ns() - begin_ns,
                     (uint64_t)CLIENT_SCRIPT_NEVER_MS / 2 * 1000000);
        client_script_stop(client, daemon);
    }
}

Test(client_retry, ends_with_the_last_failure_if_there_is_no_daemon_in_time)
{
    // The socket still exists after the only connection of the daemon has ended, but no
    // process answers.
    struct client_script script = {.actions = {CLIENT_REFUSE_AND_HANG_UP},
                                   .action_count = 1,
                                   .refusal = client_script_queue_full};
    script.refusal.retry_after_ms = 40;
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 0, 100, &daemon);
    struct client_answers answers = {0};
    uint64_t begin_ns = inf_client_now_ns();
    client_script_send(client, 7, 0, &answers);
    client_script_run_until_answered(client, &answers, 1);
    cr_assert_eq(answers.failed, 1u);
    cr_assert_lt(inf_client_now_ns() - begin_ns, 5000000000u, "not as late as the greeting");
    cr_assert_str_eq(answers.last.reason, "QUEUE_FULL");
    cr_assert_eq(answers.last.retry_after_ms, 40u);
    client_script_stop(client, daemon);
}

Test(client_retry, waits_for_a_model_that_loads_without_being_told_to_retry)
{
    struct client_script script = {.action_count = 3, .refusal = client_script_loading};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 0, 0, &daemon);
    struct client_answers answers = {0};
    client_script_send(client, 7, 0, &answers);
    client_script_run_until_answered(client, &answers, 1);
    cr_assert_eq(answers.ok, 1u, "%s", answers.last.text);
    cr_assert_eq((unsigned)script.arrived, 4u);
    client_script_stop(client, daemon);
}

Test(client_retry, stops_waiting_for_a_model_that_loads_at_the_deadline)
{
    struct client_script script = {.action_count = CLIENT_SCRIPT_ARRIVALS,
                                   .refusal = client_script_loading};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 0, 0, &daemon);
    struct client_answers answers = {0};
    client_script_send(client, 7, 200, &answers);
    client_script_run_until_answered(client, &answers, 1);
    cr_assert_eq(answers.failed, 1u);
    cr_assert_eq(answers.last.code, INFERD_UNAVAILABLE);
    cr_assert_str_eq(answers.last.reason, "LOADING");
    client_script_stop(client, daemon);
}

Test(client_retry, stops_waiting_for_a_model_that_loads_if_the_connection_ends)
{
    struct client_script script = {.actions = {CLIENT_REFUSE, CLIENT_HANG_UP},
                                   .action_count = 2,
                                   .refusal = client_script_loading};
    script.refusal.retry_after_ms = CLIENT_SCRIPT_NEVER_MS;
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 0, 0, &daemon);
    struct client_answers answers = {0};
    client_script_send(client, 7, 0, &answers);
    client_script_run_until_arrived(client, &script, 1);
    client_script_send(client, 7, 0, &answers);
    client_script_run_until_answered(client, &answers, 2);
    cr_assert_eq(answers.failed, 2u);
    client_script_stop(client, daemon);
}

// --- cancelling ---

Test(client_retry, ends_the_request_that_is_cancelled_while_it_waits)
{
    struct client_script script = {.action_count = 2, .refusal = client_script_queue_full};
    script.refusal.retry_after_ms = CLIENT_SCRIPT_NEVER_MS;
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 0, CLIENT_SCRIPT_NEVER_MS * 2, &daemon);
    struct client_answers first = {0}, second = {0};
    struct inferd_error err;
    client_script_send(client, 1, 0, &first);
    uint64_t stream = client_script_send(client, 2, 0, &second);
    client_script_run_until_arrived(client, &script, 2);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(inferd_process(client, &err), INFERD_OK, "%s", err.text);
        poll(NULL, 0, 1);
    }
    cr_assert_eq(inferd_cancel(client, stream, &err), INFERD_OK, "%s", err.text);
    client_script_run_until_answered(client, &second, 1);
    cr_assert_eq(second.last.code, INFERD_CANCELLED);
    cr_assert_str_eq(second.last.reason, "BY_CLIENT");
    cr_assert_eq(first.ok + first.failed, 0u);
    cr_assert_eq(inferd_cancel(client, stream, &err), INFERD_NOT_FOUND);
    client_script_stop(client, daemon);
}

Test(client_retry, does_not_send_a_cancelled_request_again)
{
    // The daemon refuses the request when the CANCEL arrives, as if it had not begun the request.
    struct client_script script = {
        .actions = {CLIENT_HOLD}, .action_count = 1, .refusal = client_script_queue_full};
    struct fake_daemon *daemon;
    inferd_client *client = client_script_start(&script, 1, 0, CLIENT_SCRIPT_NEVER_MS, &daemon);
    struct client_answers answers = {0};
    struct inferd_error err;
    uint64_t stream = client_script_send(client, 1, 0, &answers);
    cr_assert_eq(inferd_cancel(client, stream, &err), INFERD_OK, "%s", err.text);
    client_script_run_until_answered(client, &answers, 1);
    cr_assert_eq(answers.failed, 1u);
    cr_assert_eq((unsigned)script.arrived, 1u);
    client_script_stop(client, daemon);
}
