// SPDX-License-Identifier: Apache-2.0
// A view describes a value as another value (its source) with the axes permuted. The layout pass
// records a transpose as a view instead of writing a node. The functions here convert axes, shapes
// and attributes between a view and its source.
#ifndef INF_BACKENDS_GRAPH_PASS_LAYOUT_VIEW_H
#define INF_BACKENDS_GRAPH_PASS_LAYOUT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/graph/graph.h"

// Describes a value whose axis i is axis perm[i] of the value `source`.
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

// Returns true if a view whose source has the shape `source` moves only axes of size 1. Such a view
// is a reshape, which costs nothing. Returns false otherwise.
bool inf_layout_view_is_reshape(const struct inf_layout_view *view, const struct inf_shape *source);

// Returns the shape of a view whose source has the shape `source`.
struct inf_shape inf_layout_view_shape(const struct inf_layout_view *view,
                                       const struct inf_shape *source);

// Given a view and the shape that the view has, returns the shape of the view's source. If the rank
// of `shape` differs from the view's rank, only the rank of the result is known.
struct inf_shape inf_layout_view_source_shape(const struct inf_layout_view *view,
                                              const struct inf_shape *shape);

// Converts an axis of the view to the axis of the source. A negative `axis` counts from the end.
int32_t inf_layout_view_axis(const struct inf_layout_view *view, int64_t axis);

// Converts the list `axes` from axes of the view to axes of its source. Also sets hit[i] to true
// for each axis i of the view that is in the list.
void inf_layout_view_map(const struct inf_layout_view *view, struct inf_ints *axes,
                         bool hit[INF_LIMIT_RANK]);

// Returns the view that remains after the marked axes are removed from both the view and its
// source.
struct inf_layout_view inf_layout_view_drop(const struct inf_layout_view *view,
                                            const bool hit[INF_LIMIT_RANK]);

// Returns the view with axes of size 1 inserted at the same places in the view and in its source.
// The view's rank and the number of new axes must add up to at most INF_LIMIT_RANK.
struct inf_layout_view inf_layout_view_insert(const struct inf_layout_view *view,
                                              const struct inf_ints *axes);

#endif
