// SPDX-License-Identifier: Apache-2.0
// The epilogue of products: what happens to the sums of a convolution or product before they are stored.
#ifndef INF_BACKENDS_CPU_NATIVE_EPILOGUE_H
#define INF_BACKENDS_CPU_NATIVE_EPILOGUE_H

#include "backends/cpu/core/activation.h"

// What happens to the results of a convolution before they are stored.
struct inf_native_epilogue {
    const float *slopes; // below zero, one a channel; NULL: none
    float slope;         // of all channels; NAN: none
    float min, max;
    inf_simd_map_fn *map; // after the bounds; NULL: none
};

// INF_UNSUPPORTED where an end cannot do what the activation asks for.
enum inf_code inf_native_epilogue_check(const struct inf_graph *graph, const struct inf_node *node,
                                        const struct inf_cpu_activation *activation, uint32_t prelu,
                                        size_t channels, struct inf_error *err) INF_NODISCARD;

// The end of an activation of a node of the step's graph that was accepted.
struct inf_native_epilogue inf_native_epilogue_of(const struct inf_cpu_step *step,
                                                  const struct inf_node *node,
                                                  const struct inf_cpu_activation *activation,
                                                  uint32_t prelu);

// to[i] = the slope of channel i below `count`, to[i] = 1 from there to `width`. For ends that have
// slopes.
void inf_native_epilogue_fill_slopes(const struct inf_native_epilogue *epilogue, size_t count,
                                     size_t width, float *to);

// Whether an end has slopes of either kind.
bool inf_native_epilogue_has_slopes(const struct inf_native_epilogue *epilogue);

#endif
