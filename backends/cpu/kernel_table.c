// SPDX-License-Identifier: Apache-2.0
// The table of all kernels of the cpu device, by family. The first kernel that supports a node
// computes it, unless a timing comparison of the candidates chooses another one.
#include "backends/cpu/core/kernel.h"

static const struct {
    const char *name;
    const struct inf_cpu_kernel *rows;
} families[] = {
    {"native_conv", inf_cpu_gemm_kernels},
    {"native_depthwise", inf_cpu_depthwise_kernels},
    {"conv_nd", inf_cpu_conv_nd_kernels},
    {"conv_transpose", inf_cpu_conv_transpose_kernels},
    {"xnn_conv", inf_cpu_conv_kernels},
    {"winograd_f2", inf_cpu_winograd_2_kernels},
    {"winograd_f4", inf_cpu_winograd_4_kernels},
    {"winograd_f6", inf_cpu_winograd_6_kernels},
    {"native_dense", inf_cpu_dense_kernels},
    {"xnn_matmul", inf_cpu_matmul_kernels},
    {"native_matmul", inf_cpu_product_kernels},
    {"xnn_pool", inf_cpu_max_pool_kernels},
    {"native_pool", inf_cpu_average_pool_kernels},
    {"xnn_unary", inf_cpu_unary_kernels},
    {"native_eltwise", inf_cpu_eltwise_kernels},
    {"native_reduce", inf_cpu_reduce_kernels},
    {"native_rnn", inf_cpu_rnn_kernels},
    {"native_pick", inf_cpu_pick_kernels},
    {"native_normalize", inf_cpu_normalize_kernels},
    {"native_softmax", inf_cpu_softmax_kernels},
    {"xnn_resample", inf_cpu_resample_kernels},
    {"native_move", inf_cpu_move_kernels},
    {"native_append", inf_cpu_append_kernels},
    {"native_gather", inf_cpu_gather_kernels},
    {"native_gather_nd", inf_cpu_gather_nd_kernels},
    {"native_strided", inf_cpu_strided_kernels},
    {"native_nearest", inf_cpu_nearest_kernels},
    {"native_element", inf_cpu_element_kernels},
    {"native_bilinear", inf_cpu_bilinear_kernels},
    {"q8_depthwise", inf_cpu_q8_depthwise_kernels},
    {"q8_product", inf_cpu_q8_product_kernels},
    {"q8_eltwise", inf_cpu_q8_eltwise_kernels},
    {"blocks", inf_cpu_blocks_kernels},
    {"plain_binary", inf_cpu_plain_binary_kernels},
    {"plain_reduce", inf_cpu_plain_reduce_kernels},
    {"channels", inf_cpu_channel_kernels},
    {"mirror_pad", inf_cpu_mirror_kernels},
    {"cumulate", inf_cpu_cumulate_kernels},
    {"nms", inf_cpu_nms_kernels},
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
    // A concat may have empty inputs, such as the key cache before the first token of a text.
    for (uint32_t i = 0; i < node->input_count && node->op != INF_OP_CONCAT; i++)
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
    // The reason of the first kernel that declines. It is reported only if all of them do, because
    // *err must not change if one can compute the node.
    struct inf_error first;
    for (size_t family = 0; family < INF_ARRAY_LENGTH(families); family++) {
        for (const struct inf_cpu_kernel *row = families[family].rows; row->create != NULL; row++) {
            if (row->op != node->op || row->needs_race)
                continue;
            enum inf_code answer =
                row->supports(graph, node, code == INF_OK && err != NULL ? &first : NULL);
            if (answer == INF_OK) {
                *out_kernel = row;
                return INF_OK;
            }
            code = answer;
        }
    }
    if (code != INF_OK && err != NULL)
        *err = first;
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
