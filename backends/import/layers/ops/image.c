// SPDX-License-Identifier: Apache-2.0
// Layers that prepare images and categories: rescaling, resizing, cropping, encoding.
#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"

// The most channels of a scale or offset, which has one number, or one number for each channel.
#define CHANNELS_MAX 4096

static enum inf_code add_numbers(struct inf_layers_scope *scope, const char *key, float standard,
                                 uint32_t *out_value, struct inf_error *err)
{
    uint32_t count = 1;
    float *numbers = inf_arena_alloc(scope->context->arena, CHANNELS_MAX * sizeof *numbers);
    if (numbers == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for its %s", key);
    numbers[0] = standard;
    INF_TRY(inf_layers_floats(&scope->layer->config, key, numbers, CHANNELS_MAX, &count, err));
    return count > 1 ? inf_layers_add_floats(scope, numbers, count, out_value, err)
                     : inf_layers_add_float(scope, numbers[0], out_value, err);
}

static enum inf_code lower_rescaling(struct inf_layers_scope *scope, struct inf_error *err)
{
    uint32_t value, number;
    INF_TRY(inf_layers_cast(scope, INF_DTYPE_F32, inf_layers_x(scope), &value, err));
    INF_TRY(add_numbers(scope, "scale", 1.0f, &number, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, value, number, &value, err));
    INF_TRY(add_numbers(scope, "offset", 0.0f, &number, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, value, number, &value, err));
    return inf_layers_finish(scope, value, err);
}

struct size {
    int32_t height, width;
};

// Reads height and width. Adds the input as a batch of images; a single image becomes a batch of
// one.
static enum inf_code read_size(struct inf_layers_scope *scope, struct size *size,
                               uint32_t *out_value, struct inf_error *err)
{
    *size = (struct size){0};
    INF_TRY(inf_layers_int(&scope->layer->config, "height", 1, 1 << 20, &size->height, err));
    INF_TRY(inf_layers_int(&scope->layer->config, "width", 1, 1 << 20, &size->width, err));
    if (size->height == 0 || size->width == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say its height and width");
    *out_value = inf_layers_x(scope);
    if (inf_layers_shape_of(scope, *out_value)->rank == 3)
        return inf_layers_expand(scope, *out_value, 0, out_value, err);
    return inf_layers_require_rank(scope, 4, err);
}

static enum inf_code finish_picture(struct inf_layers_scope *scope, uint32_t value,
                                    struct inf_error *err)
{
    if (inf_layers_shape_of(scope, inf_layers_x(scope))->rank == 3)
        INF_TRY(inf_layers_squeeze(scope, value, 0, &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code emit_resize(struct inf_layers_scope *scope, const struct size *size,
                                 const struct inf_attrs_resize *how, uint32_t x,
                                 uint32_t *out_value, struct inf_error *err)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_RESIZE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_graph_add_const_i32(scope->context->graph, scope->layer->name,
                                    (int32_t[]){size->height, size->width}, 2, &node.inputs[1],
                                    err));
    node.input_count = 2;
    node.attrs.resize = *how;
    return inf_layers_emit(scope, &node, out_value, err);
}

static enum inf_code lower_resizing(struct inf_layers_scope *scope, struct inf_error *err)
{
    static const char *const kinds[] = {"bilinear", "nearest", NULL};
    struct size size;
    int32_t kind = 0;
    bool cropped = false;
    uint32_t value;
    INF_TRY(read_size(scope, &size, &value, err));
    INF_TRY(inf_layers_choice(&scope->layer->config, "interpolation", kinds, &kind, err));
    INF_TRY(inf_layers_bool(&scope->layer->config, "crop_to_aspect_ratio", &cropped, err));
    if (cropped)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "has crop_to_aspect_ratio");
    // Resize in the way Keras does, because TensorFlow.js itself fails in every model with this
    // layer.
    struct inf_attrs_resize how = {
        .kind = kind == 1 ? INF_RESIZE_NEAREST : INF_RESIZE_BILINEAR,
        .half_pixel_centers = true,
    };
    INF_TRY(emit_resize(scope, &size, &how, value, &value, err));
    return finish_picture(scope, value, err);
}

// Crops `size` from the centre of images that are at least this large.
static enum inf_code emit_crop(struct inf_layers_scope *scope, const struct size *size, uint32_t x,
                               uint32_t *out_value, struct inf_error *err)
{
    const struct inf_shape *shape = inf_layers_shape_of(scope, x);
    int64_t top = (shape->dims[1] - size->height) / 2;
    int64_t left = (shape->dims[2] - size->width) / 2;
    struct inf_build_node node =
        inf_build_describe(INF_OP_SLICE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    const int32_t begins[] = {0, (int32_t)top, (int32_t)left, 0};
    const int32_t ends[] = {0, (int32_t)top + size->height, (int32_t)left + size->width, 0};
    const int32_t steps[] = {1, 1, 1, 1};
    const char *name = scope->layer->name;
    struct inf_graph *graph = scope->context->graph;
    INF_TRY(inf_graph_add_const_i32(graph, name, begins, 4, &node.inputs[1], err));
    INF_TRY(inf_graph_add_const_i32(graph, name, ends, 4, &node.inputs[2], err));
    INF_TRY(inf_graph_add_const_i32(graph, name, steps, 4, &node.inputs[3], err));
    node.input_count = 4;
    node.attrs.slice.end_mask = 1 << 0 | 1 << 3;
    return inf_layers_emit(scope, &node, out_value, err);
}

static enum inf_code lower_center_crop(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct size size;
    uint32_t value;
    INF_TRY(read_size(scope, &size, &value, err));
    const struct inf_shape *shape = inf_layers_shape_of(scope, value);
    if (shape->dims[1] == INF_DIM_UNKNOWN || shape->dims[2] == INF_DIM_UNKNOWN)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "the size of its input is not known, wanted known height and width");
    struct inf_attrs_resize how = {.kind = INF_RESIZE_BILINEAR};
    if (shape->dims[1] >= size.height && shape->dims[2] >= size.width)
        INF_TRY(emit_crop(scope, &size, value, &value, err));
    else
        INF_TRY(emit_resize(scope, &size, &how, value, &value, err));
    return finish_picture(scope, value, err);
}

enum {
    ONE_HOT,
    MULTI_HOT,
    COUNT,
};

// Sets *out to the one-hot encoding of categories, [..., tokens]: 1 at the index of the category
// and 0 elsewhere.
static enum inf_code emit_one_hot(struct inf_layers_scope *scope, int32_t tokens, uint32_t x,
                                  uint32_t *out_value, struct inf_error *err)
{
    struct inf_blob *data = inf_blob_create((size_t)tokens * sizeof(int32_t));
    struct inf_build_node node =
        inf_build_describe(INF_OP_COMPARE, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    if (data == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for %d tokens", tokens);
    for (int32_t i = 0; i < tokens; i++)
        ((int32_t *)data->data)[i] = i;
    INF_TRY(inf_graph_add_const(scope->context->graph, scope->layer->name, INF_DTYPE_I32,
                                &INF_SHAPE(tokens), data, &node.inputs[1], err));
    INF_TRY(inf_layers_expand(scope, x, -1, &node.inputs[0], err));
    node.input_count = 2;
    node.attrs.compare.kind = INF_COMPARE_EQUAL;
    INF_TRY(inf_layers_emit(scope, &node, out_value, err));
    return inf_layers_cast(scope, INF_DTYPE_F32, *out_value, out_value, err);
}

static enum inf_code lower_category_encoding(struct inf_layers_scope *scope, struct inf_error *err)
{
    static const char *const modes[] = {"one_hot", "multi_hot", "count", NULL};
    int32_t tokens = 0, mode = MULTI_HOT;
    uint32_t value, x;
    INF_TRY(inf_layers_int(&scope->layer->config, "num_tokens", 1, 1 << 20, &tokens, err));
    INF_TRY(inf_layers_choice(&scope->layer->config, "output_mode", modes, &mode, err));
    if (tokens == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say num_tokens");
    INF_TRY(inf_layers_cast(scope, INF_DTYPE_I32, inf_layers_x(scope), &x, err));
    const struct inf_shape shape = *inf_layers_shape_of(scope, x);
    if (shape.rank < 1 || shape.rank > 2)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "its input has rank %d, wanted 1 or 2",
                               shape.rank);
    INF_TRY(emit_one_hot(scope, tokens, x, &value, err));
    // emit_one_hot() makes one row for each category of an example. The layer returns one row for
    // each example, so combine the rows of an example by their sum (COUNT) or maximum.
    struct inf_attrs_reduce how = {.kind = mode == COUNT ? INF_REDUCE_SUM : INF_REDUCE_MAX,
                                   .axes = {.count = 1, .values = {-2}}};
    if (mode != ONE_HOT || (shape.rank == 2 && shape.dims[1] == 1))
        INF_TRY(inf_layers_reduce(scope, &how, value, &value, err));
    return inf_layers_finish(scope, value, err);
}

static const struct inf_layers_class classes[] = {
    {"Rescaling", lower_rescaling, 1, 1, 0, false},
    {"Resizing", lower_resizing, 1, 1, 0, false},
    {"CenterCrop", lower_center_crop, 1, 1, 0, false},
    {"CategoryEncoding", lower_category_encoding, 1, 1, 0, false},
};

const struct inf_layers_class_table inf_layers_classes_image = {classes, INF_ARRAY_LENGTH(classes)};
