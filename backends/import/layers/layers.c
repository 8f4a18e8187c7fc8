// SPDX-License-Identifier: Apache-2.0
// Imports a layers model: reads the document, checks that all classes are supported, reads the
// weights, and lowers inputs, layers and outputs.
#include "backends/import/layers/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/verify.h"
#include "backends/import/common/contents.h"
#include "backends/import/common/missing.h"
#include "backends/import/layers/class_table.h"
#include "proto/core/limits.h"

// --- refusing unsupported classes of layers ---

// The unsupported classes of layers that the model uses, for the error text.
struct classes {
    const char **names;
    size_t count;
};

// Prints the class of each layer, a line each.
static void print_classes(const struct inf_layers_layer *layer, FILE *file)
{
    if (layer->class_name != NULL)
        fprintf(file, "%s\n", layer->class_name);
    for (uint32_t i = 0; i < layer->part_count; i++)
        print_classes(&layer->parts[i], file);
    for (uint32_t i = 0; layer->model != NULL && i < layer->model->layer_count; i++)
        print_classes(&layer->model->layers[i], file);
}

static void find_missing(const struct inf_layers_layer *layer, struct classes *classes)
{
    if (layer->model == NULL && layer->class == NULL)
        classes->names[classes->count++] = layer->class_name;
    for (uint32_t i = 0; i < layer->part_count; i++)
        find_missing(&layer->parts[i], classes);
    for (uint32_t i = 0; layer->model != NULL && i < layer->model->layer_count; i++)
        find_missing(&layer->model->layers[i], classes);
}

// Fails if layers have unsupported classes, and names all these classes.
static enum inf_code check_classes(struct inf_layers_document *document,
                                   const struct inf_import_options *options, struct inf_error *err)
{
    struct inf_missing missing = {.separator = ", ", .report = options->report};
    struct classes classes = {
        .names =
            inf_arena_alloc(&document->arena, (document->layer_count + 1) * sizeof *classes.names)};
    if (classes.names == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to check the layers");
    const struct inf_layers_layer root = {.model = document->model};
    if (options->contents != NULL && options->contents->operators != NULL)
        print_classes(&root, options->contents->operators);
    find_missing(&root, &classes);
    inf_missing_add_names(&missing, classes.names, classes.count, "layer");
    return inf_missing_check(&missing, "layers", err);
}

// --- lowering the inputs, layers and outputs of the model ---

static enum inf_code find_input_shape(const struct inf_layers_model *model,
                                      const struct inf_layers_layer *layer, struct inf_json *out,
                                      struct inf_error *err)
{
    static const char *const keys[] = {"batch_input_shape", "batch_shape"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(keys); i++) {
        INF_TRY(inf_layers_find(&layer->config, keys[i], out, err));
        if (out->value != NULL)
            return INF_OK;
    }
    if (inf_json_is_object(&model->config))
        INF_TRY(inf_json_find(&model->config, "build_input_shape", out, err));
    if (out->value == NULL)
        return inf_fail(err, INF_INVALID,
                        "layer '%.180s' (%.60s): does not say its batch_input_shape", layer->name,
                        layer->class_name);
    return INF_OK;
}

// Converts all integer types to i32 and all float types to f32, as TensorFlow.js does.
static enum inf_code read_input_type(const struct inf_layers_layer *layer, enum inf_dtype *out,
                                     struct inf_error *err)
{
    static const char *const types[] = {"float32", "float16", "float64", "int32", "int64", "int16",
                                        "int8",    "uint8",   "uint16",  "bool",  NULL};
    int32_t index = 0;
    struct inf_json json;
    *out = INF_DTYPE_F32;
    INF_TRY(inf_layers_find(&layer->config, "dtype", &json, err));
    // Skip the member if it is not a string, because Keras 3 may write a dtype policy (an object)
    // here.
    if (inf_json_is_string(&json))
        INF_TRY(inf_layers_choice(&layer->config, "dtype", types, &index, err));
    if (index >= 3)
        *out = index == 9 ? INF_DTYPE_BOOL : INF_DTYPE_I32;
    return INF_OK;
}

static enum inf_code add_inputs(struct inf_layers_scope *scope, struct inf_layers_tensor *inputs,
                                struct inf_error *err)
{
    const struct inf_layers_model *model = scope->layer->model;
    struct inf_graph *graph = scope->context->graph;
    for (uint32_t i = 0; i < model->inputs.count; i++) {
        const struct inf_layers_layer *layer = &model->layers[model->inputs.items[i].layer];
        struct inf_json json;
        struct inf_shape shape;
        enum inf_dtype dtype;
        INF_TRY(find_input_shape(model, layer, &json, err));
        INF_TRY(inf_layers_shape(&json, &shape, err));
        INF_TRY(read_input_type(layer, &dtype, err));
        // An embedding takes integers, so the type in the file is ignored.
        INF_TRY(inf_graph_add_value(graph, layer->name, dtype, &shape, &inputs[i].value, err));
        INF_TRY(inf_graph_add_input(graph, layer->name, inputs[i].value, err));
        inputs[i].mask = INF_VALUE_NONE;
        inputs[i].argument = NULL;
    }
    return INF_OK;
}

// Adds an output. It is named after its layer; further outputs of the same layer get a number.
static enum inf_code add_output(struct inf_layers_scope *scope, uint32_t index,
                                struct inf_error *err)
{
    const struct inf_layers_model *model = scope->layer->model;
    struct inf_graph *graph = scope->context->graph;
    uint32_t value = scope->result.items[index].value, same = 0;
    uint32_t layer = model->outputs.items[index].layer;
    char name[INF_JSON_NAME_MAX + 16];
    for (uint32_t i = 0; i < index; i++)
        same += model->outputs.items[i].layer == layer;
    int length = snprintf(name, sizeof name, "%s", model->layers[layer].name);
    if (same > 0)
        snprintf(name + length, sizeof name - (size_t)length, ":%u", same);
    // A node must compute each output, so an output that is an input or constant gets an identity
    // node.
    if (graph->values[value].producer == INF_NODE_NONE) {
        struct inf_layers_scope copy = *scope;
        copy.layer = &model->layers[layer];
        struct inf_build_node node =
            inf_build_describe(INF_OP_IDENTITY, value, INF_VALUE_NONE, INF_VALUE_NONE);
        INF_TRY(inf_layers_emit(&copy, &node, &value, err));
    }
    return inf_graph_add_output(graph, name, value, err);
}

static enum inf_code lower_model(struct inf_layers_context *context, struct inf_layers_model *model,
                                 struct inf_error *err)
{
    const struct inf_layers_layer root = {
        .name = model->name, .class_name = "Model", .model = model};
    struct inf_layers_tensor inputs[INF_LIMIT_TENSORS];
    struct inf_layers_scope scope = {
        .context = context,
        .layer = &root,
        .prefixes = {model->name},
        .inputs = inputs,
        .input_count = model->inputs.count,
    };
    INF_TRY(add_inputs(&scope, inputs, err));
    INF_TRY(inf_layers_apply(&scope, err));
    for (uint32_t i = 0; i < scope.result.count; i++)
        INF_TRY(add_output(&scope, i, err));
    INF_TRY(inf_shape_infer(context->graph, err));
    return inf_graph_verify(context->graph, err);
}

static enum inf_code read_model(struct inf_graph *graph, const struct inf_json *root,
                                const struct inf_shard_place *place, struct inf_tally *tally,
                                const struct inf_import_options *options, struct inf_error *err)
{
    INF_CLEANUP(inf_layers_document_destroy) struct inf_layers_document *document = NULL;
    INF_CLEANUP(inf_weights_destroy) struct inf_weights *weights = NULL;
    struct inf_json manifest;
    INF_TRY(inf_layers_document_create(&document, root, inf_layers_class_find, err));
    INF_TRY(check_classes(document, options, err));
    INF_TRY(inf_json_find(root, "weightsManifest", &manifest, err));
    INF_TRY(inf_weights_read(&weights, &manifest, place, tally, err));
    struct inf_layers_context context = {.graph = graph,
                                         .arena = &document->arena,
                                         .steps_left = INF_LAYERS_STEPS_MAX,
                                         .cancelled = options->cancelled};
    INF_TRY(inf_layers_weights_create(&context.weights, weights, context.arena, err));
    return lower_model(&context, document->model, err);
}

enum inf_code inf_layers_import(struct inf_graph **out_graph, const struct inf_json *document,
                                const struct inf_shard_place *place, struct inf_tally *tally,
                                const struct inf_import_options *options, struct inf_error *err)
{
    struct inf_graph *graph = NULL;
    INF_TRY(inf_graph_create(&graph, err));
    enum inf_code code = read_model(graph, document, place, tally, options, err);
    if (code == INF_OK)
        *out_graph = graph;
    else
        inf_graph_destroy(&graph);
    return code;
}
