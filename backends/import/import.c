// SPDX-License-Identifier: Apache-2.0
// Chooses the importer of a model file by the first bytes of the file and by its JSON, and reports
// the metadata of the file.
#include "backends/import/import.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/import/common/json.h"
#include "backends/import/layers/layers.h"
#include "backends/import/layers/model.h"
#include "backends/import/onnx/metadata/metadata.h"
#include "backends/import/onnx/onnx.h"
#include "backends/import/onnx/proto.h"
#include "backends/import/tfjs/tfjs.h"
#include "backends/import/tflite/model.h"
#include "backends/import/tflite/tflite.h"
#include "backends/storage/file.h"
#include "proto/core/limits.h"

#define KNOWN_FORMATS                                                                              \
    "known formats: TensorFlow.js graph and layers models (model.json), ONNX, TFLite"

// The first bytes of a file, enough to recognise its format.
struct beginning {
    uint8_t bytes[64];
    size_t size;
};

static enum inf_code read_beginning(struct beginning *beginning, int directory_fd, const char *name,
                                    struct inf_error *err)
{
    int fd;
    uint64_t size_bytes;
    INF_TRY(inf_file_open_beneath(&fd, &size_bytes, directory_fd, name, err));
    beginning->size = (size_t)INF_MIN(size_bytes, sizeof beginning->bytes);
    enum inf_code code = inf_file_read(fd, name, 0, beginning->bytes, beginning->size, err);
    close(fd);
    return code;
}

static bool is_json(const struct beginning *beginning)
{
    size_t at = 0;
    while (at < beginning->size && isspace(beginning->bytes[at]))
        at++;
    return at < beginning->size && beginning->bytes[at] == '{';
}

static enum inf_code fail_unknown(const struct beginning *beginning, const char *name,
                                  struct inf_error *err)
{
    static const struct {
        size_t offset;
        const char *mark, *format;
    } others[] = {
        {0, "GGUF", "a GGUF model"},
        {0, "PK\003\004", "a zip archive"},
        {0, "\211HDF", "an HDF5 (Keras) model"},
        {0, "\n", "a protobuf message, perhaps a frozen TensorFlow graph"},
    };
    const char *found = beginning->size == 0 ? "an empty file" : "no format that is known";
    for (size_t i = INF_ARRAY_LENGTH(others); i-- > 0;) {
        size_t length = strlen(others[i].mark);
        if (beginning->size >= others[i].offset + length &&
            memcmp(beginning->bytes + others[i].offset, others[i].mark, length) == 0)
            found = others[i].format;
    }
    return inf_fail(err, INF_UNSUPPORTED, "model '%s': is %s; " KNOWN_FORMATS, name, found);
}

// Checks that a JSON document is a model, and finds out whether it is a layers model or a graph
// model.
static enum inf_code check_document(const struct inf_json *document, const char *name,
                                    bool *out_is_layers, struct inf_error *err)
{
    struct inf_json topology;
    if (!inf_json_has(document, "modelTopology"))
        return inf_fail(err, INF_UNSUPPORTED,
                        "model '%s': is a JSON document without modelTopology; " KNOWN_FORMATS,
                        name);
    INF_TRY(inf_json_get(document, "modelTopology", &topology, err));
    *out_is_layers = inf_layers_is_topology(&topology);
    return INF_OK;
}

// Copies the name of the program that wrote the model, if the document has a printable name.
static void read_producer(struct inf_model_info *info, const struct inf_json *document)
{
    static const char *const keys[] = {"convertedBy", "generatedBy"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(keys) && info->producer[0] == '\0'; i++) {
        struct inf_json value;
        const char *text;
        if (inf_json_find(document, keys[i], &value, NULL) != INF_OK || value.value == NULL ||
            inf_json_name(&value, &text, NULL) != INF_OK)
            continue;
        snprintf(info->producer, sizeof info->producer, "%s", text);
    }
}

static enum inf_code import_document(struct inf_graph **out_graph, struct inf_model_info *info,
                                     const struct inf_json *document,
                                     const struct inf_shard_place *place, struct inf_tally *tally,
                                     bool is_layers, const struct inf_import_options *options,
                                     struct inf_error *err)
{
    if (is_layers)
        INF_TRY(inf_layers_import(out_graph, document, place, tally, options, err));
    else
        INF_TRY(inf_tfjs_import(out_graph, document, place, tally, options, err));
    if (info == NULL)
        return INF_OK;
    *info = (struct inf_model_info){.file_bytes = tally->bytes, .content_hash = tally->hash};
    snprintf(info->format, sizeof info->format, "%s",
             is_layers ? "tfjs_layers_model" : "tfjs_graph_model");
    read_producer(info, document);
    return INF_OK;
}

static void free_text(char **text)
{
    free(*text);
    *text = NULL;
}

// Returns the folder of the model file `name`. The other files of the model must be in this folder.
static struct inf_shard_place place_beside(int directory_fd, const char *name,
                                           const struct inf_import_options *options)
{
    const char *slash = strrchr(name, '/');
    return (struct inf_shard_place){.directory_fd = directory_fd,
                                    .folder = name,
                                    .folder_length = slash != NULL ? (int)(slash - name) + 1 : 0,
                                    .opened = options != NULL ? options->opened : NULL};
}

static enum inf_code import_json(struct inf_graph **out_graph, struct inf_model_info *info,
                                 int directory_fd, const char *name,
                                 const struct inf_import_options *options, struct inf_error *err)
{
    INF_CLEANUP(free_text) char *text = NULL;
    INF_CLEANUP(inf_json_destroy) struct json_t *root = NULL;
    size_t size;
    struct inf_tally tally = INF_TALLY_INIT;
    INF_TRY(inf_file_read_all(&text, &size, directory_fd, name, INF_LIMIT_MODEL_JSON_BYTES, err));
    inf_tally_add(&tally, text, size);
    INF_TRY(inf_json_parse(&root, text, size, name, err));
    free_text(&text);

    struct inf_shard_place place = place_beside(directory_fd, name, options);
    struct inf_json document = inf_json_root(root);
    bool is_layers = false;
    INF_TRY(check_document(&document, name, &is_layers, err));
    return import_document(out_graph, info, &document, &place, &tally, is_layers, options, err);
}

// Makes the description of an imported ONNX model, if the caller wants it.
static enum inf_code describe_onnx(struct inf_span bytes, const struct inf_graph *graph,
                                   const struct inf_import_options *options, struct inf_error *err)
{
    if (options == NULL || options->description == NULL)
        return INF_OK;
    struct inf_model_description *description;
    INF_TRY(inf_model_description_create(&description, err));
    if (inf_onnx_describe(description, bytes, graph))
        *options->description = description;
    else
        inf_model_description_unref(&description);
    return INF_OK;
}

static enum inf_code import_onnx(struct inf_graph **out_graph, struct inf_model_info *info,
                                 const struct inf_shard_place *place, const char *name,
                                 const struct inf_import_options *options, struct inf_error *err)
{
    INF_CLEANUP(free_text) char *data = NULL;
    size_t size;
    char producer[64];
    struct inf_tally tally = INF_TALLY_INIT;
    const struct inf_onnx_files files = {.place = *place, .tally = &tally};
    INF_TRY(inf_file_read_all(&data, &size, place->directory_fd, name, INF_LIMIT_MODEL_ONNX_BYTES,
                              err));
    inf_tally_add(&tally, data, size);
    struct inf_span bytes = {(const uint8_t *)data, size};
    enum inf_code code = inf_onnx_import(out_graph, producer, bytes, &files, options, err);
    if (code == INF_OK && (code = describe_onnx(bytes, *out_graph, options, err)) != INF_OK)
        inf_graph_destroy(out_graph);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "model '%s'", name);
    if (info == NULL)
        return INF_OK;
    *info = (struct inf_model_info){
        .format = "onnx", .file_bytes = tally.bytes, .content_hash = tally.hash};
    snprintf(info->producer, sizeof info->producer, "%s", producer);
    return INF_OK;
}

static enum inf_code import_tflite(struct inf_graph **out_graph, struct inf_model_info *info,
                                   const struct inf_shard_place *place, const char *name,
                                   const struct inf_import_options *options, struct inf_error *err)
{
    INF_CLEANUP(free_text) char *data = NULL;
    size_t size;
    char producer[64];
    struct inf_tally tally = INF_TALLY_INIT;
    const struct inf_tflite_files files = {.place = *place, .tally = &tally};
    INF_TRY(inf_file_read_all(&data, &size, place->directory_fd, name, INF_LIMIT_MODEL_TFLITE_BYTES,
                              err));
    inf_tally_add(&tally, data, size);
    struct inf_span bytes = {(const uint8_t *)data, size};
    enum inf_code code = inf_tflite_import(out_graph, producer, bytes, &files, options, err);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "model '%s'", name);
    if (info == NULL)
        return INF_OK;
    *info = (struct inf_model_info){
        .format = "tflite", .file_bytes = tally.bytes, .content_hash = tally.hash};
    snprintf(info->producer, sizeof info->producer, "%s", producer);
    return INF_OK;
}

enum inf_code inf_model_import(struct inf_graph **out_graph, struct inf_model_info *info,
                               int directory_fd, const char *name, struct inf_error *err)
{
    return inf_model_import_with(out_graph, info, directory_fd, name, NULL, err);
}

enum inf_code inf_model_import_with(struct inf_graph **out_graph, struct inf_model_info *info,
                                    int directory_fd, const char *name,
                                    const struct inf_import_options *options, struct inf_error *err)
{
    static const struct inf_import_options defaults;
    struct beginning beginning;
    inf_role_check_may_block();
    INF_TRY(read_beginning(&beginning, directory_fd, name, err));
    if (is_json(&beginning))
        return import_json(out_graph, info, directory_fd, name,
                           options != NULL ? options : &defaults, err);
    struct inf_shard_place place = place_beside(directory_fd, name, options);
    if (inf_onnx_looks_like((struct inf_span){beginning.bytes, beginning.size}))
        return import_onnx(out_graph, info, &place, name, options, err);
    if (inf_tflite_looks_like((struct inf_span){beginning.bytes, beginning.size}))
        return import_tflite(out_graph, info, &place, name, options, err);
    return fail_unknown(&beginning, name, err);
}
