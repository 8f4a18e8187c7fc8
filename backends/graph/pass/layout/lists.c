// SPDX-License-Identifier: Apache-2.0
// Reorders constant operands of nodes that work on the source of a view, and says which operands
// broadcast along axes. A slice may name fewer positions than axes: the others are taken whole,
// which the new lists say by masks.
#include "backends/graph/pass/layout/lists.h"

#include <string.h>

#define ELEMENTS_MAX (2 * INF_LIMIT_RANK)

bool inf_layout_has_list(const struct inf_layout *layout, const struct inf_node *node,
                         uint32_t input, const struct inf_layout_view *view, uint32_t each)
{
    int64_t ignored[ELEMENTS_MAX];
    uint32_t count;
    return inf_graph_const_ints(layout->graph, node->inputs[input], ignored, ELEMENTS_MAX,
                                &count) &&
           count == each * (uint32_t)view->rank;
}

// Adds an i32 constant with this shape and these elements, and makes it operand `input` of the
// node. Clamps the elements to 32 bits, which changes no result because no axis is longer.
static enum inf_code set_list(struct inf_layout *layout, struct inf_node *node, uint32_t input,
                              const struct inf_shape *shape, const int64_t *elements)
{
    int32_t narrow[ELEMENTS_MAX];
    size_t count = inf_shape_elements(shape);
    for (size_t i = 0; i < count; i++)
        narrow[i] = (int32_t)INF_MIN(INF_MAX(elements[i], INT32_MIN), INT32_MAX);
    struct inf_blob *data = inf_blob_create(count * sizeof *narrow);
    if (data != NULL)
        memcpy(data->data, narrow, data->size_bytes);
    return inf_graph_add_const(layout->graph, node->name, INF_DTYPE_I32, shape, data,
                               &node->inputs[input], layout->rewrite->err);
}

enum inf_code inf_layout_permute_list(struct inf_layout *layout, struct inf_node *node,
                                      uint32_t input, const struct inf_layout_view *view,
                                      uint32_t each)
{
    int64_t old[ELEMENTS_MAX];
    int64_t permuted[ELEMENTS_MAX];
    uint32_t count;
    const struct inf_shape shape = layout->graph->values[node->inputs[input]].shape;
    if (!inf_graph_const_ints(layout->graph, node->inputs[input], old, ELEMENTS_MAX, &count))
        return inf_fail(layout->rewrite->err, INF_INTERNAL, "a list is not constant");
    for (int32_t i = 0; i < view->rank; i++)
        memcpy(&permuted[(uint32_t)view->perm[i] * each], &old[(uint32_t)i * each],
               each * sizeof *old);
    return set_list(layout, node, input, &shape, permuted);
}

bool inf_layout_can_permute_slice(const struct inf_layout *layout, const struct inf_node *node,
                                  const struct inf_layout_view *view)
{
    const struct inf_attrs_slice *attrs = &node->attrs.slice;
    int64_t ignored[INF_LIMIT_RANK];
    if (attrs->ellipsis_mask != 0 || attrs->new_axis_mask != 0 || attrs->shrink_axis_mask != 0)
        return false;
    for (uint32_t input = 1; input <= 3; input++) {
        uint32_t count;
        if (!inf_graph_const_ints(layout->graph, node->inputs[input], ignored, INF_LIMIT_RANK,
                                  &count) ||
            count > (uint32_t)view->rank)
            return false;
    }
    return true;
}

enum inf_code inf_layout_permute_slice(struct inf_layout *layout, struct inf_node *node,
                                       const struct inf_layout_view *view)
{
    struct inf_attrs_slice *attrs = &node->attrs.slice;
    const struct inf_shape shape = INF_SHAPE(view->rank);
    int32_t begin_mask = 0;
    int32_t end_mask = 0;
    uint32_t count = 0;
    for (uint32_t input = 1; input <= 3; input++) {
        int64_t old[INF_LIMIT_RANK];
        int64_t permuted[INF_LIMIT_RANK];
        if (!inf_graph_const_ints(layout->graph, node->inputs[input], old, INF_LIMIT_RANK, &count))
            return inf_fail(layout->rewrite->err, INF_INTERNAL, "a slice is not constant");
        for (int32_t i = 0; i < view->rank; i++)
            permuted[view->perm[i]] = i < (int32_t)count ? old[i] : 1;
        INF_TRY(set_list(layout, node, input, &shape, permuted));
    }
    for (int32_t i = 0; i < view->rank; i++) {
        bool whole = i >= (int32_t)count;
        begin_mask |= (whole || (attrs->begin_mask >> i & 1)) << view->perm[i];
        end_mask |= (whole || (attrs->end_mask >> i & 1)) << view->perm[i];
    }
    attrs->begin_mask = begin_mask;
    attrs->end_mask = end_mask;
    return INF_OK;
}

// Returns true if the parameter, which broadcasts to a tensor of `rank` axes, has one element along
// each of the axes.
static bool is_single_along(const struct inf_layout *layout, uint32_t parameter, int32_t rank,
                            const struct inf_ints *axes)
{
    if (parameter == INF_VALUE_NONE)
        return true;
    const struct inf_shape *shape = &layout->graph->values[parameter].shape;
    for (int32_t i = 0; i < axes->count; i++) {
        int64_t axis = axes->values[i] < 0 ? axes->values[i] + rank : axes->values[i];
        int64_t own = axis - (rank - shape->rank);
        if (own >= 0 && shape->dims[own] != 1)
            return false;
    }
    return true;
}

bool inf_layout_can_normalize(const struct inf_layout *layout, const struct inf_node *node,
                              const struct inf_layout_view *view)
{
    const struct inf_ints *axes = &node->attrs.normalize.axes;
    int32_t least = view->rank;
    int32_t most = -1;
    if (inf_layout_find_view(layout, node->inputs[0])->source == INF_VALUE_NONE)
        return false;
    for (int32_t i = 0; i < axes->count; i++) {
        int32_t axis = inf_layout_view_axis(view, axes->values[i]);
        least = INF_MIN(least, axis);
        most = INF_MAX(most, axis);
    }
    if (most - least + 1 != axes->count)
        return false;
    bool single = true;
    for (uint32_t i = 1; i < node->input_count; i++)
        single = single && is_single_along(layout, node->inputs[i], view->rank, axes);
    return single || most + 1 == view->rank;
}
