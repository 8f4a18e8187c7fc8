// SPDX-License-Identifier: Apache-2.0
// Memory that is freed all at once: bump allocation in growing blocks. An arena has one owner and
// no lock.
#ifndef INF_BACKENDS_BASE_ARENA_H
#define INF_BACKENDS_BASE_ARENA_H

#include <stddef.h>

#include "proto/core/attributes.h"

struct inf_arena_block;

// Embedded in its owner. A zeroed struct is an empty arena.
struct inf_arena {
    struct inf_arena_block *blocks; // list of blocks; allocations come from the first one
    size_t used_bytes;              // bytes in use in the first block
};

// Returns `size` zeroed bytes aligned to 16, valid until inf_arena_fini(); NULL if memory is
// exhausted.
void *inf_arena_alloc(struct inf_arena *arena, size_t size) INF_NODISCARD;

// Returns a copy of `text` in the arena; NULL if memory is exhausted.
char *inf_arena_strdup(struct inf_arena *arena, const char *text) INF_NODISCARD;

// Frees all memory. The arena is empty then and may be used again.
void inf_arena_fini(struct inf_arena *arena);

#endif
