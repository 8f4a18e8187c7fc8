// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of pictures.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/window.h"

static uint32_t add_pool(struct inf_tflite_scope *s, uint32_t x, enum inf_pool_kind kind)
{
    struct inf_tflite_window window =
        inf_tflite_window_read(s, &(struct inf_tflite_window_fields){.stride_w = 1, .stride_h = 2});
    struct inf_build_node node =
        inf_build_describe(INF_OP_POOL2D, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.pool2d.kind = kind;
    node.attrs.pool2d.kernel_w = inf_tflite_window_size(s, 3, "filter_width", 0);
    node.attrs.pool2d.kernel_h = inf_tflite_window_size(s, 4, "filter_height", 0);
    node.attrs.pool2d.stride_h = window.stride[0];
    node.attrs.pool2d.stride_w = window.stride[1];
    node.attrs.pool2d.padding = window.padding;
    return inf_build_value(&s->b, &node);
}

static void lower_pool(struct inf_tflite_scope *s)
{
    uint32_t y = add_pool(s, inf_tflite_data(s, 0), (enum inf_pool_kind)s->row->kind);
    s->outputs[0] = inf_tflite_activate(s, y, 5);
}

// The square root of the mean of squares.
static void lower_l2_pool(struct inf_tflite_scope *s)
{
    uint32_t squares = inf_build_unary(&s->b, INF_UNARY_SQUARE, inf_tflite_data(s, 0));
    uint32_t mean = add_pool(s, squares, INF_POOL_AVERAGE);
    s->outputs[0] = inf_tflite_activate(s, inf_build_unary(&s->b, INF_UNARY_SQRT, mean), 5);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_MAX_POOL_2D, NULL, lower_pool, 1, 1, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_POOL_2D, INF_POOL_MAX},
    {INF_TFLITE_AVERAGE_POOL_2D, NULL, lower_pool, 1, 1, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_POOL_2D, INF_POOL_AVERAGE},
    {INF_TFLITE_L2_POOL_2D, NULL, lower_l2_pool, 1, 1, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_POOL_2D, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_pool = {ops, INF_ARRAY_LENGTH(ops)};
