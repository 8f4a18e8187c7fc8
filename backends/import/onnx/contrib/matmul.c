// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions that ONNX Runtime's optimiser fuses with other nodes:
// transposes, a multiplication by a number, a bias, an activation. Also convolutions and pools with
// channels last, a transposed convolution with pads as an input, and the inverse of small matrices.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/op_table.h"

// The version of ai.onnx in which inf_onnx_call_value() lowers operators.
#define OPSET 13
// The most rows of a matrix for Inverse, which uses Det. Det has the same limit.
#define INVERSE_MAX 4

// Adds a node that moves the first axis of x behind the batch axes: [m, batch..., k] becomes
// [batch..., m, k].
static uint32_t transpose_batch(struct inf_onnx_scope *s, uint32_t x)
{
    int64_t perm[INF_LIMIT_RANK];
    int32_t rank = inf_build_rank(&s->b, x);
    if (rank < 3)
        return x;
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i + 1 : i == rank - 2 ? 0 : i;
    return inf_build_transpose(&s->b, x, perm, rank);
}

// Lowers FusedMatMul and TransposeMatMul: alpha * a * b, with a and b transposed if the attributes
// say so.
static void lower_fused_matmul(struct inf_onnx_scope *s)
{
    uint32_t operands[2] = {s->inputs[0], s->inputs[1]};
    float alpha = inf_onnx_attr_float(s, "alpha", 1);
    bool transposes[2] = {inf_onnx_attr_int(s, "transA", 0) != 0,
                          inf_onnx_attr_int(s, "transB", 0) != 0};
    if (inf_onnx_attr_int(s, "transBatchA", 0) != 0)
        operands[0] = transpose_batch(s, operands[0]);
    if (inf_onnx_attr_int(s, "transBatchB", 0) != 0)
        operands[1] = transpose_batch(s, operands[1]);
    if (inf_build_rank(&s->b, operands[0]) < 2 || inf_build_rank(&s->b, operands[1]) < 2) {
        // If a or b is a vector, transA and transB are ignored.
        s->outputs[0] = inf_build_matmul(&s->b, operands[0], operands[1]);
    } else {
        struct inf_build_node node = inf_build_describe_list(INF_OP_MATMUL, operands, 2);
        node.attrs.matmul.transpose_a = transposes[0];
        node.attrs.matmul.transpose_b = transposes[1];
        s->outputs[0] = inf_build_value(&s->b, &node);
    }
    if (alpha != 1)
        s->outputs[0] =
            inf_build_binary_number(&s->b, INF_BINARY_MUL, s->outputs[0], (double)alpha);
}

static void lower_fused_gemm(struct inf_onnx_scope *s)
{
    const struct inf_onnx_activation activation = {
        .name = inf_onnx_attr_text(s, "activation", ""),
        .alpha = inf_onnx_attr_float(s, "activation_alpha", NAN),
        .beta = inf_onnx_attr_float(s, "activation_beta", NAN)};
    (void)inf_onnx_find_attr(s, "activation_gamma"); // no supported activation reads it
    uint32_t y = inf_onnx_call_value(s, "Gemm", OPSET, s->inputs, s->input_count);
    s->outputs[0] = inf_onnx_activate(s, y, &activation);
}

// Lowers FusedConv: activation(convolution + z). The tensor z is input 3 and optional.
static void lower_fused_conv(struct inf_onnx_scope *s)
{
    float parameters[2] = {NAN, NAN};
    uint32_t list = inf_onnx_attr_floats(s, "activation_params"), z = inf_onnx_input(s, 3);
    if (list != INF_VALUE_NONE && inf_build_ok(&s->b)) {
        const struct inf_value *value = &s->b.graph->values[list];
        for (int64_t i = 0; i < 2 && i < value->shape.dims[0]; i++)
            parameters[i] = ((const float *)value->data->data)[i];
    }
    const struct inf_onnx_activation activation = {inf_onnx_attr_text(s, "activation", ""),
                                                   parameters[0], parameters[1]};
    uint32_t y = inf_onnx_call_value(s, "Conv", OPSET, s->inputs, INF_MIN(s->input_count, 3u));
    if (z != INF_VALUE_NONE)
        y = inf_build_add(&s->b, y, z);
    s->outputs[0] = inf_onnx_activate(s, y, &activation);
}

// Lowers NhwcConv and NhwcMaxPool: Conv and MaxPool of ai.onnx on pictures [n,h,w,c]. The filter of
// a convolution has the same order of axes as in ai.onnx.
static void lower_channels_last(struct inf_onnx_scope *s)
{
    static const char *const names[] = {"Conv", "MaxPool"};
    uint32_t inputs[3] = {inf_build_channels_first(&s->b, s->inputs[0]), inf_onnx_input(s, 1),
                          inf_onnx_input(s, 2)};
    s->outputs[0] = inf_build_channels_last(
        &s->b, inf_onnx_call_value(s, names[s->op->kind], OPSET, inputs, s->input_count));
}

// Lowers ConvTransposeWithDynamicPads: a transposed convolution without pads, whose result is then
// cropped by the pads. Inputs: x, filter, pads (must be constant), bias.
static void lower_transposed_conv(struct inf_onnx_scope *s)
{
    const uint32_t inputs[] = {s->inputs[0], s->inputs[1], inf_onnx_input(s, 3)};
    uint32_t pads = inf_onnx_input(s, 2);
    uint32_t y = inf_onnx_call_value(s, "ConvTranspose", OPSET, inputs, 3);
    int32_t axes = inf_build_rank(&s->b, y) - 2;
    if (pads == INF_VALUE_NONE || !inf_build_ok(&s->b)) {
        s->outputs[0] = y;
        return;
    }
    struct inf_build_ints sizes = inf_build_const_ints(&s->b, pads, "pads");
    for (int32_t i = 0; inf_build_ok(&s->b) && i < axes; i++) {
        if (sizes.count != 2 * (uint32_t)axes || sizes.values[i] < 0 || sizes.values[axes + i] < 0)
            inf_build_fail(&s->b, INF_INVALID, "pads has %u numbers, wanted %d, 0 or more",
                           sizes.count, 2 * axes);
        int64_t after = sizes.values[axes + i];
        y = inf_build_slice(&s->b, y, 2 + i, sizes.values[i], after == 0 ? INT64_MAX : -after, 1);
    }
    s->outputs[0] = y;
}

// Adds nodes that drop row lines[0] and column lines[1] from the matrices of x [..., n, n].
static uint32_t drop_lines(struct inf_onnx_scope *s, uint32_t x, int32_t rank, int64_t n,
                           const int64_t lines[2])
{
    for (int32_t axis = 0; axis < 2; axis++) {
        int32_t *index;
        uint32_t indices = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(n - 1), &index);
        for (int64_t i = 0; index != NULL && i < n - 1; i++)
            index[i] = (int32_t)(i < lines[axis] ? i : i + 1);
        x = inf_build_gather(&s->b, x, indices, rank - 2 + axis);
    }
    return x;
}

// Lowers Inverse of matrices [..., n, n] with Cramer's rule. Element (r, c) of the inverse is the
// determinant of x without row c and column r, with sign (-1)^(r + c), over the determinant of x.
static void lower_inverse(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], cells[INVERSE_MAX * INVERSE_MAX];
    int32_t rank = inf_build_rank(&s->b, x);
    int64_t n = inf_build_known_dim(&s->b, x, -1);
    if (inf_build_ok(&s->b) && (rank < 2 || rank + 1 > INF_LIMIT_RANK || n < 1 || n > INVERSE_MAX))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "matrices of %lld rows, wanted up to %d",
                       (long long)n, INVERSE_MAX);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < n * n; i++) {
        uint32_t minor = drop_lines(s, x, rank, n, (int64_t[]){i % n, i / n});
        uint32_t cell =
            n == 1 ? inf_build_squeeze(&s->b, inf_build_compare(&s->b, INF_COMPARE_EQUAL, x, x),
                                       (int64_t[]){-2, -1}, 2)
                   : inf_onnx_call_value(s, "Det", OPSET, &minor, 1);
        cell = inf_build_cast(&s->b, cell, inf_build_dtype(&s->b, x));
        if ((i % n + i / n) % 2 != 0)
            cell = inf_build_unary(&s->b, INF_UNARY_NEG, cell);
        cells[i] = inf_build_expand_dims(&s->b, cell, (int64_t[]){rank - 2}, 1);
    }
    if (!inf_build_ok(&s->b))
        return;
    uint32_t all = inf_build_concat(&s->b, cells, (uint32_t)(n * n), rank - 2);
    uint32_t whole = inf_onnx_call_value(s, "Det", OPSET, &x, 1);
    all = inf_build_div(&s->b, all, inf_build_expand_dims(&s->b, whole, (int64_t[]){rank - 2}, 1));
    s->outputs[0] = inf_build_reshape_to(&s->b, all, inf_build_shape(&s->b, x));
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::FusedMatMul", lower_fused_matmul, 2, 2, 1, 0},
    {"com.microsoft::TransposeMatMul", lower_fused_matmul, 2, 2, 1, 0},
    {"com.microsoft::FusedGemm", lower_fused_gemm, 2, 3, 1, 0},
    {"com.microsoft::FusedConv", lower_fused_conv, 2, 4, 1, 0},
    {"com.microsoft::NhwcConv", lower_channels_last, 2, 3, 1, 0},
    {"com.microsoft::NhwcMaxPool", lower_channels_last, 1, 1, 1, 1},
    {"com.microsoft::ConvTransposeWithDynamicPads", lower_transposed_conv, 2, 4, 1, 0},
    {"com.microsoft::Inverse", lower_inverse, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_matmul = {ops, INF_ARRAY_LENGTH(ops)};
