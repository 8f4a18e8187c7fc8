// SPDX-License-Identifier: Apache-2.0
// Sparse and ragged tensors. Each of them is several plain tensors.
//
// A sparse tensor is three: the indices of the elements that are present, their values, and the
// shape. A ragged tensor has rows of different lengths. It is the values of all rows, and for each
// ragged axis the splits: the position where each row begins, and where the last one ends.
//
//     [[a b c] [] [d e]]     values a b c d e     splits 0 3 3 5
//
// The sizes of most results depend on values, so a run interprets these nodes.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tfjs/lower.h"
#include "backends/import/tfjs/op_table.h"

// The most ragged axes of a tensor.
#define AXES_MAX (INF_LIMIT_RANK - 1)

static uint32_t add_number(struct inf_builder *b, int64_t number)
{
    return inf_build_list(b, &number, 1);
}

// Adds the largest number of a list plus 1, or 0 if the list is empty: i32 [1].
static uint32_t add_end(struct inf_builder *b, uint32_t list)
{
    const uint32_t parts[] = {add_number(b, -1), list};
    uint32_t last = inf_build_reduce(b, INF_REDUCE_MAX, inf_build_concat(b, parts, 2, 0),
                                     &(struct inf_ints){.count = 1}, true);
    return inf_build_binary_number(b, INF_BINARY_ADD, last, 1);
}

// Adds how often each of 0, 1, ... size - 1 is in a list; i32. `size` is a scalar.
static uint32_t add_counts(struct inf_builder *b, uint32_t list, uint32_t size)
{
    int32_t *none;
    uint32_t weights = inf_build_const(b, INF_DTYPE_I32, &INF_SHAPE(0), &none);
    struct inf_build_node node = inf_build_describe(INF_OP_BINCOUNT, list, size, weights);
    return inf_build_value(b, &node);
}

// --- operators on sparse tensors ---

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
    uint32_t count = add_end(&b, ids);
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

// --- rows of ragged tensors ---

// For each value its row, and its position in the row; both i32 [values].
struct rows {
    uint32_t row, place;
};

// Adds 0, 1, ... count - 1. `count` is a list of one element.
static uint32_t add_range(struct inf_builder *b, uint32_t count)
{
    return inf_build_range(b, inf_build_reshape(b, count, NULL, 0));
}

// Adds the splits of rows of these lengths.
static uint32_t add_splits(struct inf_builder *b, uint32_t lengths)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_CUMULATE, lengths, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.cumulate.kind = INF_CUMULATE_SUM;
    node.attrs.cumulate.axis = 0;
    const uint32_t parts[] = {add_number(b, 0), inf_build_value(b, &node)};
    return inf_build_concat(b, parts, 2, 0);
}

static struct rows find_rows(struct inf_builder *b, uint32_t splits)
{
    struct rows rows;
    uint32_t ends = inf_build_slice(b, splits, 0, 1, INT64_MAX, 1);
    uint32_t values = add_range(b, inf_build_slice(b, splits, 0, -1, INT64_MAX, 1));
    struct inf_build_node node =
        inf_build_describe(INF_OP_SEARCH_SORTED, ends, values, INF_VALUE_NONE);
    node.attrs.search_sorted.right = true;
    rows.row = inf_build_value(b, &node);
    rows.place = inf_build_sub(b, values, inf_build_gather(b, splits, rows.row, 0));
    return rows;
}

// --- operator RaggedRange ---

// Adds how many numbers each range has: i32 [rows]. `ends` are the starts, the limits, which are
// not in the ranges, and the steps.
static uint32_t add_lengths(struct inf_builder *b, const uint32_t ends[3])
{
    uint32_t back = inf_build_sub(b, ends[0], ends[1]);
    bool is_float = inf_dtype_is_float(inf_build_dtype(b, back));
    uint32_t steps = is_float ? inf_build_unary(b, INF_UNARY_FLOOR, inf_build_div(b, back, ends[2]))
                              : inf_build_binary(b, INF_BINARY_FLOOR_DIV, back, ends[2]);
    uint32_t count = inf_build_cast(b, inf_build_unary(b, INF_UNARY_NEG, steps), INF_DTYPE_I32);
    count = inf_build_binary_number(b, INF_BINARY_MAX, count, 0);
    return inf_build_reshape(b, count, (int64_t[]){-1}, 1);
}

static enum inf_code lower_range(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values, parts[2];
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    struct inf_builder b = inf_tfjs_builder(scope, err);
    uint32_t lengths = add_lengths(&b, scope->inputs), shape = inf_build_shape(&b, lengths);
    values[0] = add_splits(&b, lengths);
    struct rows rows = find_rows(&b, values[0]);
    for (uint32_t i = 0; i < 2; i++) { // starts and deltas, one for each value
        uint32_t each = inf_build_broadcast(&b, scope->inputs[2 * i], shape);
        parts[i] = inf_build_gather(&b, each, rows.row, 0);
    }
    uint32_t place = inf_build_cast(&b, rows.place, inf_build_dtype(&b, parts[0]));
    values[1] = inf_build_add(&b, parts[0], inf_build_mul(&b, parts[1], place));
    return b.code;
}

// --- operator RaggedGather ---

// Adds the splits of the axes of `indices` but the last one, whose rows have equal lengths.
static void add_even_splits(struct inf_builder *b, uint32_t indices, int32_t axes,
                            uint32_t *out_splits)
{
    uint32_t shape = inf_build_shape(b, indices);
    for (int32_t i = 0; i < axes; i++) {
        uint32_t rows =
            inf_build_reduce(b, INF_REDUCE_PROD, inf_build_slice(b, shape, 0, 0, i + 1, 1),
                             &(struct inf_ints){.count = 1}, true);
        rows = add_range(b, inf_build_binary_number(b, INF_BINARY_ADD, rows, 1));
        out_splits[i] = inf_build_mul(b, rows, inf_build_slice(b, shape, 0, i + 1, i + 2, 1));
    }
}

// Lowers RaggedGather. Inputs: the splits of each ragged axis, the values, and the indices of the
// rows that are picked. Outputs: the splits, and then the values, of these rows.
static enum inf_code lower_gather(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t axes = scope->input_count - 2, indices = scope->inputs[axes + 1];
    uint32_t *values, splits[AXES_MAX + INF_LIMIT_RANK];
    struct inf_builder b = inf_tfjs_builder(scope, err);
    int32_t rank = inf_build_rank(&b, indices);
    INF_TRY(b.code);
    uint32_t outer = rank > 1 ? (uint32_t)rank - 1 : 0;
    add_even_splits(&b, indices, (int32_t)outer, splits);
    uint32_t at = inf_build_reshape(&b, indices, (int64_t[]){-1}, 1);
    for (uint32_t i = 0; i < axes; i++) {
        uint32_t begin = inf_build_gather(&b, scope->inputs[i], at, 0);
        uint32_t next = inf_build_binary_number(&b, INF_BINARY_ADD, at, 1);
        uint32_t end = inf_build_gather(&b, scope->inputs[i], next, 0);
        splits[outer + i] = add_splits(&b, inf_build_sub(&b, end, begin));
        struct rows rows = find_rows(&b, splits[outer + i]);
        at = inf_build_add(&b, inf_build_gather(&b, begin, rows.row, 0), rows.place);
    }
    // A single index picks one row, which has no splits of its own.
    uint32_t first = rank == 0 ? 1 : 0, count = outer + axes - first;
    uint32_t dense = inf_build_gather(&b, scope->inputs[axes], at, 0);
    INF_TRY(b.code);
    INF_TRY(inf_tfjs_outputs(scope, count + 1, &values, err));
    memcpy(values, &splits[first], count * sizeof *values);
    values[count] = dense;
    return INF_OK;
}

// --- operator RaggedTensorToTensor ---

// The ragged axes of a tensor, from the outermost one.
struct ragged {
    uint32_t axes, first_rows; // first_rows: the number of rows of the outermost axis, a list
    struct rows rows[AXES_MAX];
};

// Adds the rows of values whose row is given, in ascending order. `count` is the number of rows.
static struct rows place_in_rows(struct inf_builder *b, uint32_t row, uint32_t count)
{
    uint32_t counts = add_counts(b, row, inf_build_reshape(b, count, NULL, 0));
    uint32_t splits = add_splits(b, counts);
    uint32_t values = add_range(b, inf_build_shape(b, row));
    return (struct rows){row, inf_build_sub(b, values, inf_build_gather(b, splits, row, 0))};
}

// Reads how the values are divided into rows.
static enum inf_code read_partitions(struct inf_tfjs_scope *scope, struct inf_builder *b,
                                     struct ragged *ragged, struct inf_error *err)
{
    struct inf_tfjs_text types[AXES_MAX + 1];
    uint32_t count = 0, given = scope->input_count - 3;
    const uint32_t *parts = &scope->inputs[3];
    INF_TRY(inf_tfjs_attr_texts(scope->node, "row_partition_types", types, INF_ARRAY_LENGTH(types),
                                &count, err));
    if (count != given)
        return inf_tfjs_fail(scope, err, INF_INVALID, "has %u row_partition_types for %u tensors",
                             count, given);
    bool sized = strcmp(types[0].text, "first_dim_size") == 0;
    ragged->first_rows = sized ? inf_build_reshape(b, parts[0], (int64_t[]){1}, 1) : INF_VALUE_NONE;
    uint32_t count_rows = ragged->first_rows;
    for (uint32_t i = sized ? 1 : 0; i < count && ragged->axes < AXES_MAX; i++) {
        bool is_splits = strcmp(types[i].text, "row_splits") == 0;
        if (!is_splits && (strcmp(types[i].text, "value_rowids") != 0 || (i == 0 && !sized)))
            return inf_tfjs_fail(scope, err, INF_INVALID,
                                 "row_partition_types[%u] is '%.40s', wanted row_splits, or "
                                 "first_dim_size and then value_rowids",
                                 i, types[i].text);
        if (is_splits && i == 0)
            ragged->first_rows =
                inf_build_binary_number(b, INF_BINARY_SUB, inf_build_shape(b, parts[0]), 1);
        ragged->rows[ragged->axes] =
            is_splits ? find_rows(b, parts[i]) : place_in_rows(b, parts[i], count_rows);
        count_rows = inf_build_shape(b, ragged->rows[ragged->axes++].row);
    }
    if (ragged->axes == 0)
        return inf_tfjs_fail(scope, err, INF_INVALID, "row_partition_types has no ragged axis");
    return b->code;
}

// Adds the sizes of all axes: those of `wanted`, or of the longest row where that is negative.
static uint32_t add_sizes(struct inf_builder *b, const struct ragged *ragged, uint32_t wanted,
                          uint32_t values)
{
    uint32_t sizes[AXES_MAX + 1] = {ragged->first_rows}, axes = ragged->axes + 1;
    for (uint32_t i = 1; i < axes; i++)
        sizes[i] = add_end(b, ragged->rows[i - 1].place);
    uint32_t own = inf_build_concat(b, sizes, axes, 0);
    if (inf_build_rank(b, wanted) > 0) // a scalar -1 leaves all sizes open
        wanted = inf_build_slice(b, wanted, 0, 0, axes, 1);
    uint32_t is_open =
        inf_build_compare(b, INF_COMPARE_LESS, wanted, inf_build_scalar(b, INF_DTYPE_I32, 0));
    own = inf_build_select(b, is_open, own, wanted);
    const uint32_t parts[] = {own,
                              inf_build_slice(b, inf_build_shape(b, values), 0, 1, INT64_MAX, 1)};
    return inf_build_concat(b, parts, 2, 0);
}

// Adds the place of each value in the dense tensor: i32 [values, axes + 1].
static uint32_t add_places(struct inf_builder *b, const struct ragged *ragged)
{
    uint32_t columns[AXES_MAX + 1], axes = ragged->axes;
    uint32_t at = ragged->rows[axes - 1].row;
    columns[axes] = ragged->rows[axes - 1].place;
    for (uint32_t i = axes - 1; i > 0; i--) {
        columns[i] = inf_build_gather(b, ragged->rows[i - 1].place, at, 0);
        at = inf_build_gather(b, ragged->rows[i - 1].row, at, 0);
    }
    columns[0] = at;
    for (uint32_t i = 0; i <= axes; i++)
        columns[i] = inf_build_expand_dims(b, columns[i], (int64_t[]){1}, 1);
    return inf_build_concat(b, columns, axes + 1, 1);
}

// Lowers RaggedTensorToTensor. Inputs: the shape of the result, the values, the default value, and
// the partitions of the ragged axes. Values outside of the shape are left out.
static enum inf_code lower_to_tensor(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    const struct inf_ints last = {.count = 1, .values = {1}};
    struct ragged ragged = {0};
    struct inf_builder b = inf_tfjs_builder(scope, err);
    uint32_t values = scope->inputs[1];
    INF_TRY(read_partitions(scope, &b, &ragged, err));
    uint32_t sizes = add_sizes(&b, &ragged, scope->inputs[0], values);
    uint32_t places = add_places(&b, &ragged);
    uint32_t limits = inf_build_slice(&b, sizes, 0, 0, ragged.axes + 1, 1);
    uint32_t inside = inf_build_compare(&b, INF_COMPARE_LESS, places, limits);
    inside = inf_build_reduce(&b, INF_REDUCE_ALL, inside, &last, false);
    struct inf_build_node node =
        inf_build_describe(INF_OP_NONZERO, inside, INF_VALUE_NONE, INF_VALUE_NONE);
    uint32_t kept = inf_build_squeeze(&b, inf_build_value(&b, &node), (int64_t[]){1}, 1);
    node = inf_build_describe(INF_OP_SCATTER_ND, inf_build_broadcast(&b, scope->inputs[2], sizes),
                              inf_build_gather(&b, places, kept, 0),
                              inf_build_gather(&b, values, kept, 0));
    uint32_t y = inf_build_value(&b, &node);
    return b.code == INF_OK ? inf_tfjs_result(scope, y, err) : b.code;
}

static const struct inf_tfjs_op ops[] = {
    {"SparseReshape", lower_reshape, 3, 3, 0},
    {"SparseFillEmptyRows", lower_fill_empty_rows, 4, 4, 0},
    {"SparseSegmentSum", lower_segment, 3, 3, 0},
    {"SparseSegmentMean", lower_segment, 3, 3, 1},
    {"RaggedRange", lower_range, 3, 3, 0},
    {"RaggedGather", lower_gather, 3, AXES_MAX + 2, 0},
    {"RaggedTensorToTensor", lower_to_tensor, 4, AXES_MAX + 4, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_sparse = {ops, INF_ARRAY_LENGTH(ops)};
