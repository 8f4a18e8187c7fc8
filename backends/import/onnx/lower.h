// SPDX-License-Identifier: Apache-2.0
// Lowers lists of nodes: the model's own, and those of functions, branches and loop bodies.
#ifndef INF_BACKENDS_IMPORT_ONNX_LOWER_H
#define INF_BACKENDS_IMPORT_ONNX_LOWER_H

#include "backends/import/onnx/scope.h"

// Lowers `nodes` in `frame`. The scope is that of the node whose body they are; it gets the first
// failure.
void inf_onnx_lower_nodes(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                          struct inf_onnx_node *nodes, uint32_t count);

// Makes the initialisers of `graph` constants that are named in `frame`.
void inf_onnx_lower_initializers(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                 const struct inf_onnx_graph *graph);

// Returns the value that `name` means in `frame`; latches a failure if it means nothing. A value
// from outside of a subgraph is captured: it becomes an input of the subgraph.
uint32_t inf_onnx_lookup(struct inf_onnx_scope *s, const struct inf_onnx_frame *frame,
                         const char *name);

#endif
