// SPDX-License-Identifier: Apache-2.0
// Values that the body of a branch or loop uses from outside, if the body becomes a subgraph. They
// become inputs of the subgraph.
#ifndef INF_BACKENDS_IMPORT_ONNX_CAPTURE_H
#define INF_BACKENDS_IMPORT_ONNX_CAPTURE_H

#include "backends/import/onnx/scope.h"

// The outside values that the subgraphs of one node use. All subgraphs of the node share the list.
struct inf_onnx_captured {
    uint32_t *values; // values of the outer graph
    uint32_t count, capacity;
};

// A subgraph that is being built.
struct inf_onnx_capture {
    struct inf_graph *outer; // the graph that has the node
    struct inf_graph *graph;
    struct inf_onnx_captured *captured;
    // Indexed by captured value: the value of the subgraph that stands for it; INF_VALUE_NONE:
    // there is none yet.
    uint32_t *own;
    uint32_t own_capacity;
};

// Frees the list.
void inf_onnx_captured_fini(struct inf_onnx_captured *captured);

// Returns the subgraph's value for `value` of the outer graph. A constant is not captured; the
// subgraph gets a copy that shares its data.
uint32_t inf_onnx_capture(struct inf_onnx_scope *s, struct inf_onnx_capture *capture,
                          uint32_t value);

// Makes all captured values inputs of the subgraph, in the order of the list.
void inf_onnx_capture_end(struct inf_onnx_scope *s, struct inf_onnx_capture *capture);

// Frees the capture. Also frees the subgraph, unless a node took ownership of it.
void inf_onnx_capture_fini(struct inf_onnx_capture *capture);

#endif
