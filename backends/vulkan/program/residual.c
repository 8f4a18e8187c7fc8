// SPDX-License-Identifier: Apache-2.0
// Finds convolutions whose result is read only by an addition, and lowers both nodes together.
#include "backends/vulkan/program/residual.h"

#include <string.h>

#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/program/lower_node.h"
#include "backends/vulkan/program/segment.h"

static const struct inf_shape *output_shape(const struct inf_graph *graph, uint32_t node)
{
    return &graph->values[graph->nodes[node].outputs[0]].shape;
}

// Returns the node of the segment that produces operand `input` of `node`, if `node` is the only
// reader of the operand; otherwise INF_NODE_NONE.
static uint32_t find_sole_producer(const struct inf_segment *segment, uint32_t node, uint32_t input)
{
    const struct inf_graph *graph = segment->graph;
    uint32_t maker = graph->values[graph->nodes[node].inputs[input]].producer;
    if (maker == INF_NODE_NONE || graph->nodes[maker].output_count != 1 ||
        !vk_segment_has_node(segment, maker) || vk_segment_sole_reader(segment, maker) != node)
        return INF_NODE_NONE;
    return maker;
}

// Returns true if a residual can be added to the convolution: it has no activation of its own, and
// there is a shader for it.
static bool is_open_conv(struct vk_gpu *gpu, const struct inf_graph *graph, uint32_t node)
{
    const struct inf_node *conv = &graph->nodes[node];
    struct vk_lowering lowering = {.gpu = gpu, .graph = graph, .node = conv, .node_index = node};
    return conv->op == INF_OP_CONV2D && conv->attrs.conv2d.activation == INF_ACTIVATION_NONE &&
           conv->attrs.conv2d.groups == 1 && vk_lower_node(&lowering, NULL) == INF_OK;
}

// Returns true if the pad node only appends channels of zeros.
static bool pads_channels(const struct inf_graph *graph, uint32_t node)
{
    const struct inf_node *pad = &graph->nodes[node];
    if (pad->op != INF_OP_PAD || pad->attrs.pad.mode != INF_PAD_CONSTANT)
        return false;
    const struct inf_shape *x = &graph->values[pad->inputs[0]].shape;
    int64_t amounts[2 * INF_LIMIT_RANK];
    uint32_t count;
    if (!inf_graph_const_ints(graph, pad->inputs[1], amounts, INF_ARRAY_LENGTH(amounts), &count) ||
        x->rank != 4 || count != 8)
        return false;
    for (uint32_t i = 0; i < 7; i++)
        if (amounts[i] != 0)
            return false;
    float value = 0;
    bool given = pad->input_count > 2 && pad->inputs[2] != INF_VALUE_NONE;
    if (given && (!inf_graph_is_const(graph, pad->inputs[2]) ||
                  graph->values[pad->inputs[2]].dtype != INF_DTYPE_F32))
        return false;
    if (given)
        memcpy(&value, graph->values[pad->inputs[2]].data->data, sizeof(value));
    return value == 0;
}

// Returns the prelu node that reads the sum and has one slope for each channel; INF_NODE_NONE if
// there is none.
static uint32_t find_prelu(const struct inf_segment *segment, uint32_t add)
{
    const struct inf_graph *graph = segment->graph;
    uint32_t node = vk_segment_sole_reader(segment, add);
    if (graph->nodes[add].attrs.binary.activation != INF_ACTIVATION_NONE || node == INF_NODE_NONE ||
        graph->nodes[node].op != INF_OP_PRELU ||
        graph->nodes[node].inputs[0] != graph->nodes[add].outputs[0])
        return INF_NODE_NONE;
    uint32_t slopes = graph->nodes[node].inputs[1];
    const struct inf_shape *shape = &graph->values[slopes].shape;
    int64_t channels = output_shape(graph, add)->dims[3];
    if (!inf_graph_is_const(graph, slopes) || graph->values[slopes].dtype != INF_DTYPE_F32 ||
        shape->rank < 1 || shape->dims[shape->rank - 1] != channels ||
        inf_shape_elements(shape) != (size_t)channels)
        return INF_NODE_NONE;
    return node;
}

// Checks whether operand `input` of the addition `add` is the result of a convolution to which the
// other operand can be added. If so, fills *residual and returns true.
static bool find_residual_at(struct vk_residual *residual, struct vk_gpu *gpu,
                             const struct inf_segment *segment, uint32_t add, uint32_t input)
{
    const struct inf_graph *graph = segment->graph;
    uint32_t conv = find_sole_producer(segment, add, input);
    uint32_t other = graph->nodes[add].inputs[1 - input];
    if (conv == INF_NODE_NONE || !is_open_conv(gpu, graph, conv) ||
        !inf_shape_equal(output_shape(graph, conv), &graph->values[other].shape))
        return false;
    *residual =
        (struct vk_residual){.conv = conv, .add = add, .pad = INF_NODE_NONE, .added = other};
    uint32_t maker = find_sole_producer(segment, add, 1 - input);
    if (maker != INF_NODE_NONE && pads_channels(graph, maker)) {
        residual->pad = maker;
        residual->added = graph->nodes[maker].inputs[0];
    }
    residual->prelu = find_prelu(segment, add);
    residual->end = residual->prelu != INF_NODE_NONE ? residual->prelu : add;
    return true;
}

// Returns the addition of which `node` may be a part: as the convolution, the pad, the addition
// itself or the prelu. INF_NODE_NONE if there is none.
static uint32_t find_addition(const struct inf_segment *segment, uint32_t node)
{
    const struct inf_graph *graph = segment->graph;
    switch (graph->nodes[node].op) {
    case INF_OP_BINARY:
        return node;
    case INF_OP_CONV2D:
    case INF_OP_PAD:
        return vk_segment_sole_reader(segment, node);
    case INF_OP_PRELU:
        return graph->values[graph->nodes[node].inputs[0]].producer;
    default:
        return INF_NODE_NONE;
    }
}

bool vk_residual_find(struct vk_residual *residual, struct vk_gpu *gpu,
                      const struct inf_segment *segment, uint32_t node)
{
    const struct inf_graph *graph = segment->graph;
    uint32_t add = find_addition(segment, node);
    if (atomic_load_explicit(&gpu->fused_shaders.residuals_off, memory_order_relaxed) ||
        add == INF_NODE_NONE || graph->nodes[add].op != INF_OP_BINARY ||
        !vk_segment_has_node(segment, add) ||
        graph->nodes[add].attrs.binary.kind != INF_BINARY_ADD ||
        vk_node_activation(&graph->nodes[add]).function == UINT32_MAX)
        return false;
    if (!find_residual_at(residual, gpu, segment, add, 0) &&
        !find_residual_at(residual, gpu, segment, add, 1))
        return false;
    return node == residual->conv || node == residual->add || node == residual->pad ||
           node == residual->prelu;
}

enum inf_code vk_lower_residual(struct vk_lowering *lowering, const struct vk_residual *residual,
                                const struct inf_segment *segment, struct inf_error *err)
{
    // The convolution node decides whether weights may be 16-bit. All other settings of the
    // lowering come from the last node.
    struct vk_lowering conv = vk_lowering_of(lowering->gpu, segment, residual->conv);
    conv.node_index = lowering->node_index;
    conv.list = lowering->list;
    conv.ahead = lowering->ahead;
    conv.residual = residual;
    enum inf_code code = vk_lower_node(&conv, err);
    lowering->lowers |= conv.lowers;
    if (code != INF_UNSUPPORTED || lowering->ahead != NULL)
        return code;
    atomic_store_explicit(&lowering->gpu->fused_shaders.residuals_off, true, memory_order_relaxed);
    inf_log(lowering->gpu->log, INF_LOG_WARNING,
            "nothing is added by convolutions from now on device=%s",
            lowering->gpu->base.info.name);
    return code;
}
