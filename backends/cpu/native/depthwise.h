// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions: describes a node, and computes rows of its result.
#ifndef INF_BACKENDS_CPU_NATIVE_DEPTHWISE_H
#define INF_BACKENDS_CPU_NATIVE_DEPTHWISE_H

#include "backends/cpu/kernels/nn.h"
#include "backends/cpu/native/epilogue.h"
#include "backends/graph/shape/infer.h"

struct inf_native_depthwise {
    struct inf_window height, width;
    size_t channels;
    size_t rows_max; // most rows of results in one kernel call
    inf_depthwise_fn *full, *half;
    size_t full_channels; // channels that `full` computes; `half` computes the other channels
    const float *w, *bias, *slopes;
    struct inf_native_epilogue epilogue;
    // True if the kernel prefetches the input, because the input was written too long ago to be in
    // the cache.
    bool prefetches;
};

// Returns INF_UNSUPPORTED if these kernels cannot compute the depthwise_conv2d node.
enum inf_code inf_native_depthwise_check(const struct inf_graph *graph, const struct inf_node *node,
                                         struct inf_error *err) INF_NODISCARD;

// Describes a node that inf_native_depthwise_check() accepted, and packs its weights. The packed
// weights are freed with `step`.
enum inf_code inf_native_depthwise_init(struct inf_native_depthwise *depthwise,
                                        struct inf_cpu_step *step, const struct inf_node *node,
                                        struct inf_error *err) INF_NODISCARD;

// Computes rows `first` to `end` (exclusive) of the result for the image `x`, and writes them to
// `y`. Row r of x is at index r % x_rows.
void inf_native_depthwise_rows(const struct inf_native_depthwise *depthwise, const float *x,
                               size_t x_rows, size_t first, size_t end, float *y);

#endif
