// SPDX-License-Identifier: Apache-2.0
// Operators that sample images by position (grids, regions, boxes), and window functions for
// signals.
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/volume.h"

// The most rows of a NonMaxSuppression for which memory is reserved: 16 bytes each.
#define PADDED_ROWS_MAX (1 << 22)

static int find_text(struct inf_onnx_scope *s, const char *name, const char *const *texts,
                     int count)
{
    const char *text = inf_onnx_attr_text(s, name, texts[0]);
    for (int i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0)
            return i;
    inf_build_fail(&s->b, INF_UNSUPPORTED, "attribute '%s' is '%.40s'", name, text);
    return 0;
}

static void sample_volume(struct inf_onnx_scope *s, enum inf_sample_kind kind,
                          enum inf_border_mode border)
{
    const struct inf_onnx_volume what = {kind == INF_SAMPLE_LINEAR, border == INF_BORDER_EDGE,
                                         inf_onnx_attr_int(s, "align_corners", 0) != 0};
    if (kind == INF_SAMPLE_CUBIC || border == INF_BORDER_REFLECT)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "cubic or reflected volumes are not built");
    s->outputs[0] = inf_onnx_sample_volume(s, s->inputs[0], s->inputs[1], &what);
}

static void lower_grid_sample(struct inf_onnx_scope *s)
{
    // Each mode has two names: the name since opset 20, and the older one.
    static const char *const modes[] = {"linear",  "bilinear", "nearest",
                                        "nearest", "cubic",    "bicubic"};
    static const enum inf_sample_kind kinds[] = {INF_SAMPLE_LINEAR, INF_SAMPLE_NEAREST,
                                                 INF_SAMPLE_CUBIC};
    static const char *const borders[] = {"zeros", "border", "reflection"};
    static const enum inf_border_mode border_modes[] = {INF_BORDER_CONSTANT, INF_BORDER_EDGE,
                                                        INF_BORDER_REFLECT};
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    if (inf_build_ok(&s->b) && rank != 4 && rank != 5)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "x has rank %d, wanted 4 or 5", rank);
    if (rank == 5) {
        sample_volume(s, kinds[find_text(s, "mode", modes, 6) / 2],
                      border_modes[find_text(s, "padding_mode", borders, 3)]);
        return;
    }
    const uint32_t inputs[] = {inf_build_channels_last(&s->b, s->inputs[0]), s->inputs[1]};
    struct inf_build_node node = inf_build_describe_list(INF_OP_GRID_SAMPLE, inputs, 2);
    node.attrs.grid_sample.kind = kinds[find_text(s, "mode", modes, 6) / 2];
    node.attrs.grid_sample.border = border_modes[find_text(s, "padding_mode", borders, 3)];
    node.attrs.grid_sample.align_corners = inf_onnx_attr_int(s, "align_corners", 0) != 0;
    s->outputs[0] = inf_build_channels_first(&s->b, inf_build_value(&s->b, &node));
}

// Adds the coordinates of `size` (a value [1], i32) pixels along axis `axis`, as a tensor of rank
// `axes` whose other axes have size 1. Coordinates run from -1 to 1: from edge to edge, so that
// pixels are at their centres, or with align_corners from the first pixel to the last.
static uint32_t add_positions(struct inf_onnx_scope *s, uint32_t size, enum inf_dtype dtype,
                              int32_t axis, int32_t axes)
{
    bool corners = inf_onnx_attr_int(s, "align_corners", 0) != 0;
    int64_t shape[3] = {1, 1, 1};
    uint32_t end = inf_build_reshape(&s->b, size, NULL, 0);
    uint32_t at = inf_build_cast(&s->b, inf_build_range(&s->b, end), dtype);
    uint32_t count = inf_build_cast(&s->b, size, dtype);
    at = inf_build_binary_number(&s->b, INF_BINARY_MUL, at, 2);
    if (corners)
        count = inf_build_binary_number(
            &s->b, INF_BINARY_MAX, inf_build_binary_number(&s->b, INF_BINARY_SUB, count, 1), 1);
    else
        at = inf_build_binary_number(&s->b, INF_BINARY_ADD, at, 1);
    at = inf_build_binary_number(&s->b, INF_BINARY_SUB, inf_build_div(&s->b, at, count), 1);
    shape[axis] = -1;
    return inf_build_reshape(&s->b, at, shape, axes);
}

// Lowers AffineGrid: multiplies the position of every pixel of y by theta. In positions the
// coordinate along the last spatial axis comes first.
static void lower_affine_grid(struct inf_onnx_scope *s)
{
    uint32_t theta = s->inputs[0], size = inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_I32);
    enum inf_dtype dtype = inf_build_dtype(&s->b, theta);
    uint32_t along[3], columns[4], dims[5], zero = INF_VALUE_NONE;
    int32_t axes = (int32_t)inf_build_known_dim(&s->b, size, 0) - 2;
    if (axes != 2 && axes != 3)
        inf_build_fail(&s->b, INF_INVALID, "size has %d elements, wanted 4 or 5", axes + 2);
    if (!inf_build_ok(&s->b))
        return;
    for (int32_t i = 0; i < axes; i++) {
        dims[i + 1] = inf_build_slice(&s->b, size, 0, i + 2, i + 3, 1);
        along[i] = add_positions(s, dims[i + 1], dtype, i, axes);
        uint32_t none = inf_build_binary_number(&s->b, INF_BINARY_MUL, along[i], 0);
        zero = i == 0 ? none : inf_build_add(&s->b, zero, none);
    }
    for (int32_t i = 0; i < axes; i++)
        columns[i] = inf_build_add(&s->b, zero, along[axes - 1 - i]);
    columns[axes] = inf_build_binary_number(&s->b, INF_BINARY_ADD, zero, 1);
    for (int32_t i = 0; i <= axes; i++)
        columns[i] = inf_build_reshape(&s->b, columns[i], (int64_t[]){-1, 1}, 2);
    uint32_t base = inf_build_concat(&s->b, columns, (uint32_t)axes + 1, 1);
    uint32_t grid =
        inf_build_matmul(&s->b, base, inf_build_transpose(&s->b, theta, (int64_t[]){0, 2, 1}, 3));
    dims[0] = inf_build_slice(&s->b, size, 0, 0, 1, 1);
    dims[axes + 1] = inf_build_list(&s->b, (int64_t[]){axes}, 1);
    s->outputs[0] =
        inf_build_reshape_to(&s->b, grid, inf_build_concat(&s->b, dims, (uint32_t)axes + 2, 0));
}

static void lower_roi_align(struct inf_onnx_scope *s)
{
    static const char *const coordinates[] = {"half_pixel", "output_half_pixel"};
    static const char *const modes[] = {"avg"};
    const uint32_t inputs[] = {inf_build_channels_last(&s->b, s->inputs[0]), s->inputs[1],
                               inf_build_cast(&s->b, s->inputs[2], INF_DTYPE_I32)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_ROI_ALIGN, inputs, 3);
    struct inf_attrs_roi_align *attrs = &node.attrs.roi_align;
    (void)find_text(s, "mode", modes, 1);
    attrs->output_h = inf_onnx_attr_int(s, "output_height", 1);
    attrs->output_w = inf_onnx_attr_int(s, "output_width", 1);
    attrs->samples = inf_onnx_attr_int(s, "sampling_ratio", 0);
    attrs->scale = inf_onnx_attr_float(s, "spatial_scale", 1.0f);
    attrs->half_pixel =
        s->opset >= 16 && find_text(s, "coordinate_transformation_mode", coordinates, 2) == 0;
    s->outputs[0] = inf_build_channels_first(&s->b, inf_build_value(&s->b, &node));
}

// --- operator NonMaxSuppression ---

// Returns a scalar input, or its default if it is absent.
static uint32_t read_scalar(struct inf_onnx_scope *s, uint32_t index, enum inf_dtype dtype,
                            double fallback)
{
    uint32_t value = inf_onnx_input(s, index);
    if (value == INF_VALUE_NONE)
        return inf_build_scalar(&s->b, dtype, fallback);
    if (inf_build_dtype(&s->b, value) == INF_DTYPE_I64) {
        value = inf_build_binary_number(&s->b, INF_BINARY_MIN, value, INT32_MAX);
        value = inf_build_binary_number(&s->b, INF_BINARY_MAX, value, 0);
    }
    value = inf_build_cast(&s->b, value, dtype);
    return inf_build_ok(&s->b) && inf_build_rank(&s->b, value) > 0
               ? inf_build_reshape(&s->b, value, NULL, 0)
               : value;
}

// Converts centre and size (x, y, w, h) to two corners (y, x, y, x).
static uint32_t convert_to_corners(struct inf_onnx_scope *s, uint32_t boxes)
{
    uint32_t parts[4];
    for (int32_t i = 0; i < 4; i++)
        parts[i] = inf_build_slice(&s->b, boxes, 2, i, i + 1, 1);
    uint32_t half_w = inf_build_binary_number(&s->b, INF_BINARY_MUL, parts[2], 0.5);
    uint32_t half_h = inf_build_binary_number(&s->b, INF_BINARY_MUL, parts[3], 0.5);
    const uint32_t sides[] = {
        inf_build_sub(&s->b, parts[1], half_h), inf_build_sub(&s->b, parts[0], half_w),
        inf_build_add(&s->b, parts[1], half_h), inf_build_add(&s->b, parts[0], half_w)};
    return inf_build_concat(&s->b, sides, 4, 2);
}

// Adds the most outputs of a class, an i32 scalar: no class has more than there are boxes.
static uint32_t read_most(struct inf_onnx_scope *s)
{
    uint32_t boxes = inf_build_dim_value(&s->b, s->inputs[1], 2);
    return inf_build_binary(&s->b, INF_BINARY_MIN, read_scalar(s, 2, INF_DTYPE_I32, 0),
                            inf_build_reshape(&s->b, boxes, NULL, 0));
}

// Returns true if the outputs of the node may have as many rows as there can be: the most outputs
// are constant, and the rows are at most PADDED_ROWS_MAX as far as sizes are known. Then the number
// of rows does not depend on values, so that each device can compute the node.
static bool fits_padded(struct inf_onnx_scope *s, const uint32_t *inputs)
{
    uint32_t given = inf_onnx_input(s, 2);
    double rows = 0;
    if (given == INF_VALUE_NONE || !inf_build_const_number(&s->b, given, &rows))
        return false;
    (void)inf_build_const_number(&s->b, inputs[2], &rows); // if the number of boxes is known
    for (int32_t i = 0; i < 2; i++) {
        int64_t size = inf_build_dim(&s->b, s->inputs[1], i);
        rows *= size != INF_DIM_UNKNOWN ? (double)size : 1;
    }
    return rows <= PADDED_ROWS_MAX;
}

// Adds the valid rows of a padded node.
static uint32_t take_valid_rows(struct inf_onnx_scope *s, const uint32_t *values)
{
    const uint32_t end[] = {inf_build_reshape(&s->b, values[2], (int64_t[]){1}, 1),
                            inf_build_list(&s->b, (int64_t[]){3}, 1)};
    const uint32_t inputs[] = {values[0], inf_build_list(&s->b, (int64_t[]){0, 0}, 2),
                               inf_build_concat(&s->b, end, 2, 0),
                               inf_build_list(&s->b, (int64_t[]){1, 1}, 2)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SLICE, inputs, 4);
    node.attrs.slice.begin_mask = 3;
    node.attrs.slice.end_mask = 2;
    return inf_build_value(&s->b, &node);
}

static void lower_nms(struct inf_onnx_scope *s)
{
    uint32_t boxes = s->inputs[0], values[3];
    enum inf_dtype dtype = inf_build_dtype(&s->b, boxes);
    if (inf_build_rank(&s->b, boxes) != 3 || inf_build_rank(&s->b, s->inputs[1]) != 3)
        inf_build_fail(&s->b, INF_INVALID, "boxes or scores are not of rank 3");
    if (inf_build_ok(&s->b) && inf_onnx_attr_int(s, "center_point_box", 0) != 0)
        boxes = convert_to_corners(s, boxes);
    const uint32_t inputs[] = {boxes, s->inputs[1], read_most(s), read_scalar(s, 3, dtype, 0),
                               read_scalar(s, 4, dtype, -INFINITY)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_NMS, inputs, 5);
    node.output_count = 3;
    node.attrs.nms.strict = true;
    node.attrs.nms.pad = fits_padded(s, inputs);
    inf_build_emit(&s->b, &node, values);
    uint32_t rows = node.attrs.nms.pad ? take_valid_rows(s, values) : values[0];
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_cast(&s->b, rows, INF_DTYPE_I64);
}

// --- window functions for signals ---

// Lowers a window function: one period of a sum of cosines over `size` elements.
static void lower_window(struct inf_onnx_scope *s)
{
    static const double terms[][3] = {{0.5, 0.5, 0}, {25.0 / 46, 21.0 / 46, 0}, {0.42, 0.5, 0.08}};
    double size = 0;
    int32_t type = inf_onnx_attr_int(s, "output_datatype", 1);
    bool periodic = inf_onnx_attr_int(s, "periodic", 1) != 0;
    float *data;
    if (!inf_build_const_number(&s->b, s->inputs[0], &size))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "size is not constant");
    if (!(size >= 1 && size < 1 << 24) || inf_onnx_dtype(type) == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "size is %g, the type %s", size,
                       inf_onnx_type_name(type));
    if (!inf_build_ok(&s->b))
        return;
    uint32_t y = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE((int64_t)size), &data);
    double period = periodic ? size : INF_MAX(size - 1, 1);
    const double *term = terms[s->op->kind];
    for (int64_t i = 0; data != NULL && i < (int64_t)size; i++) {
        double angle = 2 * M_PI * (double)i / period;
        data[i] = (float)(term[0] - term[1] * cos(angle) + term[2] * cos(2 * angle));
    }
    s->outputs[0] = inf_build_cast(&s->b, y, inf_onnx_dtype(type));
}

static const struct inf_onnx_op ops[] = {
    {"GridSample", lower_grid_sample, 2, 2, 1, 0}, {"RoiAlign", lower_roi_align, 3, 3, 1, 0},
    {"AffineGrid", lower_affine_grid, 2, 2, 1, 0}, {"NonMaxSuppression", lower_nms, 2, 5, 1, 0},
    {"HannWindow", lower_window, 1, 1, 1, 0},      {"HammingWindow", lower_window, 1, 1, 1, 1},
    {"BlackmanWindow", lower_window, 1, 1, 1, 2},
};

const struct inf_onnx_op_table inf_onnx_ops_sample = {ops, INF_ARRAY_LENGTH(ops)};
