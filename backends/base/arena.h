// SPDX-License-Identifier: Apache-2.0
// Memory that is freed all at once: bump allocation in growing blocks. One owner, no locking.
#ifndef INF_BACKENDS_BASE_ARENA_H
#define INF_BACKENDS_BASE_ARENA_H

#include <stddef.h>

#include "proto/core/attributes.h"

struct inf_arena_block;

// Embedded; all zero is an empty arena.
struct inf_arena {
    struct inf_arena_block *blocks; // newest first
    size_t used_bytes;              // in the newest block
};

// `size` zeroed bytes aligned to 16, valid until inf_arena_fini(); NULL without memory.
void *inf_arena_alloc(struct inf_arena *arena, size_t size) INF_NODISCARD;

// A copy of `text` in the arena; NULL without memory.
char *inf_arena_strdup(struct inf_arena *arena, const char *text) INF_NODISCARD;

// Frees everything; the arena is empty and may be used again.
void inf_arena_fini(struct inf_arena *arena);

#endif
