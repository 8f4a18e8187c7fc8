// SPDX-License-Identifier: Apache-2.0
// Activations that an operator applies to its result: what they are, and whether the cpu device can compute them.
#ifndef INF_BACKENDS_CPU_CORE_ACTIVATION_H
#define INF_BACKENDS_CPU_CORE_ACTIVATION_H

#include "backends/cpu/core/kernel.h"

// The activation attributes that several operators have.
struct inf_cpu_activation {
    enum inf_activation kind;
    float alpha, min, max;
};

// INF_UNSUPPORTED where `activation` cannot be applied to a result of `channels` channels. `prelu`
// is the operand that holds the slopes, UINT32_MAX where the operator has none.
enum inf_code inf_cpu_activation_check(const struct inf_graph *graph, const struct inf_node *node,
                                       const struct inf_cpu_activation *activation, uint32_t prelu,
                                       size_t channels, struct inf_error *err) INF_NODISCARD;

// Bounds to clamp a result to on the way: those of the activation, or none.
void inf_cpu_activation_bounds(const struct inf_cpu_activation *activation, float *min, float *max);

// The unary operator that computes an activation; INF_UNARY_COUNT if the activation is none of these.
enum inf_unary_kind inf_cpu_activation_unary(enum inf_activation activation);

// Whether XNNPACK takes `alpha` for a kind that has one.
bool inf_cpu_unary_alpha_ok(enum inf_unary_kind kind, float alpha);

#endif
