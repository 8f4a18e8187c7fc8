// SPDX-License-Identifier: Apache-2.0
// Epilogues: the operations that are applied to the sums of a convolution or product before the
// sums are stored.
#ifndef INF_BACKENDS_CPU_NATIVE_EPILOGUE_H
#define INF_BACKENDS_CPU_NATIVE_EPILOGUE_H

#include "backends/cpu/core/activation.h"
#include "backends/cpu/native/fusion.h"

// An epilogue first multiplies negative values by a slope, then clamps all values, then applies
// `map`.
struct inf_native_epilogue {
    const float *slopes; // slope of each channel; NULL: channels have no slopes of their own
    float slope;         // slope of all channels; NAN: there is no such slope
    float min, max;
    inf_simd_map_fn *map; // NULL: no function is applied
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

// Returns the epilogue of a fused chain: the activation of the chain's add, or of its conv2d if
// there is no add, and the slopes of the chain's prelu, if there is one. Sets
// *out_residual_channels to the number of channels of the residual; 0 if there is no add.
struct inf_native_epilogue inf_native_epilogue_of_chain(const struct inf_cpu_step *step,
                                                        const struct inf_cpu_chain *chain,
                                                        size_t *out_residual_channels);

// Writes the slopes of `count` channels to `to`, followed by ones up to `width` elements, for the
// padding columns. May only be called if the epilogue has slopes.
void inf_native_epilogue_fill_slopes(const struct inf_native_epilogue *epilogue, size_t count,
                                     size_t width, float *to);

// Returns true if the epilogue has slopes: either one common slope, or one for each channel.
bool inf_native_epilogue_has_slopes(const struct inf_native_epilogue *epilogue);

#endif
