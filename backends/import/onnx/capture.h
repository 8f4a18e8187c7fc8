// SPDX-License-Identifier: Apache-2.0
// Bodies that become subgraphs: what they take from outside is noted and goes in as inputs.
#ifndef INF_BACKENDS_IMPORT_ONNX_CAPTURE_H
#define INF_BACKENDS_IMPORT_ONNX_CAPTURE_H

#include "backends/import/onnx/scope.h"

// Values of a graph that its node's subgraphs take: one list for both of them.
struct inf_onnx_captured {
    uint32_t *values; // of the outer graph
    uint32_t count, capacity;
};

// A subgraph that is being made.
struct inf_onnx_capture {
    struct inf_graph *outer; // the graph around it
    struct inf_graph *graph;
    struct inf_onnx_captured *captured;
    uint32_t *own; // by place in the list: the subgraph's value for it; INF_VALUE_NONE: not used
    uint32_t own_capacity;
};

// Frees the list.
void inf_onnx_captured_fini(struct inf_onnx_captured *captured);

// The subgraph's value for `value` of the outer graph. Constants are shared, not captured.
uint32_t inf_onnx_capture(struct inf_onnx_scope *s, struct inf_onnx_capture *capture,
                          uint32_t value);

// Makes every value of the list an input of the subgraph, in order.
void inf_onnx_capture_end(struct inf_onnx_scope *s, struct inf_onnx_capture *capture);

// Frees what capturing took, and the subgraph where it is still there.
void inf_onnx_capture_fini(struct inf_onnx_capture *capture);

#endif
