// SPDX-License-Identifier: Apache-2.0
// What the kernels of our own share.
#ifndef INF_BACKENDS_CPU_NATIVE_NATIVE_H
#define INF_BACKENDS_CPU_NATIVE_NATIVE_H

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/core/xnn.h"

// values[i] = map(values[i]).
void inf_native_map(const struct inf_cpu_step *step, inf_simd_map_fn *map, size_t count,
                    float *values);

// The loop of a unary function without parameters; NULL where there is none.
inf_simd_map_fn *inf_native_map_of(const struct inf_simd *simd, enum inf_unary_kind kind);

// What happens to the results of a convolution before they are stored.
struct inf_native_end {
    const float *slopes; // below zero, one a channel; NULL: none
    float slope;         // of all channels; NAN: none
    float min, max;
    inf_simd_map_fn *map; // after the bounds; NULL: none
};

// INF_UNSUPPORTED where an end cannot do what the activation asks for.
enum inf_code inf_native_end_check(const struct inf_graph *graph, const struct inf_node *node,
                                   const struct inf_xnn_activation *activation, uint32_t prelu,
                                   size_t channels, struct inf_error *err) INF_NODISCARD;

// The end of an activation of a node of the step's graph that was accepted.
struct inf_native_end inf_native_end_of(const struct inf_cpu_step *step,
                                        const struct inf_node *node,
                                        const struct inf_xnn_activation *activation,
                                        uint32_t prelu);

// to[i] = the slope of channel i below `count`, to[i] = 1 from there to `width`. For ends that have
// slopes.
void inf_native_end_slopes(const struct inf_native_end *end, size_t count, size_t width, float *to);

// Whether an end has slopes of either kind.
bool inf_native_end_has_slopes(const struct inf_native_end *end);

// Uncleared memory, aligned to a cache line, that lives as long as the step. *out_floats is NULL
// where `count` is 0.
//
// INF_EXHAUSTED  there is none.
enum inf_code inf_native_alloc(float **out_floats, struct inf_cpu_step *step, size_t count,
                               struct inf_error *err) INF_NODISCARD;

// Makes sure that step->scratch has at least `count` floats in every run. The steps of a slot share
// them: what lies there does not last.
void inf_native_scratch(struct inf_cpu_step *step, size_t count);

// --- work ---

// How many threads of the step's pool should share `macs` multiply-adds, or as much of other work: few
// of them are done sooner by the calling thread than others join it. Counts them as work of the step.
size_t inf_native_workers(struct inf_cpu_step *step, size_t macs);

// `count` things in a row of which some are done in one go.
struct inf_native_split {
    void (*part)(const void *context, size_t first, size_t count);
    const void *context;
    size_t count, part_count;
};

// Does all parts of `split` with all threads.
void inf_native_split(const struct inf_cpu_step *step, const struct inf_native_split *split);

// Into how many strips `rows` rows are cut for `workers` threads, where `wanted` rows are a good
// strip.
size_t inf_native_strips(size_t rows, size_t wanted, size_t workers);

// The first row of strip `strip`: a multiple of `unit` below `rows`, or `rows`.
size_t inf_native_cut(size_t rows, size_t strips, size_t strip, size_t unit);

#endif
