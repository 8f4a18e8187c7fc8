// SPDX-License-Identifier: Apache-2.0
// Memory and work sharing of native kernels.
#ifndef INF_BACKENDS_CPU_NATIVE_WORK_H
#define INF_BACKENDS_CPU_NATIVE_WORK_H

#include "backends/cpu/core/kernel.h"

// Allocates `count` floats, uninitialised and aligned to a cache line, that are freed with the
// step. *out_floats is NULL if `count` is 0.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_native_alloc_floats(float **out_floats, struct inf_cpu_step *step, size_t count,
                                      struct inf_error *err) INF_NODISCARD;

// Requests at least `count` floats of step->scratch in every run. The steps of a slot share this
// memory, so its contents do not survive a run.
void inf_native_need_scratch(struct inf_cpu_step *step, size_t count);

// Returns how many threads should share `macs` multiply-adds, or as much other work. Small work is
// done by the calling thread before others could join. Adds `macs` to the work of the step.
size_t inf_native_choose_workers(struct inf_cpu_step *step, size_t macs);

// `count` items, of which `part_count` are processed at a time.
struct inf_native_range {
    void (*part)(const void *context, size_t first, size_t count);
    const void *context;
    size_t count, part_count;
};

// Processes all parts of `split` on all threads.
void inf_native_run_range(const struct inf_cpu_step *step, const struct inf_native_range *split);

// Returns into how many strips `rows` rows are cut for `workers` threads, if `wanted` rows are a
// good strip.
size_t inf_native_choose_strips(size_t rows, size_t wanted, size_t workers);

// Returns the first row of strip `strip`: a multiple of `unit`, or `rows` after the last strip.
size_t inf_native_strip_start(size_t rows, size_t strips, size_t strip, size_t unit);

#endif
