// SPDX-License-Identifier: Apache-2.0
// Values of bytes that stand for real numbers: real = scale * (byte - zero point). What the
// quantize pass reads about them. Private to the passes.
#ifndef INF_BACKENDS_GRAPH_PASS_QUANTIZED_H
#define INF_BACKENDS_GRAPH_PASS_QUANTIZED_H

#include "backends/graph/pass/rewrite.h"

// A value of bytes with its scales and zero points, all constants.
struct inf_quantized {
    uint32_t bytes;       // the value
    uint32_t scale, zero; // values; zero INF_VALUE_NONE: all zero points are 0
    int32_t axis;         // along which there is one scale per index, if there are several
    const float *scales;  // normal numbers above 0
    size_t scale_count;   // 1 or more
};

// Bounds of a real result before it is quantized.
struct inf_clamp {
    float min, max;
};

// Returns whether `dtype` is one of the types that values are quantized to.
bool inf_quantized_is_byte(enum inf_dtype dtype);

// Reads scale and zero point of a quantize or dequantize node whose quantized side is `bytes`.
// Returns false if they are not constants or make no sense.
bool inf_quantized_read(const struct inf_graph *graph, const struct inf_node *node, uint32_t bytes,
                        struct inf_quantized *quantized);

// Reads what `value` was dequantized from. Returns false if no dequantize node produces it.
bool inf_quantized_find(const struct inf_graph *graph, uint32_t value,
                        struct inf_quantized *quantized);

// Returns the zero point of a value with one scale.
int32_t inf_quantized_zero(const struct inf_graph *graph, const struct inf_quantized *quantized);

// Returns whether equal bytes of both stand for equal numbers. False for several scales.
bool inf_quantized_equal(const struct inf_graph *graph, const struct inf_quantized *a,
                         const struct inf_quantized *b);

// Narrows *clamp, which applies after an activation, by that activation. `min` and `max` are those
// of INF_ACTIVATION_CLIP. Returns false if the activation is more than a clamp.
bool inf_clamp_narrow(struct inf_clamp *clamp, enum inf_activation activation, float min,
                      float max);

// Narrows *clamp by `node` if the node only clamps its input. Returns false for other nodes.
bool inf_clamp_read(const struct inf_node *node, struct inf_clamp *clamp);

// Returns a bound of a clamp as a byte of y.
int32_t inf_clamp_to_byte(const struct inf_graph *graph, const struct inf_quantized *y,
                          float bound);

// Replaces the inputs of a node. The last one is set first: the node's present inputs may be among
// them, and the data of a constant is freed with its last use.
enum inf_code inf_quantize_set_inputs(struct inf_rewrite *rewrite, uint32_t node,
                                      const uint32_t *inputs, uint32_t count) INF_NODISCARD;

#endif
