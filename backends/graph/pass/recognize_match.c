// SPDX-License-Identifier: Apache-2.0
// Functions that the parts of the pass `recognize` share: matching single nodes, and replacing one.
#include "backends/graph/pass/recognize.h"

const struct inf_node *inf_recognize_binary(const struct inf_graph *graph, uint32_t value,
                                            enum inf_binary_kind kind)
{
    uint32_t producer = graph->values[value].producer;
    if (producer == INF_NODE_NONE || graph->values[value].dtype != INF_DTYPE_F32)
        return NULL;
    const struct inf_node *node = &graph->nodes[producer];
    bool found = node->op == INF_OP_BINARY && node->attrs.binary.kind == kind &&
                 node->attrs.binary.activation == INF_ACTIVATION_NONE;
    return found ? node : NULL;
}

const struct inf_node *inf_recognize_unary(const struct inf_graph *graph, uint32_t value,
                                           enum inf_unary_kind kind)
{
    uint32_t producer = graph->values[value].producer;
    if (producer == INF_NODE_NONE || graph->values[value].dtype != INF_DTYPE_F32)
        return NULL;
    const struct inf_node *node = &graph->nodes[producer];
    return node->op == INF_OP_UNARY && node->attrs.unary.kind == kind ? node : NULL;
}

bool inf_recognize_scalar(const struct inf_graph *graph, uint32_t value, enum inf_binary_kind kind,
                          uint32_t *x, double *scalar)
{
    const struct inf_node *node = inf_recognize_binary(graph, value, kind);
    float constant;
    for (uint32_t i = 0; node != NULL && i < 2; i++) {
        int32_t rank = graph->values[node->inputs[i]].shape.rank;
        if (!inf_rewrite_read_scalar(graph, node->inputs[1 - i], rank, &constant))
            continue;
        *x = node->inputs[i];
        *scalar = (double)constant;
        return true;
    }
    if (kind != INF_BINARY_MUL)
        return false;
    node = inf_recognize_binary(graph, value, INF_BINARY_DIV);
    if (node == NULL ||
        !inf_rewrite_read_scalar(graph, node->inputs[1], graph->values[node->inputs[0]].shape.rank,
                                 &constant) ||
        constant == 0.0f)
        return false;
    *x = node->inputs[0];
    *scalar = 1 / (double)constant;
    return true;
}

bool inf_recognize_square(const struct inf_graph *graph, uint32_t value, uint32_t *x)
{
    const struct inf_node *node = inf_recognize_unary(graph, value, INF_UNARY_SQUARE);
    float power;
    if (node != NULL) {
        *x = node->inputs[0];
        return true;
    }
    node = inf_recognize_binary(graph, value, INF_BINARY_MUL);
    if (node != NULL && node->inputs[0] == node->inputs[1]) {
        *x = node->inputs[0];
        return true;
    }
    node = inf_recognize_binary(graph, value, INF_BINARY_POW);
    if (node == NULL ||
        !inf_rewrite_read_scalar(graph, node->inputs[1], graph->values[node->inputs[0]].shape.rank,
                                 &power) ||
        power != 2.0f)
        return false;
    *x = node->inputs[0];
    return true;
}

enum inf_code inf_recognize_replace(struct inf_rewrite *rewrite, uint32_t node, enum inf_op op,
                                    uint32_t x)
{
    struct inf_node *changed = &rewrite->graph->nodes[node];
    INF_TRY(inf_rewrite_set_input(rewrite, node, 0, x));
    for (uint32_t i = 1; i < changed->input_count; i++)
        inf_rewrite_drop_use(rewrite, changed->inputs[i]);
    changed->input_count = 1;
    changed->op = op;
    inf_attrs_init(&changed->attrs, op);
    return INF_OK;
}
