// SPDX-License-Identifier: Apache-2.0
// The table of operators that have shaders, and the checks that all of them share.
#include "backends/vulkan/program/lower_node.h"

#include "backends/vulkan/ops/ops.h"

// --- the table of lowering functions, by operator ---
static vk_lower_fn *const lower_functions[INF_OP_COUNT] = {
    [INF_OP_UNARY] = vk_lower_unary,
    [INF_OP_BINARY] = vk_lower_binary,
    [INF_OP_COMPARE] = vk_lower_compare,
    [INF_OP_SELECT] = vk_lower_select,
    [INF_OP_CLIP] = vk_lower_clip,
    [INF_OP_PRELU] = vk_lower_prelu,
    [INF_OP_CAST] = vk_lower_cast,
    [INF_OP_REDUCE] = vk_lower_reduce,
    [INF_OP_ARG] = vk_lower_arg,
    [INF_OP_SOFTMAX] = vk_lower_softmax,
    [INF_OP_CONV2D] = vk_lower_conv2d,
    [INF_OP_DEPTHWISE_CONV2D] = vk_lower_depthwise,
    [INF_OP_CONV2D_TRANSPOSE] = vk_lower_conv2d_transpose,
    [INF_OP_MATMUL] = vk_lower_matmul,
    [INF_OP_MATMUL_BLOCKS] = vk_lower_matmul_blocks,
    [INF_OP_POOL2D] = vk_lower_pool,
    [INF_OP_BATCH_NORM] = vk_lower_batch_norm,
    [INF_OP_NORMALIZE] = vk_lower_normalize,
    [INF_OP_RESIZE] = vk_lower_resize,
    [INF_OP_IDENTITY] = vk_lower_copy,
    [INF_OP_RESHAPE] = vk_lower_copy,
    [INF_OP_EXPAND_DIMS] = vk_lower_copy,
    [INF_OP_SQUEEZE] = vk_lower_copy,
    [INF_OP_TRANSPOSE] = vk_lower_transpose,
    [INF_OP_CONCAT] = vk_lower_concat,
    [INF_OP_SPLIT] = vk_lower_split,
    [INF_OP_SLICE] = vk_lower_slice,
    [INF_OP_PAD] = vk_lower_pad,
    [INF_OP_TILE] = vk_lower_tile,
    [INF_OP_BROADCAST] = vk_lower_broadcast,
    [INF_OP_GATHER] = vk_lower_gather,
    [INF_OP_GATHER_ND] = vk_lower_gather_nd,
    [INF_OP_SPACE_TO_DEPTH] = vk_lower_space_to_depth,
    [INF_OP_DEPTH_TO_SPACE] = vk_lower_depth_to_space,
    [INF_OP_FILL] = vk_lower_fill,
    [INF_OP_QCONV2D] = vk_lower_qconv2d,
    [INF_OP_QMATMUL] = vk_lower_qmatmul,
    [INF_OP_QUANTIZE] = vk_lower_quantize,
    [INF_OP_DEQUANTIZE] = vk_lower_dequantize,
    [INF_OP_LOOKUP] = vk_lower_lookup,
    [INF_OP_QBINARY] = vk_lower_qbinary,
};

static enum inf_code check_value(const struct vk_lowering *lowering, uint32_t index,
                                 struct inf_error *err)
{
    if (index == INF_VALUE_NONE)
        return INF_OK;
    const struct inf_value *value = &lowering->graph->values[index];
    size_t size;
    if (inf_dtype_size(value->dtype) == 0 || !inf_shape_known(&value->shape) ||
        !inf_shape_bytes(&value->shape, value->dtype, &size))
        return vk_decline(lowering, err, "value '%s' is of unknown type or shape", value->name);
    if (size == 0)
        return vk_decline(lowering, err, "value '%s' is empty", value->name);
    // Decline larger tensors. Shaders compute element indices in signed 32-bit integers, and may go
    // a row beyond the last element.
    if (size > lowering->gpu->properties.limits.maxStorageBufferRange ||
        inf_shape_elements(&value->shape) > INT32_MAX / 4)
        return vk_decline(lowering, err, "value '%s' has %zu bytes, more than can be bound",
                          value->name, size);
    return INF_OK;
}

enum inf_code vk_lower_node(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_node *node = lowering->node;
    if (lower_functions[node->op] == NULL)
        return vk_decline(lowering, err, "not built");
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(check_value(lowering, node->inputs[i], err));
    for (uint32_t i = 0; i < node->output_count; i++)
        INF_TRY(check_value(lowering, node->outputs[i], err));
    return lower_functions[node->op](lowering, err);
}
