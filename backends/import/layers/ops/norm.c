// SPDX-License-Identifier: Apache-2.0
// Batch and layer normalisation.
#include <string.h>

#include "backends/import/layers/class_table.h"
#include "backends/import/layers/parts.h"

// Adds a constant [count] whose elements are all `number`, in place of the weight `name` that the
// layer does not have. `count` is the number of channels.
static enum inf_code add_weight_or_number(struct inf_layers_scope *scope, const char *name,
                                          int64_t count, float number, uint32_t *out_value,
                                          struct inf_error *err)
{
    struct inf_blob *data = inf_blob_create((size_t)count * sizeof number);
    if (data == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for its %s", name);
    for (int64_t i = 0; i < count; i++)
        ((float *)data->data)[i] = number;
    return inf_graph_add_const(scope->context->graph, scope->layer->name, INF_DTYPE_F32,
                               &INF_SHAPE(count), data, out_value, err);
}

struct norm {
    int32_t axes[INF_LIMIT_RANK];
    uint32_t axis_count;
    float epsilon;
    bool center, scale;
};

static enum inf_code read_norm(struct inf_layers_scope *scope, struct norm *norm,
                               struct inf_error *err)
{
    static const struct inf_layers_range range = {-INF_LIMIT_RANK, INF_LIMIT_RANK - 1};
    const struct inf_json *config = &scope->layer->config;
    *norm = (struct norm){
        .axes = {-1}, .axis_count = 1, .epsilon = 1e-3f, .center = true, .scale = true};
    INF_TRY(inf_layers_int_list(config, "axis", range, norm->axes, INF_LIMIT_RANK,
                                &norm->axis_count, err));
    INF_TRY(inf_layers_float(config, "epsilon", &norm->epsilon, err));
    INF_TRY(inf_layers_bool(config, "center", &norm->center, err));
    INF_TRY(inf_layers_bool(config, "scale", &norm->scale, err));
    for (uint32_t i = 0; i < norm->axis_count; i++)
        INF_TRY(inf_layers_axis(scope, norm->axes[i], &norm->axes[i], err));
    return INF_OK;
}

// Adds a transpose of x that swaps axis `axis` with the last axis.
static enum inf_code swap_axis(struct inf_layers_scope *scope, int32_t axis, uint32_t *value,
                               struct inf_error *err)
{
    int64_t perm[INF_LIMIT_RANK];
    int32_t last = inf_layers_shape_of(scope, *value)->rank - 1;
    if (axis == last)
        return INF_OK;
    for (int32_t i = 0; i <= last; i++)
        perm[i] = i;
    perm[axis] = last;
    perm[last] = axis;
    return inf_layers_transpose(scope, *value, perm, value, err);
}

static enum inf_code lower_batch_norm(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct norm norm;
    uint32_t value = inf_layers_x(scope);
    const struct inf_weight *mean;
    INF_TRY(read_norm(scope, &norm, err));
    if (norm.axis_count != 1)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "has %u axes, wanted 1",
                               norm.axis_count);
    struct inf_shape want = INF_SHAPE(inf_layers_shape_of(scope, value)->dims[norm.axes[0]]);
    INF_TRY(inf_layers_weight_data(scope, "moving_mean", &want, &mean, err));
    want = mean->shape;
    INF_TRY(swap_axis(scope, norm.axes[0], &value, err));
    struct inf_build_node node =
        inf_build_describe(INF_OP_BATCH_NORM, value, INF_VALUE_NONE, INF_VALUE_NONE);
    uint32_t inputs[5] = {value};
    node.list = inputs;
    node.input_count = INF_ARRAY_LENGTH(inputs);
    node.attrs.batch_norm.epsilon = norm.epsilon;
    INF_TRY(norm.scale ? inf_layers_weight(scope, "gamma", &want, NULL, &inputs[1], err)
                       : add_weight_or_number(scope, "gamma", want.dims[0], 1.0f, &inputs[1], err));
    INF_TRY(norm.center ? inf_layers_weight(scope, "beta", &want, NULL, &inputs[2], err)
                        : add_weight_or_number(scope, "beta", want.dims[0], 0.0f, &inputs[2], err));
    INF_TRY(inf_layers_weight(scope, "moving_mean", &want, NULL, &inputs[3], err));
    INF_TRY(inf_layers_weight(scope, "moving_variance", &want, NULL, &inputs[4], err));
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    INF_TRY(swap_axis(scope, norm.axes[0], &value, err));
    return inf_layers_finish(scope, value, err);
}

// Adds a weight that has one element for each position along the axes, reshaped so that it
// broadcasts against `value`.
static enum inf_code add_broadcast_weight(struct inf_layers_scope *scope, const struct norm *norm,
                                          const char *name, uint32_t value, uint32_t *out_value,
                                          struct inf_error *err)
{
    const struct inf_shape *shape = inf_layers_shape_of(scope, value);
    const struct inf_weight *weight;
    struct inf_shape want = {.rank = (int32_t)norm->axis_count};
    struct inf_shape as = {.rank = shape->rank};
    for (uint32_t i = 0; i < norm->axis_count; i++)
        want.dims[i] = shape->dims[norm->axes[i]];
    INF_TRY(inf_layers_weight_data(scope, name, &want, &weight, err));
    for (int32_t i = 0; i < as.rank; i++)
        as.dims[i] = 1;
    for (uint32_t i = 0; i < norm->axis_count; i++)
        as.dims[norm->axes[i]] = weight->shape.dims[i];
    return inf_layers_weight(scope, name, &want, &as, out_value, err);
}

// Adds a binary node of kind `kind` with the operands `value` and a weight of the layer.
static enum inf_code apply_weight(struct inf_layers_scope *scope, const struct norm *norm,
                                  enum inf_binary_kind kind, const char *name, uint32_t *value,
                                  struct inf_error *err)
{
    uint32_t constant;
    INF_TRY(add_broadcast_weight(scope, norm, name, *value, &constant, err));
    return inf_layers_binary(scope, kind, *value, constant, value, err);
}

// Returns true if the sorted axes are the last axes of x. Devices have a kernel for this case.
static bool are_last(const struct norm *norm, int32_t rank)
{
    return norm->axes[0] == rank - (int32_t)norm->axis_count;
}

// Adds x normalised along its axes, times "gamma" plus "beta", as a single NORMALIZE node.
static enum inf_code normalize_rows(struct inf_layers_scope *scope, const struct norm *norm,
                                    uint32_t value, uint32_t *out_value, struct inf_error *err)
{
    uint32_t inputs[3] = {value, INF_VALUE_NONE, INF_VALUE_NONE};
    struct inf_build_node node =
        inf_build_describe(INF_OP_NORMALIZE, value, INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_ints *axes = &node.attrs.normalize.axes;
    node.list = inputs;
    node.input_count = norm->center ? 3 : norm->scale ? 2 : 1;
    node.attrs.normalize.epsilon = norm->epsilon;
    for (uint32_t i = 0; i < norm->axis_count; i++)
        axes->values[axes->count++] = norm->axes[i];
    if (norm->scale)
        INF_TRY(add_broadcast_weight(scope, norm, "gamma", value, &inputs[1], err));
    if (norm->center)
        INF_TRY(add_broadcast_weight(scope, norm, "beta", value, &inputs[2], err));
    return inf_layers_emit(scope, &node, out_value, err);
}

// Adds x normalised along its axes, with the layer's weights "gamma" and "beta" if it has them.
static enum inf_code add_normalized(struct inf_layers_scope *scope, const struct norm *norm,
                                    uint32_t value, uint32_t *out_value, struct inf_error *err)
{
    uint32_t mean, variance;
    struct inf_attrs_reduce how = {.kind = INF_REDUCE_MEAN, .keep_dims = true};
    if (are_last(norm, inf_layers_shape_of(scope, value)->rank))
        return normalize_rows(scope, norm, value, out_value, err);
    for (uint32_t i = 0; i < norm->axis_count; i++)
        how.axes.values[how.axes.count++] = norm->axes[i];
    INF_TRY(inf_layers_reduce(scope, &how, value, &mean, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_SUB, value, mean, &value, err));
    INF_TRY(inf_layers_unary(scope, INF_UNARY_SQUARE, value, &variance, err));
    INF_TRY(inf_layers_reduce(scope, &how, variance, &variance, err));
    INF_TRY(
        inf_layers_binary_number(scope, INF_BINARY_ADD, variance, norm->epsilon, &variance, err));
    INF_TRY(inf_layers_unary(scope, INF_UNARY_RSQRT, variance, &variance, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, value, variance, &value, err));
    if (norm->scale)
        INF_TRY(apply_weight(scope, norm, INF_BINARY_MUL, "gamma", &value, err));
    if (norm->center)
        INF_TRY(apply_weight(scope, norm, INF_BINARY_ADD, "beta", &value, err));
    *out_value = value;
    return INF_OK;
}

enum inf_code inf_layers_normalize_last(struct inf_layers_scope *scope, float epsilon, uint32_t x,
                                        uint32_t *out_value, struct inf_error *err)
{
    const struct norm norm = {
        .axes = {inf_layers_shape_of(scope, x)->rank - 1},
        .axis_count = 1,
        .epsilon = epsilon,
        .center = true,
        .scale = true,
    };
    return add_normalized(scope, &norm, x, out_value, err);
}

static enum inf_code lower_layer_norm(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct norm norm;
    uint32_t value;
    INF_TRY(read_norm(scope, &norm, err));
    // Sort the axes, because the axes of weights are sorted.
    for (uint32_t i = 1; i < norm.axis_count; i++)
        if (norm.axes[i] <= norm.axes[i - 1])
            return inf_layers_fail(scope, err, INF_UNSUPPORTED, "has axes out of order");
    if (norm.axis_count == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "has no axis");
    INF_TRY(add_normalized(scope, &norm, inf_layers_x(scope), &value, err));
    return inf_layers_finish(scope, value, err);
}

static const struct inf_layers_class classes[] = {
    {"BatchNormalization", lower_batch_norm, 1, 1, 0, true},
    {"SyncBatchNormalization", lower_batch_norm, 1, 1, 0, true},
    {"BatchNormalizationV1", lower_batch_norm, 1, 1, 0, true},
    {"BatchNormalizationV2", lower_batch_norm, 1, 1, 0, true},
    {"LayerNormalization", lower_layer_norm, 1, 1, 0, true},
};

const struct inf_layers_class_table inf_layers_classes_norm = {classes, INF_ARRAY_LENGTH(classes)};
