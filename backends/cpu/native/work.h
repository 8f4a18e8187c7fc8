// SPDX-License-Identifier: Apache-2.0
// Allocates memory for native kernels, and divides their work among the threads of a slot.
#ifndef INF_BACKENDS_CPU_NATIVE_WORK_H
#define INF_BACKENDS_CPU_NATIVE_WORK_H

#include "backends/cpu/core/kernel.h"

// Allocates `count` floats, uninitialised and aligned to a cache line. They are freed with the
// step. *out_floats is NULL if `count` is 0.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_native_alloc_floats(float **out_floats, struct inf_cpu_step *step, size_t count,
                                      struct inf_error *err) INF_NODISCARD;

// Makes step->scratch at least `count` floats large in every run. All steps of a slot (one
// concurrent run) share this memory, so its contents do not survive a run.
void inf_native_need_scratch(struct inf_cpu_step *step, size_t count);

// As inf_native_need_scratch(), with `count` floats for each of `workers` workers. Returns the
// distance between the scratch memory of two workers, in floats. It is `count` rounded up to whole
// cache lines, and one line more, so that two workers never write to the same line.
size_t inf_native_need_worker_scratch(struct inf_cpu_step *step, size_t workers, size_t count);

// Returns how many threads should share work that takes as long as `macs` multiply-adds. Small work
// gets one thread, because the calling thread finishes it before other threads could join. Adds
// `macs` to the work of the step.
size_t inf_native_choose_workers(struct inf_cpu_step *step, size_t macs);

// A range of `count` items that is processed in parts of `part_count` items.
struct inf_native_range {
    void (*part)(const void *context, size_t first, size_t count);
    const void *context;
    size_t count, part_count;
};

// Processes all parts of the range `split` on the threads of the step.
void inf_native_run_range(const struct inf_cpu_step *step, const struct inf_native_range *split);

// Returns the number of strips into which to cut `rows` rows for `workers` threads. `wanted` is the
// preferred number of rows of a strip.
size_t inf_native_choose_strips(size_t rows, size_t wanted, size_t workers);

// Returns the first row of strip `strip`, which is a multiple of `unit`. If `strip` is the number
// of strips, returns `rows`, so that strip i always ends where strip i + 1 starts.
size_t inf_native_strip_start(size_t rows, size_t strips, size_t strip, size_t unit);

#endif
