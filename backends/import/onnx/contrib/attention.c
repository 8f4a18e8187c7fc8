// SPDX-License-Identifier: Apache-2.0
// Attention and QAttention, which include the projection of x to queries, keys and values, and
// MultiHeadAttention, whose inputs are projected already. Past keys and values are concatenated in
// front of the current keys and values.
#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/attend.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"

// The version of ai.onnx in which inf_onnx_call_value() lowers operators.
#define OPSET 13

static struct inf_onnx_attention make_attention(struct inf_onnx_scope *s)
{
    return (struct inf_onnx_attention){.q = INF_VALUE_NONE,
                                       .k = INF_VALUE_NONE,
                                       .v = INF_VALUE_NONE,
                                       .scale = inf_onnx_attr_float(s, "scale", 0),
                                       .visible = INF_VALUE_NONE,
                                       .bias = INF_VALUE_NONE,
                                       .sinks = INF_VALUE_NONE};
}

// Adds nodes that concatenate past and current keys and values. Sets the keys and values of
// `attention` to the concatenated ones.
static void join_past(struct inf_onnx_scope *s, struct inf_onnx_attention *attention,
                      uint32_t past_k, uint32_t past_v)
{
    if (past_k == INF_VALUE_NONE || past_v == INF_VALUE_NONE)
        return;
    attention->k = inf_build_concat(&s->b, (uint32_t[]){past_k, attention->k}, 2, 2);
    attention->v = inf_build_concat(&s->b, (uint32_t[]){past_v, attention->v}, 2, 2);
}

// Adds nodes that compute the masks and the attention. Returns the result.
static uint32_t finish_attention(struct inf_onnx_scope *s, struct inf_onnx_attention *attention,
                                 uint32_t mask)
{
    attention->hidden = (double)inf_onnx_attr_float(s, "mask_filter_value", -10000.0f);
    if (mask != INF_VALUE_NONE)
        attention->visible = inf_onnx_key_mask(s, attention, mask);
    if (inf_onnx_attr_int(s, "unidirectional", 0) != 0) {
        uint32_t causal = inf_onnx_causal_mask(s, attention);
        attention->visible =
            attention->visible == INF_VALUE_NONE
                ? causal
                : inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, attention->visible, causal);
    }
    return inf_onnx_attend(s, attention);
}

// Adds nodes that slice the projection [batch, sequence, channels of q, k and v] into queries, keys
// and values and split each into heads.
static void split_projection(struct inf_onnx_scope *s, struct inf_onnx_attention *attention,
                             uint32_t projection)
{
    int64_t width = inf_build_known_dim(&s->b, projection, 2), begin = 0;
    int32_t heads = inf_onnx_attr_int(s, "num_heads", 0);
    struct inf_build_ints sizes;
    uint32_t parts[3];
    if (!inf_onnx_attr_ints(s, "qkv_hidden_sizes", &sizes))
        sizes = (struct inf_build_ints){3, {width / 3, width / 3, width / 3}};
    if (inf_build_ok(&s->b) &&
        (sizes.count != 3 || sizes.values[0] + sizes.values[1] + sizes.values[2] != width))
        inf_build_fail(&s->b, INF_INVALID, "qkv_hidden_sizes do not add up to %lld channels",
                       (long long)width);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < 3; i++) {
        parts[i] = inf_build_slice(&s->b, projection, 2, begin, begin + sizes.values[i], 1);
        parts[i] = inf_onnx_split_heads(s, parts[i], heads);
        begin += sizes.values[i];
    }
    if (inf_build_ok(&s->b))
        attention->q = parts[0], attention->k = parts[1], attention->v = parts[2];
}

// Adds nodes that join keys and values, and past ones in front of them: [2, batch, heads, all keys,
// size]. The past comes first in one concatenation, so that inf_history_find() knows this form.
// Sets the keys and values of `attention` to the joined ones.
static uint32_t join_packed_past(struct inf_onnx_scope *s, struct inf_onnx_attention *attention,
                                 uint32_t past)
{
    const uint32_t now[] = {inf_build_expand_dims(&s->b, attention->k, (int64_t[]){0}, 1),
                            inf_build_expand_dims(&s->b, attention->v, (int64_t[]){0}, 1)};
    uint32_t present = inf_build_concat(&s->b, now, 2, 0);
    if (past == INF_VALUE_NONE)
        return present;
    present = inf_build_concat(&s->b, (uint32_t[]){past, present}, 2, 3);
    uint32_t *const parts[] = {&attention->k, &attention->v};
    for (int64_t i = 0; i < 2; i++)
        *parts[i] = inf_build_squeeze(&s->b, inf_build_slice(&s->b, present, 0, i, i + 1, 1),
                                      (int64_t[]){0}, 1);
    return present;
}

// Lowers the part that Attention and QAttention share. `past` has past keys and values, [2, batch,
// heads, past keys, size]. Output 1 is [2, batch, heads, all keys, size].
static void lower_projected(struct inf_onnx_scope *s, uint32_t projection, uint32_t mask,
                            uint32_t past, uint32_t bias)
{
    struct inf_onnx_attention attention = make_attention(s);
    if (inf_onnx_attr_int(s, "do_rotary", 0) != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "do_rotary is set");
    (void)inf_onnx_find_attr(s, "rotary_embedding_dim");
    attention.bias = bias;
    split_projection(s, &attention, projection);
    if (!inf_build_ok(&s->b))
        return;
    bool wants_present = inf_onnx_wants_output(s, 1);
    uint32_t present = INF_VALUE_NONE;
    if (wants_present || past != INF_VALUE_NONE)
        present = join_packed_past(s, &attention, past);
    s->outputs[0] = finish_attention(s, &attention, mask);
    if (wants_present)
        s->outputs[1] = present;
}

// Lowers Attention. Inputs: x, weights, bias, mask, past, attention bias.
static void lower_attention(struct inf_onnx_scope *s)
{
    uint32_t x = inf_build_matmul(&s->b, s->inputs[0], s->inputs[1]), bias = inf_onnx_input(s, 2);
    if (bias != INF_VALUE_NONE)
        x = inf_build_add(&s->b, x, bias);
    lower_projected(s, x, inf_onnx_input(s, 3), inf_onnx_input(s, 4), inf_onnx_input(s, 5));
}

// Lowers QAttention. Inputs: x, weights, bias, scale of x, scale of weights, mask, zero point of x,
// zero point of weights, past.
static void lower_qattention(struct inf_onnx_scope *s)
{
    const uint32_t operands[] = {s->inputs[0], s->inputs[1], inf_onnx_input(s, 6),
                                 inf_onnx_input(s, 7)};
    uint32_t x = inf_onnx_call_value(s, "MatMulInteger", OPSET, operands, 4);
    uint32_t scale = inf_build_mul(&s->b, s->inputs[3], s->inputs[4]);
    x = inf_build_mul(&s->b, inf_build_cast(&s->b, x, inf_build_dtype(&s->b, scale)), scale);
    x = inf_build_add(&s->b, x, s->inputs[2]);
    lower_projected(s, x, inf_onnx_input(s, 5), inf_onnx_input(s, 8), INF_VALUE_NONE);
}

// Adds nodes that convert x to [batch, heads, sequence, size]. x of rank 4 has that form already. x
// of rank 3 is [batch, sequence, heads * size]. x of rank 5 is [batch, sequence, heads, parts,
// size], of which part number `part` is taken.
static uint32_t add_heads(struct inf_onnx_scope *s, uint32_t x, int32_t heads, int64_t part)
{
    int32_t rank = inf_build_rank(&s->b, x);
    if (rank == 4)
        return x;
    if (rank != 5)
        return inf_onnx_split_heads(s, x, heads);
    x = inf_build_slice(&s->b, x, 3, part, part + 1, 1);
    x = inf_build_squeeze(&s->b, x, (int64_t[]){3}, 1);
    return inf_build_transpose(&s->b, x, (int64_t[]){0, 2, 1, 3}, 4);
}

// Adds nodes that compute x plus elements begin..end-1 of the bias. x is split into heads.
static uint32_t add_bias_part(struct inf_onnx_scope *s, uint32_t x, uint32_t bias, int32_t heads,
                              int64_t begin, int64_t end)
{
    uint32_t part = inf_build_slice(&s->b, bias, 0, begin, end, 1);
    part = inf_build_reshape(&s->b, part, (int64_t[]){heads, 1, (end - begin) / heads}, 3);
    return inf_build_add(&s->b, x, part);
}

// Adds nodes that add a bias [channels of q, k and v] to queries, keys and values. If `projected`,
// keys and values include their bias already, so it is added to the queries only.
static void add_projection_bias(struct inf_onnx_scope *s, struct inf_onnx_attention *attention,
                                uint32_t bias, int32_t heads, bool projected)
{
    int64_t size = inf_build_known_dim(&s->b, attention->q, 3) * heads;
    int64_t width = inf_build_known_dim(&s->b, bias, 0);
    if (inf_build_ok(&s->b) && (width <= 2 * size || (width - 2 * size) % heads != 0))
        inf_build_fail(&s->b, INF_INVALID, "the bias has %lld elements for heads of %lld",
                       (long long)width, (long long)size);
    if (!inf_build_ok(&s->b))
        return;
    attention->q = add_bias_part(s, attention->q, bias, heads, 0, size);
    if (projected)
        return;
    attention->k = add_bias_part(s, attention->k, bias, heads, size, 2 * size);
    attention->v = add_bias_part(s, attention->v, bias, heads, 2 * size, width);
}

// Lowers MultiHeadAttention. Inputs: query, key, value, bias, mask of keys, attention bias, past
// key, past value. If value is absent, the tensor `key` holds keys and values. If key is absent
// too, the tensor `query` holds queries, keys and values.
static void lower_multi_head(struct inf_onnx_scope *s)
{
    struct inf_onnx_attention attention = make_attention(s);
    uint32_t past_k = inf_onnx_input(s, 6), past_v = inf_onnx_input(s, 7);
    int32_t heads = inf_onnx_attr_int(s, "num_heads", 0);
    uint32_t q = s->inputs[0], k = inf_onnx_input(s, 1), v = inf_onnx_input(s, 2);
    if (k == INF_VALUE_NONE && inf_build_rank(&s->b, q) != 5)
        inf_build_fail(&s->b, INF_INVALID, "lacks the key, and the query has not 5 axes");
    if (heads < 1)
        inf_build_fail(&s->b, INF_INVALID, "num_heads is %d", heads);
    if (!inf_build_ok(&s->b))
        return;
    bool projected = k != INF_VALUE_NONE && inf_build_rank(&s->b, k) == 4;
    attention.q = add_heads(s, q, heads, 0);
    attention.k = k != INF_VALUE_NONE ? add_heads(s, k, heads, 0) : add_heads(s, q, heads, 1);
    if (v != INF_VALUE_NONE)
        attention.v = add_heads(s, v, heads, 0);
    else
        attention.v = k != INF_VALUE_NONE ? add_heads(s, k, heads, 1) : add_heads(s, q, heads, 2);
    if (inf_onnx_input(s, 3) != INF_VALUE_NONE)
        add_projection_bias(s, &attention, s->inputs[3], heads, projected);
    if (!inf_build_ok(&s->b))
        return;
    attention.bias = inf_onnx_input(s, 5); // [batch or 1, heads or 1, sequence, keys]
    // If output 1 is absent, ONNX Runtime ignores the past, and of the attention bias it reads the
    // first columns, one for each current key.
    if (!inf_onnx_wants_output(s, 1) && past_k != INF_VALUE_NONE) {
        past_k = past_v = INF_VALUE_NONE;
        if (attention.bias != INF_VALUE_NONE && inf_build_dim(&s->b, attention.k, 2) > 0)
            attention.bias = inf_build_slice(&s->b, attention.bias, 3, 0,
                                             inf_build_dim(&s->b, attention.k, 2), 1);
    }
    join_past(s, &attention, past_k, past_v);
    s->outputs[0] = finish_attention(s, &attention, inf_onnx_input(s, 4));
    if (s->output_count > 1)
        s->outputs[1] = attention.k;
    if (s->output_count > 2)
        s->outputs[2] = attention.v;
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::Attention", lower_attention, 2, 6, 2, 0},
    {"com.microsoft::QAttention", lower_qattention, 5, 9, 2, 0},
    {"com.microsoft::MultiHeadAttention", lower_multi_head, 1, 8, 3, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_attention = {ops, INF_ARRAY_LENGTH(ops)};
