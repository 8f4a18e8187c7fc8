// SPDX-License-Identifier: Apache-2.0
// Places tensors in an arena, first fit by offset. A tensor may not overlap any tensor that is
// alive at the same time. To find these tensors without looking at all of them, the steps are cut
// into blocks. A tensor that lives in few blocks is listed in each of them; a tensor that lives in
// many blocks is in a separate list.
#include "backends/exec/arena_plan.h"

#include <stdlib.h>

#include "proto/core/span.h"

// Number of steps in a block. A tensor that lives in more than BLOCKS_FEW blocks is not listed in
// each of them, but in the separate list `across`.
#define BLOCK_STEPS 32u
#define BLOCKS_FEW  4u
// Limit of the work of all placements, about 0.5 s. The unit is one examined tensor; sorting costs
// WORK_SORT units for each tensor.
#define WORK_MOST ((uint64_t)1 << 26)
#define WORK_SORT 8u
#define END       UINT32_MAX

// An entry of the linked list of tensors that live in one block of steps.
struct entry {
    struct inf_arena_item *item;
    uint32_t next; // index of the next entry of the same block; END for the last one
};

struct inf_arena_plan {
    struct entry *entries;
    uint32_t entry_count;
    uint32_t *blocks;               // blocks[b]: index of the first entry of block b, or END
    struct inf_arena_item **across; // tensors that live in many blocks
    uint32_t across_count;
    struct inf_arena_item **near; // tensors that are alive together with the tensor being placed
    uint32_t near_count;
    size_t size_bytes;
    uint64_t work;
};

static uint32_t block_of(uint32_t step)
{
    return step / BLOCK_STEPS;
}

enum inf_code inf_arena_plan_create(struct inf_arena_plan **out_plan, uint32_t item_count,
                                    uint32_t step_count, struct inf_error *err)
{
    struct inf_arena_plan *plan = calloc(1, sizeof *plan);
    uint32_t block_count = block_of(step_count) + 1;
    if (plan != NULL) {
        plan->entries = calloc((size_t)item_count * BLOCKS_FEW + 1, sizeof *plan->entries);
        plan->blocks = malloc(block_count * sizeof *plan->blocks);
        plan->across = calloc((size_t)item_count + 1, sizeof *plan->across);
        plan->near = calloc((size_t)item_count + 1, sizeof *plan->near);
    }
    if (plan == NULL || plan->entries == NULL || plan->blocks == NULL || plan->across == NULL ||
        plan->near == NULL) {
        inf_arena_plan_destroy(&plan);
        return inf_fail(err, INF_EXHAUSTED, "no memory to plan %u steps", step_count);
    }
    for (uint32_t i = 0; i < block_count; i++)
        plan->blocks[i] = END;
    *out_plan = plan;
    return INF_OK;
}

void inf_arena_plan_destroy(struct inf_arena_plan **plan)
{
    struct inf_arena_plan *gone = *plan;
    *plan = NULL;
    if (gone == NULL)
        return;
    free(gone->entries);
    free(gone->blocks);
    free(gone->across);
    free(gone->near);
    free(gone);
}

size_t inf_arena_plan_size(const struct inf_arena_plan *plan)
{
    return plan->size_bytes;
}

// --- finding the tensors that are alive at the same time as a given tensor ---

static bool lifetimes_overlap(const struct inf_arena_item *a, const struct inf_arena_item *b)
{
    return a->first_step <= b->last_step && b->first_step <= a->last_step;
}

static void add_neighbour(struct inf_arena_plan *plan, struct inf_arena_item *item)
{
    uint32_t first = block_of(item->first_step);
    uint32_t last = block_of(item->last_step);
    if (last - first >= BLOCKS_FEW) {
        plan->across[plan->across_count++] = item;
        return;
    }
    for (uint32_t block = first; block <= last; block++) {
        plan->entries[plan->entry_count] = (struct entry){item, plan->blocks[block]};
        plan->blocks[block] = plan->entry_count++;
    }
}

static void find_near(struct inf_arena_plan *plan, const struct inf_arena_item *item)
{
    uint32_t first = block_of(item->first_step);
    plan->near_count = 0;
    for (uint32_t i = 0; i < plan->across_count; i++)
        if (lifetimes_overlap(item, plan->across[i]))
            plan->near[plan->near_count++] = plan->across[i];
    plan->work += plan->across_count;
    for (uint32_t block = first; block <= block_of(item->last_step); block++) {
        plan->work++;
        for (uint32_t e = plan->blocks[block]; e != END; e = plan->entries[e].next) {
            struct inf_arena_item *other = plan->entries[e].item;
            plan->work++;
            // Two tensors may live in several common blocks. Add the other tensor only in the first
            // common block.
            if (block == INF_MAX(first, block_of(other->first_step)) &&
                lifetimes_overlap(item, other))
                plan->near[plan->near_count++] = other;
        }
    }
}

// --- choosing the offset of a tensor in the arena ---

static int lower_first(const void *a, const void *b)
{
    const struct inf_arena_item *const *left = a;
    const struct inf_arena_item *const *right = b;
    return ((*left)->offset > (*right)->offset) - ((*left)->offset < (*right)->offset);
}

static size_t lowest_gap(const struct inf_arena_plan *plan, const struct inf_arena_item *item)
{
    size_t offset = 0;
    for (uint32_t i = 0; i < plan->near_count; i++) {
        const struct inf_arena_item *other = plan->near[i];
        if (offset + item->size_bytes <= other->offset)
            break;
        offset = INF_MAX(offset, other->offset + other->size_bytes);
    }
    return offset;
}

void inf_arena_plan_place(struct inf_arena_plan *plan, struct inf_arena_item *item)
{
    item->offset = plan->size_bytes;
    if (plan->work < WORK_MOST) {
        find_near(plan, item);
        qsort(plan->near, plan->near_count, sizeof *plan->near, lower_first);
        plan->work += (uint64_t)plan->near_count * WORK_SORT;
        item->offset = lowest_gap(plan, item);
        add_neighbour(plan, item);
    }
    plan->size_bytes = INF_MAX(plan->size_bytes, item->offset + item->size_bytes);
}
