// SPDX-License-Identifier: Apache-2.0
// The cache of memory blocks for interpreted runs: which blocks are reused, and which are freed.
#include <criterion/criterion.h>

#include "backends/exec/dynamic/scratch_cache.h"

static struct inf_scratch_cache scratch_cache;

static void destroy_cache(void)
{
    inf_scratch_cache_fini(&scratch_cache);
    cr_assert_eq(atomic_load(&scratch_cache.bytes), 0u);
}

TestSuite(scratch_cache, .fini = destroy_cache, .timeout = 20);

static void give_block(size_t size_bytes)
{
    struct inf_blob *blob = inf_blob_create(size_bytes);
    cr_assert_not_null(blob);
    inf_scratch_cache_put(&scratch_cache, &blob);
    cr_assert_null(blob);
}

Test(scratch_cache, come_back_for_the_same_size_the_last_one_first)
{
    struct inf_blob *first = inf_blob_create(8192), *second = inf_blob_create(8192);
    struct inf_blob *kept_first = first, *kept_second = second;
    inf_scratch_cache_put(&scratch_cache, &first);
    inf_scratch_cache_put(&scratch_cache, &second);
    give_block(8193);
    cr_assert_null(inf_scratch_cache_take(&scratch_cache, 8191));
    struct inf_blob *taken = inf_scratch_cache_take(&scratch_cache, 8192);
    cr_assert_eq(taken, kept_second);
    struct inf_blob *other = inf_scratch_cache_take(&scratch_cache, 8192);
    cr_assert_eq(other, kept_first);
    cr_assert_null(inf_scratch_cache_take(&scratch_cache, 8192));
    cr_assert_eq(atomic_load(&scratch_cache.bytes), 8193u);
    inf_blob_unref(&taken);
    inf_blob_unref(&other);
}

Test(scratch_cache, leave_what_others_hold_and_what_is_small)
{
    struct inf_blob *blob = inf_blob_create(8192), *other = inf_blob_ref(blob);
    inf_scratch_cache_put(&scratch_cache, &blob);
    cr_assert_null(inf_scratch_cache_take(&scratch_cache, 8192));
    cr_assert_eq(atomic_load(&other->references), 1u);
    inf_blob_unref(&other);
    give_block(16);
    give_block(INF_SCRATCH_CACHE_BYTES_MAX + 1);
    cr_assert_eq(scratch_cache.count, 0u);
    struct inf_blob *none = NULL;
    inf_scratch_cache_put(&scratch_cache, &none);
    inf_scratch_cache_put(NULL, &none);
    cr_assert_null(inf_scratch_cache_take(NULL, 8192));
}

Test(scratch_cache, stay_within_their_bounds_and_give_up_the_oldest)
{
    for (size_t i = 0; i < 2 * (size_t)INF_SCRATCH_CACHE_MAX; i++)
        give_block(8192 + i);
    cr_assert_eq(scratch_cache.count, (uint32_t)INF_SCRATCH_CACHE_MAX);
    cr_assert_null(inf_scratch_cache_take(&scratch_cache, 8192));
    struct inf_blob *last =
        inf_scratch_cache_take(&scratch_cache, 8192 + 2 * (size_t)INF_SCRATCH_CACHE_MAX - 1);
    cr_assert_not_null(last);
    inf_blob_unref(&last);
    give_block(INF_SCRATCH_CACHE_BYTES_MAX);
    cr_assert_eq(scratch_cache.count, 1u);
    cr_assert_eq(atomic_load(&scratch_cache.bytes), INF_SCRATCH_CACHE_BYTES_MAX);
}
