// SPDX-License-Identifier: Apache-2.0
// Tests of inferctl requests, clients, cancel, disconnect, slow and events with a real daemon.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"

static struct inf_fixture fixture;
static struct inf_raw raw;
static struct inf_inferctl run;

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

TestSuite(inferctl_activity, .init = start_server, .fini = stop_server, .timeout = 120);

#define RUN(socket, ...) inf_inferctl_run(&run, socket, (const char *const[]){__VA_ARGS__, NULL})

static const char *text_of(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

// Waits until inferctl lists exactly one request, and it is in this phase. Returns the list.
static json_t *await_phase(const char *phase)
{
    for (int i = 0; i < 500; i++) {
        RUN(fixture.socket, "requests", "--json");
        cr_assert_eq(run.code, 0, "%s", run.err);
        json_t *list = inf_inferctl_json(&run);
        inf_inferctl_free(&run);
        if (json_array_size(list) == 1 &&
            strcmp(text_of(json_array_get(list, 0), "phase"), phase) == 0)
            return list;
        json_decref(list);
    }
    cr_assert_fail("no request is in the phase %s", phase);
    return NULL;
}

// Sends a request that runs for a second, and waits until it runs. Returns the list of requests.
static json_t *run_slow(void)
{
    union inf_message message;
    inf_slow_request(&message);
    inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                    inf_slow_data());
    return await_phase("run");
}

Test(inferctl_activity, a_request_is_listed_and_cancelled)
{
    char name[64];
    json_t *list = run_slow();
    const json_t *row = json_array_get(list, 0);
    cr_expect_str_eq(text_of(row, "model"), "slow");
    cr_expect_str_eq(text_of(row, "method"), "ModelInfer");
    snprintf(name, sizeof name, "%s", text_of(row, "request"));
    json_decref(list);
    RUN(fixture.socket, "cancel", name);
    cr_expect_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_check_failure(&raw, INF_CANCELLED, INF_REASON_BY_CLIENT);
    RUN(fixture.socket, "cancel", name);
    cr_expect_eq(run.code, 4, "%s", run.err);
    inf_inferctl_free(&run);
    static const char *const wrong[] = {"",     "7",    "7:",    ":7",
                                        "7:8x", "-1:2", "7:8:9", "99999999999999999999:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        RUN(fixture.socket, "cancel", wrong[i]);
        cr_expect_eq(run.code, 2, "%s: %s", wrong[i], run.err);
        inf_inferctl_free(&run);
    }
}

// Returns the number `key` of the first row about `model` in a list of slow requests; -1 if there
// is no such row.
static json_int_t find_slow(const json_t *rows, const char *model, const char *key)
{
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) if (strcmp(text_of(row, "model"), model) ==
                                         0) return json_integer_value(json_object_get(row, key));
    return -1;
}

Test(inferctl_activity, slow_requests_are_listed_with_what_they_waited_for)
{
    union inf_message message;
    uint64_t streams[2];
    RUN(fixture.admin_socket, "flags", "set", "slow_ms", "100");
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    // This request runs on the same device but ends before the next ones are sent, so it must not
    // count as a request ahead of them.
    static const uint8_t rows_of_add[96];
    inf_add_request(&message, 2);
    message.infer_request.device = "ref";
    inf_raw_call(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){rows_of_add, sizeof rows_of_add});
    for (int i = 0; i < 2; i++) {
        inf_slow_request(&message);
        message.infer_request.model_name = "brief";
        message.infer_request.id = i == 0 ? "first" : "second";
        streams[i] = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                     &message, inf_slow_data());
    }
    inf_raw_expect_infer(&raw, streams[0]);
    inf_raw_expect_infer(&raw, streams[1]);
    inf_raw_wait_for(&raw, 0, 0);
    RUN(fixture.socket, "slow", "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *rows = inf_inferctl_json(&run);
    inf_inferctl_free(&run);
    cr_assert_eq(json_array_size(rows), 3);
    const json_t *second = json_array_get(rows, 0);
    cr_expect_str_eq(text_of(second, "id"), "second", "the newest one comes first");
    cr_expect_str_eq(text_of(second, "device"), "ref");
    json_int_t total = find_slow(rows, "brief", "duration_ns");
    json_int_t queue = find_slow(rows, "brief", "queue_ns");
    json_int_t compute = find_slow(rows, "brief", "compute_ns");
    cr_expect_gt(queue, 50000000, "it waited for the first one");
    cr_expect_gt(compute, 100000000);
    cr_expect_leq(queue + compute, total);
    cr_expect_gt(queue + compute, total * 9 / 10, "nothing else took long");
    cr_expect_eq(find_slow(rows, "brief", "ahead"), 1);
    cr_expect_eq(find_slow(rows, "brief", "behind_uid"), (json_int_t)getuid());
    cr_expect_eq(json_integer_value(json_object_get(json_array_get(rows, 1), "ahead")), 0);
    json_decref(rows);
    RUN(fixture.socket, "slow");
    cr_expect_eq(run.code, 0);
    cr_expect_not_null(strstr(run.out, "behind 1 of uid "), "%s", run.out);
    inf_inferctl_free(&run);
}

Test(inferctl_activity, clients_are_listed_and_disconnected)
{
    char id[32];
    RUN(fixture.socket, "clients", "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *list = inf_inferctl_json(&run);
    inf_inferctl_free(&run);
    cr_assert_eq(json_array_size(list), 2);
    snprintf(id, sizeof id, "%lld",
             (long long)json_integer_value(json_object_get(json_array_get(list, 0), "client")));
    cr_expect_str_eq(text_of(json_array_get(list, 1), "name"), "inferctl");
    json_decref(list);
    RUN(fixture.admin_socket, "disconnect", id);
    cr_expect_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    inf_raw_expect_error(&raw, INF_CANCELLED, INF_REASON_BY_ADMIN);
    RUN(fixture.admin_socket, "disconnect", id);
    cr_expect_eq(run.code, 4, "%s", run.err);
    inf_inferctl_free(&run);
    RUN(fixture.admin_socket, "disconnect", "0");
    cr_expect_eq(run.code, 2, "%s", run.err);
    inf_inferctl_free(&run);
}

Test(inferctl_activity, events_are_printed_and_followed)
{
    struct inf_inferctl follower;
    const struct inf_inferctl_setting setting = {.socket = fixture.socket};
    RUN(fixture.socket, "events");
    cr_assert_eq(run.code, 0, "%s", run.err);
    cr_expect_not_null(strstr(run.out, " model_ready model=slow version=1 device="), "%s", run.out);
    inf_inferctl_free(&run);
    inf_inferctl_start(&follower, &setting,
                       (const char *const[]){"events", "--follow", "--json", NULL});
    json_decref(await_phase("wait"));
    RUN(fixture.admin_socket, "unload", "conv");
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    json_decref(await_phase("wait"));
    // inferctl events --follow prints the last event of the daemon and ends when the daemon ends.
    inf_raw_close(&raw);
    inf_fixture_restart(&fixture, NULL);
    inf_inferctl_wait(&follower);
    cr_expect_not_null(strstr(follower.out, "\"kind\":\"model_unloaded\",\"model\":\"conv\""), "%s",
                       follower.out);
    cr_expect_not_null(strstr(follower.out, "\"kind\":\"draining\""), "%s", follower.out);
    inf_inferctl_free(&follower);
    inf_raw_open(&raw, fixture.socket);
}
