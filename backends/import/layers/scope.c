// SPDX-License-Identifier: Apache-2.0
// The call that is being lowered: its inputs, arguments, weights, outputs and errors.
#include <stdio.h>
#include <string.h>

#include "backends/import/layers/lower.h"

enum inf_code inf_layers_error(const struct inf_layers_layer *layer, enum inf_code code,
                               struct inf_error *err)
{
    return inf_error_prefix(err, code, "layer '%.180s' (%.60s)", layer->name, layer->class_name);
}

enum inf_code inf_layers_spend(struct inf_layers_scope *scope, uint64_t count,
                               struct inf_error *err)
{
    if (count > scope->context->steps_left)
        return inf_layers_fail(scope, err, INF_EXHAUSTED,
                               "the model has more than %u layers and time steps, those of models "
                               "within it counted each time they are called",
                               INF_LAYERS_STEPS_MAX);
    scope->context->steps_left -= (uint32_t)count;
    return INF_OK;
}

const struct inf_shape *inf_layers_shape_of(const struct inf_layers_scope *scope, uint32_t value)
{
    return &scope->context->graph->values[value].shape;
}

uint32_t inf_layers_x(const struct inf_layers_scope *scope)
{
    return scope->inputs[0].value;
}

const struct inf_layers_tensor *inf_layers_argument(const struct inf_layers_scope *scope,
                                                    uint32_t place, const char *name)
{
    const struct inf_layers_tensor *by_place = NULL;
    for (uint32_t i = 0; i < scope->input_count; i++) {
        const struct inf_layers_tensor *input = &scope->inputs[i];
        if (input->argument != NULL && inf_layers_same_word(input->argument, name))
            return input;
        if (input->argument == NULL && place-- == 0)
            by_place = input;
    }
    return by_place;
}

enum inf_code inf_layers_argument_flag(const struct inf_layers_scope *scope, const char *name,
                                       bool *out, struct inf_error *err)
{
    if (scope->arguments.value == NULL)
        return INF_OK;
    enum inf_code code = inf_layers_bool(&scope->arguments, name, out, err);
    return code == INF_OK ? INF_OK : inf_layers_error(scope->layer, code, err);
}

const char *inf_layers_join(struct inf_layers_scope *scope, const char *format, const char *a,
                            const char *b)
{
    int length = snprintf(NULL, 0, format, a, b);
    char *text = inf_arena_alloc(scope->context->arena, (size_t)length + 1);
    if (text != NULL)
        snprintf(text, (size_t)length + 1, format, a, b);
    return text;
}

enum inf_code inf_layers_axis(const struct inf_layers_scope *scope, int32_t axis, int32_t *out_axis,
                              struct inf_error *err)
{
    int32_t rank = inf_layers_shape_of(scope, inf_layers_x(scope))->rank;
    if (axis < -rank || axis >= rank)
        return inf_layers_fail(scope, err, INF_INVALID, "has axis %d, its input has %d", axis,
                               rank);
    *out_axis = axis < 0 ? axis + rank : axis;
    return INF_OK;
}

enum inf_code inf_layers_require_rank(const struct inf_layers_scope *scope, int32_t rank,
                                      struct inf_error *err)
{
    char text[INF_SHAPE_TEXT_SIZE];
    const struct inf_shape *shape = inf_layers_shape_of(scope, inf_layers_x(scope));
    if (shape->rank == rank)
        return INF_OK;
    return inf_layers_fail(scope, err, INF_INVALID, "its input is %s, wanted rank %d",
                           inf_shape_print(shape, text), rank);
}

// --- finding the weights of the layer ---

static enum inf_code find_weight(struct inf_layers_scope *scope, const char *name,
                                 const struct inf_shape *want, uint32_t *out_index,
                                 struct inf_error *err)
{
    char has[INF_SHAPE_TEXT_SIZE], wanted[INF_SHAPE_TEXT_SIZE];
    uint32_t index = UINT32_MAX;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(scope->prefixes) && index == UINT32_MAX; i++)
        if (scope->prefixes[i] != NULL)
            index = inf_layers_weights_find(scope->context->weights, scope->prefixes[i], name);
    if (index == UINT32_MAX)
        return inf_layers_fail(scope, err, INF_INVALID, "the weight '%.180s/%s' is missing",
                               scope->prefixes[0], name);
    const struct inf_weight *weight = inf_layers_weights_at(scope->context->weights, index);
    if (weight->dtype != INF_DTYPE_F32)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "the weight '%.180s' is %.20s, wanted float32", weight->name,
                               weight->type_name);
    if (!inf_shape_matches(&weight->shape, want))
        return inf_layers_fail(scope, err, INF_INVALID, "the weight '%.180s' is %s, wanted %s",
                               weight->name, inf_shape_print(&weight->shape, has),
                               inf_shape_print(want, wanted));
    *out_index = index;
    return INF_OK;
}

enum inf_code inf_layers_weight(struct inf_layers_scope *scope, const char *name,
                                const struct inf_shape *want, const struct inf_shape *as,
                                uint32_t *out_value, struct inf_error *err)
{
    uint32_t index;
    INF_TRY(find_weight(scope, name, want, &index, err));
    const struct inf_weight *weight = inf_layers_weights_at(scope->context->weights, index);
    uint32_t *known = inf_layers_weights_value(scope->context->weights, index);
    if (as == NULL && *known != INF_VALUE_NONE) {
        *out_value = *known;
        return INF_OK;
    }
    INF_TRY(inf_graph_add_const(scope->context->graph, weight->name, INF_DTYPE_F32,
                                as != NULL ? as : &weight->shape, inf_blob_ref(weight->data),
                                out_value, err));
    if (as == NULL)
        *known = *out_value;
    return INF_OK;
}

enum inf_code inf_layers_weight_data(struct inf_layers_scope *scope, const char *name,
                                     const struct inf_shape *want, const struct inf_weight **out,
                                     struct inf_error *err)
{
    uint32_t index;
    INF_TRY(find_weight(scope, name, want, &index, err));
    *out = inf_layers_weights_at(scope->context->weights, index);
    return INF_OK;
}

// --- setting the outputs of the call ---

enum inf_code inf_layers_outputs(struct inf_layers_scope *scope, uint32_t count,
                                 struct inf_error *err)
{
    scope->result.items =
        inf_arena_alloc(scope->context->arena, (count + 1) * sizeof *scope->result.items);
    if (scope->result.items == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for %u outputs", count);
    for (uint32_t i = 0; i < count; i++)
        scope->result.items[i] =
            (struct inf_layers_tensor){.value = INF_VALUE_NONE, .mask = INF_VALUE_NONE};
    scope->result.count = count;
    return INF_OK;
}

enum inf_code inf_layers_finish_masked(struct inf_layers_scope *scope, uint32_t value,
                                       uint32_t mask, struct inf_error *err)
{
    INF_TRY(inf_layers_outputs(scope, 1, err));
    scope->result.items[0] = (struct inf_layers_tensor){.value = value, .mask = mask};
    return INF_OK;
}

enum inf_code inf_layers_finish(struct inf_layers_scope *scope, uint32_t value,
                                struct inf_error *err)
{
    bool keeps =
        scope->layer->class != NULL && scope->layer->class->keeps_mask && scope->input_count > 0;
    return inf_layers_finish_masked(scope, value, keeps ? scope->inputs[0].mask : INF_VALUE_NONE,
                                    err);
}
