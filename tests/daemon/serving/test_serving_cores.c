// SPDX-License-Identifier: Apache-2.0
// The cpu device with its default slots and threads: a request that is alone may use all cores, and
// requests at the same time run beside each other.
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"

#define ROUNDS 10

static struct inf_fixture fixture;
static struct inf_raw raw;

static void start_server(void)
{
    inf_fixture_start(&fixture,
                      (const char *[]){"--cpu-slots=0", "--cpu-threads=0", "--device=cpu", NULL});
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_cores, .init = start_server, .fini = stop_server, .timeout = 120);

static uint64_t send_request(struct inf_raw *client, const char *model,
                             enum inf_wire_priority priority)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.model_name = model;
    message.infer_request.device = "";
    message.infer_request.priority = priority;
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

static uint64_t send_slow(void)
{
    return send_request(&raw, "slow", INF_WIRE_PRIORITY_NORMAL);
}

static struct inf_timing receive_timing(void)
{
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_decode(&raw, INF_MESSAGE_INFER_REPLY);
    return raw.message.infer_reply.timing;
}

// Returns the slots of the device `cpu`, which are also its threads; 0 if there is no such device.
static uint32_t find_slots(void)
{
    inf_raw_call(&raw, INF_METHOD_DEVICE_LIST, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(&raw, INF_MESSAGE_DEVICE_INDEX);
    const struct inf_device_index *index = &raw.message.device_index;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct inf_device_entry *entry = &index->entries[i];
        if (strcmp(entry->name, "cpu") != 0)
            continue;
        cr_assert_eq(entry->slots, entry->threads);
        return entry->slots;
    }
    return 0;
}

Test(serving_cores, an_answer_says_which_cores_it_had)
{
    uint32_t cores = find_slots();
    if (cores < 2)
        cr_skip_test("there is no cpu device of two cores");
    inf_raw_expect_infer(&raw, send_slow());
    // On a busy machine a helper may come late, so one good round is enough.
    bool helped = false;
    for (int i = 0; i < ROUNDS && !helped; i++) {
        send_slow();
        struct inf_timing timing = receive_timing();
        cr_assert_geq(timing.threads, 1u);
        cr_assert_leq(timing.threads, cores);
        cr_assert_geq(timing.core_ns, timing.compute_ns);
        cr_assert_leq(timing.core_ns, cores * timing.compute_ns);
        // A helper that works from start to end would double the time of two cores.
        helped = timing.threads > 1 && timing.core_ns > timing.compute_ns * 3 / 2;
    }
    cr_assert(helped);
}

Test(serving_cores, requests_at_the_same_time_run_beside_each_other)
{
    if (find_slots() < 2)
        cr_skip_test("there is no cpu device of two cores");
    inf_raw_expect_infer(&raw, send_slow());
    // On a busy machine a worker may start late, so one good round is enough. If requests ran one
    // after the other, the second would wait for the whole first run in every round.
    bool beside = false;
    for (int i = 0; i < ROUNDS && !beside; i++) {
        send_slow();
        send_slow();
        struct inf_timing one = receive_timing();
        struct inf_timing other = receive_timing();
        beside = one.queue_ns < other.compute_ns / 2 && other.queue_ns < one.compute_ns / 2;
    }
    cr_assert(beside);
    // Afterwards a request alone is still answered.
    inf_raw_expect_infer(&raw, send_slow());
}

Test(serving_cores, a_request_starts_while_a_run_of_low_priority_has_all_cores)
{
    enum {
        LATE_MS = 5
    };
    const struct timespec pause = {.tv_nsec = 2000000};
    if (find_slots() < 2)
        cr_skip_test("there is no cpu device of two cores");
    inf_raw_expect_infer(&raw, send_slow());
    inf_raw_expect_infer(&raw, send_request(&raw, "brief", INF_WIRE_PRIORITY_NORMAL));
    bool gave_way = false;
    for (int i = 0; i < 5 * ROUNDS && !gave_way; i++) {
        uint64_t low = send_request(&raw, "slow", INF_WIRE_PRIORITY_LOW);
        nanosleep(&pause, NULL);
        send_request(&raw, "brief", INF_WIRE_PRIORITY_NORMAL);
        struct inf_timing timings[2]; // of the run of low priority, and of the other one
        for (int k = 0; k < 2; k++) {
            struct inf_timing timing = receive_timing();
            timings[raw.frame.header.stream_id != low] = timing;
        }
        // The first run had a helper, and lost it to the second one, which began at once.
        gave_way = timings[0].threads > 1 && timings[0].core_ns < timings[0].compute_ns * 9 / 5 &&
                   timings[0].compute_ns > 2 * LATE_MS * INF_NS_PER_MS &&
                   timings[1].queue_ns < LATE_MS * INF_NS_PER_MS;
    }
    cr_assert(gave_way);
}

static uint64_t read_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * INF_NS_PER_S + (uint64_t)now.tv_nsec;
}

// Two users who always have several requests in flight, for models of which one costs eight times
// as much as the other.
#define USERS 2

static const char *const user_models[USERS] = {"brief", "slow"};
static const int outstanding[USERS] = {32, 4};

// Keeps the requests of both users in flight for 2 s. Returns the first user's share of the core
// time of all answers.
static double measure_share(struct inf_raw *users)
{
    uint64_t core_ns[USERS] = {0};
    uint64_t end_ns = read_clock_ns() + 2 * INF_NS_PER_S;
    while (read_clock_ns() < end_ns)
        for (int i = 0; i < USERS; i++)
            for (int k = 0; k < outstanding[i] && inf_raw_next(&users[i], 1); k++) {
                inf_raw_decode(&users[i], INF_MESSAGE_INFER_REPLY);
                core_ns[i] += users[i].message.infer_reply.timing.core_ns;
                send_request(&users[i], user_models[i], INF_WIRE_PRIORITY_NORMAL);
            }
    return (double)core_ns[0] / (double)(core_ns[0] + core_ns[1]);
}

Test(serving_cores, users_get_equal_core_time)
{
    struct inf_raw users[USERS];
    if (geteuid() != 0 || find_slots() < 2)
        cr_skip_test("wants to be root, and a cpu device of two cores");
    for (int i = 0; i < USERS; i++) {
        inf_fixture_open_as(&fixture, &users[i], 12001 + (uid_t)i);
        // The daemon learns how long the models run.
        for (int k = 0; k < 4; k++)
            inf_raw_expect_infer(&users[i],
                                 send_request(&users[i], user_models[i], INF_WIRE_PRIORITY_NORMAL));
    }
    for (int i = 0; i < USERS; i++)
        for (int k = 0; k < outstanding[i]; k++)
            send_request(&users[i], user_models[i], INF_WIRE_PRIORITY_NORMAL);
    // On a busy machine this process may send too late, so one good round is enough.
    double share = 0;
    for (int i = 0; i < 4 && !(share > 0.45 && share < 0.55); i++)
        share = measure_share(users);
    cr_expect(share > 0.45 && share < 0.55, "%.3f", share);
    for (int i = 0; i < USERS; i++)
        inf_raw_close(&users[i]);
}
