// SPDX-License-Identifier: Apache-2.0
// Converts the activation of a node to an epilogue: slopes for negative values, bounds for
// clamping, and a function.
#include "backends/cpu/native/epilogue.h"

#include <math.h>

#include "backends/cpu/core/activation.h"

enum inf_code inf_native_epilogue_check(const struct inf_graph *graph, const struct inf_node *node,
                                        const struct inf_cpu_activation *activation, uint32_t prelu,
                                        size_t channels, struct inf_error *err)
{
    if (activation->kind == INF_ACTIVATION_ELU)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: elu is not built here",
                        inf_op_info(node->op)->name);
    if (activation->kind == INF_ACTIVATION_LEAKY_RELU && !isfinite(activation->alpha))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: a slope is NaN or infinite",
                        inf_op_info(node->op)->name);
    return inf_cpu_activation_check(graph, node, activation, prelu, channels, err);
}

struct inf_native_epilogue inf_native_epilogue_of(const struct inf_cpu_step *step,
                                                  const struct inf_node *node,
                                                  const struct inf_cpu_activation *activation,
                                                  uint32_t prelu)
{
    struct inf_native_epilogue epilogue = {.slope = NAN};
    inf_cpu_activation_bounds(activation, &epilogue.min, &epilogue.max);
    if (activation->kind == INF_ACTIVATION_PRELU)
        epilogue.slopes = inf_cpu_const_f32(step->graph, node, prelu);
    if (activation->kind == INF_ACTIVATION_LEAKY_RELU)
        epilogue.slope = activation->alpha;
    epilogue.map = inf_cpu_activation_map(activation->kind, step->isa->simd);
    if (activation->kind == INF_ACTIVATION_HARD_SWISH)
        epilogue.map = step->isa->simd->hard_swish;
    return epilogue;
}

struct inf_native_epilogue inf_native_epilogue_of_chain(const struct inf_cpu_step *step,
                                                        const struct inf_cpu_chain *chain,
                                                        size_t *out_residual_channels)
{
    const struct inf_graph *graph = step->graph;
    const struct inf_node *node = &graph->nodes[chain->conv];
    const struct inf_attrs_conv2d *of_conv = &node->attrs.conv2d;
    struct inf_cpu_activation activation = {of_conv->activation, of_conv->activation_alpha,
                                            of_conv->activation_min, of_conv->activation_max};
    *out_residual_channels = 0;
    if (chain->add != INF_NODE_NONE) {
        const struct inf_shape *added = &graph->values[chain->residual].shape;
        const struct inf_attrs_binary *attrs = &graph->nodes[chain->add].attrs.binary;
        *out_residual_channels = (size_t)added->dims[added->rank - 1];
        activation = (struct inf_cpu_activation){
            .kind = attrs->activation, .min = attrs->activation_min, .max = attrs->activation_max};
    }
    struct inf_native_epilogue epilogue = inf_native_epilogue_of(step, node, &activation, 3);
    if (chain->prelu != INF_NODE_NONE)
        epilogue.slopes = inf_cpu_const_f32(graph, &graph->nodes[chain->prelu], 1);
    return epilogue;
}

bool inf_native_epilogue_has_slopes(const struct inf_native_epilogue *epilogue)
{
    return epilogue->slopes != NULL || !isnan(epilogue->slope);
}

void inf_native_epilogue_fill_slopes(const struct inf_native_epilogue *epilogue, size_t count,
                                     size_t width, float *to)
{
    for (size_t i = 0; i < width; i++)
        to[i] = i >= count                 ? 1.0f
                : epilogue->slopes != NULL ? epilogue->slopes[i]
                                           : epilogue->slope;
}
