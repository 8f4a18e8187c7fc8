// SPDX-License-Identifier: Apache-2.0
// Matching of nodes that exporters write in place of one operator. Private to the pass `recognize`.
#ifndef INF_BACKENDS_GRAPH_PASS_RECOGNIZE_H
#define INF_BACKENDS_GRAPH_PASS_RECOGNIZE_H

#include "backends/graph/pass/rewrite.h"

// Returns the node that computes `value` if it is a binary node of this kind on FP32 without an
// activation; NULL otherwise.
const struct inf_node *inf_recognize_binary(const struct inf_graph *graph, uint32_t value,
                                            enum inf_binary_kind kind);

// Returns the node that computes `value` if it is a unary node of this kind on FP32; NULL
// otherwise.
const struct inf_node *inf_recognize_unary(const struct inf_graph *graph, uint32_t value,
                                           enum inf_unary_kind kind);

// If `value` is the sum (INF_BINARY_ADD) or product (INF_BINARY_MUL, or a division by a constant)
// of another value and a constant of one element, sets *x to that value and *scalar to the
// constant. Returns false otherwise.
bool inf_recognize_scalar(const struct inf_graph *graph, uint32_t value, enum inf_binary_kind kind,
                          uint32_t *x, double *scalar) INF_NODISCARD;

// If `value` is x * x or x^2, sets *x. Returns false otherwise.
bool inf_recognize_square(const struct inf_graph *graph, uint32_t value, uint32_t *x) INF_NODISCARD;

// Makes `node` an operator that reads only `x`. Its output stays. The caller sets the attributes.
enum inf_code inf_recognize_replace(struct inf_rewrite *rewrite, uint32_t node, enum inf_op op,
                                    uint32_t x) INF_NODISCARD;

// Replaces the node if it is the last one of an RMS or layer normalisation: the division of x by
// the root, or the multiplication with its reciprocal. A scale and an offset that other nodes apply
// to the result of a normalisation become operands of the normalisation.
enum inf_code inf_recognize_norm(struct inf_rewrite *rewrite, uint32_t node) INF_NODISCARD;

// Replaces the node by a pad node if it is a concatenation of one computed tensor with constants
// that are filled with one number.
enum inf_code inf_recognize_pad(struct inf_rewrite *rewrite, uint32_t node) INF_NODISCARD;

#endif
