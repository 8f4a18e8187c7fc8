// SPDX-License-Identifier: Apache-2.0
// Byte tensors that represent real numbers: real = scale * (byte - zero point). The quantize pass
// reads scales, zero points and clamps with these functions. Private to the passes.
#ifndef INF_BACKENDS_GRAPH_PASS_QUANTIZED_H
#define INF_BACKENDS_GRAPH_PASS_QUANTIZED_H

#include "backends/graph/pass/rewrite.h"

// A tensor of bytes that represents real numbers, with its scales and zero points. Scales and zero
// points are constants.
struct inf_quantized {
    uint32_t bytes; // value index of the tensor of bytes
    // value indices of the scales and zero points; `zero` is INF_VALUE_NONE if all zero points are
    // 0
    uint32_t scale, zero;
    int32_t axis; // the axis along which there is one scale per index, if there are several scales
    const float *scales; // each scale is a normal number above 0
    size_t scale_count;  // number of scales, at least 1
};

// Bounds of a real result before it is quantized.
struct inf_clamp {
    float min, max;
};

// Returns whether `dtype` is one of the types that values are quantized to.
bool inf_quantized_is_byte(enum inf_dtype dtype);

// Reads the scale and zero point of a quantize or dequantize node; `bytes` is the value on the side
// of the bytes, that is the output of quantize or the input of dequantize. Returns false if scale
// or zero point is not constant or is invalid.
bool inf_quantized_read(const struct inf_graph *graph, const struct inf_node *node, uint32_t bytes,
                        struct inf_quantized *quantized);

// Describes the bytes from which `value` was dequantized. Returns false if `value` is not the
// output of a dequantize node.
bool inf_quantized_find(const struct inf_graph *graph, uint32_t value,
                        struct inf_quantized *quantized);

// Returns the zero point of a value that has one scale.
int32_t inf_quantized_zero(const struct inf_graph *graph, const struct inf_quantized *quantized);

// Returns whether equal bytes of `a` and `b` represent equal numbers. False if one has several
// scales.
bool inf_quantized_equal(const struct inf_graph *graph, const struct inf_quantized *a,
                         const struct inf_quantized *b);

// Narrows *clamp by an activation that is applied before the clamp. `min` and `max` are the bounds
// of INF_ACTIVATION_CLIP. Returns false if the activation does more than clamp.
bool inf_clamp_narrow(struct inf_clamp *clamp, enum inf_activation activation, float min,
                      float max);

// Narrows *clamp by `node` if the node only clamps its input. Returns false for other nodes.
bool inf_clamp_read(const struct inf_node *node, struct inf_clamp *clamp);

// Converts a bound of a clamp to a byte of y.
int32_t inf_clamp_to_byte(const struct inf_graph *graph, const struct inf_quantized *y,
                          float bound);

// Replaces the inputs of a node, the last one first. The old inputs may be among the new ones, and
// dropping the last use of a constant frees its data, so this order keeps them alive.
enum inf_code inf_quantize_set_inputs(struct inf_rewrite *rewrite, uint32_t node,
                                      const uint32_t *inputs, uint32_t count) INF_NODISCARD;

#endif
