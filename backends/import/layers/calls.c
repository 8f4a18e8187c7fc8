// SPDX-License-Identifier: Apache-2.0
// Reads the calls of a model's layers from inbound_nodes. Keras versions write calls in several
// ways: lists of ["layer", call, tensor], with keyword arguments as a fourth element, or (Keras 3)
// objects with args and kwargs. All become references from calls to outputs of calls. A depth-first
// walk then orders the calls so that every input is computed before it is used.
#include "backends/import/layers/calls.h"

#include <string.h>

#include "proto/core/limits.h"

// State that the functions share that read the calls of one model.
struct reader {
    struct inf_layers_document *document;
    struct inf_layers_model *model;
    // The call whose inputs are being read; NULL while the model's inputs and outputs are read.
    struct inf_layers_call *call;
    const char *argument; // keyword of the argument that is being read, or NULL
};

static enum inf_code add_ref(struct reader *reader, struct inf_layers_refs *refs,
                             struct inf_layers_ref ref, struct inf_error *err)
{
    if (refs->count == refs->capacity) {
        uint32_t capacity = refs->capacity > 0 ? 2 * refs->capacity : 2;
        struct inf_layers_ref *items = NULL;
        if (capacity <= 2 * INF_LIMIT_NODE_INPUTS)
            items = inf_arena_alloc(&reader->document->arena, capacity * sizeof *items);
        if (items == NULL)
            return inf_fail(err, INF_EXHAUSTED, "a layer takes more than %u tensors, or no memory",
                            INF_LIMIT_NODE_INPUTS);
        if (refs->count > 0)
            memcpy(items, refs->items, refs->count * sizeof *items);
        refs->items = items;
        refs->capacity = capacity;
    }
    refs->items[refs->count++] = ref;
    return INF_OK;
}

static uint32_t find_layer(const struct inf_layers_model *model, const char *name)
{
    uint32_t low = 0, high = model->layer_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(name, model->layers[model->by_name[middle]].name);
        if (order == 0)
            return model->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return UINT32_MAX;
}

static enum inf_code read_refs(struct reader *reader, const struct inf_json *json,
                               struct inf_layers_refs *refs, struct inf_error *err);

// Records that the argument `key` is being read, for the references found in it. The first input of
// every layer has the keyword "inputs", which is not recorded.
static void set_argument(struct reader *reader, const char *key)
{
    reader->argument = strcmp(key, "inputs") != 0 ? key : NULL;
}

// Reads the tensors among the keyword arguments, because they are inputs too. The layer reads the
// other arguments. Keras 2 repeats the same keyword arguments with each tensor; they are read only
// once. The nesting of the document limits the recursion.
static enum inf_code read_named(struct reader *reader, const struct inf_json *named,
                                struct inf_layers_refs *refs, struct inf_error *err)
{
    struct inf_json member;
    if (reader->call == NULL || reader->call->arguments.value != NULL || !inf_json_is_object(named))
        return INF_OK;
    // Store the value without a pointer to its parent, because the parent struct is freed earlier.
    reader->call->arguments = (struct inf_json){.value = named->value};
    for (void *iterator = NULL; inf_json_next(named, &iterator, &member);) {
        size_t count = 0;
        if (!inf_json_is_array(&member) || inf_json_array(&member, &count, NULL) != INF_OK ||
            count == 0)
            continue;
        // Skip an argument that is a list of numbers, because it contains no tensors.
        struct inf_json first = inf_json_at(&member, 0);
        if (!inf_json_is_string(&first) && !inf_json_is_array(&first))
            continue;
        set_argument(reader, member.key);
        INF_TRY(read_refs(reader, &member, refs, err));
        reader->argument = NULL;
    }
    return INF_OK;
}

// Reads ["layer", call, tensor], with keyword arguments as an optional fourth element.
static enum inf_code read_ref(struct reader *reader, const struct inf_json *json,
                              struct inf_layers_refs *refs, struct inf_error *err)
{
    size_t count;
    const char *name;
    int64_t call, tensor;
    INF_TRY(inf_json_array(json, &count, err));
    if (count < 3)
        return inf_json_fail(json, err, "a layer's name, a call and a tensor");
    struct inf_json items[3];
    for (size_t i = 0; i < 3; i++)
        items[i] = inf_json_at(json, i);
    INF_TRY(inf_json_name(&items[0], &name, err));
    INF_TRY(inf_json_int(&items[1], 0, INF_LAYERS_MAX, &call, err));
    INF_TRY(inf_json_int(&items[2], 0, INF_LAYERS_MAX, &tensor, err));
    uint32_t layer = find_layer(reader->model, name);
    if (layer == UINT32_MAX)
        return inf_json_fail(&items[0], err, "the name of a layer");
    const struct inf_layers_ref ref = {layer, (uint32_t)call, (uint32_t)tensor, reader->argument};
    INF_TRY(add_ref(reader, refs, ref, err));
    if (count < 4)
        return INF_OK;
    struct inf_json named = inf_json_at(json, 3);
    return read_named(reader, &named, refs, err);
}

// Reads a reference, or a list or object of references. The nesting of the document limits the
// recursion.
static enum inf_code read_refs(struct reader *reader, const struct inf_json *json,
                               struct inf_layers_refs *refs, struct inf_error *err)
{
    size_t count;
    if (inf_json_is_object(json)) {
        struct inf_json member;
        for (void *iterator = NULL; inf_json_next(json, &iterator, &member);)
            INF_TRY(read_refs(reader, &member, refs, err));
        return INF_OK;
    }
    INF_TRY(inf_json_array(json, &count, err));
    if (count > 0) {
        struct inf_json first = inf_json_at(json, 0);
        if (inf_json_is_string(&first))
            return read_ref(reader, json, refs, err);
    }
    for (size_t i = 0; i < count; i++) {
        struct inf_json item = inf_json_at(json, i);
        INF_TRY(read_refs(reader, &item, refs, err));
    }
    return INF_OK;
}

// Reads the tensors among the arguments of a call in the format of Keras 3. A tensor is an object
// whose config has a keras_history; other objects and lists are searched.
static enum inf_code read_arguments(struct reader *reader, const struct inf_json *json,
                                    struct inf_layers_refs *refs, struct inf_error *err)
{
    if (inf_json_is_object(json)) {
        struct inf_json config, history, member;
        if (inf_json_has(json, "config") &&
            inf_json_find(json, "config", &config, NULL) == INF_OK &&
            inf_json_has(&config, "keras_history")) {
            INF_TRY(inf_json_get(&config, "keras_history", &history, err));
            return read_ref(reader, &history, refs, err);
        }
        for (void *iterator = NULL; inf_json_next(json, &iterator, &member);)
            INF_TRY(read_arguments(reader, &member, refs, err));
    } else if (inf_json_is_array(json)) {
        size_t count;
        INF_TRY(inf_json_array(json, &count, err));
        for (size_t i = 0; i < count; i++) {
            struct inf_json item = inf_json_at(json, i);
            INF_TRY(read_arguments(reader, &item, refs, err));
        }
    }
    return INF_OK;
}

// Reads a call in the format of Keras 3: {"args": [...], "kwargs": {...}}.
static enum inf_code read_keras3(struct reader *reader, const struct inf_json *json,
                                 struct inf_layers_call *call, struct inf_error *err)
{
    struct inf_json named, member;
    if (inf_json_has(json, "args")) {
        INF_TRY(inf_json_get(json, "args", &member, err));
        INF_TRY(read_arguments(reader, &member, &call->inputs, err));
    }
    if (!inf_json_has(json, "kwargs"))
        return INF_OK;
    INF_TRY(inf_json_get(json, "kwargs", &named, err));
    if (!inf_json_is_object(&named))
        return inf_json_fail(&named, err, "an object");
    call->arguments = (struct inf_json){.value = named.value};
    for (void *iterator = NULL; inf_json_next(&named, &iterator, &member);) {
        set_argument(reader, member.key);
        INF_TRY(read_arguments(reader, &member, &call->inputs, err));
        reader->argument = NULL;
    }
    return INF_OK;
}

static enum inf_code read_call(struct reader *reader, const struct inf_json *json,
                               struct inf_layers_call *call, struct inf_error *err)
{
    reader->call = call;
    return inf_json_is_object(json) ? read_keras3(reader, json, call, err)
                                    : read_refs(reader, json, &call->inputs, err);
}

static enum inf_code add_calls(struct reader *reader, uint32_t count, struct inf_error *err)
{
    reader->model->calls =
        inf_arena_alloc(&reader->document->arena, (count + 1) * sizeof *reader->model->calls);
    if (reader->model->calls == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u calls of layers", count);
    reader->model->call_count = count;
    return INF_OK;
}

static enum inf_code find_inbound(const struct inf_layers_layer *layer, struct inf_json *out,
                                  size_t *count, struct inf_error *err)
{
    *count = 0;
    INF_TRY(inf_json_find(&layer->json, "inbound_nodes", out, err));
    if (out->value == NULL)
        INF_TRY(inf_json_find(&layer->json, "inboundNodes", out, err));
    return out->value != NULL ? inf_json_array(out, count, err) : INF_OK;
}

// Counts the calls of each layer. An input layer has one call without inputs.
static enum inf_code count_calls(struct reader *reader, struct inf_error *err)
{
    uint32_t total = 0;
    for (uint32_t i = 0; i < reader->model->layer_count; i++) {
        struct inf_layers_layer *layer = &reader->model->layers[i];
        struct inf_json inbound;
        size_t count;
        INF_TRY(find_inbound(layer, &inbound, &count, err));
        if (layer->is_input)
            count = 1;
        if (count > INF_LAYERS_MAX - total)
            return inf_fail(err, INF_EXHAUSTED, "layers are called more than %u times",
                            INF_LAYERS_MAX);
        layer->first_call = total;
        layer->call_count = (uint32_t)count;
        total += (uint32_t)count;
    }
    return add_calls(reader, total, err);
}

static enum inf_code read_calls(struct reader *reader, struct inf_error *err)
{
    for (uint32_t i = 0; i < reader->model->layer_count; i++) {
        const struct inf_layers_layer *layer = &reader->model->layers[i];
        struct inf_json inbound;
        size_t count;
        INF_TRY(find_inbound(layer, &inbound, &count, err));
        for (uint32_t k = 0; k < layer->call_count; k++) {
            struct inf_layers_call *call = &reader->model->calls[layer->first_call + k];
            call->layer = i;
            if (layer->is_input)
                continue;
            struct inf_json json = inf_json_at(&inbound, k);
            INF_TRY(read_call(reader, &json, call, err));
        }
    }
    return INF_OK;
}

// Calls `visit` for every reference to a layer's output in the model: the inputs of each call of a
// layer, and the inputs and outputs of the model itself.
static enum inf_code visit_refs(struct inf_layers_model *model,
                                enum inf_code (*visit)(struct inf_layers_model *model,
                                                       struct inf_layers_ref *ref,
                                                       struct inf_error *err),
                                struct inf_error *err)
{
    for (uint32_t i = 0; i < model->call_count; i++)
        for (uint32_t k = 0; k < model->calls[i].inputs.count; k++)
            INF_TRY(visit(model, &model->calls[i].inputs.items[k], err));
    for (uint32_t i = 0; i < model->inputs.count; i++)
        INF_TRY(visit(model, &model->inputs.items[i], err));
    for (uint32_t i = 0; i < model->outputs.count; i++)
        INF_TRY(visit(model, &model->outputs.items[i], err));
    return INF_OK;
}

// Numbers the calls of a layer from 0 if the reference uses the number 0. Otherwise the calls of a
// model within a model are numbered from 1, because the document does not list the call that
// created the model.
static enum inf_code note_call_zero(struct inf_layers_model *model, struct inf_layers_ref *ref,
                                    struct inf_error *err)
{
    (void)err;
    if (ref->call == 0)
        model->layers[ref->layer].first_index = 0;
    return INF_OK;
}

static enum inf_code resolve_ref(struct inf_layers_model *model, struct inf_layers_ref *ref,
                                 struct inf_error *err)
{
    const struct inf_layers_layer *layer = &model->layers[ref->layer];
    uint32_t call = ref->call - layer->first_index;
    if (call >= layer->call_count)
        return inf_fail(err, INF_INVALID,
                        "layer '%.200s' (%.60s): is referred to by its call %u, but has %u calls",
                        layer->name, layer->class_name, ref->call, layer->call_count);
    ref->call = call;
    return INF_OK;
}

static enum inf_code read_ends(struct reader *reader, const char *key, struct inf_layers_refs *refs,
                               struct inf_error *err)
{
    struct inf_json json;
    INF_TRY(inf_json_get(&reader->model->config, key, &json, err));
    INF_TRY(read_refs(reader, &json, refs, err));
    if (refs->count == 0 || refs->count > INF_LIMIT_TENSORS)
        return inf_json_fail(&json, err, "1 to 64 tensors");
    return INF_OK;
}

static enum inf_code check_inputs(const struct inf_layers_model *model, struct inf_error *err)
{
    for (uint32_t i = 0; i < model->inputs.count; i++) {
        const struct inf_layers_layer *layer = &model->layers[model->inputs.items[i].layer];
        if (!layer->is_input)
            return inf_fail(err, INF_INVALID,
                            "layer '%.200s' (%.60s): is an input of the model, wanted an "
                            "InputLayer",
                            layer->name, layer->class_name);
        for (uint32_t k = 0; k < i; k++)
            if (model->inputs.items[k].layer == model->inputs.items[i].layer)
                return inf_fail(err, INF_INVALID, "layer '%.200s' (%.60s): is two inputs",
                                layer->name, layer->class_name);
    }
    return INF_OK;
}

enum inf_code inf_layers_calls_read(struct inf_layers_document *document,
                                    struct inf_layers_model *model, struct inf_error *err)
{
    struct reader reader = {.document = document, .model = model};
    INF_TRY(count_calls(&reader, err));
    INF_TRY(read_calls(&reader, err));
    reader.call = NULL;
    INF_TRY(read_ends(&reader, "input_layers", &model->inputs, err));
    INF_TRY(read_ends(&reader, "output_layers", &model->outputs, err));
    for (uint32_t i = 0; i < model->layer_count; i++)
        model->layers[i].first_index = model->layers[i].model != NULL;
    INF_TRY(visit_refs(model, note_call_zero, err));
    INF_TRY(visit_refs(model, resolve_ref, err));
    return check_inputs(model, err);
}

enum inf_code inf_layers_calls_chain(struct inf_layers_document *document,
                                     struct inf_layers_model *model, struct inf_error *err)
{
    struct reader reader = {.document = document, .model = model};
    INF_TRY(add_calls(&reader, model->layer_count, err));
    for (uint32_t i = 0; i < model->layer_count; i++) {
        struct inf_layers_layer *layer = &model->layers[i];
        if (i > 0 && layer->is_input)
            return inf_fail(err, INF_INVALID,
                            "layer '%.200s' (InputLayer): stands in the middle of a Sequential "
                            "model",
                            layer->name);
        layer->first_call = i;
        layer->call_count = 1;
        model->calls[i].layer = i;
        if (i > 0)
            INF_TRY(add_ref(&reader, &model->calls[i].inputs,
                            (struct inf_layers_ref){.layer = i - 1}, err));
    }
    INF_TRY(add_ref(&reader, &model->inputs, (struct inf_layers_ref){0}, err));
    return add_ref(&reader, &model->outputs,
                   (struct inf_layers_ref){.layer = model->layer_count - 1}, err);
}

// A depth-first walk with its own stack, because a model may be as deep as it has layers.
struct walk {
    struct inf_layers_model *model;
    uint32_t *next_input; // for each call: index of the next input to visit
    uint8_t *state;       // for each call: whether the walk has not reached, entered or finished it
    uint32_t *stack;
    uint32_t depth;
};

enum {
    NEW,
    OPEN,
    DONE
};

static uint32_t find_call(const struct inf_layers_model *model, const struct inf_layers_ref *ref)
{
    return model->layers[ref->layer].first_call + ref->call;
}

static enum inf_code walk_from(struct walk *walk, uint32_t root, struct inf_error *err)
{
    struct inf_layers_model *model = walk->model;
    if (walk->state[root] == DONE)
        return INF_OK;
    walk->state[root] = OPEN;
    walk->stack[walk->depth++] = root;
    while (walk->depth > 0) {
        uint32_t index = walk->stack[walk->depth - 1];
        const struct inf_layers_call *call = &model->calls[index];
        if (walk->next_input[index] == call->inputs.count) {
            walk->state[index] = DONE;
            model->order[model->order_count++] = index;
            walk->depth--;
            continue;
        }
        uint32_t from = find_call(model, &call->inputs.items[walk->next_input[index]++]);
        if (walk->state[from] == OPEN)
            return inf_fail(err, INF_INVALID,
                            "layer '%.200s' (%.60s): is part of a cycle through its input "
                            "'%.200s'",
                            model->layers[call->layer].name, model->layers[call->layer].class_name,
                            model->layers[model->calls[from].layer].name);
        if (walk->state[from] == NEW) {
            walk->state[from] = OPEN;
            walk->stack[walk->depth++] = from;
        }
    }
    return INF_OK;
}

enum inf_code inf_layers_calls_order(struct inf_layers_document *document,
                                     struct inf_layers_model *model, struct inf_error *err)
{
    size_t size = (model->call_count + 1) * sizeof(uint32_t);
    struct walk walk = {
        .model = model,
        .next_input = inf_arena_alloc(&document->arena, size),
        .state = inf_arena_alloc(&document->arena, model->call_count + 1),
        .stack = inf_arena_alloc(&document->arena, size),
    };
    model->order = inf_arena_alloc(&document->arena, size);
    if (walk.next_input == NULL || walk.state == NULL || walk.stack == NULL || model->order == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to walk the model's layers");
    for (uint32_t i = 0; i < model->outputs.count; i++)
        INF_TRY(walk_from(&walk, find_call(model, &model->outputs.items[i]), err));
    return INF_OK;
}
