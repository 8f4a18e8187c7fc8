// SPDX-License-Identifier: Apache-2.0
// Helpers for the functions in ops/, which lower nodes: they query a node and fill in a dispatch.
#include "backends/vulkan/lowering/lowering.h"

#include <assert.h>
#include <string.h>

#include "backends/graph/shape/infer.h"

struct vk_lowering vk_lowering_of(struct vk_gpu *gpu, const struct inf_segment *segment,
                                  uint32_t node)
{
    bool pinned = segment->pinned != NULL && segment->pinned[node];
    return (struct vk_lowering){.gpu = gpu,
                                .graph = segment->graph,
                                .node = &segment->graph->nodes[node],
                                .node_index = node,
                                .lowered = segment->lowered,
                                .known_until_ns = segment->races.known_until_ns,
                                .half_weights =
                                    segment->precision == INF_PRECISION_FP16 && !pinned};
}

void vk_read_through_view(const struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                          uint32_t index, bool vectors)
{
    if (!lowering->gpu->texels || dispatch->operands[index].words)
        return;
    dispatch->operands[index].texel = vectors ? VK_TEXEL_VECTOR : VK_TEXEL_NUMBER;
    dispatch->variant.texels = 1;
}

void vk_set_push_constants(struct vk_dispatch *dispatch, const void *block, size_t size_bytes)
{
    assert(size_bytes <= VK_PUSH_BYTES_MAX);
    memcpy(dispatch->push, block, size_bytes);
    dispatch->push_bytes = (uint32_t)size_bytes;
}

const struct inf_shape *vk_input_shape(const struct vk_lowering *lowering, uint32_t index)
{
    return &lowering->graph->values[lowering->node->inputs[index]].shape;
}

const struct inf_shape *vk_output_shape(const struct vk_lowering *lowering, uint32_t index)
{
    return &lowering->graph->values[lowering->node->outputs[index]].shape;
}

enum inf_dtype vk_input_dtype(const struct vk_lowering *lowering, uint32_t index)
{
    return lowering->graph->values[lowering->node->inputs[index]].dtype;
}

enum inf_dtype vk_output_dtype(const struct vk_lowering *lowering, uint32_t index)
{
    return lowering->graph->values[lowering->node->outputs[index]].dtype;
}

bool vk_has_input(const struct vk_lowering *lowering, uint32_t index)
{
    return index < lowering->node->input_count && lowering->node->inputs[index] != INF_VALUE_NONE;
}

int32_t vk_resolve_axis(int64_t axis, int32_t rank)
{
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

uint32_t vk_dims_product(const struct inf_shape *shape, int32_t first, int32_t last)
{
    uint32_t product = 1;
    for (int32_t i = first; i < last; i++)
        product *= (uint32_t)shape->dims[i];
    return product;
}

enum inf_code vk_need_f32(const struct vk_lowering *lowering, uint32_t index, struct inf_error *err)
{
    enum inf_dtype dtype = vk_input_dtype(lowering, index);
    if (dtype == INF_DTYPE_F32)
        return INF_OK;
    return vk_decline(lowering, err, "input %u is %s, wanted f32", index, inf_dtype_name(dtype));
}

enum inf_code vk_need_byte_storage(const struct vk_lowering *lowering, struct inf_error *err)
{
    if (lowering->gpu->byte_storage)
        return INF_OK;
    return vk_decline(lowering, err, "the driver has no 8-bit storage");
}

enum inf_code vk_need_const(const struct vk_lowering *lowering, uint32_t index, size_t count,
                            struct inf_error *err)
{
    if (!vk_has_input(lowering, index))
        return INF_OK;
    INF_TRY(vk_need_f32(lowering, index, err));
    if (!inf_graph_is_const(lowering->graph, lowering->node->inputs[index]))
        return vk_decline(lowering, err, "input %u is not constant", index);
    size_t has = inf_shape_elements(vk_input_shape(lowering, index));
    if (has != count)
        return vk_decline(lowering, err, "input %u has %zu elements, wanted %zu", index, has,
                          count);
    return INF_OK;
}

const void *vk_const_data(const struct vk_lowering *lowering, uint32_t index)
{
    if (!vk_has_input(lowering, index))
        return NULL;
    return lowering->graph->values[lowering->node->inputs[index]].data->data;
}

// --- converting activations to shader functions ---

#define ACTIVATION_OF(attrs)                                                                       \
    activation_of((attrs)->activation, (attrs)->activation_alpha, (attrs)->activation_min,         \
                  (attrs)->activation_max)

static struct vk_activation activation_of(enum inf_activation kind, float alpha, float min,
                                          float max)
{
    switch (kind) {
    case INF_ACTIVATION_RELU:
        return (struct vk_activation){FN_CLIP, 0, __builtin_inff(), false};
    case INF_ACTIVATION_RELU6:
        return (struct vk_activation){FN_CLIP, 0, 6, false};
    case INF_ACTIVATION_CLIP:
        return (struct vk_activation){FN_CLIP, min, max, false};
    case INF_ACTIVATION_SIGMOID:
        return (struct vk_activation){FN_SIGMOID, 0, 0, false};
    case INF_ACTIVATION_TANH:
        return (struct vk_activation){FN_TANH, 0, 0, false};
    case INF_ACTIVATION_ELU:
        return (struct vk_activation){FN_ELU, alpha, 0, false};
    case INF_ACTIVATION_LEAKY_RELU:
        return (struct vk_activation){FN_LEAKY_RELU, alpha, 0, false};
    case INF_ACTIVATION_HARD_SWISH:
        return (struct vk_activation){FN_HARD_SWISH, 0, 0, false};
    case INF_ACTIVATION_SILU:
        return (struct vk_activation){FN_SILU, 0, 0, false};
    case INF_ACTIVATION_GELU:
        return (struct vk_activation){FN_GELU, 0, 0, false};
    case INF_ACTIVATION_GELU_TANH:
        return (struct vk_activation){FN_GELU_TANH, 0, 0, false};
    case INF_ACTIVATION_PRELU:
        return (struct vk_activation){FN_LEAKY_RELU, 0, 0, true};
    case INF_ACTIVATION_NONE:
        return (struct vk_activation){FN_NONE, 0, 0, false};
    default:
        return (struct vk_activation){UINT32_MAX, 0, 0, false};
    }
}

struct vk_activation vk_node_activation(const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_CONV2D:
        return ACTIVATION_OF(&node->attrs.conv2d);
    case INF_OP_DEPTHWISE_CONV2D:
        return ACTIVATION_OF(&node->attrs.depthwise_conv2d);
    case INF_OP_CONV2D_TRANSPOSE:
        return ACTIVATION_OF(&node->attrs.conv2d_transpose);
    case INF_OP_MATMUL:
        return ACTIVATION_OF(&node->attrs.matmul);
    case INF_OP_BINARY:
        return activation_of(node->attrs.binary.activation, 0, node->attrs.binary.activation_min,
                             node->attrs.binary.activation_max);
    default:
        return (struct vk_activation){.function = FN_NONE};
    }
}

void vk_window_init(struct vk_window *window, const struct vk_lowering *lowering,
                    const struct inf_shape *in, const struct inf_shape *out)
{
    struct inf_window height, width;
    inf_node_windows(lowering->graph, lowering->node, &height, &width);
    *window = (struct vk_window){
        .in_h = (uint32_t)in->dims[1],
        .in_w = (uint32_t)in->dims[2],
        .in_c = (uint32_t)in->dims[3],
        .out_h = (uint32_t)out->dims[1],
        .out_w = (uint32_t)out->dims[2],
        .out_c = (uint32_t)out->dims[3],
        .kernel_h = (uint32_t)height.kernel,
        .kernel_w = (uint32_t)width.kernel,
        .stride_h = (uint32_t)height.stride,
        .stride_w = (uint32_t)width.stride,
        .dilation_h = (uint32_t)height.dilation,
        .dilation_w = (uint32_t)width.dilation,
        .pad_top = height.pad_before,
        .pad_left = width.pad_before,
    };
}
