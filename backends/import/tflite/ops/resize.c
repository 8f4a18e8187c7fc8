// SPDX-License-Identifier: Apache-2.0
// Resizing of pictures.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

// Adds a resize node. `align` is the number of the option align_corners; the next one is
// half_pixel_centers.
static void emit_resize(struct inf_tflite_scope *s, enum inf_resize_kind kind, uint32_t align)
{
    struct inf_build_node node = inf_build_describe(INF_OP_RESIZE, inf_tflite_data(s, 0),
                                                    inf_tflite_list(s, 1), INF_VALUE_NONE);
    node.attrs.resize.kind = kind;
    node.attrs.resize.align_corners = inf_tflite_option_bool(s, align, "align_corners");
    node.attrs.resize.half_pixel_centers =
        inf_tflite_option_bool(s, align + 1, "half_pixel_centers");
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_bilinear(struct inf_tflite_scope *s)
{
    emit_resize(s, INF_RESIZE_BILINEAR, 2);
}

static void lower_nearest(struct inf_tflite_scope *s)
{
    emit_resize(s, INF_RESIZE_NEAREST, 0);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_RESIZE_BILINEAR, NULL, lower_bilinear, 2, 2, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_RESIZE_BILINEAR, 0},
    {INF_TFLITE_RESIZE_NEAREST_NEIGHBOR, NULL, lower_nearest, 2, 2, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_RESIZE_NEAREST, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_resize = {ops, INF_ARRAY_LENGTH(ops)};
