// SPDX-License-Identifier: Apache-2.0
// Adds nodes and constants to a graph as expressions: a function takes values and returns a value.
// Importers use the builder to translate one operator of a model file to nodes.
//
// Errors latch. The builder keeps the first failure. After it, every function here does nothing and
// returns INF_VALUE_NONE, or a number that is safe to continue with. A lowering function is
// therefore a plain expression, and its caller tests `code` once at the end:
//
//   uint32_t centered = inf_build_sub(b, x, mean);
//   uint32_t y = inf_build_mul(b, centered, inf_build_unary(b, INF_UNARY_RSQRT, variance));
//   return b->code;
//
// A caller that reads graph->values itself must test inf_build_ok() first.
#ifndef INF_BACKENDS_GRAPH_BUILD_BUILDER_H
#define INF_BACKENDS_GRAPH_BUILD_BUILDER_H

#include "backends/base/cancel.h"
#include "backends/graph/build/fold.h"
#include "backends/graph/graph.h"

// Builds the nodes of one operator of a model file. A builder belongs to one thread.
struct inf_builder {
    struct inf_graph *graph; // borrowed
    const char *noun;        // what error texts call the thing that is lowered: "node" or "layer"
    // name of the operator in the model file; all added nodes and constants get this name
    const char *name;
    const char *source;           // type of the operator in the model file
    struct inf_fold *fold;        // NULL: nodes with constant inputs are not folded
    const atomic_bool *cancelled; // checked before each node; NULL: the import is not cancellable
    uint64_t *node_total;         // counts the nodes that the import has made; NULL: no limit
    enum inf_code code;           // the first failure, or INF_OK
    struct inf_error *err;        // text of the first failure; may be NULL
};

// Latches a failure, unless an earlier failure is latched. The text becomes "node 'NAME' (SOURCE):
// ...".
void inf_build_fail(struct inf_builder *b, enum inf_code code, const char *format, ...)
    INF_PRINTF(3, 4);
// Latches a failure like inf_build_fail(), but takes the arguments of `format` as a va_list.
void inf_build_vfail(struct inf_builder *b, enum inf_code code, const char *format,
                     va_list arguments);

// Returns true if nothing has failed so far.
static inline bool inf_build_ok(const struct inf_builder *b)
{
    return b->code == INF_OK;
}

// --- adding nodes to the graph ---

// Describes a node before the node is added to the graph by inf_build_emit().
struct inf_build_node {
    enum inf_op op;
    uint32_t inputs[4];
    const uint32_t *list; // borrowed; used instead of `inputs` if it is not NULL
    uint32_t input_count;
    uint32_t output_count;
    union inf_attrs attrs;
};

// Describes a node with default attributes, one output and up to three inputs. The first
// INF_VALUE_NONE ends the inputs.
struct inf_build_node inf_build_describe(enum inf_op op, uint32_t x, uint32_t y, uint32_t z);

// Describes a node with default attributes, one output and `count` inputs. `inputs` must live until
// the node is added. INF_VALUE_NONE stands for an absent optional input.
struct inf_build_node inf_build_describe_list(enum inf_op op, const uint32_t *inputs,
                                              uint32_t count);

// Adds a node, infers its shapes, and folds it if folding is enabled and all inputs are constants.
// out_values has room for node->output_count values; all are INF_VALUE_NONE after a failure.
void inf_build_emit(struct inf_builder *b, const struct inf_build_node *node, uint32_t *out_values);

// Calls inf_build_emit() for a node with one output, and returns that output.
uint32_t inf_build_value(struct inf_builder *b, const struct inf_build_node *node);

// --- adding constants to the graph ---

// The largest constant that a builder makes; larger ones fail with INF_EXHAUSTED.
#define INF_BUILD_CONST_BYTES_MAX ((size_t)64 << 20)

// Adds a constant whose elements the caller writes to *out_data, a pointer of any type. *out_data
// is NULL after a failure.
uint32_t inf_build_const(struct inf_builder *b, enum inf_dtype dtype, const struct inf_shape *shape,
                         void *out_data);
// Adds a constant of rank 0: `number` converted to `dtype`.
uint32_t inf_build_scalar(struct inf_builder *b, enum inf_dtype dtype, double number);
// Adds an i32 constant of shape [count]. Integers beyond int32 are clamped.
uint32_t inf_build_list(struct inf_builder *b, const int64_t *values, uint32_t count);
// Adds an f32 constant of shape [count].
uint32_t inf_build_floats(struct inf_builder *b, const float *values, uint32_t count);
// Adds the constant 0, 1, ... count-1 of shape [count].
uint32_t inf_build_iota(struct inf_builder *b, enum inf_dtype dtype, int64_t count);

// --- reading properties of the values that were added to the graph ---

// The largest number of integers that inf_build_const_ints() reads from one constant.
#define INF_BUILD_INTS_MAX 64
struct inf_build_ints {
    uint32_t count;
    int64_t values[INF_BUILD_INTS_MAX];
};

// Returns the element type of a value; INF_DTYPE_NONE for INF_VALUE_NONE.
enum inf_dtype inf_build_dtype(const struct inf_builder *b, uint32_t value);
// Returns the shape of a value; dimensions that are not known yet are INF_DIM_UNKNOWN. The shape of
// INF_VALUE_NONE has unknown rank. The pointer is valid until a value is added.
const struct inf_shape *inf_build_shape_of(const struct inf_builder *b, uint32_t value);
// Returns the rank. If the rank is unknown, latches INF_UNSUPPORTED and returns 0.
int32_t inf_build_rank(struct inf_builder *b, uint32_t value);
// Returns the size of axis `axis` of the value; INF_DIM_UNKNOWN if the size is not known. A
// negative axis counts from the end. Returns 1 after a failure.
int64_t inf_build_dim(struct inf_builder *b, uint32_t value, int32_t axis);
// Returns the size of axis `axis` of the value. If the size is unknown, latches INF_UNSUPPORTED and
// returns 1.
int64_t inf_build_known_dim(struct inf_builder *b, uint32_t value, int32_t axis);
// Returns the shape. Latches INF_UNSUPPORTED unless all dimensions are known.
struct inf_shape inf_build_known_shape(struct inf_builder *b, uint32_t value);
// Converts an axis of -rank..rank-1 to 0..rank-1. For any other axis, latches INF_INVALID and
// returns 0.
int32_t inf_build_axis(struct inf_builder *b, int64_t axis, int32_t rank);
// Returns true if `value` is a constant.
bool inf_build_is_const(const struct inf_builder *b, uint32_t value);
// Returns the integers of a constant. Latches a failure if `value` is not an integer constant. The
// error text calls the value `what`.
struct inf_build_ints inf_build_const_ints(struct inf_builder *b, uint32_t value, const char *what);
// Returns the integer of a constant that has exactly one element. If `value` is not such a
// constant, latches a failure whose text calls the value `what`, and returns 0.
int64_t inf_build_const_int(struct inf_builder *b, uint32_t value, const char *what);
// Returns true if `value` is a constant of one element of any type, and stores that element in
// *out.
bool inf_build_const_number(const struct inf_builder *b, uint32_t value, double *out);

#endif
