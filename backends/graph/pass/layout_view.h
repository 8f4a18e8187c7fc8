// SPDX-License-Identifier: Apache-2.0
// A view describes a value as another value (its source) with the axes permuted. The layout pass
// records a transpose as a view instead of writing a node. The functions here convert axes, shapes
// and attributes between a view and its source.
#ifndef INF_BACKENDS_GRAPH_PASS_LAYOUT_VIEW_H
#define INF_BACKENDS_GRAPH_PASS_LAYOUT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/graph/graph.h"

// Axis i of the value is axis perm[i] of `source`.
struct inf_layout_view {
    uint32_t source; // INF_VALUE_NONE if the value is not a view
    int32_t rank;
    int32_t perm[INF_LIMIT_RANK];
};

// Returns a view of `source` with the identity permutation.
struct inf_layout_view inf_layout_view_identity(uint32_t source, int32_t rank);

// Returns whether the permutation of a view is the identity.
bool inf_layout_view_is_identity(const struct inf_layout_view *view);

// Returns whether two views have the same permutation. Their sources may differ.
bool inf_layout_view_same(const struct inf_layout_view *a, const struct inf_layout_view *b);

// Returns whether a view of a source of this shape moves only axes of size 1. Such a view is a
// reshape, which costs nothing.
bool inf_layout_view_is_reshape(const struct inf_layout_view *view, const struct inf_shape *source);

// Returns the shape of a view of a source of this shape.
struct inf_shape inf_layout_view_shape(const struct inf_layout_view *view,
                                       const struct inf_shape *source);

// Returns the shape of a source whose view has the shape `shape`. If the rank of `shape` differs
// from the view's rank, only the rank of the result is known.
struct inf_shape inf_layout_view_source_shape(const struct inf_layout_view *view,
                                              const struct inf_shape *shape);

// Converts an axis of the view to the axis of the source. A negative `axis` counts from the end.
int32_t inf_layout_view_axis(const struct inf_layout_view *view, int64_t axis);

// Converts `axes` from axes of the view to axes of the source. Also sets hit[i] for each listed
// axis i of the view.
void inf_layout_view_map(const struct inf_layout_view *view, struct inf_ints *axes,
                         bool hit[INF_LIMIT_RANK]);

// Returns the view without the marked axes.
struct inf_layout_view inf_layout_view_drop(const struct inf_layout_view *view,
                                            const bool hit[INF_LIMIT_RANK]);

// Returns the view with axes of size 1 inserted at the same places in the view and in its source.
// The view's rank and the number of new axes must add up to at most INF_LIMIT_RANK.
struct inf_layout_view inf_layout_view_insert(const struct inf_layout_view *view,
                                              const struct inf_ints *axes);

#endif
