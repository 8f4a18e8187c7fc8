// SPDX-License-Identifier: Apache-2.0
// Functions of one number between dequantize and quantize become tables. Private to quantize.c.
#ifndef INF_BACKENDS_GRAPH_PASS_QUANTIZE_LOOKUP_H
#define INF_BACKENDS_GRAPH_PASS_QUANTIZE_LOOKUP_H

#include "backends/graph/pass/quantize_product.h"

// Replaces the matched nodes by a lookup in a table of 256 bytes if `node` is a function of one
// number whose operand was dequantized. Changes nothing otherwise, or if the rewrite has no
// evaluator to compute the table.
enum inf_code inf_quantize_lookup(struct inf_rewrite *rewrite,
                                  const struct inf_quantize_match *match) INF_NODISCARD;

#endif
