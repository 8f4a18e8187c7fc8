// SPDX-License-Identifier: Apache-2.0
// The order of requests in the fair queue. The tests pass the time.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "daemon/policy/fair_queue.h"

#define MS INF_NS_PER_MS

static struct inf_fair_queue *make_entry(uint32_t capacity)
{
    struct inf_fair_queue *fair_queue = NULL;
    struct inf_error err;
    cr_assert_eq(inf_fair_queue_create(&fair_queue, capacity, &err), INF_OK);
    return fair_queue;
}

static void add_entry(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry,
                      uint64_t user, uint64_t model, enum inf_priority priority, uint64_t since_ns)
{
    *entry = (struct inf_fair_queue_entry){
        .user = user, .model = model, .priority = priority, .cost_ns = MS, .since_ns = since_ns};
    inf_fair_queue_add(fair_queue, entry);
}

// Starts the next entry and ends it as if it had run for `took_ns`. Returns the entry.
static struct inf_fair_queue_entry *run_next(struct inf_fair_queue *fair_queue, uint64_t now_ns,
                                             uint64_t took_ns)
{
    struct inf_fair_queue_entry *entry = inf_fair_queue_next(fair_queue, NULL, now_ns);
    cr_assert_not_null(entry);
    inf_fair_queue_begin(fair_queue, entry);
    inf_fair_queue_end(fair_queue, entry, took_ns);
    return entry;
}

Test(fair_queue, one_users_requests_of_one_model_go_in_the_order_they_came)
{
    struct inf_fair_queue *fair_queue = make_entry(8);
    struct inf_fair_queue_entry entries[4];
    for (int i = 0; i < 4; i++)
        add_entry(fair_queue, &entries[i], 1, 1, INF_PRIORITY_NORMAL, (uint64_t)i);
    inf_fair_queue_remove(fair_queue, &entries[2]);
    cr_expect_eq(inf_fair_queue_waiting_ns(fair_queue), 3 * MS);
    cr_expect_eq(run_next(fair_queue, 10, MS), &entries[0]);
    cr_expect_eq(run_next(fair_queue, 10, MS), &entries[1]);
    cr_expect_eq(run_next(fair_queue, 10, MS), &entries[3]);
    cr_expect_null(inf_fair_queue_next(fair_queue, NULL, 10));
    cr_expect_eq(inf_fair_queue_waiting_ns(fair_queue), 0);
    inf_fair_queue_destroy(&fair_queue);
}

// Two users always have entries waiting. The arguments give the cost of an entry per user and
// model. Returns the first user's share of the device time.
static double share_of_first(uint64_t user_a, uint64_t model_a, uint64_t user_b, uint64_t model_b,
                             uint64_t cost_a, uint64_t cost_b)
{
    struct inf_fair_queue *fair_queue = make_entry(16);
    struct inf_fair_queue_entry entries[8];
    uint64_t had[2] = {0, 0};
    uint64_t now = 1;
    for (int i = 0; i < 8; i++)
        add_entry(fair_queue, &entries[i], i % 2 == 0 ? user_a : user_b,
                  i % 2 == 0 ? model_a : model_b, INF_PRIORITY_NORMAL, now++);
    for (int i = 0; i < 5000; i++) {
        struct inf_fair_queue_entry *next = inf_fair_queue_next(fair_queue, NULL, now);
        int who = (int)((next - entries) % 2);
        uint64_t cost = who == 0 ? cost_a : cost_b;
        cr_assert_eq(run_next(fair_queue, now, cost), next);
        had[who] += cost;
        add_entry(fair_queue, next, who == 0 ? user_a : user_b, who == 0 ? model_a : model_b,
                  INF_PRIORITY_NORMAL, now++);
    }
    inf_fair_queue_destroy(&fair_queue);
    return (double)had[0] / (double)(had[0] + had[1]);
}

Test(fair_queue, users_get_equal_time_whatever_their_models_cost)
{
    cr_expect_float_eq(share_of_first(1, 7, 2, 8, 10 * MS, MS), 0.5, 0.01);
    cr_expect_float_eq(share_of_first(1, 7, 2, 7, MS, 100 * MS), 0.5, 0.03);
}

Test(fair_queue, models_of_one_user_get_equal_time)
{
    cr_expect_float_eq(share_of_first(1, 7, 1, 8, 10 * MS, MS), 0.5, 0.01);
}

Test(fair_queue, a_user_gains_nothing_by_having_many_models)
{
    enum {
        MODELS = 9
    };
    struct inf_fair_queue *fair_queue = make_entry(64);
    struct inf_fair_queue_entry entries[MODELS + 1];
    uint64_t had[2] = {0, 0};
    uint64_t now = 1;
    for (uint64_t i = 0; i <= MODELS; i++)
        add_entry(fair_queue, &entries[i], i < MODELS ? 1 : 2, i, INF_PRIORITY_NORMAL, now++);
    for (int i = 0; i < 4000; i++) {
        struct inf_fair_queue_entry *next = run_next(fair_queue, now, MS);
        had[next->user - 1] += MS;
        add_entry(fair_queue, next, next->user, next->model, INF_PRIORITY_NORMAL, now++);
    }
    cr_expect_float_eq((double)had[0] / (double)(had[0] + had[1]), 0.5, 0.01);
    inf_fair_queue_destroy(&fair_queue);
}

Test(fair_queue, an_idle_user_neither_gains_nor_loses)
{
    struct inf_fair_queue *fair_queue = make_entry(64);
    struct inf_fair_queue_entry busy[2];
    struct inf_fair_queue_entry back[3];
    add_entry(fair_queue, &busy[0], 1, 1, INF_PRIORITY_NORMAL, 1);
    add_entry(fair_queue, &busy[1], 1, 1, INF_PRIORITY_NORMAL, 2);
    for (uint64_t i = 3; i < 100; i++) {
        struct inf_fair_queue_entry *next = run_next(fair_queue, i, MS);
        add_entry(fair_queue, next, 1, 1, INF_PRIORITY_NORMAL, i);
    }
    // Users must not save up device time while they are idle. If user 2 had saved 97 ms, all of its
    // three entries would run before the entries of user 1.
    for (uint64_t i = 0; i < 3; i++)
        add_entry(fair_queue, &back[i], 2, 2, INF_PRIORITY_NORMAL, 100 + i);
    int of_back = 0;
    for (int i = 0; i < 4; i++)
        of_back += run_next(fair_queue, 200, MS)->user == 2;
    cr_expect_eq(of_back, 2, "%d of 4", of_back);
    inf_fair_queue_destroy(&fair_queue);
}

Test(fair_queue, charges_the_time_that_was_really_taken)
{
    struct inf_fair_queue *fair_queue = make_entry(8);
    struct inf_fair_queue_entry a[2];
    struct inf_fair_queue_entry b[4];
    for (uint64_t i = 0; i < 2; i++)
        add_entry(fair_queue, &a[i], 1, 1, INF_PRIORITY_NORMAL, 1 + i);
    for (uint64_t i = 0; i < 4; i++)
        add_entry(fair_queue, &b[i], 2, 1, INF_PRIORITY_NORMAL, 10 + i);
    // The first entry of user 1 was expected to take 1 ms and took 3 ms. Expect that three entries
    // of user 2, of 1 ms each, run before the next entry of user 1.
    cr_expect_eq(run_next(fair_queue, 20, 3 * MS), &a[0]);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(run_next(fair_queue, 20, MS), &b[i]);
    cr_expect_eq(run_next(fair_queue, 20, MS), &a[1]);
    inf_fair_queue_destroy(&fair_queue);
}

Test(fair_queue, urgent_requests_of_a_user_go_first_and_old_ones_become_urgent)
{
    struct inf_fair_queue *fair_queue = make_entry(8);
    struct inf_fair_queue_entry low, normal, high, late;
    uint64_t aging = INF_FAIR_QUEUE_AGING_MS * MS;
    add_entry(fair_queue, &low, 1, 1, INF_PRIORITY_LOW, 1);
    add_entry(fair_queue, &normal, 1, 2, INF_PRIORITY_NORMAL, 2);
    add_entry(fair_queue, &high, 1, 3, INF_PRIORITY_HIGH, 3);
    cr_expect_eq(run_next(fair_queue, 4, MS), &high);
    cr_expect_eq(run_next(fair_queue, 5, MS), &normal);
    // The entry `low` becomes more urgent with every INF_FAIR_QUEUE_AGING_MS. Until two such steps
    // have passed, the new urgent entry goes first. Then `low` is as urgent and goes first, because
    // it is older.
    add_entry(fair_queue, &late, 1, 1, INF_PRIORITY_HIGH, 2 * aging);
    cr_expect_eq(inf_fair_queue_next(fair_queue, NULL, 2 * aging), &late);
    cr_expect_eq(inf_fair_queue_next(fair_queue, NULL, 2 * aging + 1), &low);
    inf_fair_queue_destroy(&fair_queue);
}

Test(fair_queue, urgency_takes_no_time_from_other_users)
{
    struct inf_fair_queue *fair_queue = make_entry(16);
    struct inf_fair_queue_entry entries[4];
    int of_modest = 0;
    for (uint64_t i = 0; i < 4; i++)
        add_entry(fair_queue, &entries[i], i % 2, 1,
                  i % 2 == 0 ? INF_PRIORITY_HIGH : INF_PRIORITY_LOW, i);
    for (uint64_t i = 0; i < 100; i++) {
        struct inf_fair_queue_entry *next = run_next(fair_queue, 10 + i, MS);
        of_modest += next->user == 1;
        add_entry(fair_queue, next, next->user, 1, next->priority, 10 + i);
    }
    cr_expect_eq(of_modest, 50);
    inf_fair_queue_destroy(&fair_queue);
}

Test(fair_queue, estimates_the_time_ahead)
{
    struct inf_fair_queue *fair_queue = make_entry(16);
    struct inf_fair_queue_entry entries[6];
    cr_expect_eq(inf_fair_queue_ahead_ns(fair_queue, 1, INF_PRIORITY_NORMAL), 0);
    for (uint64_t i = 0; i < 2; i++)
        add_entry(fair_queue, &entries[i], 1, 1, INF_PRIORITY_NORMAL, i);
    cr_expect_eq(inf_fair_queue_ahead_ns(fair_queue, 1, INF_PRIORITY_NORMAL), 2 * MS);
    cr_expect_eq(inf_fair_queue_ahead_ns(fair_queue, 1, INF_PRIORITY_HIGH), 0, "they go before");
    for (uint64_t i = 2; i < 6; i++)
        add_entry(fair_queue, &entries[i], 2, 1, INF_PRIORITY_NORMAL, i);
    // A new entry of a user waits for the user's own entries and for the same time of the other
    // user's entries, but never for more than all entries.
    cr_expect_eq(inf_fair_queue_ahead_ns(fair_queue, 1, INF_PRIORITY_NORMAL), 4 * MS);
    cr_expect_eq(inf_fair_queue_ahead_ns(fair_queue, 2, INF_PRIORITY_NORMAL), 6 * MS);
    cr_expect_eq(inf_fair_queue_ahead_ns(fair_queue, 3, INF_PRIORITY_NORMAL), 0,
                 "the next entry follows");
    inf_fair_queue_destroy(&fair_queue);
}

// Given random users and models, expect that there is room for the promised number of entries, that
// each entry is returned once, and that the sums are consistent.
Test(fair_queue, stays_consistent_with_random_users_and_models)
{
    enum {
        COUNT = 32
    };
    struct inf_fair_queue *fair_queue = make_entry(COUNT);
    struct inf_fair_queue_entry entries[COUNT];
    enum {
        OUT,
        WAITS,
        RUNS
    } states[COUNT] = {0};
    unsigned seed = 11;
    uint64_t waiting = 0;
    for (uint64_t now = 1; now < 200000; now++) {
        int i = rand_r(&seed) % COUNT;
        if (states[i] == OUT) {
            add_entry(fair_queue, &entries[i], (uint64_t)(rand_r(&seed) % 100),
                      (uint64_t)(rand_r(&seed) % 100),
                      (enum inf_priority)(rand_r(&seed) % INF_PRIORITY_COUNT), now);
            states[i] = WAITS;
            waiting++;
        } else if (states[i] == RUNS) {
            inf_fair_queue_end(fair_queue, &entries[i], (uint64_t)(rand_r(&seed) % 5) * MS);
            states[i] = OUT;
        } else if (rand_r(&seed) % 4 == 0) {
            inf_fair_queue_remove(fair_queue, &entries[i]);
            states[i] = OUT;
            waiting--;
        } else {
            struct inf_fair_queue_entry *next = inf_fair_queue_next(fair_queue, NULL, now);
            cr_assert_not_null(next);
            cr_assert_eq(states[next - entries], WAITS);
            inf_fair_queue_begin(fair_queue, next);
            states[next - entries] = RUNS;
            waiting--;
        }
        cr_assert_eq(inf_fair_queue_waiting_ns(fair_queue), waiting * MS);
        cr_assert_eq(inf_fair_queue_next(fair_queue, NULL, now) == NULL, waiting == 0);
    }
    inf_fair_queue_destroy(&fair_queue);
}

static bool is_another_model(const void *context, uint64_t model, uint64_t now_ns)
{
    return now_ns == 10 && model != *(const uint64_t *)context;
}

Test(fair_queue, leaves_out_low_priority_if_the_filter_says_so)
{
    const uint64_t aging = INF_FAIR_QUEUE_AGING_MS * INF_NS_PER_MS;
    static const uint64_t none = 9;
    const struct inf_fair_queue_filter filter = {is_another_model, &none, true};
    struct inf_fair_queue *fair_queue = make_entry(8);
    struct inf_fair_queue_entry low, normal;
    add_entry(fair_queue, &low, 1, 1, INF_PRIORITY_LOW, 5);
    cr_expect_null(inf_fair_queue_next(fair_queue, &filter, 10));
    add_entry(fair_queue, &normal, 2, 1, INF_PRIORITY_NORMAL, 6);
    cr_expect_eq(inf_fair_queue_next(fair_queue, &filter, 10), &normal, "of another user");
    cr_expect_eq(inf_fair_queue_next(fair_queue, NULL, 10), &low);
    cr_expect(inf_fair_queue_is_low(&low, 4 + aging));
    cr_expect_not(inf_fair_queue_is_low(&low, 5 + aging), "it has waited long enough");
    cr_expect_not(inf_fair_queue_is_low(&normal, 10));
    inf_fair_queue_remove(fair_queue, &low);
    inf_fair_queue_remove(fair_queue, &normal);
    inf_fair_queue_destroy(&fair_queue);
}

Test(fair_queue, leaves_out_models_that_the_filter_does_not_allow)
{
    static const uint64_t barred = 1;
    const struct inf_fair_queue_filter filter = {is_another_model, &barred};
    struct inf_fair_queue *fair_queue = make_entry(8);
    struct inf_fair_queue_entry urgent, other, late;
    add_entry(fair_queue, &urgent, 1, 1, INF_PRIORITY_HIGH, 0);
    cr_expect_null(inf_fair_queue_next(fair_queue, &filter, 10), "nothing else waits");
    add_entry(fair_queue, &other, 1, 2, INF_PRIORITY_LOW, 1);
    add_entry(fair_queue, &late, 2, 1, INF_PRIORITY_NORMAL, 2);
    cr_expect_eq(inf_fair_queue_next(fair_queue, NULL, 10), &urgent);
    cr_expect_eq(inf_fair_queue_next(fair_queue, &filter, 10), &other);
    cr_expect_null(inf_fair_queue_next(fair_queue, &filter, 11), "it is asked with this time");
    inf_fair_queue_remove(fair_queue, &other);
    cr_expect_null(inf_fair_queue_next(fair_queue, &filter, 10));
    inf_fair_queue_remove(fair_queue, &urgent);
    inf_fair_queue_remove(fair_queue, &late);
    inf_fair_queue_destroy(&fair_queue);
}
