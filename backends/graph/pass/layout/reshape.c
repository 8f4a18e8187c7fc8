// SPDX-License-Identifier: Apache-2.0
// Reshapes of views. A reshape splits and merges axes, and a view permutes axes; both can be
// exchanged if the reshape treats each group of axes by itself:
//
//     t = transpose(s [n,h,w,c])          -> [n,c,h,w]       t is a view of s
//     y = reshape(t)                      -> [n,2,c/2,h,w]   the group (c) becomes (2, c/2)
//
// becomes z = reshape(s) -> [n,h,w,2,c/2], and y is a view of z. This works if the axes of each
// group are neighbours in the source, in the same order, which splits always fulfil.
//
// A merge of axes that are not neighbours needs a copy, as in the channel shuffles and pixel
// shuffles that exporters write as reshape, transpose, reshape. The copy that the reshape needs is
// then made in the order in which later nodes transpose the result, if that saves a copy:
//
//     y = reshape(view [n,c,h,a,w,b] of [n,h,w,c,a,b]) -> [n,c,h*a,w*b],  transposed to [n,h,w,c]
//
// becomes a transpose to [n,h,a,w,b,c] and a reshape to [n,h*a,w*b,c], of which y is a view.
//
// A matmul with a constant matrix does not need the copy: if it reads a view that was made flat,
// the rows of the matrix take the order of the source instead.
#include "backends/graph/pass/layout/reshape.h"

#include "backends/graph/pass/layout/readers.h"

// Axes of the view that become axes of the result. Groups follow each other in both shapes.
struct group {
    int32_t first, end;         // axes of the view
    int32_t out_first, out_end; // axes of the result
};

struct reshape {
    const struct inf_node *node;
    const struct inf_layout_view *view;
    struct inf_shape before, after; // of the view, and of the result
    struct group groups[2 * INF_LIMIT_RANK];
    int32_t count;
};

// Cuts both shapes into the smallest groups with equal numbers of elements.
static bool find_groups(struct reshape *reshape)
{
    const struct inf_shape *before = &reshape->before;
    const struct inf_shape *after = &reshape->after;
    int32_t i = 0;
    int32_t j = 0;
    while (i < before->rank || j < after->rank) {
        struct group *group = &reshape->groups[reshape->count++];
        *group = (struct group){.first = i, .out_first = j};
        int64_t old = i < before->rank ? before->dims[i++] : 1;
        int64_t new = j < after->rank ? after->dims[j++] : 1;
        while (old != new) {
            if (old < new &&i < before->rank)
                old *= before->dims[i++];
            else if (new < old && j < after->rank)
                new *= after->dims[j++];
            else
                return false;
        }
        group->end = i;
        group->out_end = j;
    }
    return true;
}

// Returns the axis of the source for the first axis of the group that is longer than 1; -1 if there
// is none.
static int32_t place_of(const struct reshape *reshape, const struct group *group)
{
    for (int32_t i = group->first; i < group->end; i++)
        if (reshape->before.dims[i] > 1)
            return reshape->view->perm[i];
    return -1;
}

// Returns true if the axes of the group are neighbours in the source, in the same order. Axes of
// size 1 do not count.
static bool is_contiguous(const struct reshape *reshape, const struct group *group)
{
    const struct inf_layout_view *view = reshape->view;
    int32_t last = -1;
    for (int32_t i = group->first; i < group->end; i++) {
        if (reshape->before.dims[i] == 1)
            continue;
        if (view->perm[i] < last)
            return false;
        // No other axis of the view may lie between the previous axis and this one.
        for (int32_t k = 0; last >= 0 && k < view->rank; k++)
            if (reshape->before.dims[k] > 1 && view->perm[k] > last &&
                view->perm[k] < view->perm[i])
                return false;
        last = view->perm[i];
    }
    return true;
}

// Sorts the indices of the groups by their places in the source. Groups of size 1 may have any
// place, so each stays behind the group before it.
static void sort_groups(const struct reshape *reshape, int32_t *order)
{
    int32_t places[2 * INF_LIMIT_RANK];
    for (int32_t i = 0; i < reshape->count; i++) {
        int32_t at = i;
        places[i] = place_of(reshape, &reshape->groups[i]);
        if (places[i] < 0 && i > 0)
            places[i] = places[i - 1];
        for (; at > 0 && places[order[at - 1]] > places[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

// Appends a reshape of `source`, whose groups of axes are in this order, and records the result of
// the node as a view of it.
static enum inf_code write_reshape(struct inf_layout *layout, const struct reshape *reshape,
                                   uint32_t source, const int32_t *order)
{
    uint32_t result = reshape->node->outputs[0];
    struct inf_layout_view view = {.rank = reshape->after.rank};
    struct inf_shape shape = {.rank = 0};
    for (int32_t i = 0; i < reshape->count; i++) {
        const struct group *group = &reshape->groups[order[i]];
        for (int32_t axis = group->out_first; axis < group->out_end; axis++) {
            view.perm[axis] = shape.rank;
            shape.dims[shape.rank++] = reshape->after.dims[axis];
        }
    }
    layout->rewrite->changed = true;
    if (inf_layout_view_is_identity(&view))
        return inf_layout_add_reshape(layout, reshape->node, &shape, source, result);
    INF_TRY(inf_layout_add_value(layout, result, &shape, &view.source));
    INF_TRY(inf_layout_add_reshape(layout, reshape->node, &shape, source, view.source));
    layout->graph->values[result].producer = INF_NODE_NONE;
    layout->views[result] = view;
    return INF_OK;
}

// --- merges that need a copy ---

// Puts the groups into the order in which `perm` has their axes in the result. Returns false if it
// tears the axes of a group apart.
static bool order_by_reader(const struct reshape *reshape, const struct inf_ints *perm,
                            int32_t *order)
{
    int32_t count = 0;
    for (int32_t i = 0; i < reshape->count; i++) // groups of size 1 without axes in the result
        if (reshape->groups[i].out_first == reshape->groups[i].out_end)
            order[count++] = i;
    for (int32_t i = 0; i < perm->count;) {
        int64_t axis = perm->values[i] < 0 ? perm->values[i] + perm->count : perm->values[i];
        int32_t g = 0;
        while (reshape->groups[g].out_first != axis ||
               reshape->groups[g].out_end == reshape->groups[g].out_first)
            if (++g == reshape->count)
                return false;
        for (; axis < reshape->groups[g].out_end; axis++, i++)
            if (i == perm->count || perm->values[i] != axis)
                return false;
        order[count++] = g;
    }
    return count == reshape->count;
}

// Appends a transpose of the view's source that makes the groups contiguous, in this order, with
// the axes of each group in the order of the view.
static enum inf_code write_transpose(struct inf_layout *layout, const struct reshape *reshape,
                                     const int32_t *order, uint32_t *out_value)
{
    const struct inf_layout_view *view = reshape->view;
    struct inf_shape shape = {.rank = 0};
    union inf_attrs attrs;
    inf_attrs_init(&attrs, INF_OP_TRANSPOSE);
    for (int32_t i = 0; i < reshape->count; i++) {
        const struct group *group = &reshape->groups[order[i]];
        for (int32_t axis = group->first; axis < group->end; axis++) {
            attrs.transpose.perm.values[shape.rank] = view->perm[axis];
            shape.dims[shape.rank++] = reshape->before.dims[axis];
        }
    }
    attrs.transpose.perm.count = shape.rank;
    INF_TRY(inf_layout_add_value(layout, reshape->node->inputs[0], &shape, out_value));
    return inf_layout_add_op(layout, reshape->node, INF_OP_TRANSPOSE, &view->source, 1, *out_value,
                             &attrs);
}

// --- flat views that a matmul reads ---

// Appends nodes that put the rows of the matrix of `product` into the order that the axes of
// `group` have in the source, and makes the result the operand. Constant folding computes it once.
static enum inf_code permute_matrix(struct inf_layout *layout, const struct reshape *reshape,
                                    const struct group *group, const int32_t *axes, int32_t count,
                                    struct inf_node *product)
{
    uint32_t matrix = product->inputs[1];
    const struct inf_shape flat = layout->graph->values[matrix].shape;
    bool transposed = product->attrs.matmul.transpose_b;
    // Position of the rows in the cut shape: behind the columns if the matrix is transposed.
    int32_t rows = transposed ? 1 : 0;
    struct inf_shape cut = {.rank = count + 1};
    struct inf_shape permuted = {.rank = count + 1};
    union inf_attrs attrs;
    uint32_t parts;
    uint32_t moved;
    inf_attrs_init(&attrs, INF_OP_TRANSPOSE);
    attrs.transpose.perm.count = count + 1;
    int32_t columns = transposed ? 0 : count;
    cut.dims[columns] = permuted.dims[columns] = flat.dims[transposed ? 0 : 1];
    attrs.transpose.perm.values[columns] = columns;
    for (int32_t i = 0; i < count; i++) {
        cut.dims[rows + i] = reshape->before.dims[group->first + i];
        permuted.dims[rows + i] = reshape->before.dims[axes[i]];
        attrs.transpose.perm.values[rows + i] = rows + axes[i] - group->first;
    }
    INF_TRY(inf_layout_add_value(layout, matrix, &cut, &parts));
    INF_TRY(inf_layout_add_reshape(layout, product, &cut, matrix, parts));
    INF_TRY(inf_layout_add_value(layout, matrix, &permuted, &moved));
    INF_TRY(inf_layout_add_op(layout, product, INF_OP_TRANSPOSE, &parts, 1, moved, &attrs));
    INF_TRY(inf_layout_add_value(layout, matrix, &flat, &product->inputs[1]));
    return inf_layout_add_reshape(layout, product, &flat, moved, product->inputs[1]);
}

// Sorts the axes of the group by their places in the source.
static int32_t sort_axes(const struct reshape *reshape, const struct group *group, int32_t *axes)
{
    int32_t count = 0;
    for (int32_t axis = group->first; axis < group->end; axis++, count++) {
        int32_t at = count;
        for (; at > 0 && reshape->view->perm[axes[at - 1]] > reshape->view->perm[axis]; at--)
            axes[at] = axes[at - 1];
        axes[at] = axis;
    }
    return count;
}

// If the reshape makes each row of a matrix of all axes but the first ones, and a matmul with a
// constant matrix reads it, reorders the rows of that matrix. The source must have the rows first.
static enum inf_code write_flat_view(struct inf_layout *layout, const struct reshape *reshape,
                                     bool *out_done)
{
    int32_t axes[INF_LIMIT_RANK];
    struct reshape sorted = *reshape;
    struct inf_layout_view view = *reshape->view;
    const struct group *last = &reshape->groups[reshape->count - 1];
    struct inf_node *product = inf_layout_find_product(layout, reshape->node);
    if (product == NULL || last->out_end - last->out_first != 1 || last->end - last->first < 2)
        return INF_OK;
    int32_t count = sort_axes(reshape, last, axes);
    if (count + 1 > INF_LIMIT_RANK)
        return INF_OK;
    // The same reshape with the axes of the last group in the order of the source.
    for (int32_t i = 0; i < count; i++)
        view.perm[last->first + i] = reshape->view->perm[axes[i]];
    if (!inf_layout_view_is_identity(&view))
        return INF_OK;
    sorted.view = &view;
    int32_t order[2 * INF_LIMIT_RANK];
    for (int32_t i = 0; i < reshape->count; i++)
        order[i] = i;
    INF_TRY(permute_matrix(layout, reshape, last, axes, count, product));
    *out_done = true;
    return write_reshape(layout, &sorted, view.source, order);
}

enum inf_code inf_layout_rewrite_reshape(struct inf_layout *layout, const struct inf_node *node,
                                         bool *out_done)
{
    const struct inf_value *values = layout->graph->values;
    struct reshape reshape = {.node = node,
                              .view = inf_layout_find_view(layout, node->inputs[0]),
                              .before = values[node->inputs[0]].shape,
                              .after = values[node->outputs[0]].shape};
    int32_t order[2 * INF_LIMIT_RANK];
    bool contiguous = true;
    size_t count;
    *out_done = false;
    if (reshape.view->source == INF_VALUE_NONE || reshape.before.rank != reshape.view->rank ||
        !inf_shape_count(&reshape.before, &count) || count == 0 ||
        !inf_shape_known(&reshape.after) || !find_groups(&reshape))
        return INF_OK;
    for (int32_t i = 0; i < reshape.count; i++)
        contiguous = contiguous && is_contiguous(&reshape, &reshape.groups[i]);
    if (contiguous) {
        *out_done = true;
        sort_groups(&reshape, order);
        return write_reshape(layout, &reshape, reshape.view->source, order);
    }
    const struct inf_ints *perm = inf_layout_find_reader_order(layout, node);
    if (perm == NULL)
        return write_flat_view(layout, &reshape, out_done);
    uint32_t copy;
    if (!order_by_reader(&reshape, perm, order))
        return INF_OK;
    *out_done = true;
    INF_TRY(write_transpose(layout, &reshape, order, &copy));
    return write_reshape(layout, &reshape, copy, order);
}
