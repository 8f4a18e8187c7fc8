// SPDX-License-Identifier: Apache-2.0
// Operators on strings, and on the sparse tensors that models of text make of them. A sparse tensor
// is three plain tensors: indices, values and shape.
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

// --- sparse tensors ---

// Adds the step of each axis of a dense tensor of this shape.
static uint32_t add_strides(struct inf_builder *b, uint32_t shape)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_CUMULATE, shape, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.cumulate.kind = INF_CUMULATE_PROD;
    node.attrs.cumulate.axis = 0;
    node.attrs.cumulate.exclusive = node.attrs.cumulate.reverse = true;
    return inf_build_value(b, &node);
}

static uint32_t multiply_all(struct inf_builder *b, uint32_t list)
{
    return inf_build_reduce(b, INF_REDUCE_PROD, list, &(struct inf_ints){.count = 1}, false);
}

// Lowers SparseReshape: indices become places in the dense tensor, and these the new indices.
static enum inf_code lower_reshape(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    const struct inf_ints last = {.count = 1, .values = {1}};
    uint32_t *values, indices = scope->inputs[0], shape = scope->inputs[1];
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    struct inf_builder b = inf_tfjs_builder(scope, err);
    uint32_t wanted = scope->inputs[2];
    uint32_t is_open =
        inf_build_compare(&b, INF_COMPARE_LESS, wanted, inf_build_scalar(&b, INF_DTYPE_I32, 0));
    uint32_t one = inf_build_scalar(&b, INF_DTYPE_I32, 1);
    uint32_t rest = multiply_all(&b, inf_build_select(&b, is_open, one, wanted));
    rest = inf_build_binary(&b, INF_BINARY_FLOOR_DIV, multiply_all(&b, shape),
                            inf_build_binary(&b, INF_BINARY_MAX, rest, one));
    values[1] = inf_build_select(&b, is_open, rest, wanted);
    uint32_t place = inf_build_mul(&b, indices, add_strides(&b, shape));
    place = inf_build_reduce(&b, INF_REDUCE_SUM, place, &last, true);
    place = inf_build_binary(&b, INF_BINARY_FLOOR_DIV, place, add_strides(&b, values[1]));
    values[0] = inf_build_binary(&b, INF_BINARY_FLOOR_MOD, place, values[1]);
    return b.code;
}

// Adds the first element of a list as a scalar.
static uint32_t add_first(struct inf_builder *b, uint32_t list)
{
    return inf_build_squeeze(b, inf_build_slice(b, list, 0, 0, 1, 1), (int64_t[]){0}, 1);
}

// Adds how often each of 0, 1, ... size - 1 is in a list; i32.
static uint32_t add_counts(struct inf_builder *b, uint32_t list, uint32_t size)
{
    int32_t *none;
    uint32_t weights = inf_build_const(b, INF_DTYPE_I32, &INF_SHAPE(0), &none);
    struct inf_build_node node = inf_build_describe(INF_OP_BINCOUNT, list, size, weights);
    return inf_build_value(b, &node);
}

// Lowers SparseFillEmptyRows. Outputs: indices, values, which rows were empty, and where each
// element went.
static enum inf_code lower_fill_empty_rows(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values, made[3];
    INF_TRY(inf_tfjs_outputs(scope, 4, &values, err));
    struct inf_builder b = inf_tfjs_builder(scope, err);
    uint32_t rows = add_first(&b, scope->inputs[2]);
    const uint32_t inputs[] = {scope->inputs[0], scope->inputs[1], rows, scope->inputs[3]};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SPARSE_FILL_ROWS, inputs, 4);
    node.output_count = 3;
    inf_build_emit(&b, &node, made);
    uint32_t first =
        inf_build_squeeze(&b, inf_build_slice(&b, scope->inputs[0], 1, 0, 1, 1), (int64_t[]){1}, 1);
    values[0] = made[0];
    values[1] = made[1];
    values[2] = inf_build_compare(&b, INF_COMPARE_EQUAL, add_counts(&b, first, rows),
                                  inf_build_scalar(&b, INF_DTYPE_I32, 0));
    values[3] = made[2];
    return b.code;
}

// Lowers SparseSegmentSum and SparseSegmentMean: rows of x, selected by indices, are summed by the
// ids of their segments, which ascend.
static enum inf_code lower_segment(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    bool mean = scope->op->kind != 0;
    struct inf_builder b = inf_tfjs_builder(scope, err);
    uint32_t x = scope->inputs[0], ids = scope->inputs[2];
    enum inf_dtype dtype = inf_build_dtype(&b, x);
    uint32_t rows = inf_build_gather(&b, x, scope->inputs[1], 0);
    // The last id is the largest. Without ids there are no segments.
    uint32_t all[] = {inf_build_list(&b, (int64_t[]){-1}, 1), ids};
    uint32_t last = inf_build_reduce(&b, INF_REDUCE_MAX, inf_build_concat(&b, all, 2, 0),
                                     &(struct inf_ints){.count = 1}, true);
    uint32_t count = inf_build_add(&b, last, inf_build_list(&b, (int64_t[]){1}, 1));
    uint32_t shape[] = {count, inf_build_slice(&b, inf_build_shape(&b, x), 0, 1, INT64_MAX, 1)};
    uint32_t zeros =
        inf_build_fill(&b, inf_build_concat(&b, shape, 2, 0), inf_build_scalar(&b, dtype, 0));
    struct inf_build_node node = inf_build_describe(
        INF_OP_SCATTER_ND, zeros, inf_build_expand_dims(&b, ids, (int64_t[]){1}, 1), rows);
    node.attrs.scatter_nd.kind = INF_SCATTER_ADD;
    uint32_t y = inf_build_value(&b, &node);
    if (mean && b.code == INF_OK) {
        int64_t axes[INF_LIMIT_RANK];
        int32_t rank = inf_build_rank(&b, x);
        for (int32_t i = 1; i < rank; i++)
            axes[i - 1] = i;
        uint32_t sizes = add_counts(&b, ids, inf_build_squeeze(&b, count, (int64_t[]){0}, 1));
        sizes = inf_build_binary(&b, INF_BINARY_MAX, sizes, inf_build_scalar(&b, INF_DTYPE_I32, 1));
        sizes = inf_build_cast(&b, sizes, dtype);
        y = inf_build_div(&b, y, inf_build_expand_dims(&b, sizes, axes, INF_MAX(rank - 1, 0)));
    }
    return b.code == INF_OK ? inf_tfjs_result(scope, y, err) : b.code;
}

static const struct inf_tfjs_op ops[] = {
    {"StringToHashBucketFast", lower_hash, 1, 1, 0},
    {"StringSplit", lower_split, 2, 2, 0},
    {"StringNGrams", lower_ngrams, 2, 2, 0},
    {"SparseReshape", lower_reshape, 3, 3, 0},
    {"SparseFillEmptyRows", lower_fill_empty_rows, 4, 4, 0},
    {"SparseSegmentSum", lower_segment, 3, 3, 0},
    {"SparseSegmentMean", lower_segment, 3, 3, 1},
};

const struct inf_tfjs_op_table inf_tfjs_ops_text = {ops, INF_ARRAY_LENGTH(ops)};
