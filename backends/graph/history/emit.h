// SPDX-License-Identifier: Apache-2.0
// The graph that inf_history_build() makes, and functions that add to it. Private to history.h.
// All functions fail with INF_EXHAUSTED if there is no memory.
#ifndef INF_BACKENDS_GRAPH_HISTORY_EMIT_H
#define INF_BACKENDS_GRAPH_HISTORY_EMIT_H

#include "backends/graph/history/sample.h"

#define INF_HISTORY_BIASES_MAX 4 // most biases that are kept for further scores

// State of inf_history_build(). C is the greatest length of the history (build.c).
struct inf_history_builder {
    const struct inf_graph *source;
    // If rows are written over caches, `outputs` has the outputs of the caches, and `axes` has no
    // axis of a cache.
    struct inf_history history;
    bool overwrites;         // true: rows are written over caches
    const uint8_t *row_axes; // the axis along which the output of each input has new rows
    struct inf_history_samples samples;
    // The last two samples, for the lengths C and C - 1; borrowed from `samples`.
    const struct inf_graph *longest, *second;
    struct inf_history_value *values; // indexed by value of `source`
    bool *zero;                       // see struct inf_history_facts
    bool *needed; // needed[v]: an output or a node that is computed in a run needs value v
    struct inf_graph *graph; // the new graph
    uint32_t *map;       // map[v]: the value of the new graph for value v; INF_VALUE_NONE: none yet
    uint32_t *constants; // constants[v]: the constant of the elements of the sample, as `map`
    uint32_t length, shift; // scalars of the new graph: the length, and the length minus C
    struct {
        int64_t keys;
        uint32_t value;
    } biases[INF_HISTORY_BIASES_MAX];
    uint32_t bias_count;
    uint32_t positions[INF_LIMIT_TENSORS]; // of the rows that are written to each input
    struct inf_error *err;
};

// Adds a node with one output. `attrs` may be NULL if the operator has no attributes.
enum inf_code inf_history_emit_node(struct inf_history_builder *b, enum inf_op op, const char *name,
                                    const uint32_t *inputs, uint32_t count,
                                    const union inf_attrs *attrs,
                                    uint32_t *out_value) INF_NODISCARD;

// Adds a binary node.
enum inf_code inf_history_emit_binary(struct inf_history_builder *b, enum inf_binary_kind kind,
                                      const char *name, uint32_t x, uint32_t y,
                                      uint32_t *out_value) INF_NODISCARD;

// Adds a constant. The caller writes its elements.
enum inf_code inf_history_emit_constant(struct inf_history_builder *b, enum inf_dtype dtype,
                                        const struct inf_shape *shape, void **out_elements,
                                        uint32_t *out_value) INF_NODISCARD;

// Adds an i32 scalar that is constant.
enum inf_code inf_history_emit_i32(struct inf_history_builder *b, int32_t element,
                                   uint32_t *out_value) INF_NODISCARD;

// Adds a node that converts `x` to `dtype`.
enum inf_code inf_history_emit_cast(struct inf_history_builder *b, uint32_t x, enum inf_dtype dtype,
                                    uint32_t *out_value) INF_NODISCARD;

// Adds a bias for scores of `keys` keys, of which all are used if the length is C (build.c): 0 for
// used keys, -infinity for the others. Scores of the same number of keys share a bias.
enum inf_code inf_history_emit_tail_bias(struct inf_history_builder *b, int64_t keys,
                                         uint32_t *out_value) INF_NODISCARD;

// Returns the elements that the longest sample has for a value of the source, as a constant.
//
// INF_UNSUPPORTED  the elements do not follow from shapes.
enum inf_code inf_history_find_constant(struct inf_history_builder *b, uint32_t value,
                                        uint32_t *out_value) INF_NODISCARD;

// Returns the value of the new graph that has the elements of `value`, a value of the source, in a
// run. If `value` is INF_VALUE_NONE, returns INF_VALUE_NONE.
//
// INF_UNSUPPORTED  no node of the new graph computes these elements.
enum inf_code inf_history_find_operand(struct inf_history_builder *b, uint32_t value,
                                       uint32_t *out_value) INF_NODISCARD;

#endif
