// SPDX-License-Identifier: Apache-2.0
// The graphs that control flow operators have as attributes. A body is read once. It is then
// lowered into the surrounding graph as often as needed, or into a separate subgraph.
#ifndef INF_BACKENDS_IMPORT_ONNX_BODY_H
#define INF_BACKENDS_IMPORT_ONNX_BODY_H

#include "backends/import/onnx/capture.h"

// The largest number of iterations that are unrolled.
#define INF_ONNX_ROUNDS_MAX 256
// The most values that one iteration of a loop takes or returns.
#define INF_ONNX_CARRIED_MAX 64

struct inf_onnx_body {
    struct inf_onnx_graph graph;
    const char *const *outputs; // names of the outputs
    // Captures the outside values if the body becomes a subgraph; otherwise NULL.
    struct inf_onnx_capture *capture;
};

// Reads the graph in attribute `name`. Returns false after a failure.
bool inf_onnx_body_read(struct inf_onnx_scope *s, struct inf_onnx_body *body, const char *name);

// Lowers the body once into s->b.graph. `inputs` are the values of its inputs. The values of its
// outputs are written to `outputs`, which must be large enough.
void inf_onnx_body_lower(struct inf_onnx_scope *s, const struct inf_onnx_body *body,
                         const uint32_t *inputs, uint32_t *outputs);

// Makes `values` the next outputs of s->b.graph, a subgraph. Each value gets an identity node,
// because a node must compute every output.
void inf_onnx_body_add_outputs(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count);

// The results of several iterations of an unrolled loop, which are joined along an axis later.
struct inf_onnx_stack {
    uint32_t values[INF_ONNX_ROUNDS_MAX];
    uint32_t count;
};

// Appends the result of one iteration to the stack, as one slice along `axis`.
void inf_onnx_stack_push(struct inf_onnx_scope *s, struct inf_onnx_stack *stack, uint32_t value,
                         int32_t axis);

// Returns all values of the stack joined along `axis`. Fails if the stack is empty.
uint32_t inf_onnx_stack_join(struct inf_onnx_scope *s, const struct inf_onnx_stack *stack,
                             int32_t axis);

#endif
