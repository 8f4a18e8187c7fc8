// SPDX-License-Identifier: Apache-2.0
// The table of operators and their attributes, generated from ops.def.
#include "backends/graph/op.h"

#include <string.h>

// --- one array for each enum attribute: the names of its values, generated from kinds.def ---
#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_UNARY
static const char *const unary_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_UNARY

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_BINARY
static const char *const binary_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_BINARY

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_COMPARE
static const char *const compare_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_COMPARE

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_REDUCE
static const char *const reduce_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_REDUCE

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_ARG
static const char *const arg_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_ARG

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_POOL
static const char *const pool_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_POOL

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_RESIZE
static const char *const resize_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_RESIZE

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_PAD
static const char *const pad_mode_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_PAD

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_PADDING
static const char *const padding_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_PADDING

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_ACTIVATION
static const char *const activation_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_ACTIVATION

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_RANDOM
static const char *const random_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_RANDOM

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_CUMULATE
static const char *const cumulate_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_CUMULATE

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_SCATTER
static const char *const scatter_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_SCATTER

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_SAMPLE
static const char *const sample_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_SAMPLE

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_COORDINATES
static const char *const coordinates_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_COORDINATES

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_ROUNDING
static const char *const rounding_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_ROUNDING

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_BORDER
static const char *const border_mode_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_BORDER

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_NORMALIZE
static const char *const normalize_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_NORMALIZE

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_RNN
static const char *const rnn_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_RNN

#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_DIRECTION
static const char *const direction_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_DIRECTION
#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_SPLIT
static const char *const split_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_SPLIT
#define INF_KIND(tag, NAME, name, doc) #name,
#define INF_KINDS_TOKENS
static const char *const tokens_kind_names[] = {
#include "backends/graph/kinds.def"
};
#undef INF_KINDS_TOKENS

// The attribute `dtype` of operators takes one of these names; the order is the one of enum
// inf_dtype. test_graph compares the list with inf_dtype_name().
static const char *const dtype_names[] = {
    "NONE",  "BOOL",  "UINT8", "UINT16", "UINT32", "UINT64", "INT8",  "INT16",
    "INT32", "INT64", "FP16",  "BF16",   "FP32",   "FP64",   "BYTES",
};

// --- attributes: one array per operator, terminated by an empty row ---
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc)                     \
    static const struct inf_attr_info name##_attrs[] = {
#define ATTR(op, field, kind, ...)                                                                 \
    {.name = #field,                                                                               \
     .type = INF_ATTR_TYPE_##kind,                                                                 \
     .offset = offsetof(union inf_attrs, op.field),                                                \
     __VA_ARGS__},
#define INF_ATTR_INT(op, field, initial, low, high, text)                                          \
    ATTR(op, field, INT, .min = (low), .max = (high), .default_int = (initial), .doc = text)
#define INF_ATTR_BOOL(op, field, initial, text)                                                    \
    ATTR(op, field, BOOL, .max = 1, .default_int = (initial), .doc = text)
#define INF_ATTR_FLOAT(op, field, initial, text)                                                   \
    ATTR(op, field, FLOAT, .default_float = (initial), .doc = text)
#define INF_ATTR_ENUM(op, field, tag, initial, text)                                               \
    ATTR(op, field, ENUM, .max = (int32_t)INF_ARRAY_LENGTH(tag##_names) - 1,                       \
         .default_int = (initial), .names = tag##_names, .doc = text)
#define INF_ATTR_INTS(op, field, text) ATTR(op, field, INTS, .doc = text)
#define INF_OP_END(NAME, tag)                                                                      \
    {                                                                                              \
        .name = NULL                                                                               \
    }                                                                                              \
    }                                                                                              \
    ;
#include "backends/graph/ops.def"
#undef ATTR

static const struct inf_op_info ops[] = {
#define INF_OP_BEGIN(NAME, tag, min, max, outs, rule, text)                                        \
    {.name = #tag,                                                                                 \
     .inputs_min = (min),                                                                          \
     .inputs_max = (max),                                                                          \
     .outputs = (outs),                                                                            \
     .types = (rule),                                                                              \
     .attrs = tag##_attrs,                                                                         \
     .attr_count = INF_ARRAY_LENGTH(tag##_attrs) - 1,                                              \
     .doc = text},
#define INF_ATTR_INT(op, field, initial, low, high, text)
#define INF_ATTR_BOOL(op, field, initial, text)
#define INF_ATTR_FLOAT(op, field, initial, text)
#define INF_ATTR_ENUM(op, field, tag, initial, text)
#define INF_ATTR_INTS(op, field, text)
#define INF_OP_END(NAME, name)
#include "backends/graph/ops.def"
};

const struct inf_op_info *inf_op_info(enum inf_op op)
{
    return &ops[op];
}

enum inf_op inf_op_parse(const char *name)
{
    for (int op = 0; op < INF_OP_COUNT; op++)
        if (strcmp(ops[op].name, name) == 0)
            return (enum inf_op)op;
    return INF_OP_COUNT;
}

void inf_attrs_init(union inf_attrs *attrs, enum inf_op op)
{
    memset(attrs, 0, sizeof *attrs);
    for (size_t i = 0; i < ops[op].attr_count; i++) {
        const struct inf_attr_info *attr = &ops[op].attrs[i];
        unsigned char *at = (unsigned char *)attrs + attr->offset;
        switch (attr->type) {
        case INF_ATTR_TYPE_INT:
        case INF_ATTR_TYPE_ENUM:
            memcpy(at, &attr->default_int, sizeof attr->default_int);
            break;
        case INF_ATTR_TYPE_BOOL:
            *at = attr->default_int != 0;
            break;
        case INF_ATTR_TYPE_FLOAT:
            memcpy(at, &attr->default_float, sizeof attr->default_float);
            break;
        case INF_ATTR_TYPE_INTS: // the default is an empty list, whose members are all zero
            break;
        }
    }
}

bool inf_ints_equal(const struct inf_ints *a, const struct inf_ints *b)
{
    return a->count == b->count &&
           memcmp(a->values, b->values, (size_t)a->count * sizeof *a->values) == 0;
}

bool inf_attrs_equal(const union inf_attrs *a, const union inf_attrs *b, enum inf_op op)
{
    for (size_t i = 0; i < ops[op].attr_count; i++) {
        const struct inf_attr_info *attr = &ops[op].attrs[i];
        const unsigned char *x = (const unsigned char *)a + attr->offset;
        const unsigned char *y = (const unsigned char *)b + attr->offset;
        bool same = false;
        switch (attr->type) {
        case INF_ATTR_TYPE_INT:
        case INF_ATTR_TYPE_ENUM:
        case INF_ATTR_TYPE_FLOAT:
            same = memcmp(x, y, sizeof(int32_t)) == 0;
            break;
        case INF_ATTR_TYPE_BOOL:
            same = *x == *y;
            break;
        case INF_ATTR_TYPE_INTS:
            same = inf_ints_equal((const struct inf_ints *)x, (const struct inf_ints *)y);
            break;
        }
        if (!same)
            return false;
    }
    return true;
}

const char *inf_unary_name(enum inf_unary_kind kind)
{
    return kind < INF_UNARY_COUNT ? unary_kind_names[kind] : "?";
}

const char *inf_binary_name(enum inf_binary_kind kind)
{
    return kind < INF_BINARY_COUNT ? binary_kind_names[kind] : "?";
}

const char *inf_activation_name(enum inf_activation activation)
{
    return activation < INF_ACTIVATION_COUNT ? activation_names[activation] : "?";
}

enum inf_unary_kind inf_activation_unary(enum inf_activation activation)
{
    switch (activation) {
    case INF_ACTIVATION_RELU:
        return INF_UNARY_RELU;
    case INF_ACTIVATION_RELU6:
        return INF_UNARY_RELU6;
    case INF_ACTIVATION_SIGMOID:
        return INF_UNARY_SIGMOID;
    case INF_ACTIVATION_TANH:
        return INF_UNARY_TANH;
    case INF_ACTIVATION_ELU:
        return INF_UNARY_ELU;
    case INF_ACTIVATION_LEAKY_RELU:
        return INF_UNARY_LEAKY_RELU;
    case INF_ACTIVATION_HARD_SWISH:
        return INF_UNARY_HARD_SWISH;
    case INF_ACTIVATION_SILU:
        return INF_UNARY_SILU;
    case INF_ACTIVATION_GELU:
        return INF_UNARY_GELU;
    case INF_ACTIVATION_GELU_TANH:
        return INF_UNARY_GELU_TANH;
    default:
        return INF_UNARY_COUNT;
    }
}

_Static_assert(INF_ARRAY_LENGTH(dtype_names) == INF_DTYPE_COUNT, "a name for every dtype");
_Static_assert(sizeof(enum inf_padding) == sizeof(int32_t), "enum attributes are read as int32_t");
