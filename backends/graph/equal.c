// SPDX-License-Identifier: Apache-2.0
// Compares graphs. If the file of a model gives all shapes, the graph that is compiled equals the
// graph of the model, and the model keeps only one of them.
#include <string.h>

#include "backends/graph/graph.h"

static bool same_values(const struct inf_graph *a, const struct inf_graph *b)
{
    if (a->value_count != b->value_count)
        return false;
    for (uint32_t i = 0; i < a->value_count; i++) {
        const struct inf_value *x = &a->values[i], *y = &b->values[i];
        if (x->dtype != y->dtype || x->producer != y->producer || x->data != y->data ||
            !inf_shape_equal(&x->shape, &y->shape) || strcmp(x->name, y->name) != 0)
            return false;
    }
    return true;
}

static bool same_indices(const uint32_t *a, uint32_t a_count, const uint32_t *b, uint32_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof *a) == 0);
}

static bool same_nodes(const struct inf_graph *a, const struct inf_graph *b)
{
    if (a->node_count != b->node_count)
        return false;
    for (uint32_t i = 0; i < a->node_count; i++) {
        const struct inf_node *x = &a->nodes[i], *y = &b->nodes[i];
        if (x->op != y->op || !inf_attrs_equal(&x->attrs, &y->attrs, x->op) ||
            !same_indices(x->inputs, x->input_count, y->inputs, y->input_count) ||
            !same_indices(x->outputs, x->output_count, y->outputs, y->output_count) ||
            strcmp(x->name, y->name) != 0 || strcmp(x->source, y->source) != 0)
            return false;
    }
    return true;
}

static bool same_ports(const struct inf_port *a, uint32_t a_count, const struct inf_port *b,
                       uint32_t b_count)
{
    if (a_count != b_count)
        return false;
    for (uint32_t i = 0; i < a_count; i++)
        if (a[i].value != b[i].value || strcmp(a[i].name, b[i].name) != 0)
            return false;
    return true;
}

bool inf_graph_equal(const struct inf_graph *a, const struct inf_graph *b)
{
    return a->subgraph_count == 0 && b->subgraph_count == 0 && a->strings == b->strings &&
           same_ports(a->inputs, a->input_count, b->inputs, b->input_count) &&
           same_ports(a->outputs, a->output_count, b->outputs, b->output_count) &&
           same_values(a, b) && same_nodes(a, b);
}
