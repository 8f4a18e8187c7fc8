// SPDX-License-Identifier: Apache-2.0
// Writes flatbuffers front to back: a table comes before what its fields point to, because offsets
// are positive.
#include "tests/support/models/tflite_writer.h"

#include <assert.h>
#include <string.h>

#define CUSTOM 32
// Operator codes from this number on do not fit field 0 of OperatorCode, which has one byte. Field
// 3 holds such a code, and field 0 holds this number.
#define CODE_ESCAPE 127

static void align_file(struct tflite_file *file, size_t alignment)
{
    file->size = inf_size_align(file->size, alignment);
    assert(file->size < TFLITE_FILE_MAX - 512);
}

void tflite_begin(struct tflite_file *file)
{
    memset(file, 0, sizeof *file);
    memcpy(file->data + 4, "TFL3", 4);
    file->size = 8;
}

struct inf_span tflite_bytes(const struct tflite_file *file)
{
    return (struct inf_span){file->data, file->size};
}

void tflite_put(struct tflite_file *file, size_t at, uint64_t number, size_t size)
{
    assert(at + size <= TFLITE_FILE_MAX);
    memcpy(file->data + at, &number, size);
}

void tflite_point(struct tflite_file *file, size_t at, size_t target)
{
    tflite_put(file, at, target - at, 4);
}

size_t tflite_table(struct tflite_file *file, const uint8_t *sizes, uint32_t count)
{
    align_file(file, 8);
    size_t vtable = file->size, table = inf_size_align(vtable + 4 + 2 * (size_t)count, 8);
    size_t at = table + 4;
    for (uint32_t i = 0; i < count; i++) {
        if (sizes[i] == 0)
            continue;
        at = inf_size_align(at, sizes[i]);
        tflite_put(file, vtable + 4 + 2 * (size_t)i, at - table, 2);
        at += sizes[i];
    }
    tflite_put(file, vtable, 4 + 2 * (size_t)count, 2);
    tflite_put(file, vtable + 2, at - table, 2);
    tflite_put(file, table, table - vtable, 4);
    if (vtable == 8)
        tflite_put(file, 0, table, 4);
    file->size = at;
    align_file(file, 4);
    return table;
}

size_t tflite_field(const struct tflite_file *file, size_t table, uint32_t id)
{
    int32_t back;
    uint16_t place;
    memcpy(&back, file->data + table, sizeof back);
    memcpy(&place, file->data + (size_t)((int64_t)table - back) + 4 + 2 * (size_t)id, sizeof place);
    assert(place != 0);
    return table + place;
}

void tflite_set(struct tflite_file *file, size_t table, uint32_t id, uint64_t number, size_t size)
{
    tflite_put(file, tflite_field(file, table, id), number, size);
}

size_t tflite_vector(struct tflite_file *file, size_t table, uint32_t id, const void *elements,
                     uint32_t count, uint32_t element_bytes)
{
    align_file(file, 8);
    // The count takes 4 bytes. Skip 4 bytes, so that elements of 8 bytes behind it are aligned.
    file->size += 4;
    size_t at = file->size, bytes = (size_t)count * element_bytes;
    assert(at + 4 + bytes < TFLITE_FILE_MAX - 512);
    tflite_put(file, at, count, 4);
    if (elements != NULL && bytes > 0)
        memcpy(file->data + at + 4, elements, bytes);
    tflite_point(file, tflite_field(file, table, id), at);
    file->size = at + 4 + bytes;
    return at + 4;
}

// --- small models ---

static void write_string(struct tflite_file *file, size_t table, uint32_t id, const char *text)
{
    tflite_vector(file, table, id, text, (uint32_t)strlen(text), 1);
    file->size++; // leaves a NUL behind the text
}

static void write_quantization(struct tflite_file *file, size_t tensor,
                               const struct tflite_tensor *from)
{
    static const uint8_t sizes[] = {0, 0, 4, 4, 0, 0, 4};
    size_t table = tflite_table(file, sizes, 7);
    tflite_point(file, tflite_field(file, tensor, 4), table);
    tflite_set(file, table, 6, (uint32_t)from->axis, 4);
    tflite_vector(file, table, 2, from->scales, from->scale_count, 4);
    tflite_vector(file, table, 3, from->zeros, from->scale_count, 8);
}

static size_t write_tensor(struct tflite_file *file, size_t at, const struct tflite_tensor *from,
                           uint32_t buffer)
{
    const uint8_t sizes[] = {4, 1, 4, 4, from->scales != NULL ? 4 : 0, 1, from->is_sparse ? 4 : 0};
    size_t table = tflite_table(file, sizes, 7);
    tflite_point(file, at, table);
    tflite_set(file, table, 1, from->type, 1);
    tflite_set(file, table, 2, buffer, 4);
    tflite_set(file, table, 5, from->is_variable, 1);
    tflite_vector(file, table, 0, from->shape, from->rank, 4);
    write_string(file, table, 3, from->name);
    if (from->scales != NULL)
        write_quantization(file, table, from);
    if (from->is_sparse)
        tflite_point(file, tflite_field(file, table, 6), tflite_table(file, NULL, 0));
    return table;
}

// Every tensor has its own buffer; buffer 0 is empty, as in all TFLite files. The metadata are in
// the last one.
static void write_buffers(struct tflite_file *file, size_t root, const struct tflite_model *model)
{
    bool has_metadata = model->metadata.size > 0;
    size_t list = tflite_vector(file, root, 4, NULL, model->tensor_count + 1 + has_metadata, 4);
    for (uint32_t i = 0; i <= model->tensor_count; i++) {
        const struct tflite_tensor *tensor = i > 0 ? &model->tensors[i - 1] : NULL;
        const uint8_t sizes[] = {tensor != NULL && tensor->data != NULL ? 4 : 0};
        size_t table = tflite_table(file, sizes, 1);
        tflite_point(file, list + 4 * (size_t)i, table);
        if (sizes[0] != 0)
            tflite_vector(file, table, 0, tensor->data, tensor->data_bytes, 1);
    }
    if (!has_metadata)
        return;
    size_t table = tflite_table(file, &(uint8_t){4}, 1);
    tflite_point(file, list + 4 * ((size_t)model->tensor_count + 1), table);
    tflite_vector(file, table, 0, model->metadata.data, (uint32_t)model->metadata.size, 1);
}

static void write_code(struct tflite_file *file, size_t root, const struct tflite_model *model)
{
    const uint8_t sizes[] = {1, model->custom != NULL ? 4 : 0, 4, 4};
    size_t list = tflite_vector(file, root, 1, NULL, 1, 4), table = tflite_table(file, sizes, 4);
    int32_t code = model->custom != NULL ? CUSTOM : model->builtin;
    tflite_point(file, list, table);
    tflite_set(file, table, 0, (uint64_t)(code < CODE_ESCAPE ? code : CODE_ESCAPE), 1);
    tflite_set(file, table, 2, 1, 4);
    tflite_set(file, table, 3, (uint64_t)code, 4);
    if (model->custom != NULL)
        write_string(file, table, 1, model->custom);
}

static size_t write_operator(struct tflite_file *file, size_t subgraph,
                             const struct tflite_model *model)
{
    const uint8_t link = model->options_type != 0 ? 4 : 0;
    const uint8_t sizes[] = {4, 4, 4, 1, link, model->custom_options != NULL ? 4 : 0};
    int32_t inputs[16], output = (int32_t)model->tensor_count - 1;
    size_t list = tflite_vector(file, subgraph, 3, NULL, 1, 4);
    size_t table = tflite_table(file, sizes, 6);
    for (int32_t i = 0; i < output; i++)
        inputs[i] = i;
    tflite_point(file, list, table);
    tflite_vector(file, table, 1, inputs, (uint32_t)output, 4);
    tflite_vector(file, table, 2, &output, 1, 4);
    tflite_set(file, table, 3, model->options_type, 1);
    if (model->custom_options != NULL)
        tflite_vector(file, table, 5, model->custom_options, model->custom_option_bytes, 1);
    if (link == 0)
        return table;
    size_t options = tflite_table(file, model->option_sizes, model->option_count);
    tflite_point(file, tflite_field(file, table, 4), options);
    for (uint32_t i = 0; i < model->option_count; i++)
        if (model->option_sizes[i] != 0)
            tflite_set(file, options, i, model->options[i], model->option_sizes[i]);
    return table;
}

// Writes the metadata: a buffer behind those of the tensors, and its entry in the root table.
static void write_metadata(struct tflite_file *file, size_t root, uint32_t buffer)
{
    static const uint8_t sizes[] = {4, 4};
    size_t list = tflite_vector(file, root, 6, NULL, 1, 4), table = tflite_table(file, sizes, 2);
    tflite_point(file, list, table);
    tflite_set(file, table, 1, buffer, 4);
    write_string(file, table, 0, "TFLITE_METADATA");
}

static void write_signature(struct tflite_file *file, size_t root, const char *key)
{
    static const uint8_t sizes[] = {0, 0, 4};
    size_t list = tflite_vector(file, root, 7, NULL, 1, 4), table = tflite_table(file, sizes, 3);
    tflite_point(file, list, table);
    write_string(file, table, 2, key);
}

struct tflite_places tflite_write(struct tflite_file *file, const struct tflite_model *model)
{
    static const uint8_t subgraph_sizes[] = {4, 4, 4, 4};
    const uint8_t root_sizes[] = {
        4, 4, 4, 4, 4, 0, model->metadata.size > 0 ? 4 : 0, model->signature != NULL ? 4 : 0};
    struct tflite_places places = {0};
    int32_t inputs[16];
    uint32_t input_count = 0, last = model->tensor_count - 1;
    tflite_begin(file);
    places.root = tflite_table(file, root_sizes, 8);
    tflite_set(file, places.root, 0, 3, 4);
    write_string(file, places.root, 3, "a test");
    write_code(file, places.root, model);
    size_t list = tflite_vector(file, places.root, 2, NULL, 1, 4);
    places.subgraph = tflite_table(file, subgraph_sizes, 4);
    tflite_point(file, list, places.subgraph);
    size_t tensors = tflite_vector(file, places.subgraph, 0, NULL, model->tensor_count, 4);
    for (uint32_t i = 0; i < model->tensor_count; i++) {
        places.tensors[i] = write_tensor(file, tensors + 4 * (size_t)i, &model->tensors[i], i + 1);
        if (i < last && model->tensors[i].data == NULL && !model->tensors[i].is_variable)
            inputs[input_count++] = (int32_t)i;
    }
    tflite_vector(file, places.subgraph, 1, inputs, input_count, 4);
    tflite_vector(file, places.subgraph, 2, &(int32_t){(int32_t)last}, 1, 4);
    places.op = write_operator(file, places.subgraph, model);
    write_buffers(file, places.root, model);
    if (model->metadata.size > 0)
        write_metadata(file, places.root, model->tensor_count + 1);
    if (model->signature != NULL)
        write_signature(file, places.root, model->signature);
    return places;
}
