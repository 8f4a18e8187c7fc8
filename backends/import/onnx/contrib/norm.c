// SPDX-License-Identifier: Apache-2.0
// Normalisations of com.microsoft: layer normalisations of the sum of x and a skip connection, the
// embedding of BERT, and GroupNorm. Means and variances are computed in f32 if x is of 16 bits.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"

// Adds nodes that normalise x along the last axis, multiply by `scale` and add `offset`
// (INF_VALUE_NONE: no offset).
static uint32_t add_row_norm(struct inf_onnx_scope *s, enum inf_normalize_kind kind, uint32_t x,
                             uint32_t scale, uint32_t offset, float epsilon)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    enum inf_dtype work = dtype == INF_DTYPE_F64 ? INF_DTYPE_F64 : INF_DTYPE_F32;
    uint32_t operands[3] = {inf_build_cast(&s->b, x, work), inf_build_cast(&s->b, scale, work)};
    if (offset != INF_VALUE_NONE)
        operands[2] = inf_build_cast(&s->b, offset, work);
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_NORMALIZE, operands, offset != INF_VALUE_NONE ? 3 : 2);
    node.attrs.normalize.kind = kind;
    node.attrs.normalize.axes = (struct inf_ints){.count = 1, .values = {-1}};
    node.attrs.normalize.epsilon = epsilon;
    return inf_build_cast(&s->b, inf_build_value(&s->b, &node), dtype);
}

// Lowers SkipLayerNormalization and SkipSimplifiedLayerNormalization. Inputs: x, skip, gamma, beta
// (SkipLayerNormalization only), bias. Output 3 is the sum x + skip + bias, which is normalised.
static void lower_skip_norm(struct inf_onnx_scope *s)
{
    enum inf_normalize_kind kind = (enum inf_normalize_kind)s->op->kind;
    bool has_beta = kind == INF_NORMALIZE_STANDARD;
    uint32_t beta = has_beta ? inf_onnx_input(s, 3) : INF_VALUE_NONE;
    uint32_t bias = inf_onnx_input(s, has_beta ? 4 : 3);
    uint32_t sum = inf_build_add(&s->b, s->inputs[0], s->inputs[1]);
    if (bias != INF_VALUE_NONE)
        sum = inf_build_add(&s->b, sum, bias);
    s->outputs[0] =
        add_row_norm(s, kind, sum, s->inputs[2], beta, inf_onnx_attr_float(s, "epsilon", 1e-12f));
    if (s->output_count > 3)
        s->outputs[3] = sum;
}

// Adds nodes that count the ones in each row of the mask [batch, sequence]. If the mask is
// INF_VALUE_NONE, the result is a zero for each row.
static uint32_t add_mask_index(struct inf_onnx_scope *s, uint32_t mask)
{
    uint32_t rows = inf_build_dim_value(&s->b, s->inputs[0], 0);
    if (mask == INF_VALUE_NONE) {
        struct inf_build_node node = inf_build_describe(
            INF_OP_FILL, rows, inf_build_scalar(&s->b, INF_DTYPE_I32, 0), INF_VALUE_NONE);
        return inf_build_value(&s->b, &node);
    }
    uint32_t ones = inf_build_compare(&s->b, INF_COMPARE_EQUAL, mask,
                                      inf_build_scalar(&s->b, inf_build_dtype(&s->b, mask), 1));
    return inf_build_reduce(&s->b, INF_REDUCE_SUM, inf_build_cast(&s->b, ones, INF_DTYPE_I32),
                            &(struct inf_ints){.count = 1, .values = {1}}, false);
}

// Lowers EmbedLayerNormalization. Inputs: word ids, segment ids, word embeddings, position
// embeddings, segment embeddings, gamma, beta, mask, position ids.
static void lower_embed_norm(struct inf_onnx_scope *s)
{
    uint32_t places = inf_onnx_input(s, 8);
    float epsilon = inf_onnx_attr_float(s, "epsilon", 1e-12f);
    // ONNX Runtime ignores this attribute: output 1 counts the ones of the mask if there is a mask.
    (void)inf_onnx_find_attr(s, "mask_index_type");
    uint32_t words = inf_onnx_needed_input(s, 2), positions = inf_onnx_needed_input(s, 3);
    uint32_t gamma = inf_onnx_needed_input(s, 5), beta = inf_onnx_needed_input(s, 6);
    uint32_t segments = inf_onnx_input(s, 1), table = inf_onnx_input(s, 4);
    if (!inf_build_ok(&s->b))
        return;
    if (places == INF_VALUE_NONE)
        places = inf_onnx_add_range(s, s->inputs[0], 1);
    uint32_t sum = inf_build_add(&s->b, inf_build_gather(&s->b, words, s->inputs[0], 0),
                                 inf_build_gather(&s->b, positions, places, 0));
    if (segments != INF_VALUE_NONE && table != INF_VALUE_NONE)
        sum = inf_build_add(&s->b, sum, inf_build_gather(&s->b, table, segments, 0));
    s->outputs[0] = add_row_norm(s, INF_NORMALIZE_STANDARD, sum, gamma, beta, epsilon);
    if (s->output_count > 1)
        s->outputs[1] = add_mask_index(s, inf_onnx_input(s, 7));
    if (s->output_count > 2)
        s->outputs[2] = sum;
}

// Adds nodes that dequantise x. Its scale is input `index`, its zero point is input `index` + 5.
static uint32_t add_dequantized(struct inf_onnx_scope *s, uint32_t x, uint32_t index)
{
    uint32_t scale = inf_onnx_needed_input(s, index), zero = inf_onnx_needed_input(s, index + 5);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    struct inf_build_node node =
        inf_build_describe(INF_OP_DEQUANTIZE, x, inf_build_reshape(&s->b, scale, NULL, 0),
                           inf_build_reshape(&s->b, zero, NULL, 0));
    return inf_build_value(&s->b, &node);
}

// Adds nodes that gather the rows `ids` of the table in input `index`, and dequantise these rows.
static uint32_t add_embeddings(struct inf_onnx_scope *s, uint32_t ids, uint32_t index)
{
    uint32_t table = inf_onnx_needed_input(s, index);
    return inf_build_ok(&s->b)
               ? add_dequantized(s, inf_build_gather(&s->b, table, ids, 0), index + 6)
               : INF_VALUE_NONE;
}

// Lowers QEmbedLayerNormalization, whose tables stay bytes: only the rows that a run reads become
// floats. Inputs: word ids, segment ids, word embeddings, position embeddings, segment embeddings,
// gamma, beta, mask, and the scales and then the zero points of the five tables.
static void lower_quantized_embed_norm(struct inf_onnx_scope *s)
{
    float epsilon = inf_onnx_attr_float(s, "epsilon", 1e-12f);
    uint32_t segments = inf_onnx_input(s, 1);
    uint32_t gamma = inf_onnx_needed_input(s, 5), beta = inf_onnx_needed_input(s, 6);
    uint32_t places = inf_onnx_add_range(s, s->inputs[0], 1);
    uint32_t sum =
        inf_build_add(&s->b, add_embeddings(s, s->inputs[0], 2), add_embeddings(s, places, 3));
    if (segments != INF_VALUE_NONE)
        sum = inf_build_add(&s->b, sum, add_embeddings(s, segments, 4));
    if (!inf_build_ok(&s->b))
        return;
    s->outputs[0] = add_row_norm(s, INF_NORMALIZE_STANDARD, sum, add_dequantized(s, gamma, 11),
                                 add_dequantized(s, beta, 12), epsilon);
    if (s->output_count > 1)
        s->outputs[1] = add_mask_index(s, inf_onnx_input(s, 7));
}

// Lowers GroupNorm: normalises each group of channels of x [n,h,w,c] ([n,c,h,w] if channels_last is
// 0). If `activation` is not 0, y * sigmoid(y) is applied to the result y.
static void lower_group_norm(struct inf_onnx_scope *s)
{
    bool last = inf_onnx_attr_int(s, "channels_last", 1) != 0;
    int32_t groups = inf_onnx_attr_int(s, "groups", 1);
    int32_t activation = inf_onnx_attr_int(s, "activation", 0);
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]);
    uint32_t x = inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_F32);
    x = last ? x : inf_build_channels_last(&s->b, x);
    int64_t channels = inf_build_known_dim(&s->b, x, 3);
    if (inf_build_ok(&s->b) && (groups < 1 || channels % groups != 0))
        inf_build_fail(&s->b, INF_INVALID, "groups is %d of %lld channels", groups,
                       (long long)channels);
    if (!inf_build_ok(&s->b))
        return;
    uint32_t shape = inf_build_shape(&s->b, x);
    const uint32_t dims[] = {inf_build_slice(&s->b, shape, 0, 0, 3, 1),
                             inf_build_list(&s->b, (int64_t[]){groups, channels / groups}, 2)};
    uint32_t y = inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, 2, 0));
    struct inf_build_node node =
        inf_build_describe(INF_OP_NORMALIZE, y, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.normalize.axes = (struct inf_ints){.count = 3, .values = {1, 2, 4}};
    node.attrs.normalize.epsilon = inf_onnx_attr_float(s, "epsilon", 1e-5f);
    y = inf_build_reshape_to(&s->b, inf_build_value(&s->b, &node), shape);
    y = inf_build_mul(&s->b, y, inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_F32));
    y = inf_build_add(&s->b, y, inf_build_cast(&s->b, s->inputs[2], INF_DTYPE_F32));
    y = activation != 0 ? inf_build_unary(&s->b, INF_UNARY_SILU, y) : y;
    y = last ? y : inf_build_channels_first(&s->b, y);
    s->outputs[0] = inf_build_cast(&s->b, y, dtype);
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::SkipLayerNormalization", lower_skip_norm, 3, 5, 4, INF_NORMALIZE_STANDARD},
    {"com.microsoft::SkipSimplifiedLayerNormalization", lower_skip_norm, 3, 4, 4,
     INF_NORMALIZE_RMS},
    {"com.microsoft::EmbedLayerNormalization", lower_embed_norm, 1, 9, 3, 0},
    {"com.microsoft::QEmbedLayerNormalization", lower_quantized_embed_norm, 1, 18, 2, 0},
    {"com.microsoft::GroupNorm", lower_group_norm, 3, 3, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_norm = {ops, INF_ARRAY_LENGTH(ops)};
