// SPDX-License-Identifier: Apache-2.0
// Allocates memory for native steps, and divides their work among the threads of a slot.
#include "backends/cpu/native/work.h"

#include <assert.h>

#include "backends/cpu/core/counted_memory.h"
#include "proto/core/span.h"

// A parallel region uses one more thread for each WORKER_MACS multiply-adds. They take about 2 us
// on one core.
#define WORKER_MACS ((size_t)100000)
#define LINE_FLOATS ((size_t)16) // floats of a cache line

enum inf_code inf_native_alloc_floats(float **out_floats, struct inf_cpu_step *step, size_t count,
                                      struct inf_error *err)
{
    size_t size;
    *out_floats = NULL;
    if (count == 0)
        return INF_OK;
    if (inf_size_mul(count, sizeof(float), &size))
        *out_floats = inf_cpu_memory_alloc(&step->memory, size);
    if (*out_floats == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for %zu numbers", step->node->name, count);
    return INF_OK;
}

void inf_native_need_scratch(struct inf_cpu_step *step, size_t count)
{
    step->scratch_count = INF_MAX(step->scratch_count, count);
}

size_t inf_native_need_worker_scratch(struct inf_cpu_step *step, size_t workers, size_t count)
{
    size_t each = inf_size_align(count + LINE_FLOATS, LINE_FLOATS);
    inf_native_need_scratch(step, each * workers);
    return each;
}

size_t inf_native_choose_workers(struct inf_cpu_step *step, size_t macs)
{
    size_t threads = INF_MAX(step->team->threads, 1u);
    step->macs += macs;
    return INF_MIN(threads, macs / WORKER_MACS + 1);
}

static void split_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct inf_native_range *split = context;
    size_t first = tile * split->part_count;
    split->part(split->context, first, INF_MIN(split->part_count, split->count - first));
}

void inf_native_run_range(const struct inf_cpu_step *step, const struct inf_native_range *split)
{
    struct inf_cpu_tiles work = {split_tile, split,
                                 (split->count + split->part_count - 1) / split->part_count};
    inf_cpu_team_run_tiles(step->team, &work, SIZE_MAX);
}

size_t inf_native_choose_strips(size_t rows, size_t wanted, size_t workers)
{
    size_t strips = (rows + wanted - 1) / INF_MAX(wanted, 1u);
    // Make the number of strips a multiple of the number of threads, so that all threads get equal
    // work. With many strips this makes no difference.
    if (strips < 8 * workers)
        strips = (strips + workers - 1) / workers * workers;
    return INF_MAX(INF_MIN(strips, rows), 1u);
}

size_t inf_native_strip_start(size_t rows, size_t strips, size_t strip, size_t unit)
{
    assert(strip <= strips && unit > 0);
    size_t row = rows * strip / strips;
    return strip == strips ? rows : row - row % unit;
}
