// SPDX-License-Identifier: Apache-2.0
// A value seen as another one with its axes permuted: what the layout pass remembers of a transpose
// that it has not written down. Axes, shapes and attributes of both sides, one from the other.
#ifndef INF_BACKENDS_GRAPH_PASS_LAYOUT_VIEW_H
#define INF_BACKENDS_GRAPH_PASS_LAYOUT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/graph/graph.h"

// Axis i of the value is axis perm[i] of `source`.
struct inf_layout_view {
    uint32_t source; // INF_VALUE_NONE: the value is no view
    int32_t rank;
    int32_t perm[INF_LIMIT_RANK];
};

// A view of `source` that moves nothing.
struct inf_layout_view inf_layout_view_identity(uint32_t source, int32_t rank);

// Whether a view moves nothing.
bool inf_layout_view_is_identity(const struct inf_layout_view *view);

// Whether two views, of any sources, move the same.
bool inf_layout_view_same(const struct inf_layout_view *a, const struct inf_layout_view *b);

// Whether a view of a source of this shape moves nothing but axes of size 1: then it is a reshape,
// which costs nothing.
bool inf_layout_view_is_reshape(const struct inf_layout_view *view, const struct inf_shape *source);

// The shape of a view of a source of this shape.
struct inf_shape inf_layout_view_shape(const struct inf_layout_view *view,
                                       const struct inf_shape *source);

// The shape of a source whose view has the shape `shape`; where their ranks differ only its rank is
// told.
struct inf_shape inf_layout_view_source_shape(const struct inf_layout_view *view,
                                              const struct inf_shape *shape);

// The source's axis that is the view's `axis`, which may count from the end.
int32_t inf_layout_view_axis(const struct inf_layout_view *view, int64_t axis);

// Makes axes of the view those of its source, and marks them in `hit`, by the view's axes.
void inf_layout_view_map(const struct inf_layout_view *view, struct inf_ints *axes,
                         bool hit[INF_LIMIT_RANK]);

// What is left of a view without the axes marked.
struct inf_layout_view inf_layout_view_drop(const struct inf_layout_view *view,
                                            const bool hit[INF_LIMIT_RANK]);

// The view with axes of size 1 inserted at the same places on both sides; the ranks' sum is at most
// INF_LIMIT_RANK.
struct inf_layout_view inf_layout_view_insert(const struct inf_layout_view *view,
                                              const struct inf_ints *axes);

#endif
