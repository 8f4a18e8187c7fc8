// SPDX-License-Identifier: Apache-2.0
// Reads the metadata of a TFLite file. The metadata are a flatbuffer of their own (root type
// ModelMetadata, identifier M001) in a buffer of the model. They name associated files, such as
// labels, which are in a ZIP archive behind the model.
//
// The first failure is kept as the problem of the description. Everything that was read before it
// stays, because a model whose labels are damaged computes the same answers.
//
// Also prints what the model contains: operators, and how tensors are quantised.
#include "backends/import/tflite/metadata.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/import/tflite/archive.h"
#include "backends/import/tflite/tensor.h"
#include "proto/core/limits.h"
#include "proto/core/utf8.h"

// The most bytes of the flatbuffer. Real ones have less than 100 KiB.
#define METADATA_BYTES_MAX (1u << 20)
// The most numbers of a normalisation: one for each channel.
#define CHANNELS_MAX 64u
// Numbers of the enum AssociatedFileType.
#define FILE_AXIS_LABELS  2
#define FILE_VALUE_LABELS 3
// Number of NormalizationOptions in the union ProcessUnitOptions.
#define OPTIONS_NORMALIZATION 1

struct reader {
    struct inf_model_description *description;
    struct inf_fb_file file; // the flatbuffer
    struct inf_archive_entry entries[INF_DESCRIPTION_FILES];
    uint32_t label_bytes_left;
};

// --- associated files ---

static void read_files(struct reader *reader, struct inf_span bytes)
{
    struct inf_model_description *description = reader->description;
    struct inf_archive archive;
    struct inf_error err = {0};
    if (!inf_archive_open(&archive, bytes))
        return;
    description->files =
        inf_description_alloc(description, INF_DESCRIPTION_FILES * sizeof *description->files);
    while (archive.left > 0 && description->files != NULL) {
        struct inf_archive_entry *entry = &reader->entries[description->file_count];
        char *name;
        if (description->file_count == INF_DESCRIPTION_FILES)
            (void)inf_fail(&err, INF_EXHAUSTED, "more than %u associated files",
                           INF_DESCRIPTION_FILES);
        else if (inf_archive_next(&archive, entry, &err) == INF_OK && !inf_utf8_valid(entry->name))
            (void)inf_fail(&err, INF_INVALID, "the name of an associated file is no UTF-8");
        if (err.code != INF_OK ||
            (name = inf_description_alloc(description, entry->name.size + 1)) == NULL)
            break;
        memcpy(name, entry->name.data, entry->name.size);
        description->files[description->file_count++] =
            (struct inf_described_file){name, entry->size_bytes};
    }
    if (err.code != INF_OK)
        inf_description_note_problem(description, &err);
}

static enum inf_code unpack_labels(struct reader *reader, const char *name,
                                   struct inf_described_tensor *tensor, struct inf_error *err)
{
    struct inf_model_description *description = reader->description;
    uint32_t i = 0;
    while (i < description->file_count && strcmp(description->files[i].name, name) != 0)
        i++;
    if (i == description->file_count)
        return inf_fail(err, INF_INVALID, "labels '%s': no associated file has this name",
                        inf_quote(name).text);
    const struct inf_archive_entry *entry = &reader->entries[i];
    if (entry->size_bytes > reader->label_bytes_left)
        return inf_fail(err, INF_EXHAUSTED, "labels '%s': the model has more than %u bytes",
                        inf_quote(name).text, INF_DESCRIPTION_LABEL_BYTES);
    size_t size = (size_t)entry->size_bytes;
    reader->label_bytes_left -= (uint32_t)size;
    char *text = inf_description_alloc(description, size + 2);
    if (text == NULL)
        return INF_EXHAUSTED;
    enum inf_code code = inf_archive_unpack(entry, text, err);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "labels '%s'", inf_quote(name).text);
    if (!inf_utf8_valid((struct inf_span){(const uint8_t *)text, size}))
        return inf_fail(err, INF_INVALID, "labels '%s': no UTF-8", inf_quote(name).text);
    tensor->labels = text;
    tensor->label_count = inf_description_split_labels(text, size);
    return INF_OK;
}

// --- tables ---

static const char *read_text(struct reader *reader, const struct inf_fb_table *table, uint32_t id,
                             const char *field)
{
    return inf_fb_string(table, id, field, &reader->description->arena);
}

// Reads the labels of a tensor: of several files, the one without a locale, else the first.
static void read_labels(struct reader *reader, const struct inf_fb_table *table,
                        struct inf_described_tensor *tensor)
{
    struct inf_fb_vector files = inf_fb_vector(table, 6, "associated_files", 4);
    bool is_final = false;
    for (uint32_t i = 0; inf_fb_ok(&reader->file) && i < files.count && !is_final; i++) {
        struct inf_fb_table file = inf_fb_table_at(&files, i, "AssociatedFile");
        int64_t type = inf_fb_int(&file, INF_FB_I8, 2, "type", 0);
        if (type != FILE_AXIS_LABELS && type != FILE_VALUE_LABELS)
            continue;
        is_final = !inf_fb_has(&file, 3);
        if (tensor->label_kind != INF_LABELS_NONE && !is_final)
            continue;
        tensor->label_kind = type == FILE_AXIS_LABELS ? INF_LABELS_CLASSES : INF_LABELS_VALUES;
        tensor->labels_file = read_text(reader, &file, 0, "name");
    }
    struct inf_error err = {0};
    if (tensor->label_kind == INF_LABELS_NONE || !inf_fb_ok(&reader->file))
        return;
    if (unpack_labels(reader, tensor->labels_file, tensor, &err) != INF_OK)
        inf_description_note_problem(reader->description, &err);
    if (tensor->label_count == 0)
        tensor->label_kind = INF_LABELS_NONE;
}

// Copies `count` numbers; a vector of one number stands for all.
static const float *read_numbers(struct reader *reader, const struct inf_fb_table *table,
                                 const struct inf_fb_vector *vector, uint32_t count,
                                 bool may_be_zero)
{
    float *numbers = inf_description_alloc(reader->description, count * sizeof *numbers);
    for (uint32_t i = 0; numbers != NULL && i < count; i++) {
        numbers[i] = inf_fb_float_at(vector, vector->count > 1 ? i : 0);
        if (!isfinite(numbers[i]) || (numbers[i] == 0 && !may_be_zero))
            inf_fb_fail(table, vector->field, INF_INVALID, "element %u is %g, wanted a finite %s",
                        i, (double)numbers[i], may_be_zero ? "number" : "number other than 0");
    }
    return numbers;
}

static void read_normalisation(struct reader *reader, const struct inf_fb_table *table,
                               struct inf_described_tensor *tensor)
{
    struct inf_fb_vector means = inf_fb_vector(table, 0, "mean", 4);
    struct inf_fb_vector deviations = inf_fb_vector(table, 1, "std", 4);
    uint32_t count = INF_MAX(means.count, deviations.count);
    if (count == 0)
        return;
    if (count > CHANNELS_MAX || (means.count != count && means.count != 1) ||
        (deviations.count != count && deviations.count != 1)) {
        inf_fb_fail(table, "std", INF_INVALID,
                    "has %u numbers for %u means, wanted one for each, at most %u",
                    deviations.count, means.count, CHANNELS_MAX);
        return;
    }
    tensor->mean = read_numbers(reader, table, &means, count, true);
    tensor->deviation = read_numbers(reader, table, &deviations, count, false);
    if (inf_fb_ok(&reader->file) && tensor->mean != NULL && tensor->deviation != NULL)
        tensor->channel_count = count;
}

static void read_process_units(struct reader *reader, const struct inf_fb_table *table,
                               struct inf_described_tensor *tensor)
{
    struct inf_fb_vector units = inf_fb_vector(table, 4, "process_units", 4);
    for (uint32_t i = 0; inf_fb_ok(&reader->file) && i < units.count; i++) {
        struct inf_fb_table unit = inf_fb_table_at(&units, i, "ProcessUnit");
        if (inf_fb_int(&unit, INF_FB_U8, 0, "options_type", 0) != OPTIONS_NORMALIZATION)
            continue;
        struct inf_fb_table options = inf_fb_child(&unit, 1, "options", "NormalizationOptions");
        read_normalisation(reader, &options, tensor);
    }
}

static struct inf_described_tensor *read_tensors(struct reader *reader,
                                                 const struct inf_fb_table *table, uint32_t id,
                                                 const char *field, uint32_t *out_count)
{
    struct inf_fb_vector list = inf_fb_vector(table, id, field, 4);
    uint32_t count = INF_MIN(list.count, INF_LIMIT_TENSORS);
    struct inf_described_tensor *tensors =
        inf_description_alloc(reader->description, (count + 1) * sizeof *tensors);
    *out_count = tensors != NULL ? count : 0;
    for (uint32_t i = 0; i < *out_count; i++) {
        struct inf_fb_table tensor = inf_fb_table_at(&list, i, "TensorMetadata");
        tensors[i].labels_file = "";
        tensors[i].title = read_text(reader, &tensor, 0, "name");
        tensors[i].text = read_text(reader, &tensor, 1, "description");
        read_process_units(reader, &tensor, &tensors[i]);
        read_labels(reader, &tensor, &tensors[i]);
    }
    return tensors;
}

static void read_metadata(struct reader *reader, uint32_t subgraph)
{
    struct inf_model_description *description = reader->description;
    struct inf_fb_table root = inf_fb_root(&reader->file, "ModelMetadata");
    description->title = read_text(reader, &root, 0, "name");
    description->text = read_text(reader, &root, 1, "description");
    description->version = read_text(reader, &root, 2, "version");
    description->author = read_text(reader, &root, 4, "author");
    description->license = read_text(reader, &root, 5, "license");
    struct inf_fb_vector subgraphs = inf_fb_vector(&root, 3, "subgraph_metadata", 4);
    if (!inf_fb_ok(&reader->file) || subgraph >= subgraphs.count)
        return;
    struct inf_fb_table table = inf_fb_table_at(&subgraphs, subgraph, "SubGraphMetadata");
    description->inputs =
        read_tensors(reader, &table, 2, "input_tensor_metadata", &description->input_count);
    description->outputs =
        read_tensors(reader, &table, 3, "output_tensor_metadata", &description->output_count);
}

// --- the model ---

static void copy_signatures(struct inf_model_description *description,
                            const struct inf_tflite_model *model)
{
    description->signatures = inf_description_alloc(
        description, (model->signature_count + 1) * sizeof *description->signatures);
    for (uint32_t i = 0; description->signatures != NULL && i < model->signature_count; i++) {
        const char *key = model->signatures[i].key;
        char *name = inf_description_alloc(description, strlen(key) + 1);
        if (name == NULL)
            return;
        memcpy(name, key, strlen(key));
        description->signatures[description->signature_count++] = name;
        if (model->signatures[i].subgraph == 0 && description->default_signature == NULL)
            description->default_signature = name;
    }
}

void inf_tflite_describe(struct inf_model_description *description,
                         const struct inf_tflite_model *model, uint32_t subgraph,
                         struct inf_span bytes)
{
    struct reader reader = {.description = description,
                            .label_bytes_left = INF_DESCRIPTION_LABEL_BYTES};
    struct inf_error err = {0};
    copy_signatures(description, model);
    read_files(&reader, bytes);
    if (model->metadata.size == 0)
        return;
    if (model->metadata.size > METADATA_BYTES_MAX)
        (void)inf_fail(&err, INF_EXHAUSTED, "the metadata have %zu bytes, at most %u are read",
                       model->metadata.size, METADATA_BYTES_MAX);
    else if (model->metadata.size < 8 || memcmp(model->metadata.data + 4, "M001", 4) != 0)
        (void)inf_fail(&err, INF_INVALID, "the metadata lack the identifier M001 at byte 4");
    if (err.code == INF_OK) {
        inf_fb_file_init(&reader.file, model->metadata, &err);
        read_metadata(&reader, subgraph);
    }
    if (err.code != INF_OK)
        inf_description_note_problem(description, &err);
}

// --- what the model contains ---

// The most kinds of tensors that are counted. Tensors of further kinds are left out.
#define KINDS_MAX 12

// How many tensors have each kind, such as "INT8 per channel".
struct kinds {
    char names[KINDS_MAX][48];
    uint32_t counts[KINDS_MAX];
    uint32_t count;
};

static void count_kind(struct kinds *kinds, const struct inf_tflite_tensor *tensor)
{
    const struct inf_tflite_quantization *q = &tensor->quantization;
    char name[sizeof kinds->names[0]];
    uint32_t i = 0;
    if (q->block > 0)
        snprintf(name, sizeof name, "%s in blocks of %d", inf_tflite_type_info(tensor->type).name,
                 q->block);
    else
        snprintf(name, sizeof name, "%s%s", inf_tflite_type_info(tensor->type).name,
                 q->count > 1 ? " per channel" : "");
    while (i < kinds->count && strcmp(kinds->names[i], name) != 0)
        i++;
    if (i == KINDS_MAX)
        return;
    memcpy(kinds->names[i], name, sizeof name);
    kinds->counts[i]++;
    kinds->count = INF_MAX(kinds->count, i + 1);
}

// Appends the kinds to a text of `size` bytes.
static void print_kinds(char *text, size_t size, const char *what, const struct kinds *kinds)
{
    size_t used = strlen(text);
    if (used > 0 && kinds->count > 0 && used < size)
        used += (size_t)snprintf(text + used, size - used, "; ");
    for (uint32_t i = 0; i < kinds->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s (%u)", i == 0 ? what : ", ",
                                 kinds->names[i], kinds->counts[i]);
}

// Returns true if the tensor is stored in fewer bits than a float.
static bool is_narrow(const struct inf_tflite_tensor *tensor)
{
    return inf_tflite_tensor_is_quantized(tensor) || tensor->type == INF_TFLITE_TYPE_FLOAT16;
}

// Prints the name of each operator, a line each.
static void print_operators(const struct inf_tflite_subgraph *subgraph, FILE *file)
{
    for (uint32_t i = 0; i < subgraph->operator_count; i++) {
        const struct inf_tflite_code *code = subgraph->operators[i].code;
        const char *name = inf_tflite_builtin_name(code->builtin);
        if (code->builtin == INF_TFLITE_CUSTOM)
            fprintf(file, "custom operator %s\n", code->custom);
        else if (name != NULL)
            fprintf(file, "%s\n", name);
        else
            fprintf(file, "builtin operator %d\n", code->builtin);
    }
}

// Counts the narrow tensors. Constants with fewer than two axes, such as biases, are left out.
static void count_tensors(const struct inf_tflite_subgraph *subgraph, struct kinds *weights,
                          struct kinds *others)
{
    for (uint32_t i = 0; i < subgraph->tensor_count; i++) {
        const struct inf_tflite_tensor *tensor = &subgraph->tensors[i];
        bool is_const = inf_tflite_tensor_is_const(tensor);
        if (is_narrow(tensor) && (!is_const || tensor->shape.rank > 1))
            count_kind(is_const ? weights : others, tensor);
    }
}

void inf_tflite_contents_print(struct inf_file_contents *contents,
                               const struct inf_tflite_model *model)
{
    struct kinds weights = {.count = 0}, others = {.count = 0};
    snprintf(contents->version, sizeof contents->version, "schema 3");
    for (uint32_t i = 0; i < model->subgraph_count; i++) {
        if (contents->operators != NULL)
            print_operators(&model->subgraphs[i], contents->operators);
        count_tensors(&model->subgraphs[i], &weights, &others);
    }
    contents->quantization[0] = '\0';
    print_kinds(contents->quantization, sizeof contents->quantization, "weights ", &weights);
    print_kinds(contents->quantization, sizeof contents->quantization, "other tensors ", &others);
}
