// SPDX-License-Identifier: Apache-2.0
// An admin changes limits while clients send requests, so that many requests are refused.
#include "tests/daemon/serving/ledger_case.h"

// The default of requests_per_uid_max.
#define USER_REQUESTS 768

TestSuite(serving_ledger_limits, .init = start_server, .fini = stop_server, .timeout = 3600);

// A limit that tests change, its default, and the range of the other values. The daemon refuses a
// client that exceeds one of them, but does not end its connection.
struct limit {
    const char *name;
    uint64_t usual, least, most;
};
static const struct limit limits[] = {
    {"requests_per_uid_max", USER_REQUESTS, 5, 60},
    {"requests_per_connection_max", 1024, 60, 200},
    {"queue_requests_max", 1024, 1, 10},
    {"device_ms_per_uid_max", 0, 400, 2000},
    {"queue_bytes_max", 256 << 20, 1 << 20, 2 << 20},
};

// Asks the daemon to change a limit. Returns false if the daemon refuses the request, because the
// limits of the user count for this request too.
static bool set_limit(const struct limit *limit, uint64_t value)
{
    const union inf_message message = {
        .limit_list = {.entries = {{.name = limit->name, .value = value}}, .count = 1}};
    struct inf_raw admin;
    inf_raw_open(&admin, fixture.admin_socket);
    uint64_t stream = inf_raw_request(&admin, INF_METHOD_SERVER_LIMITS, INF_MESSAGE_LIMITS_REQUEST,
                                      &message, (struct inf_span){0});
    // A CREDIT frame may come before the reply.
    do
        cr_assert(inf_raw_next(&admin, 20000));
    while (admin.frame.header.stream_id != stream);
    bool done = (admin.frame.header.flags & INF_FRAME_FLAG_ERROR) == 0;
    if (!done)
        inf_raw_check_failure(&admin, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
    inf_raw_close(&admin);
    changes++;
    return done;
}

// Sends `count` requests that wait for a device, and returns how many of them are refused at once.
static uint32_t count_refused(uint32_t count)
{
    struct inf_raw raw;
    union inf_message message;
    uint32_t refused = 0;
    const struct inf_frame_header ping = {.type = INF_FRAME_PING};
    inf_raw_open(&raw, fixture.socket);
    inf_slow_request(&message);
    message.infer_request.model_name = guest_names[BRIEF];
    message.infer_request.device = "ref";
    for (uint32_t i = 0; i < count; i++)
        inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                        inf_slow_data());
    // The daemon takes frames in order, so every refusal comes before the answer to a PING.
    inf_raw_send(&raw, ping, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    while (inf_raw_next(&raw, 20000) && raw.frame.header.type != INF_FRAME_PONG)
        refused += (raw.frame.header.flags & INF_FRAME_FLAG_ERROR) != 0;
    cr_assert_eq(raw.frame.header.type, INF_FRAME_PONG);
    inf_raw_close(&raw);
    return refused;
}

// An admin changes limits at random, from values that refuse nearly everything to those that refuse
// nothing. Expect that each request is still answered once, and that no charge is lost or refunded
// twice: at the end, with the first limits, exactly requests_per_uid_max may be in flight.
Test(serving_ledger_limits, limits_that_change_lose_no_request)
{
    static struct client clients[CLIENTS];
    uint64_t wanted = count_wanted(40000);
    limits_change = true;
    open_clients(clients);
    while (total_sent < wanted) {
        run_step(&clients[roll_dice(CLIENTS)]);
        const struct limit *limit = &limits[roll_dice(sizeof limits / sizeof limits[0])];
        uint64_t range = limit->most - limit->least + 1;
        if (roll_dice(8) == 0)
            set_limit(limit, limit->least + roll_dice((uint32_t)range));
        else if (roll_dice(8) == 0)
            set_limit(limit, limit->usual);
    }
    end_clients(clients);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        cr_assert(set_limit(&limits[i], limits[i].usual));
    check_books(total_answered);
    fprintf(stderr, "%llu sent, %llu answered (%llu refused), %llu changes of limits\n",
            (unsigned long long)total_sent, (unsigned long long)total_answered,
            (unsigned long long)total_refused, (unsigned long long)changes);
    cr_assert_gt(total_refused, wanted / 200);
    cr_assert_gt(total_answered - total_failed, wanted / 4);
    cr_assert_gt(changes, wanted / 1000);
    cr_assert_eq(count_refused(USER_REQUESTS + 3), 3);
    inf_raw_open(&clients[0].raw, fixture.socket);
    inf_raw_wait_for(&clients[0].raw, 0, 0);
    inf_raw_close(&clients[0].raw);
}
