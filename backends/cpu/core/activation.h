// SPDX-License-Identifier: Apache-2.0
// Activations that an operator applies to its own result: their attributes, and whether the cpu
// device can compute them.
#ifndef INF_BACKENDS_CPU_CORE_ACTIVATION_H
#define INF_BACKENDS_CPU_CORE_ACTIVATION_H

#include "backends/cpu/core/kernel.h"

// A fused activation and its parameters, copied from the attributes of any operator that can have
// one.
struct inf_cpu_activation {
    enum inf_activation kind;
    float alpha, min, max;
};

// Returns INF_UNSUPPORTED if `activation` cannot be applied to a result with `channels` channels.
// `prelu` is the index of the node's operand that holds the slopes of a prelu; UINT32_MAX if the
// operator has no such operand.
enum inf_code inf_cpu_activation_check(const struct inf_graph *graph, const struct inf_node *node,
                                       const struct inf_cpu_activation *activation, uint32_t prelu,
                                       size_t channels, struct inf_error *err) INF_NODISCARD;

// Sets *min and *max to the bounds to which the activation clamps a result. An activation that does
// not clamp has the bounds minus and plus infinity.
void inf_cpu_activation_bounds(const struct inf_cpu_activation *activation, float *min, float *max);

// Returns the XNNPACK unary operator that computes an activation; INF_UNARY_COUNT if XNNPACK has no
// such operator.
enum inf_unary_kind inf_cpu_activation_unary(enum inf_activation activation);

// Returns the inner loop that computes an activation on the results of an operator, whether XNNPACK
// or a native kernel computed them; NULL if the activation needs no such loop.
inf_simd_map_fn *inf_cpu_activation_map(enum inf_activation activation,
                                        const struct inf_simd *simd);

// Returns true if XNNPACK accepts `alpha` as the parameter of `kind`, or if `kind` has no such
// parameter.
bool inf_cpu_unary_alpha_ok(enum inf_unary_kind kind, float alpha);

#endif
