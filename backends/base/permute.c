// SPDX-License-Identifier: Apache-2.0
// Transposes in tiles.
//
// The problem: a loop over the elements of the copy reads the source in large steps. Each element
// comes from another cache line, which has left the cache when its next element is needed, so the
// loop takes several times as long as reading and writing the memory.
//
// The idea: two axes matter, the innermost axis of the copy (`last`) and the axis whose elements
// are adjacent in the source (`near`). Copy squares of these two axes, so that whole cache lines
// are read and written while they are in the cache:
//
//              near ->                      last ->
//     source   a b c d          copy        a e i
//              e f g h                      b f j
//              i j k l                      c g k ...
//
// Axes that the permutation leaves together are one axis first: OIHW to HWIO has the axes HW, I, O.
// Large arrays are copied on several cores, which take strips of the axis `last`.
#include "backends/base/permute.h"

#include <stdbool.h>
#include <string.h>

#include "backends/base/bulk/parallel.h"

#define TILE 16 // elements of a side of a square: a cache line of 4-byte elements

// The loops of one copy. Steps are in elements.
struct loops {
    uint32_t rank; // axes besides `near` and `last`
    size_t counts[INF_LIMIT_RANK], from_steps[INF_LIMIT_RANK], to_steps[INF_LIMIT_RANK];
    size_t near_count, near_to_step;
    size_t last_count, last_from_step;
};

// Joins axes that are adjacent in both arrays, and leaves out axes of one element.
static struct inf_permutation join_axes(const struct inf_permutation *permutation)
{
    struct inf_permutation joined = {.rank = 0};
    for (uint32_t i = 0; i < permutation->rank; i++) {
        size_t count = permutation->counts[i], step = permutation->steps[i];
        uint32_t end = joined.rank;
        if (count == 1)
            continue;
        if (end > 0 && joined.steps[end - 1] == step * count) {
            joined.counts[end - 1] *= count;
            joined.steps[end - 1] = step;
        } else {
            joined.counts[end] = count;
            joined.steps[end] = step;
            joined.rank++;
        }
    }
    return joined;
}

static struct loops plan_loops(const struct inf_permutation *joined)
{
    struct loops loops = {.near_count = 1, .last_count = 1, .last_from_step = 1, .near_to_step = 0};
    size_t to_step = 1;
    for (uint32_t i = joined->rank; i > 0; i--) {
        size_t count = joined->counts[i - 1], from_step = joined->steps[i - 1];
        if (i == joined->rank) {
            loops.last_count = count;
            loops.last_from_step = from_step;
        } else if (from_step == 1) {
            loops.near_count = count;
            loops.near_to_step = to_step;
        } else {
            loops.counts[loops.rank] = count;
            loops.from_steps[loops.rank] = from_step;
            loops.to_steps[loops.rank] = to_step;
            loops.rank++;
        }
        to_step *= count;
    }
    return loops;
}

static void copy_square(const struct loops *loops, uint32_t *to, const uint32_t *from,
                        size_t near_count, size_t last_count)
{
    for (size_t i = 0; i < near_count; i++)
        for (size_t k = 0; k < last_count; k++)
            to[i * loops->near_to_step + k] = from[i + k * loops->last_from_step];
}

// Copies `last_count` elements of the last axis, and all of the near axis.
static void copy_strip(const struct loops *loops, uint32_t *to, const uint32_t *from,
                       size_t last_count)
{
    if (loops->last_from_step == 1) {
        memcpy(to, from, last_count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < loops->near_count; i += TILE) {
        size_t near_count = loops->near_count - i < TILE ? loops->near_count - i : TILE;
        copy_square(loops, to + i * loops->near_to_step, from + i, near_count, last_count);
    }
}

// Moves to the next position of the other axes, the first one fastest. Returns false at the end.
static bool advance_position(const struct loops *loops, size_t at[], const uint32_t **from,
                             uint32_t **to)
{
    for (uint32_t i = 0; i < loops->rank; i++) {
        *from += loops->from_steps[i];
        *to += loops->to_steps[i];
        if (++at[i] < loops->counts[i])
            return true;
        *from -= loops->counts[i] * loops->from_steps[i];
        *to -= loops->counts[i] * loops->to_steps[i];
        at[i] = 0;
    }
    return false;
}

// A copy whose axis `last` is cut into strips of `width` elements.
struct copy {
    struct loops loops;
    size_t width;
    const uint32_t *from;
    uint32_t *to;
};

static void copy_strips(void *context, size_t piece)
{
    const struct copy *copy = context;
    const struct loops *loops = &copy->loops;
    size_t k = piece * copy->width;
    size_t last_count = loops->last_count - k < copy->width ? loops->last_count - k : copy->width;
    size_t at[INF_LIMIT_RANK] = {0};
    uint32_t *y = copy->to + k;
    const uint32_t *x = copy->from + k * loops->last_from_step;
    do
        copy_strip(loops, y, x, last_count);
    while (advance_position(loops, at, &x, &y));
}

void inf_permute_32(const struct inf_permutation *permutation, void *to, const void *from)
{
    size_t bytes = sizeof(uint32_t);
    for (uint32_t i = 0; i < permutation->rank; i++)
        bytes *= permutation->counts[i];
    if (bytes == 0)
        return;
    const struct inf_permutation joined = join_axes(permutation);
    struct copy copy = {.loops = plan_loops(&joined), .from = from, .to = to};
    copy.width = copy.loops.last_from_step == 1 ? copy.loops.last_count : TILE;
    inf_parallel_run(
        &(struct inf_parallel){.run = copy_strips,
                               .context = &copy,
                               .pieces = (copy.loops.last_count + copy.width - 1) / copy.width,
                               .bytes = bytes});
}
