// SPDX-License-Identifier: Apache-2.0
// Checks whether the cpu device can compute a fused activation (an activation that an operator
// applies to its own result), and converts clamping activations to a minimum and a maximum. The
// kernels themselves apply the activation.
#include "backends/cpu/core/activation.h"

#include <math.h>

bool inf_cpu_unary_alpha_ok(enum inf_unary_kind kind, float alpha)
{
    if (kind == INF_UNARY_ELU)
        return isnormal(alpha) && alpha > 0.0f;
    if (kind == INF_UNARY_LEAKY_RELU)
        return isfinite(alpha);
    return true;
}

// Returns the XNNPACK unary operator that computes an activation; INF_UNARY_COUNT if XNNPACK has no
// such operator.
enum inf_unary_kind inf_cpu_activation_unary(enum inf_activation activation)
{
    switch (activation) {
    case INF_ACTIVATION_ELU:
    case INF_ACTIVATION_LEAKY_RELU:
    case INF_ACTIVATION_HARD_SWISH:
        return inf_activation_unary(activation);
    default:
        return INF_UNARY_COUNT;
    }
}

inf_simd_map_fn *inf_cpu_activation_map(enum inf_activation activation, const struct inf_simd *simd)
{
    switch (activation) {
    case INF_ACTIVATION_TANH:
        return simd->tanh;
    case INF_ACTIVATION_SIGMOID:
        return simd->sigmoid;
    case INF_ACTIVATION_SILU:
        return simd->silu;
    case INF_ACTIVATION_GELU:
        return simd->gelu;
    case INF_ACTIVATION_GELU_TANH:
        return simd->gelu_tanh;
    default:
        return NULL;
    }
}

enum inf_code inf_cpu_activation_check(const struct inf_graph *graph, const struct inf_node *node,
                                       const struct inf_cpu_activation *activation, uint32_t prelu,
                                       size_t channels, struct inf_error *err)
{
    const char *op = inf_op_info(node->op)->name;
    // XNNPACK refuses an empty interval [min, max]. Writing the condition as !(min < max) also
    // declines bounds that are NaN.
    if (activation->kind == INF_ACTIVATION_CLIP && !(activation->min < activation->max))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: clip from %g to %g is no interval", op,
                        (double)activation->min, (double)activation->max);
    if (activation->kind == INF_ACTIVATION_PRELU) {
        if (prelu == UINT32_MAX || !inf_cpu_has_input(node, prelu))
            return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: prelu without slopes", op);
        return inf_cpu_need_const(graph, node, prelu, channels, err);
    }
    enum inf_unary_kind kind = inf_cpu_activation_unary(activation->kind);
    if (kind != INF_UNARY_COUNT && !inf_cpu_unary_alpha_ok(kind, activation->alpha))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: %s with alpha %g is not built", op,
                        inf_activation_name(activation->kind), (double)activation->alpha);
    return INF_OK;
}

void inf_cpu_activation_bounds(const struct inf_cpu_activation *activation, float *min, float *max)
{
    *min = -INFINITY;
    *max = INFINITY;
    if (activation->kind == INF_ACTIVATION_RELU || activation->kind == INF_ACTIVATION_RELU6)
        *min = 0.0f;
    if (activation->kind == INF_ACTIVATION_RELU6)
        *max = 6.0f;
    if (activation->kind == INF_ACTIVATION_CLIP) {
        *min = activation->min;
        *max = activation->max;
    }
}
