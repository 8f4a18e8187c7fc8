// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products between dequantize and quantize become products of bytes.
// Private to quantize.c.
#ifndef INF_BACKENDS_GRAPH_PASS_QUANTIZE_PRODUCT_H
#define INF_BACKENDS_GRAPH_PASS_QUANTIZE_PRODUCT_H

#include "backends/graph/pass/quantized.h"

// A quantize node, and the float node that computes its input.
struct inf_quantize_match {
    uint32_t quantize;
    // node between `node` and `quantize` that clamps; INF_NODE_NONE if there is none
    uint32_t clamp_node;
    uint32_t node;          // the float node; nothing else uses its output
    struct inf_quantized y; // result of `quantize`; it has one scale
    struct inf_clamp clamp; // bounds that `clamp_node` applies
};

// Replaces the matched nodes by one product of bytes if `node` is a suitable product. Changes
// nothing otherwise.
enum inf_code inf_quantize_product(struct inf_rewrite *rewrite,
                                   const struct inf_quantize_match *match) INF_NODISCARD;

#endif
