// SPDX-License-Identifier: Apache-2.0
// The order of requests under overload: priorities, fair shares, and deadlines that cannot be met.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;

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

TestSuite(serving_turns, .init = start_server, .fini = stop_server, .timeout = 120);

enum kind {
    ADD,
    BRIEF
};

// The shortest run time of the model `brief` in nanoseconds, and the name of the device that runs
// the model: the first device, which has one slot (one concurrent run).
static uint64_t brief_ns;
static char device[64];

static uint64_t send_request(struct inf_raw *client, enum kind kind,
                             enum inf_wire_priority priority, uint64_t timeout_ns)
{
    static const float rows[24];
    union inf_message message;
    struct inf_span data = {(const uint8_t *)rows, sizeof rows};
    if (kind == ADD) {
        inf_add_request(&message, 2);
    } else {
        inf_slow_request(&message);
        message.infer_request.model_name = "brief";
        data = inf_slow_data();
    }
    message.infer_request.device = "";
    message.infer_request.priority = priority;
    message.infer_request.timeout_ns = timeout_ns;
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           data);
}

// Runs both models a few times, so that the daemon knows their run times.
static void teach_run_time(void)
{
    for (int i = 0; i < 8; i++) {
        inf_raw_expect_infer(&raw, send_request(&raw, ADD, INF_WIRE_PRIORITY_NORMAL, 0));
        inf_raw_expect_infer(&raw, send_request(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 0));
        uint64_t took_ns = raw.message.infer_reply.timing.compute_ns;
        brief_ns = i == 0 ? took_ns : INF_MIN(brief_ns, took_ns);
    }
    snprintf(device, sizeof device, "%s", raw.message.infer_reply.device);
}

// Waits for a final reply with status OK, and returns its stream.
static uint64_t next_done(struct inf_raw *client)
{
    inf_raw_expect(client, INF_FRAME_RESPONSE);
    cr_assert_eq(client->frame.header.flags, INF_FRAME_FINAL);
    return client->frame.header.stream_id;
}

// Asks the daemon over the connection `client` how many requests wait for the device, and returns
// the number.
static uint32_t queue_depth(struct inf_raw *client)
{
    inf_raw_call(client, INF_METHOD_DEVICE_LIST, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(client, INF_MESSAGE_DEVICE_INDEX);
    const struct inf_device_index *index = &client->message.device_index;
    for (uint32_t i = 0; i < index->count; i++)
        if (strcmp(index->entries[i].name, device) == 0)
            return index->entries[i].queue_depth;
    cr_assert_fail("no device '%s'", device);
    return 0;
}

// Sends one request of each priority, the least urgent first, while the device is busy. Reads all
// replies. Returns false if the device was not busy when the requests arrived.
static bool ask_three(struct inf_raw *observer, uint64_t asked[3], uint64_t done[3])
{
    static const enum inf_wire_priority priorities[] = {
        INF_WIRE_PRIORITY_LOW, INF_WIRE_PRIORITY_NORMAL, INF_WIRE_PRIORITY_HIGH};
    uint64_t running = send_request(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 0);
    while (queue_depth(observer) > 0)
        ;
    for (int i = 0; i < 3; i++)
        asked[i] = send_request(&raw, ADD, priorities[i], 0);
    bool waited = queue_depth(observer) == 3;
    waited = next_done(&raw) == running && waited;
    for (int i = 0; i < 3; i++)
        done[i] = next_done(&raw);
    return waited;
}

Test(serving_turns, urgent_requests_overtake_the_others)
{
    struct inf_raw observer;
    uint64_t asked[3];
    uint64_t done[3];
    teach_run_time();
    inf_raw_open(&observer, fixture.socket);
    bool waited = false;
    // Repeat, because on a busy machine the test may be too slow to send while the model runs.
    for (int round = 0; round < 50 && !waited; round++)
        waited = ask_three(&observer, asked, done);
    cr_assert(waited);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(done[i], asked[2 - i], "request %d of three was done as number %d",
                     (int)(done[i] - asked[0]), i);
    inf_raw_close(&observer);
}

enum {
    DEAR = 6,
    CHEAP = 20
};

// Sends expensive requests, and then cheap ones. Reads all replies. Returns true if the cheap ones
// waited for at most half of the expensive ones. In order of arrival they wait for all.
static bool ask_cheap_last(void)
{
    uint64_t last_dear = 0;
    for (int i = 0; i < DEAR; i++)
        last_dear = send_request(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 0);
    for (int i = 0; i < CHEAP; i++)
        send_request(&raw, ADD, INF_WIRE_PRIORITY_NORMAL, 0);
    int done = 0, before = 0; // expensive ones, so far and before the last cheap one
    for (int i = 0; i < DEAR + CHEAP; i++) {
        if (next_done(&raw) <= last_dear)
            done++;
        else
            before = done;
    }
    return before <= DEAR / 2;
}

Test(serving_turns, a_cheap_model_does_not_wait_for_all_of_a_dear_one)
{
    teach_run_time();
    bool overtook = false;
    // Repeat, because on a busy machine the expensive ones may be done before all are sent.
    for (int round = 0; round < 50 && !overtook; round++)
        overtook = ask_cheap_last();
    cr_expect(overtook);
}

Test(serving_turns, a_deadline_that_cannot_be_kept_is_refused_at_once)
{
    enum {
        AHEAD = 40
    };
    teach_run_time();
    for (int i = 0; i < AHEAD; i++)
        send_request(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 0);
    uint64_t stream = send_request(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, AHEAD / 4 * brief_ns);
    uint64_t patient = send_request(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 100 * INF_NS_PER_S);
    int before = 0;
    for (bool refused = false; !refused; before += !refused) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        refused = raw.frame.header.stream_id == stream;
    }
    inf_raw_check_failure(&raw, INF_DEADLINE, INF_REASON_PREDICTED);
    cr_expect_lt(before, AHEAD / 4, "%d were done before it was refused", before);
    cr_expect_str_eq(raw.message.status.phase, "queue");
    cr_expect_gt(raw.message.status.retry_after_ms, 0);
    // Expect that a request with enough time before its deadline is accepted.
    for (int i = before; i < AHEAD; i++)
        cr_expect_lt(next_done(&raw), stream);
    cr_expect_eq(next_done(&raw), patient);
}

Test(serving_turns, a_priority_that_is_none_is_refused)
{
    uint64_t stream = send_request(&raw, ADD, (enum inf_wire_priority)3, 0);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_expect_eq(raw.frame.header.stream_id, stream);
    inf_raw_check_failure(&raw, INF_INVALID, INF_REASON_BAD_PARAMETER);
}

// Returns the longest waiting time among `count` replies.
static uint64_t longest_wait_ns(struct inf_raw *client, int count)
{
    uint64_t longest_ns = 0;
    for (int i = 0; i < count; i++) {
        next_done(client);
        inf_raw_decode(client, INF_MESSAGE_INFER_REPLY);
        longest_ns = INF_MAX(longest_ns, client->message.infer_reply.timing.queue_ns);
    }
    return longest_ns;
}

// Returns the largest of several queue depths, because the daemon may still read the last requests.
static uint32_t deepest_queue(struct inf_raw *observer)
{
    uint32_t depth = 0;
    for (int i = 0; i < 20; i++)
        depth = INF_MAX(depth, queue_depth(observer));
    return depth;
}

enum {
    MANY = 24
};

// Sends many requests of one user and then two of another. Reads all replies. Sets *out_waited if
// nearly all of the requests waited at the same time. Returns true if the user with few requests
// waited less than half as long as the user with many. In order of arrival the few would wait as
// long.
static bool ask_as_two_users(struct inf_raw *greedy, struct inf_raw *modest, bool *out_waited)
{
    for (int i = 0; i < MANY; i++)
        send_request(greedy, BRIEF, INF_WIRE_PRIORITY_HIGH, 0);
    for (int i = 0; i < 2; i++)
        send_request(modest, BRIEF, INF_WIRE_PRIORITY_LOW, 0);
    *out_waited = deepest_queue(&raw) >= MANY - 4;
    uint64_t modest_ns = longest_wait_ns(modest, 2);
    uint64_t greedy_ns = longest_wait_ns(greedy, MANY);
    return modest_ns < greedy_ns / 2;
}

Test(serving_turns, one_user_does_not_wait_for_all_that_another_has_asked_for)
{
    if (geteuid() != 0)
        return;
    struct inf_raw greedy;
    struct inf_raw modest;
    teach_run_time();
    inf_fixture_open_as(&fixture, &greedy, 12001);
    inf_fixture_open_as(&fixture, &modest, 12002);
    // Expect the daemon to alternate between the users in most of the rounds that count.
    uint32_t counted = 0, alternated = 0;
    for (int round = 0; round < 20 && counted < 5; round++) {
        bool waited;
        bool is_fair = ask_as_two_users(&greedy, &modest, &waited);
        counted += waited;
        alternated += waited && is_fair;
    }
    cr_assert_gt(counted, 0);
    cr_expect_gt(2 * alternated, counted, "%u of %u rounds", alternated, counted);
    inf_raw_close(&greedy);
    inf_raw_close(&modest);
}
