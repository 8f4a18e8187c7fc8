// SPDX-License-Identifier: Apache-2.0
// The files of plans in a cache, and the checksum of a plan.
#include "tests/unit/saved/plan_case.h"

TestSuite(plan_cache, .init = start_test, .fini = end_test);

static struct inf_plan_cache *make_cache(uint64_t bytes_max)
{
    struct inf_plan_cache *cache = NULL;
    cr_assert_eq(inf_plan_cache_create(&cache, root, bytes_max, id.build, NULL, NULL), INF_OK);
    return cache;
}

static bool has_plan(struct inf_plan_cache *cache, uint64_t key)
{
    struct inf_saved_plan plan = {.graph = NULL};
    bool found = inf_plan_cache_find(cache, key, &plan);
    inf_saved_plan_fini(&plan);
    return found;
}

static void make_older(uint64_t key, int seconds)
{
    char name[32];
    struct stat status;
    snprintf(name, sizeof name, "plan-%016llx", (unsigned long long)key);
    cr_assert_eq(fstatat(directory, name, &status, 0), 0);
    const struct timespec times[2] = {{.tv_sec = status.st_mtim.tv_sec - seconds},
                                      {.tv_sec = status.st_mtim.tv_sec - seconds}};
    cr_assert_eq(utimensat(directory, name, times, 0), 0);
}

Test(plan_cache, deletes_what_was_not_used_for_the_longest_time)
{
    struct inf_saved_plan plan = {.facts = facts, .graph = make_graph()};
    // Room for three plans. Before the cache writes a plan, it makes room for the constants only.
    write_plan("p");
    struct stat status;
    cr_assert_eq(fstatat(directory, "p", &status, 0), 0);
    struct inf_plan_cache *cache = make_cache((uint64_t)status.st_size * 3);
    cr_expect(inf_plan_cache_is_open(cache));
    for (uint64_t key = 1; key <= 3; key++) {
        inf_plan_cache_keep(cache, key, &plan);
        cr_expect(has_plan(cache, key));
        make_older(key, 100 - (int)key);
    }
    cr_expect(has_plan(cache, 1), "and it is the newest from now on");
    inf_plan_cache_keep(cache, 4, &plan);
    cr_expect(has_plan(cache, 1));
    cr_expect_not(has_plan(cache, 2));
    cr_expect(has_plan(cache, 3));
    cr_expect(has_plan(cache, 4));
    inf_plan_cache_destroy(&cache);
    // A plan that is larger than the whole cache is not kept, and no other plan is deleted for it.
    cache = make_cache(100);
    inf_plan_cache_keep(cache, 5, &plan);
    cr_expect_not(has_plan(cache, 5));
    cr_expect(has_plan(cache, 4));
    inf_plan_cache_destroy(&cache);
    cache = make_cache(0);
    cr_expect_not(inf_plan_cache_is_open(cache));
    cr_expect_not(has_plan(cache, 4));
    inf_plan_cache_destroy(&cache);
    cr_expect_null(cache);
    inf_saved_plan_fini(&plan);
}

Test(plan_cache, checksum_sees_each_bit_the_size_and_the_order)
{
    uint8_t bytes[100] = {0};
    uint64_t zero = inf_checksum(bytes, sizeof bytes);
    for (size_t size = 0; size < sizeof bytes; size++)
        cr_expect_neq(inf_checksum(bytes, size), zero, "%zu", size);
    for (size_t i = 0; i < sizeof bytes * 8; i++) {
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        cr_expect_neq(inf_checksum(bytes, sizeof bytes), zero, "bit %zu", i);
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    bytes[0] = 1;
    uint64_t first = inf_checksum(bytes, sizeof bytes);
    bytes[0] = 0;
    bytes[8] = 1;
    cr_expect_neq(inf_checksum(bytes, sizeof bytes), first);
    bytes[8] = 0;
    bytes[32] = 1;
    cr_expect_neq(inf_checksum(bytes, sizeof bytes), first);
}
