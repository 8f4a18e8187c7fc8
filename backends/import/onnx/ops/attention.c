// SPDX-License-Identifier: Apache-2.0
// Attention and RotaryEmbedding, built from matrix products and a softmax.
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

// The operands, each [batch, heads, sequence, size].
struct attention {
    uint32_t q, k, v;
    int32_t q_heads, kv_heads; // 0: use the number of heads of the operands
    bool is_flat;              // true: the operands were given as [batch, sequence, heads * size]
    enum inf_dtype dtype;
};

// Converts [batch, sequence, heads * size] to [batch, heads, sequence, size].
static uint32_t split_heads(struct inf_onnx_scope *s, uint32_t x, int32_t heads)
{
    int64_t size = inf_build_known_dim(&s->b, x, 2);
    if (heads < 1 || size % heads != 0) {
        inf_build_fail(&s->b, INF_INVALID, "%lld channels do not divide into %d heads",
                       (long long)size, heads);
        return INF_VALUE_NONE;
    }
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0), inf_build_dim_value(&s->b, x, 1),
                             inf_build_list(&s->b, (int64_t[]){heads, size / heads}, 2)};
    x = inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, 3, 0));
    return inf_build_transpose(&s->b, x, (int64_t[]){0, 2, 1, 3}, 4);
}

static uint32_t join_heads(struct inf_onnx_scope *s, uint32_t x)
{
    x = inf_build_transpose(&s->b, x, (int64_t[]){0, 2, 1, 3}, 4);
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0), inf_build_dim_value(&s->b, x, 1),
                             inf_build_list(&s->b, (int64_t[]){-1}, 1)};
    return inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, 3, 0));
}

// Repeats each head of x `times` times; the copies of a head are adjacent.
static uint32_t repeat_heads(struct inf_onnx_scope *s, uint32_t x, int64_t times)
{
    int64_t heads = inf_build_known_dim(&s->b, x, 1);
    int32_t *index;
    if (times == 1)
        return x;
    uint32_t indices = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(heads * times), &index);
    for (int64_t i = 0; index != NULL && i < heads * times; i++)
        index[i] = (int32_t)(i / times);
    return inf_build_gather(&s->b, x, indices, 1);
}

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
    attention->q = split_heads(s, attention->q, attention->q_heads);
    attention->k = split_heads(s, attention->k, attention->kv_heads);
    attention->v = split_heads(s, attention->v, attention->kv_heads);
}

// Adds a tensor that is minus infinity where `mask` is false and 0 elsewhere.
static uint32_t add_mask_bias(struct inf_onnx_scope *s, uint32_t mask, enum inf_dtype dtype)
{
    return inf_build_select(&s->b, mask, inf_build_scalar(&s->b, dtype, 0),
                            inf_build_scalar(&s->b, dtype, -INFINITY));
}

// Adds the causal bias, with which a query sees keys up to its own position. `past` keys precede
// the first query. If batches have different numbers of keys, the queries are the last positions of
// each batch.
static uint32_t add_causal_bias(struct inf_onnx_scope *s, const struct attention *attention,
                                int64_t past)
{
    int64_t rows = inf_build_known_dim(&s->b, attention->q, 2);
    int64_t columns = inf_build_known_dim(&s->b, attention->k, 2);
    uint32_t lengths = inf_onnx_input(s, 6);
    uint32_t place = inf_build_iota(&s->b, INF_DTYPE_I64, rows);
    place = inf_build_expand_dims(&s->b, place, (int64_t[]){1}, 1);
    if (lengths != INF_VALUE_NONE) {
        lengths = inf_build_cast(&s->b, lengths, INF_DTYPE_I64);
        lengths = inf_build_expand_dims(&s->b, lengths, (int64_t[]){1, 2, 3}, 3);
        lengths = inf_build_binary_number(&s->b, INF_BINARY_SUB, lengths, (double)rows);
        place = inf_build_add(&s->b, place, lengths);
    } else {
        place = inf_build_binary_number(&s->b, INF_BINARY_ADD, place, (double)past);
    }
    uint32_t key = inf_build_iota(&s->b, INF_DTYPE_I64, columns);
    return add_mask_bias(s, inf_build_compare(&s->b, INF_COMPARE_LESS_EQUAL, key, place),
                         attention->dtype);
}

// Adds the bias that hides the keys after the first valid ones, whose number differs between the
// batches.
static uint32_t add_length_bias(struct inf_onnx_scope *s, const struct attention *attention,
                                uint32_t lengths)
{
    int64_t columns = inf_build_known_dim(&s->b, attention->k, 2);
    uint32_t index = inf_build_iota(&s->b, inf_build_dtype(&s->b, lengths), columns);
    lengths = inf_build_expand_dims(&s->b, lengths, (int64_t[]){1, 2, 3}, 3);
    return add_mask_bias(s, inf_build_compare(&s->b, INF_COMPARE_LESS, index, lengths),
                         attention->dtype);
}

// Adds the bias of the mask input. A mask that covers only some of the keys hides the other keys.
static uint32_t add_given_bias(struct inf_onnx_scope *s, const struct attention *attention,
                               uint32_t mask)
{
    int64_t missing =
        inf_build_known_dim(&s->b, attention->k, 2) - inf_build_known_dim(&s->b, mask, -1);
    int32_t rank = inf_build_rank(&s->b, mask);
    int64_t pads[2 * INF_LIMIT_RANK] = {0};
    if (inf_build_dtype(&s->b, mask) == INF_DTYPE_BOOL)
        mask = add_mask_bias(s, mask, attention->dtype);
    if (missing > 0 && inf_build_known_dim(&s->b, mask, -1) != 1) {
        pads[2 * rank - 1] = missing;
        mask = inf_build_pad(&s->b, mask, pads, rank, INF_PAD_CONSTANT,
                             inf_build_scalar(&s->b, attention->dtype, -INFINITY));
    }
    return mask;
}

static uint32_t add_softcap(struct inf_onnx_scope *s, uint32_t x, float cap)
{
    if (cap == 0)
        return x;
    x = inf_build_binary_number(&s->b, INF_BINARY_DIV, x, (double)cap);
    return inf_build_binary_number(&s->b, INF_BINARY_MUL, inf_build_unary(&s->b, INF_UNARY_TANH, x),
                                   (double)cap);
}

// Adds all biases that hide keys to the scores.
static uint32_t add_biases(struct inf_onnx_scope *s, const struct attention *attention,
                           uint32_t scores, int64_t past)
{
    if (inf_onnx_input(s, 3) != INF_VALUE_NONE)
        scores = inf_build_add(&s->b, scores, add_given_bias(s, attention, s->inputs[3]));
    if (inf_onnx_attr_int(s, "is_causal", 0) != 0)
        scores = inf_build_add(&s->b, scores, add_causal_bias(s, attention, past));
    if (inf_onnx_input(s, 6) != INF_VALUE_NONE)
        scores = inf_build_add(&s->b, scores, add_length_bias(s, attention, s->inputs[6]));
    return scores;
}

// Prepends past keys and values to the current ones. Returns the number of past keys.
static int64_t join_past(struct inf_onnx_scope *s, struct attention *attention)
{
    uint32_t past_k = inf_onnx_input(s, 4), past_v = inf_onnx_input(s, 5);
    int64_t past = 0;
    if (past_k != INF_VALUE_NONE && past_v != INF_VALUE_NONE) {
        past = inf_build_known_dim(&s->b, past_k, 2);
        attention->k = inf_build_concat(&s->b, (uint32_t[]){past_k, attention->k}, 2, 2);
        attention->v = inf_build_concat(&s->b, (uint32_t[]){past_v, attention->v}, 2, 2);
    }
    if (s->output_count > 1)
        s->outputs[1] = attention->k;
    if (s->output_count > 2)
        s->outputs[2] = attention->v;
    return past;
}

// Adds the softmax along the keys. A query whose keys are all hidden gets 0.
static uint32_t add_softmax(struct inf_onnx_scope *s, uint32_t scores)
{
    const struct inf_ints keys = {.count = 1, .values = {3}};
    enum inf_dtype dtype = inf_build_dtype(&s->b, scores);
    uint32_t zero = inf_build_scalar(&s->b, dtype, 0);
    uint32_t best = inf_build_reduce(&s->b, INF_REDUCE_MAX, scores, &keys, true);
    uint32_t hidden = inf_build_compare(&s->b, INF_COMPARE_EQUAL, best,
                                        inf_build_scalar(&s->b, dtype, -INFINITY));
    uint32_t weights =
        inf_build_softmax(&s->b, inf_build_select(&s->b, hidden, zero, scores), -1, false);
    return inf_build_select(&s->b, hidden, zero, weights);
}

static uint32_t multiply_keys(struct inf_onnx_scope *s, uint32_t q, uint32_t k)
{
    struct inf_build_node node = inf_build_describe(INF_OP_MATMUL, q, k, INF_VALUE_NONE);
    node.attrs.matmul.transpose_b = true;
    return inf_build_value(&s->b, &node);
}

static void lower_attention(struct inf_onnx_scope *s)
{
    struct attention attention;
    read_operands(s, &attention);
    int64_t past = inf_build_ok(&s->b) ? join_past(s, &attention) : 0;
    if (!inf_build_ok(&s->b) || inf_build_rank(&s->b, attention.q) != 4 ||
        inf_build_rank(&s->b, attention.k) != 4) {
        inf_build_fail(&s->b, INF_INVALID, "operands are not of rank 3 or 4");
        return;
    }
    int64_t heads = inf_build_known_dim(&s->b, attention.q, 1),
            own = inf_build_known_dim(&s->b, attention.k, 1);
    if (own < 1 || heads % own != 0)
        inf_build_fail(&s->b, INF_INVALID, "%lld heads look at %lld", (long long)heads,
                       (long long)own);
    int64_t times = inf_build_ok(&s->b) ? heads / own : 1;
    float scale = inf_onnx_attr_float(s, "scale", 0), cap = inf_onnx_attr_float(s, "softcap", 0);
    if (scale == 0)
        scale = (float)(1 / sqrt((double)INF_MAX(inf_build_known_dim(&s->b, attention.q, 3), 1)));
    (void)inf_onnx_find_attr(s,
                             // Ignore this attribute, because the softmax is never less precise
                             // than its operands.
                             "softmax_precision");
    int32_t mode = inf_onnx_attr_int(s, "qk_matmul_output_mode", 0);
    // Multiply both operands by the square root of the scale, so that rounding is the same as in
    // ONNX's reference implementation.
    uint32_t q = inf_build_binary_number(&s->b, INF_BINARY_MUL, attention.q, sqrt((double)scale));
    uint32_t k = inf_build_binary_number(&s->b, INF_BINARY_MUL, attention.k, sqrt((double)scale));
    uint32_t stages[4];
    stages[0] = multiply_keys(s, q, repeat_heads(s, k, times));
    stages[1] = add_softcap(s, stages[0], cap);
    stages[2] = add_biases(s, &attention, stages[1], past);
    stages[3] = add_softmax(s, stages[2]);
    uint32_t y = inf_build_matmul(&s->b, stages[3], repeat_heads(s, attention.v, times));
    s->outputs[0] = attention.is_flat ? join_heads(s, y) : y;
    if (mode < 0 || mode > 3)
        inf_build_fail(&s->b, INF_INVALID, "qk_matmul_output_mode is %d", mode);
    else if (s->output_count > 3)
        s->outputs[3] = stages[mode];
}

// Rotates pairs of channels by an angle that depends on the position.
static uint32_t rotate_pairs(struct inf_onnx_scope *s, uint32_t x, uint32_t cosine, uint32_t sine,
                             int64_t size, bool interleaved)
{
    uint32_t halves[2];
    for (int32_t i = 0; i < 2; i++)
        halves[i] = interleaved ? inf_build_slice(&s->b, x, 3, i, size, 2)
                                : inf_build_slice(&s->b, x, 3, i * size / 2, (i + 1) * size / 2, 1);
    uint32_t real = inf_build_sub(&s->b, inf_build_mul(&s->b, cosine, halves[0]),
                                  inf_build_mul(&s->b, sine, halves[1]));
    uint32_t other = inf_build_add(&s->b, inf_build_mul(&s->b, sine, halves[0]),
                                   inf_build_mul(&s->b, cosine, halves[1]));
    if (!interleaved)
        return inf_build_concat(&s->b, (uint32_t[]){real, other}, 2, 3);
    real = inf_build_expand_dims(&s->b, real, (int64_t[]){4}, 1);
    other = inf_build_expand_dims(&s->b, other, (int64_t[]){4}, 1);
    uint32_t pairs = inf_build_concat(&s->b, (uint32_t[]){real, other}, 2, 4);
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0), inf_build_dim_value(&s->b, x, 1),
                             inf_build_dim_value(&s->b, x, 2), inf_build_list(&s->b, &size, 1)};
    return inf_build_reshape_to(&s->b, pairs, inf_build_concat(&s->b, dims, 4, 0));
}

// Lowers RotaryEmbedding. x is [batch, heads, sequence, size] (or flat). Caches are [positions,
// size / 2] with position_ids [batch, sequence], or [batch, sequence, size / 2].
static void lower_rotary(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], cosine = s->inputs[1], sine = s->inputs[2],
             ids = inf_onnx_input(s, 3);
    bool is_flat = inf_build_rank(&s->b, x) == 3;
    bool interleaved = inf_onnx_attr_int(s, "interleaved", 0) != 0;
    int32_t heads = inf_onnx_attr_int(s, "num_heads", 0);
    if (is_flat)
        x = split_heads(s, x, heads);
    int64_t whole = inf_build_ok(&s->b) ? inf_build_known_dim(&s->b, x, 3) : 0;
    int64_t size = inf_onnx_attr_int(s, "rotary_embedding_dim", 0);
    size = size == 0 ? whole : size;
    if (inf_build_ok(&s->b) && (size < 2 || size % 2 != 0 || size > whole))
        inf_build_fail(&s->b, INF_INVALID, "rotary_embedding_dim is %lld of %lld", (long long)size,
                       (long long)whole);
    if (!inf_build_ok(&s->b))
        return;
    if (ids != INF_VALUE_NONE) {
        cosine = inf_build_gather(&s->b, cosine, ids, 0);
        sine = inf_build_gather(&s->b, sine, ids, 0);
    }
    cosine = inf_build_expand_dims(&s->b, cosine, (int64_t[]){1}, 1);
    sine = inf_build_expand_dims(&s->b, sine, (int64_t[]){1}, 1);
    uint32_t turned = size == whole ? x : inf_build_slice(&s->b, x, 3, 0, size, 1);
    turned = rotate_pairs(s, turned, cosine, sine, size, interleaved);
    if (size != whole)
        turned = inf_build_concat(
            &s->b, (uint32_t[]){turned, inf_build_slice(&s->b, x, 3, size, whole, 1)}, 2, 3);
    s->outputs[0] = is_flat ? join_heads(s, turned) : turned;
}

static const struct inf_onnx_op ops[] = {
    {"Attention", lower_attention, 3, 7, 4, 0},
    {"RotaryEmbedding", lower_rotary, 3, 4, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_attention = {ops, INF_ARRAY_LENGTH(ops)};
