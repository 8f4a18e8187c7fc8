// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/scratch.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"
#include "proto/wire/message.h"

// Enough for every type protobuf-c puts there.
#define ALIGNMENT 16u

// NULL where the budget is spent. The memory is what it was.
static void *take(struct inf_scratch *scratch, size_t size)
{
    size_t room = scratch->limit - scratch->used;
    if (size > room || inf_size_align(size, ALIGNMENT) > room) {
        scratch->exhausted = true;
        return NULL;
    }
    void *memory = scratch->base + scratch->used;
    scratch->used += inf_size_align(size, ALIGNMENT);
    return memory;
}

static void *allocator_alloc(void *context, size_t size)
{
    return take(context, size);
}

// Everything is freed at once, by the next begin.
static void allocator_free(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

enum inf_code inf_scratch_create(struct inf_scratch **out_scratch, struct inf_error *err)
{
    struct inf_scratch *scratch = calloc(1, sizeof *scratch);
    if (scratch == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a scratch");
    scratch->base = malloc(INF_SCRATCH_BYTES);
    if (scratch->base == NULL) {
        inf_scratch_destroy(&scratch);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the %zu bytes of a scratch", INF_SCRATCH_BYTES);
    }
    scratch->allocator = (ProtobufCAllocator){
        .alloc = allocator_alloc, .free = allocator_free, .allocator_data = scratch};
    *out_scratch = scratch;
    return INF_OK;
}

void inf_scratch_destroy(struct inf_scratch **scratch)
{
    if (*scratch == NULL)
        return;
    free((*scratch)->base);
    free(*scratch);
    *scratch = NULL;
}

void inf_scratch_begin_decode(struct inf_scratch *scratch)
{
    scratch->used = 0;
    scratch->decoded = 0;
    scratch->limit = INF_SCRATCH_DECODE_BYTES;
    scratch->exhausted = false;
}

void inf_scratch_begin_encode(struct inf_scratch *scratch)
{
    scratch->decoded = scratch->used;
    scratch->limit = INF_SCRATCH_BYTES;
    scratch->exhausted = false;
}

void inf_scratch_end_encode(struct inf_scratch *scratch)
{
    scratch->used = scratch->decoded;
}

void *inf_scratch_alloc(struct inf_scratch *scratch, size_t size)
{
    void *memory = take(scratch, size);
    if (memory != NULL)
        memset(memory, 0, size);
    return memory;
}

void *inf_scratch_array(struct inf_scratch *scratch, size_t count, size_t size,
                        struct inf_error *err)
{
    size_t bytes;
    void *array = NULL;
    if (inf_size_mul(count, size, &bytes))
        array = inf_scratch_alloc(scratch, bytes);
    if (array == NULL)
        inf_scratch_fail(err);
    return array;
}

enum inf_code inf_scratch_fail(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                           "message needs more than %u bytes of memory",
                           INF_LIMIT_META_UNPACK_BYTES);
}
