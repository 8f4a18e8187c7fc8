// SPDX-License-Identifier: Apache-2.0
// Reads the layers of a document, including models within models and wrapped layers. The nesting of
// the document limits the recursion.
#include "backends/import/layers/model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/layers/calls.h"
#include "backends/import/layers/config.h"
#include "proto/core/limits.h"

bool inf_layers_is_topology(const struct inf_json *topology)
{
    return inf_json_has(topology, "model_config") || inf_json_has(topology, "class_name");
}

static bool is_model_class(const char *class_name)
{
    return strcmp(class_name, "Sequential") == 0 || strcmp(class_name, "Functional") == 0 ||
           strcmp(class_name, "Model") == 0;
}

static enum inf_code read_model(struct inf_layers_document *document,
                                struct inf_layers_layer *layer, struct inf_error *err);

static enum inf_code read_layer(struct inf_layers_document *document,
                                struct inf_layers_layer *layer, const struct inf_json *json,
                                struct inf_error *err);

static enum inf_code add_layers(struct inf_layers_document *document, size_t count,
                                struct inf_layers_layer **out_layers, struct inf_error *err)
{
    if (count > INF_LAYERS_MAX - document->layer_count)
        return inf_fail(err, INF_EXHAUSTED, "the model has more than %u layers", INF_LAYERS_MAX);
    document->layer_count += (uint32_t)count;
    *out_layers = inf_arena_alloc(&document->arena, (count + 1) * sizeof **out_layers);
    if (*out_layers == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %zu layers", count);
    return INF_OK;
}

// Reads a layer that the wrapper `layer` contains, from a member of the wrapper's configuration.
static enum inf_code read_part(struct inf_layers_document *document, struct inf_layers_layer *layer,
                               const char *key, struct inf_error *err)
{
    struct inf_json json;
    INF_TRY(inf_layers_find(&layer->config, key, &json, err));
    if (json.value == NULL)
        return INF_OK;
    return read_layer(document, &layer->parts[layer->part_count++], &json, err);
}

static enum inf_code read_cells(struct inf_layers_document *document,
                                struct inf_layers_layer *layer, struct inf_error *err)
{
    struct inf_json *list = inf_arena_alloc(&document->arena, sizeof *list);
    size_t count;
    if (list == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the cells of a layer");
    INF_TRY(inf_json_get(&layer->config, "cells", list, err));
    INF_TRY(inf_json_array(list, &count, err));
    INF_TRY(add_layers(document, count, &layer->parts, err));
    for (size_t i = 0; i < count; i++) {
        struct inf_json json = inf_json_at(list, i);
        INF_TRY(read_layer(document, &layer->parts[layer->part_count++], &json, err));
    }
    return INF_OK;
}

// Reads the layers that a layer wraps, if its class is a wrapper.
static enum inf_code read_parts(struct inf_layers_document *document,
                                struct inf_layers_layer *layer, struct inf_error *err)
{
    static const struct {
        const char *class_name;
        const char *keys[2];
    } wrappers[] = {
        {"TimeDistributed", {"layer"}},
        {"Bidirectional", {"layer", "backward_layer"}},
        {"RNN", {"cell"}},
    };
    if (strcmp(layer->class_name, "StackedRNNCells") == 0)
        return read_cells(document, layer, err);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wrappers); i++) {
        if (strcmp(layer->class_name, wrappers[i].class_name) != 0)
            continue;
        INF_TRY(add_layers(document, 2, &layer->parts, err));
        for (size_t k = 0; k < 2 && wrappers[i].keys[k] != NULL; k++)
            INF_TRY(read_part(document, layer, wrappers[i].keys[k], err));
        if (layer->part_count == 0)
            return inf_json_fail(&layer->config, err, "a layer, or a cell, that it wraps");
    }
    return INF_OK;
}

// Reads a layer from {"class_name": ..., "config": {"name": ...}}.
static enum inf_code read_layer(struct inf_layers_document *document,
                                struct inf_layers_layer *layer, const struct inf_json *json,
                                struct inf_error *err)
{
    struct inf_json value;
    layer->json = *json;
    INF_TRY(inf_json_get(&layer->json, "class_name", &value, err));
    INF_TRY(inf_json_name(&value, &layer->class_name, err));
    INF_TRY(inf_json_get(&layer->json, "config", &layer->config, err));
    // Take the name outside the configuration, because references use that name. The name inside
    // differs only in faulty files.
    INF_TRY(inf_json_find(&layer->json, "name", &value, err));
    if (value.value == NULL && inf_json_is_object(&layer->config))
        INF_TRY(inf_json_find(&layer->config, "name", &value, err));
    layer->name = layer->class_name;
    if (value.value != NULL)
        INF_TRY(inf_json_name(&value, &layer->name, err));
    layer->is_input = strcmp(layer->class_name, "InputLayer") == 0;
    if (is_model_class(layer->class_name))
        return read_model(document, layer, err);
    layer->class = document->find_class(layer->class_name);
    return read_parts(document, layer, err);
}

static int compare_names(const void *a, const void *b, void *context)
{
    const struct inf_layers_layer *layers = context;
    return strcmp(layers[*(const uint32_t *)a].name, layers[*(const uint32_t *)b].name);
}

static enum inf_code sort_names(struct inf_layers_document *document,
                                struct inf_layers_model *model, struct inf_error *err)
{
    model->by_name =
        inf_arena_alloc(&document->arena, (model->layer_count + 1) * sizeof *model->by_name);
    if (model->by_name == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the names of layers");
    for (uint32_t i = 0; i < model->layer_count; i++)
        model->by_name[i] = i;
    qsort_r(model->by_name, model->layer_count, sizeof *model->by_name, compare_names,
            model->layers);
    for (uint32_t i = 1; i < model->layer_count; i++) {
        const char *name = model->layers[model->by_name[i]].name;
        if (strcmp(model->layers[model->by_name[i - 1]].name, name) == 0)
            return inf_fail(err, INF_INVALID, "layer '%.200s': is there twice", name);
    }
    return INF_OK;
}

// Creates the implied input of a Sequential model: before its first layer, or, if that layer is a
// model, as the input of that model.
static enum inf_code imply_input(struct inf_layers_document *document,
                                 struct inf_layers_layer *input,
                                 const struct inf_layers_layer *first, struct inf_error *err)
{
    *input = (struct inf_layers_layer){.class_name = "InputLayer",
                                       .class = document->find_class("InputLayer"),
                                       .json = first->json,
                                       .is_input = true};
    if (first->model != NULL && first->model->inputs.count > 0) {
        const struct inf_layers_model *model = first->model;
        const struct inf_layers_layer *source = &model->layers[model->inputs.items[0].layer];
        input->name = source->name;
        input->config = source->config;
        return INF_OK;
    }
    size_t size = strlen(first->name) + sizeof "_input";
    char *name = inf_arena_alloc(&document->arena, size);
    if (name == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the name of an input");
    snprintf(name, size, "%s_input", first->name);
    input->name = name;
    input->config = first->config;
    return INF_OK;
}

static enum inf_code read_layers(struct inf_layers_document *document,
                                 struct inf_layers_model *model, bool is_sequential,
                                 struct inf_error *err)
{
    size_t count;
    INF_TRY(inf_json_array(&model->list, &count, err));
    if (count == 0)
        return inf_json_fail(&model->list, err, "at least one layer");
    INF_TRY(add_layers(document, count + 1, &model->layers, err));
    // The first entry is reserved for the implied input of a Sequential model.
    for (size_t i = 0; i < count; i++) {
        struct inf_json json = inf_json_at(&model->list, i);
        INF_TRY(read_layer(document, &model->layers[i + 1], &json, err));
    }
    model->layer_count = (uint32_t)count;
    if (!is_sequential || model->layers[1].is_input) {
        model->layers++;
        return INF_OK;
    }
    model->layer_count++;
    return imply_input(document, &model->layers[0], &model->layers[1], err);
}

static enum inf_code read_model(struct inf_layers_document *document,
                                struct inf_layers_layer *layer, struct inf_error *err)
{
    struct inf_layers_model *model = inf_arena_alloc(&document->arena, sizeof *model);
    bool is_sequential = strcmp(layer->class_name, "Sequential") == 0;
    if (model == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a model");
    layer->model = model;
    model->name = layer->name;
    // In old files, the configuration of a Sequential model is its list of layers.
    model->config = layer->config;
    model->list = layer->config;
    if (!is_sequential || !inf_json_is_array(&layer->config))
        INF_TRY(inf_json_get(&model->config, "layers", &model->list, err));
    INF_TRY(read_layers(document, model, is_sequential, err));
    INF_TRY(sort_names(document, model, err));
    if (is_sequential)
        INF_TRY(inf_layers_calls_chain(document, model, err));
    else
        INF_TRY(inf_layers_calls_read(document, model, err));
    return inf_layers_calls_order(document, model, err);
}

static enum inf_code read_document(struct inf_layers_document *document,
                                   const struct inf_json *root, struct inf_error *err)
{
    struct inf_layers_layer *layer = NULL;
    INF_TRY(inf_json_get(root, "modelTopology", &document->topology, err));
    document->json = document->topology;
    if (inf_json_has(&document->topology, "model_config"))
        INF_TRY(inf_json_get(&document->topology, "model_config", &document->json, err));
    INF_TRY(add_layers(document, 1, &layer, err));
    INF_TRY(read_layer(document, layer, &document->json, err));
    if (layer->model == NULL)
        return inf_fail(err, INF_UNSUPPORTED,
                        "the model is a '%.60s', wanted Sequential, Functional or Model",
                        layer->class_name);
    document->model = layer->model;
    return INF_OK;
}

enum inf_code
inf_layers_document_create(struct inf_layers_document **out_document, const struct inf_json *root,
                           const struct inf_layers_class *(*find_class)(const char *name),
                           struct inf_error *err)
{
    assert(root != NULL && find_class != NULL);
    struct inf_layers_document *document = calloc(1, sizeof *document);
    if (document == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the model's layers");
    document->find_class = find_class;
    enum inf_code code = read_document(document, root, err);
    if (code == INF_OK)
        *out_document = document;
    else
        inf_layers_document_destroy(&document);
    return code;
}

void inf_layers_document_destroy(struct inf_layers_document **document)
{
    if (*document == NULL)
        return;
    inf_arena_fini(&(*document)->arena);
    free(*document);
    *document = NULL;
}
