// SPDX-License-Identifier: Apache-2.0
// Pooling, padding, cropping and upsampling along one axis or two.
#include <string.h>

#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"

// Kinds of pooling and padding classes; each is a bit of inf_layers_class.kind.
enum {
    ONE_AXIS = 1,
    MEAN = 2,
};

static bool has_one_axis(const struct inf_layers_scope *scope)
{
    return scope->layer->class->kind & ONE_AXIS;
}

// Adds the input with channels last. Its rank must match the class.
static enum inf_code add_input(struct inf_layers_scope *scope, bool *out_first, uint32_t *out_value,
                               struct inf_error *err)
{
    INF_TRY(inf_layers_require_rank(scope, has_one_axis(scope) ? 3 : 4, err));
    INF_TRY(inf_layers_channels_first(scope, out_first, err));
    return inf_layers_to_last(scope, *out_first, inf_layers_x(scope), out_value, err);
}

static enum inf_code finish_layer(struct inf_layers_scope *scope, bool first, uint32_t value,
                                  struct inf_error *err)
{
    INF_TRY(inf_layers_from_last(scope, first, value, &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code lower_pool(struct inf_layers_scope *scope, struct inf_error *err)
{
    static const struct inf_layers_range range = {1, 65535};
    static const char *const paddings[] = {"valid", "same", NULL};
    const struct inf_json *config = &scope->layer->config;
    struct inf_build_node node =
        inf_build_describe(INF_OP_POOL2D, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    bool first, one_axis = has_one_axis(scope);
    int32_t size[2] = {2, 2}, strides[2], padding = 0;
    uint32_t count = one_axis ? 1 : 2, value;
    INF_TRY(inf_layers_ints(config, "pool_size", range, size, count, err));
    memcpy(strides, size, sizeof strides);
    INF_TRY(inf_layers_ints(config, "strides", range, strides, count, err));
    INF_TRY(inf_layers_choice(config, "padding", paddings, &padding, err));
    INF_TRY(add_input(scope, &first, &node.inputs[0], err));
    if (one_axis)
        INF_TRY(inf_layers_expand(scope, node.inputs[0], 1, &node.inputs[0], err));
    node.input_count = 1;
    struct inf_attrs_pool2d *attrs = &node.attrs.pool2d;
    attrs->kind = scope->layer->class->kind & MEAN ? INF_POOL_AVERAGE : INF_POOL_MAX;
    attrs->kernel_h = one_axis ? 1 : size[0];
    attrs->kernel_w = one_axis ? size[0] : size[1];
    attrs->stride_h = one_axis ? 1 : strides[0];
    attrs->stride_w = one_axis ? strides[0] : strides[1];
    attrs->padding = padding == 1 ? INF_PADDING_SAME : INF_PADDING_VALID;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    if (one_axis)
        INF_TRY(inf_layers_squeeze(scope, value, 1, &value, err));
    return finish_layer(scope, first, value, err);
}

static enum inf_code lower_global_pool(struct inf_layers_scope *scope, struct inf_error *err)
{
    bool first;
    uint32_t x, value;
    struct inf_attrs_reduce how = {
        .kind = scope->layer->class->kind & MEAN ? INF_REDUCE_MEAN : INF_REDUCE_MAX,
        .axes = {.count = has_one_axis(scope) ? 1 : 2, .values = {1, 2}},
    };
    if (how.kind == INF_REDUCE_MEAN && scope->inputs[0].mask != INF_VALUE_NONE)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "its input is masked");
    INF_TRY(inf_layers_bool(&scope->layer->config, "keepdims", &how.keep_dims, err));
    INF_TRY(add_input(scope, &first, &x, err));
    INF_TRY(inf_layers_reduce(scope, &how, x, &value, err));
    if (how.keep_dims)
        return finish_layer(scope, first, value, err);
    return inf_layers_finish(scope, value, err);
}

static enum inf_code lower_padding(struct inf_layers_scope *scope, struct inf_error *err)
{
    bool first, one_axis = has_one_axis(scope);
    int32_t sides[2][2] = {{1, 1}, {1, 1}};
    uint32_t value;
    struct inf_build_node node =
        inf_build_describe(INF_OP_PAD, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_layers_sides(&scope->layer->config, "padding", one_axis ? 1 : 2, sides, err));
    INF_TRY(add_input(scope, &first, &node.inputs[0], err));
    int32_t rows = one_axis ? 3 : 4;
    int32_t elements[8] = {0, 0, sides[0][0], sides[0][1]};
    if (!one_axis)
        memcpy(&elements[4], sides[1], sizeof sides[1]);
    struct inf_blob *data = inf_blob_create((size_t)rows * 2 * sizeof *elements);
    if (data == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for its paddings");
    memcpy(data->data, elements, data->size_bytes);
    INF_TRY(inf_graph_add_const(scope->context->graph, scope->layer->name, INF_DTYPE_I32,
                                &INF_SHAPE(rows, 2), data, &node.inputs[1], err));
    node.input_count = 2;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return finish_layer(scope, first, value, err);
}

static enum inf_code lower_cropping(struct inf_layers_scope *scope, struct inf_error *err)
{
    bool first, one_axis = has_one_axis(scope);
    int32_t sides[2][2] = {{one_axis, one_axis}, {0, 0}};
    uint32_t value, rank = one_axis ? 3 : 4;
    struct inf_build_node node =
        inf_build_describe(INF_OP_SLICE, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_layers_sides(&scope->layer->config, "cropping", one_axis ? 1 : 2, sides, err));
    INF_TRY(add_input(scope, &first, &node.inputs[0], err));
    int32_t begins[4] = {0}, ends[4] = {0}, steps[4] = {1, 1, 1, 1};
    int32_t *end_mask = &node.attrs.slice.end_mask;
    *end_mask = 1 | 1 << (rank - 1);
    for (uint32_t i = 1; i + 1 < rank; i++) {
        begins[i] = sides[i - 1][0];
        ends[i] = -sides[i - 1][1];
        if (ends[i] == 0)
            *end_mask |= 1 << i;
    }
    const char *name = scope->layer->name;
    struct inf_graph *graph = scope->context->graph;
    INF_TRY(inf_graph_add_const_i32(graph, name, begins, rank, &node.inputs[1], err));
    INF_TRY(inf_graph_add_const_i32(graph, name, ends, rank, &node.inputs[2], err));
    INF_TRY(inf_graph_add_const_i32(graph, name, steps, rank, &node.inputs[3], err));
    node.input_count = 4;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return finish_layer(scope, first, value, err);
}

static enum inf_code lower_upsampling(struct inf_layers_scope *scope, struct inf_error *err)
{
    static const struct inf_layers_range range = {1, 65535};
    static const char *const kinds[] = {"nearest", "bilinear", NULL};
    bool first, one_axis = has_one_axis(scope);
    int32_t size[2] = {2, 2}, kind = 0;
    uint32_t x, value;
    INF_TRY(inf_layers_ints(&scope->layer->config, "size", range, size, one_axis ? 1 : 2, err));
    INF_TRY(inf_layers_choice(&scope->layer->config, "interpolation", kinds, &kind, err));
    INF_TRY(add_input(scope, &first, &x, err));
    struct inf_build_node node =
        inf_build_describe(INF_OP_RESIZE, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    // A single axis is treated as the height of images with a width of one pixel.
    if (one_axis)
        INF_TRY(inf_layers_expand(scope, x, 2, &x, err));
    struct inf_layers_dim dims[2] = {inf_layers_dim_of(x, 1), inf_layers_dim_of(x, 2)};
    dims[0].scale = size[0];
    dims[1].scale = one_axis ? 1 : size[1];
    node.inputs[0] = x;
    INF_TRY(inf_layers_dims(scope, dims, 2, &node.inputs[1], err));
    node.input_count = 2;
    node.attrs.resize.kind = kind == 1 ? INF_RESIZE_BILINEAR : INF_RESIZE_NEAREST;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    if (one_axis)
        INF_TRY(inf_layers_squeeze(scope, value, 2, &value, err));
    return finish_layer(scope, first, value, err);
}

static const struct inf_layers_class classes[] = {
    {"MaxPooling1D", lower_pool, 1, 1, ONE_AXIS, false},
    {"MaxPooling2D", lower_pool, 1, 1, 0, false},
    {"AveragePooling1D", lower_pool, 1, 1, ONE_AXIS | MEAN, false},
    {"AveragePooling2D", lower_pool, 1, 1, MEAN, false},
    {"GlobalMaxPooling1D", lower_global_pool, 1, 1, ONE_AXIS, false},
    {"GlobalMaxPooling2D", lower_global_pool, 1, 1, 0, false},
    {"GlobalAveragePooling1D", lower_global_pool, 1, 1, ONE_AXIS | MEAN, false},
    {"GlobalAveragePooling2D", lower_global_pool, 1, 1, MEAN, false},
    {"ZeroPadding1D", lower_padding, 1, 1, ONE_AXIS, false},
    {"ZeroPadding2D", lower_padding, 1, 1, 0, false},
    {"Cropping1D", lower_cropping, 1, 1, ONE_AXIS, false},
    {"Cropping2D", lower_cropping, 1, 1, 0, false},
    {"UpSampling1D", lower_upsampling, 1, 1, ONE_AXIS, false},
    {"UpSampling2D", lower_upsampling, 1, 1, 0, false},
};

const struct inf_layers_class_table inf_layers_classes_pool = {classes, INF_ARRAY_LENGTH(classes)};
