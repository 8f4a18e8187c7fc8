// SPDX-License-Identifier: Apache-2.0
// Functions with which kernels query a node of the graph: the shapes, constants and types of its
// operands.
#include "backends/cpu/core/kernel.h"

enum inf_code inf_cpu_restore_constants(const struct inf_graph *graph, uint32_t node,
                                        uint32_t packs, struct inf_error *err)
{
    const struct inf_node *of = &graph->nodes[node];
    for (uint32_t i = 0; i < of->input_count; i++) {
        struct inf_blob *blob =
            of->inputs[i] != INF_VALUE_NONE ? graph->values[of->inputs[i]].data : NULL;
        bool packed = i < 32 && (packs & INF_CPU_PACKS(i)) != 0;
        if (blob != NULL && !packed && !inf_blob_restore(blob))
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "node '%s': no memory for %zu bytes of weights", of->name,
                                   blob->size_bytes);
    }
    return INF_OK;
}

const struct inf_shape *inf_cpu_input_shape(const struct inf_graph *graph,
                                            const struct inf_node *node, uint32_t input)
{
    return &graph->values[node->inputs[input]].shape;
}

const struct inf_shape *inf_cpu_output_shape(const struct inf_graph *graph,
                                             const struct inf_node *node)
{
    return &graph->values[node->outputs[0]].shape;
}

bool inf_cpu_has_input(const struct inf_node *node, uint32_t input)
{
    return input < node->input_count && node->inputs[input] != INF_VALUE_NONE;
}

const float *inf_cpu_const_f32(const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t input)
{
    if (!inf_cpu_has_input(node, input))
        return NULL;
    return graph->values[node->inputs[input]].data->data;
}

enum inf_code inf_cpu_need_f32(const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t input, struct inf_error *err)
{
    const struct inf_value *value = &graph->values[node->inputs[input]];
    if (value->dtype == INF_DTYPE_F32)
        return INF_OK;
    return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: '%s' is %s, only FP32 is built",
                    inf_op_info(node->op)->name, value->name, inf_dtype_name(value->dtype));
}

enum inf_code inf_cpu_need_const(const struct inf_graph *graph, const struct inf_node *node,
                                 uint32_t input, size_t count, struct inf_error *err)
{
    if (!inf_cpu_has_input(node, input))
        return INF_OK;
    INF_TRY(inf_cpu_need_f32(graph, node, input, err));
    const struct inf_value *value = &graph->values[node->inputs[input]];
    if (!inf_graph_is_const(graph, node->inputs[input]))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: '%s' is no constant",
                        inf_op_info(node->op)->name, value->name);
    if (inf_shape_elements(&value->shape) != count)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: '%s' has %zu elements, not %zu",
                        inf_op_info(node->op)->name, value->name, inf_shape_elements(&value->shape),
                        count);
    return INF_OK;
}

enum inf_code inf_cpu_step_set_operands(struct inf_cpu_step *step, uint32_t x, uint32_t other,
                                        struct inf_error *err)
{
    uint32_t *operands = inf_arena_alloc(step->arena, 2 * sizeof(*operands));
    if (operands == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its operands", step->node->name);
    operands[0] = x;
    operands[1] = other;
    step->operands = operands;
    step->operand_count = other != INF_VALUE_NONE ? 2 : 1;
    return INF_OK;
}

enum inf_code inf_cpu_step_alloc_state(struct inf_cpu_step *step, size_t size,
                                       struct inf_error *err)
{
    step->state = inf_arena_alloc(step->arena, size);
    if (step->state == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for %zu bytes", step->node->name, size);
    return INF_OK;
}
