// SPDX-License-Identifier: Apache-2.0
// A bump allocator for the strings, lists and sub-messages of one decoded message and of one
// message that is being encoded. The scratch never calls malloc() after its creation, so a hostile
// message cannot make the process allocate memory.
//
//   base                  decoded                                   INF_SCRATCH_BYTES
//    | decoded message ... | message being encoded ...                              |
//    |<- INF_SCRATCH_DECODE_BYTES ->|
//
// Decoding may use the first half. Encoding starts after the decoded message and may use all memory
// up to the end. This is at least as much as decoding may use, so a decoded message can always be
// encoded again, and the size of a request does not decide whether its reply fits.
// inf_scratch_begin_decode() and inf_scratch_begin_encode() each free all earlier objects of their
// kind at once; single objects are never freed.
#include "proto/wire/scratch.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"
#include "proto/wire/message.h"

// The strictest alignment of the types that protobuf-c stores.
#define ALIGNMENT 16u

// Returns `size` bytes that are not zeroed, or NULL if the memory is exhausted.
static void *bump_allocate(struct inf_scratch *scratch, size_t size)
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
    return bump_allocate(context, size);
}

// The free function for protobuf-c. Does nothing, because the next inf_scratch_begin_*() frees all
// objects at once.
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
    void *memory = bump_allocate(scratch, size);
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
