// SPDX-License-Identifier: Apache-2.0
// Tests of the methods RequestList, ClientList, RequestCancel, ClientDisconnect and Report with a
// real daemon.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw admin, user;

static void start_server(void)
{
    inf_fixture_start(&fixture, NULL);
    inf_raw_open(&admin, fixture.admin_socket);
    inf_raw_open(&user, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&admin);
    inf_raw_close(&user);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_activity, .init = start_server, .fini = stop_server, .timeout = 120);

static const struct inf_request_list *list_requests(struct inf_raw *raw)
{
    inf_raw_call(raw, INF_METHOD_REQUEST_LIST, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(raw, INF_MESSAGE_REQUEST_LIST);
    return &raw->message.request_list;
}

static const struct inf_client_list *list_clients(struct inf_raw *raw)
{
    inf_raw_call(raw, INF_METHOD_CLIENT_LIST, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(raw, INF_MESSAGE_CLIENT_LIST);
    return &raw->message.client_list;
}

static void end_target(struct inf_raw *raw, uint16_t method, uint64_t client, uint64_t stream)
{
    const union inf_message message = {.client_target = {client, stream}};
    inf_raw_call(raw, method, INF_MESSAGE_CLIENT_TARGET, &message, (struct inf_span){0});
}

static void expect_failure(struct inf_raw *raw, enum inf_code code, enum inf_reason reason)
{
    inf_raw_check_failure(raw, code, reason);
}

static uint64_t send_slow(struct inf_raw *raw, const char *id)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.id = id;
    return inf_raw_request(raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

// Waits until the list that `admin` sees has `count` requests and the first request runs. Returns
// the list.
static const struct inf_request_list *await_run(uint32_t count)
{
    for (int i = 0; i < 500; i++) {
        const struct inf_request_list *list = list_requests(&admin);
        if (list->count == count && strcmp(list->entries[0].phase, "run") == 0)
            return list;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_assert_fail("the requests are not in flight");
    return NULL;
}

Test(serving_activity, a_running_and_a_queued_request_are_listed_oldest_first)
{
    char long_id[INF_LIMIT_REQUEST_ID + 1];
    memset(long_id, 'i', INF_LIMIT_REQUEST_ID);
    long_id[INF_LIMIT_REQUEST_ID] = '\0';
    uint64_t first = send_slow(&user, "frame-17");
    uint64_t second = send_slow(&user, long_id);
    const struct inf_request_list *list = await_run(2);
    cr_expect_eq(list->left_out, 0);
    const struct inf_request_entry *run = &list->entries[0];
    const struct inf_request_entry *queued = &list->entries[1];
    cr_expect_eq(run->client_id, queued->client_id);
    cr_expect_eq(run->stream_id, first);
    cr_expect_eq(queued->stream_id, second);
    cr_expect_eq(run->uid, (uint32_t)getuid());
    cr_expect_eq(run->pid, (int32_t)getpid());
    cr_expect_str_eq(run->method, "ModelInfer");
    cr_expect_str_eq(run->model, "slow");
    cr_expect_str_eq(run->version, "1");
    cr_expect_str_eq(run->device, "ref");
    cr_expect_str_eq(run->id, "frame-17");
    cr_expect_str_eq(queued->phase, "queue");
    cr_expect_eq(run->data_bytes, inf_slow_data().size);
    cr_expect_geq(run->age_ns, queued->age_ns);
    cr_expect_gt(queued->age_ns, 0);
    cr_expect_lt(run->age_ns, 60ull * 1000 * 1000 * 1000);
    cr_expect_eq(strlen(queued->id), 67, "64 bytes and \"...\", not %s", queued->id);
    uint64_t client = run->client_id;
    end_target(&admin, INF_METHOD_REQUEST_CANCEL, client, first);
    end_target(&admin, INF_METHOD_REQUEST_CANCEL, client, second);
    inf_raw_wait_for(&admin, 0, 0);
    // If a worker still has the first request, that request is listed in the phase "ending".
    list = list_requests(&admin);
    cr_expect(list->count == 0 || strcmp(list->entries[0].phase, "ending") == 0);
}

Test(serving_activity, data_that_came_before_its_request_is_listed_as_an_upload)
{
    static const uint8_t bytes[4096];
    const union inf_message message = {.data = {.total_bytes = 3 * sizeof bytes}};
    inf_raw_send(&user, (struct inf_frame_header){.type = INF_FRAME_DATA, .stream_id = 77},
                 INF_MESSAGE_DATA, &message, (struct inf_span){bytes, sizeof bytes}, -1);
    const struct inf_request_list *list = list_requests(&admin);
    cr_assert_eq(list->count, 1);
    cr_expect_str_eq(list->entries[0].phase, "upload");
    cr_expect_eq(list->entries[0].stream_id, 77);
    cr_expect_eq(list->entries[0].data_bytes, sizeof bytes);
    cr_expect_str_eq(list->entries[0].model, "");
}

// There are more requests than a list visits. The rows show the oldest of the visited requests. The
// other requests are only counted.
Test(serving_activity, the_number_of_requests_without_a_row_is_exact)
{
    enum {
        CLIENTS = 5,
        EACH = 1000
    };
    static const uint8_t bytes[8];
    const union inf_message message = {.data = {.total_bytes = 2 * sizeof bytes}};
    const struct inf_hello hello = {.major = 1,
                                    .limits = {.streams = INF_LIMIT_STREAMS},
                                    .feature_count = 1,
                                    .features = {"inferd.data"}};
    const struct inf_request_list *list;
    struct inf_raw clients[CLIENTS];
    inf_fixture_restart(&fixture, (const char *const[]){"--requests-per-uid-max=8000", NULL});
    inf_raw_close(&admin);
    inf_raw_open(&admin, fixture.admin_socket);
    for (int i = 0; i < CLIENTS; i++) {
        inf_raw_open_as(&clients[i], fixture.socket, &hello);
        for (uint64_t k = 1; k <= EACH; k++)
            inf_raw_send(&clients[i],
                         (struct inf_frame_header){.type = INF_FRAME_DATA, .stream_id = 100 + k},
                         INF_MESSAGE_DATA, &message, (struct inf_span){bytes, sizeof bytes}, -1);
    }
    for (int tries = 0; tries < 500; tries++) {
        list = list_requests(&admin);
        if (list->count + list->left_out == CLIENTS * EACH)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_expect_eq(list->count, INF_ACTIVITY_ROWS);
    cr_expect_eq(list->left_out, CLIENTS * EACH - INF_ACTIVITY_ROWS, "%u", list->left_out);
    for (int i = 0; i < CLIENTS; i++)
        inf_raw_close(&clients[i]);
}

Test(serving_activity, clients_are_listed_with_what_they_did)
{
    struct inf_raw camera;
    const struct inf_hello hello = {
        .major = 1, .client_name = "camera\x1b[31m", .client_version = ""};
    inf_raw_open_as(&camera, fixture.socket, &hello);
    union inf_message message;
    static const uint8_t rows[96];
    inf_add_request(&message, 2);
    inf_raw_call(&camera, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){rows, sizeof rows});
    inf_raw_register(&camera, 5, inf_memfd(8192, 7), 8192, true);
    const struct inf_client_list *list = list_clients(&admin);
    cr_assert_eq(list->count, 3);
    cr_expect_eq(list->left_out, 0);
    cr_expect_str_eq(list->entries[0].role, "admin");
    cr_expect_str_eq(list->entries[1].role, "client");
    const struct inf_client_entry *entry = &list->entries[2];
    cr_expect_gt(entry->client_id, list->entries[1].client_id);
    cr_expect_str_eq(entry->name, "camera?[31m", "control characters do not reach a terminal");
    cr_expect_eq(entry->uid, (uint32_t)getuid());
    cr_expect_eq(entry->pid, (int32_t)getpid());
    cr_expect_eq(entry->requests, 1);
    cr_expect_eq(entry->in_flight, 0);
    cr_expect_eq(entry->data_bytes, sizeof rows);
    cr_expect_eq(entry->regions, 1);
    cr_expect_eq(entry->region_bytes, 8192);
    cr_expect_eq(entry->sessions, 0);
    inf_raw_close(&camera);
}

Test(serving_activity, an_admin_cancels_a_request_of_another_client)
{
    uint64_t running = send_slow(&user, "");
    uint64_t queued = send_slow(&user, "");
    const struct inf_request_list *list = await_run(2);
    uint64_t client = list->entries[0].client_id;
    end_target(&admin, INF_METHOD_REQUEST_CANCEL, client, queued);
    cr_expect_eq(admin.frame.header.flags, INF_FRAME_FINAL);
    inf_raw_expect(&user, INF_FRAME_RESPONSE);
    cr_expect_eq(user.frame.header.stream_id, queued);
    expect_failure(&user, INF_CANCELLED, INF_REASON_BY_ADMIN);
    end_target(&admin, INF_METHOD_REQUEST_CANCEL, client, running);
    inf_raw_expect(&user, INF_FRAME_RESPONSE);
    cr_expect_eq(user.frame.header.stream_id, running);
    expect_failure(&user, INF_CANCELLED, INF_REASON_BY_ADMIN);
    // A request that is cancelled already is not found.
    end_target(&admin, INF_METHOD_REQUEST_CANCEL, client, running);
    expect_failure(&admin, INF_NOT_FOUND, INF_REASON_NONE);
    end_target(&admin, INF_METHOD_REQUEST_CANCEL, client + 1000, running);
    expect_failure(&admin, INF_NOT_FOUND, INF_REASON_NONE);
    inf_raw_wait_for(&admin, 0, 0);
}

Test(serving_activity, a_user_cancels_its_own_request_from_another_connection)
{
    struct inf_raw other;
    inf_raw_open(&other, fixture.socket);
    uint64_t running = send_slow(&user, "");
    uint64_t client = await_run(1)->entries[0].client_id;
    end_target(&other, INF_METHOD_REQUEST_CANCEL, client, running);
    cr_expect_eq(other.frame.header.flags, INF_FRAME_FINAL);
    inf_raw_expect(&user, INF_FRAME_RESPONSE);
    expect_failure(&user, INF_CANCELLED, INF_REASON_BY_CLIENT);
    inf_raw_close(&other);
}

Test(serving_activity, a_client_is_disconnected_and_its_requests_end)
{
    (void)send_slow(&user, "");
    uint64_t client = await_run(1)->entries[0].client_id;
    end_target(&admin, INF_METHOD_CLIENT_DISCONNECT, client, 0);
    cr_expect_eq(admin.frame.header.flags, INF_FRAME_FINAL);
    inf_raw_expect_error(&user, INF_CANCELLED, INF_REASON_BY_ADMIN);
    const struct inf_client_list *list = list_clients(&admin);
    cr_assert_eq(list->count, 1);
    end_target(&admin, INF_METHOD_CLIENT_DISCONNECT, list->entries[0].client_id, 0);
    expect_failure(&admin, INF_INVALID, INF_REASON_BAD_PARAMETER);
    end_target(&admin, INF_METHOD_CLIENT_DISCONNECT, client, 0);
    expect_failure(&admin, INF_NOT_FOUND, INF_REASON_NONE);
    inf_raw_wait_for(&admin, 0, 0);
}

Test(serving_activity, a_user_sees_and_ends_nothing_of_another_user)
{
    if (geteuid() != 0)
        cr_skip_test("only root can connect as two users");
    struct inf_raw stranger;
    inf_fixture_open_as(&fixture, &stranger, 12001);
    uint64_t running = send_slow(&user, "");
    uint64_t client = await_run(1)->entries[0].client_id;
    cr_expect_eq(list_requests(&stranger)->count, 0);
    const struct inf_client_list *list = list_clients(&stranger);
    cr_assert_eq(list->count, 1);
    cr_expect_eq(list->left_out, 0);
    cr_expect_eq(list->entries[0].uid, 12001);
    end_target(&stranger, INF_METHOD_REQUEST_CANCEL, client, running);
    expect_failure(&stranger, INF_NOT_FOUND, INF_REASON_NONE);
    end_target(&stranger, INF_METHOD_CLIENT_DISCONNECT, client, 0);
    expect_failure(&stranger, INF_NOT_FOUND, INF_REASON_NONE);
    cr_expect_eq(list_clients(&admin)->count, 3);
    end_target(&admin, INF_METHOD_REQUEST_CANCEL, client, running);
    inf_raw_expect(&user, INF_FRAME_RESPONSE);
    inf_raw_close(&stranger);
}

Test(serving_activity, more_requests_than_fit_are_counted)
{
    enum {
        MANY = 200
    };
    uint64_t streams[MANY];
    for (int i = 0; i < MANY; i++)
        streams[i] = send_slow(&user, "");
    const struct inf_request_list *list = await_run(INF_ACTIVITY_ROWS);
    cr_expect_eq(list->left_out, MANY - INF_ACTIVITY_ROWS);
    for (uint32_t i = 0; i < list->count; i++)
        cr_expect_eq(list->entries[i].stream_id, streams[i], "row %u", i);
    end_target(&admin, INF_METHOD_CLIENT_DISCONNECT, list->entries[0].client_id, 0);
    inf_raw_wait_for(&admin, 0, 0);
}

// --- events ---

// Asks for the events after number `after`. If `wait` is true, the daemon waits until there is one.
// Returns the stream of the request.
static uint64_t ask_events(struct inf_raw *raw, uint64_t after, bool wait)
{
    const union inf_message message = {.report_request = {"events", after, wait}};
    return inf_raw_request(raw, INF_METHOD_REPORT, INF_MESSAGE_REPORT_REQUEST, &message,
                           (struct inf_span){0});
}

// Waits for the reply to ask_events(), and returns its JSON text.
static const char *expect_events(struct inf_raw *raw)
{
    static char text[1 << 20];
    inf_raw_expect(raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw->frame.header.flags, INF_FRAME_FINAL);
    cr_assert_lt(raw->frame.header.data_bytes, sizeof text);
    memcpy(text, raw->frame.data, raw->frame.header.data_bytes);
    text[raw->frame.header.data_bytes] = '\0';
    return text;
}

static uint64_t find_number(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    cr_assert_not_null(at, "no %s in %.300s", key, text);
    return strtoull(at + strlen(key), NULL, 10);
}

static void unload_model(const char *name)
{
    const union inf_message message = {.model = {.name = name, .version = ""}};
    inf_raw_call(&admin, INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                 &message, (struct inf_span){0});
    cr_assert_eq(admin.frame.header.flags, INF_FRAME_FINAL);
}

Test(serving_activity, events_tell_what_happened_and_can_be_resumed)
{
    (void)ask_events(&user, 0, false);
    const char *text = expect_events(&user);
    static const char *const models[] = {"add", "brief", "conv", "slow"};
    char wanted[96];
    for (size_t i = 0; i < 4; i++) {
        snprintf(wanted, sizeof wanted, "\"kind\":\"model_ready\",\"model\":\"%s\"", models[i]);
        cr_expect_not_null(strstr(text, wanted), "%s: %.600s", wanted, text);
    }
    cr_expect_eq(find_number(text, "\"lost\":"), 0);
    uint64_t last = find_number(text, "\"last\":");
    unload_model("conv");
    (void)ask_events(&user, last, false);
    text = expect_events(&user);
    cr_expect_eq(find_number(text, "\"number\":"), last + 1);
    cr_expect_not_null(strstr(text, "\"kind\":\"model_unloaded\",\"model\":\"conv\""), "%s", text);
    cr_expect_eq(find_number(text, "\"last\":"), last + 1);
    // A number above the last event dates from an earlier daemon: the reader gets all events.
    (void)ask_events(&user, last + 1000, false);
    cr_expect_eq(find_number(expect_events(&user), "\"number\":"), 1);
}

Test(serving_activity, a_request_waits_for_the_next_event)
{
    (void)ask_events(&user, 0, false);
    uint64_t last = find_number(expect_events(&user), "\"last\":");
    uint64_t waiting = ask_events(&user, last, true);
    const struct inf_request_list *list = list_requests(&admin);
    cr_assert_eq(list->count, 1);
    cr_expect_str_eq(list->entries[0].phase, "wait");
    cr_expect_not(inf_raw_next(&user, 50));
    unload_model("add");
    const char *text = expect_events(&user);
    cr_expect_eq(user.frame.header.stream_id, waiting);
    cr_expect_eq(find_number(text, "\"number\":"), last + 1);
    cr_expect_not_null(strstr(text, "\"model_unloaded\",\"model\":\"add\""), "%s", text);
    inf_raw_wait_for(&admin, 0, 0);
}

Test(serving_events, a_wait_ends_by_cancel_by_disconnect_and_by_a_drain, .timeout = 120)
{
    start_server();
    uint64_t waiting = ask_events(&user, UINT64_MAX >> 1, true);
    (void)expect_events(&user); // the last event has a smaller number: all events are sent
    (void)ask_events(&user, 0, false);
    uint64_t last = find_number(expect_events(&user), "\"last\":");
    waiting = ask_events(&user, last, true);
    inf_raw_send(&user, (struct inf_frame_header){.type = INF_FRAME_CANCEL, .stream_id = waiting},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    inf_raw_expect(&user, INF_FRAME_RESPONSE);
    expect_failure(&user, INF_CANCELLED, INF_REASON_BY_CLIENT);
    (void)ask_events(&user, last, true);
    struct inf_raw other;
    inf_raw_open(&other, fixture.socket);
    (void)ask_events(&other, last, true);
    inf_raw_close(&other);
    // The request of `user` still waits. The daemon answers it when it drains.
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    const char *text = "";
    inf_raw_expect(&user, INF_FRAME_GOAWAY);
    text = expect_events(&user);
    cr_expect_not_null(strstr(text, "\"kind\":\"draining\""), "%s", text);
    cr_expect_eq(inf_fixture_wait(&fixture), 0);
    inf_raw_close(&admin);
    inf_raw_close(&user);
    inf_fixture_remove(&fixture);
}

Test(serving_activity, acts_of_admins_are_events_for_admins)
{
    (void)ask_events(&user, 0, false);
    uint64_t last = find_number(expect_events(&user), "\"last\":");
    uint64_t running = send_slow(&user, "");
    uint64_t client = await_run(1)->entries[0].client_id;
    end_target(&admin, INF_METHOD_REQUEST_CANCEL, client, running);
    inf_raw_expect(&user, INF_FRAME_RESPONSE);
    (void)ask_events(&user, last, false);
    const char *text = expect_events(&user);
    cr_expect_null(strstr(text, "request_cancelled"));
    cr_expect_eq(find_number(text, "\"last\":"), last + 1);
    (void)ask_events(&admin, last, false);
    cr_expect_not_null(strstr(expect_events(&admin), "request_cancelled"));
}

// If a subscriber waits for an event and does not read, the daemon keeps one reply for it, however
// many events follow. When the subscriber reads again, it learns how many events it has missed.
Test(serving_activity, a_subscriber_that_does_not_read_costs_one_reply)
{
    const union inf_message message = {.model = {.name = "absent", .version = ""}};
    (void)ask_events(&user, 0, false);
    uint64_t first = find_number(expect_events(&user), "\"last\":");
    uint64_t last = first;
    (void)ask_events(&user, first, true);
    while (last < first + 700) {
        inf_raw_call(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                     &message, (struct inf_span){0});
        (void)ask_events(&admin, last, false);
        last = find_number(expect_events(&admin), "\"last\":");
    }
    const struct inf_client_list *list = list_clients(&admin);
    for (uint32_t i = 0; i < list->count; i++) {
        cr_expect_leq(list->entries[i].unread_bytes, 65536);
        cr_expect_leq(list->entries[i].in_flight, 1);
    }
    uint64_t seen = find_number(expect_events(&user), "\"last\":");
    cr_expect_gt(seen, first);
    cr_expect_leq(seen, first + 4, "the events until the reply was made");
    (void)ask_events(&user, seen, true);
    const char *text = expect_events(&user);
    cr_expect_eq(find_number(text, "\"lost\":"), last - 512 - seen);
    cr_expect_eq(find_number(text, "\"number\":"), last - 512 + 1);
}

Test(serving_activity, a_reader_that_missed_events_learns_how_many)
{
    // Each load fails, because the repository has no such model, and makes at least one event.
    const union inf_message message = {.model = {.name = "absent", .version = ""}};
    uint64_t last = 0;
    while (last < 600) {
        inf_raw_call(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                     &message, (struct inf_span){0});
        (void)ask_events(&admin, last, false);
        uint64_t next = find_number(expect_events(&admin), "\"last\":");
        cr_assert_gt(next, last);
        last = next;
    }
    (void)ask_events(&user, 10, false);
    const char *text = expect_events(&user);
    cr_expect_eq(find_number(text, "\"lost\":"), last - 512 - 10);
    cr_expect_eq(find_number(text, "\"number\":"), last - 512 + 1);
    cr_expect_eq(find_number(text, "\"last\":"), last);
}
