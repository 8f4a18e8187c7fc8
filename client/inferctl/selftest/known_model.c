// SPDX-License-Identifier: Apache-2.0
// Writes the known model. A table lists its nodes; weights and input come from a formula, so that
// they need no file. All of them are sixteenths or integers: sums are exact in 32-bit floats,
// in whatever order a device adds.
#include "client/inferctl/selftest/known_model.h"

#include <jansson.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"

#define MODEL_FILE   "model.json"
#define WEIGHTS_FILE "weights.bin"

// A constant of the model. Its dimensions end with 0.
struct constant {
    const char *name;
    int dims[5];
    int seed;
    float scale;
};

#define SIXTEENTH (1.0f / 16)

static const struct constant constants[] = {
    {"dense/w", {3, 3, 3, 8}, 1, SIXTEENTH},
    {"dense/b", {8}, 2, SIXTEENTH},
    {"deep/w", {3, 3, 8, 1}, 3, SIXTEENTH},
    {"deep/b", {8}, 4, SIXTEENTH},
    {"point/w", {1, 1, 8, 8}, 6, SIXTEENTH},
    {"point/b", {8}, 7, SIXTEENTH},
    {"classes/w", {8, 10}, 8, 1},
    {"classes/b", {10}, 9, SIXTEENTH},
};

#define CONSTANT_COUNT        (sizeof constants / sizeof constants[0])
#define CONSTANT_ELEMENTS_MAX 216

#define INPUT_SEED 5

// Attributes of the operators, as JSON of TensorFlow's protobuf messages. "U0FNRQ==" is "SAME".
#define ATTR_FLOAT "{'T': {'type': 'DT_FLOAT'}}"
#define ATTR_CONV(stride)                                                                          \
    "{'T': {'type': 'DT_FLOAT'}, 'padding': {'s': 'U0FNRQ=='}, 'data_format': {'s': 'TkhXQw=='},"  \
    " 'strides': {'list': {'i': ['1', '" stride "', '" stride "', '1']}}}"
#define ATTR_MEAN    "{'T': {'type': 'DT_FLOAT'}, 'keep_dims': {'b': false}}"
#define ATTR_PRODUCT "{'T': {'type': 'DT_FLOAT'}}"

// A node of the model; commas separate the names of its inputs. Apostrophes in `attributes` stand
// for quotation marks.
struct node {
    const char *name, *operator_name, *inputs, *attributes;
};

static const struct node nodes[] = {
    {"axes", "Const", "",
     "{'dtype': {'type': 'DT_INT32'}, 'value': {'tensor': {'dtype': 'DT_INT32',"
     " 'tensorShape': {'dim': [{'size': '2'}]}}}}"},
    {"dense", "Conv2D", "x,dense/w", ATTR_CONV("2")},
    {"dense/sum", "BiasAdd", "dense,dense/b", ATTR_FLOAT},
    {"dense/clip", "Relu6", "dense/sum", ATTR_FLOAT},
    {"deep", "DepthwiseConv2dNative", "dense/clip,deep/w", ATTR_CONV("1")},
    {"deep/sum", "BiasAdd", "deep,deep/b", ATTR_FLOAT},
    {"deep/clip", "Relu6", "deep/sum", ATTR_FLOAT},
    {"point", "Conv2D", "deep/clip,point/w", ATTR_CONV("1")},
    {"point/sum", "BiasAdd", "point,point/b", ATTR_FLOAT},
    {"residual", "AddV2", "point/sum,dense/clip", ATTR_FLOAT},
    {"mean", "Mean", "residual,axes", ATTR_MEAN},
    {"classes", "MatMul", "mean,classes/w", ATTR_PRODUCT},
    {"logits", "BiasAdd", "classes,classes/b", ATTR_FLOAT},
    {"scores", "Softmax", "logits", ATTR_FLOAT},
};

#define NODE_COUNT (sizeof nodes / sizeof nodes[0])

// --- the numbers ---

static void fill_values(float *values, size_t count, int seed, float scale)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(((int)i * 37 + seed) % 17 - 8) * scale;
}

void known_model_fill_input(float values[KNOWN_MODEL_INPUTS])
{
    fill_values(values, KNOWN_MODEL_INPUTS, INPUT_SEED, SIXTEENTH);
}

const inferd_tensor *known_model_output(unsigned index)
{
    static const float logits[KNOWN_MODEL_CLASSES] = {
        2.27701473f, 1.00800991f, -7.24298954f, -1.12084579f, 2.77665615f,
        5.76864338f, 3.41257668f, -9.51411343f, -6.1074276f,  0.0147161484f};
    static const float scores[KNOWN_MODEL_CLASSES] = {
        0.0256282663f, 0.00720439367f, 1.88032926e-06f, 0.000857130897f, 0.042238719f,
        0.841616578f,  0.0797788025f,  1.94042711e-07f, 5.85331895e-06f, 0.00266818191f};
    // The library takes pointers to data that are not const, but only reads expected outputs.
    static const inferd_tensor outputs[KNOWN_MODEL_OUTPUTS] = {
        {.name = "logits",
         .dtype = INFERD_FP32,
         .rank = 2,
         .shape = {1, KNOWN_MODEL_CLASSES},
         .data = (void *)logits,
         .size = sizeof logits},
        {.name = "scores",
         .dtype = INFERD_FP32,
         .rank = 2,
         .shape = {1, KNOWN_MODEL_CLASSES},
         .data = (void *)scores,
         .size = sizeof scores},
    };
    return &outputs[index];
}

// --- the files ---

static json_t *make_dims(const int *dims)
{
    json_t *list = json_value_must(json_array());
    for (; *dims != 0; dims++) {
        char text[16];
        snprintf(text, sizeof text, "%d", *dims);
        json_array_append_new(list, json_value_must(json_pack("{s:s}", "size", text)));
    }
    return json_value_must(json_pack("{s:o}", "dim", list));
}

static size_t count_elements(const struct constant *constant)
{
    size_t count = 1;
    for (const int *dim = constant->dims; *dim != 0; dim++)
        count *= (size_t)*dim;
    return count;
}

static json_t *make_node(const struct node *node)
{
    char inputs[64], attributes[256];
    snprintf(inputs, sizeof inputs, "%s", node->inputs);
    snprintf(attributes, sizeof attributes, "%s", node->attributes);
    for (char *at = attributes; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    json_t *list = json_value_must(json_array());
    char *rest = NULL;
    for (char *name = strtok_r(inputs, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
        json_array_append_new(list, json_value_text(name));
    return json_value_must(json_pack("{s:s, s:s, s:o, s:o}", "name", node->name, "op",
                                     node->operator_name, "input", list, "attr",
                                     json_value_must(json_loads(attributes, 0, NULL))));
}

static json_t *make_constant(const struct constant *constant)
{
    return json_value_must(json_pack("{s:s, s:s, s:{s:{s:s}, s:{s:{s:s, s:o}}}}", "name",
                                     constant->name, "op", "Const", "attr", "dtype", "type",
                                     "DT_FLOAT", "value", "tensor", "dtype", "DT_FLOAT",
                                     "tensorShape", make_dims(constant->dims)));
}

static json_t *make_placeholder(void)
{
    return json_value_must(json_pack("{s:s, s:s, s:{s:{s:s}, s:{s:o}}}", "name", "x", "op",
                                     "Placeholder", "attr", "dtype", "type", "DT_FLOAT", "shape",
                                     "shape", make_dims((const int[]){1, 8, 8, 3, 0})));
}

static json_t *make_weight(const struct constant *constant)
{
    json_t *shape = json_value_must(json_array());
    for (const int *dim = constant->dims; *dim != 0; dim++)
        json_array_append_new(shape, json_value_must(json_integer(*dim)));
    return json_value_must(
        json_pack("{s:s, s:o, s:s}", "name", constant->name, "shape", shape, "dtype", "float32"));
}

static json_t *make_model(void)
{
    json_t *list = json_value_must(json_array());
    json_t *weights = json_value_must(json_array());
    json_array_append_new(list, make_placeholder());
    for (size_t i = 0; i < CONSTANT_COUNT; i++) {
        json_array_append_new(list, make_constant(&constants[i]));
        json_array_append_new(weights, make_weight(&constants[i]));
    }
    for (size_t i = 0; i < NODE_COUNT; i++)
        json_array_append_new(list, make_node(&nodes[i]));
    json_array_append_new(weights, json_value_must(json_pack("{s:s, s:[i], s:s}", "name", "axes",
                                                             "shape", 2, "dtype", "int32")));
    return json_value_must(
        json_pack("{s:s, s:{s:o}, s:{s:{s:{s:s}}, s:{s:{s:s}, s:{s:s}}}, s:[{s:[s], s:o}]}",
                  "format", "graph-model", "modelTopology", "node", list, "signature", "inputs",
                  "x", "name", "x:0", "outputs", "logits", "name", "logits:0", "scores", "name",
                  "scores:0", "weightsManifest", "paths", WEIGHTS_FILE, "weights", weights));
}

static bool write_weights(FILE *file)
{
    float values[CONSTANT_ELEMENTS_MAX];
    bool ok = true;
    for (size_t i = 0; i < CONSTANT_COUNT; i++) {
        size_t count = count_elements(&constants[i]);
        fill_values(values, count, constants[i].seed, constants[i].scale);
        ok &= fwrite(values, sizeof values[0], count, file) == count;
    }
    static const int32_t axes[] = {1, 2};
    return (fwrite(axes, sizeof axes, 1, file) == 1) & ok;
}

static bool write_file(const char *folder, const char *name, const json_t *json)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return false;
    bool ok = json != NULL ? json_dumpf(json, file, 0) == 0 : write_weights(file);
    return (fclose(file) == 0) & ok;
}

int known_model_write(const char *folder)
{
    json_t *model = make_model();
    bool ok = write_file(folder, MODEL_FILE, model) && write_file(folder, WEIGHTS_FILE, NULL);
    json_decref(model);
    return ok ? EXIT_OK : command_say(EXIT_FILE, "cannot write the known model to %s: %m", folder);
}

void known_model_remove(const char *folder)
{
    static const char *const names[] = {MODEL_FILE, WEIGHTS_FILE};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
}
