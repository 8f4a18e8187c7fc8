// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes or return them.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/axes.h"

// --- operator Reshape ---

// Adds a constant shape in which 0 is replaced by the dimension of x.
static uint32_t resolve_const_shape(struct inf_onnx_scope *s, uint32_t x,
                                    const struct inf_build_ints *wanted, bool allow_zero)
{
    uint32_t parts[INF_LIMIT_RANK];
    int64_t dims[INF_LIMIT_RANK];
    bool known = true;
    if (wanted->count > INF_LIMIT_RANK)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "shape has %u dimensions, at most %d are built",
                       wanted->count, INF_LIMIT_RANK);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < wanted->count; i++) {
        dims[i] = wanted->values[i];
        if (dims[i] < -1)
            inf_build_fail(&s->b, INF_INVALID, "shape[%u] is %lld", i, (long long)dims[i]);
        if (dims[i] == 0 && !allow_zero)
            dims[i] = inf_build_dim(&s->b, x, (int32_t)i);
        known &= wanted->values[i] != 0 || allow_zero || dims[i] != INF_DIM_UNKNOWN;
    }
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    if (known)
        return inf_build_list(&s->b, dims, wanted->count);
    for (uint32_t i = 0; i < wanted->count; i++)
        parts[i] = wanted->values[i] == 0 ? inf_build_dim_value(&s->b, x, (int32_t)i)
                                          : inf_build_list(&s->b, &dims[i], 1);
    return inf_build_concat(&s->b, parts, wanted->count, 0);
}

// Adds nodes that compute a shape in which 0 is replaced by the dimension of x. For shapes that are
// not constants.
static uint32_t resolve_shape(struct inf_onnx_scope *s, uint32_t x, uint32_t shape, bool allow_zero)
{
    int32_t rank = inf_build_rank(&s->b, x);
    int64_t count = inf_build_known_dim(&s->b, shape, 0);
    shape = inf_build_cast(&s->b, shape, INF_DTYPE_I32);
    if (allow_zero || count == 0 || rank == 0)
        return shape;
    uint32_t own = inf_build_shape(&s->b, x);
    if (count < rank)
        own = inf_build_slice(&s->b, own, 0, 0, count, 1);
    else if (count > rank) // a zero beyond the rank of x stays, and the reshape fails
        own = inf_build_pad(&s->b, own, (int64_t[]){0, count - rank}, 1, INF_PAD_CONSTANT,
                            INF_VALUE_NONE);
    uint32_t zero = inf_build_compare(&s->b, INF_COMPARE_EQUAL, shape,
                                      inf_build_scalar(&s->b, INF_DTYPE_I32, 0));
    return inf_build_select(&s->b, zero, own, shape);
}

static void lower_reshape(struct inf_onnx_scope *s)
{
    struct inf_build_ints wanted;
    uint32_t x = s->inputs[0], shape = inf_onnx_input(s, 1);
    bool allow_zero = s->opset >= 14 && inf_onnx_attr_int(s, "allowzero", 0) != 0;
    if (s->opset < 5 && inf_onnx_attr_ints(s, "shape", &wanted)) {
        s->outputs[0] = inf_build_reshape_to(&s->b, x, resolve_const_shape(s, x, &wanted, false));
        return;
    }
    if (shape == INF_VALUE_NONE) {
        inf_build_fail(&s->b, INF_INVALID, "lacks a shape");
        return;
    }
    if (inf_build_is_const(&s->b, shape)) {
        wanted = inf_build_const_ints(&s->b, shape, "shape");
        shape = resolve_const_shape(s, x, &wanted, allow_zero);
    } else {
        shape = resolve_shape(s, x, shape, allow_zero);
    }
    s->outputs[0] = inf_build_reshape_to(&s->b, x, shape);
}

static void lower_flatten(struct inf_onnx_scope *s)
{
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    int32_t given = inf_onnx_attr_int(s, "axis", 1);
    int32_t axis = given == rank ? rank : inf_build_axis(&s->b, given, rank);
    s->outputs[0] = inf_build_flatten(&s->b, s->inputs[0], axis);
}

// --- operators that insert or remove axes of size 1 ---

// Reads axes from the attribute (old versions) or the second input (new versions). Converts them to
// nonnegative axes of x, or of the result if axes are inserted.
static struct inf_build_ints read_axes(struct inf_onnx_scope *s, bool inserted)
{
    struct inf_build_ints axes = {.count = 0};
    if (s->opset < 13)
        (void)inf_onnx_attr_ints(s, "axes", &axes);
    else if (inf_onnx_input(s, 1) != INF_VALUE_NONE)
        axes = inf_build_const_ints(&s->b, s->inputs[1], "axes");
    if (axes.count > INF_LIMIT_RANK)
        inf_build_fail(&s->b, INF_INVALID, "has %u axes, wanted at most %d", axes.count,
                       INF_LIMIT_RANK);
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]) + (inserted ? (int32_t)axes.count : 0);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < axes.count; i++)
        axes.values[i] = inf_build_axis(&s->b, axes.values[i], rank);
    return axes;
}

static void lower_squeeze(struct inf_onnx_scope *s)
{
    if (s->opset >= 13 && inf_onnx_axes_computed(s, 1)) {
        s->outputs[0] = inf_onnx_axes_squeeze(s, s->inputs[0], s->inputs[1]);
        return;
    }
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    struct inf_build_ints axes = read_axes(s, false);
    for (int32_t i = 0; axes.count == 0 && inf_build_ok(&s->b) && i < rank; i++)
        if (inf_build_known_dim(&s->b, s->inputs[0], i) == 1)
            axes.values[axes.count++] = i;
    s->outputs[0] = inf_build_squeeze(&s->b, s->inputs[0], axes.values, (int32_t)axes.count);
}

static void lower_unsqueeze(struct inf_onnx_scope *s)
{
    if (s->opset >= 13 && inf_onnx_axes_computed(s, 1)) {
        s->outputs[0] = inf_onnx_axes_unsqueeze(s, s->inputs[0], s->inputs[1]);
        return;
    }
    struct inf_build_ints axes = read_axes(s, true);
    s->outputs[0] = inf_build_expand_dims(&s->b, s->inputs[0], axes.values, (int32_t)axes.count);
}

// --- operators that return shapes ---

static void lower_shape(struct inf_onnx_scope *s)
{
    // The output of a branch may have a rank that is known only at run time.
    if (inf_build_ok(&s->b) && s->b.graph->values[s->inputs[0]].shape.rank < 0 &&
        s->node->attr_count == 0) {
        s->outputs[0] = inf_build_cast(&s->b, inf_build_shape(&s->b, s->inputs[0]), INF_DTYPE_I64);
        return;
    }
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    int32_t start = inf_onnx_attr_int(s, "start", 0), end = inf_onnx_attr_int(s, "end", rank);
    start = INF_MAX(INF_MIN(start < 0 ? start + rank : start, rank), 0);
    end = INF_MAX(INF_MIN(end < 0 ? end + rank : end, rank), 0);
    uint32_t parts[INF_LIMIT_RANK + 1];
    uint32_t count = 0;
    bool known = true;
    for (int32_t i = start; inf_build_ok(&s->b) && i < end; i++)
        known &= inf_build_dim(&s->b, s->inputs[0], i) != INF_DIM_UNKNOWN;
    for (int32_t i = start; known && i < end; i++)
        parts[count++] = inf_build_dim_value(&s->b, s->inputs[0], i);
    uint32_t shape = INF_VALUE_NONE;
    if (start >= end)
        shape = inf_build_list(&s->b, NULL, 0);
    else if (known)
        shape = inf_build_concat(&s->b, parts, count, 0);
    else
        shape = inf_build_slice(&s->b, inf_build_shape(&s->b, s->inputs[0]), 0, start, end, 1);
    s->outputs[0] = inf_build_cast(&s->b, shape, INF_DTYPE_I64);
}

static void lower_size(struct inf_onnx_scope *s)
{
    uint32_t shape = inf_build_cast(&s->b, inf_build_shape(&s->b, s->inputs[0]), INF_DTYPE_I64);
    s->outputs[0] =
        inf_build_reduce(&s->b, INF_REDUCE_PROD, shape, &(struct inf_ints){.count = 1}, false);
}

// --- operators that repeat elements ---

// Broadcasts x to the requested shape. If a dimension of x is larger than requested, it is kept.
static void lower_expand(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], shape = s->inputs[1];
    struct inf_shape wanted = {.rank = 0}, result;
    if (inf_build_is_const(&s->b, shape)) {
        struct inf_build_ints ints = inf_build_const_ints(&s->b, shape, "shape");
        bool fits = ints.count <= INF_LIMIT_RANK;
        wanted.rank = fits ? (int32_t)ints.count : 0;
        for (int32_t i = 0; i < wanted.rank; i++) {
            wanted.dims[i] = ints.values[i];
            fits &= ints.values[i] >= 0 && ints.values[i] < INF_LIMIT_DIM;
        }
        if (!inf_build_ok(&s->b))
            return;
        fits = fits && inf_shape_broadcast(&s->b.graph->values[x].shape, &wanted, &result);
        if (!fits)
            inf_build_fail(&s->b, INF_INVALID, "x does not stretch to the shape wanted");
        else if (inf_shape_known(&result)) {
            s->outputs[0] = inf_build_broadcast(
                &s->b, x, inf_build_list(&s->b, result.dims, (uint32_t)result.rank));
            return;
        }
    }
    // If a shape is unknown, broadcast by multiplying with a tensor of ones.
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    uint32_t ones = inf_build_fill(&s->b, inf_build_cast(&s->b, shape, INF_DTYPE_I32),
                                   inf_build_scalar(&s->b, dtype, 1));
    s->outputs[0] = inf_build_binary(
        &s->b, dtype == INF_DTYPE_BOOL ? INF_BINARY_LOGICAL_AND : INF_BINARY_MUL, x, ones);
}

static void lower_tile(struct inf_onnx_scope *s)
{
    if (s->opset < 6) {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "in opset %lld it is another operator",
                       (long long)s->opset);
        return;
    }
    const uint32_t inputs[] = {s->inputs[0], inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_I32)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_TILE, inputs, 2);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static const struct inf_onnx_op ops[] = {
    {"Reshape", lower_reshape, 1, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Flatten", lower_flatten, 1, 1, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Squeeze", lower_squeeze, 1, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Unsqueeze", lower_unsqueeze, 1, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Shape", lower_shape, 1, 1, 1, 0, .narrow = INF_ONNX_NARROW_READ},
    {"Size", lower_size, 1, 1, 1, 0, .narrow = INF_ONNX_NARROW_READ},
    {"Expand", lower_expand, 2, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
    {"Tile", lower_tile, 2, 2, 1, 0, .narrow = INF_ONNX_NARROW_MOVED},
};

const struct inf_onnx_op_table inf_onnx_ops_shape = {ops, INF_ARRAY_LENGTH(ops)};
