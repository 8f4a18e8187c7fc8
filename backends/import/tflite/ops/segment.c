// SPDX-License-Identifier: Apache-2.0
// Operators that place or add up elements at computed positions: segments, sparse tensors, updates
// of slices, diagonals and sums of embeddings.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

// The numbers of the enum CombinerType.
enum combiner {
    COMBINER_SUM,
    COMBINER_MEAN,
    COMBINER_SQRTN,
};

// Adds x with `updates` scattered into it at `indices`.
static uint32_t add_scatter(struct inf_builder *b, uint32_t x, uint32_t indices, uint32_t updates,
                            enum inf_scatter_kind kind)
{
    struct inf_build_node node = inf_build_describe(INF_OP_SCATTER_ND, x, indices, updates);
    node.attrs.scatter_nd.kind = kind;
    node.attrs.scatter_nd.drop = true;
    return inf_build_value(b, &node);
}

// Returns indices as a matrix of one column.
static uint32_t shape_column(struct inf_builder *b, uint32_t indices)
{
    return inf_build_reshape(b, indices, (int64_t[]){-1, 1}, 2);
}

// Adds the sizes of x from axis `first` on, behind the size `count` (i32 of shape [1]).
static uint32_t add_sizes(struct inf_builder *b, uint32_t x, uint32_t count, int32_t first)
{
    int32_t rank = inf_build_rank(b, x);
    if (first >= rank)
        return count;
    uint32_t rest = inf_build_slice(b, inf_build_shape(b, x), 0, first, rank, 1);
    return inf_build_concat(b, (uint32_t[]){count, rest}, 2, 0);
}

// Adds a tensor of segments: `count` slices of x, combined from those that `ids` names.
static uint32_t add_segments(struct inf_tflite_scope *s, uint32_t x, uint32_t ids, uint32_t count,
                             enum inf_scatter_kind kind, double initial)
{
    struct inf_builder *b = &s->b;
    int32_t ids_rank = inf_build_rank(b, ids), rank = inf_build_rank(b, x);
    if (inf_build_ok(b) && ids_rank > rank)
        inf_build_fail(b, INF_INVALID, "the segment ids have %d axes, the data %d", ids_rank, rank);
    uint32_t rows = inf_build_list(b, (int64_t[]){-1}, 1);
    uint32_t updates = inf_build_reshape_to(b, x, add_sizes(b, x, rows, ids_rank));
    uint32_t zero = inf_build_scalar(b, inf_build_dtype(b, x), initial);
    uint32_t start = inf_build_fill(b, add_sizes(b, x, count, ids_rank), zero);
    return add_scatter(b, start, shape_column(b, ids), updates, kind);
}

static void lower_segment_sum(struct inf_tflite_scope *s)
{
    uint32_t ids = inf_tflite_list(s, 1);
    // The ids ascend, so the last one is the number of segments minus 1.
    uint32_t last = inf_build_slice(&s->b, ids, 0, -1, INT64_MAX, 1);
    uint32_t count = inf_build_binary_number(&s->b, INF_BINARY_ADD, last, 1);
    s->outputs[0] = add_segments(s, inf_tflite_real(s, 0), ids, count, INF_SCATTER_ADD, 0);
}

static void lower_unsorted_segment(struct inf_tflite_scope *s)
{
    enum inf_scatter_kind kind = (enum inf_scatter_kind)s->row->kind;
    uint32_t x = inf_tflite_real(s, 0);
    bool is_int = inf_build_dtype(&s->b, x) == INF_DTYPE_I32;
    double initial = kind == INF_SCATTER_MUL   ? 1
                     : kind == INF_SCATTER_MIN ? (is_int ? INT32_MAX : 0x1.fffffep127)
                     : kind == INF_SCATTER_MAX ? (is_int ? INT32_MIN : -0x1.fffffep127)
                                               : 0;
    uint32_t count = inf_build_reshape(&s->b, inf_tflite_list(s, 2), (int64_t[]){1}, 1);
    s->outputs[0] = add_segments(s, x, inf_tflite_list(s, 1), count, kind, initial);
}

static void lower_sparse_to_dense(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t indices = inf_tflite_list(s, 0), values = inf_tflite_stored(s, 2);
    uint32_t initial = inf_build_reshape(b, inf_tflite_stored(s, 3), NULL, 0);
    if (inf_build_rank(b, indices) < 2)
        indices = shape_column(b, indices);
    // One value may stand for all indices.
    if (inf_build_ok(b) && inf_build_rank(b, values) == 0)
        values = inf_build_broadcast(b, values, inf_build_dim_value(b, indices, 0));
    s->outputs[0] = add_scatter(b, inf_build_fill(b, inf_tflite_list(s, 1), initial), indices,
                                values, INF_SCATTER_NONE);
}

// --- slices and diagonals ---

// Adds the positions of all elements of a tensor of this shape: [shape..., rank] (i32).
static uint32_t add_positions(struct inf_builder *b, const struct inf_shape *shape)
{
    struct inf_shape grid = *shape;
    int32_t *places;
    if (grid.rank == INF_LIMIT_RANK) {
        inf_build_fail(b, INF_UNSUPPORTED, "has %d axes", grid.rank);
        return INF_VALUE_NONE;
    }
    grid.dims[grid.rank++] = shape->rank;
    uint32_t value = inf_build_const(b, INF_DTYPE_I32, &grid, &places);
    size_t count = places != NULL ? inf_shape_elements(shape) : 0;
    for (size_t i = 0; i < count; i++) {
        size_t left = i;
        for (int32_t axis = shape->rank - 1; axis >= 0; axis--) {
            places[i * (size_t)shape->rank + (size_t)axis] =
                (int32_t)(left % (size_t)shape->dims[axis]);
            left /= (size_t)shape->dims[axis];
        }
    }
    return value;
}

// Returns the start of an update as a list. STABLEHLO_DYNAMIC_UPDATE_SLICE has a scalar for each
// axis.
static uint32_t add_start(struct inf_tflite_scope *s)
{
    uint32_t parts[INF_LIMIT_RANK], count = s->op->inputs.count - 2;
    if (s->op->code->builtin == INF_TFLITE_DYNAMIC_UPDATE_SLICE)
        return inf_tflite_list(s, 2);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = inf_build_reshape(&s->b, inf_tflite_list(s, 2 + i), (int64_t[]){1}, 1);
    return inf_build_concat(&s->b, parts, count, 0);
}

// The start is moved so that the update lies within the tensor.
static void lower_update_slice(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_data(s, 0), update = inf_tflite_data(s, 1);
    struct inf_shape shape = inf_build_known_shape(b, update);
    uint32_t room = inf_build_sub(b, inf_build_shape(b, x), inf_build_shape(b, update));
    uint32_t start = inf_build_binary(b, INF_BINARY_MIN, add_start(s), room);
    start = inf_build_binary_number(b, INF_BINARY_MAX, start, 0);
    uint32_t indices = inf_build_add(b, add_positions(b, &shape), start);
    s->outputs[0] = add_scatter(b, x, indices, update, INF_SCATTER_NONE);
}

// Adds x [..., n] as the diagonals of matrices [..., n, n].
static void lower_matrix_diag(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_data(s, 0);
    uint32_t size = inf_build_dim_value(b, x, -1);
    uint32_t shape = inf_build_concat(b, (uint32_t[]){inf_build_shape(b, x), size}, 2, 0);
    uint32_t columns = inf_build_expand_dims(b, x, (int64_t[]){-1}, 1);
    struct inf_build_node node = inf_build_describe(
        INF_OP_BAND, inf_build_broadcast(b, columns, shape), INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.band.low = 0;
    node.attrs.band.high = 0;
    s->outputs[0] = inf_build_value(b, &node);
}

static void lower_matrix_set_diag(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_data(s, 0), diagonal = inf_tflite_data(s, 1);
    int64_t rows = inf_build_known_dim(b, x, -2), columns = inf_build_known_dim(b, x, -1);
    int64_t count = INF_MIN(rows, columns);
    int32_t rank = inf_build_rank(b, diagonal);
    uint8_t *mask;
    if (inf_build_ok(b) && inf_build_dim(b, diagonal, -1) != count)
        inf_build_fail(b, INF_INVALID, "the diagonal does not have %lld elements",
                       (long long)count);
    if (!inf_build_ok(b))
        return;
    int64_t amounts[2 * INF_LIMIT_RANK] = {0};
    amounts[2 * rank - 1] = rows - count;
    diagonal = inf_build_pad(b, diagonal, amounts, rank, INF_PAD_CONSTANT, INF_VALUE_NONE);
    diagonal = inf_build_expand_dims(b, diagonal, (int64_t[]){-1}, 1);
    uint32_t is_diagonal = inf_build_const(b, INF_DTYPE_BOOL, &INF_SHAPE(rows, columns), &mask);
    for (int64_t i = 0; mask != NULL && i < count; i++)
        mask[i * columns + i] = 1;
    s->outputs[0] = inf_build_select(b, is_diagonal, diagonal, x);
}

// --- embeddings ---

// Sums of rows of a table, weighted, for each index but the last of a sparse tensor.
static void lower_embedding_sparse(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    int64_t combiner = inf_tflite_option(s, INF_FB_I8, 0, "combiner", COMBINER_SUM);
    uint32_t table = inf_tflite_real(s, 4), indices = inf_tflite_list(s, 1);
    uint32_t shape = inf_tflite_list(s, 2);
    int32_t rank = inf_build_rank(b, table);
    int64_t depth = inf_build_known_dim(b, indices, 1);
    int64_t ones[INF_LIMIT_RANK] = {-1, 1, 1, 1, 1, 1, 1, 1};
    if (inf_build_ok(b) && (depth < 2 || depth > INF_LIMIT_RANK || rank < 2))
        inf_build_fail(b, INF_INVALID, "has indices of %lld numbers and a table of %d axes",
                       (long long)depth, rank);
    if (!inf_build_ok(b))
        return;
    uint32_t weights = inf_build_reshape(b, inf_tflite_real(s, 3), ones, rank);
    uint32_t rows = inf_build_gather(b, table, inf_tflite_list(s, 0), 0);
    uint32_t places = inf_build_slice(b, indices, 1, 0, depth - 1, 1);
    uint32_t outer = inf_build_slice(b, shape, 0, 0, depth - 1, 1);
    uint32_t zero = inf_build_scalar(b, INF_DTYPE_F32, 0);
    uint32_t inner = inf_build_slice(b, inf_build_shape(b, table), 0, 1, rank, 1);
    uint32_t full = inf_build_concat(b, (uint32_t[]){outer, inner}, 2, 0);
    uint32_t one_each = inf_build_concat(
        b, (uint32_t[]){outer, inf_build_list(b, ones + 1, (uint32_t)rank - 1)}, 2, 0);
    uint32_t sum = add_scatter(b, inf_build_fill(b, full, zero), places,
                               inf_build_mul(b, rows, weights), INF_SCATTER_ADD);
    if (combiner != COMBINER_SUM) {
        if (combiner == COMBINER_SQRTN)
            weights = inf_build_unary(b, INF_UNARY_SQUARE, weights);
        uint32_t total =
            add_scatter(b, inf_build_fill(b, one_each, zero), places, weights, INF_SCATTER_ADD);
        if (combiner == COMBINER_SQRTN)
            total = inf_build_unary(b, INF_UNARY_SQRT, total);
        sum = inf_build_binary(b, INF_BINARY_DIV_NO_NAN, sum, total);
    }
    s->outputs[0] = sum;
}

#define UNSORTED(name, kind)                                                                       \
    {                                                                                              \
        INF_TFLITE_UNSORTED_SEGMENT_##name, NULL, lower_unsorted_segment, 3, 3, 1,                 \
            INF_TFLITE_MODE_REAL, 0, INF_SCATTER_##kind                                            \
    }

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_SEGMENT_SUM, NULL, lower_segment_sum, 2, 2, 1, INF_TFLITE_MODE_REAL, 0, 0},
    UNSORTED(SUM, ADD),
    UNSORTED(PROD, MUL),
    UNSORTED(MIN, MIN),
    UNSORTED(MAX, MAX),
    {INF_TFLITE_SPARSE_TO_DENSE, NULL, lower_sparse_to_dense, 4, 4, 1, INF_TFLITE_MODE_STORED, 0,
     0},
    {INF_TFLITE_DYNAMIC_UPDATE_SLICE, NULL, lower_update_slice, 3, 3, 1, INF_TFLITE_MODE_MOVE, 0,
     0},
    {INF_TFLITE_STABLEHLO_DYNAMIC_UPDATE_SLICE, NULL, lower_update_slice, 3, INF_LIMIT_RANK + 2, 1,
     INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_MATRIX_DIAG, NULL, lower_matrix_diag, 1, 1, 1, INF_TFLITE_MODE_REAL, 0, 0},
    {INF_TFLITE_MATRIX_SET_DIAG, NULL, lower_matrix_set_diag, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_EMBEDDING_LOOKUP_SPARSE, NULL, lower_embedding_sparse, 5, 5, 1,
     INF_TFLITE_MODE_REAL, INF_TFLITE_OPTIONS_EMBEDDING_LOOKUP_SPARSE, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_segment = {ops, INF_ARRAY_LENGTH(ops)};
