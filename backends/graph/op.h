// SPDX-License-Identifier: Apache-2.0
// The operators as C: enums and attribute structs generated from ops.def and kinds.def, and the
// same tables as data, for code that treats all operators the same way (verifier, printer, docs,
// tests).
#ifndef INF_BACKENDS_GRAPH_OP_H
#define INF_BACKENDS_GRAPH_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/dtype.h"
#include "proto/core/limits.h"
#include "proto/core/shape.h"

// --- one enum for each enum attribute, such as enum inf_unary_kind { INF_UNARY_NEG, ... } ---
#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_UNARY
enum inf_unary_kind {
#include "backends/graph/kinds.def"
    INF_UNARY_COUNT
};
#undef INF_KINDS_UNARY

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_BINARY
enum inf_binary_kind {
#include "backends/graph/kinds.def"
    INF_BINARY_COUNT
};
#undef INF_KINDS_BINARY

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_COMPARE
enum inf_compare_kind {
#include "backends/graph/kinds.def"
    INF_COMPARE_COUNT
};
#undef INF_KINDS_COMPARE

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_REDUCE
enum inf_reduce_kind {
#include "backends/graph/kinds.def"
    INF_REDUCE_COUNT
};
#undef INF_KINDS_REDUCE

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_ARG
enum inf_arg_kind {
#include "backends/graph/kinds.def"
    INF_ARG_COUNT
};
#undef INF_KINDS_ARG

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_POOL
enum inf_pool_kind {
#include "backends/graph/kinds.def"
    INF_POOL_COUNT
};
#undef INF_KINDS_POOL

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_RESIZE
enum inf_resize_kind {
#include "backends/graph/kinds.def"
    INF_RESIZE_COUNT
};
#undef INF_KINDS_RESIZE

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_PAD
enum inf_pad_mode {
#include "backends/graph/kinds.def"
    INF_PAD_COUNT
};
#undef INF_KINDS_PAD

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_PADDING
enum inf_padding {
#include "backends/graph/kinds.def"
    INF_PADDING_COUNT
};
#undef INF_KINDS_PADDING

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_ACTIVATION
enum inf_activation {
#include "backends/graph/kinds.def"
    INF_ACTIVATION_COUNT
};
#undef INF_KINDS_ACTIVATION

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_RANDOM
enum inf_random_kind {
#include "backends/graph/kinds.def"
    INF_RANDOM_COUNT
};
#undef INF_KINDS_RANDOM

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_CUMULATE
enum inf_cumulate_kind {
#include "backends/graph/kinds.def"
    INF_CUMULATE_COUNT
};
#undef INF_KINDS_CUMULATE

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_SCATTER
enum inf_scatter_kind {
#include "backends/graph/kinds.def"
    INF_SCATTER_COUNT
};
#undef INF_KINDS_SCATTER

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_SAMPLE
enum inf_sample_kind {
#include "backends/graph/kinds.def"
    INF_SAMPLE_COUNT
};
#undef INF_KINDS_SAMPLE

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_COORDINATES
enum inf_coordinates {
#include "backends/graph/kinds.def"
    INF_COORDINATES_COUNT
};
#undef INF_KINDS_COORDINATES

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_ROUNDING
enum inf_rounding {
#include "backends/graph/kinds.def"
    INF_ROUNDING_COUNT
};
#undef INF_KINDS_ROUNDING

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_BORDER
enum inf_border_mode {
#include "backends/graph/kinds.def"
    INF_BORDER_COUNT
};
#undef INF_KINDS_BORDER

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_NORMALIZE
enum inf_normalize_kind {
#include "backends/graph/kinds.def"
    INF_NORMALIZE_COUNT
};
#undef INF_KINDS_NORMALIZE

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_RNN
enum inf_rnn_kind {
#include "backends/graph/kinds.def"
    INF_RNN_COUNT
};
#undef INF_KINDS_RNN

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_DIRECTION
enum inf_direction {
#include "backends/graph/kinds.def"
    INF_DIRECTION_COUNT
};
#undef INF_KINDS_DIRECTION

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_SPLIT
enum inf_split_kind {
#include "backends/graph/kinds.def"
    INF_SPLIT_COUNT
};
#undef INF_KINDS_SPLIT

#define INF_KIND(tag, NAME, name, doc) INF_##tag##_##NAME,
#define INF_KINDS_TOKENS
enum inf_tokens_kind {
#include "backends/graph/kinds.def"
    INF_TOKENS_COUNT
};
#undef INF_KINDS_TOKENS

// --- enum inf_op { INF_OP_UNARY, ... INF_OP_COUNT }: one constant for each operator ---
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc) INF_OP_##NAME,
#define INF_ATTR_INT(op, field, initial, min, max, doc)
#define INF_ATTR_BOOL(op, field, initial, doc)
#define INF_ATTR_FLOAT(op, field, initial, doc)
#define INF_ATTR_ENUM(op, field, tag, initial, doc)
#define INF_ATTR_INTS(op, field, doc)
#define INF_OP_END(NAME, name)
enum inf_op {
#include "backends/graph/ops.def"
    INF_OP_COUNT
};

// A short list of integers, for attributes such as axes and permutations.
struct inf_ints {
    int32_t count; // number of elements: 0..INF_LIMIT_RANK
    int64_t values[INF_LIMIT_RANK];
};

// --- one struct for each operator, such as struct inf_attrs_conv2d { int32_t stride_h; ... } ---
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc)                     \
    struct inf_attrs_##name {                                                                      \
        char unused_; /* an operator may have no attribute */
#define INF_ATTR_INT(op, field, initial, min, max, doc) int32_t field;
#define INF_ATTR_BOOL(op, field, initial, doc)          bool field;
#define INF_ATTR_FLOAT(op, field, initial, doc)         float field;
#define INF_ATTR_ENUM(op, field, tag, initial, doc)     enum inf_##tag field;
#define INF_ATTR_INTS(op, field, doc)                   struct inf_ints field;
#define INF_OP_END(NAME, name)                                                                     \
    }                                                                                              \
    ;
#include "backends/graph/ops.def"

// The attributes of a node. The valid member is the one that has the operator's name.
union inf_attrs {
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc)                     \
    struct inf_attrs_##name name;
#define INF_ATTR_INT(op, field, initial, min, max, doc)
#define INF_ATTR_BOOL(op, field, initial, doc)
#define INF_ATTR_FLOAT(op, field, initial, doc)
#define INF_ATTR_ENUM(op, field, tag, initial, doc)
#define INF_ATTR_INTS(op, field, doc)
#define INF_OP_END(NAME, name)
#include "backends/graph/ops.def"
};

// --- tables that describe all operators and their attributes as data ---
#define INF_VARIADIC UINT32_MAX

// The rule that relates the element types of an operator's inputs and outputs.
enum inf_types {
    INF_TYPES_SAME, // all inputs and outputs have one type
    // the outputs have the type of input 0; other inputs are i32 (or i64) constants
    INF_TYPES_FIRST,
    INF_TYPES_TO_BOOL,        // all inputs have one type; the output is bool
    INF_TYPES_TO_I32,         // the output is i32
    INF_TYPES_LIST_TO_F32,    // input 0 is i32 or i64; the output is f32
    INF_TYPES_ATTR,           // the output has the type that the attribute `dtype` names
    INF_TYPES_SELECT,         // input 0 is bool; inputs 1 and 2 and the output have one type
    INF_TYPES_CONV_TRANSPOSE, // input 2 is i32; all other inputs and the output have one type
    INF_TYPES_PAD,            // input 1 is i32; inputs 0 and 2 and the output have one type
    INF_TYPES_GATHER,         // input 1 is i32 or i64; the output has the type of input 0
    INF_TYPES_FILL,           // input 0 is i32; the output has the type of input 1
    INF_TYPES_ALIKE_TO_I32,   // all inputs have one type; the output is i32
    INF_TYPES_ONE_HOT,        // inputs 0, 1 are i32 or i64; inputs 2, 3 and output have one type
    INF_TYPES_SCATTER,        // input 1 is i32 or i64; inputs 0, 2 and the output have one type
    INF_TYPES_BINCOUNT,       // inputs 0, 1 are i32 or i64; the output has the type of input 2
    // input 1 is i32 or i64; inputs 2 and 3 are f32; the output has the type of input 0
    INF_TYPES_RESAMPLE,
    INF_TYPES_CROP, // input 1 is f32; inputs 2, 3 are i32 or i64; the output is f32
    // input 1 is f32; input 2 is i32 or i64; the output has the type of input 0
    INF_TYPES_TRANSFORM,
    // input 1 has the type of input 0, or f32; input 2 and the output have the type that the
    // attribute `dtype` names
    INF_TYPES_QUANTIZE,
    // input 2 has the type of input 0; the output has the type of input 1, which is a float type
    INF_TYPES_DEQUANTIZE,
    // inputs 0 and 1 are u8 or i8; input 2 is i32; input 3 has the type of input 0, and input 4
    // that of input 1; input 5 is f32; input 6 and the output have the type of the attribute
    // `dtype`
    INF_TYPES_QPRODUCT,
    // inputs 0 and 1 are u8 or i8; inputs 2 to 4 are f32; input 5 has the type of input 0, and
    // input 6 that of input 1; input 7 and the output have the type of the attribute `dtype`
    INF_TYPES_QBINARY,
    // inputs 0, 2 and 4 are f32, input 1 is u8, input 3 is u8 or f32; the output is f32
    INF_TYPES_BLOCKS,
    INF_TYPES_LOOKUP, // input 0 is u8 or i8; the output has the type of input 1
    INF_TYPES_RNN,    // input 4 is i32; all other inputs and the outputs have one type
    INF_TYPES_BRANCH, // input 0 is bool; outputs have the types of the subgraphs' outputs
    INF_TYPES_LOOP,   // output i has the type of input i
    // input 2 is i32, and the other inputs have one type; outputs 0 and 2 are i32, and output 1 has
    // the type of input 0
    INF_TYPES_NMS,
    INF_TYPES_UNIQUE, // all inputs have one type, as has output 0; the other outputs are i32
    INF_TYPES_NGRAMS, // as INF_TYPES_STRINGS, but input 1 is i32 or i64
    // inputs 0 and 2 are i32 or i64; inputs 1 and 3 have one type; outputs 0 and 1 have the types
    // of inputs 0 and 1; output 2 is i32
    INF_TYPES_SPARSE_FILL,
    INF_TYPES_STRINGS, // all inputs are BYTES; the operator says which types the outputs have
};

enum inf_attr_type {
    INF_ATTR_TYPE_INT,
    INF_ATTR_TYPE_BOOL,
    INF_ATTR_TYPE_FLOAT,
    INF_ATTR_TYPE_ENUM,
    INF_ATTR_TYPE_INTS,
};

// Describes one attribute of one operator: name, type, place in union inf_attrs, range and default.
struct inf_attr_info {
    const char *name;
    enum inf_attr_type type;
    size_t offset;    // offset of the attribute in union inf_attrs, in bytes
    int32_t min, max; // inclusive range for an INT attribute; 0 and count-1 for an ENUM attribute
    int32_t default_int;      // default of an INT, BOOL or ENUM attribute
    float default_float;      // default of a FLOAT attribute
    const char *const *names; // ENUM attribute: the name of each value; NULL for other attributes
    const char *doc;
};

// Describes one operator: name, number of inputs and outputs, type rule and attributes.
struct inf_op_info {
    const char *name;
    uint32_t inputs_min, inputs_max; // fewest and most inputs; inputs_max may be INF_VARIADIC
    uint32_t outputs;                // number of outputs; may be INF_VARIADIC
    enum inf_types types;
    const struct inf_attr_info *attrs;
    size_t attr_count;
    const char *doc;
};

// Returns the description of `op`, which must be below INF_OP_COUNT. It is static and never NULL.
const struct inf_op_info *inf_op_info(enum inf_op op);

// Returns the operator named `name`; INF_OP_COUNT if none has that name.
enum inf_op inf_op_parse(const char *name);

// Sets every attribute of `op` to its default.
void inf_attrs_init(union inf_attrs *attrs, enum inf_op op);

// Returns true if both lists have the same numbers in the same order.
bool inf_ints_equal(const struct inf_ints *a, const struct inf_ints *b);

// Returns true if every attribute of `op` has the same value in `a` and `b`.
bool inf_attrs_equal(const union inf_attrs *a, const union inf_attrs *b, enum inf_op op);

// Returns the name of a unary kind, for messages; "?" if it is out of range.
const char *inf_unary_name(enum inf_unary_kind kind);
// Returns the name of a binary kind, for messages; "?" if it is out of range.
const char *inf_binary_name(enum inf_binary_kind kind);
// Returns the name of an activation, for messages; "?" if it is out of range.
const char *inf_activation_name(enum inf_activation activation);
// Returns the unary kind that computes the same function as an activation; INF_UNARY_COUNT if there
// is none, for none, clip and prelu.
enum inf_unary_kind inf_activation_unary(enum inf_activation activation);

#endif
