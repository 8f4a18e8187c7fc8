// SPDX-License-Identifier: Apache-2.0
// Lowers the operators of subgraphs.
#ifndef INF_BACKENDS_IMPORT_TFLITE_LOWER_H
#define INF_BACKENDS_IMPORT_TFLITE_LOWER_H

#include "backends/import/tflite/scope.h"

// Prepares a frame for a subgraph whose tensors have no values yet. All its memory is in the
// import's arena. `outer` is the frame of the operator that runs the subgraph, or NULL.
//
// INF_INVALID    the subgraph runs itself.
// INF_EXHAUSTED  subgraphs are nested too deep, or no memory.
enum inf_code inf_tflite_frame_init(struct inf_tflite_frame *frame,
                                    struct inf_tflite_import *import,
                                    const struct inf_tflite_frame *outer,
                                    const struct inf_tflite_subgraph *subgraph,
                                    struct inf_error *err) INF_NODISCARD;

// Lowers all operators of the frame's subgraph into `graph`. The inputs of the subgraph are bound
// to values.
enum inf_code inf_tflite_lower_subgraph(struct inf_tflite_import *import,
                                        struct inf_tflite_frame *frame, struct inf_graph *graph,
                                        struct inf_error *err) INF_NODISCARD;

// Returns a scope for operator `op` of the frame, which adds nodes to `graph`.
struct inf_tflite_scope inf_tflite_scope_make(struct inf_tflite_import *import,
                                              struct inf_tflite_frame *frame,
                                              struct inf_graph *graph,
                                              const struct inf_tflite_operator *op,
                                              struct inf_error *err);

// Lowers subgraph number `number` in place, as part of the graph of `s`. `inputs` are the values of
// the subgraph's inputs, and its outputs are written to `outputs`, both `count` values as the
// subgraph says. Latches a failure in s->b.
void inf_tflite_lower_inline(struct inf_tflite_scope *s, int32_t number, const uint32_t *inputs,
                             uint32_t input_count, uint32_t *outputs, uint32_t output_count);

// Returns the name of an operator for messages: "CONV_2D", "custom operator" or "?".
const char *inf_tflite_code_name(const struct inf_tflite_code *code);

#endif
