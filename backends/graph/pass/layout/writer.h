// SPDX-License-Identifier: Apache-2.0
// State of the layout pass: the list of nodes that replaces the graph's nodes, and the values that
// are views of other values. Private to layout.c and operator.c.
#ifndef INF_BACKENDS_GRAPH_PASS_LAYOUT_WRITER_H
#define INF_BACKENDS_GRAPH_PASS_LAYOUT_WRITER_H

#include "backends/graph/pass/layout/view.h"
#include "backends/graph/pass/rewrite.h"

struct inf_layout {
    struct inf_rewrite *rewrite;
    struct inf_graph *graph;
    // views[v] describes value v of the graph as it was before the pass
    struct inf_layout_view *views;
    uint32_t view_count;
    // materialized[v] is true if `nodes` has a node that computes the view of value v
    bool *materialized;
    struct inf_node *nodes;
    uint32_t count, capacity;
};

// Reports out of memory in the rewrite's error; returns INF_EXHAUSTED.
enum inf_code inf_layout_no_memory(const struct inf_layout *layout);

// Returns the view that describes `value`. Its source is INF_VALUE_NONE if the value is not a view.
const struct inf_layout_view *inf_layout_find_view(const struct inf_layout *layout, uint32_t value);

// Appends a node to the list of nodes that will replace the graph's nodes.
enum inf_code inf_layout_add_node(struct inf_layout *layout,
                                  const struct inf_node *node) INF_NODISCARD;

// Appends a node that applies `op` to `inputs` and computes `output`, to the list of nodes that
// will replace the graph's nodes. The new node gets the same name as the node `like`.
enum inf_code inf_layout_add_op(struct inf_layout *layout, const struct inf_node *like,
                                enum inf_op op, const uint32_t *inputs, uint32_t input_count,
                                uint32_t output, union inf_attrs *attrs) INF_NODISCARD;

// Appends a reshape node from value `from` to value `to`, whose shape is `shape`.
enum inf_code inf_layout_add_reshape(struct inf_layout *layout, const struct inf_node *like,
                                     const struct inf_shape *shape, uint32_t from,
                                     uint32_t to) INF_NODISCARD;

// Adds a value of the given shape to the graph. The new value gets the same name and element type
// as the value `like`.
enum inf_code inf_layout_add_value(struct inf_layout *layout, uint32_t like,
                                   const struct inf_shape *shape,
                                   uint32_t *out_value) INF_NODISCARD;

// If `value` is a view, appends the transpose or reshape node that computes it, unless that node
// was appended before. The new node gets the same name as the node `like`.
enum inf_code inf_layout_materialize(struct inf_layout *layout, const struct inf_node *like,
                                     uint32_t value) INF_NODISCARD;

// Makes *value usable by an operator that does not accept views (values recorded as "another value
// with its axes permuted"): replaces a view with the identity permutation by its source, and
// computes any other view by a transpose node.
enum inf_code inf_layout_resolve_view(struct inf_layout *layout, const struct inf_node *like,
                                      uint32_t *value) INF_NODISCARD;

#endif
