// SPDX-License-Identifier: Apache-2.0
// Operators without tensor inputs: constants, fills, ranges, identity matrices.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/narrow.h"
#include "backends/import/onnx/op_table.h"

static void lower_constant(struct inf_onnx_scope *s)
{
    struct inf_build_ints ints;
    int64_t *data;
    if (inf_onnx_has_attr(s, "value")) {
        s->outputs[0] = inf_onnx_attr_tensor(s, "value");
    } else if (inf_onnx_has_attr(s, "value_float")) {
        float number = inf_onnx_attr_float(s, "value_float", 0);
        s->outputs[0] = inf_build_scalar(&s->b, INF_DTYPE_F32, (double)number);
    } else if (inf_onnx_has_attr(s, "value_int")) {
        const struct inf_onnx_attr *attr = inf_onnx_find_attr(s, "value_int");
        struct inf_pb_field field;
        inf_onnx_field(attr->body, 3, &field);
        s->outputs[0] = inf_build_const(&s->b, INF_DTYPE_I64, &(struct inf_shape){0}, &data);
        if (data != NULL)
            *data = (int64_t)field.value;
    } else if (inf_onnx_attr_ints(s, "value_ints", &ints)) {
        s->outputs[0] = inf_build_const(&s->b, INF_DTYPE_I64, &INF_SHAPE(ints.count), &data);
        if (data != NULL && ints.count > 0)
            memcpy(data, ints.values, ints.count * sizeof *data);
    } else if (inf_onnx_has_attr(s, "value_floats")) {
        s->outputs[0] = inf_onnx_attr_floats(s, "value_floats");
    } else {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has no value that is built (%s)",
                       s->node->attr_count > 0 ? s->node->attrs[0].name : "no attribute");
    }
}

static void lower_constant_of_shape(struct inf_onnx_scope *s)
{
    uint32_t given = inf_onnx_attr_tensor(s, "value"), number = inf_onnx_narrow_value(given);
    if (number == INF_VALUE_NONE)
        number = inf_build_scalar(&s->b, INF_DTYPE_F32, 0);
    else if (inf_build_rank(&s->b, number) > 0)
        number = inf_build_reshape(&s->b, number, NULL, 0);
    s->outputs[0] =
        inf_build_fill(&s->b, inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_I32), number);
    if (inf_onnx_is_narrow(given))
        s->outputs[0] = inf_onnx_narrow_wrap(s, s->outputs[0], inf_onnx_narrow_type(given));
}

static void lower_range(struct inf_onnx_scope *s)
{
    struct inf_build_node node;
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]), work = dtype;
    uint32_t ends[3];
    if (dtype == INF_DTYPE_I16 || dtype == INF_DTYPE_I8)
        work = INF_DTYPE_I32;
    else if (dtype == INF_DTYPE_F16 || dtype == INF_DTYPE_BF16)
        work = INF_DTYPE_F32;
    for (uint32_t i = 0; i < 3; i++) {
        ends[i] = inf_build_cast(&s->b, s->inputs[i], work);
        if (inf_build_ok(&s->b) && inf_build_rank(&s->b, ends[i]) > 0)
            ends[i] = inf_build_reshape(&s->b, ends[i], NULL, 0);
    }
    node = inf_build_describe_list(INF_OP_RANGE, ends, 3);
    s->outputs[0] = inf_build_cast(&s->b, inf_build_value(&s->b, &node), dtype);
}

static void lower_eye_like(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    int32_t type = inf_onnx_attr_int(s, "dtype", 0), shift = inf_onnx_attr_int(s, "k", 0);
    int32_t rank = inf_build_rank(&s->b, x);
    enum inf_dtype dtype = type != 0 ? inf_onnx_dtype(type) : inf_build_dtype(&s->b, x);
    if (inf_build_ok(&s->b) && (rank != 2 || dtype == INF_DTYPE_NONE))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "rank %d, dtype %s", rank, inf_onnx_type_name(type));
    if (!inf_build_ok(&s->b))
        return;
    uint32_t one = inf_build_compare(&s->b, INF_COMPARE_EQUAL, inf_onnx_add_diagonals(s, x),
                                     inf_build_scalar(&s->b, INF_DTYPE_I32, shift));
    s->outputs[0] = inf_build_cast(&s->b, one, dtype);
}

static const struct inf_onnx_op ops[] = {
    {"Constant", lower_constant, 0, 0, 1, 0},
    {"ConstantOfShape", lower_constant_of_shape, 1, 1, 1, 0},
    {"Range", lower_range, 3, 3, 1, 0},
    {"EyeLike", lower_eye_like, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_source = {ops, INF_ARRAY_LENGTH(ops)};
