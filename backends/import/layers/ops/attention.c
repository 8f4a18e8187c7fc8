// SPDX-License-Identifier: Apache-2.0
// EinsumDense, attention with its masks, and embeddings of positions.
#include <math.h>
#include <string.h>

#include "backends/import/common/einsum.h"
#include "backends/import/layers/class_table.h"
#include "backends/import/layers/parts.h"

static enum inf_code emit_einsum(struct inf_layers_scope *scope, const char *equation, uint32_t a,
                                 uint32_t b, uint32_t *out_value, struct inf_error *err)
{
    enum inf_code code = inf_graph_add_einsum(scope->context->graph, scope->layer->name, equation,
                                              (const uint32_t[]){a, b}, 2, out_value, err);
    return code == INF_OK ? INF_OK : inf_layers_error(scope->layer, code, err);
}

// Adds a weight of the given rank with any sizes. The product checks its shape.
static enum inf_code add_weight(struct inf_layers_scope *scope, const char *name, int32_t rank,
                                uint32_t *out_value, struct inf_error *err)
{
    struct inf_shape want = {.rank = rank};
    for (int32_t i = 0; i < rank; i++)
        want.dims[i] = INF_DIM_UNKNOWN;
    return inf_layers_weight(scope, name, &want, NULL, out_value, err);
}

// Returns the number of letters from `start` to the first character that is in `ends`.
static int32_t count_letters(const char *start, const char *ends)
{
    return (int32_t)strcspn(start, ends);
}

// Lowers an equation such as "abc,cd->abd" with bias_axes "d". The bias has an axis for each letter
// of the result, starting at the first letter of bias_axes.
static enum inf_code lower_einsum_dense(struct inf_layers_scope *scope, struct inf_error *err)
{
    const struct inf_json *config = &scope->layer->config;
    const char *equation = NULL, *bias_axes = NULL;
    uint32_t kernel, bias, value;
    INF_TRY(inf_layers_text(config, "equation", &equation, err));
    INF_TRY(inf_layers_text(config, "bias_axes", &bias_axes, err));
    const char *comma = equation != NULL ? strchr(equation, ',') : NULL;
    const char *arrow = comma != NULL ? strstr(comma, "->") : NULL;
    if (arrow == NULL || count_letters(comma + 1, "-") > INF_LIMIT_RANK)
        return inf_layers_fail(scope, err, INF_INVALID, "equation is '%.80s', wanted 'ab,bc->ac'",
                               equation != NULL ? equation : "");
    INF_TRY(add_weight(scope, "kernel", count_letters(comma + 1, "-"), &kernel, err));
    INF_TRY(emit_einsum(scope, equation, inf_layers_x(scope), kernel, &value, err));
    if (bias_axes != NULL && *bias_axes != '\0') {
        int32_t first = count_letters(arrow + 2, bias_axes);
        int32_t rank = count_letters(arrow + 2, "") - first;
        if (rank < 1 || rank > INF_LIMIT_RANK)
            return inf_layers_fail(scope, err, INF_INVALID,
                                   "bias_axes is '%.20s', wanted letters of '%.40s'", bias_axes,
                                   arrow + 2);
        INF_TRY(add_weight(scope, "bias", rank, &bias, err));
        INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, value, bias, &value, err));
    }
    return inf_layers_finish_activated(scope, value, err);
}

// One of the four products of an attention, with weights "NAME/kernel" and "NAME/bias".
struct projection {
    const char *kernel, *bias, *equation;
    int32_t kernel_rank, bias_rank;
};

static enum inf_code add_projection(struct inf_layers_scope *scope,
                                    const struct projection *projection, bool use_bias, uint32_t x,
                                    uint32_t *out_value, struct inf_error *err)
{
    uint32_t kernel, bias;
    INF_TRY(add_weight(scope, projection->kernel, projection->kernel_rank, &kernel, err));
    INF_TRY(emit_einsum(scope, projection->equation, x, kernel, out_value, err));
    if (!use_bias)
        return INF_OK;
    INF_TRY(add_weight(scope, projection->bias, projection->bias_rank, &bias, err));
    return inf_layers_binary(scope, INF_BINARY_ADD, *out_value, bias, out_value, err);
}

static enum inf_code check_attention(struct inf_layers_scope *scope, struct inf_error *err)
{
    static const struct inf_layers_range range = {-INF_LIMIT_RANK, INF_LIMIT_RANK - 1};
    int32_t axes[INF_LIMIT_RANK];
    uint32_t count = 0;
    INF_TRY(inf_layers_int_list(&scope->layer->config, "attention_axes", range, axes,
                                INF_LIMIT_RANK, &count, err));
    if (count > 1 || (count == 1 && axes[0] != 1))
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "attention_axes has %u axes, the first %d, wanted axis 1 alone",
                               count, axes[0]);
    for (uint32_t i = 0; i < scope->input_count; i++) {
        const char *argument = scope->inputs[i].argument;
        const struct inf_shape *shape = inf_layers_shape_of(scope, scope->inputs[i].value);
        if (argument != NULL && inf_layers_same_word(argument, "attention_mask"))
            continue;
        if (shape->rank != 3)
            return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                                   "input %u has rank %d, wanted [batch,time,features]", i,
                                   shape->rank);
        if (scope->inputs[i].mask == INF_LAYERS_MASK_MIXED)
            return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                                   "input %u is made of tensors with different masks", i);
    }
    return INF_OK;
}

enum inf_code inf_layers_mask_add(struct inf_layers_scope *scope, uint32_t other,
                                  enum inf_layers_mask_axis axis, uint32_t *mask,
                                  struct inf_error *err)
{
    if (other == INF_VALUE_NONE)
        return INF_OK;
    INF_TRY(inf_layers_cast(scope, INF_DTYPE_F32, other, &other, err));
    if (axis != INF_LAYERS_MASK_WHOLE)
        INF_TRY(
            inf_layers_expand(scope, other, axis == INF_LAYERS_MASK_VALUES ? 1 : 2, &other, err));
    // Insert the axis of attention heads into the mask, which is the same for all heads.
    if (inf_layers_shape_of(scope, other)->rank == 3)
        INF_TRY(inf_layers_expand(scope, other, 1, &other, err));
    if (*mask == INF_VALUE_NONE) {
        *mask = other;
        return INF_OK;
    }
    return inf_layers_binary(scope, INF_BINARY_MIN, *mask, other, mask, err);
}

enum inf_code inf_layers_mask_add_causal(struct inf_layers_scope *scope, uint32_t query,
                                         uint32_t value, uint32_t *mask, struct inf_error *err)
{
    const struct inf_layers_dim dims[] = {inf_layers_dim_of(query, 1), inf_layers_dim_of(value, 1)};
    uint32_t shape, one, triangle;
    INF_TRY(inf_layers_dims(scope, dims, INF_ARRAY_LENGTH(dims), &shape, err));
    INF_TRY(inf_layers_add_float(scope, 1.0f, &one, err));
    struct inf_build_node node = inf_build_describe(INF_OP_FILL, shape, one, INF_VALUE_NONE);
    INF_TRY(inf_layers_emit(scope, &node, &triangle, err));
    node = inf_build_describe(INF_OP_BAND, triangle, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.band.high = 0;
    INF_TRY(inf_layers_emit(scope, &node, &triangle, err));
    return inf_layers_mask_add(scope, triangle, INF_LAYERS_MASK_WHOLE, mask, err);
}

// Sets *scores to scores + (mask - 1) * 1e9, which hides masked positions.
static enum inf_code hide_masked(struct inf_layers_scope *scope, uint32_t mask, uint32_t *scores,
                                 struct inf_error *err)
{
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_SUB, mask, 1, &mask, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, mask, 1e9f, &mask, err));
    return inf_layers_binary(scope, INF_BINARY_ADD, *scores, mask, scores, err);
}

enum inf_code inf_layers_attend(struct inf_layers_scope *scope,
                                const struct inf_layers_attention *attention, uint32_t *out_value,
                                struct inf_error *err)
{
    static const struct projection query = {"query/kernel", "query/bias", "abc,cde->abde", 3, 2};
    static const struct projection key = {"key/kernel", "key/bias", "abc,cde->abde", 3, 2};
    static const struct projection value = {"value/kernel", "value/bias", "abc,cde->abde", 3, 2};
    static const struct projection output = {"attention_output/kernel", "attention_output/bias",
                                             "abcd,cde->abe", 3, 1};
    const float scale = 1 / sqrtf((float)attention->key_dim);
    bool use_bias = attention->use_bias;
    uint32_t q, k, v, scores;
    INF_TRY(add_projection(scope, &query, use_bias, attention->query, &q, err));
    INF_TRY(add_projection(scope, &key, use_bias, attention->key, &k, err));
    INF_TRY(add_projection(scope, &value, use_bias, attention->value, &v, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, q, scale, &q, err));
    INF_TRY(emit_einsum(scope, "aecd,abcd->acbe", k, q, &scores, err));
    if (attention->mask != INF_VALUE_NONE)
        INF_TRY(hide_masked(scope, attention->mask, &scores, err));
    struct inf_build_node softmax =
        inf_build_describe(INF_OP_SOFTMAX, scores, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_layers_emit(scope, &softmax, &scores, err));
    INF_TRY(emit_einsum(scope, "acbe,aecd->abcd", scores, v, &v, err));
    return add_projection(scope, &output, use_bias, v, out_value, err);
}

// Combines all masks: the query mask, the value mask, the causal mask, and the mask argument.
static enum inf_code read_mask(struct inf_layers_scope *scope,
                               const struct inf_layers_tensor *inputs[3], uint32_t *mask,
                               struct inf_error *err)
{
    const struct inf_layers_tensor *given = inf_layers_argument(scope, 3, "attention_mask");
    bool causal = false;
    *mask = INF_VALUE_NONE;
    INF_TRY(inf_layers_argument_flag(scope, "use_causal_mask", &causal, err));
    INF_TRY(inf_layers_mask_add(scope, inputs[0]->mask, INF_LAYERS_MASK_QUERIES, mask, err));
    INF_TRY(inf_layers_mask_add(scope, inputs[1]->mask, INF_LAYERS_MASK_VALUES, mask, err));
    if (inputs[2] != inputs[1])
        INF_TRY(inf_layers_mask_add(scope, inputs[2]->mask, INF_LAYERS_MASK_VALUES, mask, err));
    if (causal)
        INF_TRY(inf_layers_mask_add_causal(scope, inputs[0]->value, inputs[1]->value, mask, err));
    return given == NULL
               ? INF_OK
               : inf_layers_mask_add(scope, given->value, INF_LAYERS_MASK_WHOLE, mask, err);
}

// Lowers Attention. The inputs are query, value and, optionally, key; without a key, the value is
// the key too.
static enum inf_code lower_attention(struct inf_layers_scope *scope, struct inf_error *err)
{
    const struct inf_json *config = &scope->layer->config;
    struct inf_layers_attention attention = {.use_bias = true};
    const struct inf_layers_tensor *inputs[3] = {
        inf_layers_argument(scope, 0, "query"),
        inf_layers_argument(scope, 1, "value"),
        inf_layers_argument(scope, 2, "key"),
    };
    bool with_scores = false;
    uint32_t value;
    INF_TRY(check_attention(scope, err));
    INF_TRY(inf_layers_argument_flag(scope, "return_attention_scores", &with_scores, err));
    if (with_scores)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "is asked for its scores");
    if (inputs[0] == NULL || inputs[1] == NULL)
        return inf_layers_fail(scope, err, INF_INVALID, "is given no query, or no value");
    if (inputs[2] == NULL)
        inputs[2] = inputs[1];
    INF_TRY(inf_layers_bool(config, "use_bias", &attention.use_bias, err));
    INF_TRY(inf_layers_int(config, "key_dim", 1, 1 << 24, &attention.key_dim, err));
    if (attention.key_dim == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say its key_dim");
    attention.query = inputs[0]->value;
    attention.value = inputs[1]->value;
    attention.key = inputs[2]->value;
    INF_TRY(read_mask(scope, inputs, &attention.mask, err));
    INF_TRY(inf_layers_attend(scope, &attention, &value, err));
    return inf_layers_finish(scope, value, err);
}

// Lowers PositionEmbedding: the first rows of a table, one row for each time step of x, repeated
// for the batch. Only the shape of x is used.
static enum inf_code lower_position(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct inf_build_node slice =
        inf_build_describe(INF_OP_SLICE, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_graph *graph = scope->context->graph;
    uint32_t x = inf_layers_x(scope), rows, shape;
    int32_t rank = inf_layers_shape_of(scope, x)->rank;
    if (rank < 2)
        return inf_layers_fail(scope, err, INF_INVALID, "its input has rank %d, wanted 2 or more",
                               rank);
    const struct inf_layers_dim ends[] = {inf_layers_dim_of(x, rank - 2),
                                          inf_layers_dim_of(x, rank - 1)};
    INF_TRY(inf_layers_weight(
        scope, "embeddings",
        &INF_SHAPE(INF_DIM_UNKNOWN, inf_layers_shape_of(scope, x)->dims[rank - 1]), NULL,
        &slice.inputs[0], err));
    INF_TRY(inf_graph_add_const_i32(graph, scope->layer->name, (const int32_t[]){0, 0}, 2,
                                    &slice.inputs[1], err));
    INF_TRY(inf_layers_dims(scope, ends, 2, &slice.inputs[2], err));
    INF_TRY(inf_graph_add_const_i32(graph, scope->layer->name, (const int32_t[]){1, 1}, 2,
                                    &slice.inputs[3], err));
    slice.input_count = 4;
    INF_TRY(inf_layers_emit(scope, &slice, &rows, err));
    struct inf_build_node node =
        inf_build_describe(INF_OP_SHAPE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_layers_emit(scope, &node, &shape, err));
    node = inf_build_describe(INF_OP_BROADCAST, rows, shape, INF_VALUE_NONE);
    INF_TRY(inf_layers_emit(scope, &node, &rows, err));
    return inf_layers_finish(scope, rows, err);
}

static const char *const attention_named[] = {"query", "value", "key", "attention_mask", NULL};

static const struct inf_layers_class classes[] = {
    {"EinsumDense", lower_einsum_dense, 1, 1, 0, false},
    {"MultiHeadAttention", lower_attention, 2, 4, 0, true, attention_named},
    {"PositionEmbedding", lower_position, 1, 1, 0, true},
};

const struct inf_layers_class_table inf_layers_classes_attention = {classes,
                                                                    INF_ARRAY_LENGTH(classes)};
