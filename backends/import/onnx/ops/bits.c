// SPDX-License-Identifier: Apache-2.0
// Operators on bits and random numbers: BitCast, and RandomUniform, RandomNormal and Bernoulli. A
// seed gives the same numbers in every run; without one, every run draws others. The generator is
// that of the graph's random operator, so the numbers differ from those of other runtimes.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

static void lower_bit_cast(struct inf_onnx_scope *s)
{
    int32_t to = inf_onnx_attr_int(s, "to", 0);
    enum inf_dtype from = inf_build_dtype(&s->b, s->inputs[0]), dtype = inf_onnx_dtype(to);
    if (dtype == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "attribute 'to' is %s (%d)", inf_onnx_type_name(to),
                       to);
    bool is_half = from == INF_DTYPE_F16 || from == INF_DTYPE_BF16 || dtype == INF_DTYPE_F16 ||
                   dtype == INF_DTYPE_BF16;
    if (from != dtype && is_half)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "%s to %s, 16-bit floats have no fixed bits",
                       inf_dtype_name(from), inf_dtype_name(dtype));
    struct inf_build_node node = inf_build_describe_list(INF_OP_BITCAST, s->inputs, 1);
    node.attrs.bitcast.dtype = dtype;
    s->outputs[0] = from == dtype ? s->inputs[0] : inf_build_value(&s->b, &node);
}

// --- random numbers ---

// Adds random numbers of the shape that the i32 value `shape` gives, as `dtype`. The attribute
// `seed` is a float.
static uint32_t add_random(struct inf_onnx_scope *s, uint32_t shape, enum inf_random_kind kind)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_RANDOM, &shape, 1);
    float seed = inf_onnx_attr_float(s, "seed", 0);
    memcpy(&node.attrs.random.seed, &seed, sizeof seed);
    // Seed 0 of the model is a seed, too.
    if (node.attrs.random.seed == 0 && inf_onnx_has_attr(s, "seed"))
        node.attrs.random.seed = 1;
    node.attrs.random.kind = kind;
    return inf_build_value(&s->b, &node);
}

// Returns the element type in attribute `dtype`. If the attribute is absent, returns that of x, or
// FP32 if x is absent.
static enum inf_dtype read_type(struct inf_onnx_scope *s, uint32_t x)
{
    int32_t type = inf_onnx_attr_int(s, "dtype", 0);
    if (type == 0)
        return x != INF_VALUE_NONE ? inf_build_dtype(&s->b, x) : INF_DTYPE_F32;
    if (inf_onnx_dtype(type) == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "dtype is %s", inf_onnx_type_name(type));
    return inf_onnx_dtype(type);
}

// Lowers RandomUniform, RandomNormal and their forms that take the shape of a tensor.
static void lower_random(struct inf_onnx_scope *s)
{
    enum inf_random_kind kind = (enum inf_random_kind)s->op->kind;
    bool is_normal = kind == INF_RANDOM_NORMAL;
    struct inf_build_ints dims = {.count = 0};
    uint32_t x = inf_onnx_input(s, 0), shape;
    enum inf_dtype dtype = read_type(s, x);
    double first = (double)inf_onnx_attr_float(s, is_normal ? "mean" : "low", 0);
    double second = (double)inf_onnx_attr_float(s, is_normal ? "scale" : "high", 1);
    if (x != INF_VALUE_NONE)
        shape = inf_build_shape(&s->b, x);
    else if (inf_onnx_attr_ints(s, "shape", &dims))
        shape = inf_build_list(&s->b, dims.values, dims.count);
    else
        shape = inf_build_list(&s->b, NULL, 0);
    uint32_t y = add_random(s, shape, kind);
    y = inf_build_binary_number(&s->b, INF_BINARY_MUL, y, is_normal ? second : second - first);
    y = inf_build_binary_number(&s->b, INF_BINARY_ADD, y, first);
    if (!inf_dtype_is_float(dtype))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "dtype is %s, wanted a float",
                       inf_dtype_name(dtype));
    s->outputs[0] = inf_build_cast(&s->b, y, dtype);
}

// Lowers Bernoulli: 1 with the probability x. Uniform numbers are below 1, so 1 is certain.
static void lower_bernoulli(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    enum inf_dtype dtype = read_type(s, x);
    enum inf_dtype work =
        inf_build_dtype(&s->b, x) == INF_DTYPE_F64 ? INF_DTYPE_F64 : INF_DTYPE_F32;
    uint32_t drawn = add_random(s, inf_build_shape(&s->b, x), INF_RANDOM_UNIFORM);
    uint32_t is_set = inf_build_compare(&s->b, INF_COMPARE_LESS, inf_build_cast(&s->b, drawn, work),
                                        inf_build_cast(&s->b, x, work));
    s->outputs[0] = inf_build_cast(&s->b, is_set, dtype);
}

static const struct inf_onnx_op ops[] = {
    {"BitCast", lower_bit_cast, 1, 1, 1, 0},
    {"RandomUniform", lower_random, 0, 0, 1, INF_RANDOM_UNIFORM},
    {"RandomNormal", lower_random, 0, 0, 1, INF_RANDOM_NORMAL},
    {"RandomUniformLike", lower_random, 1, 1, 1, INF_RANDOM_UNIFORM},
    {"RandomNormalLike", lower_random, 1, 1, 1, INF_RANDOM_NORMAL},
    {"Bernoulli", lower_bernoulli, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_bits = {ops, INF_ARRAY_LENGTH(ops)};
