// SPDX-License-Identifier: Apache-2.0
// The queues of requests that wait for models: order, limits, and which requests a wake-up
// returns.
#include <criterion/criterion.h>
#include <stdio.h>

#include "daemon/policy/model_waits.h"

static struct inf_model_waits waits;
static struct inf_model_wait requests[INF_WAITS_MAX + 1];
static uint32_t clients[INF_WAITS_MAX / INF_WAITS_PER_CLIENT + 2];

static bool add_wait(uint32_t index, uint32_t client, const char *name) INF_ON_LOOP
{
    requests[index].client_count = &clients[client];
    return inf_model_waits_add(&waits, &requests[index], name);
}

static void expect_next(int index) INF_ON_LOOP
{
    const struct inf_model_wait *wait = inf_model_waits_next(&waits);
    cr_expect_eq(wait, index < 0 ? NULL : &requests[index], "wanted %d", index);
}

Test(model_waits, wakes_the_requests_of_one_model_in_order)
{
    inf_role_enter_loop();
    cr_assert(add_wait(0, 0, "a"));
    cr_assert(add_wait(1, 1, "b"));
    cr_assert(add_wait(2, 0, "a"));
    cr_assert(add_wait(3, 1, ""));
    expect_next(-1);
    inf_model_waits_wake(&waits, "c", "");
    expect_next(-1);
    inf_model_waits_wake(&waits, "a", "");
    cr_expect_eq(waits.count, 4u);
    expect_next(0);
    // A request that is added again waits for the next wake-up.
    cr_assert(add_wait(0, 0, "a"));
    expect_next(2);
    expect_next(-1);
    cr_expect_eq(clients[0], 1u);
    cr_expect_eq(clients[1], 2u);
    inf_model_waits_wake(&waits, "", "");
    expect_next(3);
    inf_model_waits_wake_all(&waits);
    cr_expect_eq(waits.count, 2u);
    for (int i = 0; i < 2; i++)
        cr_expect_neq(inf_model_waits_next(&waits), NULL);
    expect_next(-1);
    cr_expect_eq(waits.count + clients[0] + clients[1], 0u);
}

Test(model_waits, a_request_leaves_from_every_place)
{
    inf_role_enter_loop();
    for (uint32_t leaving = 0; leaving < 3; leaving++)
        for (int woken = 0; woken < 2; woken++) {
            for (uint32_t i = 0; i < 3; i++)
                cr_assert(add_wait(i, 0, "a"));
            cr_assert(add_wait(3, 0, "z"));
            if (woken)
                inf_model_waits_wake(&waits, "a", "");
            inf_model_waits_remove(&waits, &requests[leaving]);
            inf_model_waits_remove(&waits, &requests[leaving]);
            inf_model_waits_wake(&waits, "a", "");
            for (uint32_t i = 0; i < 3; i++)
                if (i != leaving)
                    expect_next((int)i);
            expect_next(-1);
            cr_expect_eq(waits.count, 1u);
            inf_model_waits_remove(&waits, &requests[3]);
            cr_expect_eq(waits.count + clients[0], 0u);
        }
}

// There are more names than buckets, so some names share a bucket. Each has a queue of its own.
Test(model_waits, names_share_buckets)
{
    char name[16];
    inf_role_enter_loop();
    for (uint32_t i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "m%u", i);
        cr_assert(add_wait(i, i / 100, name));
    }
    for (uint32_t i = 0; i < 200; i += 2) {
        snprintf(name, sizeof name, "m%u", i);
        inf_model_waits_wake(&waits, name, "");
        expect_next((int)i);
        expect_next(-1);
    }
    inf_model_waits_wake_all(&waits);
    uint32_t count = 0;
    while (inf_model_waits_next(&waits) != NULL)
        count++;
    cr_expect_eq(count, 100u);
}

Test(model_waits, limits_models_clients_and_the_whole)
{
    char name[16];
    inf_role_enter_loop();
    uint32_t index = 0, client = 0;
    for (; index < INF_WAITS_PER_CLIENT; index++)
        cr_assert(add_wait(index, 0, "a"));
    cr_expect_not(add_wait(index, 0, "b"), "the client has too many");
    for (; index < INF_WAITS_PER_MODEL; index++)
        cr_assert(add_wait(index, index / INF_WAITS_PER_CLIENT, "a"));
    client = INF_WAITS_PER_MODEL / INF_WAITS_PER_CLIENT;
    cr_expect_not(add_wait(index, client, "a"), "the model has too many");
    cr_expect_eq(clients[client], 0u);
    for (; index < INF_WAITS_MAX; index++) {
        snprintf(name, sizeof name, "m%u", index / INF_WAITS_PER_MODEL);
        cr_assert(add_wait(index, index / INF_WAITS_PER_CLIENT, name), "request %u", index);
    }
    cr_expect_not(add_wait(index, INF_WAITS_MAX / INF_WAITS_PER_CLIENT, "z"), "there are too many");
    inf_model_waits_remove(&waits, &requests[0]);
    cr_expect(add_wait(index, INF_WAITS_MAX / INF_WAITS_PER_CLIENT, "z"));
    inf_model_waits_wake_all(&waits);
    while (inf_model_waits_next(&waits) != NULL)
        ;
}

Test(model_waits, limits_the_metadata)
{
    inf_role_enter_loop();
    requests[0].meta_bytes = INF_WAITS_META_BYTES - 10;
    requests[1].meta_bytes = 11;
    requests[2].meta_bytes = 10;
    cr_expect(add_wait(0, 0, "a"));
    cr_expect_not(add_wait(1, 0, "a"));
    cr_expect(add_wait(2, 0, "a"));
    inf_model_waits_remove(&waits, &requests[0]);
    cr_expect_eq(waits.meta_bytes, 10u);
    cr_expect(add_wait(1, 0, "a"));
    inf_model_waits_remove(&waits, &requests[1]);
    inf_model_waits_remove(&waits, &requests[2]);
    cr_expect_eq(waits.meta_bytes, 0u);
}

Test(model_waits, tells_each_request_why_its_load_failed)
{
    inf_role_enter_loop();
    uint32_t count = 0;
    struct inf_model_wait all[4] = {{.client_count = &count},
                                    {.client_count = &count},
                                    {.client_count = &count},
                                    {.client_count = &count}};
    static const char *const names[] = {"a", "a", "b", "c"};
    char text[400];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < 4; i++)
        cr_assert(inf_model_waits_add(&waits, &all[i], names[i]));
    inf_model_waits_wake(&waits, "c", text);
    cr_expect_eq(inf_model_waits_next(&waits), &all[3]);
    cr_expect_eq(strlen(waits.failure), INF_WAITS_FAILURE - 1u, "it is cut");
    inf_model_waits_wake(&waits, "a", "no memory");
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(inf_model_waits_next(&waits), &all[i]);
        cr_expect_str_eq(waits.failure, "no memory");
    }
    inf_model_waits_wake(&waits, "b", "");
    cr_expect_eq(inf_model_waits_next(&waits), &all[2]);
    cr_expect_str_eq(waits.failure, "");
    inf_role_leave();
}
