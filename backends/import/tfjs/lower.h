// SPDX-License-Identifier: Apache-2.0
// What the lowering functions of tfjs_ops_*.c work with: one TensorFlow.js node whose inputs are
// values of the graph, and ways to add nodes that compute what it stands for.
#ifndef INF_BACKENDS_IMPORT_TFJS_LOWER_H
#define INF_BACKENDS_IMPORT_TFJS_LOWER_H

#include "backends/graph/graph.h"
#include "backends/import/common/weights.h"
#include "backends/import/tfjs/attr.h"
#include "backends/import/tfjs/graph.h"

struct inf_tfjs_op;
struct inf_tfjs_region;
struct inf_tfjs_library;

// One node on its way into the graph.
struct inf_tfjs_scope {
    struct inf_graph *graph; // the model's, or a subgraph on its way
    struct inf_tfjs_graph *source;
    struct inf_tfjs_region *region;   // what is being lowered, and into which graph
    struct inf_tfjs_library *library; // functions, and what all regions share
    const struct inf_weights *weights;
    struct inf_tfjs_node *node;
    const struct inf_tfjs_op *op;
    uint32_t *inputs; // values; as many as the operator's table row allows
    uint32_t input_count;
    int32_t channels_first; // rank of the result that is to get its channels first; 0: none is
};

// How one TensorFlow operator is lowered.
struct inf_tfjs_op {
    const char *name;
    enum inf_code (*lower)(struct inf_tfjs_scope *scope, struct inf_error *err);
    uint32_t inputs_min, inputs_max;
    int32_t kind;            // for the function: an enum inf_unary_kind, say
    const char *only_output; // the one output that is built, where TensorFlow has more; NULL: all
    bool takes_complex;      // the function looks for complex inputs itself
};

// A table of operators.
struct inf_tfjs_op_table {
    const struct inf_tfjs_op *ops;
    size_t count;
};

// A node that is about to be added.
struct inf_tfjs_call {
    enum inf_op op;
    uint32_t inputs[4];
    const uint32_t *list; // in place of `inputs`, where there may be more; else NULL
    uint32_t input_count;
    uint32_t output_count;
    union inf_attrs attrs;
};

// A call of `op` with default attributes, one output, and up to three inputs: those that come first
// and are not INF_VALUE_NONE.
struct inf_tfjs_call inf_tfjs_call(enum inf_op op, uint32_t a, uint32_t b, uint32_t c);

// As inf_tfjs_call(), with `count` inputs that must outlive the call.
struct inf_tfjs_call inf_tfjs_call_list(enum inf_op op, const uint32_t *inputs, uint32_t count);

// Adds the node of a call, and infers its shapes. out_values has room for its output_count outputs.
enum inf_code inf_tfjs_emit(struct inf_tfjs_scope *scope, const struct inf_tfjs_call *call,
                            uint32_t *out_values, struct inf_error *err) INF_NODISCARD;

// Makes room for the values of the node's `count` outputs; *out_values is to be filled.
enum inf_code inf_tfjs_outputs(struct inf_tfjs_scope *scope, uint32_t count, uint32_t **out_values,
                               struct inf_error *err) INF_NODISCARD;

// Makes `value` the node's only output, with channels first where inf_tfjs_channels_last() found so.
enum inf_code inf_tfjs_result(struct inf_tfjs_scope *scope, uint32_t value,
                              struct inf_error *err) INF_NODISCARD;

// inf_tfjs_emit() and inf_tfjs_result().
enum inf_code inf_tfjs_finish(struct inf_tfjs_scope *scope, const struct inf_tfjs_call *call,
                              struct inf_error *err) INF_NODISCARD;

// Integers that must be known when the model is imported.
struct inf_tfjs_ints {
    int64_t values[2 * INF_LIMIT_RANK];
    uint32_t count;
};

// *out = input `input`, an integer constant; `what` is what the operator calls it.
//
// INF_UNSUPPORTED  it is computed by other nodes.
enum inf_code inf_tfjs_const_ints(struct inf_tfjs_scope *scope, uint32_t input, const char *what,
                                  struct inf_tfjs_ints *out, struct inf_error *err) INF_NODISCARD;

// As inf_tfjs_const_ints(), for one axis from -INF_LIMIT_RANK to INF_LIMIT_RANK - 1.
enum inf_code inf_tfjs_const_axis(struct inf_tfjs_scope *scope, uint32_t input, int32_t *out_axis,
                                  struct inf_error *err) INF_NODISCARD;

// As inf_tfjs_const_ints(), for axes, into an attribute of the graph's operators.
enum inf_code inf_tfjs_const_axes(struct inf_tfjs_scope *scope, uint32_t input, const char *what,
                                  struct inf_ints *out, struct inf_error *err) INF_NODISCARD;

// Whether `value` is a constant with one f32 element, and which.
bool inf_tfjs_const_float(const struct inf_graph *graph, uint32_t value, float *out);

// Adds a constant list of integers (shape [count]).
enum inf_code inf_tfjs_add_ints(struct inf_tfjs_scope *scope, const int64_t *values, uint32_t count,
                                uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a scalar constant: `number` in the element type `dtype`.
enum inf_code inf_tfjs_add_scalar(struct inf_tfjs_scope *scope, enum inf_dtype dtype, double number,
                                  uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// The value of input `input`: its type and shape as far as they are known.
const struct inf_value *inf_tfjs_input(const struct inf_tfjs_scope *scope, uint32_t input);

// Makes the node, a Placeholder or PlaceholderWithDefault, a value that no node computes. Where the
// node does not know its rank the shape is `fallback`.
enum inf_code inf_tfjs_placeholder(struct inf_tfjs_scope *scope, const struct inf_shape *fallback,
                                   struct inf_error *err) INF_NODISCARD;

#define inf_tfjs_fail(scope, err, code, ...)                                                       \
    (inf_fail((err), (code), __VA_ARGS__), inf_tfjs_node_error((scope)->node, (code), (err)))

// The row of operator `name`; NULL where it is not built.
const struct inf_tfjs_op *inf_tfjs_op_find(const char *name);

// The tables of the families, one per file.
extern const struct inf_tfjs_op_table inf_tfjs_ops_math;
extern const struct inf_tfjs_op_table inf_tfjs_ops_conv;
extern const struct inf_tfjs_op_table inf_tfjs_ops_shape;
extern const struct inf_tfjs_op_table inf_tfjs_ops_array;
extern const struct inf_tfjs_op_table inf_tfjs_ops_source;
extern const struct inf_tfjs_op_table inf_tfjs_ops_control;
extern const struct inf_tfjs_op_table inf_tfjs_ops_list;
extern const struct inf_tfjs_op_table inf_tfjs_ops_pick;
extern const struct inf_tfjs_op_table inf_tfjs_ops_more;
extern const struct inf_tfjs_op_table inf_tfjs_ops_table;
extern const struct inf_tfjs_op_table inf_tfjs_ops_spectral;
extern const struct inf_tfjs_op_table inf_tfjs_ops_random;

#endif
