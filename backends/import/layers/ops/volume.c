// SPDX-License-Identifier: Apache-2.0
// Convolutions and pooling along three axes.
#include <string.h>

#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"

#define AXES 3
#define RANK (AXES + 2)

struct volume {
    bool first, is_same;
    int32_t size[AXES], strides[AXES], dilation[AXES];
};

static struct inf_ints make_list(const int32_t numbers[AXES])
{
    return (struct inf_ints){.count = AXES, .values = {numbers[0], numbers[1], numbers[2]}};
}

// Reads the window, whose size is the member `key`. Adds the input with channels last.
static enum inf_code add_input(struct inf_layers_scope *scope, const char *key,
                               struct volume *volume, uint32_t *out_value, struct inf_error *err)
{
    static const struct inf_layers_range range = {1, 65535};
    static const char *const paddings[] = {"valid", "same", NULL};
    const struct inf_json *config = &scope->layer->config;
    int32_t padding = 0;
    INF_TRY(inf_layers_require_rank(scope, RANK, err));
    INF_TRY(inf_layers_ints(config, key, range, volume->size, AXES, err));
    INF_TRY(inf_layers_ints(config, "strides", range, volume->strides, AXES, err));
    INF_TRY(inf_layers_ints(config, "dilation_rate", range, volume->dilation, AXES, err));
    INF_TRY(inf_layers_choice(config, "padding", paddings, &padding, err));
    INF_TRY(inf_layers_channels_first(scope, &volume->first, err));
    if (volume->size[0] == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say its %s", key);
    volume->is_same = padding == 1;
    return inf_layers_to_last(scope, volume->first, inf_layers_x(scope), out_value, err);
}

static enum inf_code finish_layer(struct inf_layers_scope *scope, const struct volume *volume,
                                  uint32_t value, struct inf_error *err)
{
    const struct inf_layers_activation *activation;
    INF_TRY(inf_layers_activation_read(scope, "activation", "linear", &activation, err));
    INF_TRY(inf_layers_activate(scope, activation, value, &value, err));
    INF_TRY(inf_layers_from_last(scope, volume->first, value, &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code read_filters(struct inf_layers_scope *scope, int32_t *out,
                                  struct inf_error *err)
{
    *out = 0;
    INF_TRY(inf_layers_int(&scope->layer->config, "filters", 1, 1 << 24, out, err));
    if (*out == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say its filters");
    return INF_OK;
}

static enum inf_code add_bias(struct inf_layers_scope *scope, int32_t filters,
                              struct inf_build_node *node, struct inf_error *err)
{
    bool use_bias = true;
    INF_TRY(inf_layers_bool(&scope->layer->config, "use_bias", &use_bias, err));
    if (!use_bias)
        return INF_OK;
    return inf_layers_weight(scope, "bias", &INF_SHAPE(filters), NULL,
                             &node->inputs[node->input_count++], err);
}

static enum inf_code lower_conv(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct volume volume = {.strides = {1, 1, 1}, .dilation = {1, 1, 1}};
    struct inf_build_node node =
        inf_build_describe(INF_OP_CONV_ND, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    int32_t filters, groups = 1;
    uint32_t value;
    INF_TRY(add_input(scope, "kernel_size", &volume, &node.inputs[0], err));
    INF_TRY(read_filters(scope, &filters, err));
    INF_TRY(inf_layers_int(&scope->layer->config, "groups", 1, 1 << 24, &groups, err));
    int64_t channels = inf_layers_shape_of(scope, node.inputs[0])->dims[RANK - 1];
    if (channels > 0 && channels % groups != 0)
        return inf_layers_fail(scope, err, INF_INVALID,
                               "%lld channels do not divide into %d groups", (long long)channels,
                               groups);
    const int32_t *size = volume.size;
    INF_TRY(
        inf_layers_weight(scope, "kernel",
                          &INF_SHAPE(size[0], size[1], size[2],
                                     channels > 0 ? channels / groups : INF_DIM_UNKNOWN, filters),
                          NULL, &node.inputs[1], err));
    node.input_count = 2;
    INF_TRY(add_bias(scope, filters, &node, err));
    node.attrs.conv_nd.strides = make_list(volume.strides);
    node.attrs.conv_nd.dilations = make_list(volume.dilation);
    node.attrs.conv_nd.groups = groups;
    node.attrs.conv_nd.padding = volume.is_same ? INF_PADDING_SAME : INF_PADDING_VALID;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return finish_layer(scope, &volume, value, err);
}

// Returns the size of the output of a transposed convolution along an axis.
static struct inf_layers_dim find_output_size(const struct volume *volume, uint32_t x, int32_t axis)
{
    struct inf_layers_dim dim = inf_layers_dim_of(x, axis + 1);
    int32_t beyond = volume->size[axis] - volume->strides[axis];
    dim.scale = volume->strides[axis];
    dim.offset = volume->is_same ? 0 : INF_MAX(beyond, 0);
    return dim;
}

static enum inf_code lower_transposed(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct volume volume = {.strides = {1, 1, 1}, .dilation = {1, 1, 1}};
    struct inf_build_node node = inf_build_describe(INF_OP_CONV_ND_TRANSPOSE, INF_VALUE_NONE,
                                                    INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_json output_padding;
    int32_t filters;
    uint32_t value;
    INF_TRY(add_input(scope, "kernel_size", &volume, &node.inputs[0], err));
    INF_TRY(read_filters(scope, &filters, err));
    INF_TRY(inf_layers_find(&scope->layer->config, "output_padding", &output_padding, err));
    if (output_padding.value != NULL || volume.dilation[0] * volume.dilation[1] != 1 ||
        volume.dilation[2] != 1)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "has output_padding or dilation, wanted none");
    uint32_t x = node.inputs[0];
    const int32_t *size = volume.size;
    INF_TRY(inf_layers_weight(scope, "kernel",
                              &INF_SHAPE(size[0], size[1], size[2], filters,
                                         inf_layers_shape_of(scope, x)->dims[RANK - 1]),
                              NULL, &node.inputs[1], err));
    const struct inf_layers_dim dims[RANK] = {
        inf_layers_dim_of(x, 0),         find_output_size(&volume, x, 0),
        find_output_size(&volume, x, 1), find_output_size(&volume, x, 2),
        inf_layers_dim_fixed(filters),
    };
    INF_TRY(inf_layers_dims(scope, dims, RANK, &node.inputs[2], err));
    node.input_count = 3;
    INF_TRY(add_bias(scope, filters, &node, err));
    node.attrs.conv_nd_transpose.strides = make_list(volume.strides);
    node.attrs.conv_nd_transpose.padding = volume.is_same ? INF_PADDING_SAME : INF_PADDING_VALID;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return finish_layer(scope, &volume, value, err);
}

static enum inf_code lower_pool(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct volume volume = {.size = {2, 2, 2}, .dilation = {1, 1, 1}};
    struct inf_build_node node =
        inf_build_describe(INF_OP_POOL_ND, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    uint32_t value;
    INF_TRY(add_input(scope, "pool_size", &volume, &node.inputs[0], err));
    if (volume.strides[0] == 0)
        memcpy(volume.strides, volume.size, sizeof volume.strides);
    node.input_count = 1;
    node.attrs.pool_nd.kind = (enum inf_pool_kind)scope->layer->class->kind;
    node.attrs.pool_nd.kernel = make_list(volume.size);
    node.attrs.pool_nd.strides = make_list(volume.strides);
    node.attrs.pool_nd.padding = volume.is_same ? INF_PADDING_SAME : INF_PADDING_VALID;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return finish_layer(scope, &volume, value, err);
}

static const struct inf_layers_class classes[] = {
    {"Conv3D", lower_conv, 1, 1, 0, false},
    {"Conv3DTranspose", lower_transposed, 1, 1, 0, false},
    {"MaxPooling3D", lower_pool, 1, 1, INF_POOL_MAX, false},
    {"AveragePooling3D", lower_pool, 1, 1, INF_POOL_AVERAGE, false},
};

const struct inf_layers_class_table inf_layers_classes_volume = {classes,
                                                                 INF_ARRAY_LENGTH(classes)};
