// SPDX-License-Identifier: Apache-2.0
// Bump allocation. Allocations are cut from the newest block; when it is full, a larger block is
// added. Allocations are not freed one by one.
#include "backends/base/arena.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

#define ALIGNMENT 16
// Sizes of blocks: the first block has BLOCK_BYTES, and no block has more than BLOCK_BYTES_MOST. In
// between, a new block is half as large as all earlier blocks together.
#define BLOCK_BYTES      ((size_t)512)
#define BLOCK_BYTES_MOST ((size_t)64 << 10)

struct inf_arena_block {
    struct inf_arena_block *next;
    size_t size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static struct inf_arena_block *add_block(struct inf_arena *arena, size_t size)
{
    size_t total;
    if (!inf_size_add(size, sizeof(struct inf_arena_block), &total))
        return NULL;
    struct inf_arena_block *block = calloc(1, total);
    if (block == NULL)
        return NULL;
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->used_bytes = 0;
    return block;
}

static size_t next_size(const struct inf_arena *arena)
{
    size_t all = 0;
    for (const struct inf_arena_block *block = arena->blocks;
         block != NULL && all < 2 * BLOCK_BYTES_MOST; block = block->next)
        all += block->size;
    return INF_MIN(INF_MAX(all / 2, BLOCK_BYTES), BLOCK_BYTES_MOST);
}

void *inf_arena_alloc(struct inf_arena *arena, size_t size)
{
    size_t padded;
    if (!inf_size_add(size, ALIGNMENT - 1, &padded))
        return NULL;
    padded &= ~(size_t)(ALIGNMENT - 1);
    struct inf_arena_block *block = arena->blocks;
    if (block == NULL || padded > block->size - arena->used_bytes)
        block = add_block(arena, INF_MAX(padded, next_size(arena)));
    if (block == NULL)
        return NULL;
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
