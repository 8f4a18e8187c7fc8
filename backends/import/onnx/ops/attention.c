// SPDX-License-Identifier: Apache-2.0
// Attention and RotaryEmbedding, built from matrix products and a softmax.
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"

// The operands, each [batch, heads, sequence, size].
struct attention {
    uint32_t q, k, v;
    int32_t q_heads, kv_heads; // 0: use the number of heads of the operands
    bool is_flat;              // true: the operands were given as [batch, sequence, heads * size]
    enum inf_dtype dtype;
};

static void read_operands(struct inf_onnx_scope *s, struct attention *attention)
{
    *attention = (struct attention){.q = s->inputs[0],
                                    .k = s->inputs[1],
                                    .v = s->inputs[2],
                                    .q_heads = inf_onnx_attr_int(s, "q_num_heads", 0),
                                    .kv_heads = inf_onnx_attr_int(s, "kv_num_heads", 0),
                                    .is_flat = inf_build_rank(&s->b, s->inputs[0]) == 3,
                                    .dtype = inf_build_dtype(&s->b, s->inputs[0])};
    if (!inf_build_ok(&s->b) || !attention->is_flat)
        return;
    attention->q = inf_onnx_split_heads(s, attention->q, attention->q_heads);
    attention->k = inf_onnx_split_heads(s, attention->k, attention->kv_heads);
    attention->v = inf_onnx_split_heads(s, attention->v, attention->kv_heads);
}

// Adds nodes that compute the causal bias, with which a query sees keys up to its own position. The
// keys of `past` (INF_VALUE_NONE: none) precede the first query. If input 6 gives the number of
// keys of each batch item, the queries are the last positions of the item instead.
static uint32_t add_causal_bias(struct inf_onnx_scope *s, const struct attention *attention,
                                uint32_t past)
{
    uint32_t lengths = inf_onnx_input(s, 6);
    uint32_t place = inf_onnx_add_range(s, attention->q, 2);
    place = inf_build_expand_dims(&s->b, place, (int64_t[]){1}, 1);
    if (lengths != INF_VALUE_NONE) {
        lengths = inf_build_cast(&s->b, lengths, INF_DTYPE_I32);
        lengths = inf_build_expand_dims(&s->b, lengths, (int64_t[]){1, 2, 3}, 3);
        lengths = inf_build_sub(&s->b, lengths, inf_build_dim_value(&s->b, attention->q, 2));
        place = inf_build_add(&s->b, place, lengths);
    } else if (past != INF_VALUE_NONE) {
        place = inf_build_add(&s->b, place, inf_build_dim_value(&s->b, past, 2));
    }
    uint32_t key = inf_onnx_add_range(s, attention->k, 2);
    return inf_onnx_mask_bias(s, inf_build_compare(&s->b, INF_COMPARE_LESS_EQUAL, key, place),
                              attention->dtype, -INFINITY);
}

// Adds the bias that hides the padding after the keys: in each batch item only the first keys are
// valid, and their number differs between batch items.
static uint32_t add_length_bias(struct inf_onnx_scope *s, const struct attention *attention,
                                uint32_t lengths)
{
    uint32_t index = inf_onnx_add_range(s, attention->k, 2);
    lengths = inf_build_cast(&s->b, lengths, INF_DTYPE_I32);
    lengths = inf_build_expand_dims(&s->b, lengths, (int64_t[]){1, 2, 3}, 3);
    return inf_onnx_mask_bias(s, inf_build_compare(&s->b, INF_COMPARE_LESS, index, lengths),
                              attention->dtype, -INFINITY);
}

// Adds nodes that compute the bias which the mask input adds to the scores. If the last axis of the
// mask is shorter than the number of keys, and not 1, the keys behind it are hidden. If one of
// these sizes is unknown at import, the mask is assumed to cover all keys.
static uint32_t add_given_bias(struct inf_onnx_scope *s, const struct attention *attention,
                               uint32_t mask)
{
    int64_t keys = inf_build_dim(&s->b, attention->k, 2), given = inf_build_dim(&s->b, mask, -1);
    int64_t missing = keys > 0 && given > 1 ? keys - given : 0;
    int32_t rank = inf_build_rank(&s->b, mask);
    int64_t pads[2 * INF_LIMIT_RANK] = {0};
    if (inf_build_dtype(&s->b, mask) == INF_DTYPE_BOOL)
        mask = inf_onnx_mask_bias(s, mask, attention->dtype, -INFINITY);
    if (missing > 0) {
        pads[2 * rank - 1] = missing;
        mask = inf_build_pad(&s->b, mask, pads, rank, INF_PAD_CONSTANT,
                             inf_build_scalar(&s->b, attention->dtype, -INFINITY));
    }
    return mask;
}

// Adds all biases that hide keys to the scores.
static uint32_t add_biases(struct inf_onnx_scope *s, const struct attention *attention,
                           uint32_t scores, uint32_t past)
{
    if (inf_onnx_input(s, 3) != INF_VALUE_NONE)
        scores = inf_build_add(&s->b, scores, add_given_bias(s, attention, s->inputs[3]));
    if (inf_onnx_attr_int(s, "is_causal", 0) != 0)
        scores = inf_build_add(&s->b, scores, add_causal_bias(s, attention, past));
    if (inf_onnx_input(s, 6) != INF_VALUE_NONE)
        scores = inf_build_add(&s->b, scores, add_length_bias(s, attention, s->inputs[6]));
    return scores;
}

// Adds nodes that concatenate past keys and values with the current ones, and stores the results in
// `attention` and in outputs 1 and 2. Returns the past keys; INF_VALUE_NONE if there are none.
static uint32_t join_past(struct inf_onnx_scope *s, struct attention *attention)
{
    uint32_t past_k = inf_onnx_input(s, 4), past_v = inf_onnx_input(s, 5);
    bool joins = past_k != INF_VALUE_NONE && past_v != INF_VALUE_NONE;
    if (joins) {
        attention->k = inf_build_concat(&s->b, (uint32_t[]){past_k, attention->k}, 2, 2);
        attention->v = inf_build_concat(&s->b, (uint32_t[]){past_v, attention->v}, 2, 2);
    }
    if (s->output_count > 1)
        s->outputs[1] = attention->k;
    if (s->output_count > 2)
        s->outputs[2] = attention->v;
    return joins ? past_k : INF_VALUE_NONE;
}

// Adds the square root of the scale of the scores, a scalar. The scale 0 means 1 / sqrt(size of a
// head).
static uint32_t add_scale_root(struct inf_onnx_scope *s, const struct attention *attention,
                               float scale)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, attention->q);
    int64_t size = inf_build_dim(&s->b, attention->q, 3);
    if (scale == 0 && size == INF_DIM_UNKNOWN) {
        uint32_t root = inf_build_dim_value(&s->b, attention->q, 3);
        root = inf_build_cast(&s->b, inf_build_reshape(&s->b, root, NULL, 0), INF_DTYPE_F64);
        root = inf_build_binary_number(&s->b, INF_BINARY_POW, root, -0.25);
        return inf_build_cast(&s->b, root, dtype);
    }
    if (scale == 0)
        scale = (float)(1 / sqrt((double)INF_MAX(size, 1)));
    return inf_build_scalar(&s->b, dtype, sqrt((double)scale));
}

static void lower_attention(struct inf_onnx_scope *s)
{
    struct attention attention;
    read_operands(s, &attention);
    uint32_t past = inf_build_ok(&s->b) ? join_past(s, &attention) : INF_VALUE_NONE;
    if (!inf_build_ok(&s->b) || inf_build_rank(&s->b, attention.q) != 4 ||
        inf_build_rank(&s->b, attention.k) != 4) {
        inf_build_fail(&s->b, INF_INVALID, "operands are not of rank 3 or 4");
        return;
    }
    float scale = inf_onnx_attr_float(s, "scale", 0), cap = inf_onnx_attr_float(s, "softcap", 0);
    (void)inf_onnx_find_attr(s,
                             // Ignore this attribute, because the softmax is never less precise
                             // than its operands.
                             "softmax_precision");
    int32_t mode = inf_onnx_attr_int(s, "qk_matmul_output_mode", 0);
    // Multiply both operands by the square root of the scale, so that rounding is the same as in
    // ONNX's reference implementation.
    uint32_t root = add_scale_root(s, &attention, scale);
    uint32_t q = inf_build_mul(&s->b, attention.q, root);
    uint32_t k = inf_build_mul(&s->b, attention.k, root);
    uint32_t stages[4];
    stages[0] = inf_onnx_multiply_keys(s, q, inf_onnx_repeat_heads(s, k, q));
    stages[1] = inf_onnx_softcap(s, stages[0], cap);
    stages[2] = add_biases(s, &attention, stages[1], past);
    stages[3] = inf_onnx_softmax(s, stages[2]);
    uint32_t y = inf_build_matmul(&s->b, stages[3], inf_onnx_repeat_heads(s, attention.v, q));
    s->outputs[0] = attention.is_flat ? inf_onnx_join_heads(s, y) : y;
    if (mode < 0 || mode > 3)
        inf_build_fail(&s->b, INF_INVALID, "qk_matmul_output_mode is %d", mode);
    else if (s->output_count > 3)
        s->outputs[3] = stages[mode];
}

// Lowers RotaryEmbedding. x is [batch, heads, sequence, size] (or flat). The caches of cosines and
// sines are [positions, size / 2] with position_ids [batch, sequence], or [batch, sequence, size /
// 2].
static void lower_rotary(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], cosine = s->inputs[1], sine = s->inputs[2],
             ids = inf_onnx_input(s, 3);
    bool is_flat = inf_build_rank(&s->b, x) == 3;
    const struct inf_onnx_rotation rotation = {
        .cosine = cosine,
        .sine = sine,
        .ids = ids,
        .size = inf_onnx_attr_int(s, "rotary_embedding_dim", 0),
        .interleaved = inf_onnx_attr_int(s, "interleaved", 0) != 0};
    int32_t heads = inf_onnx_attr_int(s, "num_heads", 0);
    if (is_flat)
        x = inf_onnx_split_heads(s, x, heads);
    x = inf_onnx_rotate(s, x, &rotation);
    s->outputs[0] = is_flat ? inf_onnx_join_heads(s, x) : x;
}

static const struct inf_onnx_op ops[] = {
    {"Attention", lower_attention, 3, 7, 4, 0},
    {"RotaryEmbedding", lower_rotary, 3, 4, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_attention = {ops, INF_ARRAY_LENGTH(ops)};
