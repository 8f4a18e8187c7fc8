// SPDX-License-Identifier: Apache-2.0
// Whose turn it is when more is asked for than the device can do: priorities, shares, and deadlines
// that cannot be kept.
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "proto/wire/frame.h"
#include "tests/support/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;

static void start(void)
{
    inf_fixture_start(&fixture, NULL);
    inf_raw_open(&raw, fixture.socket);
}

static void stop(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_turns, .init = start, .fini = stop, .timeout = 120);

enum kind {
    ADD,
    BRIEF
};

// Asks for one run on the device ref, which has one slot.
static uint64_t ask(struct inf_raw *client, enum kind kind, enum inf_wire_priority priority,
                    uint64_t timeout_ns)
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
    message.infer_request.device = "ref";
    message.infer_request.priority = priority;
    message.infer_request.timeout_ns = timeout_ns;
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           data);
}

// Lets the daemon learn what both models take. Their first runs are compiled on the way.
static void teach(void)
{
    for (int i = 0; i < 2; i++) {
        inf_raw_expect_infer(&raw, ask(&raw, ADD, INF_WIRE_PRIORITY_NORMAL, 0));
        inf_raw_expect_infer(&raw, ask(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 0));
    }
}

// Waits for a final reply that is OK, and returns its stream.
static uint64_t next_done(struct inf_raw *client)
{
    inf_raw_expect(client, INF_FRAME_RESPONSE);
    cr_assert_eq(client->frame.header.flags, INF_FRAME_FINAL);
    return client->frame.header.stream_id;
}

// Waits until the worker of ref has begun what it was given.
static void wait_for_worker(void)
{
    const struct inf_device_entry *ref;
    do {
        inf_raw_call(&raw, INF_METHOD_DEVICE_LIST, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
        inf_raw_decode(&raw, INF_MESSAGE_DEVICE_INDEX);
        ref = raw.message.device_index.entries;
        while (strcmp(ref->name, "ref") != 0)
            ref++;
    } while (ref->queue_depth > 0);
}

Test(serving_turns, urgent_requests_overtake_and_the_others_keep_their_order)
{
    teach();
    uint64_t running = ask(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 0);
    wait_for_worker();
    uint64_t low = ask(&raw, ADD, INF_WIRE_PRIORITY_LOW, 0);
    uint64_t normal = ask(&raw, ADD, INF_WIRE_PRIORITY_NORMAL, 0);
    uint64_t urgent = ask(&raw, ADD, INF_WIRE_PRIORITY_HIGH, 0);
    cr_expect_eq(next_done(&raw), running);
    cr_expect_eq(next_done(&raw), urgent);
    cr_expect_eq(next_done(&raw), normal);
    cr_expect_eq(next_done(&raw), low);
}

Test(serving_turns, a_cheap_model_does_not_wait_for_all_of_a_dear_one)
{
    enum {
        DEAR = 6,
        CHEAP = 20
    };
    teach();
    uint64_t last_dear = 0;
    for (int i = 0; i < DEAR; i++)
        last_dear = ask(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 0);
    for (int i = 0; i < CHEAP; i++)
        ask(&raw, ADD, INF_WIRE_PRIORITY_NORMAL, 0);
    int dear_before = 0; // before the last cheap one
    int cheap = 0;
    for (int i = 0; i < DEAR + CHEAP; i++) {
        bool is_dear = next_done(&raw) <= last_dear;
        cheap += !is_dear;
        dear_before += is_dear && cheap < CHEAP;
    }
    // One that ran when they came, and one more at most: the model had its share by then.
    cr_expect_leq(dear_before, 2);
}

Test(serving_turns, a_deadline_that_cannot_be_kept_is_refused_at_once)
{
    teach();
    for (int i = 0; i < 4; i++)
        ask(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 0);
    // The model takes 20 ms and more; there are 4 of it before this one, which would have its time.
    uint64_t stream = ask(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 40 * (uint64_t)INF_NS_PER_MS);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_expect_eq(raw.frame.header.stream_id, stream, "before any of the others is done");
    inf_raw_check_failure(&raw, INF_DEADLINE, INF_REASON_PREDICTED);
    cr_expect_str_eq(raw.message.status.phase, "queue");
    cr_expect_gt(raw.message.status.retry_after_ms, 0);
    // One that has enough is let in.
    uint64_t patient = ask(&raw, BRIEF, INF_WIRE_PRIORITY_NORMAL, 60 * (uint64_t)INF_NS_PER_S);
    for (int i = 0; i < 4; i++)
        cr_expect_lt(next_done(&raw), stream);
    cr_expect_eq(next_done(&raw), patient);
}

Test(serving_turns, a_priority_that_is_none_is_refused)
{
    uint64_t stream = ask(&raw, ADD, (enum inf_wire_priority)3, 0);
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    cr_expect_eq(raw.frame.header.stream_id, stream);
    inf_raw_check_failure(&raw, INF_INVALID, INF_REASON_BAD_PARAMETER);
}

// Connects as another user, which only root may.
static void open_as(struct inf_raw *client, uid_t uid)
{
    cr_assert_eq(chmod(fixture.directory, 0755), 0);
    cr_assert_eq(chmod(fixture.socket, 0666), 0);
    cr_assert_eq(seteuid(uid), 0);
    inf_raw_open(client, fixture.socket);
    cr_assert_eq(seteuid(0), 0);
}

Test(serving_turns, one_user_does_not_wait_for_all_that_another_has_asked_for)
{
    if (geteuid() != 0)
        return;
    enum {
        MANY = 8
    };
    struct inf_raw greedy;
    struct inf_raw modest;
    teach();
    open_as(&greedy, 12001);
    open_as(&modest, 12002);
    for (int i = 0; i < MANY; i++)
        ask(&greedy, BRIEF, INF_WIRE_PRIORITY_HIGH, 0);
    // The frames of one connection are taken in order: now all of it is in.
    inf_raw_send(&greedy, (struct inf_frame_header){.type = INF_FRAME_PING, .stream_id = 1},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    do
        cr_assert(inf_raw_next(&greedy, 10000));
    while (greedy.frame.header.type != INF_FRAME_PONG);
    for (int i = 0; i < 2; i++)
        ask(&modest, BRIEF, INF_WIRE_PRIORITY_LOW, 0);
    next_done(&modest);
    next_done(&modest);
    struct inf_server_status status = inf_raw_server_status(&raw);
    cr_expect_geq(status.requests_in_flight, MANY - 4, "of the greedy one's still wait");
    inf_raw_close(&greedy);
    inf_raw_close(&modest);
}
