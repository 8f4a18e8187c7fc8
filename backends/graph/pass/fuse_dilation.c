// SPDX-License-Identifier: Apache-2.0
// Replaces space_to_batch, a convolution and batch_to_space by one dilated convolution. Converters
// write dilated convolutions in this form for runtimes that cannot dilate.
//
// Why it is the same: with block b, space_to_batch pads the picture and puts every b-th row and
// column into a picture of its own. A window on one of these pictures sees rows of the padded
// picture that are b apart. batch_to_space puts the results back in their order. So the three nodes
// compute the convolution of the padded picture with dilation b, without padding of its own, and
// then cut the edges that the crops name. Cutting an edge is padding less.
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

#define PAD_MAX 65535 // the range of the attributes in ops.def

// What the pass reads and changes of a convolution. Rows come first.
struct window {
    int32_t *dilation[2];
    enum inf_padding *padding;
    int32_t *pads[4]; // top, bottom, left, right
    bool is_plain;    // strides and dilations are 1
};

#define WINDOW_OF(attrs)                                                                           \
    {                                                                                              \
        {&(attrs)->dilation_h, &(attrs)->dilation_w}, &(attrs)->padding,                           \
            {&(attrs)->pad_top, &(attrs)->pad_bottom, &(attrs)->pad_left, &(attrs)->pad_right},    \
            (attrs)->stride_h == 1 && (attrs)->stride_w == 1 && (attrs)->dilation_h == 1 &&        \
                (attrs)->dilation_w == 1                                                           \
    }

static bool find_window(struct inf_node *node, struct window *window)
{
    if (node->op == INF_OP_CONV2D)
        *window = (struct window)WINDOW_OF(&node->attrs.conv2d);
    else if (node->op == INF_OP_DEPTHWISE_CONV2D)
        *window = (struct window)WINDOW_OF(&node->attrs.depthwise_conv2d);
    else
        return false;
    return true;
}

// Returns true if a convolution covers each place of its input and pads nothing.
static bool is_plain(const struct window *window)
{
    bool padded = *window->padding == INF_PADDING_SAME;
    for (int i = 0; i < 4 && *window->padding == INF_PADDING_EXPLICIT; i++)
        padded |= *window->pads[i] != 0;
    return window->is_plain && !padded;
}

// Reads the block [2] and the edges [2,2] of a node. Returns false if they are not constant or not
// of height and width.
static bool read_blocks(const struct inf_graph *graph, const struct inf_node *node,
                        int64_t block[2], int64_t edges[4])
{
    uint32_t count;
    return inf_graph_const_ints(graph, node->inputs[1], block, 2, &count) && count == 2 &&
           inf_graph_const_ints(graph, node->inputs[2], edges, 4, &count) && count == 4;
}

// Returns the only reader of the only output of a node; INF_NODE_NONE if there is another one.
static uint32_t find_sole_reader(const struct inf_rewrite *rewrite, uint32_t index)
{
    const struct inf_graph *graph = rewrite->graph;
    uint32_t value = graph->nodes[index].outputs[0];
    if (rewrite->uses[value] != 1)
        return INF_NODE_NONE;
    for (uint32_t i = index + 1; i < graph->node_count; i++)
        if (!rewrite->removed[i] && graph->nodes[i].input_count > 0 &&
            graph->nodes[i].inputs[0] == value)
            return i;
    return INF_NODE_NONE;
}

static enum inf_code fuse_node(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_graph *graph = rewrite->graph;
    struct window window;
    int64_t block[2], back[2], pads[4], crops[4];
    if (rewrite->removed[index] || !find_window(&graph->nodes[index], &window) ||
        !is_plain(&window))
        return INF_OK;
    uint32_t before = inf_rewrite_sole_producer(rewrite, graph->nodes[index].inputs[0]);
    if (before == INF_NODE_NONE || graph->nodes[before].op != INF_OP_SPACE_TO_BATCH)
        return INF_OK;
    uint32_t behind = find_sole_reader(rewrite, index);
    if (behind == INF_NODE_NONE || graph->nodes[behind].op != INF_OP_BATCH_TO_SPACE ||
        !read_blocks(graph, &graph->nodes[before], block, pads) ||
        !read_blocks(graph, &graph->nodes[behind], back, crops))
        return INF_OK;
    for (int i = 0; i < 4; i++)
        if (pads[i] < crops[i] || pads[i] - crops[i] > PAD_MAX)
            return INF_OK;
    for (int i = 0; i < 2; i++)
        if (block[i] != back[i] || block[i] < 1 || block[i] > PAD_MAX)
            return INF_OK;
    INF_TRY(inf_rewrite_set_input(rewrite, index, 0, graph->nodes[before].inputs[0]));
    inf_rewrite_remove(rewrite, before);
    inf_rewrite_absorb(rewrite, index, behind);
    for (int i = 0; i < 2; i++)
        *window.dilation[i] = (int32_t)block[i];
    *window.padding = INF_PADDING_EXPLICIT;
    for (int i = 0; i < 4; i++)
        *window.pads[i] = (int32_t)(pads[i] - crops[i]);
    return INF_OK;
}

enum inf_code inf_pass_fuse_dilation(struct inf_rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->graph->node_count; i++)
        INF_TRY(fuse_node(rewrite, i));
    return INF_OK;
}
