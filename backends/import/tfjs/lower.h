// SPDX-License-Identifier: Apache-2.0
// The interface for lowering functions in tfjs/ops: one TensorFlow.js node whose inputs are values
// of the graph, and functions that add nodes.
#ifndef INF_BACKENDS_IMPORT_TFJS_LOWER_H
#define INF_BACKENDS_IMPORT_TFJS_LOWER_H

#include "backends/graph/build/builder.h"
#include "backends/import/common/weights.h"
#include "backends/import/tfjs/attr.h"
#include "backends/import/tfjs/graph.h"

struct inf_tfjs_op;
struct inf_tfjs_region;
struct inf_tfjs_library;

// One node that is being lowered.
struct inf_tfjs_scope {
    struct inf_graph *graph; // the model's graph, or a subgraph that is being built
    struct inf_tfjs_graph *source;
    struct inf_tfjs_region
        *region; // which value of `graph` is the output of which node of `source`
    struct inf_tfjs_library *library; // functions of the model, and state that all regions share
    const struct inf_weights *weights;
    struct inf_tfjs_node *node;
    const struct inf_tfjs_op *op;
    uint32_t *inputs; // values; the array has room for all inputs of the operator
    uint32_t input_count;
    // Rank of a result that must be transposed to channels-first; 0: no transpose.
    int32_t channels_first;
};

// How one TensorFlow operator is lowered.
struct inf_tfjs_op {
    const char *name;
    enum inf_code (*lower)(struct inf_tfjs_scope *scope, struct inf_error *err);
    uint32_t inputs_min, inputs_max;
    int32_t kind;            // parameter of the lowering function, such as an enum inf_unary_kind
    const char *only_output; // name of the only supported output; NULL: all outputs are supported
    bool takes_complex;      // true: the lowering function handles complex inputs itself
};

// Returns a builder whose nodes have the name of the scope's node. The builder keeps its first
// failure, so test its `code` before calling anything else that may set `err`.
struct inf_builder inf_tfjs_builder(const struct inf_tfjs_scope *scope, struct inf_error *err);

// Adds a node and infers its shapes. out_values must have room for its output_count outputs.
enum inf_code inf_tfjs_emit(struct inf_tfjs_scope *scope, const struct inf_build_node *node,
                            uint32_t *out_values, struct inf_error *err) INF_NODISCARD;

// Adds a binary node that computes kind(x, y).
enum inf_code inf_tfjs_binary(struct inf_tfjs_scope *scope, enum inf_binary_kind kind, uint32_t x,
                              uint32_t y, uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Allocates the values of the node's `count` outputs in *out_values; the caller sets them.
enum inf_code inf_tfjs_outputs(struct inf_tfjs_scope *scope, uint32_t count, uint32_t **out_values,
                               struct inf_error *err) INF_NODISCARD;

// Makes `value` the node's only output. Transposes it back if inf_tfjs_channels_last() transposed
// the input.
enum inf_code inf_tfjs_result(struct inf_tfjs_scope *scope, uint32_t value,
                              struct inf_error *err) INF_NODISCARD;

// Adds a node and makes its result the only output of the TensorFlow.js node. Calls inf_tfjs_emit()
// and then inf_tfjs_result().
enum inf_code inf_tfjs_finish(struct inf_tfjs_scope *scope, const struct inf_build_node *node,
                              struct inf_error *err) INF_NODISCARD;

// A list of integers that are known at import.
struct inf_tfjs_ints {
    int64_t values[2 * INF_LIMIT_RANK];
    uint32_t count;
};

// Sets *out to input `input`, an integer constant. `what` is its name in error texts.
//
// INF_UNSUPPORTED  other nodes compute the input.
enum inf_code inf_tfjs_const_ints(struct inf_tfjs_scope *scope, uint32_t input, const char *what,
                                  struct inf_tfjs_ints *out, struct inf_error *err) INF_NODISCARD;

// Sets *out to input `input`, which must be a constant: one axis from -INF_LIMIT_RANK to
// INF_LIMIT_RANK - 1.
enum inf_code inf_tfjs_const_axis(struct inf_tfjs_scope *scope, uint32_t input, int32_t *out_axis,
                                  struct inf_error *err) INF_NODISCARD;

// Sets *out to input `input`, which must be a constant list of axes, in the form that attributes of
// the graph's operators have.
enum inf_code inf_tfjs_const_axes(struct inf_tfjs_scope *scope, uint32_t input, const char *what,
                                  struct inf_ints *out, struct inf_error *err) INF_NODISCARD;

// Returns true if `value` is a constant with one f32 element, and sets *out to that element.
bool inf_tfjs_const_float(const struct inf_graph *graph, uint32_t value, float *out);

// Adds a constant list of integers (shape [count]).
enum inf_code inf_tfjs_add_ints(struct inf_tfjs_scope *scope, const int64_t *values, uint32_t count,
                                uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a scalar constant with the value `number` and the element type `dtype`.
enum inf_code inf_tfjs_add_scalar(struct inf_tfjs_scope *scope, enum inf_dtype dtype, double number,
                                  uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Returns input `input`. Its type and shape are set as far as they are known.
const struct inf_value *inf_tfjs_input(const struct inf_tfjs_scope *scope, uint32_t input);

// Makes the node, a Placeholder or PlaceholderWithDefault, a value without producer. If the node
// has no known rank, the shape is `fallback`.
enum inf_code inf_tfjs_placeholder(struct inf_tfjs_scope *scope, const struct inf_shape *fallback,
                                   struct inf_error *err) INF_NODISCARD;

#define inf_tfjs_fail(scope, err, code, ...)                                                       \
    (inf_fail((err), (code), __VA_ARGS__), inf_tfjs_node_error((scope)->node, (code), (err)))

#endif
