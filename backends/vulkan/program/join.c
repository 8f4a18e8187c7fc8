// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/program/join.h"

#include <string.h>

#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/program/fuse.h"

static const struct inf_shape *output_shape(const struct inf_graph *graph, uint32_t node)
{
    return &graph->values[graph->nodes[node].outputs[0]].shape;
}

// The node that makes operand `input`, if nothing but `node` reads that and the segment has it.
static uint32_t sole_maker(const struct inf_segment *segment, uint32_t node, uint32_t input)
{
    const struct inf_graph *graph = segment->graph;
    uint32_t maker = graph->values[graph->nodes[node].inputs[input]].producer;
    if (maker == INF_NODE_NONE || graph->nodes[maker].output_count != 1 ||
        !vk_segment_has(segment, maker) || vk_sole_reader(segment, maker) != node)
        return INF_NODE_NONE;
    return maker;
}

// Whether something may be added to what the node makes: nothing is done with it yet.
static bool is_open_conv(struct vk_gpu *gpu, const struct inf_graph *graph, uint32_t node)
{
    const struct inf_node *conv = &graph->nodes[node];
    struct vk_lowering lowering = {.gpu = gpu, .graph = graph, .node = conv, .node_index = node};
    return conv->op == INF_OP_CONV2D && conv->attrs.conv2d.activation == INF_ACTIVATION_NONE &&
           conv->attrs.conv2d.groups == 1 && vk_lower(&lowering, NULL) == INF_OK;
}

// Whether the node puts channels of zeros behind those of its input.
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

// The prelu behind the sum, of one slope a channel.
static uint32_t prelu_behind(const struct inf_segment *segment, uint32_t add)
{
    const struct inf_graph *graph = segment->graph;
    uint32_t node = vk_sole_reader(segment, add);
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

// The join whose sum `add` makes, of what `conv`, its operand `input`, makes.
static bool join_at(struct vk_join *join, struct vk_gpu *gpu, const struct inf_segment *segment,
                    uint32_t add, uint32_t input)
{
    const struct inf_graph *graph = segment->graph;
    uint32_t conv = sole_maker(segment, add, input);
    uint32_t other = graph->nodes[add].inputs[1 - input];
    if (conv == INF_NODE_NONE || !is_open_conv(gpu, graph, conv) ||
        !inf_shape_equal(output_shape(graph, conv), &graph->values[other].shape))
        return false;
    *join = (struct vk_join){.conv = conv, .add = add, .pad = INF_NODE_NONE, .added = other};
    uint32_t maker = sole_maker(segment, add, 1 - input);
    if (maker != INF_NODE_NONE && pads_channels(graph, maker)) {
        join->pad = maker;
        join->added = graph->nodes[maker].inputs[0];
    }
    join->prelu = prelu_behind(segment, add);
    join->end = join->prelu != INF_NODE_NONE ? join->prelu : add;
    return true;
}

// The addition that a join with `node` in it would be around.
static uint32_t addition_of(const struct inf_segment *segment, uint32_t node)
{
    const struct inf_graph *graph = segment->graph;
    switch (graph->nodes[node].op) {
    case INF_OP_BINARY:
        return node;
    case INF_OP_CONV2D:
    case INF_OP_PAD:
        return vk_sole_reader(segment, node);
    case INF_OP_PRELU:
        return graph->values[graph->nodes[node].inputs[0]].producer;
    default:
        return INF_NODE_NONE;
    }
}

bool vk_join_find(struct vk_join *join, struct vk_gpu *gpu, const struct inf_segment *segment,
                  uint32_t node)
{
    const struct inf_graph *graph = segment->graph;
    uint32_t add = addition_of(segment, node);
    if (atomic_load_explicit(&gpu->fusion.apart, memory_order_relaxed) || add == INF_NODE_NONE ||
        graph->nodes[add].op != INF_OP_BINARY || !vk_segment_has(segment, add) ||
        graph->nodes[add].attrs.binary.kind != INF_BINARY_ADD ||
        vk_node_activation(&graph->nodes[add]).function == UINT32_MAX)
        return false;
    if (!join_at(join, gpu, segment, add, 0) && !join_at(join, gpu, segment, add, 1))
        return false;
    return node == join->conv || node == join->add || node == join->pad || node == join->prelu;
}

enum inf_code vk_lower_join(struct vk_lowering *lowering, const struct vk_join *join,
                            const struct inf_segment *segment, struct inf_error *err)
{
    // The convolution's weights are in 16 bits if that node's may be; all else is the end's.
    struct vk_lowering conv = vk_lowering_of(lowering->gpu, segment, join->conv);
    conv.node_index = lowering->node_index;
    conv.program = lowering->program;
    conv.ahead = lowering->ahead;
    conv.join = join;
    enum inf_code code = vk_lower(&conv, err);
    lowering->lowers |= conv.lowers;
    if (code != INF_UNSUPPORTED || lowering->ahead != NULL)
        return code;
    atomic_store_explicit(&lowering->gpu->fusion.apart, true, memory_order_relaxed);
    inf_log(lowering->gpu->log, INF_LOG_WARNING,
            "nothing is added by convolutions from now on device=%s",
            lowering->gpu->base.info.name);
    return code;
}
