// SPDX-License-Identifier: Apache-2.0
// Bump allocation. Allocations are cut from the newest block; when it is full, a larger block is
// added. Allocations are not freed one by one.
#include "backends/base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

#define ALIGNMENT 16
// Sizes of blocks: the first block has BLOCK_BYTES, and no block has more than BLOCK_BYTES_MOST. In
// between, a new block has the bytes of all earlier blocks together divided by BLOCK_SHARE, so that
// little of an arena is unused.
#define BLOCK_BYTES      ((size_t)512)
#define BLOCK_BYTES_MOST ((size_t)64 << 10)
#define BLOCK_SHARE      8
// An allocation is large if it has more than this part of the next block.
#define LARGE_SHARE 4

struct inf_arena_block {
    struct inf_arena_block *next;
    size_t size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static struct inf_arena_block *create_block(size_t size)
{
    size_t total;
    if (!inf_size_add(size, sizeof(struct inf_arena_block), &total))
        return NULL;
    struct inf_arena_block *block = calloc(1, total);
    if (block != NULL)
        block->size = size;
    return block;
}

static size_t next_size(const struct inf_arena *arena)
{
    size_t all = 0;
    for (const struct inf_arena_block *block = arena->blocks;
         block != NULL && all < BLOCK_SHARE * BLOCK_BYTES_MOST; block = block->next)
        all += block->size;
    return INF_MIN(INF_MAX(all / BLOCK_SHARE, BLOCK_BYTES), BLOCK_BYTES_MOST);
}

// Returns `size` bytes, a multiple of ALIGNMENT, in a new block. A large allocation gets a block of
// its own, so that the rest of the newest block stays in use.
static void *alloc_in_new_block(struct inf_arena *arena, size_t size)
{
    size_t usual = next_size(arena);
    bool alone = arena->blocks != NULL && size > usual / LARGE_SHARE;
    struct inf_arena_block *block = create_block(alone ? size : INF_MAX(size, usual));
    if (block == NULL)
        return NULL;
    if (alone) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
        return block->bytes;
    }
    block->next = arena->blocks;
    arena->blocks = block;
    arena->used_bytes = size;
    return block->bytes;
}

void *inf_arena_alloc(struct inf_arena *arena, size_t size)
{
    size_t padded;
    if (!inf_size_add(size, ALIGNMENT - 1, &padded))
        return NULL;
    padded &= ~(size_t)(ALIGNMENT - 1);
    struct inf_arena_block *block = arena->blocks;
    if (block == NULL || padded > block->size - arena->used_bytes)
        return alloc_in_new_block(arena, padded);
    void *memory = block->bytes + arena->used_bytes;
    arena->used_bytes += padded;
    return memory;
}

char *inf_arena_strdup(struct inf_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = inf_arena_alloc(arena, size);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

void inf_arena_fini(struct inf_arena *arena)
{
    while (arena->blocks != NULL) {
        struct inf_arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena->used_bytes = 0;
}
