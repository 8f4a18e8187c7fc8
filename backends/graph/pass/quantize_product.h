// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products between dequantize and quantize become products of bytes.
// Private to quantize.c.
#ifndef INF_BACKENDS_GRAPH_PASS_QUANTIZE_PRODUCT_H
#define INF_BACKENDS_GRAPH_PASS_QUANTIZE_PRODUCT_H

#include "backends/graph/pass/quantized.h"

// A quantize node, and the node of floats before it.
struct inf_quantize_match {
    uint32_t quantize;
    uint32_t clamp_node;    // between the two; INF_NODE_NONE: none
    uint32_t node;          // nothing else uses its output
    struct inf_quantized y; // result of `quantize`; one scale
    struct inf_clamp clamp; // of `clamp_node`
};

// Replaces the matched nodes by one product of bytes if they are one. Changes nothing otherwise.
enum inf_code inf_quantize_product(struct inf_rewrite *rewrite,
                                   const struct inf_quantize_match *match) INF_NODISCARD;

#endif
