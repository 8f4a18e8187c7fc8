// SPDX-License-Identifier: Apache-2.0
// The graphs that control flow operators have as attributes. A body is read once. It is then
// lowered into the surrounding graph as often as needed, or into a subgraph of its own.
#ifndef INF_BACKENDS_IMPORT_ONNX_BODY_H
#define INF_BACKENDS_IMPORT_ONNX_BODY_H

#include "backends/import/onnx/capture.h"

// The largest number of iterations that are unrolled.
#define INF_ONNX_ROUNDS_MAX 256
// The largest number of values that one iteration takes or makes.
#define INF_ONNX_CARRIED_MAX 64

struct inf_onnx_body {
    struct inf_onnx_graph graph;
    const char *const *outputs;       // names of the outputs
    struct inf_onnx_capture *capture; // set if the body becomes a subgraph; else NULL
};

// Reads the graph in attribute `name`. Returns false after a failure.
bool inf_onnx_body_read(struct inf_onnx_scope *s, struct inf_onnx_body *body, const char *name);

// Lowers the body once into s->b.graph. `inputs` are the values of its inputs; `outputs` gets the
// values of its outputs and has room for them.
void inf_onnx_body_lower(struct inf_onnx_scope *s, const struct inf_onnx_body *body,
                         const uint32_t *inputs, uint32_t *outputs);

// Makes `values` the next outputs of s->b.graph, a subgraph. Each gets an identity node, because an
// output must be made by a node.
void inf_onnx_body_add_outputs(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count);

// Values of several iterations, to be joined along an axis.
struct inf_onnx_stack {
    uint32_t values[INF_ONNX_ROUNDS_MAX];
    uint32_t count;
};

// Appends a value as one slice along `axis`.
void inf_onnx_stack_push(struct inf_onnx_scope *s, struct inf_onnx_stack *stack, uint32_t value,
                         int32_t axis);

// Returns all values joined along `axis`. Fails if there are none.
uint32_t inf_onnx_stack_join(struct inf_onnx_scope *s, const struct inf_onnx_stack *stack,
                             int32_t axis);

#endif
