// SPDX-License-Identifier: Apache-2.0
// Lowers calls of layers, and of models within models, in an order in which every input is computed
// before it is used. A wrapper such as TimeDistributed applies its inner layer from its own
// lowering function.
#include "backends/import/layers/lower.h"

#include "proto/core/limits.h"

static enum inf_code apply_model(struct inf_layers_scope *scope, struct inf_error *err);

// Fails if the call passes a tensor under a keyword that is not one of `names`.
static enum inf_code check_named(const struct inf_layers_scope *scope, const char *const *names,
                                 struct inf_error *err)
{
    for (uint32_t i = 0; i < scope->input_count; i++) {
        const char *argument = scope->inputs[i].argument;
        bool found = argument == NULL;
        for (const char *const *name = names; name != NULL && *name != NULL && !found; name++)
            found = inf_layers_same_word(argument, *name);
        if (!found)
            return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                                   "is given a tensor as '%.60s', which is not built", argument);
    }
    return INF_OK;
}

static enum inf_code lower_layer(struct inf_layers_scope *scope, struct inf_error *err)
{
    const struct inf_layers_class *class = scope->layer->class;
    if (scope->input_count < class->inputs_min || scope->input_count > class->inputs_max)
        return inf_layers_fail(scope, err, INF_INVALID, "has %u inputs, wanted %u to %u",
                               scope->input_count, class->inputs_min, class->inputs_max);
    INF_TRY(check_named(scope, class->named, err));
    INF_TRY(inf_layers_spend(scope, 1, err));
    return class->lower(scope, err);
}

enum inf_code inf_layers_apply(struct inf_layers_scope *scope, struct inf_error *err)
{
    return scope->layer->model != NULL ? apply_model(scope, err) : lower_layer(scope, err);
}

// A model whose layers are being lowered, and the results so far.
struct run {
    struct inf_layers_context *context;
    const struct inf_layers_model *model;
    struct inf_layers_result *results; // outputs of each call, indexed by call
};

// Sets *out to the tensor to which `ref` refers. The call that computes the tensor has been
// lowered. `who` is the layer that takes the tensor as input, for error texts.
static enum inf_code find_tensor(const struct run *run, const struct inf_layers_ref *ref,
                                 struct inf_layers_tensor *out, const struct inf_layers_layer *who,
                                 struct inf_error *err)
{
    const struct inf_layers_layer *layer = &run->model->layers[ref->layer];
    const struct inf_layers_result *result = &run->results[layer->first_call + ref->call];
    if (ref->tensor >= result->count)
        return inf_fail(err, INF_INVALID,
                        "layer '%.180s' (%.60s): takes output %u of layer '%.180s' (%.60s), which "
                        "has %u",
                        who->name, who->class_name, ref->tensor, layer->name, layer->class_name,
                        result->count);
    *out = result->items[ref->tensor];
    return INF_OK;
}

static enum inf_code apply_call(struct run *run, uint32_t index, struct inf_error *err)
{
    const struct inf_layers_call *call = &run->model->calls[index];
    const struct inf_layers_layer *layer = &run->model->layers[call->layer];
    struct inf_layers_tensor *inputs =
        inf_arena_alloc(run->context->arena, (call->inputs.count + 1) * sizeof *inputs);
    if (inputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the inputs of a layer");
    for (uint32_t i = 0; i < call->inputs.count; i++) {
        INF_TRY(find_tensor(run, &call->inputs.items[i], &inputs[i], layer, err));
        inputs[i].argument = call->inputs.items[i].argument;
    }
    struct inf_layers_scope scope = {
        .context = run->context,
        .layer = layer,
        .prefixes = {layer->name},
        .inputs = inputs,
        .input_count = call->inputs.count,
        .arguments = call->arguments,
    };
    INF_TRY(inf_layers_apply(&scope, err));
    run->results[index] = scope.result;
    return INF_OK;
}

// Lowers the calls of a model and collects its outputs. The results for the model's inputs are
// already set.
static enum inf_code apply_calls(struct run *run, struct inf_layers_scope *scope,
                                 struct inf_error *err)
{
    const struct inf_layers_model *model = run->model;
    for (uint32_t i = 0; i < model->order_count; i++)
        if (run->results[model->order[i]].items == NULL)
            INF_TRY(apply_call(run, model->order[i], err));
    INF_TRY(inf_layers_outputs(scope, model->outputs.count, err));
    for (uint32_t i = 0; i < model->outputs.count; i++)
        INF_TRY(
            find_tensor(run, &model->outputs.items[i], &scope->result.items[i], scope->layer, err));
    return INF_OK;
}

static enum inf_code apply_model(struct inf_layers_scope *scope, struct inf_error *err)
{
    const struct inf_layers_model *model = scope->layer->model;
    struct run run = {.context = scope->context, .model = model};
    if (scope->input_count != model->inputs.count)
        return inf_layers_fail(scope, err, INF_INVALID, "has %u inputs, wanted %u",
                               scope->input_count, model->inputs.count);
    INF_TRY(check_named(scope, NULL, err));
    INF_TRY(inf_layers_spend(scope, model->call_count, err));
    run.results =
        inf_arena_alloc(scope->context->arena, (model->call_count + 1) * sizeof *run.results);
    if (run.results == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for its layers");
    for (uint32_t i = 0; i < model->inputs.count; i++) {
        const struct inf_layers_ref *ref = &model->inputs.items[i];
        struct inf_layers_scope input = *scope;
        INF_TRY(inf_layers_outputs(&input, 1, err));
        input.result.items[0] = scope->inputs[i];
        run.results[model->layers[ref->layer].first_call + ref->call] = input.result;
    }
    return apply_calls(&run, scope, err);
}
