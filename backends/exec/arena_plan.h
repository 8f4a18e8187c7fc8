// SPDX-License-Identifier: Apache-2.0
// Places tensors in an arena. Each tensor gets the lowest offset at which it overlaps no placed
// tensor that is alive at the same time. Private to plan.c.
#ifndef INF_BACKENDS_EXEC_ARENA_PLAN_H
#define INF_BACKENDS_EXEC_ARENA_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

// A tensor and its lifetime: the first and the last step at which it is alive.
struct inf_arena_item {
    uint32_t first_step, last_step;
    size_t size_bytes;
    size_t offset; // set by inf_arena_plan_place()
};

struct inf_arena_plan;

// Creates an empty arena for at most `item_count` tensors and for steps below `step_count`. The
// caller destroys *out_plan.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_arena_plan_create(struct inf_arena_plan **out_plan, uint32_t item_count,
                                    uint32_t step_count, struct inf_error *err) INF_NODISCARD;

// Frees the plan, but not the tensors. NULL is allowed.
void inf_arena_plan_destroy(struct inf_arena_plan **plan);

// Places a tensor; `item` must not move in memory afterwards. The cost is proportional to the
// number of placed tensors that are alive at the same time. When the total cost exceeds a limit,
// further tensors are placed at the end of the arena.
void inf_arena_plan_place(struct inf_arena_plan *plan, struct inf_arena_item *item);

// Returns the size of the arena: the end of the last tensor.
size_t inf_arena_plan_size(const struct inf_arena_plan *plan);

#endif
