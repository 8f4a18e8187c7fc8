// SPDX-License-Identifier: Apache-2.0
// Limits that an administrator changes while the daemon runs.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw, admin;

static void start_server(void)
{
    static const char *const arguments[] = {"--queue-requests-max=50", NULL};
    inf_fixture_start(&fixture, arguments);
    inf_raw_open(&raw, fixture.socket);
    inf_raw_open(&admin, fixture.admin_socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_raw_close(&admin);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_limits, .init = start_server, .fini = stop_server, .timeout = 120);

static void send_limits(struct inf_raw *client, const struct inf_limit_entry *set, uint32_t count)
{
    union inf_message message = {.limit_list = {.count = count}};
    for (uint32_t i = 0; i < count; i++)
        message.limit_list.entries[i] = set[i];
    inf_raw_request(client, INF_METHOD_SERVER_LIMITS, INF_MESSAGE_LIMITS_REQUEST, &message,
                    (struct inf_span){0});
}

// Reads the reply with the limits. The administrator's own connection may receive a CREDIT frame
// before this reply.
static void expect_limits(struct inf_raw *client)
{
    do
        cr_assert(inf_raw_next(client, 30000));
    while (client->frame.header.type == INF_FRAME_CREDIT);
    cr_assert_eq(client->frame.header.stream_id, client->last_stream);
}

static uint64_t value_of(const char *name)
{
    send_limits(&admin, NULL, 0);
    expect_limits(&admin);
    inf_raw_decode(&admin, INF_MESSAGE_LIMITS_REPLY);
    const struct inf_limit_list *list = &admin.message.limit_list;
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].name, name) == 0)
            return list->entries[i].value;
    cr_assert_fail("there is no limit %s", name);
    return 0;
}

static void set_limit(const char *name, uint64_t value)
{
    const struct inf_limit_entry entry = {.name = name, .value = value};
    send_limits(&admin, &entry, 1);
    expect_limits(&admin);
    cr_assert_eq(admin.frame.header.flags, INF_FRAME_FINAL);
    cr_assert_eq(value_of(name), value);
}

static uint64_t ask_slow(void)
{
    union inf_message message;
    inf_slow_request(&message);
    return inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

static void expect_refused(uint64_t stream, enum inf_reason reason)
{
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw.frame.header.stream_id, stream);
    inf_raw_check_failure(&raw, INF_EXHAUSTED, reason);
}

Test(serving_limits, start_as_configured_and_are_set_by_admins_only)
{
    cr_assert_eq(value_of("queue_requests_max"), 50);
    cr_assert_eq(value_of("connections_max"), 4096);
    cr_assert_eq(value_of("requests_per_connection_max"), INF_LIMIT_STREAMS);
    // Any client may read the limits.
    send_limits(&raw, NULL, 0);
    expect_limits(&raw);
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
    const struct inf_limit_entry lower = {"queue_requests_max", 40, 0, 0};
    send_limits(&raw, &lower, 1);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_check_failure(&raw, INF_DENIED, INF_REASON_ROLE);
    cr_assert_eq(value_of("queue_requests_max"), 50);
}

Test(serving_limits, are_set_all_or_none)
{
    static const struct inf_limit_entry wrong[][2] = {
        {{"connections_max", 7, 0, 0}, {"no_such_limit", 1, 0, 0}},
        {{"connections_max", 7, 0, 0}, {"regions_per_uid_max", 0, 0, 0}},
        {{"connections_max", 7, 0, 0},
         {"queue_requests_max", 51, 0, 0}}, // more than the 50 for which the daemon has room
        {{"connections_max", 7, 0, 0}, {"queue_bytes_max", UINT64_MAX, 0, 0}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        send_limits(&admin, wrong[i], 2);
        expect_limits(&admin);
        inf_raw_check_failure(&admin, INF_INVALID, INF_REASON_BAD_PARAMETER);
        cr_assert_not_null(strstr(admin.message.status.message, wrong[i][1].name));
        cr_assert_eq(value_of("connections_max"), 4096);
    }
}

Test(serving_limits, of_requests_are_sent_to_the_connection)
{
    set_limit("requests_per_connection_max", 2);
    inf_raw_expect(&raw, INF_FRAME_CREDIT);
    inf_raw_decode(&raw, INF_MESSAGE_CREDIT);
    cr_assert_eq(raw.message.credit.requests, 2);
    ask_slow();
    ask_slow();
    expect_refused(ask_slow(), INF_REASON_QUOTA_REQUESTS);
    struct inf_raw later;
    inf_raw_open(&later, fixture.socket);
    cr_assert_eq(later.message.hello_ack.credit_requests, 2);
    inf_raw_close(&later);
    set_limit("requests_per_connection_max", 3);
    inf_raw_expect(&raw, INF_FRAME_CREDIT);
    inf_raw_decode(&raw, INF_MESSAGE_CREDIT);
    cr_assert_eq(raw.message.credit.requests, 3);
    ask_slow();
    expect_refused(ask_slow(), INF_REASON_QUOTA_REQUESTS);
}

Test(serving_limits, of_queues_users_and_connections_hold_at_once)
{
    set_limit("queue_requests_max", 3);
    // Five requests: a worker takes one out of the queue, three fit into the queue, and the fifth
    // is refused.
    uint64_t last = 0;
    for (int i = 0; i < 5; i++)
        last = ask_slow();
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_assert_leq(raw.frame.header.stream_id, last);
    inf_raw_check_failure(&raw, INF_EXHAUSTED, INF_REASON_QUEUE_FULL);
    set_limit("requests_per_uid_max", 1);
    uint64_t refused = ask_slow();
    do
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    while (raw.frame.header.stream_id != refused);
    inf_raw_check_failure(&raw, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
    set_limit("connections_max", 2); // the administrator is the same user, and over that limit
    struct inf_raw third;
    inf_raw_connect(&third, fixture.socket);
    inf_raw_expect_error(&third, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
    inf_raw_close(&third);
    set_limit("connections_max", 3);
    inf_raw_open(&third, fixture.socket);
    inf_raw_close(&third);
}

// Reads the flag called `name` from the daemon.
static const struct inf_flag_entry *flag_of(const char *name)
{
    inf_raw_request(&admin, INF_METHOD_ENVIRONMENT, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    expect_limits(&admin);
    inf_raw_decode(&admin, INF_MESSAGE_ENVIRONMENT);
    const struct inf_environment_reply *reply = &admin.message.environment;
    for (uint32_t i = 0; i < reply->flag_count; i++)
        if (strcmp(reply->flags[i].name, name) == 0)
            return &reply->flags[i];
    cr_assert_fail("there is no flag %s", name);
    return NULL;
}

static void set_flag(const char *name, const char *value)
{
    const union inf_message message = {.flag_set = {.name = name, .value = value}};
    inf_raw_request(&admin, INF_METHOD_FLAG_SET, INF_MESSAGE_FLAG_SET, &message,
                    (struct inf_span){0});
    expect_limits(&admin);
}

Test(serving_limits, are_flags_and_change_whichever_way_they_are_set)
{
    cr_assert_str_eq(flag_of("queue_requests_max")->origin, "argument");
    cr_assert_str_eq(flag_of("requests_per_connection_max")->origin, "default");
    set_limit("requests_per_connection_max", 9);
    cr_assert_str_eq(flag_of("requests_per_connection_max")->origin, "admin");
    cr_assert_str_eq(flag_of("requests_per_connection_max")->value, "9");
    inf_raw_expect(&raw, INF_FRAME_CREDIT);
    set_flag("requests_per_connection_max", "2");
    inf_raw_expect(&raw, INF_FRAME_CREDIT);
    inf_raw_decode(&raw, INF_MESSAGE_CREDIT);
    cr_assert_eq(raw.message.credit.requests, 2);
    cr_assert_eq(value_of("requests_per_connection_max"), 2);
    set_flag("queue_requests_max", "51"); // more than the 50 for which the daemon has room
    inf_raw_check_failure(&admin, INF_INVALID, INF_REASON_BAD_PARAMETER);
    cr_assert_not_null(strstr(admin.message.status.message, "1 to 50"));
    set_flag("requests_per_uid_max", "1");
    ask_slow();
    expect_refused(ask_slow(), INF_REASON_QUOTA_REQUESTS);
    set_flag("requests_per_uid_max", "5"); // limits can be raised again although they are exceeded
    cr_assert_eq(value_of("requests_per_uid_max"), 5);
}
