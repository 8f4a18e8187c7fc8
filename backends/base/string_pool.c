// SPDX-License-Identifier: Apache-2.0
// Pools of strings, and their handles. A handle has these bits:
//
//   63  1: a string of the constants' pool, 0: of the run's pool
//   62..32  offset in the pool
//   31..0   length
//
// The two pools are separate because constants live as long as the model, and the strings of a run
// end with it. Both are bounded, and a pool never gives bytes back before it is cleared: a run is
// short, so a free list would cost more than it saves.
#include "backends/base/string_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/reference.h"
#include "proto/core/bytes_tensor.h"
#include "proto/core/limits.h"

#define CONSTANT_BIT ((uint64_t)1 << 63)
#define OFFSET_SHIFT 32
#define OFFSET_MASK  UINT64_C(0x7fffffff)
#define LENGTH_MASK  UINT64_C(0xffffffff)
#define FIRST_BYTES  ((size_t)256)
// A cleared pool keeps memory up to this size, so that small requests do not allocate.
#define KEPT_BYTES_MAX ((size_t)64 << 10)

_Static_assert(INF_LIMIT_STRING_BYTES <= OFFSET_MASK, "an offset fits a handle");
_Static_assert(INF_LIMIT_MODEL_STRING_BYTES <= OFFSET_MASK, "an offset fits a handle");

void inf_string_pool_fini(struct inf_string_pool *pool)
{
    free(pool->bytes);
    pool->bytes = NULL;
    pool->size_bytes = pool->capacity_bytes = 0;
}

void inf_string_pool_clear(struct inf_string_pool *pool)
{
    pool->size_bytes = 0;
    if (pool->capacity_bytes > KEPT_BYTES_MAX)
        inf_string_pool_fini(pool);
}

static bool grow_pool(struct inf_string_pool *pool, size_t wanted, size_t limit)
{
    size_t capacity = INF_MAX(pool->capacity_bytes * 2, FIRST_BYTES);
    capacity = INF_MIN(INF_MAX(capacity, wanted), limit);
    uint8_t *grown = realloc(pool->bytes, capacity);
    if (grown == NULL)
        return false;
    pool->bytes = grown;
    pool->capacity_bytes = capacity;
    return true;
}

uint8_t *inf_string_pool_reserve(struct inf_string_pool *pool, size_t size_bytes,
                                 struct inf_error *err)
{
    size_t limit = pool->limit_bytes != 0 ? pool->limit_bytes : INF_LIMIT_STRING_BYTES;
    if (!inf_range_ok(pool->size_bytes, size_bytes, limit)) {
        inf_fail(err, INF_EXHAUSTED, "strings of more than %zu bytes in one %s", limit,
                 pool->is_constant ? "model" : "run");
        return NULL;
    }
    // Allocate for empty strings too, so that the result is never NULL.
    size_t wanted = INF_MAX(pool->size_bytes + size_bytes, (size_t)1);
    if (wanted > pool->capacity_bytes && !grow_pool(pool, wanted, limit)) {
        inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                        "no memory for %zu bytes of strings", wanted);
        return NULL;
    }
    return pool->bytes + pool->size_bytes;
}

uint64_t inf_string_pool_commit(struct inf_string_pool *pool, size_t size_bytes)
{
    uint64_t offset = size_bytes == 0 ? 0 : pool->size_bytes;
    pool->size_bytes += size_bytes;
    return (pool->is_constant ? CONSTANT_BIT : 0) | offset << OFFSET_SHIFT | size_bytes;
}

enum inf_code inf_string_pool_add(struct inf_string_pool *pool, struct inf_span string,
                                  uint64_t *out_handle, struct inf_error *err)
{
    uint8_t *room = inf_string_pool_reserve(pool, string.size, err);
    if (room == NULL)
        return INF_EXHAUSTED;
    if (string.size > 0)
        memcpy(room, string.data, string.size);
    *out_handle = inf_string_pool_commit(pool, string.size);
    return INF_OK;
}

size_t inf_string_handle_size(uint64_t handle)
{
    return (size_t)(handle & LENGTH_MASK);
}

uint64_t inf_string_handle_part(uint64_t handle, size_t offset, size_t size)
{
    assert(inf_range_ok(offset, size, inf_string_handle_size(handle)));
    if (size == 0)
        return 0;
    return (handle & ~LENGTH_MASK) + ((uint64_t)offset << OFFSET_SHIFT) + size;
}

// Sets *string as inf_strings_get() does. Returns false if the handle is invalid.
static bool find_string(const struct inf_strings *strings, uint64_t handle, struct inf_span *string)
{
    const struct inf_string_pool *pool =
        (handle & CONSTANT_BIT) != 0 ? strings->constants : strings->run;
    size_t offset = (size_t)(handle >> OFFSET_SHIFT & OFFSET_MASK);
    size_t length = inf_string_handle_size(handle);
    *string = (struct inf_span){0};
    if (length == 0)
        return true;
    if (pool == NULL || !inf_range_ok(offset, length, pool->size_bytes))
        return false;
    *string = (struct inf_span){.data = pool->bytes + offset, .size = length};
    return true;
}

enum inf_code inf_strings_get(const struct inf_strings *strings, uint64_t handle,
                              struct inf_span *string, struct inf_error *err)
{
    if (find_string(strings, handle, string))
        return INF_OK;
    return inf_fail(err, INF_INVALID, "an element is no string of this run");
}

int inf_string_compare(struct inf_span a, struct inf_span b)
{
    size_t common = INF_MIN(a.size, b.size);
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

// --- strings in messages ---

enum inf_code inf_string_pool_decode(struct inf_string_pool *pool, struct inf_span bytes,
                                     size_t count, uint64_t *handles, struct inf_error *err)
{
    struct inf_span element;
    size_t size_bytes = bytes.size;
    for (size_t i = 0; i < count; i++) {
        if (!inf_bytes_tensor_next(&bytes, &element))
            return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                                   "string %zu of %zu reaches beyond the tensor's %zu bytes", i,
                                   count, size_bytes);
        INF_TRY(inf_string_pool_add(pool, element, &handles[i], err));
    }
    if (bytes.size != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "%zu bytes follow the last of %zu strings", bytes.size, count);
    return INF_OK;
}

enum inf_code inf_strings_measure(const struct inf_strings *strings, const uint64_t *handles,
                                  size_t count, size_t *size_bytes, struct inf_error *err)
{
    struct inf_span string;
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        INF_TRY(inf_strings_get(strings, handles[i], &string, err));
        if (!inf_size_add(total, INF_BYTES_LENGTH_SIZE + string.size, &total))
            return inf_fail(err, INF_EXHAUSTED, "the strings are too long");
    }
    *size_bytes = total;
    return INF_OK;
}

void inf_strings_encode(const struct inf_strings *strings, const uint64_t *handles, size_t count,
                        uint8_t *to)
{
    struct inf_span string;
    for (size_t i = 0; i < count; i++)
        if (find_string(strings, handles[i], &string))
            to = inf_bytes_tensor_put(to, string);
}

// --- the strings of a model's constants ---

struct inf_shared_strings {
    _Atomic size_t references;
    struct inf_string_pool pool;
};

struct inf_shared_strings *inf_shared_strings_create(void)
{
    struct inf_shared_strings *shared = calloc(1, sizeof *shared);
    if (shared == NULL)
        return NULL;
    atomic_init(&shared->references, 1);
    shared->pool.is_constant = true;
    shared->pool.limit_bytes = INF_LIMIT_MODEL_STRING_BYTES;
    return shared;
}

struct inf_shared_strings *inf_shared_strings_ref(struct inf_shared_strings *shared)
{
    inf_reference_take(&shared->references);
    return shared;
}

void inf_shared_strings_unref(struct inf_shared_strings **shared)
{
    struct inf_shared_strings *gone = *shared;
    *shared = NULL;
    if (gone == NULL || !inf_reference_drop(&gone->references))
        return;
    inf_string_pool_fini(&gone->pool);
    free(gone);
}

struct inf_string_pool *inf_shared_strings_pool(struct inf_shared_strings *shared)
{
    return &shared->pool;
}
