// SPDX-License-Identifier: Apache-2.0
// Writes the new node list of the layout pass. A view becomes a node only when an operator needs
// the value itself: a reshape if only axes of size 1 move, a transpose otherwise.
#include "backends/graph/pass/layout/writer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum inf_code inf_layout_no_memory(const struct inf_layout *layout)
{
    return inf_fail_reason(layout->rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory to rewrite a graph of %u values", layout->graph->value_count);
}

enum inf_code inf_layout_add_node(struct inf_layout *layout, const struct inf_node *node)
{
    if (layout->count == layout->capacity) {
        uint32_t wanted = layout->capacity * 2 + 16;
        struct inf_node *grown = realloc(layout->nodes, wanted * sizeof *grown);
        if (grown == NULL)
            return inf_layout_no_memory(layout);
        layout->nodes = grown;
        layout->capacity = wanted;
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        layout->graph->values[node->outputs[i]].producer = layout->count;
    layout->nodes[layout->count++] = *node;
    return INF_OK;
}

enum inf_code inf_layout_add_op(struct inf_layout *layout, const struct inf_node *like,
                                enum inf_op op, const uint32_t *inputs, uint32_t input_count,
                                uint32_t output, union inf_attrs *attrs)
{
    struct inf_arena *arena = &layout->graph->arena;
    struct inf_node node = {.op = op,
                            .name = like->name,
                            .source = like->source,
                            .input_count = input_count,
                            .inputs = inf_arena_alloc(arena, input_count * sizeof *node.inputs),
                            .output_count = 1,
                            .outputs = inf_arena_alloc(arena, sizeof *node.outputs)};
    if (node.inputs == NULL || node.outputs == NULL)
        return inf_layout_no_memory(layout);
    memcpy(node.inputs, inputs, input_count * sizeof *inputs);
    node.outputs[0] = output;
    node.attrs = *attrs;
    return inf_layout_add_node(layout, &node);
}

enum inf_code inf_layout_add_value(struct inf_layout *layout, uint32_t like,
                                   const struct inf_shape *shape, uint32_t *out_value)
{
    const struct inf_value *value = &layout->graph->values[like];
    return inf_graph_add_value(layout->graph, value->name, value->dtype, shape, out_value,
                               layout->rewrite->err);
}

const struct inf_layout_view *inf_layout_find_view(const struct inf_layout *layout, uint32_t value)
{
    static const struct inf_layout_view none = {.source = INF_VALUE_NONE};
    return value < layout->view_count ? &layout->views[value] : &none;
}

enum inf_code inf_layout_add_reshape(struct inf_layout *layout, const struct inf_node *like,
                                     const struct inf_shape *shape, uint32_t from, uint32_t to)
{
    int32_t dims[INF_LIMIT_RANK];
    uint32_t inputs[] = {from, INF_VALUE_NONE};
    union inf_attrs attrs;
    for (int32_t i = 0; i < shape->rank; i++)
        dims[i] = (int32_t)shape->dims[i];
    INF_TRY(inf_graph_add_const_i32(layout->graph, like->name, dims, (uint32_t)shape->rank,
                                    &inputs[1], layout->rewrite->err));
    inf_attrs_init(&attrs, INF_OP_RESHAPE);
    return inf_layout_add_op(layout, like, INF_OP_RESHAPE, inputs, 2, to, &attrs);
}

enum inf_code inf_layout_materialize(struct inf_layout *layout, const struct inf_node *like,
                                     uint32_t value)
{
    const struct inf_layout_view *view = inf_layout_find_view(layout, value);
    union inf_attrs attrs;
    if (view->source == INF_VALUE_NONE || layout->materialized[value])
        return INF_OK;
    layout->materialized[value] = true;
    struct inf_shape shape =
        inf_layout_view_shape(view, &layout->graph->values[view->source].shape);
    if (inf_shape_known(&shape) &&
        inf_layout_view_is_reshape(view, &layout->graph->values[view->source].shape))
        return inf_layout_add_reshape(layout, like, &shape, view->source, value);
    inf_attrs_init(&attrs, INF_OP_TRANSPOSE);
    attrs.transpose.perm.count = view->rank;
    for (int32_t i = 0; i < view->rank; i++)
        attrs.transpose.perm.values[i] = view->perm[i];
    return inf_layout_add_op(layout, like, INF_OP_TRANSPOSE, &view->source, 1, value, &attrs);
}

enum inf_code inf_layout_resolve_view(struct inf_layout *layout, const struct inf_node *like,
                                      uint32_t *value)
{
    if (*value == INF_VALUE_NONE)
        return INF_OK;
    const struct inf_layout_view *view = inf_layout_find_view(layout, *value);
    if (view->source != INF_VALUE_NONE && inf_layout_view_is_identity(view)) {
        *value = view->source;
        return INF_OK;
    }
    return inf_layout_materialize(layout, like, *value);
}
