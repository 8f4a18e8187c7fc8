// SPDX-License-Identifier: Apache-2.0
// Operators that search, sort, count, select and scatter elements.
#include <math.h>
#include <string.h>

#include "backends/import/tfjs/lower.h"
#include "backends/import/tfjs/op_table.h"

static enum inf_code lower_where(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_NONZERO, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

// Sets *out to the node's input number `input`, or to the f32 constant `absent` if the node has no
// such input.
static enum inf_code add_threshold(struct inf_tfjs_scope *scope, uint32_t input, double absent,
                                   uint32_t *out, struct inf_error *err)
{
    if (input >= scope->input_count)
        return inf_tfjs_add_scalar(scope, INF_DTYPE_F32, absent, out, err);
    *out = scope->inputs[input];
    return INF_OK;
}

// Lowers NonMaxSuppression. V2 and V3 return indices; V4 returns indices and count; V5 returns
// indices, scores and count.
static enum inf_code lower_nms(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t made[3], *values, inputs[6];
    int32_t version = scope->op->kind;
    memcpy(inputs, scope->inputs, 3 * sizeof *inputs);
    for (uint32_t i = 3; i < 6; i++)
        INF_TRY(add_threshold(scope, i, i == 4 ? -INFINITY : 0, &inputs[i], err));
    struct inf_build_node call = inf_build_describe_list(INF_OP_NMS, inputs, 6);
    call.output_count = 3;
    if (version >= 4)
        INF_TRY(
            inf_tfjs_attr_bool(scope->node, "pad_to_max_output_size", &call.attrs.nms.pad, err));
    INF_TRY(inf_tfjs_emit(scope, &call, made, err));
    INF_TRY(inf_tfjs_outputs(scope, version == 5 ? 3 : version == 4 ? 2 : 1, &values, err));
    values[0] = made[0];
    if (version == 4)
        values[1] = made[2];
    if (version == 5) {
        values[1] = made[1];
        values[2] = made[2];
    }
    return INF_OK;
}

static enum inf_code lower_unique(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t made[4], *values;
    struct inf_build_node call = inf_build_describe_list(INF_OP_UNIQUE, scope->inputs, 1);
    call.output_count = 4;
    if (scope->input_count > 1) {
        struct inf_tfjs_ints axis;
        INF_TRY(inf_tfjs_const_ints(scope, 1, "the axis", &axis, err));
        if (axis.count > 0)
            INF_TRY(inf_tfjs_const_axis(scope, 1, &call.attrs.unique.axis, err));
    }
    INF_TRY(inf_tfjs_emit(scope, &call, made, err));
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    values[0] = made[0];
    values[1] = made[1];
    return INF_OK;
}

static enum inf_code lower_list_diff(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values;
    struct inf_build_node call =
        inf_build_describe(INF_OP_LIST_DIFF, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    call.output_count = 2;
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    return inf_tfjs_emit(scope, &call, values, err);
}

static enum inf_code lower_top_k(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values;
    struct inf_build_node call =
        inf_build_describe(INF_OP_TOPK, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    call.output_count = 2;
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    return inf_tfjs_emit(scope, &call, values, err);
}

// Lowers LowerBound and UpperBound.
static enum inf_code lower_bound(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe(INF_OP_SEARCH_SORTED, scope->inputs[0],
                                                    scope->inputs[1], INF_VALUE_NONE);
    call.attrs.search_sorted.right = scope->op->kind != 0;
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_bincount(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_BINCOUNT, scope->inputs[0], scope->inputs[1], scope->inputs[2]);
    INF_TRY(inf_tfjs_attr_bool(scope->node, "binary_output", &call.attrs.bincount.binary, err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_one_hot(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe_list(INF_OP_ONE_HOT, scope->inputs, 4);
    INF_TRY(inf_tfjs_attr_int(scope->node, "axis", -INF_LIMIT_RANK, INF_LIMIT_RANK - 1,
                              &call.attrs.one_hot.axis, err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_cumulate(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_CUMULATE, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_attrs_cumulate *attrs = &call.attrs.cumulate;
    attrs->kind = (enum inf_cumulate_kind)scope->op->kind;
    INF_TRY(inf_tfjs_const_axis(scope, 1, &attrs->axis, err));
    INF_TRY(inf_tfjs_attr_bool(scope->node, "exclusive", &attrs->exclusive, err));
    INF_TRY(inf_tfjs_attr_bool(scope->node, "reverse", &attrs->reverse, err));
    return inf_tfjs_finish(scope, &call, err);
}

// Reads the number of diagonals to keep below or above the main one. A negative number keeps all.
static enum inf_code read_diagonals(struct inf_tfjs_scope *scope, uint32_t input, int32_t all,
                                    int32_t sign, int32_t *out, struct inf_error *err)
{
    struct inf_tfjs_ints number;
    INF_TRY(inf_tfjs_const_ints(scope, input, "the number of diagonals", &number, err));
    if (number.count != 1)
        return inf_tfjs_fail(scope, err, INF_INVALID, "input %u has %u elements, wanted 1", input,
                             number.count);
    *out = number.values[0] < 0 || number.values[0] >= INT32_MAX ? all
                                                                 : sign * (int32_t)number.values[0];
    return INF_OK;
}

static enum inf_code lower_band(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_BAND, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(read_diagonals(scope, 1, INT32_MIN, -1, &call.attrs.band.low, err));
    INF_TRY(read_diagonals(scope, 2, INT32_MAX, 1, &call.attrs.band.high, err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_gather_nd(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_GATHER_ND, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    INF_TRY(inf_tfjs_attr_int(scope->node, "batch_dims", 0, INF_LIMIT_RANK - 1,
                              &call.attrs.gather_nd.batch_dims, err));
    return inf_tfjs_finish(scope, &call, err);
}

// Sets *out to a tensor whose shape is given by a value and whose elements are all `value` (a
// scalar).
static enum inf_code emit_fill(struct inf_tfjs_scope *scope, uint32_t shape, uint32_t value,
                               uint32_t *out, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe(INF_OP_FILL, shape, value, INF_VALUE_NONE);
    return inf_tfjs_emit(scope, &call, out, err);
}

// Lowers ScatterNd. The inputs are indices, updates, shape. Several updates of one position are
// summed.
static enum inf_code lower_scatter_nd(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t zero, zeros;
    INF_TRY(inf_tfjs_add_scalar(scope, inf_tfjs_input(scope, 1)->dtype, 0, &zero, err));
    INF_TRY(emit_fill(scope, scope->inputs[2], zero, &zeros, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_SCATTER_ND, zeros, scope->inputs[0], scope->inputs[1]);
    call.attrs.scatter_nd.kind = INF_SCATTER_ADD;
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_scatter_update(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_SCATTER_ND, scope->inputs[0], scope->inputs[1], scope->inputs[2]);
    return inf_tfjs_finish(scope, &call, err);
}

// Reshapes indices [n] or [] to [n,1], and repeats a single value for each of them.
static enum inf_code expand_sparse(struct inf_tfjs_scope *scope, uint32_t *indices,
                                   uint32_t *values, struct inf_error *err)
{
    int64_t column[] = {-1, 1};
    int32_t rank = inf_tfjs_input(scope, 0)->shape.rank;
    uint32_t shape;
    if (rank < 0)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "the rank of its indices is not known");
    if (rank < 2) {
        INF_TRY(inf_tfjs_add_ints(scope, column, 2, &shape, err));
        struct inf_build_node reshape =
            inf_build_describe(INF_OP_RESHAPE, *indices, shape, INF_VALUE_NONE);
        INF_TRY(inf_tfjs_emit(scope, &reshape, indices, err));
    }
    if (inf_tfjs_input(scope, 2)->shape.rank != 0)
        return INF_OK;
    uint32_t one, two;
    struct inf_build_node size =
        inf_build_describe(INF_OP_SHAPE, *indices, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &size, &shape, err));
    INF_TRY(inf_tfjs_add_ints(scope, (int64_t[]){0}, 1, &one, err));
    INF_TRY(inf_tfjs_add_ints(scope, (int64_t[]){1}, 1, &two, err));
    struct inf_build_node first = inf_build_describe(INF_OP_SLICE, shape, one, two);
    first.inputs[3] = two;
    first.input_count = 4;
    INF_TRY(inf_tfjs_emit(scope, &first, &shape, err));
    return emit_fill(scope, shape, *values, values, err);
}

// Lowers SparseToDense. The inputs are indices, shape, values, default.
static enum inf_code lower_sparse_to_dense(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t indices = scope->inputs[0], values = scope->inputs[2], background;
    INF_TRY(expand_sparse(scope, &indices, &values, err));
    INF_TRY(emit_fill(scope, scope->inputs[1], scope->inputs[3], &background, err));
    struct inf_build_node call = inf_build_describe(INF_OP_SCATTER_ND, background, indices, values);
    return inf_tfjs_finish(scope, &call, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Where", lower_where, 1, 1, 0},
    {"NonMaxSuppressionV2", lower_nms, 3, 4, 2},
    {"NonMaxSuppressionV3", lower_nms, 3, 5, 3},
    {"NonMaxSuppressionV4", lower_nms, 3, 5, 4},
    {"NonMaxSuppressionV5", lower_nms, 3, 6, 5},
    {"Unique", lower_unique, 1, 1, 0},
    {"UniqueV2", lower_unique, 2, 2, 0},
    {"ListDiff", lower_list_diff, 2, 2, 0},
    {"TopKV2", lower_top_k, 2, 2, 0},
    {"LowerBound", lower_bound, 2, 2, false},
    {"UpperBound", lower_bound, 2, 2, true},
    {"Bincount", lower_bincount, 3, 3, 0},
    {"DenseBincount", lower_bincount, 3, 3, 0},
    {"OneHot", lower_one_hot, 4, 4, 0},
    {"Cumsum", lower_cumulate, 2, 2, INF_CUMULATE_SUM},
    {"Cumprod", lower_cumulate, 2, 2, INF_CUMULATE_PROD},
    {"MatrixBandPart", lower_band, 3, 3, 0},
    {"GatherNd", lower_gather_nd, 2, 2, 0},
    {"ScatterNd", lower_scatter_nd, 3, 3, 0},
    {"TensorScatterUpdate", lower_scatter_update, 3, 3, 0},
    {"SparseToDense", lower_sparse_to_dense, 3, 4, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_select = {ops, INF_ARRAY_LENGTH(ops)};
