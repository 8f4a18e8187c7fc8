// SPDX-License-Identifier: Apache-2.0
// Lowers lists of nodes: those of the model, and those of functions, branches and loop bodies.
#ifndef INF_BACKENDS_IMPORT_ONNX_LOWER_H
#define INF_BACKENDS_IMPORT_ONNX_LOWER_H

#include "backends/import/onnx/scope.h"

// Lowers `nodes`, whose inputs and outputs are names in `frame`. If they are the body of a node (a
// call, branch or loop), `s` is the scope of that node. `s` records the first failure.
void inf_onnx_lower_nodes(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                          struct inf_onnx_node *nodes, uint32_t count);

// Adds the initialisers of `graph` as constants, under their names in `frame`.
void inf_onnx_lower_initializers(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                 const struct inf_onnx_graph *graph);

// Returns the value called `name` in `frame`; records a failure if there is none. A value from
// outside a subgraph is captured, that is, it becomes an input of the subgraph.
uint32_t inf_onnx_lookup(struct inf_onnx_scope *s, const struct inf_onnx_frame *frame,
                         const char *name);

#endif
