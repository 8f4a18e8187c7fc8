// SPDX-License-Identifier: Apache-2.0
// Dense and embedding layers, layers that change shapes, and layers that have no effect after
// training.
#include <string.h>

#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"

static enum inf_code lower_identity(struct inf_layers_scope *scope, struct inf_error *err)
{
    return inf_layers_finish(scope, inf_layers_x(scope), err);
}

// Input layers of a model are lowered before other layers. This function lowers an input layer that
// is used like another layer.
static enum inf_code lower_input(struct inf_layers_scope *scope, struct inf_error *err)
{
    return inf_layers_fail(scope, err, INF_INVALID, "is no input of the model it stands in");
}

static enum inf_code lower_dense(struct inf_layers_scope *scope, struct inf_error *err)
{
    uint32_t x = inf_layers_x(scope), value;
    const struct inf_shape *shape = inf_layers_shape_of(scope, x);
    int32_t units = 0;
    bool use_bias = true;
    struct inf_build_node node =
        inf_build_describe(INF_OP_MATMUL, x, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_layers_int(&scope->layer->config, "units", 1, 1 << 24, &units, err));
    INF_TRY(inf_layers_bool(&scope->layer->config, "use_bias", &use_bias, err));
    if (units == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say its units");
    if (shape->rank < 2)
        return inf_layers_fail(scope, err, INF_INVALID, "its input has rank %d, wanted 2 or more",
                               shape->rank);
    struct inf_shape want = INF_SHAPE(shape->dims[shape->rank - 1], units);
    INF_TRY(inf_layers_weight(scope, "kernel", &want, NULL, &node.inputs[1], err));
    node.input_count = use_bias ? 3 : 2;
    if (use_bias)
        INF_TRY(inf_layers_weight(scope, "bias", &INF_SHAPE(units), NULL, &node.inputs[2], err));
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return inf_layers_finish_activated(scope, value, err);
}

// Sets *out to the shape of one example of x: all axes except the batch axis.
static enum inf_code find_example_shape(struct inf_layers_scope *scope, uint32_t x,
                                        struct inf_shape *out, struct inf_error *err)
{
    const struct inf_shape *shape = inf_layers_shape_of(scope, x);
    if (shape->rank < 1)
        return inf_layers_fail(scope, err, INF_INVALID, "its input has no batch");
    *out = (struct inf_shape){.rank = shape->rank - 1};
    memcpy(out->dims, shape->dims + 1, (size_t)out->rank * sizeof *out->dims);
    return INF_OK;
}

// Lowers Flatten, which merges all axes except the batch axis.
static enum inf_code lower_flatten(struct inf_layers_scope *scope, struct inf_error *err)
{
    bool first;
    uint32_t x;
    INF_TRY(inf_layers_channels_first(scope, &first, err));
    INF_TRY(inf_layers_to_last(scope, first, inf_layers_x(scope), &x, err));
    struct inf_shape rest;
    size_t count;
    struct inf_layers_dim dims[] = {inf_layers_dim_of(x, 0), inf_layers_dim_fixed(-1)};
    INF_TRY(find_example_shape(scope, x, &rest, err));
    if (inf_shape_count(&rest, &count) && count < (size_t)INF_LIMIT_DIM)
        dims[1] = inf_layers_dim_fixed((int64_t)count);
    INF_TRY(inf_layers_reshape(scope, x, dims, 2, &x, err));
    return inf_layers_finish(scope, x, err);
}

// Computes the size in `target` that is -1. If all sizes are known, checks that the element counts
// agree.
static enum inf_code fit_target(struct inf_layers_scope *scope, struct inf_shape *target,
                                struct inf_error *err)
{
    char from[INF_SHAPE_TEXT_SIZE], to[INF_SHAPE_TEXT_SIZE];
    struct inf_shape example, filled = *target;
    size_t has, wanted;
    int32_t hole = -1;
    INF_TRY(find_example_shape(scope, inf_layers_x(scope), &example, err));
    for (int32_t i = 0; i < target->rank; i++) {
        if (target->dims[i] != INF_DIM_UNKNOWN)
            continue;
        if (hole >= 0)
            return inf_layers_fail(scope, err, INF_INVALID, "its target_shape has two sizes of -1");
        hole = i;
        filled.dims[i] = 1;
    }
    if (!inf_shape_count(&example, &has))
        return INF_OK;
    bool counted = inf_shape_count(&filled, &wanted);
    if (!counted || (hole < 0 ? has != wanted : wanted == 0 || has % wanted != 0))
        return inf_layers_fail(scope, err, INF_INVALID, "%s cannot become %s",
                               inf_shape_print(&example, from), inf_shape_print(target, to));
    if (hole >= 0)
        target->dims[hole] = (int64_t)(has / wanted);
    return INF_OK;
}

static enum inf_code lower_reshape(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct inf_json json;
    struct inf_shape target;
    uint32_t x = inf_layers_x(scope);
    struct inf_layers_dim dims[INF_LIMIT_RANK + 1] = {inf_layers_dim_of(x, 0)};
    INF_TRY(inf_layers_find(&scope->layer->config, "target_shape", &json, err));
    INF_TRY(inf_layers_shape(&json, &target, err));
    INF_TRY(fit_target(scope, &target, err));
    for (int32_t i = 0; i < target.rank; i++)
        dims[i + 1] = inf_layers_dim_fixed(target.dims[i]);
    INF_TRY(inf_layers_reshape(scope, x, dims, (uint32_t)target.rank + 1, &x, err));
    return inf_layers_finish(scope, x, err);
}

static enum inf_code lower_permute(struct inf_layers_scope *scope, struct inf_error *err)
{
    static const struct inf_layers_range range = {1, INF_LIMIT_RANK};
    int32_t axes[INF_LIMIT_RANK];
    int64_t perm[INF_LIMIT_RANK + 1] = {0};
    uint32_t count = 0, value;
    INF_TRY(inf_layers_int_list(&scope->layer->config, "dims", range, axes, INF_ARRAY_LENGTH(axes),
                                &count, err));
    INF_TRY(inf_layers_require_rank(scope, (int32_t)count + 1, err));
    for (uint32_t i = 0; i < count; i++)
        perm[i + 1] = axes[i];
    INF_TRY(inf_layers_transpose(scope, inf_layers_x(scope), perm, &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code lower_repeat_vector(struct inf_layers_scope *scope, struct inf_error *err)
{
    int32_t n = 0;
    uint32_t value;
    struct inf_build_node node =
        inf_build_describe(INF_OP_TILE, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_layers_require_rank(scope, 2, err));
    INF_TRY(inf_layers_int(&scope->layer->config, "n", 1, 1 << 24, &n, err));
    if (n == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say n");
    INF_TRY(inf_layers_expand(scope, inf_layers_x(scope), 1, &node.inputs[0], err));
    INF_TRY(inf_graph_add_const_i32(scope->context->graph, scope->layer->name, (int32_t[]){1, n, 1},
                                    3, &node.inputs[1], err));
    node.input_count = 2;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return inf_layers_finish(scope, value, err);
}

// Sets *out to x != `number`, element by element.
static enum inf_code emit_differs(struct inf_layers_scope *scope, uint32_t x, float number,
                                  uint32_t *out_value, struct inf_error *err)
{
    uint32_t constant;
    struct inf_build_node node =
        inf_build_describe(INF_OP_COMPARE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_layers_add_float(scope, number, &constant, err));
    INF_TRY(inf_layers_cast(scope, scope->context->graph->values[x].dtype, constant,
                            &node.inputs[1], err));
    node.input_count = 2;
    node.attrs.compare.kind = INF_COMPARE_NOT_EQUAL;
    return inf_layers_emit(scope, &node, out_value, err);
}

static enum inf_code lower_embedding(struct inf_layers_scope *scope, struct inf_error *err)
{
    const struct inf_json *config = &scope->layer->config;
    int32_t rows = -1, columns = -1;
    bool mask_zero = false;
    uint32_t indices, value, mask = INF_VALUE_NONE;
    struct inf_build_node node =
        inf_build_describe(INF_OP_GATHER, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_layers_int(config, "input_dim", 1, INT32_MAX, &rows, err));
    INF_TRY(inf_layers_int(config, "output_dim", 1, INT32_MAX, &columns, err));
    INF_TRY(inf_layers_bool(config, "mask_zero", &mask_zero, err));
    INF_TRY(inf_layers_weight(scope, "embeddings", &INF_SHAPE(rows, columns), NULL, &node.inputs[0],
                              err));
    INF_TRY(inf_layers_cast(scope, INF_DTYPE_I32, inf_layers_x(scope), &indices, err));
    node.inputs[1] = indices;
    node.input_count = 2;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    if (mask_zero)
        INF_TRY(emit_differs(scope, indices, 0.0f, &mask, err));
    return inf_layers_finish_masked(scope, value, mask, err);
}

// Lowers Masking: time steps in which all features equal the mask value become zeros and are
// masked.
static enum inf_code lower_masking(struct inf_layers_scope *scope, struct inf_error *err)
{
    float number = 0.0f;
    uint32_t x = inf_layers_x(scope), any, kept, value, mask;
    struct inf_attrs_reduce how = {
        .kind = INF_REDUCE_ANY, .axes = {.count = 1, .values = {-1}}, .keep_dims = true};
    INF_TRY(inf_layers_require_rank(scope, 3, err));
    INF_TRY(inf_layers_float(&scope->layer->config, "mask_value", &number, err));
    INF_TRY(emit_differs(scope, x, number, &any, err));
    INF_TRY(inf_layers_reduce(scope, &how, any, &any, err));
    INF_TRY(inf_layers_cast(scope, scope->context->graph->values[x].dtype, any, &kept, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, x, kept, &value, err));
    INF_TRY(inf_layers_squeeze(scope, any, 2, &mask, err));
    return inf_layers_finish_masked(scope, value, mask, err);
}

// Lists the sizes of a tensor for a reshape. Either its first two axes are merged, or its first
// axis is replaced by the first two sizes of `like`.
static uint32_t list_dims(const struct inf_layers_scope *scope, uint32_t x, const uint32_t *like,
                          struct inf_layers_dim dims[INF_LIMIT_RANK + 1])
{
    const struct inf_shape *shape = inf_layers_shape_of(scope, x);
    uint32_t count = 0;
    if (like != NULL) {
        dims[count++] = inf_layers_dim_of(*like, 0);
        dims[count++] = inf_layers_dim_of(*like, 1);
    } else {
        dims[count++] = inf_layers_dim_fixed(-1);
    }
    for (int32_t i = like != NULL ? 1 : 2; i < shape->rank; i++)
        dims[count++] = inf_layers_dim_of(x, i);
    return count;
}

// Lowers TimeDistributed: merges batch and time into one axis, and applies the inner layer to the
// result.
static enum inf_code lower_time_distributed(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct inf_layers_dim dims[INF_LIMIT_RANK + 1];
    uint32_t x = inf_layers_x(scope), value;
    const struct inf_shape *shape = inf_layers_shape_of(scope, x);
    if (shape->rank < 3)
        return inf_layers_fail(scope, err, INF_INVALID, "its input has rank %d, wanted 3 or more",
                               shape->rank);
    INF_TRY(inf_layers_reshape(scope, x, dims, list_dims(scope, x, NULL, dims), &value, err));
    const struct inf_layers_tensor input = {.value = value, .mask = INF_VALUE_NONE};
    const struct inf_layers_layer *inner = &scope->layer->parts[0];
    struct inf_layers_scope step = {
        .context = scope->context,
        .layer = inner,
        .prefixes = {scope->layer->name, inner->name},
        .inputs = &input,
        .input_count = 1,
    };
    enum inf_code code = inf_layers_apply(&step, err);
    if (code != INF_OK)
        return inf_layers_error(scope->layer, code, err);
    if (step.result.count != 1)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "the layer inside has %u outputs",
                               step.result.count);
    value = step.result.items[0].value;
    INF_TRY(inf_layers_reshape(scope, value, dims, list_dims(scope, value, &x, dims), &value, err));
    return inf_layers_finish(scope, value, err);
}

static const struct inf_layers_class classes[] = {
    {"InputLayer", lower_input, 0, 0, 0, false},
    {"Dense", lower_dense, 1, 1, 0, true},
    {"Flatten", lower_flatten, 1, 1, 0, false},
    {"Reshape", lower_reshape, 1, 1, 0, false},
    {"Permute", lower_permute, 1, 1, 0, false},
    {"RepeatVector", lower_repeat_vector, 1, 1, 0, false},
    {"Embedding", lower_embedding, 1, 1, 0, false},
    {"Masking", lower_masking, 1, 1, 0, false},
    {"TimeDistributed", lower_time_distributed, 1, 1, 0, true},
    {"Dropout", lower_identity, 1, 1, 0, true},
    {"AlphaDropout", lower_identity, 1, 1, 0, true},
    {"GaussianDropout", lower_identity, 1, 1, 0, true},
    {"GaussianNoise", lower_identity, 1, 1, 0, true},
    {"SpatialDropout1D", lower_identity, 1, 1, 0, true},
    {"SpatialDropout2D", lower_identity, 1, 1, 0, true},
    {"ActivityRegularization", lower_identity, 1, 1, 0, true},
    {"RandomBrightness", lower_identity, 1, 1, 0, false},
    {"RandomContrast", lower_identity, 1, 1, 0, false},
    {"RandomFlip", lower_identity, 1, 1, 0, false},
    {"RandomHeight", lower_identity, 1, 1, 0, false},
    {"RandomRotation", lower_identity, 1, 1, 0, false},
    {"RandomTranslation", lower_identity, 1, 1, 0, false},
    {"RandomWidth", lower_identity, 1, 1, 0, false},
    {"RandomZoom", lower_identity, 1, 1, 0, false},
};

const struct inf_layers_class_table inf_layers_classes_core = {classes, INF_ARRAY_LENGTH(classes)};
