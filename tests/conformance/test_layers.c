// SPDX-License-Identifier: Apache-2.0
// Layers models (tests/tools/gen/gen_layers.js) and graph models (gen_graphs.js), with expected
// results from TensorFlow.js. Each model is imported and run on every device.
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/blob.h"
#include "backends/exec/model/model.h"
#include "backends/registry.h"
#include "tests/support/models/tfjs_case.h"

TestSuite(layers, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

// Decodes a base64 text and returns its bytes.
static struct inf_blob *decode_base64(const char *text)
{
    struct inf_blob *blob = inf_blob_create(strlen(text) / 4 * 3 + 4);
    uint8_t *out = blob->data;
    uint32_t bits = 0, count = 0;
    for (; digit_of(*text) >= 0; text++) {
        bits = bits << 6 | (uint32_t)digit_of(*text);
        count += 6;
        if (count >= 8) {
            count -= 8;
            *out++ = (uint8_t)(bits >> count);
        }
    }
    blob->size_bytes = (size_t)(out - (uint8_t *)blob->data);
    return blob;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static struct inf_shape shape_of(const json_t *tensor)
{
    const json_t *list = json_object_get(tensor, "shape");
    struct inf_shape shape = {.rank = (int32_t)json_array_size(list)};
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = json_integer_value(json_array_get(list, (size_t)i));
    return shape;
}

// Reads one line of the test data, writes the model in it to files in the test case's folder, and
// imports the model.
static void import_line(const json_t *line)
{
    json_t *weights = json_deep_copy(json_object_get(line, "weights")), *weight;
    size_t index;
    json_array_foreach(weights, index, weight) if (json_object_get(weight, "dtype") == NULL)
        json_object_set_new(weight, "dtype", json_string("float32"));
    json_t *group = json_pack("{s:[s],s:o}", "paths", "weights.bin", "weights", weights);
    json_t *root = json_pack("{s:O,s:[o]}", "modelTopology", json_object_get(line, "topology"),
                             "weightsManifest", group);
    json_object_update(root, json_object_get(line, "extra"));
    char *text = json_dumps(root, JSON_COMPACT);
    struct inf_blob *data = decode_base64(text_of(line, "data"));
    inf_tfjs_case_write("model.json", text, strlen(text));
    inf_tfjs_case_write("weights.bin", data->data, data->size_bytes);
    inf_blob_unref(&data);
    free(text);
    json_decref(root);
    cr_assert_eq(inf_tfjs_case_import(), INF_OK, "%s: %s", text_of(line, "id"),
                 inf_tfjs_case.err.text);
}

// Returns element `i` of a result. Bools are stored as bytes, both by the model and by
// TensorFlow.js.
static double get_element(enum inf_dtype dtype, const void *data, size_t i)
{
    return dtype == INF_DTYPE_F32   ? (double)((const float *)data)[i]
           : dtype == INF_DTYPE_I32 ? (double)((const int32_t *)data)[i]
                                    : (double)((const uint8_t *)data)[i];
}

// Asserts that the output equals the result of TensorFlow.js.
static void check_output(const char *id, const json_t *output, const struct inf_result *result)
{
    char has[INF_SHAPE_TEXT_SIZE], wanted[INF_SHAPE_TEXT_SIZE];
    struct inf_shape shape = shape_of(output);
    const char *dtype = text_of(output, "dtype");
    cr_assert(inf_shape_equal(&result->shape, &shape), "%s: %s, wanted %s", id,
              inf_shape_print(&result->shape, has), inf_shape_print(&shape, wanted));
    cr_assert_eq(result->dtype,
                 strcmp(dtype, "float32") == 0 ? INF_DTYPE_F32
                 : strcmp(dtype, "int32") == 0 ? INF_DTYPE_I32
                                               : INF_DTYPE_BOOL,
                 "%s: %s, wanted %s", id, inf_dtype_name(result->dtype), dtype);
    struct inf_blob *expected = decode_base64(text_of(output, "data"));
    cr_assert_eq(expected->size_bytes,
                 (size_t)inf_shape_elements(&shape) * inf_dtype_size(result->dtype), "%s", id);
    for (size_t i = 0; i < expected->size_bytes / inf_dtype_size(result->dtype); i++) {
        double got = get_element(result->dtype, result->data, i);
        double want = get_element(result->dtype, expected->data, i);
        bool near = fabs(got - want) <= 2e-5 + 1e-4 * fabs(want);
        cr_assert(result->dtype == INF_DTYPE_F32 ? near : got == want, "%s[%zu]: %.8g, %.8g", id, i,
                  got, want);
    }
    inf_blob_unref(&expected);
}

static void run_outputs(const char *id, const json_t *outputs, struct inf_executable *executable,
                        const void *const *inputs)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    struct inf_blob *blobs[8];
    void *pointers[8];
    struct inf_error err;
    cr_assert_eq(graph->output_count, json_array_size(outputs), "%s", id);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        size_t size = 0;
        blobs[i] = NULL;
        pointers[i] = NULL;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size))
            // the size is known only after the run, so no memory is provided for this output
            continue;
        blobs[i] = inf_blob_create(size);
        pointers[i] = blobs[i]->data;
    }
    struct inf_execution execution = {.inputs = inputs, .outputs = pointers};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s: %s", id, err.text);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const json_t *output = json_array_get(outputs, i);
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct inf_result result = {value->dtype, value->shape, pointers[i], 0};
        cr_assert_str_eq(graph->outputs[i].name, text_of(output, "name"), "%s", id);
        cr_assert_eq(inf_executable_result(executable, 0, i, &result), pointers[i] == NULL, "%s",
                     id);
        check_output(id, output, &result);
        inf_blob_unref(&blobs[i]);
    }
    inf_executable_drop_results(executable, 0);
}

// Converts an input's elements to the element type that the model expects.
static struct inf_blob *make_input(const json_t *input, enum inf_dtype dtype)
{
    struct inf_blob *blob = decode_base64(text_of(input, "data"));
    if (dtype == INF_DTYPE_I32 && strcmp(text_of(input, "dtype"), "float32") == 0)
        for (size_t i = 0; i < blob->size_bytes / 4; i++)
            ((int32_t *)blob->data)[i] = (int32_t)((float *)blob->data)[i];
    return blob;
}

static void run_line(const json_t *line, struct inf_device *device, struct inf_device *ref)
{
    const char *id = text_of(line, "id");
    const json_t *inputs = json_object_get(line, "inputs");
    struct inf_pass_options options = {.evaluator = inf_registry_evaluator()};
    struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    struct inf_blob *blobs[8];
    const void *pointers[8];
    struct inf_shape shapes[8];
    import_line(line);
    struct inf_graph *graph = inf_tfjs_case.graph;
    inf_tfjs_case.graph = NULL;
    cr_assert_eq(graph->input_count, json_array_size(inputs), "%s", id);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const json_t *input = json_array_get(inputs, i);
        cr_assert_str_eq(graph->inputs[i].name, text_of(input, "name"), "%s", id);
        blobs[i] = make_input(input, graph->values[graph->inputs[i].value].dtype);
        pointers[i] = blobs[i]->data;
        shapes[i] = shape_of(input);
    }
    uint32_t count = graph->input_count;
    cr_assert_eq(inf_model_create(&model, &graph, &ref, 1, &options, &inf_tfjs_case.err), INF_OK,
                 "%s: %s", id, inf_tfjs_case.err.text);
    cr_assert_eq(inf_model_acquire(model, device, shapes, &executable, &inf_tfjs_case.err), INF_OK,
                 "%s: %s", id, inf_tfjs_case.err.text);
    run_outputs(id, json_object_get(line, "outputs"), executable, pointers);
    inf_model_release(model, &executable);
    inf_model_unref(&model);
    for (uint32_t i = 0; i < count; i++)
        inf_blob_unref(&blobs[i]);
}

static void run_all(const char *path, const char *backend)
{
    struct inf_device *device = NULL, *ref = NULL;
    struct inf_device_options options = {.slots = 1, .threads = 1};
    const char *only = getenv("INF_LAYERS_ONLY");
    unsigned count = 0;
    cr_assert_eq(inf_device_open(&ref, inf_registry_find("ref"), 0, &options, NULL), INF_OK);
    cr_assert_eq(inf_device_open(&device, inf_registry_find(backend), 0, &options, NULL), INF_OK);
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    for (json_t *line; (line = json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL)) != NULL;) {
        if (only == NULL || strcmp(only, text_of(line, "id")) == 0)
            run_line(line, device, ref);
        json_decref(line);
        count++;
    }
    fclose(file);
    inf_device_unref(&device);
    inf_device_unref(&ref);
    // The file has more than 120 cases, so a smaller count means that cases were skipped.
    cr_assert_gt(count, 120u);
}

Test(layers, ref_answers_as_tensorflow_js_does)
{
    run_all(INF_LAYERS_FILE, "ref");
}

Test(layers, ref_answers_as_graph_models_do)
{
    run_all(INF_GRAPHS_FILE, "ref");
}

Test(layers, cpu_answers_as_tensorflow_js_does)
{
    if (inf_registry_find("cpu") == NULL)
        cr_skip("built without the cpu backend");
    run_all(INF_LAYERS_FILE, "cpu");
}

Test(layers, cpu_answers_as_graph_models_do)
{
    if (inf_registry_find("cpu") == NULL)
        cr_skip("built without the cpu backend");
    run_all(INF_GRAPHS_FILE, "cpu");
}

// --- layers that TensorFlow.js lacks or computes wrongly, compared with literals ---

struct literal {
    const char *layers;  // the layers of a Sequential model, as JSON
    const char *weights; // the weight entries of the manifest, as JSON
    float data[24];      // the elements of all weights, one weight after the other
    size_t data_count;
    struct inf_shape input;
    float x[24];
    struct inf_shape output;
    float y[24];
};

static void check_literal(const struct literal *literal, struct inf_device *ref)
{
    char text[2048];
    struct inf_pass_options options = {.evaluator = inf_registry_evaluator()};
    struct inf_model *model = NULL;
    struct inf_executable *executable = NULL;
    float y[24 + INF_BLOB_SLACK_BYTES / 4] = {0};
    float x[24 + INF_BLOB_SLACK_BYTES / 4] = {0};
    memcpy(x, literal->x, sizeof literal->x);
    snprintf(
        text, sizeof text,
        "{'modelTopology':{'class_name':'Sequential','config':[%s]},'weightsManifest':[{'paths':"
        "['w.bin'],'weights':[%s]}]}",
        literal->layers, literal->weights);
    inf_tfjs_case_write("w.bin", literal->data, literal->data_count * sizeof(float));
    cr_assert_eq(inf_tfjs_case_import_text(text), INF_OK, "%s", inf_tfjs_case.err.text);
    struct inf_graph *graph = inf_tfjs_case.graph;
    inf_tfjs_case.graph = NULL;
    cr_assert_eq(inf_model_create(&model, &graph, &ref, 1, &options, NULL), INF_OK);
    cr_assert_eq(inf_model_acquire(model, ref, &literal->input, &executable, &inf_tfjs_case.err),
                 INF_OK, "%s", inf_tfjs_case.err.text);
    const struct inf_graph *run = inf_executable_graph(executable);
    const struct inf_value *value = &run->values[run->outputs[0].value];
    cr_assert(inf_shape_equal(&value->shape, &literal->output), "%s", literal->layers);
    const void *inputs[] = {x};
    void *outputs[] = {y};
    struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    cr_assert_eq(inf_executable_run(executable, &execution, NULL), INF_OK);
    for (size_t i = 0; i < inf_shape_elements(&literal->output); i++)
        cr_assert_float_eq(y[i], literal->y[i], 1e-6, "%s: [%zu] %.8g, wanted %.8g",
                           literal->layers, i, (double)y[i], (double)literal->y[i]);
    inf_model_release(model, &executable);
    inf_model_unref(&model);
}

#define W(name, shape) "{'name':'" name "','shape':" shape ",'dtype':'float32'}"

static const struct literal literals[] = {
    // Dilation 2: y[t] = x[t] + 10 x[t-2] + 100 x[t-4]. Elements before the first step are 0.
    {.layers = "{'class_name':'Conv1D','config':{'name':'c','filters':1,'kernel_size':3,'padding':"
               "'causal','dilation_rate':2,'use_bias':false,'batch_input_shape':[null,5,1]}}",
     .weights = W("c/kernel", "[3,1,1]"),
     .data = {100, 10, 1},
     .data_count = 3,
     .input = {3, {1, 5, 1}},
     .x = {1, 2, 3, 4, 5},
     .output = {3, {1, 5, 1}},
     .y = {1, 2, 13, 24, 135}},
    // Normalisation along axis 1 without epsilon: (x - mean) / sqrt(variance + 0).
    {.layers = "{'class_name':'BatchNormalization','config':{'name':'b','axis':[1],'epsilon':0,"
               "'scale':false,'batch_input_shape':[null,2,3]}}",
     .weights = W("b/beta", "[2]") "," W("b/moving_mean", "[2]") "," W("b/moving_variance", "[2]"),
     .data = {100, 200, 1, 2, 4, 16},
     .data_count = 6,
     .input = {3, {1, 2, 3}},
     .x = {1, 3, 5, 2, 6, 10},
     .output = {3, {1, 2, 3}},
     .y = {100, 101, 102, 200, 201, 202}},
    // The output is the middle 3 x 4 pixels of the input.
    {.layers = "{'class_name':'CenterCrop','config':{'name':'c','height':1,'width':2,"
               "'batch_input_shape':[null,3,4,1]}}",
     .weights = "",
     .input = {4, {1, 3, 4, 1}},
     .x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
     .output = {4, {1, 1, 2, 1}},
     .y = {5, 6}},
    // Resizing uses half-pixel centres, so an upscaled pixel is 1/4 of its neighbour and 3/4 of its
    // source pixel.
    {.layers = "{'class_name':'Resizing','config':{'name':'r','height':1,'width':4,"
               "'batch_input_shape':[null,1,2,1]}}",
     .weights = "",
     .input = {4, {1, 1, 2, 1}},
     .x = {0, 4},
     .output = {4, {1, 1, 4, 1}},
     .y = {0, 1, 3, 4}},
    {.layers =
         "{'class_name':'ZeroPadding1D','config':{'name':'z','padding':[1,2],'batch_input_shape':"
         "[null,2,1]}},{'class_name':'Cropping1D','config':{'name':'c','cropping':[0,1]}},"
         "{'class_name':'UpSampling1D','config':{'name':'u','size':2}}",
     .weights = "",
     .input = {3, {1, 2, 1}},
     .x = {3, 4},
     .output = {3, {1, 8, 1}},
     .y = {0, 0, 3, 3, 4, 4, 0, 0}},
    // With threshold 1, slope 0.5 and maximum 5: min(x, 5) for x >= 1, and (x - 1) / 2 below 1.
    {.layers = "{'class_name':'ReLU','config':{'name':'r','max_value':5,'negative_slope':0.5,"
               "'threshold':1,'batch_input_shape':[null,4]}}",
     .weights = "",
     .input = {2, {1, 4}},
     .x = {-3, 0.5f, 2, 7},
     .output = {2, {1, 4}},
     .y = {-2, -0.25f, 2, 5}},
    // With stride 2, each input element adds the kernel, scaled by the element, to the output.
    {.layers = "{'class_name':'Conv1DTranspose','config':{'name':'c','filters':1,'kernel_size':3,"
               "'strides':2,'use_bias':false,'batch_input_shape':[null,2,1]}}",
     .weights = W("c/kernel", "[3,1,1]"),
     .data = {1, 10, 100},
     .data_count = 3,
     .input = {3, {1, 2, 1}},
     .x = {1, 2},
     .output = {3, {1, 5, 1}},
     .y = {1, 10, 102, 20, 200}},
    // The input has two channels, and each channel has one filter.
    {.layers =
         "{'class_name':'DepthwiseConv1D','config':{'name':'d','kernel_size':2,'use_bias':false,"
         "'batch_input_shape':[null,3,2]}}",
     .weights = W("d/depthwise_kernel", "[2,2,1]"),
     .data = {1, 100, 10, 1000},
     .data_count = 4,
     .input = {3, {1, 3, 2}},
     .x = {1, 2, 3, 4, 5, 6},
     .output = {3, {1, 2, 2}},
     .y = {31, 4200, 53, 6400}},
    // The expected results are two time steps, computed with the formulas of Keras's GRU with
    // reset_after.
    {.layers = "{'class_name':'GRU','config':{'name':'g','units':1,'reset_after':true,"
               "'recurrent_activation':'sigmoid','return_sequences':true,'batch_input_shape':"
               "[null,2,1]}}",
     .weights =
         W("g/kernel", "[1,3]") "," W("g/recurrent_kernel", "[1,3]") "," W("g/bias", "[2,3]"),
     .data = {0.5f, -0.25f, 1, 0.3f, 0.6f, -0.8f, 0.1f, 0.2f, 0.3f, -0.1f, 0.4f, 0.5f},
     .data_count = 12,
     .input = {3, {1, 2, 1}},
     .x = {1, -2},
     .output = {3, {1, 2, 1}},
     .y = {0.34758475f, -0.54511399f}},
};

Test(layers, what_tensorflow_js_lacks_is_as_in_keras)
{
    struct inf_device *ref = NULL;
    struct inf_device_options options = {.slots = 1};
    cr_assert_eq(inf_device_open(&ref, inf_registry_find("ref"), 0, &options, NULL), INF_OK);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(literals); i++)
        check_literal(&literals[i], ref);
    inf_device_unref(&ref);
}
