// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention and RotaryEmbedding.
//
// GroupQueryAttention reads past keys and values from a cache [batch, heads, capacity, size]. A row
// may use less than the capacity, and the rows of a batch may have different numbers of keys:
//
//   cache of row b    k0 k1 k2 .. ..     3 keys, capacity 5
//   new keys          n0 n1
//   present           k0 k1 k2 n0 n1     position t is k[t] if t < 3, n[t - 3] if t < 5, else 0
//
// The output `present` is the cache with zeros behind it, to which the new keys are written; what
// is behind them becomes zeros. It has as many positions as the larger of the capacity and
// total_sequence_length, which is an input. So its size is a value of the graph, which most models
// compute from shapes alone.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/attend.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"

// Positions in the sequence of keys, as i32 values of the graph: where the past of each batch row
// ends, where its new queries are, and the list of all positions of keys.
struct positions {
    uint32_t past;    // [batch, 1]: the number of keys in the cache
    uint32_t queries; // [batch, sequence]: the position of each query
    uint32_t keys;    // [keys]: 0, 1, ... up to the last position of `present`
};

static uint32_t add_i32_scalar(struct inf_onnx_scope *s, uint32_t x)
{
    x = inf_build_cast(&s->b, x, INF_DTYPE_I32);
    return inf_build_reshape(&s->b, x, NULL, 0);
}

// Adds nodes that compute the positions. If the number of queries is total_sequence_length, the
// cache is empty, and query i has position i even in a row that ends with padding. Otherwise the
// queries are the last positions of each row.
static struct positions add_positions(struct inf_onnx_scope *s, uint32_t q, uint32_t past)
{
    struct positions positions;
    uint32_t lengths = inf_build_cast(&s->b, s->inputs[5], INF_DTYPE_I32);
    uint32_t total = add_i32_scalar(s, s->inputs[6]);
    uint32_t rows = add_i32_scalar(s, inf_build_dim_value(&s->b, q, 2));
    uint32_t zero = inf_build_scalar(&s->b, INF_DTYPE_I32, 0);
    uint32_t one = inf_build_scalar(&s->b, INF_DTYPE_I32, 1);
    lengths = inf_build_reshape(&s->b, lengths, (int64_t[]){-1, 1}, 2);
    uint32_t first = inf_build_compare(&s->b, INF_COMPARE_EQUAL, rows, total);
    uint32_t before = inf_build_sub(&s->b, inf_build_add(&s->b, lengths, one), rows);
    positions.past = inf_build_select(&s->b, first, zero, before);
    positions.queries = inf_build_add(&s->b, positions.past, inf_onnx_add_range(s, q, 2));
    uint32_t end = total;
    if (past != INF_VALUE_NONE)
        end = inf_build_binary(&s->b, INF_BINARY_MAX, total,
                               add_i32_scalar(s, inf_build_dim_value(&s->b, past, 2)));
    positions.keys = inf_build_range(&s->b, end);
    return positions;
}

// Adds nodes that make so many rows of zeros for each head of x: [batch, heads, rows, size]. `rows`
// is a list of one element.
static uint32_t add_zero_rows(struct inf_onnx_scope *s, uint32_t x, uint32_t rows)
{
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0), inf_build_dim_value(&s->b, x, 1),
                             rows, inf_build_dim_value(&s->b, x, 3)};
    return inf_build_fill(&s->b, inf_build_concat(&s->b, dims, 4, 0),
                          inf_build_scalar(&s->b, inf_build_dtype(&s->b, x), 0));
}

// Adds nodes that compute `present`: the cache, with the new keys or values `now` behind the past
// ones of each row, and zeros behind these. inf_history_find() knows this form.
static uint32_t join_cache(struct inf_onnx_scope *s, const struct positions *positions,
                           uint32_t cache, uint32_t now)
{
    uint32_t rows = add_i32_scalar(s, inf_build_dim_value(&s->b, now, 2));
    uint32_t zero = inf_build_scalar(&s->b, inf_build_dtype(&s->b, now), 0);
    uint32_t count = inf_build_shape(&s->b, positions->keys), all = cache;
    if (cache != INF_VALUE_NONE)
        count = inf_build_sub(&s->b, count, inf_build_dim_value(&s->b, cache, 2));
    all = add_zero_rows(s, now, count);
    if (cache != INF_VALUE_NONE)
        all = inf_build_concat(&s->b, (uint32_t[]){cache, all}, 2, 2);
    uint32_t past = inf_build_reshape(&s->b, positions->past, (int64_t[]){-1}, 1);
    struct inf_build_node node = inf_build_describe(INF_OP_APPEND, all, past, now);
    node.attrs.append.axis = 2;
    all = inf_build_value(&s->b, &node);
    // number of past and new keys of each row: [batch, 1]
    uint32_t end = inf_build_add(&s->b, positions->past, rows);
    uint32_t is_there = inf_build_compare(&s->b, INF_COMPARE_LESS, positions->keys, end);
    is_there = inf_build_expand_dims(&s->b, is_there, (int64_t[]){1, 3}, 2);
    return inf_build_select(&s->b, is_there, all, zero);
}

// Adds nodes that compute which keys a query sees: the keys up to its own position, of which only
// the last `window` if `window` is positive.
static uint32_t compare_positions(struct inf_onnx_scope *s, const struct positions *positions,
                                  int32_t window)
{
    uint32_t place = inf_build_expand_dims(&s->b, positions->queries, (int64_t[]){1, 3}, 2);
    uint32_t visible = inf_build_compare(&s->b, INF_COMPARE_LESS_EQUAL, positions->keys, place);
    if (window > 0) {
        uint32_t low = inf_build_binary_number(&s->b, INF_BINARY_SUB, place, window);
        visible =
            inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, visible,
                             inf_build_compare(&s->b, INF_COMPARE_GREATER, positions->keys, low));
    }
    return visible;
}

// Adds nodes that split queries, keys and values into heads. If the input key or value is absent,
// the channels of the input query are those of queries, keys and values, in this order.
static void split_operands(struct inf_onnx_scope *s, struct inf_onnx_attention *attention)
{
    int32_t heads = inf_onnx_attr_int(s, "num_heads", 0);
    int32_t kv_heads = inf_onnx_attr_int(s, "kv_num_heads", 0);
    uint32_t q = s->inputs[0], k = inf_onnx_input(s, 1), v = inf_onnx_input(s, 2);
    if (heads < 1 || kv_heads < 1)
        inf_build_fail(&s->b, INF_INVALID, "num_heads is %d, kv_num_heads %d", heads, kv_heads);
    if (inf_build_ok(&s->b) && (k == INF_VALUE_NONE || v == INF_VALUE_NONE)) {
        int64_t size = inf_build_known_dim(&s->b, q, 2) / (heads + 2 * (int64_t)kv_heads);
        int64_t end = size * heads, step = size * kv_heads;
        k = inf_build_slice(&s->b, q, 2, end, end + step, 1);
        v = inf_build_slice(&s->b, q, 2, end + step, end + 2 * step, 1);
        q = inf_build_slice(&s->b, q, 2, 0, end, 1);
    }
    if (!inf_build_ok(&s->b))
        return;
    attention->q = inf_onnx_split_heads(s, q, heads);
    attention->k = inf_onnx_split_heads(s, k, kv_heads);
    attention->v = inf_onnx_split_heads(s, v, kv_heads);
}

static void rotate_operands(struct inf_onnx_scope *s, struct inf_onnx_attention *attention,
                            const struct positions *positions)
{
    uint32_t ids = inf_onnx_input(s, 9);
    struct inf_onnx_rotation rotation = {.cosine = inf_onnx_needed_input(s, 7),
                                         .sine = inf_onnx_needed_input(s, 8),
                                         .ids = ids != INF_VALUE_NONE ? ids : positions->queries,
                                         .interleaved =
                                             inf_onnx_attr_int(s, "rotary_interleaved", 0) != 0};
    rotation.size = 2 * inf_build_known_dim(&s->b, rotation.cosine, 1);
    attention->q = inf_onnx_rotate(s, attention->q, &rotation);
    attention->k = inf_onnx_rotate(s, attention->k, &rotation);
}

// Returns the scores of the sinks, [heads]: input 11 if it is present, else zeros if smooth_softmax
// is 1, else INF_VALUE_NONE.
static uint32_t read_sinks(struct inf_onnx_scope *s)
{
    int32_t heads = inf_onnx_attr_int(s, "num_heads", 1);
    uint32_t sinks = inf_onnx_input(s, 11);
    float *zeros;
    if (inf_onnx_attr_int(s, "smooth_softmax", 0) != 1 || sinks != INF_VALUE_NONE)
        return sinks;
    return inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(heads), &zeros);
}

// Lowers GroupQueryAttention. Inputs: query, key, value, past key, past value, number of keys of
// each row minus 1, total_sequence_length, cosines, sines, position ids, attention bias, sinks.
static void lower_group_query(struct inf_onnx_scope *s)
{
    uint32_t cache_k = inf_onnx_input(s, 3), cache_v = inf_onnx_input(s, 4);
    struct inf_onnx_attention attention = {.scale = inf_onnx_attr_float(s, "scale", 0),
                                           .softcap = inf_onnx_attr_float(s, "softcap", 0),
                                           .hidden = -INFINITY,
                                           .bias = inf_onnx_input(s, 10),
                                           .sinks = read_sinks(s)};
    int32_t window = inf_onnx_attr_int(s, "local_window_size", -1);
    bool rotary = inf_onnx_attr_int(s, "do_rotary", 0) != 0;
    (void)inf_onnx_attr_int(s, "rotary_interleaved", 0);
    if (inf_onnx_attr_int(s, "qk_output", 0) != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "qk_output is set");
    (void)inf_onnx_needed_input(s, 5);
    (void)inf_onnx_needed_input(s, 6);
    split_operands(s, &attention);
    if (!inf_build_ok(&s->b))
        return;
    struct positions positions = add_positions(s, attention.q, cache_k);
    if (rotary)
        rotate_operands(s, &attention, &positions);
    attention.k = join_cache(s, &positions, cache_k, attention.k);
    attention.v = join_cache(s, &positions, cache_v, attention.v);
    attention.visible = compare_positions(s, &positions, window);
    s->outputs[0] = inf_onnx_attend(s, &attention);
    if (s->output_count > 1)
        s->outputs[1] = attention.k;
    if (s->output_count > 2)
        s->outputs[2] = attention.v;
}

// Lowers RotaryEmbedding. Inputs: x [batch, sequence, heads * size] or [batch, heads, sequence,
// size]; the positions [batch, sequence], or one number, the position of the first element of the
// sequence; cosines; sines.
static void lower_rotary(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], ids = s->inputs[1];
    bool is_flat = inf_build_rank(&s->b, x) == 3;
    int32_t heads = inf_onnx_attr_int(s, "num_heads", 0);
    struct inf_onnx_rotation rotation = {.cosine = s->inputs[2],
                                         .sine = s->inputs[3],
                                         .interleaved =
                                             inf_onnx_attr_int(s, "interleaved", 0) != 0};
    (void)inf_onnx_find_attr(s, "rotary_embedding_dim"); // follows from the shape of the cosines
    (void)inf_onnx_find_attr(s, "scale");                // ONNX Runtime ignores it
    if (inf_onnx_attr_int(s, "is_packed_batching", 0) != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "is_packed_batching is set");
    rotation.size = 2 * inf_build_known_dim(&s->b, s->inputs[2], 1);
    if (is_flat && heads == 0 && rotation.size > 0)
        heads = (int32_t)(inf_build_known_dim(&s->b, x, 2) / rotation.size);
    x = is_flat ? inf_onnx_split_heads(s, x, heads) : x;
    if (!inf_build_ok(&s->b))
        return;
    if (inf_build_rank(&s->b, ids) < 2) {
        uint32_t first = inf_build_reshape(&s->b, ids, (int64_t[]){1, 1}, 2);
        uint32_t steps =
            inf_build_cast(&s->b, inf_onnx_add_range(s, x, 2), inf_build_dtype(&s->b, ids));
        ids = inf_build_add(&s->b, first, steps);
    }
    rotation.ids = ids;
    x = inf_onnx_rotate(s, x, &rotation);
    s->outputs[0] = is_flat ? inf_onnx_join_heads(s, x) : x;
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::GroupQueryAttention", lower_group_query, 1, 12, 3, 0},
    {"com.microsoft::RotaryEmbedding", lower_rotary, 4, 4, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_group_query = {ops, INF_ARRAY_LENGTH(ops)};
