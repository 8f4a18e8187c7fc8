// SPDX-License-Identifier: Apache-2.0
// Operators on strings: hashes, parts and n-grams. The parts are a sparse tensor (sparse.c).
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tfjs/lower.h"
#include "backends/import/tfjs/op_table.h"

// The longest separator or pad of StringNGrams.
#define TEXT_BYTES 256

// Adds a scalar BYTES constant.
static uint32_t add_text(struct inf_builder *b, const char *text)
{
    const struct inf_span string = {(const uint8_t *)text, strlen(text)};
    uint64_t *handle;
    uint32_t value = inf_build_const(b, INF_DTYPE_BYTES, &(struct inf_shape){0}, &handle);
    if (handle != NULL)
        b->code =
            inf_string_pool_add(inf_shared_strings_pool(b->graph->strings), string, handle, b->err);
    return value;
}

static enum inf_code lower_hash(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    int32_t buckets = 0;
    INF_TRY(inf_tfjs_attr_int(scope->node, "num_buckets", 1, INT32_MAX, &buckets, err));
    struct inf_builder b = inf_tfjs_builder(scope, err);
    struct inf_build_node node =
        inf_build_describe(INF_OP_STRING_HASH, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.string_hash.buckets = INF_MAX(buckets, 1);
    uint32_t y = inf_build_cast(&b, inf_build_value(&b, &node), INF_DTYPE_I32);
    return b.code == INF_OK ? inf_tfjs_result(scope, y, err) : b.code;
}

// Returns whether `value` is a constant of one empty string. *known is false if it is no constant.
static bool is_empty_text(const struct inf_graph *graph, uint32_t value, bool *known)
{
    *known = inf_graph_is_const(graph, value) && graph->values[value].dtype == INF_DTYPE_BYTES &&
             graph->values[value].data->size_bytes == sizeof(uint64_t);
    return *known &&
           inf_string_handle_size(*(const uint64_t *)graph->values[value].data->data) == 0;
}

// Lowers StringSplit: an empty delimiter splits after every byte, another one at each of its bytes.
static enum inf_code lower_split(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    bool skip_empty = true, known;
    bool is_empty = is_empty_text(scope->graph, scope->inputs[1], &known);
    uint32_t *values, parts[2];
    if (!known)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "its delimiter is no constant");
    INF_TRY(inf_tfjs_attr_bool(scope->node, "skip_empty", &skip_empty, err));
    INF_TRY(inf_tfjs_outputs(scope, 3, &values, err));
    struct inf_builder b = inf_tfjs_builder(scope, err);
    struct inf_build_node node =
        inf_build_describe(INF_OP_STRING_SPLIT, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    node.output_count = 2;
    node.attrs.string_split.kind = is_empty ? INF_SPLIT_BYTES : INF_SPLIT_ANY_BYTE;
    node.attrs.string_split.skip_empty = skip_empty;
    inf_build_emit(&b, &node, parts);
    // The indices of the sparse tensor are those of the parts that are there.
    uint32_t shape = inf_build_shape(&b, parts[0]);
    uint32_t most =
        inf_build_squeeze(&b, inf_build_slice(&b, shape, 0, -1, INT64_MAX, 1), (int64_t[]){0}, 1);
    uint32_t places = inf_build_range(&b, most);
    uint32_t counts = inf_build_expand_dims(&b, parts[1], (int64_t[]){-1}, 1);
    uint32_t is_there = inf_build_compare(&b, INF_COMPARE_LESS, places, counts);
    node = inf_build_describe(INF_OP_NONZERO, is_there, INF_VALUE_NONE, INF_VALUE_NONE);
    values[0] = inf_build_value(&b, &node);
    node = inf_build_describe(INF_OP_GATHER_ND, parts[0], values[0], INF_VALUE_NONE);
    values[1] = inf_build_value(&b, &node);
    values[2] = shape;
    return b.code;
}

static enum inf_code lower_ngrams(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    char separator[TEXT_BYTES] = "", left[TEXT_BYTES] = "", right[TEXT_BYTES] = "";
    int32_t widths[INF_LIMIT_RANK];
    uint32_t *values, count = 0;
    uint32_t inputs[5] = {scope->inputs[0], scope->inputs[1]};
    struct inf_build_node node = inf_build_describe_list(INF_OP_STRING_NGRAMS, inputs, 5);
    struct inf_attrs_string_ngrams *attrs = &node.attrs.string_ngrams;
    INF_TRY(inf_tfjs_attr_raw(scope->node, "separator", separator, sizeof separator, err));
    INF_TRY(inf_tfjs_attr_raw(scope->node, "left_pad", left, sizeof left, err));
    INF_TRY(inf_tfjs_attr_raw(scope->node, "right_pad", right, sizeof right, err));
    INF_TRY(inf_tfjs_attr_int(scope->node, "pad_width", -1, INT32_MAX, &attrs->pads_max, err));
    INF_TRY(inf_tfjs_attr_bool(scope->node, "preserve_short_sequences", &attrs->keep_short, err));
    INF_TRY(inf_tfjs_attr_ints(scope->node, "ngram_widths", widths, INF_LIMIT_RANK, &count, err));
    attrs->widths.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++) {
        attrs->widths.values[i] = widths[i];
        if (widths[i] < 1)
            return inf_tfjs_fail(scope, err, INF_INVALID, "an n-gram of %d strings", widths[i]);
    }
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    struct inf_builder b = inf_tfjs_builder(scope, err);
    const char *const texts[] = {separator, left, right};
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(texts); i++)
        inputs[2 + i] = add_text(&b, texts[i]);
    node.output_count = 2;
    inf_build_emit(&b, &node, values);
    return b.code;
}

static const struct inf_tfjs_op ops[] = {
    {"StringToHashBucketFast", lower_hash, 1, 1, 0},
    {"StringSplit", lower_split, 2, 2, 0},
    {"StringNGrams", lower_ngrams, 2, 2, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_text = {ops, INF_ARRAY_LENGTH(ops)};
