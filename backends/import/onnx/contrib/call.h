// SPDX-License-Identifier: Apache-2.0
// Helpers that lower operators of com.microsoft with the lowering functions of ai.onnx, and the
// activations that fused operators apply to their result.
#ifndef INF_BACKENDS_IMPORT_ONNX_CONTRIB_CALL_H
#define INF_BACKENDS_IMPORT_ONNX_CONTRIB_CALL_H

#include "backends/import/onnx/scope.h"

// Lowers the operator `name` of ai.onnx in version `opset` with the attributes of the node of `s`.
// Stores `output_count` values in `outputs`: INF_VALUE_NONE for an output that the operator does
// not have.
void inf_onnx_call(struct inf_onnx_scope *s, const char *name, int64_t opset,
                   const uint32_t *inputs, uint32_t input_count, uint32_t *outputs,
                   uint32_t output_count);

// Calls inf_onnx_call() for an operator with one output, and returns that output.
uint32_t inf_onnx_call_value(struct inf_onnx_scope *s, const char *name, int64_t opset,
                             const uint32_t *inputs, uint32_t input_count);

// Returns input `index`. Latches a failure if it is absent.
uint32_t inf_onnx_needed_input(struct inf_onnx_scope *s, uint32_t index);

// An activation of a fused operator, with its parameters. If a parameter is NaN, the default of the
// activation is used.
struct inf_onnx_activation {
    const char *name; // "": none
    float alpha, beta;
};

// Adds nodes that apply the activation to x. Latches a failure if its name is unknown.
uint32_t inf_onnx_activate(struct inf_onnx_scope *s, uint32_t x,
                           const struct inf_onnx_activation *activation);

#endif
