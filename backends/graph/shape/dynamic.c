// SPDX-License-Identifier: Apache-2.0
// Shapes of lists of tensors, and of operators whose output sizes depend on values.
#include "backends/graph/shape/rules.h"

enum inf_code inf_infer_nonzero(struct inf_infer *infer)
{
    int32_t rank = inf_infer_input(infer, 0)->rank;
    struct inf_shape shape = INF_SHAPE(INF_DIM_UNKNOWN, rank < 0 ? INF_DIM_UNKNOWN : rank);
    return inf_infer_output(infer, 0, &shape);
}

// Checks that input `index`, if present, has one element.
static enum inf_code want_scalar(struct inf_infer *infer, uint32_t index)
{
    char text[INF_SHAPE_TEXT_SIZE];
    size_t count;
    if (!inf_infer_has_input(infer, index))
        return INF_OK;
    const struct inf_shape *shape = inf_infer_input(infer, index);
    if (inf_shape_known(shape) && (!inf_shape_count(shape, &count) || count != 1))
        return inf_shape_fault(infer, "input %u has shape %s, wanted a scalar", index,
                               inf_shape_print(shape, text));
    return INF_OK;
}

// Checks the shapes of boxes and scores: those of one picture and class, or of several.
static enum inf_code check_boxes(struct inf_infer *infer)
{
    const struct inf_shape *boxes = inf_infer_input(infer, 0);
    const struct inf_shape *scores = inf_infer_input(infer, 1);
    char boxes_text[INF_SHAPE_TEXT_SIZE], scores_text[INF_SHAPE_TEXT_SIZE];
    bool fits = true;
    int64_t same;
    if (boxes->rank >= 0)
        fits = (boxes->rank == 2 || boxes->rank == 3) &&
               inf_dim_merge(boxes->dims[boxes->rank - 1], 4, &same);
    if (fits && boxes->rank >= 0 && scores->rank >= 0)
        fits = scores->rank == (boxes->rank == 3 ? 3 : 1) &&
               inf_dim_merge(boxes->dims[boxes->rank - 2], scores->dims[scores->rank - 1], &same) &&
               (boxes->rank == 2 || inf_dim_merge(boxes->dims[0], scores->dims[0], &same));
    if (!fits)
        return inf_shape_fault(
            infer,
            "boxes have shape %s and scores %s, wanted [n,4] and [n], or [p,n,4] and [p,c,n]",
            inf_shape_print(boxes, boxes_text), inf_shape_print(scores, scores_text));
    return INF_OK;
}

// Computes how many rows the outputs of a padded node have: the most outputs of each class of each
// picture. *rows is INF_DIM_UNKNOWN if a size is not known.
static enum inf_code count_padded_rows(struct inf_infer *infer, int64_t *rows)
{
    const struct inf_shape *scores = inf_infer_input(infer, 1);
    int64_t most;
    bool known;
    *rows = INF_DIM_UNKNOWN;
    INF_TRY(inf_infer_integer(infer, 2, &most, &known));
    if (!known || scores->rank < 0 || (scores->rank == 3 && !inf_shape_known(scores)))
        return INF_OK;
    struct inf_shape all = INF_SHAPE(INF_MAX(most, 0), 1, 1);
    if (scores->rank == 3) {
        all.dims[1] = scores->dims[0];
        all.dims[2] = scores->dims[1];
    }
    size_t bytes;
    if (!inf_shape_bytes(&all, INF_DTYPE_U8, &bytes) || bytes >= INF_LIMIT_DIM)
        return inf_shape_fault(infer, "%lld outputs of each class are too many", (long long)most);
    *rows = (int64_t)bytes;
    return INF_OK;
}

enum inf_code inf_infer_nms(struct inf_infer *infer)
{
    INF_TRY(check_boxes(infer));
    for (uint32_t i = 2; i < infer->node->input_count; i++)
        INF_TRY(want_scalar(infer, i));
    struct inf_shape picked = INF_SHAPE(INF_DIM_UNKNOWN);
    if (infer->node->attrs.nms.pad)
        INF_TRY(count_padded_rows(infer, &picked.dims[0]));
    struct inf_shape places = picked;
    if (inf_infer_input(infer, 0)->rank == 3)
        places = INF_SHAPE(picked.dims[0], 3);
    infer->dtypes[0] = INF_DTYPE_I32;
    infer->dtypes[2] = INF_DTYPE_I32;
    INF_TRY(inf_infer_output(infer, 0, &places));
    INF_TRY(inf_infer_output(infer, 1, &picked));
    return inf_infer_output(infer, 2, &(struct inf_shape){0});
}

enum inf_code inf_infer_unique(struct inf_infer *infer)
{
    struct inf_shape shape = *inf_infer_input(infer, 0);
    struct inf_shape every = INF_SHAPE(INF_DIM_UNKNOWN), different = INF_SHAPE(INF_DIM_UNKNOWN);
    for (uint32_t i = 1; i < 4; i++)
        infer->dtypes[i] = INF_DTYPE_I32;
    if (shape.rank >= 0) {
        int32_t axis;
        char text[INF_SHAPE_TEXT_SIZE];
        if (!inf_axis_resolve(infer->node->attrs.unique.axis, shape.rank, &axis))
            return inf_shape_fault(infer, "axis is %d, x has shape %s",
                                   infer->node->attrs.unique.axis, inf_shape_print(&shape, text));
        every.dims[0] = shape.dims[axis];
        shape.dims[axis] = INF_DIM_UNKNOWN;
    }
    INF_TRY(inf_infer_output(infer, 0, &shape));
    INF_TRY(inf_infer_output(infer, 1, &every));
    INF_TRY(inf_infer_output(infer, 2, &different));
    return inf_infer_output(infer, 3, &different);
}

enum inf_code inf_infer_list_diff(struct inf_infer *infer)
{
    struct inf_shape left = INF_SHAPE(INF_DIM_UNKNOWN);
    char text[INF_SHAPE_TEXT_SIZE];
    for (uint32_t i = 0; i < 2; i++)
        if (inf_infer_input(infer, i)->rank >= 0 && inf_infer_input(infer, i)->rank != 1)
            return inf_shape_fault(infer, "input %u has shape %s, wanted [n]", i,
                                   inf_shape_print(inf_infer_input(infer, i), text));
    infer->dtypes[1] = INF_DTYPE_I32;
    INF_TRY(inf_infer_output(infer, 0, &left));
    return inf_infer_output(infer, 1, &left);
}

// Merges the item shape of a list with the shape of a new item into *item. Returns false if they
// differ.
static bool merge_items(const struct inf_shape *list, const struct inf_shape *put,
                        struct inf_shape *item)
{
    // A list whose length is unknown may be empty, and then its item shape means nothing.
    bool is_empty = list->rank < 0 || (list->rank == 2 && list->dims[1] <= 0);
    *item = *put;
    if (is_empty || put->rank < 0)
        return true;
    if (list->rank != put->rank + 1)
        return false;
    for (int32_t i = 0; i < put->rank; i++)
        if (list->dims[i + 1] == 0)
            return true;
    for (int32_t i = 0; i < put->rank; i++)
        if (!inf_dim_merge(list->dims[i + 1], put->dims[i], &item->dims[i]))
            return false;
    return true;
}

enum inf_code inf_infer_list_set(struct inf_infer *infer)
{
    const struct inf_shape *list = inf_infer_input(infer, 0);
    const struct inf_shape *index = inf_infer_input(infer, 1);
    const struct inf_shape *items = inf_infer_input(infer, 2);
    char list_text[INF_SHAPE_TEXT_SIZE], items_text[INF_SHAPE_TEXT_SIZE];
    struct inf_shape put = {.rank = INF_RANK_UNKNOWN}, item;
    int64_t count;
    bool fits = list->rank != 0 && index->rank <= 1;
    if (index->rank >= 0 && items->rank >= 0) {
        fits = fits && items->rank >= index->rank &&
               (index->rank == 0 || inf_dim_merge(index->dims[0], items->dims[0], &count));
        put.rank = fits ? items->rank - index->rank : 0;
        for (int32_t i = 0; i < put.rank; i++)
            put.dims[i] = items->dims[i + index->rank];
    }
    if (!fits || put.rank + 1 > INF_LIMIT_RANK || !merge_items(list, &put, &item))
        return inf_shape_fault(infer, "items of shape %s do not fit a list of shape %s",
                               inf_shape_print(items, items_text),
                               inf_shape_print(list, list_text));
    if (item.rank < 0)
        return INF_OK;
    struct inf_shape shape = {.rank = item.rank + 1};
    shape.dims[0] =
        infer->node->attrs.list_set.grow || list->rank < 0 ? INF_DIM_UNKNOWN : list->dims[0];
    for (int32_t i = 0; i < item.rank; i++)
        shape.dims[i + 1] = item.dims[i];
    return inf_infer_output(infer, 0, &shape);
}

enum inf_code inf_infer_append(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *at = inf_infer_input(infer, 1);
    const struct inf_shape *rows = inf_infer_input(infer, 2);
    char x_text[INF_SHAPE_TEXT_SIZE], at_text[INF_SHAPE_TEXT_SIZE], rows_text[INF_SHAPE_TEXT_SIZE];
    struct inf_shape y = *x;
    int32_t axis = 0;
    bool fits = at->rank < 0 || at->rank == 1;
    if (x->rank >= 0) {
        fits = fits && inf_axis_resolve(infer->node->attrs.append.axis, x->rank, &axis) &&
               (rows->rank < 0 || rows->rank == x->rank);
        bool several = at->rank == 1 && at->dims[0] >= 0 && at->dims[0] != 1;
        fits = fits && !(several && (axis == 0 || (x->dims[0] >= 0 && x->dims[0] != at->dims[0])));
    }
    for (int32_t i = 0; fits && i < y.rank && rows->rank >= 0; i++) {
        if (i != axis)
            fits = inf_dim_merge(x->dims[i], rows->dims[i], &y.dims[i]);
        else
            fits = x->dims[i] < 0 || rows->dims[i] <= x->dims[i];
    }
    if (!fits)
        return inf_shape_fault(infer, "rows of shape %s at %s do not fit %s along axis %d",
                               inf_shape_print(rows, rows_text), inf_shape_print(at, at_text),
                               inf_shape_print(x, x_text), infer->node->attrs.append.axis);
    return inf_infer_output(infer, 0, &y);
}
