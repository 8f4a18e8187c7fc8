// SPDX-License-Identifier: Apache-2.0
// The graphs that control flow operators have as attributes: read once, lowered in place as often as
// wanted, or into a graph of their own.
#ifndef INF_BACKENDS_IMPORT_ONNX_BODY_H
#define INF_BACKENDS_IMPORT_ONNX_BODY_H

#include "backends/import/onnx/capture.h"

// Rounds of a loop that are worth writing out.
#define INF_ONNX_ROUNDS_MAX 256
// Values that one round takes, or makes.
#define INF_ONNX_CARRIED_MAX 64

struct inf_onnx_body {
    struct inf_onnx_graph graph;
    const char *const *outputs;       // their names
    struct inf_onnx_capture *capture; // where it becomes a subgraph; else NULL
};

// Reads the graph that attribute `name` is. False after a failure.
bool inf_onnx_body_read(struct inf_onnx_scope *s, struct inf_onnx_body *body, const char *name);

// Lowers the body once into s->b.graph: `inputs` are the values of its inputs, what its outputs are
// goes to `outputs`, which has room for them.
void inf_onnx_body_lower(struct inf_onnx_scope *s, const struct inf_onnx_body *body,
                         const uint32_t *inputs, uint32_t *outputs);

// Makes values, each something that a node makes, the next outputs of s->b.graph, a subgraph.
void inf_onnx_body_add_outputs(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count);

// Values of several rounds, to be joined along an axis.
struct inf_onnx_stack {
    uint32_t values[INF_ONNX_ROUNDS_MAX];
    uint32_t count;
};

// Puts a value on top, as one slice along `axis`.
void inf_onnx_stack_push(struct inf_onnx_scope *s, struct inf_onnx_stack *stack, uint32_t value,
                         int32_t axis);

// All of them joined along `axis`; fails where there are none.
uint32_t inf_onnx_stack_join(struct inf_onnx_scope *s, const struct inf_onnx_stack *stack,
                             int32_t axis);

#endif
