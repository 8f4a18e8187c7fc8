// SPDX-License-Identifier: Apache-2.0
// Fuses zero padding into the convolution that reads the padded image.
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

#define PAD_MAX 65535 // the range of the attributes in ops.def

// Pointers to the four padding attributes of a convolution. They are in the same order as the
// amounts in a pad node's operand, whose row 1 is for height and row 2 for width.
struct pads {
    enum inf_padding *padding;
    int32_t *sides[4]; // top, bottom, left, right
};

static bool pads_of(struct inf_node *node, struct pads *pads)
{
    if (node->op == INF_OP_CONV2D) {
        struct inf_attrs_conv2d *attrs = &node->attrs.conv2d;
        *pads = (struct pads){
            &attrs->padding,
            {&attrs->pad_top, &attrs->pad_bottom, &attrs->pad_left, &attrs->pad_right}};
        return true;
    }
    if (node->op == INF_OP_DEPTHWISE_CONV2D) {
        struct inf_attrs_depthwise_conv2d *attrs = &node->attrs.depthwise_conv2d;
        *pads = (struct pads){
            &attrs->padding,
            {&attrs->pad_top, &attrs->pad_bottom, &attrs->pad_left, &attrs->pad_right}};
        return true;
    }
    return false;
}

// Returns whether the pad node fills with zeros.
static bool pads_with_zero(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->input_count < 3 || node->inputs[2] == INF_VALUE_NONE)
        return true;
    const struct inf_value *value = &graph->values[node->inputs[2]];
    return inf_graph_is_const(graph, node->inputs[2]) && value->dtype == INF_DTYPE_F32 &&
           *(const float *)value->data->data == 0;
}

// Stores the padding of height and width (top, bottom, left, right) in `sides`. Returns false if
// the pad node also pads batch or channels, or pads with another value than zero.
static bool image_paddings(const struct inf_graph *graph, const struct inf_node *node,
                           int64_t sides[4])
{
    int64_t paddings[2 * INF_LIMIT_RANK];
    uint32_t count;
    if (node->op != INF_OP_PAD || node->attrs.pad.mode != INF_PAD_CONSTANT ||
        !pads_with_zero(graph, node) ||
        !inf_graph_const_ints(graph, node->inputs[1], paddings, 2 * INF_LIMIT_RANK, &count) ||
        count != 8 || paddings[0] != 0 || paddings[1] != 0 || paddings[6] != 0 || paddings[7] != 0)
        return false;
    for (uint32_t i = 0; i < 4; i++)
        sides[i] = paddings[2 + i];
    return true;
}

static enum inf_code fuse_node(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_graph *graph = rewrite->graph;
    struct pads pads;
    if (!pads_of(&graph->nodes[index], &pads) || *pads.padding == INF_PADDING_SAME)
        return INF_OK;
    uint32_t before = graph->values[graph->nodes[index].inputs[0]].producer;
    int64_t sides[4];
    if (before == INF_NODE_NONE || !image_paddings(graph, &graph->nodes[before], sides))
        return INF_OK;
    bool valid = *pads.padding == INF_PADDING_VALID;
    for (uint32_t i = 0; i < 4; i++) {
        sides[i] += valid ? 0 : *pads.sides[i];
        if (sides[i] < 0 || sides[i] > PAD_MAX)
            return INF_OK;
    }
    INF_TRY(inf_rewrite_set_input(rewrite, index, 0, graph->nodes[before].inputs[0]));
    *pads.padding = INF_PADDING_EXPLICIT;
    for (uint32_t i = 0; i < 4; i++)
        *pads.sides[i] = (int32_t)sides[i];
    // Remove the pad node only if no other node reads the padded image.
    if (rewrite->uses[graph->nodes[before].outputs[0]] == 0)
        inf_rewrite_remove(rewrite, before);
    return INF_OK;
}

enum inf_code inf_pass_fuse_pad(struct inf_rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->graph->node_count; i++)
        INF_TRY(fuse_node(rewrite, i));
    return INF_OK;
}
