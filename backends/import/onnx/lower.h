// SPDX-License-Identifier: Apache-2.0
// What the lowering functions of onnx_ops_*.c work with: one ONNX node whose inputs are values of
// the graph, and expressions that add what it stands for.
//
// Failures latch: the first one is kept in the scope, and from then on every function here does
// nothing and returns INF_VALUE_NONE (or a number that is safe to go on with). A lowering function
// is therefore a plain expression, and its caller looks once, at the end.
#ifndef INF_BACKENDS_IMPORT_ONNX_LOWER_H
#define INF_BACKENDS_IMPORT_ONNX_LOWER_H

#include "backends/graph/graph.h"
#include "backends/graph/pass/pass.h"
#include "backends/import/onnx/names.h"
#include "backends/import/onnx/proto.h"
#include "backends/import/onnx/sequence.h"
#include "backends/import/onnx/tensor.h"

// Outputs of an operator that is no function; more are refused.
#define INF_ONNX_OUTPUTS_MAX INF_LIMIT_NODE_INPUTS

struct inf_onnx_op;
struct inf_onnx_capture;

// The whole import.
struct inf_onnx_import {
    struct inf_graph *graph;
    struct inf_arena *arena;
    const struct inf_onnx_model *model;
    const struct inf_onnx_files *files;
    const struct inf_evaluator *evaluator; // NULL: only shapes are folded
    uint32_t lowered;                      // nodes so far, those of functions and branches included
    uint64_t narrow_checks;                // nodes asked about narrow initialisers so far
    size_t folded_bytes;                   // what folding has added
    struct inf_onnx_sequences sequences;
};

// Where names are looked up: a graph's, a branch's, or a function's.
struct inf_onnx_frame {
    const struct inf_onnx_frame *outer;  // whose names a branch sees; NULL: none
    const struct inf_onnx_frame *caller; // of a function: the frame its node stands in; else NULL
    struct inf_onnx_node *call;          // of a function: the node; else NULL
    const struct inf_onnx_function *function;
    const struct inf_onnx_opsets *opsets;
    struct inf_onnx_capture *capture; // of a branch that becomes a subgraph; else NULL
    const char *const *outputs;       // what is asked of it in the end
    uint32_t output_count;
    struct inf_onnx_names names;
    uint32_t depth;
};

// One node on its way into the graph.
struct inf_onnx_scope {
    struct inf_onnx_import *import;
    struct inf_graph *graph;
    const struct inf_onnx_frame *frame;
    struct inf_onnx_node *node;
    const struct inf_onnx_op *op;
    int64_t opset;    // of the node's domain
    uint32_t *inputs; // values; INF_VALUE_NONE for those left out; op->inputs_max at least
    uint32_t input_count;
    uint32_t *outputs; // to be set: as many as the node names
    uint32_t output_count;
    bool diverges;      // an If whose sides make tensors of different rank: nothing is lowered yet
    enum inf_code code; // the first failure
    struct inf_error *err;
};

// How one ONNX operator is lowered.
struct inf_onnx_op {
    const char *name; // with its domain in front where that is not ai.onnx: "ai.onnx.ml::Scaler"
    void (*lower)(struct inf_onnx_scope *s);
    uint32_t inputs_min, inputs_max, outputs_max;
    int32_t kind; // for the function: an enum inf_unary_kind, say
};

struct inf_onnx_op_table {
    const struct inf_onnx_op *ops;
    size_t count;
};

// The row of an operator; NULL where it is not built.
const struct inf_onnx_op *inf_onnx_op_find(const char *domain, const char *name);

// Row `index` of all that are built; NULL behind the last one.
const struct inf_onnx_op *inf_onnx_op_at(size_t index);

// The tables of the families, one per file.
extern const struct inf_onnx_op_table inf_onnx_ops_unary;
extern const struct inf_onnx_op_table inf_onnx_ops_math;
extern const struct inf_onnx_op_table inf_onnx_ops_reduce;
extern const struct inf_onnx_op_table inf_onnx_ops_norm;
extern const struct inf_onnx_op_table inf_onnx_ops_conv;
extern const struct inf_onnx_op_table inf_onnx_ops_unconv;
extern const struct inf_onnx_op_table inf_onnx_ops_pool;
extern const struct inf_onnx_op_table inf_onnx_ops_shape;
extern const struct inf_onnx_op_table inf_onnx_ops_move;
extern const struct inf_onnx_op_table inf_onnx_ops_gather;
extern const struct inf_onnx_op_table inf_onnx_ops_resize;
extern const struct inf_onnx_op_table inf_onnx_ops_source;
extern const struct inf_onnx_op_table inf_onnx_ops_quant;
extern const struct inf_onnx_op_table inf_onnx_ops_branch;
extern const struct inf_onnx_op_table inf_onnx_ops_loop;
extern const struct inf_onnx_op_table inf_onnx_ops_rnn;
extern const struct inf_onnx_op_table inf_onnx_ops_attention;
extern const struct inf_onnx_op_table inf_onnx_ops_sample;
extern const struct inf_onnx_op_table inf_onnx_ops_loss;
extern const struct inf_onnx_op_table inf_onnx_ops_sequence;
extern const struct inf_onnx_op_table inf_onnx_ops_patch;
extern const struct inf_onnx_op_table inf_onnx_ops_feature;
extern const struct inf_onnx_op_table inf_onnx_ops_spectral;

// --- failing ---

// Latches a failure, its text behind "node 'x' (Conv): ".
void inf_ox_fail(struct inf_onnx_scope *s, enum inf_code code, const char *format, ...)
    INF_PRINTF(3, 4);

// Whether nothing has failed so far.
static inline bool inf_ox_ok(const struct inf_onnx_scope *s)
{
    return s->code == INF_OK;
}

// --- lowering other nodes (control flow, functions) ---

// Lowers `nodes` in `frame`, which says what is asked of them; the scope is the node they are the
// inside of.
void inf_onnx_lower_nodes(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                          struct inf_onnx_node *nodes, uint32_t count);

// Lowers what comes behind an If that diverges once in each of its branches; the branch then makes
// the frame's outputs. The scope is the If's.
void inf_onnx_lower_diverging(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                              struct inf_onnx_node *rest, uint32_t count);

// The names of ports, in the import's arena; NULL after a failure.
const char *const *inf_onnx_port_names(struct inf_onnx_scope *s, const struct inf_onnx_port *ports,
                                       uint32_t count);

// Makes the initialisers of `graph` constants named in `frame`.
void inf_onnx_lower_initializers(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                 const struct inf_onnx_graph *graph);

// The value `name` means in `frame`; latches a failure where it means nothing.
uint32_t inf_onnx_lookup(struct inf_onnx_scope *s, const struct inf_onnx_frame *frame,
                         const char *name);

// --- attributes: absent ones give the fallback, wrong types fail, and those that no function asks
// for are refused by name when the node is done ---

// An integer; values beyond int32 are clamped to it.
int32_t inf_ox_attr_int(struct inf_onnx_scope *s, const char *name, int32_t fallback);
// A number.
float inf_ox_attr_float(struct inf_onnx_scope *s, const char *name, float fallback);
// A text; it lies in the import's arena.
const char *inf_ox_attr_text(struct inf_onnx_scope *s, const char *name, const char *fallback);
// Whether the attribute is there at all (and counts as asked for).
bool inf_ox_has_attr(struct inf_onnx_scope *s, const char *name);

// Integers in a list of any length a caller has room for.
#define INF_OX_INTS_MAX 64
struct inf_ox_ints {
    uint32_t count;
    int64_t values[INF_OX_INTS_MAX];
};

// A list of integers; false where it is absent.
bool inf_ox_attr_ints(struct inf_onnx_scope *s, const char *name, struct inf_ox_ints *out);
// A constant f32 [n] made of a list of numbers; INF_VALUE_NONE where it is absent.
uint32_t inf_ox_attr_floats(struct inf_onnx_scope *s, const char *name);
// A constant made of the attribute's tensor; INF_VALUE_NONE where it is absent.
uint32_t inf_ox_attr_tensor(struct inf_onnx_scope *s, const char *name);
// The bytes of a GraphProto; false where it is absent.
bool inf_ox_attr_graph(struct inf_onnx_scope *s, const char *name, struct inf_span *out);
// The attribute itself, of whatever type, through function parameters; NULL where it is absent.
const struct inf_onnx_attr *inf_ox_attr(struct inf_onnx_scope *s, const char *name);

// --- looking at values ---

// Input `index`; INF_VALUE_NONE where it is left out.
uint32_t inf_ox_in(const struct inf_onnx_scope *s, uint32_t index);
// Whether output `index` is named by anybody.
bool inf_ox_wants(const struct inf_onnx_scope *s, uint32_t index);
// Element type of a value.
enum inf_dtype inf_ox_dtype(const struct inf_onnx_scope *s, uint32_t value);
// Rank of a value; fails where it is not known.
int32_t inf_ox_rank(struct inf_onnx_scope *s, uint32_t value);
// A dimension (axis may be negative); INF_DIM_UNKNOWN where it is not known.
int64_t inf_ox_dim(struct inf_onnx_scope *s, uint32_t value, int32_t axis);
// As inf_ox_dim(); fails where it is not known.
int64_t inf_ox_known_dim(struct inf_onnx_scope *s, uint32_t value, int32_t axis);
// The shape, all of which must be known.
struct inf_shape inf_ox_known_shape(struct inf_onnx_scope *s, uint32_t value);
// Brings an axis into 0..rank-1; fails where it is out of range.
int32_t inf_ox_axis(struct inf_onnx_scope *s, int64_t axis, int32_t rank);
// Whether `value` is a constant.
bool inf_ox_is_const(const struct inf_onnx_scope *s, uint32_t value);
// The integers of a constant; fails, naming `what`, where it is none.
struct inf_ox_ints inf_ox_const_ints(struct inf_onnx_scope *s, uint32_t value, const char *what);
// As inf_ox_const_ints(), exactly one.
int64_t inf_ox_const_int(struct inf_onnx_scope *s, uint32_t value, const char *what);
// Whether `value` is a constant of one element of any type, and which, as a double.
bool inf_ox_const_number(const struct inf_onnx_scope *s, uint32_t value, double *out);

// --- making values ---

// A node that is about to be added: default attributes, one output. `count` inputs.
struct inf_ox_call {
    enum inf_op op;
    const uint32_t *inputs;
    uint32_t input_count, output_count;
    union inf_attrs attrs;
};
// Adds a node, and folds it where all its inputs are constants. out_values has room for its outputs.
void inf_ox_emit(struct inf_onnx_scope *s, const struct inf_ox_call *call, uint32_t *out_values);
// A call of `op` with default attributes and one output.
struct inf_ox_call inf_ox_call(enum inf_op op, const uint32_t *inputs, uint32_t count);
// inf_ox_emit() of a call with one output.
uint32_t inf_ox_value(struct inf_onnx_scope *s, const struct inf_ox_call *call);

// A constant of `number` in that element type, rank 0.
uint32_t inf_ox_scalar(struct inf_onnx_scope *s, enum inf_dtype dtype, double number);
// A constant list of i32 (clamped to them), shape [count].
uint32_t inf_ox_list(struct inf_onnx_scope *s, const int64_t *values, uint32_t count);
// A constant whose bytes the caller fills; *out_data is NULL after a failure.
uint32_t inf_ox_const(struct inf_onnx_scope *s, enum inf_dtype dtype, const struct inf_shape *shape,
                      void *out_data);
// Rank-1 constant 0, 1, ... count-1.
uint32_t inf_ox_iota(struct inf_onnx_scope *s, enum inf_dtype dtype, int64_t count);

// The operators of the graph.
uint32_t inf_ox_unary(struct inf_onnx_scope *s, enum inf_unary_kind kind, uint32_t x);
// As above.
uint32_t inf_ox_binary(struct inf_onnx_scope *s, enum inf_binary_kind kind, uint32_t a, uint32_t b);
// a kind number, the number in a's element type.
uint32_t inf_ox_binary_number(struct inf_onnx_scope *s, enum inf_binary_kind kind, uint32_t a,
                              double number);
// As above.
uint32_t inf_ox_compare(struct inf_onnx_scope *s, enum inf_compare_kind kind, uint32_t a,
                        uint32_t b);
// As above.
uint32_t inf_ox_select(struct inf_onnx_scope *s, uint32_t condition, uint32_t a, uint32_t b);
// x as dtype; x itself where it is that already.
uint32_t inf_ox_cast(struct inf_onnx_scope *s, uint32_t x, enum inf_dtype dtype);
// As above.
uint32_t inf_ox_clip(struct inf_onnx_scope *s, uint32_t x, double min, double max);
// `axes` are settled (not negative); none of them: x itself.
uint32_t inf_ox_reduce(struct inf_onnx_scope *s, enum inf_reduce_kind kind, uint32_t x,
                       const struct inf_ints *axes, bool keep_dims);
// As above.
uint32_t inf_ox_transpose(struct inf_onnx_scope *s, uint32_t x, const int64_t *perm, int32_t count);
// To constant dimensions; one may be -1.
uint32_t inf_ox_reshape(struct inf_onnx_scope *s, uint32_t x, const int64_t *dims, int32_t count);
// To the shape that is the value `shape`.
uint32_t inf_ox_reshape_to(struct inf_onnx_scope *s, uint32_t x, uint32_t shape);
// Inserts (removes) axes of size 1.
uint32_t inf_ox_expand_dims(struct inf_onnx_scope *s, uint32_t x, const int64_t *axes,
                            int32_t count);
// As above.
uint32_t inf_ox_squeeze(struct inf_onnx_scope *s, uint32_t x, const int64_t *axes, int32_t count);
// As above.
uint32_t inf_ox_concat(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count,
                       int32_t axis);
// [begin, end) of one axis; end INT64_MAX: to its end.
uint32_t inf_ox_slice(struct inf_onnx_scope *s, uint32_t x, int32_t axis, int64_t begin,
                      int64_t end, int64_t step);
// Constant padding; pairs[2*i], pairs[2*i+1] before and after axis i; `value` may be NONE (0).
uint32_t inf_ox_pad(struct inf_onnx_scope *s, uint32_t x, const int64_t *pairs, int32_t rank,
                    enum inf_pad_mode mode, uint32_t value);
// As above.
uint32_t inf_ox_gather(struct inf_onnx_scope *s, uint32_t x, uint32_t indices, int32_t axis);
// Stretched to the shape that is a value (i32).
uint32_t inf_ox_broadcast(struct inf_onnx_scope *s, uint32_t x, uint32_t shape);
// Of a shape that is a value (i32), every element the scalar.
uint32_t inf_ox_fill(struct inf_onnx_scope *s, uint32_t shape, uint32_t scalar);
// i32 [rank].
uint32_t inf_ox_shape(struct inf_onnx_scope *s, uint32_t x);
// One dimension as an i32 [1]; a constant where it is known.
uint32_t inf_ox_dim_value(struct inf_onnx_scope *s, uint32_t x, int32_t axis);
// As NumPy's: operands of rank 1 are vectors.
uint32_t inf_ox_matmul(struct inf_onnx_scope *s, uint32_t a, uint32_t b);
// As above.
uint32_t inf_ox_softmax(struct inf_onnx_scope *s, uint32_t x, int32_t axis, bool log);

// Moves axis 1 (channels) to the end, and back. Ranks below 3 stay as they are.
uint32_t inf_ox_channels_last(struct inf_onnx_scope *s, uint32_t x);
// As above.
uint32_t inf_ox_channels_first(struct inf_onnx_scope *s, uint32_t x);
// x as [d0*..*d(axis-1), d(axis)*...].
uint32_t inf_ox_flatten(struct inf_onnx_scope *s, uint32_t x, int32_t axis);

#define inf_ox_add(s, a, b) inf_ox_binary((s), INF_BINARY_ADD, (a), (b))
#define inf_ox_sub(s, a, b) inf_ox_binary((s), INF_BINARY_SUB, (a), (b))
#define inf_ox_mul(s, a, b) inf_ox_binary((s), INF_BINARY_MUL, (a), (b))
#define inf_ox_div(s, a, b) inf_ox_binary((s), INF_BINARY_DIV, (a), (b))

#endif
