// SPDX-License-Identifier: Apache-2.0
// Operators of StableHLO that move elements, make tensors or multiply them. Functions of elements
// are rows of the tables of unary.c, binary.c and select.c; operators with windows and reductions
// are in stablehlo_window.c. All shapes of StableHLO are known in the file.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

// Returns the shape of output 0, which must be known.
static struct inf_shape find_result_shape(struct inf_tflite_scope *s)
{
    struct inf_shape shape = inf_tflite_output_tensor(s, 0)->signature;
    if (!inf_shape_known(&shape))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has a result of unknown shape");
    return shape;
}

// Returns true if `value` is in the list.
static bool has_value(const struct inf_build_ints *list, int64_t value)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->values[i] == value)
            return true;
    return false;
}

// Latches a failure unless all elements of the list are different axes of `rank` axes.
static void check_axes(struct inf_tflite_scope *s, const struct inf_build_ints *list,
                       const char *field, int64_t rank)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < list->count; i++) {
        int64_t axis = list->values[i];
        if (axis < 0 || axis >= rank || (seen & 1u << axis) != 0)
            inf_build_fail(&s->b, INF_INVALID, "option %s has axis %lld twice or of %lld axes",
                           field, (long long)axis, (long long)rank);
        else
            seen |= 1u << axis;
    }
}

// Latches a failure unless a list has an element for each axis.
static void check_count(struct inf_tflite_scope *s, const struct inf_build_ints *list,
                        const char *field, int64_t count)
{
    if (list->count != (uint64_t)count)
        inf_build_fail(&s->b, INF_INVALID, "option %s has %u elements, wanted %lld", field,
                       list->count, (long long)count);
}

static void lower_clamp(struct inf_tflite_scope *s)
{
    uint32_t above =
        inf_build_binary(&s->b, INF_BINARY_MAX, inf_tflite_data(s, 1), inf_tflite_data(s, 0));
    s->outputs[0] = inf_build_binary(&s->b, INF_BINARY_MIN, above, inf_tflite_data(s, 2));
}

static void lower_reshape(struct inf_tflite_scope *s)
{
    struct inf_shape shape = find_result_shape(s);
    uint32_t x = inf_tflite_data(s, 0);
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_reshape(&s->b, x, shape.dims, shape.rank);
}

static void lower_transpose(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0);
    struct inf_build_ints perm =
        inf_tflite_option_2_list(s, INF_TFLITE_OPTIONS_2_TRANSPOSE, 0, "permutation");
    int32_t rank = inf_build_rank(&s->b, x);
    check_count(s, &perm, "permutation", rank);
    check_axes(s, &perm, "permutation", rank);
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_transpose(&s->b, x, perm.values, rank);
}

static void lower_concatenate(struct inf_tflite_scope *s)
{
    uint32_t count = s->op->inputs.count;
    uint32_t *values = inf_arena_alloc(s->import->arena, count * sizeof *values);
    int64_t axis =
        inf_tflite_option_2_int(s, INF_TFLITE_OPTIONS_2_CONCATENATE, INF_FB_I64, 0, "dimension");
    if (values == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for %u inputs", count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!inf_tflite_has_input(s, i))
            inf_build_fail(&s->b, INF_INVALID, "lacks input %u", i);
        values[i] = inf_tflite_data(s, i);
    }
    int32_t at = inf_build_axis(&s->b, axis, inf_build_rank(&s->b, values[0]));
    s->outputs[0] = inf_build_concat(&s->b, values, count, at);
}

// Axis i of the operand becomes axis broadcast_dimensions[i] of the result.
static void lower_broadcast_in_dim(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0);
    struct inf_shape shape = find_result_shape(s), from = inf_build_known_shape(&s->b, x);
    struct inf_build_ints axes = inf_tflite_option_2_list(s, INF_TFLITE_OPTIONS_2_BROADCAST_IN_DIM,
                                                          0, "broadcast_dimensions");
    int64_t dims[INF_LIMIT_RANK] = {1, 1, 1, 1, 1, 1, 1, 1}, perm[INF_LIMIT_RANK];
    check_count(s, &axes, "broadcast_dimensions", from.rank);
    check_axes(s, &axes, "broadcast_dimensions", shape.rank);
    if (!inf_build_ok(&s->b))
        return;
    // The axes may be in any order: sort the operand's axes by where they go.
    int32_t count = 0;
    for (int32_t axis = 0; axis < shape.rank; axis++)
        for (uint32_t i = 0; i < axes.count; i++)
            if (axes.values[i] == axis) {
                perm[count++] = i;
                dims[axis] = from.dims[i];
            }
    x = inf_build_reshape(&s->b, inf_build_transpose(&s->b, x, perm, count), dims, shape.rank);
    uint32_t full = inf_build_list(&s->b, shape.dims, (uint32_t)shape.rank);
    s->outputs[0] = inf_build_broadcast(&s->b, x, full);
}

static void lower_slice(struct inf_tflite_scope *s)
{
    static const char *const names[] = {"start_indices", "limit_indices", "strides"};
    uint32_t x = inf_tflite_data(s, 0);
    struct inf_shape shape = inf_build_known_shape(&s->b, x);
    struct inf_build_ints lists[3];
    for (uint32_t i = 0; i < 3; i++) {
        lists[i] = inf_tflite_option_2_list(s, INF_TFLITE_OPTIONS_2_SLICE, i, names[i]);
        check_count(s, &lists[i], names[i], shape.rank);
    }
    for (int32_t axis = 0; inf_build_ok(&s->b) && axis < shape.rank; axis++) {
        int64_t begin = lists[0].values[axis], end = lists[1].values[axis];
        int64_t step = lists[2].values[axis];
        if (begin < 0 || end < begin || end > shape.dims[axis] || step < 1)
            inf_build_fail(&s->b, INF_INVALID, "takes %lld to %lld by %lld of %lld elements",
                           (long long)begin, (long long)end, (long long)step,
                           (long long)shape.dims[axis]);
        else if (begin > 0 || end < shape.dims[axis] || step > 1)
            x = inf_build_slice(&s->b, x, axis, begin, end, step);
    }
    s->outputs[0] = x;
}

// Adds x clamped to 0 .. most, both i32.
static uint32_t add_clamped(struct inf_builder *b, uint32_t x, int64_t most)
{
    x = inf_build_binary_number(b, INF_BINARY_MIN, x, (double)most);
    return inf_build_binary_number(b, INF_BINARY_MAX, x, 0);
}

// A slice whose start a run computes. Its size is known, so it gathers along each axis. The start
// is moved so that the slice lies within the operand.
static void lower_dynamic_slice(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_data(s, 0);
    struct inf_shape shape = inf_build_known_shape(b, x);
    struct inf_build_ints sizes =
        inf_tflite_option_2_list(s, INF_TFLITE_OPTIONS_2_DYNAMIC_SLICE, 0, "slice_sizes");
    check_count(s, &sizes, "slice_sizes", shape.rank);
    if (s->op->inputs.count != 1 + (uint32_t)shape.rank)
        inf_build_fail(b, INF_INVALID, "has %u inputs for %d axes", s->op->inputs.count,
                       shape.rank);
    for (int32_t axis = 0; inf_build_ok(b) && axis < shape.rank; axis++) {
        int64_t size = sizes.values[axis], room = shape.dims[axis] - size;
        if (size < 0 || room < 0) {
            inf_build_fail(b, INF_INVALID, "takes %lld of %lld elements", (long long)size,
                           (long long)shape.dims[axis]);
            return;
        }
        if (room == 0)
            continue;
        uint32_t start = inf_build_reshape(b, inf_tflite_list(s, 1 + (uint32_t)axis), NULL, 0);
        uint32_t indices =
            inf_build_add(b, inf_build_iota(b, INF_DTYPE_I32, size), add_clamped(b, start, room));
        x = inf_build_gather(b, x, indices, axis);
    }
    s->outputs[0] = x;
}

// Adds the numbers 0, 1, ... along one axis of a tensor of rank `rank`. Its other axes have size 1.
static uint32_t add_ramp(struct inf_builder *b, int64_t count, int32_t axis, int32_t rank)
{
    int64_t dims[INF_LIMIT_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    dims[axis] = count;
    return inf_build_reshape(b, inf_build_iota(b, INF_DTYPE_I32, count), dims, rank);
}

static void lower_iota(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    struct inf_shape shape = find_result_shape(s);
    enum inf_dtype dtype = inf_tflite_type_info(inf_tflite_output_tensor(s, 0)->type).dtype;
    int64_t wanted =
        inf_tflite_option_2_int(s, INF_TFLITE_OPTIONS_2_IOTA, INF_FB_I64, 0, "iota_dimension");
    int32_t axis = inf_build_axis(b, wanted, shape.rank);
    if (!inf_build_ok(b))
        return;
    uint32_t full = inf_build_list(b, shape.dims, (uint32_t)shape.rank);
    uint32_t ramp = inf_build_cast(b, add_ramp(b, shape.dims[axis], axis, shape.rank), dtype);
    s->outputs[0] = inf_build_broadcast(b, ramp, full);
}

// --- products ---

// The axes of one operand of a product, by what they are.
struct product_axes {
    struct inf_shape shape;
    struct inf_build_ints batch, contracted;
    int64_t perm[INF_LIMIT_RANK];
    int64_t batch_size, free_size, contracted_size; // products of dimensions
};

// Reads the axes of input `index`, in the order batch, free, contracted, or, if `contracted_first`,
// batch, contracted, free.
static struct product_axes read_product_axes(struct inf_tflite_scope *s, uint32_t index,
                                             bool contracted_first)
{
    static const char *const names[] = {"lhs_batching_dimensions", "rhs_batching_dimensions",
                                        "lhs_contracting_dimensions", "rhs_contracting_dimensions"};
    struct product_axes axes = {.batch_size = 1, .free_size = 1, .contracted_size = 1};
    int32_t count = 0;
    axes.shape = inf_build_known_shape(&s->b, inf_tflite_data(s, index));
    axes.batch = inf_tflite_option_2_list(s, INF_TFLITE_OPTIONS_2_DOT_GENERAL, index, names[index]);
    axes.contracted =
        inf_tflite_option_2_list(s, INF_TFLITE_OPTIONS_2_DOT_GENERAL, 2 + index, names[2 + index]);
    check_axes(s, &axes.batch, names[index], axes.shape.rank);
    check_axes(s, &axes.contracted, names[2 + index], axes.shape.rank);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < axes.batch.count; i++) {
        if (has_value(&axes.contracted, axes.batch.values[i]))
            inf_build_fail(&s->b, INF_INVALID, "axis %lld is batch and contracted",
                           (long long)axes.batch.values[i]);
        axes.batch_size *= axes.shape.dims[axes.batch.values[i]];
        axes.perm[count++] = axes.batch.values[i];
    }
    for (int turn = 0; inf_build_ok(&s->b) && turn < 2; turn++) {
        if ((turn == 0) == contracted_first) {
            for (uint32_t i = 0; i < axes.contracted.count; i++)
                axes.perm[count++] = axes.contracted.values[i];
            continue;
        }
        for (int64_t axis = 0; axis < axes.shape.rank; axis++)
            if (!has_value(&axes.batch, axis) && !has_value(&axes.contracted, axis)) {
                axes.free_size *= axes.shape.dims[axis];
                axes.perm[count++] = axis;
            }
    }
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < axes.contracted.count; i++)
        axes.contracted_size *= axes.shape.dims[axes.contracted.values[i]];
    return axes;
}

// A product of matrices [batch,m,k] and [batch,k,n], after axes have been moved and joined.
static void lower_dot_general(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_data(s, 0), y = inf_tflite_data(s, 1);
    struct product_axes left = read_product_axes(s, 0, false);
    struct product_axes right = read_product_axes(s, 1, true);
    struct inf_shape shape = find_result_shape(s);
    if (inf_build_ok(b) &&
        (left.batch_size != right.batch_size || left.contracted_size != right.contracted_size))
        inf_build_fail(b, INF_INVALID, "joins axes of %lld and %lld, and %lld and %lld elements",
                       (long long)left.batch_size, (long long)right.batch_size,
                       (long long)left.contracted_size, (long long)right.contracted_size);
    if (!inf_build_ok(b))
        return;
    x = inf_build_transpose(b, x, left.perm, left.shape.rank);
    y = inf_build_transpose(b, y, right.perm, right.shape.rank);
    x = inf_build_reshape(b, x, (int64_t[]){left.batch_size, left.free_size, left.contracted_size},
                          3);
    y = inf_build_reshape(b, y, (int64_t[]){left.batch_size, left.contracted_size, right.free_size},
                          3);
    s->outputs[0] = inf_build_reshape(b, inf_build_matmul(b, x, y), shape.dims, shape.rank);
}

// --- gathering ---

// The options of a gather, and the shapes that follow from them.
struct gather {
    struct inf_build_ints offset, collapsed, map, sizes;
    struct inf_shape x, y; // operand and result
    uint32_t starts;       // [batch..., as many as `map` has], i32
};

static struct gather read_gather(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    const enum inf_tflite_options_2 type = INF_TFLITE_OPTIONS_2_GATHER;
    struct gather g = {.x = inf_build_known_shape(b, inf_tflite_data(s, 0)),
                       .y = find_result_shape(s),
                       .starts = inf_tflite_list(s, 1)};
    int64_t perm[INF_LIMIT_RANK];
    g.offset = inf_tflite_option_2_list(s, type, 0, "offset_dims");
    g.collapsed = inf_tflite_option_2_list(s, type, 1, "collapsed_slice_dims");
    g.map = inf_tflite_option_2_list(s, type, 2, "start_index_map");
    g.sizes = inf_tflite_option_2_list(s, type, 4, "slice_sizes");
    int64_t last = inf_tflite_option_2_int(s, type, INF_FB_I64, 3, "index_vector_dim");
    int32_t rank = inf_build_rank(b, g.starts);
    check_count(s, &g.sizes, "slice_sizes", g.x.rank);
    check_axes(s, &g.offset, "offset_dims", g.y.rank);
    check_axes(s, &g.collapsed, "collapsed_slice_dims", g.x.rank);
    check_axes(s, &g.map, "start_index_map", g.x.rank);
    check_count(s, &g.offset, "offset_dims", g.x.rank - (int64_t)g.collapsed.count);
    if (inf_build_ok(b) &&
        (last < 0 || last > rank || rank >= INF_LIMIT_RANK || g.y.rank >= INF_LIMIT_RANK))
        inf_build_fail(b, INF_UNSUPPORTED, "option index_vector_dim is %lld of %d axes, for %d",
                       (long long)last, rank, g.y.rank);
    for (int32_t i = 0; inf_build_ok(b) && i < g.x.rank; i++)
        if (g.sizes.values[i] < 0 || g.sizes.values[i] > g.x.dims[i])
            inf_build_fail(b, INF_INVALID, "takes %lld of %lld elements",
                           (long long)g.sizes.values[i], (long long)g.x.dims[i]);
    if (!inf_build_ok(b))
        return g;
    if (last == rank) {
        g.starts = inf_build_expand_dims(b, g.starts, &last, 1);
        rank++;
    }
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i == rank - 1 ? last : i < last ? i : i + 1;
    g.starts = inf_build_transpose(b, g.starts, perm, rank);
    if (inf_build_known_dim(b, g.starts, -1) != (int64_t)g.map.count ||
        rank - 1 + (int64_t)g.offset.count != g.y.rank)
        inf_build_fail(b, INF_INVALID, "its indices do not fit start_index_map and the result");
    return g;
}

// Adds the index along axis `axis` of the operand of each element of the result: the start of its
// slice plus the place in the slice. `offset` counts the axes of slices that were used so far.
static uint32_t add_gather_index(struct inf_builder *b, const struct gather *g, int32_t axis,
                                 uint32_t *offset)
{
    uint32_t index = inf_build_scalar(b, INF_DTYPE_I32, 0);
    for (uint32_t i = 0; i < g->map.count; i++) {
        int64_t dims[INF_LIMIT_RANK];
        if (g->map.values[i] != axis)
            continue;
        for (int32_t j = 0; j < g->y.rank; j++)
            dims[j] = has_value(&g->offset, j) ? 1 : g->y.dims[j];
        uint32_t start =
            inf_build_slice(b, g->starts, inf_build_rank(b, g->starts) - 1, i, i + 1, 1);
        start = add_clamped(b, start, g->x.dims[axis] - g->sizes.values[axis]);
        index = inf_build_reshape(b, start, dims, g->y.rank);
    }
    if (has_value(&g->collapsed, axis))
        return index;
    int32_t at = (int32_t)g->offset.values[(*offset)++];
    return inf_build_add(b, index, add_ramp(b, g->sizes.values[axis], at, g->y.rank));
}

static void lower_gather(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t parts[INF_LIMIT_RANK], offset = 0, x = inf_tflite_data(s, 0);
    struct gather g = read_gather(s);
    const int64_t last[] = {-1};
    if (!inf_build_ok(b))
        return;
    uint32_t full = inf_build_list(b, g.y.dims, (uint32_t)g.y.rank);
    for (int32_t axis = 0; axis < g.x.rank; axis++) {
        uint32_t index = add_gather_index(b, &g, axis, &offset);
        parts[axis] = inf_build_expand_dims(b, inf_build_broadcast(b, index, full), last, 1);
    }
    uint32_t indices = inf_build_concat(b, parts, (uint32_t)g.x.rank, g.y.rank);
    struct inf_build_node node = inf_build_describe(INF_OP_GATHER_ND, x, indices, INF_VALUE_NONE);
    s->outputs[0] = inf_build_value(b, &node);
}

#define OP(name, lower, least, most)                                                               \
    {                                                                                              \
        INF_TFLITE_STABLEHLO_##name, NULL, lower, least, most, 1, INF_TFLITE_MODE_MOVE, 0, 0       \
    }

static const struct inf_tflite_op ops[] = {
    OP(CLAMP, lower_clamp, 3, 3),
    OP(RESHAPE, lower_reshape, 1, 1),
    OP(TRANSPOSE, lower_transpose, 1, 1),
    OP(CONCATENATE, lower_concatenate, 1, INF_LIMIT_NODE_INPUTS),
    OP(BROADCAST_IN_DIM, lower_broadcast_in_dim, 1, 1),
    OP(SLICE, lower_slice, 1, 1),
    OP(DYNAMIC_SLICE, lower_dynamic_slice, 1, INF_LIMIT_RANK + 1),
    OP(IOTA, lower_iota, 0, 0),
    OP(GATHER, lower_gather, 2, 2),
    {INF_TFLITE_STABLEHLO_DOT_GENERAL, NULL, lower_dot_general, 2, 2, 1, INF_TFLITE_MODE_REAL, 0,
     0},
};

const struct inf_tflite_op_table inf_tflite_ops_stablehlo = {ops, INF_ARRAY_LENGTH(ops)};
