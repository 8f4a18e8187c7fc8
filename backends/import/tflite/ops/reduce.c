// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, positions of extremes, and running sums.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

// Reads the axes that input 1 lists, resolved against the rank of x and each once.
static struct inf_ints read_axes(struct inf_tflite_scope *s, uint32_t x)
{
    struct inf_ints axes = {0};
    struct inf_build_ints list = inf_build_const_ints(&s->b, inf_tflite_list(s, 1), "the axes");
    int32_t rank = inf_build_rank(&s->b, x);
    uint32_t seen = 0;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < list.count; i++) {
        int32_t axis = inf_build_axis(&s->b, list.values[i], rank);
        if (inf_build_ok(&s->b) && !(seen & 1u << axis))
            axes.values[axes.count++] = axis;
        seen |= 1u << axis;
    }
    return axes;
}

// Axes that are not neighbours are reduced one group of neighbours after the other, because devices
// have kernels for neighbours only. The last axes come first: the others keep their numbers.
static void lower_reduce(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0), mask = 0;
    struct inf_ints axes = read_axes(s, x);
    bool keep_dims = inf_tflite_option_bool(s, 0, "keep_dims");
    for (int32_t i = 0; i < axes.count; i++)
        mask |= 1u << axes.values[i];
    for (int32_t axis = INF_LIMIT_RANK - 1; inf_build_ok(&s->b) && axis >= 0; axis--) {
        struct inf_ints group = {0};
        while (axis >= 0 && (mask >> axis & 1) != 0)
            group.values[group.count++] = axis--;
        if (group.count > 0)
            x = inf_build_reduce(&s->b, (enum inf_reduce_kind)s->row->kind, x, &group, keep_dims);
    }
    s->outputs[0] = x;
}

static void lower_arg(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0);
    struct inf_build_node node = inf_build_describe(INF_OP_ARG, x, INF_VALUE_NONE, INF_VALUE_NONE);
    int64_t axis = inf_build_const_int(&s->b, inf_tflite_list(s, 1), "the axis");
    node.attrs.arg.kind = (enum inf_arg_kind)s->row->kind;
    node.attrs.arg.axis = inf_build_axis(&s->b, axis, inf_build_rank(&s->b, x));
    node.attrs.arg.dtype = inf_tflite_option_dtype(s, 0, "output_type", INF_TFLITE_TYPE_FLOAT32);
    // The option has the default FLOAT32, which stands for the type of the output.
    if (node.attrs.arg.dtype == INF_DTYPE_F32)
        node.attrs.arg.dtype = inf_tflite_type_info(inf_tflite_output_tensor(s, 0)->type).dtype;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_cumsum(struct inf_tflite_scope *s)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_CUMULATE, inf_tflite_data(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.cumulate.axis =
        (int32_t)inf_build_const_int(&s->b, inf_tflite_list(s, 1), "the axis");
    node.attrs.cumulate.exclusive = inf_tflite_option_bool(s, 0, "exclusive");
    node.attrs.cumulate.reverse = inf_tflite_option_bool(s, 1, "reverse");
    s->outputs[0] = inf_build_value(&s->b, &node);
}

#define REDUCE(name, kind, mode)                                                                   \
    {                                                                                              \
        INF_TFLITE_##name, NULL, lower_reduce, 2, 2, 1, INF_TFLITE_MODE_##mode,                    \
            INF_TFLITE_OPTIONS_REDUCER, INF_REDUCE_##kind                                          \
    }

static const struct inf_tflite_op ops[] = {
    REDUCE(MEAN, MEAN, REAL),
    REDUCE(SUM, SUM, REAL),
    REDUCE(REDUCE_PROD, PROD, REAL),
    REDUCE(REDUCE_MAX, MAX, REAL),
    REDUCE(REDUCE_MIN, MIN, REAL),
    REDUCE(REDUCE_ANY, ANY, REAL),
    REDUCE(REDUCE_ALL, ALL, REAL),
    {INF_TFLITE_ARG_MAX, NULL, lower_arg, 2, 2, 1, INF_TFLITE_MODE_MOVE, INF_TFLITE_OPTIONS_ARG_MAX,
     INF_ARG_MAX},
    {INF_TFLITE_ARG_MIN, NULL, lower_arg, 2, 2, 1, INF_TFLITE_MODE_MOVE, INF_TFLITE_OPTIONS_ARG_MIN,
     INF_ARG_MIN},
    {INF_TFLITE_CUMSUM, NULL, lower_cumsum, 2, 2, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_CUMSUM, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_reduce = {ops, INF_ARRAY_LENGTH(ops)};
