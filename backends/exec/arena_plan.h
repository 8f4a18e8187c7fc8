// SPDX-License-Identifier: Apache-2.0
// Where tensors lie in an arena, each placed at the lowest offset at which no other lies that is
// alive at the same time. Behind plan.h, which users see.
#ifndef INF_BACKENDS_EXEC_ARENA_PLAN_H
#define INF_BACKENDS_EXEC_ARENA_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

// A tensor, alive from one step to another, both included.
struct inf_arena_item {
    uint32_t first_step, last_step;
    size_t size_bytes;
    size_t offset; // set by inf_arena_plan_place()
};

struct inf_arena_plan;

// An arena for at most `item_count` tensors and steps below `step_count`. *out_plan is the caller's
// to destroy.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_arena_plan_create(struct inf_arena_plan **out_plan, uint32_t item_count,
                                    uint32_t step_count, struct inf_error *err) INF_NODISCARD;

// Frees it; not the tensors. NULL is fine.
void inf_arena_plan_destroy(struct inf_arena_plan **plan);

// Places a tensor, which must stay where it is. The cost is in the number of those placed that live
// at the same time; once all costs together are beyond a limit, at the arena's end without looking.
void inf_arena_plan_place(struct inf_arena_plan *plan, struct inf_arena_item *item);

// The end of the tensor that lies farthest.
size_t inf_arena_plan_size(const struct inf_arena_plan *plan);

#endif
