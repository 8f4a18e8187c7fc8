// SPDX-License-Identifier: Apache-2.0
// Epilogues: what happens to the sums of a convolution or product before they are stored.
#ifndef INF_BACKENDS_CPU_NATIVE_EPILOGUE_H
#define INF_BACKENDS_CPU_NATIVE_EPILOGUE_H

#include "backends/cpu/core/activation.h"

// Applied in this order: negative values are multiplied by a slope, all values are clamped, then
// mapped.
struct inf_native_epilogue {
    const float *slopes; // slope of each channel; NULL: none
    float slope;         // slope of all channels; NAN: none
    float min, max;
    inf_simd_map_fn *map; // NULL: none
};

// Returns INF_UNSUPPORTED if an epilogue cannot compute the activation. `prelu` is the operand that
// holds slopes.
enum inf_code inf_native_epilogue_check(const struct inf_graph *graph, const struct inf_node *node,
                                        const struct inf_cpu_activation *activation, uint32_t prelu,
                                        size_t channels, struct inf_error *err) INF_NODISCARD;

// Returns the epilogue for an activation that inf_native_epilogue_check() accepted.
struct inf_native_epilogue inf_native_epilogue_of(const struct inf_cpu_step *step,
                                                  const struct inf_node *node,
                                                  const struct inf_cpu_activation *activation,
                                                  uint32_t prelu);

// Writes the slopes of `count` channels to `to`, and 1 from there to `width`. Only for epilogues
// with slopes.
void inf_native_epilogue_fill_slopes(const struct inf_native_epilogue *epilogue, size_t count,
                                     size_t width, float *to);

// Returns true if the epilogue has slopes, common or one for each channel.
bool inf_native_epilogue_has_slopes(const struct inf_native_epilogue *epilogue);

#endif
