// SPDX-License-Identifier: Apache-2.0
// Writes TensorFlow.js graph models.
#include "tests/support/models/tfjs_writer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inf_tfjs_writer {
    char *directory;
    FILE *data;
    json_t *nodes, *weights, *inputs, *outputs;
    json_t *attrs; // attributes of the last node
};

static void require_ok(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "tfjs_writer: %s\n", what);
    abort();
}

static FILE *open_file(const char *directory, const char *name)
{
    char *path = NULL;
    require_ok(asprintf(&path, "%s/%s", directory, name) > 0, "no memory");
    FILE *file = fopen(path, "wb");
    require_ok(file != NULL, path);
    free(path);
    return file;
}

struct inf_tfjs_writer *inf_tfjs_writer_begin(const char *directory)
{
    struct inf_tfjs_writer *writer = calloc(1, sizeof *writer);
    require_ok(writer != NULL, "no memory");
    writer->directory = strdup(directory);
    writer->data = open_file(directory, "weights.bin");
    writer->nodes = json_array();
    writer->weights = json_array();
    writer->inputs = json_object();
    writer->outputs = json_object();
    return writer;
}

static json_t *int_text(int64_t value)
{
    return json_sprintf("%" PRId64, value);
}

static json_t *shape_object(const int64_t *dims, size_t rank)
{
    json_t *list = json_array();
    for (size_t i = 0; i < rank; i++)
        json_array_append_new(list, json_pack("{s:o}", "size", int_text(dims[i])));
    return json_pack("{s:o}", "dim", list);
}

// Returns a text in base64.
static json_t *encode_base64(const char *text, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char out[256];
    size_t length = 0;
    require_ok(size < sizeof out / 2, "text too long");
    for (size_t i = 0; i < size; i += 3) {
        uint32_t bits = (uint32_t)(unsigned char)text[i] << 16;
        bits |= i + 1 < size ? (uint32_t)(unsigned char)text[i + 1] << 8 : 0;
        bits |= i + 2 < size ? (uint32_t)(unsigned char)text[i + 2] : 0;
        out[length++] = digits[bits >> 18];
        out[length++] = digits[bits >> 12 & 63];
        out[length++] = i + 1 < size ? digits[bits >> 6 & 63] : '=';
        out[length++] = i + 2 < size ? digits[bits & 63] : '=';
    }
    return json_stringn(out, length);
}

// Splits a text at commas. Each part is encoded in base64 if `encode` is set.
static json_t *split_list(const char *text, int encode)
{
    json_t *list = json_array();
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        json_array_append_new(list,
                              encode ? encode_base64(text, length) : json_stringn(text, length));
        text += length + (text[length] == ',');
    }
    return list;
}

void inf_tfjs_writer_node(struct inf_tfjs_writer *writer, const char *name, const char *op,
                          const char *inputs)
{
    writer->attrs = json_object();
    json_array_append_new(writer->nodes,
                          json_pack("{s:s,s:s,s:o,s:o}", "name", name, "op", op, "input",
                                    split_list(inputs, 0), "attr", writer->attrs));
}

static void set_attr(struct inf_tfjs_writer *writer, const char *key, json_t *value)
{
    require_ok(value != NULL && json_object_set_new(writer->attrs, key, value) == 0, key);
}

void inf_tfjs_writer_attr_int(struct inf_tfjs_writer *writer, const char *key, int64_t value)
{
    set_attr(writer, key, json_pack("{s:o}", "i", int_text(value)));
}

void inf_tfjs_writer_attr_bool(struct inf_tfjs_writer *writer, const char *key, int value)
{
    set_attr(writer, key, json_pack("{s:b}", "b", value));
}

void inf_tfjs_writer_attr_float(struct inf_tfjs_writer *writer, const char *key, double value)
{
    set_attr(writer, key, json_pack("{s:f}", "f", value));
}

void inf_tfjs_writer_attr_type(struct inf_tfjs_writer *writer, const char *key, const char *type)
{
    set_attr(writer, key, json_pack("{s:s}", "type", type));
}

void inf_tfjs_writer_attr_text(struct inf_tfjs_writer *writer, const char *key, const char *text)
{
    set_attr(writer, key, json_pack("{s:o}", "s", encode_base64(text, strlen(text))));
}

void inf_tfjs_writer_attr_ints(struct inf_tfjs_writer *writer, const char *key,
                               const int64_t *values, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, int_text(values[i]));
    set_attr(writer, key, json_pack("{s:{s:o}}", "list", "i", list));
}

void inf_tfjs_writer_attr_texts(struct inf_tfjs_writer *writer, const char *key, const char *texts)
{
    set_attr(writer, key, json_pack("{s:{s:o}}", "list", "s", split_list(texts, 1)));
}

void inf_tfjs_writer_placeholder(struct inf_tfjs_writer *writer, const char *name, const char *type,
                                 const int64_t *dims, size_t rank)
{
    inf_tfjs_writer_node(writer, name, "Placeholder", "");
    inf_tfjs_writer_attr_type(writer, "dtype", type);
    set_attr(writer, "shape", json_pack("{s:o}", "shape", shape_object(dims, rank)));
    json_object_set_new(writer->inputs, name,
                        json_pack("{s:o,s:s,s:o}", "name", json_sprintf("%s:0", name), "dtype",
                                  type, "tensorShape", shape_object(dims, rank)));
}

// Adds a constant and its weight. Elements have four bytes, for both float and int32.
static void add_const(struct inf_tfjs_writer *writer, const char *name, const char *type,
                      const void *elements, const int64_t *dims, size_t rank)
{
    json_t *shape = json_array();
    size_t count = 1;
    for (size_t i = 0; i < rank; i++) {
        json_array_append_new(shape, json_integer(dims[i]));
        count *= (size_t)dims[i];
    }
    require_ok(count == 0 || fwrite(elements, 4, count, writer->data) == count,
               "cannot write weights.bin");
    json_array_append_new(writer->weights,
                          json_pack("{s:s,s:o,s:s}", "name", name, "shape", shape, "dtype", type));
    inf_tfjs_writer_node(writer, name, "Const", "");
    inf_tfjs_writer_attr_type(writer, "dtype", *type == 'f' ? "DT_FLOAT" : "DT_INT32");
}

void inf_tfjs_writer_floats(struct inf_tfjs_writer *writer, const char *name, const float *elements,
                            const int64_t *dims, size_t rank)
{
    add_const(writer, name, "float32", elements, dims, rank);
}

void inf_tfjs_writer_ints(struct inf_tfjs_writer *writer, const char *name, const int32_t *elements,
                          const int64_t *dims, size_t rank)
{
    add_const(writer, name, "int32", elements, dims, rank);
}

void inf_tfjs_writer_output(struct inf_tfjs_writer *writer, const char *key, const char *tensor)
{
    json_object_set_new(writer->outputs, key, json_pack("{s:s}", "name", tensor));
}

void inf_tfjs_writer_end(struct inf_tfjs_writer *writer)
{
    require_ok(fclose(writer->data) == 0, "cannot write weights.bin");
    json_t *model = json_pack("{s:s,s:s,s:{s:o,s:{s:i}},s:[{s:[s],s:o}]}", "format", "graph-model",
                              "convertedBy", "inferd tests", "modelTopology", "node", writer->nodes,
                              "versions", "producer", 1395, "weightsManifest", "paths",
                              "weights.bin", "weights", writer->weights);
    require_ok(model != NULL, "cannot build model.json");
    if (json_object_size(writer->outputs) > 0)
        json_object_set_new(
            model, "signature",
            json_pack("{s:O,s:O}", "inputs", writer->inputs, "outputs", writer->outputs));
    FILE *file = open_file(writer->directory, "model.json");
    require_ok(json_dumpf(model, file, JSON_COMPACT) == 0 && fclose(file) == 0,
               "cannot write model.json");
    json_decref(model);
    json_decref(writer->inputs);
    json_decref(writer->outputs);
    free(writer->directory);
    free(writer);
}

void inf_write_add_model(const char *directory)
{
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    int64_t dims[] = {-1, 4};
    inf_tfjs_writer_placeholder(writer, "a", "DT_FLOAT", dims, 2);
    inf_tfjs_writer_placeholder(writer, "b", "DT_FLOAT", dims, 2);
    inf_tfjs_writer_node(writer, "sum", "AddV2", "a,b");
    inf_tfjs_writer_output(writer, "y", "sum:0");
    inf_tfjs_writer_end(writer);
}

void inf_write_conv_model(const char *directory)
{
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (int64_t[]){-1, 8, 8, 3}, 4);
    inf_tfjs_writer_ints(writer, "paddings", (int32_t[]){0, 0, 1, 1, 1, 1, 0, 0}, (int64_t[]){4, 2},
                         2);
    float filter[3][3][3][4] = {0};
    for (int k = 0; k < 4; k++)
        filter[1][1][k % 3][k] = (float)(k + 1);
    inf_tfjs_writer_floats(writer, "filter", &filter[0][0][0][0], (int64_t[]){3, 3, 3, 4}, 4);
    inf_tfjs_writer_floats(writer, "bias", (float[]){0.0f, 0.5f, -1.0f, 2.0f}, (int64_t[]){4}, 1);

    inf_tfjs_writer_node(writer, "pad", "Pad", "x,paddings");
    inf_tfjs_writer_node(writer, "conv", "Conv2D", "pad,filter");
    inf_tfjs_writer_attr_ints(writer, "strides", (int64_t[]){1, 2, 2, 1}, 4);
    inf_tfjs_writer_attr_text(writer, "padding", "VALID");
    inf_tfjs_writer_attr_text(writer, "data_format", "NHWC");
    inf_tfjs_writer_node(writer, "biased", "BiasAdd", "conv,bias");
    inf_tfjs_writer_node(writer, "relu", "Relu", "biased");
    inf_tfjs_writer_node(writer, "pool", "MaxPool", "relu");
    inf_tfjs_writer_attr_ints(writer, "ksize", (int64_t[]){1, 2, 2, 1}, 4);
    inf_tfjs_writer_attr_ints(writer, "strides", (int64_t[]){1, 2, 2, 1}, 4);
    inf_tfjs_writer_attr_text(writer, "padding", "VALID");
    inf_tfjs_writer_output(writer, "y", "pool:0");
    inf_tfjs_writer_end(writer);
}

void inf_write_null_model(const char *directory, int64_t elements)
{
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    int64_t dims[] = {elements > 0 ? elements : -1};
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", dims, 1);
    inf_tfjs_writer_ints(writer, "begin", (int32_t[]){0}, (int64_t[]){1}, 1);
    inf_tfjs_writer_ints(writer, "end", (int32_t[]){4}, (int64_t[]){1}, 1);
    inf_tfjs_writer_ints(writer, "step", (int32_t[]){1}, (int64_t[]){1}, 1);
    inf_tfjs_writer_node(writer, "first", "StridedSlice", "x,begin,end,step");
    inf_tfjs_writer_output(writer, "y", "first:0");
    inf_tfjs_writer_end(writer);
}
