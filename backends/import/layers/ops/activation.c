// SPDX-License-Identifier: Apache-2.0
// Activations, by name in a configuration and as layers of their own.
#include <math.h>
#include <string.h>

#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"

struct inf_layers_activation {
    const char *name;
    enum inf_code (*emit)(struct inf_layers_scope *scope,
                          const struct inf_layers_activation *activation, uint32_t x,
                          uint32_t *out_value, struct inf_error *err);
    int32_t kind;
    float alpha, beta;
};

static enum inf_code emit_alpha(struct inf_layers_scope *scope, enum inf_unary_kind kind,
                                float alpha, uint32_t x, uint32_t *out_value, struct inf_error *err)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_UNARY, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.unary.kind = kind;
    node.attrs.unary.alpha = alpha;
    return inf_layers_emit(scope, &node, out_value, err);
}

static enum inf_code emit_clip(struct inf_layers_scope *scope, float min, float max, uint32_t x,
                               uint32_t *out_value, struct inf_error *err)
{
    struct inf_build_node node = inf_build_describe(INF_OP_CLIP, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.clip.min = min;
    node.attrs.clip.max = max;
    return inf_layers_emit(scope, &node, out_value, err);
}

static enum inf_code emit_identity(struct inf_layers_scope *scope,
                                   const struct inf_layers_activation *activation, uint32_t x,
                                   uint32_t *out_value, struct inf_error *err)
{
    (void)scope, (void)activation, (void)err;
    *out_value = x;
    return INF_OK;
}

static enum inf_code emit_unary(struct inf_layers_scope *scope,
                                const struct inf_layers_activation *activation, uint32_t x,
                                uint32_t *out_value, struct inf_error *err)
{
    return emit_alpha(scope, (enum inf_unary_kind)activation->kind, activation->alpha, x, out_value,
                      err);
}

// Adds the hard sigmoid of x: min(max(alpha * x + beta, 0), 1).
static enum inf_code emit_hard_sigmoid(struct inf_layers_scope *scope,
                                       const struct inf_layers_activation *activation, uint32_t x,
                                       uint32_t *out_value, struct inf_error *err)
{
    uint32_t y;
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, x, activation->alpha, &y, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_ADD, y, activation->beta, &y, err));
    return emit_clip(scope, 0.0f, 1.0f, y, out_value, err);
}

static enum inf_code emit_softsign(struct inf_layers_scope *scope,
                                   const struct inf_layers_activation *activation, uint32_t x,
                                   uint32_t *out_value, struct inf_error *err)
{
    (void)activation;
    uint32_t y;
    INF_TRY(inf_layers_unary(scope, INF_UNARY_ABS, x, &y, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_ADD, y, 1.0f, &y, err));
    return inf_layers_binary(scope, INF_BINARY_DIV, x, y, out_value, err);
}

// Adds x times a function of x, such as swish.
static enum inf_code emit_times_unary(struct inf_layers_scope *scope,
                                      const struct inf_layers_activation *activation, uint32_t x,
                                      uint32_t *out_value, struct inf_error *err)
{
    uint32_t y;
    INF_TRY(inf_layers_unary(scope, (enum inf_unary_kind)activation->kind, x, &y, err));
    return inf_layers_binary(scope, INF_BINARY_MUL, x, y, out_value, err);
}

static enum inf_code emit_mish(struct inf_layers_scope *scope,
                               const struct inf_layers_activation *activation, uint32_t x,
                               uint32_t *out_value, struct inf_error *err)
{
    (void)activation;
    uint32_t y;
    INF_TRY(inf_layers_unary(scope, INF_UNARY_SOFTPLUS, x, &y, err));
    INF_TRY(inf_layers_unary(scope, INF_UNARY_TANH, y, &y, err));
    return inf_layers_binary(scope, INF_BINARY_MUL, x, y, out_value, err);
}

// Adds x / 2 * (1 + y), with which all forms of gelu end.
static enum inf_code emit_gelu_product(struct inf_layers_scope *scope, uint32_t x, uint32_t y,
                                       uint32_t *out_value, struct inf_error *err)
{
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_ADD, y, 1.0f, &y, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, y, 0.5f, &y, err));
    return inf_layers_binary(scope, INF_BINARY_MUL, x, y, out_value, err);
}

static enum inf_code emit_gelu(struct inf_layers_scope *scope,
                               const struct inf_layers_activation *activation, uint32_t x,
                               uint32_t *out_value, struct inf_error *err)
{
    (void)activation;
    uint32_t y;
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, x, (float)M_SQRT1_2, &y, err));
    INF_TRY(inf_layers_unary(scope, INF_UNARY_ERF, y, &y, err));
    return emit_gelu_product(scope, x, y, out_value, err);
}

// Adds the approximation of gelu that uses tanh(sqrt(2 / pi) * (x + 0.044715 x^3)) instead of erf.
static enum inf_code emit_gelu_tanh(struct inf_layers_scope *scope,
                                    const struct inf_layers_activation *activation, uint32_t x,
                                    uint32_t *out_value, struct inf_error *err)
{
    (void)activation;
    uint32_t y;
    INF_TRY(inf_layers_unary(scope, INF_UNARY_SQUARE, x, &y, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, y, 0.044715f, &y, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_ADD, y, 1.0f, &y, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, x, y, &y, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, y, (float)(M_2_SQRTPI * M_SQRT1_2), &y,
                                     err));
    INF_TRY(inf_layers_unary(scope, INF_UNARY_TANH, y, &y, err));
    return emit_gelu_product(scope, x, y, out_value, err);
}

static enum inf_code emit_softmax(struct inf_layers_scope *scope,
                                  const struct inf_layers_activation *activation, uint32_t x,
                                  uint32_t *out_value, struct inf_error *err)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_SOFTMAX, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.softmax.log = activation->kind != 0;
    return inf_layers_emit(scope, &node, out_value, err);
}

static const struct inf_layers_activation activations[] = {
    {"linear", emit_identity, 0, 0, 0},
    {"relu", emit_unary, INF_UNARY_RELU, 0, 0},
    {"relu6", emit_unary, INF_UNARY_RELU6, 0, 0},
    {"sigmoid", emit_unary, INF_UNARY_SIGMOID, 0, 0},
    {"hard_sigmoid", emit_hard_sigmoid, 0, 0.2f, 0.5f},
    {"tanh", emit_unary, INF_UNARY_TANH, 0, 0},
    {"elu", emit_unary, INF_UNARY_ELU, 1.0f, 0},
    {"selu", emit_unary, INF_UNARY_SELU, 0, 0},
    {"leaky_relu", emit_unary, INF_UNARY_LEAKY_RELU, 0.2f, 0},
    {"exponential", emit_unary, INF_UNARY_EXP, 0, 0},
    {"softplus", emit_unary, INF_UNARY_SOFTPLUS, 0, 0},
    {"softsign", emit_softsign, 0, 0, 0},
    {"softmax", emit_softmax, false, 0, 0},
    {"log_softmax", emit_softmax, true, 0, 0},
    {"swish", emit_times_unary, INF_UNARY_SIGMOID, 0, 0},
    {"silu", emit_times_unary, INF_UNARY_SIGMOID, 0, 0},
    {"hard_silu", emit_unary, INF_UNARY_HARD_SWISH, 0, 0},
    {"hard_swish", emit_unary, INF_UNARY_HARD_SWISH, 0, 0},
    {"mish", emit_mish, 0, 0, 0},
    {"gelu", emit_gelu, 0, 0, 0},
    {"gelu_new", emit_gelu_tanh, 0, 0, 0},
};

// Reads the name in "relu", {"class_name": "relu"} or {"class_name": "function", "config": "relu"}.
static enum inf_code read_name(const struct inf_json *json, const char **out, struct inf_error *err)
{
    if (!inf_json_is_object(json))
        return inf_json_name(json, out, err);
    struct inf_json name, config;
    INF_TRY(inf_layers_find(json, "class_name", &name, err));
    INF_TRY(inf_layers_find(json, "config", &config, err));
    if (inf_json_is_string(&config))
        return inf_json_name(&config, out, err);
    if (name.value == NULL)
        return inf_json_fail(json, err, "the name of an activation");
    return inf_json_name(&name, out, err);
}

enum inf_code inf_layers_activation_read(const struct inf_layers_scope *scope, const char *key,
                                         const char *standard,
                                         const struct inf_layers_activation **out,
                                         struct inf_error *err)
{
    struct inf_json json;
    const char *name = standard;
    INF_TRY(inf_layers_find(&scope->layer->config, key, &json, err));
    if (json.value != NULL)
        INF_TRY(read_name(&json, &name, err));
    for (size_t i = 0; i < INF_ARRAY_LENGTH(activations); i++)
        if (inf_layers_same_word(name, activations[i].name)) {
            *out = &activations[i];
            return INF_OK;
        }
    return inf_layers_fail(scope, err, INF_UNSUPPORTED, "%s '%.80s' is not known", key, name);
}

bool inf_layers_activation_is_unary(const struct inf_layers_activation *activation,
                                    struct inf_attrs_unary *out)
{
    *out = (struct inf_attrs_unary){.kind = (enum inf_unary_kind)activation->kind,
                                    .alpha = activation->alpha,
                                    .beta = activation->beta};
    if (activation->emit == emit_hard_sigmoid)
        out->kind = INF_UNARY_HARD_SIGMOID;
    else if (activation->emit == emit_identity)
        *out = (struct inf_attrs_unary){.kind = INF_UNARY_LEAKY_RELU, .alpha = 1.0f};
    else
        return activation->emit == emit_unary;
    return true;
}

enum inf_code inf_layers_activate(struct inf_layers_scope *scope,
                                  const struct inf_layers_activation *activation, uint32_t x,
                                  uint32_t *out_value, struct inf_error *err)
{
    return activation->emit(scope, activation, x, out_value, err);
}

enum inf_code inf_layers_finish_activated(struct inf_layers_scope *scope, uint32_t value,
                                          struct inf_error *err)
{
    const struct inf_layers_activation *activation;
    INF_TRY(inf_layers_activation_read(scope, "activation", "linear", &activation, err));
    INF_TRY(inf_layers_activate(scope, activation, value, &value, err));
    return inf_layers_finish(scope, value, err);
}

// --- layers that are activations ---

static enum inf_code lower_activation(struct inf_layers_scope *scope, struct inf_error *err)
{
    return inf_layers_finish_activated(scope, inf_layers_x(scope), err);
}

// Adds nodes that compute x >= threshold ? x : slope * (x - threshold).
static enum inf_code emit_threshold(struct inf_layers_scope *scope, float threshold, float slope,
                                    uint32_t x, uint32_t *out_value, struct inf_error *err)
{
    uint32_t constant, condition, below;
    INF_TRY(inf_layers_add_float(scope, threshold, &constant, err));
    struct inf_build_node compare = inf_build_describe(INF_OP_COMPARE, x, constant, INF_VALUE_NONE);
    compare.attrs.compare.kind = INF_COMPARE_GREATER_EQUAL;
    INF_TRY(inf_layers_emit(scope, &compare, &condition, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_SUB, x, constant, &below, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, below, slope, &below, err));
    struct inf_build_node select = inf_build_describe(INF_OP_SELECT, condition, x, below);
    return inf_layers_emit(scope, &select, out_value, err);
}

static enum inf_code lower_relu(struct inf_layers_scope *scope, struct inf_error *err)
{
    const struct inf_json *config = &scope->layer->config;
    float max = INFINITY, slope = 0.0f, threshold = 0.0f;
    uint32_t value = inf_layers_x(scope);
    INF_TRY(inf_layers_float(config, "max_value", &max, err));
    INF_TRY(inf_layers_float(config, "negative_slope", &slope, err));
    INF_TRY(inf_layers_float(config, "threshold", &threshold, err));
    if (threshold != 0.0f)
        INF_TRY(emit_threshold(scope, threshold, slope, value, &value, err));
    else if (slope != 0.0f)
        INF_TRY(emit_alpha(scope, INF_UNARY_LEAKY_RELU, slope, value, &value, err));
    else
        INF_TRY(inf_layers_unary(scope, max == 6.0f ? INF_UNARY_RELU6 : INF_UNARY_RELU, value,
                                 &value, err));
    if (max < INFINITY && (max != 6.0f || slope != 0.0f || threshold != 0.0f))
        INF_TRY(emit_clip(scope, -INFINITY, max, value, &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code lower_leaky_relu(struct inf_layers_scope *scope, struct inf_error *err)
{
    float alpha = 0.3f;
    uint32_t value;
    INF_TRY(inf_layers_float(&scope->layer->config, "negative_slope", &alpha, err));
    INF_TRY(inf_layers_float(&scope->layer->config, "alpha", &alpha, err));
    INF_TRY(emit_alpha(scope, INF_UNARY_LEAKY_RELU, alpha, inf_layers_x(scope), &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code lower_elu(struct inf_layers_scope *scope, struct inf_error *err)
{
    float alpha = 1.0f;
    uint32_t value;
    INF_TRY(inf_layers_float(&scope->layer->config, "alpha", &alpha, err));
    INF_TRY(emit_alpha(scope, INF_UNARY_ELU, alpha, inf_layers_x(scope), &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code lower_thresholded_relu(struct inf_layers_scope *scope, struct inf_error *err)
{
    float theta = 1.0f;
    uint32_t constant, condition, zero, x = inf_layers_x(scope), value;
    INF_TRY(inf_layers_float(&scope->layer->config, "theta", &theta, err));
    INF_TRY(inf_layers_add_float(scope, theta, &constant, err));
    INF_TRY(inf_layers_add_float(scope, 0.0f, &zero, err));
    struct inf_build_node compare = inf_build_describe(INF_OP_COMPARE, x, constant, INF_VALUE_NONE);
    compare.attrs.compare.kind = INF_COMPARE_GREATER;
    INF_TRY(inf_layers_emit(scope, &compare, &condition, err));
    struct inf_build_node select = inf_build_describe(INF_OP_SELECT, condition, x, zero);
    INF_TRY(inf_layers_emit(scope, &select, &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code lower_prelu(struct inf_layers_scope *scope, struct inf_error *err)
{
    uint32_t x = inf_layers_x(scope), alpha, value;
    const struct inf_shape *shape = inf_layers_shape_of(scope, x);
    // One slope for each element of an example; axes that share slopes have size 1.
    struct inf_shape want = {.rank = shape->rank - 1};
    for (int32_t i = 0; i < want.rank; i++)
        want.dims[i] = INF_DIM_UNKNOWN;
    INF_TRY(inf_layers_weight(scope, "alpha", &want, NULL, &alpha, err));
    struct inf_build_node node = inf_build_describe(INF_OP_PRELU, x, alpha, INF_VALUE_NONE);
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return inf_layers_finish(scope, value, err);
}

static enum inf_code lower_softmax(struct inf_layers_scope *scope, struct inf_error *err)
{
    int32_t axis = -1;
    uint32_t count = 1, value;
    static const struct inf_layers_range range = {-INF_LIMIT_RANK, INF_LIMIT_RANK - 1};
    INF_TRY(inf_layers_int_list(&scope->layer->config, "axis", range, &axis, 1, &count, err));
    INF_TRY(inf_layers_axis(scope, axis, &axis, err));
    struct inf_build_node node =
        inf_build_describe(INF_OP_SOFTMAX, inf_layers_x(scope), INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.softmax.axis = axis;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return inf_layers_finish(scope, value, err);
}

static const struct inf_layers_class classes[] = {
    {"Activation", lower_activation, 1, 1, 0, true},
    {"ReLU", lower_relu, 1, 1, 0, true},
    {"LeakyReLU", lower_leaky_relu, 1, 1, 0, true},
    {"ELU", lower_elu, 1, 1, 0, true},
    {"PReLU", lower_prelu, 1, 1, 0, true},
    {"ThresholdedReLU", lower_thresholded_relu, 1, 1, 0, true},
    {"Softmax", lower_softmax, 1, 1, 0, true},
};

const struct inf_layers_class_table inf_layers_classes_activation = {classes,
                                                                     INF_ARRAY_LENGTH(classes)};
