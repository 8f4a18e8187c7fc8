// SPDX-License-Identifier: Apache-2.0
// Windows in one and three dimensions, operators on images, and operators that create filled
// tensors.
#include <math.h>
#include <string.h>

#include "backends/import/common/einsum.h"
#include "backends/import/tfjs/layout.h"
#include "backends/import/tfjs/op_table.h"

// Reads the spatial elements of a list attribute. The list has one element for each dimension
// (`rank` + 2).
static enum inf_code read_spatial(struct inf_tfjs_scope *scope, const char *key, int32_t rank,
                                  struct inf_ints *out, struct inf_error *err)
{
    int32_t items[INF_LIMIT_RANK];
    uint32_t count;
    INF_TRY(inf_tfjs_attr_ints(scope->node, key, items, INF_LIMIT_RANK, &count, err));
    if (count == 0)
        return INF_OK;
    if (count != (uint32_t)rank + 2)
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s has %u elements, wanted %d", key, count,
                             rank + 2);
    int32_t channels = items[inf_tfjs_channel(scope, count)];
    if (items[0] != 1 || channels != 1)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "%s is %d for batch and %d for channels, wanted 1", key, items[0],
                             channels);
    out->count = rank;
    for (int32_t i = 0; i < rank; i++)
        out->values[i] = items[inf_tfjs_spatial(scope, (uint32_t)i)];
    return INF_OK;
}

static enum inf_code read_padding(struct inf_tfjs_scope *scope, const char *key,
                                  enum inf_padding *out, struct inf_error *err)
{
    struct inf_tfjs_text text = {"nothing"};
    INF_TRY(inf_tfjs_attr_text(scope->node, key, &text, err));
    if (strcmp(text.text, "same") == 0)
        *out = INF_PADDING_SAME;
    else if (strcmp(text.text, "valid") == 0)
        *out = INF_PADDING_VALID;
    else
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s is '%s', wanted SAME or VALID", key,
                             text.text);
    return INF_OK;
}

static enum inf_code lower_conv1d(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 3, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_CONV_ND, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    struct inf_attrs_conv_nd *attrs = &call.attrs.conv_nd;
    int32_t stride = 1, dilation = 1;
    INF_TRY(inf_tfjs_attr_int(scope->node, "stride", 1, 65535, &stride, err));
    INF_TRY(inf_tfjs_attr_int(scope->node, "dilation", 1, 65535, &dilation, err));
    INF_TRY(read_padding(scope, "padding", &attrs->padding, err));
    attrs->strides = (struct inf_ints){.count = 1, .values = {stride}};
    attrs->dilations = (struct inf_ints){.count = 1, .values = {dilation}};
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_conv3d(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 5, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_CONV_ND, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    struct inf_attrs_conv_nd *attrs = &call.attrs.conv_nd;
    INF_TRY(read_spatial(scope, "strides", 3, &attrs->strides, err));
    INF_TRY(read_spatial(scope, "dilations", 3, &attrs->dilations, err));
    INF_TRY(read_padding(scope, "padding", &attrs->padding, err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_pool3d(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 5, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_POOL_ND, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_attrs_pool_nd *attrs = &call.attrs.pool_nd;
    attrs->kind = (enum inf_pool_kind)scope->op->kind;
    INF_TRY(read_spatial(scope, "ksize", 3, &attrs->kernel, err));
    INF_TRY(read_spatial(scope, "strides", 3, &attrs->strides, err));
    INF_TRY(read_padding(scope, "padding", &attrs->padding, err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_pool_argmax(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values;
    struct inf_build_node call =
        inf_build_describe(INF_OP_POOL_ND, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_attrs_pool_nd *attrs = &call.attrs.pool_nd;
    INF_TRY(read_spatial(scope, "ksize", 2, &attrs->kernel, err));
    INF_TRY(read_spatial(scope, "strides", 2, &attrs->strides, err));
    INF_TRY(read_padding(scope, "padding", &attrs->padding, err));
    INF_TRY(inf_tfjs_attr_bool(scope->node, "include_batch_in_index", &attrs->index_batch, err));
    call.output_count = 2;
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    return inf_tfjs_emit(scope, &call, values, err);
}

static enum inf_code lower_dilation2d(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_DILATION2D, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    struct inf_attrs_dilation2d *attrs = &call.attrs.dilation2d;
    struct inf_ints strides = {.count = 2, .values = {1, 1}}, rates = strides;
    INF_TRY(read_spatial(scope, "strides", 2, &strides, err));
    INF_TRY(read_spatial(scope, "rates", 2, &rates, err));
    INF_TRY(read_padding(scope, "padding", &attrs->padding, err));
    attrs->stride_h = (int32_t)strides.values[0];
    attrs->stride_w = (int32_t)strides.values[1];
    attrs->dilation_h = (int32_t)rates.values[0];
    attrs->dilation_w = (int32_t)rates.values[1];
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_lrn(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_LRN, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_attrs_lrn *attrs = &call.attrs.lrn;
    INF_TRY(inf_tfjs_attr_int(scope->node, "depth_radius", 0, 1 << 24, &attrs->before, err));
    attrs->after = attrs->before;
    INF_TRY(inf_tfjs_attr_float(scope->node, "bias", &attrs->bias, err));
    INF_TRY(inf_tfjs_attr_float(scope->node, "alpha", &attrs->alpha, err));
    INF_TRY(inf_tfjs_attr_float(scope->node, "beta", &attrs->beta, err));
    return inf_tfjs_finish(scope, &call, err);
}

// --- operators on images ---

// Reads "bilinear" or "nearest", in upper or lower case.
static enum inf_code read_method(struct inf_tfjs_scope *scope, const char *key,
                                 enum inf_resize_kind *out, struct inf_error *err)
{
    struct inf_tfjs_text text = {"bilinear"};
    INF_TRY(inf_tfjs_attr_text(scope->node, key, &text, err));
    if (strcmp(text.text, "bilinear") == 0)
        *out = INF_RESIZE_BILINEAR;
    else if (strcmp(text.text, "nearest") == 0)
        *out = INF_RESIZE_NEAREST;
    else
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s is '%s', wanted bilinear or nearest", key,
                             text.text);
    return INF_OK;
}

static enum inf_code lower_crop_and_resize(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe_list(INF_OP_CROP_AND_RESIZE, scope->inputs, 4);
    INF_TRY(read_method(scope, "method", &call.attrs.crop_and_resize.kind, err));
    INF_TRY(inf_tfjs_attr_float(scope->node, "extrapolation_value",
                                &call.attrs.crop_and_resize.extrapolation, err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_image_transform(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe(INF_OP_IMAGE_TRANSFORM, scope->inputs[0],
                                                    scope->inputs[1], scope->inputs[2]);
    struct inf_attrs_image_transform *attrs = &call.attrs.image_transform;
    struct inf_tfjs_text mode = {"constant"};
    static const struct {
        const char *name;
        enum inf_border_mode border;
    } borders[] = {{"constant", INF_BORDER_CONSTANT},
                   {"nearest", INF_BORDER_EDGE},
                   {"reflect", INF_BORDER_REFLECT},
                   {"wrap", INF_BORDER_WRAP}};
    size_t found = 0;
    INF_TRY(read_method(scope, "interpolation", &attrs->kind, err));
    INF_TRY(inf_tfjs_attr_text(scope->node, "fill_mode", &mode, err));
    while (found < INF_ARRAY_LENGTH(borders) && strcmp(borders[found].name, mode.text) != 0)
        found++;
    if (found == INF_ARRAY_LENGTH(borders))
        return inf_tfjs_fail(scope, err, INF_INVALID, "fill_mode is '%s'", mode.text);
    attrs->border = borders[found].border;
    if (scope->input_count > 3 && attrs->border == INF_BORDER_CONSTANT &&
        !inf_tfjs_const_float(scope->graph, scope->inputs[3], &attrs->fill))
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "fill_value is no constant");
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_space_batch(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe((enum inf_op)scope->op->kind, scope->inputs[0],
                                                    scope->inputs[1], scope->inputs[2]);
    return inf_tfjs_finish(scope, &call, err);
}

// --- operators that create filled tensors ---

// Lowers Ones and Zeros.
static enum inf_code lower_full(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    enum inf_dtype dtype = INF_DTYPE_F32;
    uint32_t number;
    INF_TRY(inf_tfjs_attr_dtype(scope->node, "T", &dtype, err));
    INF_TRY(inf_tfjs_add_scalar(scope, dtype, scope->op->kind, &number, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_FILL, scope->inputs[0], number, INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_lin_space(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    float start, stop;
    struct inf_tfjs_ints number;
    uint32_t value;
    INF_TRY(inf_tfjs_const_ints(scope, 2, "num", &number, err));
    if (!inf_tfjs_const_float(scope->graph, scope->inputs[0], &start) ||
        !inf_tfjs_const_float(scope->graph, scope->inputs[1], &stop))
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "start and stop are no constants");
    if (number.count != 1 || number.values[0] < 1 || number.values[0] > 1 << 24)
        return inf_tfjs_fail(scope, err, INF_INVALID, "num is %lld, wanted 1 to %d",
                             (long long)number.values[0], 1 << 24);
    struct inf_shape shape = INF_SHAPE(number.values[0]);
    struct inf_blob *data = inf_blob_create((size_t)number.values[0] * sizeof(float));
    double step =
        number.values[0] > 1 ? ((double)stop - start) / (double)(number.values[0] - 1) : 0;
    for (int64_t i = 0; data != NULL && i < number.values[0]; i++)
        ((float *)data->data)[i] = (float)(start + (double)i * step);
    INF_TRY(inf_graph_add_const(scope->graph, scope->node->name, INF_DTYPE_F32, &shape, data,
                                &value, err));
    return inf_tfjs_result(scope, value, err);
}

// Lowers BroadcastArgs, which returns the shape to which two shapes broadcast. The longer shape
// gives the leading dimensions; of two dimensions, the one that is not 1 is used.
static enum inf_code lower_broadcast_args(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    const int64_t one[] = {1, 1, 1, 1, 1, 1, 1, 1};
    int64_t counts[2];
    uint32_t shapes[2], ones, is_one, value;
    for (uint32_t i = 0; i < 2; i++) {
        const struct inf_shape *shape = &inf_tfjs_input(scope, i)->shape;
        counts[i] = shape->rank == 1 ? shape->dims[0] : INF_DIM_UNKNOWN;
        if (counts[i] < 0 || counts[i] > INF_LIMIT_RANK)
            return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                                 "the ranks of its inputs are not known");
    }
    for (uint32_t i = 0; i < 2; i++) {
        int64_t missing = counts[!i] - counts[i];
        shapes[i] = scope->inputs[i];
        if (missing <= 0)
            continue;
        INF_TRY(inf_tfjs_add_ints(scope, one, (uint32_t)missing, &ones, err));
        struct inf_build_node concat =
            inf_build_describe(INF_OP_CONCAT, ones, shapes[i], INF_VALUE_NONE);
        INF_TRY(inf_tfjs_emit(scope, &concat, &shapes[i], err));
    }
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, 1, &value, err));
    struct inf_build_node compare =
        inf_build_describe(INF_OP_COMPARE, shapes[0], value, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &compare, &is_one, err));
    struct inf_build_node select = inf_build_describe(INF_OP_SELECT, is_one, shapes[1], shapes[0]);
    return inf_tfjs_finish(scope, &select, err);
}

static enum inf_code lower_einsum(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    char equation[256];
    uint32_t value;
    INF_TRY(inf_tfjs_attr_raw(scope->node, "equation", equation, sizeof equation, err));
    enum inf_code code = inf_graph_add_einsum(scope->graph, scope->node->name, equation,
                                              scope->inputs, scope->input_count, &value, err);
    if (code != INF_OK)
        return inf_tfjs_node_error(scope->node, code, err);
    return inf_tfjs_result(scope, value, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Conv1D", lower_conv1d, 2, 2, 0},
    {"Conv3D", lower_conv3d, 2, 2, 0},
    {"AvgPool3D", lower_pool3d, 1, 1, INF_POOL_AVERAGE},
    {"MaxPool3D", lower_pool3d, 1, 1, INF_POOL_MAX},
    {"MaxPoolWithArgmax", lower_pool_argmax, 1, 1, 0},
    {"Dilation2D", lower_dilation2d, 2, 2, 0},
    {"LRN", lower_lrn, 1, 1, 0},
    {"CropAndResize", lower_crop_and_resize, 4, 4, 0},
    {"ImageProjectiveTransformV3", lower_image_transform, 3, 4, 0},
    {"SpaceToBatchND", lower_space_batch, 3, 3, INF_OP_SPACE_TO_BATCH},
    {"BatchToSpaceND", lower_space_batch, 3, 3, INF_OP_BATCH_TO_SPACE},
    {"Ones", lower_full, 1, 1, 1},
    {"Zeros", lower_full, 1, 1, 0},
    {"LinSpace", lower_lin_space, 3, 3, 0},
    {"BroadcastArgs", lower_broadcast_args, 2, 2, 0},
    {"Einsum", lower_einsum, 1, INF_LIMIT_NODE_INPUTS, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_window = {ops, INF_ARRAY_LENGTH(ops)};
