// SPDX-License-Identifier: Apache-2.0
// Builds a graph of one node with fixed shapes, so that a device can compile it as a program.
#include "backends/exec/dynamic/node_graph.h"

#include <stdlib.h>

// The larger graph, and the node that is extracted from it.
struct origin {
    const struct inf_graph *graph, *source;
    const struct inf_node *node;
    bool is_product, packed;
};

static bool has_pads(const struct inf_attrs_conv2d *attrs)
{
    return attrs->padding == INF_PADDING_EXPLICIT &&
           (attrs->pad_top | attrs->pad_bottom | attrs->pad_left | attrs->pad_right) != 0;
}

bool inf_node_graph_is_product(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->op == INF_OP_MATMUL)
        return true;
    if (node->op != INF_OP_CONV2D)
        return false;
    const struct inf_attrs_conv2d *attrs = &node->attrs.conv2d;
    const struct inf_shape *filter = &graph->values[node->inputs[1]].shape;
    return filter->rank == 4 && filter->dims[0] == 1 && filter->dims[1] == 1 &&
           attrs->stride_h == 1 && attrs->stride_w == 1 && attrs->groups == 1 && !has_pads(attrs);
}

static enum inf_code add_operand(struct inf_node_graph *alone, const struct origin *origin,
                                 uint32_t input, struct inf_error *err)
{
    uint32_t value = origin->node->inputs[input];
    alone->operands[input] = INF_VALUE_NONE;
    if (value == INF_VALUE_NONE)
        return INF_OK;
    const struct inf_value *like = &origin->graph->values[value];
    struct inf_shape shape = like->shape;
    bool is_matrix = input == 1 && origin->is_product;
    if (is_matrix && origin->node->op == INF_OP_CONV2D)
        shape = INF_SHAPE(like->shape.dims[2], like->shape.dims[3]);
    if (origin->source->values[value].data != NULL && (!is_matrix || origin->packed))
        return inf_graph_add_const(alone->graph, like->name, like->dtype, &shape,
                                   inf_blob_ref(like->data), &alone->operands[input], err);
    return inf_graph_add_value(alone->graph, like->name, like->dtype, &shape,
                               &alone->operands[input], err);
}

static void set_attrs(struct inf_node *node, const struct inf_node *like)
{
    if (node->op == like->op) {
        node->attrs = like->attrs;
        return;
    }
    const struct inf_attrs_conv2d *attrs = &like->attrs.conv2d;
    node->attrs.matmul.activation = attrs->activation;
    node->attrs.matmul.activation_alpha = attrs->activation_alpha;
    node->attrs.matmul.activation_min = attrs->activation_min;
    node->attrs.matmul.activation_max = attrs->activation_max;
}

enum inf_code inf_node_graph_init(struct inf_node_graph *alone, const struct inf_graph *graph,
                                  const struct inf_graph *source, uint32_t index, bool packed,
                                  struct inf_error *err)
{
    const struct inf_node *node = &graph->nodes[index];
    const struct origin origin = {.graph = graph,
                                  .source = source,
                                  .node = node,
                                  .is_product = inf_node_graph_is_product(graph, node),
                                  .packed = packed};
    uint32_t made;
    INF_TRY(inf_graph_create_inside(&alone->graph, graph, err));
    alone->operands = calloc((size_t)node->input_count + 1, sizeof *alone->operands);
    if (alone->operands == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a program of a node");
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(add_operand(alone, &origin, i, err));
    INF_TRY(inf_graph_add_node(alone->graph, origin.is_product ? INF_OP_MATMUL : node->op,
                               node->name, node->source, alone->operands, node->input_count,
                               node->output_count, &made, err));
    struct inf_node *mine = &alone->graph->nodes[made];
    set_attrs(mine, node);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *like = &graph->values[node->outputs[i]];
        alone->graph->values[mine->outputs[i]].dtype = like->dtype;
        alone->graph->values[mine->outputs[i]].shape = like->shape;
    }
    return INF_OK;
}

void inf_node_graph_fini(struct inf_node_graph *alone)
{
    inf_graph_destroy(&alone->graph);
    free(alone->operands);
    *alone = (struct inf_node_graph){0};
}
