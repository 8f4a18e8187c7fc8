// SPDX-License-Identifier: Apache-2.0
// Arithmetic of axis permutations: converts axes, shapes and attributes between a view and its
// source.
#include "backends/graph/pass/layout/view.h"

#include <string.h>

struct inf_layout_view inf_layout_view_identity(uint32_t source, int32_t rank)
{
    struct inf_layout_view view = {.source = source, .rank = rank};
    for (int32_t i = 0; i < rank; i++)
        view.perm[i] = i;
    return view;
}

bool inf_layout_view_is_identity(const struct inf_layout_view *view)
{
    for (int32_t i = 0; i < view->rank; i++)
        if (view->perm[i] != i)
            return false;
    return true;
}

bool inf_layout_view_same(const struct inf_layout_view *a, const struct inf_layout_view *b)
{
    return a->rank == b->rank && memcmp(a->perm, b->perm, (size_t)a->rank * sizeof *a->perm) == 0;
}

bool inf_layout_view_is_reshape(const struct inf_layout_view *view, const struct inf_shape *source)
{
    int32_t last = -1;
    if (source->rank != view->rank)
        return false;
    for (int32_t i = 0; i < view->rank; i++) {
        if (source->dims[view->perm[i]] == 1)
            continue;
        if (view->perm[i] < last)
            return false;
        last = view->perm[i];
    }
    return true;
}

struct inf_shape inf_layout_view_shape(const struct inf_layout_view *view,
                                       const struct inf_shape *source)
{
    struct inf_shape shape = {.rank = view->rank};
    for (int32_t i = 0; i < view->rank; i++)
        shape.dims[i] = source->dims[view->perm[i]];
    return shape;
}

struct inf_shape inf_layout_view_source_shape(const struct inf_layout_view *view,
                                              const struct inf_shape *shape)
{
    struct inf_shape result = {.rank = shape->rank};
    for (int32_t i = 0; i < shape->rank && shape->rank == view->rank; i++)
        result.dims[view->perm[i]] = shape->dims[i];
    return result;
}

static int32_t resolve_axis(int64_t axis, int32_t rank)
{
    return (int32_t)(axis < 0 ? axis + rank : axis);
}

int32_t inf_layout_view_axis(const struct inf_layout_view *view, int64_t axis)
{
    return view->perm[resolve_axis(axis, view->rank)];
}

void inf_layout_view_map(const struct inf_layout_view *view, struct inf_ints *axes,
                         bool hit[INF_LIMIT_RANK])
{
    for (int32_t i = 0; i < axes->count; i++) {
        int32_t axis = resolve_axis(axes->values[i], view->rank);
        hit[axis] = true;
        axes->values[i] = view->perm[axis];
    }
}

struct inf_layout_view inf_layout_view_drop(const struct inf_layout_view *view,
                                            const bool hit[INF_LIMIT_RANK])
{
    struct inf_layout_view result = {.rank = 0};
    for (int32_t i = 0; i < view->rank; i++) {
        if (hit[i])
            continue;
        int32_t axis = view->perm[i];
        for (int32_t j = 0; j < view->rank; j++)
            axis -= hit[j] && view->perm[j] < view->perm[i];
        result.perm[result.rank++] = axis;
    }
    return result;
}

struct inf_layout_view inf_layout_view_insert(const struct inf_layout_view *view,
                                              const struct inf_ints *axes)
{
    struct inf_layout_view result = {.rank = view->rank + axes->count};
    bool is_new[INF_LIMIT_RANK] = {false};
    int32_t places[INF_LIMIT_RANK], count = 0;
    for (int32_t i = 0; i < axes->count; i++)
        is_new[resolve_axis(axes->values[i], result.rank)] = true;
    for (int32_t i = 0; i < result.rank; i++)
        if (!is_new[i])
            places[count++] = i;
    for (int32_t i = 0, at = 0; i < result.rank; i++)
        result.perm[i] = is_new[i] ? i : places[view->perm[at++]];
    return result;
}
