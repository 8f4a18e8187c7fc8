// SPDX-License-Identifier: Apache-2.0
// How native kernels get memory and share their work among threads.
#ifndef INF_BACKENDS_CPU_NATIVE_WORK_H
#define INF_BACKENDS_CPU_NATIVE_WORK_H

#include "backends/cpu/core/kernel.h"

// Uncleared memory, aligned to a cache line, that lives as long as the step. *out_floats is NULL
// where `count` is 0.
//
// INF_EXHAUSTED  there is none.
enum inf_code inf_native_alloc_floats(float **out_floats, struct inf_cpu_step *step, size_t count,
                                      struct inf_error *err) INF_NODISCARD;

// Makes sure that step->scratch has at least `count` floats in every run. The steps of a slot share
// them: what lies there does not last.
void inf_native_need_scratch(struct inf_cpu_step *step, size_t count);

// How many threads of the step's pool should share `macs` multiply-adds, or as much of other work: few
// of them are done sooner by the calling thread than others join it. Counts them as work of the step.
size_t inf_native_choose_workers(struct inf_cpu_step *step, size_t macs);

// `count` things in a row of which some are done in one go.
struct inf_native_range {
    void (*part)(const void *context, size_t first, size_t count);
    const void *context;
    size_t count, part_count;
};

// Does all parts of `split` with all threads.
void inf_native_run_range(const struct inf_cpu_step *step, const struct inf_native_range *split);

// Into how many strips `rows` rows are cut for `workers` threads, where `wanted` rows are a good
// strip.
size_t inf_native_choose_strips(size_t rows, size_t wanted, size_t workers);

// The first row of strip `strip`: a multiple of `unit` below `rows`, or `rows`.
size_t inf_native_strip_start(size_t rows, size_t strips, size_t strip, size_t unit);

#endif
