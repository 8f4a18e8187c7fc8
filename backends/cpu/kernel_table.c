// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/core/kernel.h"

static const struct {
    const char *name;
    const struct inf_cpu_kernel *rows;
} families[] = {
    {"own_conv", inf_cpu_gemm_kernels},
    {"own_depthwise", inf_cpu_depthwise_kernels},
    {"xnn_conv", inf_cpu_conv_kernels},
    {"own_dense", inf_cpu_dense_kernels},
    {"xnn_matmul", inf_cpu_matmul_kernels},
    {"own_matmul", inf_cpu_product_kernels},
    {"xnn_pool", inf_cpu_pool_kernels},
    {"xnn_unary", inf_cpu_unary_kernels},
    {"own_eltwise", inf_cpu_eltwise_kernels},
    {"own_reduce", inf_cpu_reduce_kernels},
    {"own_rnn", inf_cpu_rnn_kernels},
    {"own_pick", inf_cpu_pick_kernels},
    {"own_normalize", inf_cpu_normalize_kernels},
    {"xnn_resample", inf_cpu_resample_kernels},
    {"own_move", inf_cpu_move_kernels},
    {"own_strided", inf_cpu_strided_kernels},
    {"own_nearest", inf_cpu_nearest_kernels},
    {"own_element", inf_cpu_element_kernels},
    {"own_bilinear", inf_cpu_bilinear_kernels},
    {"q8_depthwise", inf_cpu_q8_depthwise_kernels},
    {"q8_product", inf_cpu_q8_product_kernels},
    {"q8_eltwise", inf_cpu_q8_eltwise_kernels},
};

static enum inf_code check_operand(const struct inf_graph *graph, const struct inf_node *node,
                                   uint32_t value, struct inf_error *err)
{
    size_t count;
    if (value == INF_VALUE_NONE)
        return INF_OK;
    if (!inf_shape_count(&graph->values[value].shape, &count))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: the shape of '%s' is not known",
                        inf_op_info(node->op)->name, graph->values[value].name);
    if (count == 0)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: '%s' has no elements",
                        inf_op_info(node->op)->name, graph->values[value].name);
    return INF_OK;
}

static enum inf_code check_operands(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(check_operand(graph, node, node->inputs[i], err));
    for (uint32_t i = 0; i < node->output_count; i++)
        INF_TRY(check_operand(graph, node, node->outputs[i], err));
    return INF_OK;
}

enum inf_code inf_cpu_kernel_find(const struct inf_cpu_kernel **out_kernel,
                                  const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err)
{
    INF_TRY(check_operands(graph, node, err));
    enum inf_code code = INF_OK;
    for (size_t family = 0; family < INF_ARRAY_LENGTH(families); family++) {
        for (const struct inf_cpu_kernel *row = families[family].rows; row->create != NULL; row++) {
            if (row->op != node->op)
                continue;
            // The first row's reason is the one that is told.
            enum inf_code answer = row->supports(graph, node, code == INF_OK ? err : NULL);
            if (answer == INF_OK) {
                *out_kernel = row;
                return INF_OK;
            }
            code = answer;
        }
    }
    if (code != INF_OK)
        return code;
    return inf_fail(err, INF_UNSUPPORTED, "cpu: there is no kernel for %s",
                    inf_op_info(node->op)->name);
}

uint32_t inf_cpu_kernel_list(struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES],
                             const struct inf_graph *graph, const struct inf_node *node)
{
    uint32_t count = 0;
    if (check_operands(graph, node, NULL) != INF_OK)
        return 0;
    for (size_t family = 0; family < INF_ARRAY_LENGTH(families); family++)
        for (const struct inf_cpu_kernel *row = families[family].rows; row->create != NULL; row++)
            if (row->op == node->op && count < INF_CPU_CANDIDATES &&
                row->supports(graph, node, NULL) == INF_OK)
                candidates[count++] =
                    (struct inf_cpu_candidate){.kernel = row, .family = families[family].name};
    return count;
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

enum inf_code inf_cpu_state(struct inf_cpu_step *step, size_t size, struct inf_error *err)
{
    step->state = inf_arena_alloc(step->arena, size);
    if (step->state == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for %zu bytes", step->node->name, size);
    return INF_OK;
}
