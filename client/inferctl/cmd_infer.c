// SPDX-License-Identifier: Apache-2.0
// inferctl infer: files in, files and a summary out.
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/inferctl/command.h"
#include "client/inferctl/labels.h"
#include "client/inferctl/npy.h"
#include "client/inferctl/table.h"
#include "client/inferctl/tensor_input.h"
#include "client/inferctl/tensor_text.h"
#include "proto/core/shape.h"

#define TOP_MAX 100

struct options {
    const char *inputs[TENSOR_INPUTS_MAX];
    size_t input_count;
    const char *directory; // NULL: outputs are not written
    const char *device;
    const char *labels;
    unsigned long timeout_ms, top;
    bool json;
    struct picture_options picture;
};

// The output's name as a file name: what is no letter, digit, '.', '-' or '_' becomes '_'.
static void file_name(const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s", name);
    for (char *at = out; *at != '\0'; at++)
        if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_", *at) ==
                NULL ||
            (at == out && *at == '.'))
            *at = '_';
}

static int save_output(const char *directory, const inferd_tensor *tensor)
{
    char name[256];
    char path[PATH_MAX];
    file_name(tensor->name, name, sizeof name);
    if (snprintf(path, sizeof path, "%s/%s.npy", directory, name) >= (int)sizeof path)
        return command_wrong("-o '%s': too long", directory);
    struct inf_shape shape = {.rank = tensor->rank};
    memcpy(shape.dims, tensor->shape, sizeof shape.dims);
    struct inf_error err;
    if (inf_npy_save(path, inf_dtype_parse(inferd_dtype_name(tensor->dtype)), &shape, tensor->data,
                     &err) == INF_OK)
        return EXIT_OK;
    fprintf(stderr, "inferctl: %s\n", err.text);
    return EXIT_FILE;
}

static int save_outputs(const char *directory, const inferd_result *result)
{
    if (mkdir(directory, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "inferctl: -o '%s': %s\n", directory, strerror(errno));
        return EXIT_FILE;
    }
    int code = EXIT_OK;
    for (size_t i = 0; i < inferd_result_output_count(result) && code == EXIT_OK; i++)
        code = save_output(directory, inferd_result_output(result, i));
    return code;
}

static void print_top(const inferd_tensor *tensor, size_t top, const struct labels *labels)
{
    size_t indices[TOP_MAX];
    size_t count = tensor_top(tensor, top, indices);
    printf("  best classes of %s:\n", tensor->name);
    for (size_t i = 0; i < count; i++)
        printf("    %6zu  %.6f  %s\n", indices[i], tensor_element(tensor, indices[i]),
               labels_get(labels, indices[i]));
}

static void print_people(const inferd_result *result, size_t top, const struct labels *labels)
{
    static const char *const columns[] = {"output", "dtype", "shape", "min", "max", "mean", "nan"};
    char shape[TENSOR_SHAPE_TEXT];
    char text[32];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < inferd_result_output_count(result); i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        struct tensor_summary summary = tensor_summarise(tensor);
        const double numbers[] = {summary.min, summary.max, summary.mean};
        table_text(table, tensor->name);
        table_text(table, inferd_dtype_name(tensor->dtype));
        table_text(table, tensor_shape_text(tensor, shape));
        for (size_t n = 0; n < 3; n++) {
            snprintf(text, sizeof text, "%.6g", numbers[n]);
            table_number(table, numbers[n], text);
        }
        table_number(table, (double)summary.nan_count, NULL);
    }
    table_print(table, OUTPUT_TABLE, false);
    for (size_t i = 0; i < inferd_result_output_count(result); i++)
        if (tensor_is_class_vector(inferd_result_output(result, i)) && top > 0)
            print_top(inferd_result_output(result, i), top, labels);
    inferd_timing timing = inferd_result_timing(result);
    printf("version %s on %s (%s): queue %.3f ms, compute %.3f ms, round trip %.3f ms\n",
           inferd_result_model_version(result), inferd_result_device(result),
           inferd_result_precision(result), (double)timing.queue_ns / 1e6,
           (double)timing.compute_ns / 1e6, (double)timing.total_ns / 1e6);
}

static json_t *top_json(const inferd_tensor *tensor, size_t top, const struct labels *labels)
{
    size_t indices[TOP_MAX];
    size_t count = tensor_top(tensor, top, indices);
    json_t *rows = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, json_pack("{s:I, s:f, s:s}", "index", (json_int_t)indices[i],
                                              "score", tensor_element(tensor, indices[i]), "label",
                                              labels_get(labels, indices[i])));
    return rows;
}

static void print_programs(const inferd_result *result, size_t top, const struct labels *labels)
{
    json_t *outputs = json_array();
    for (size_t i = 0; i < inferd_result_output_count(result); i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        struct tensor_summary summary = tensor_summarise(tensor);
        json_t *shape = json_array();
        for (int d = 0; d < tensor->rank; d++)
            json_array_append_new(shape, json_integer(tensor->shape[d]));
        json_t *output = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:I}", "name", tensor->name,
                                   "dtype", inferd_dtype_name(tensor->dtype), "shape", shape, "min",
                                   json_real(summary.min), "max", json_real(summary.max), "mean",
                                   json_real(summary.mean), "nan", (json_int_t)summary.nan_count);
        if (tensor_is_class_vector(tensor) && top > 0)
            json_object_set_new(output, "top", top_json(tensor, top, labels));
        json_array_append_new(outputs, output);
    }
    inferd_timing timing = inferd_result_timing(result);
    json_t *answer = json_pack(
        "{s:o, s:s, s:s, s:s, s:I, s:I, s:I}", "outputs", outputs, "version",
        inferd_result_model_version(result), "device", inferd_result_device(result), "precision",
        inferd_result_precision(result), "queue_ns", (json_int_t)timing.queue_ns, "compute_ns",
        (json_int_t)timing.compute_ns, "total_ns", (json_int_t)timing.total_ns);
    json_dumpf(answer, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(answer);
}

static int show(const struct options *options, const inferd_result *result)
{
    struct labels labels = {0};
    int code = options->labels != NULL ? labels_load(&labels, options->labels) : EXIT_OK;
    if (code == EXIT_OK && options->directory != NULL)
        code = save_outputs(options->directory, result);
    if (code == EXIT_OK && options->json)
        print_programs(result, options->top, &labels);
    else if (code == EXIT_OK)
        print_people(result, options->top, &labels);
    labels_fini(&labels);
    return code;
}

static int infer(inferd_client *client, const char *model, const struct options *options)
{
    struct inferd_error err;
    inferd_model_info *info;
    if (inferd_model_describe(client, model, NULL, &info, &err) != 0)
        return command_failed(&err);
    struct tensor_inputs inputs = {0};
    int code = EXIT_OK;
    for (size_t i = 0; i < options->input_count && code == EXIT_OK; i++)
        code = tensor_inputs_add(&inputs, options->inputs[i], info, &options->picture);
    if (code == EXIT_OK) {
        inferd_request request = {.model = model,
                                  .device = options->device,
                                  .inputs = inputs.tensors,
                                  .input_count = inputs.count,
                                  .timeout_ms = options->timeout_ms};
        inferd_result *result;
        if (inferd_infer(client, &request, &result, &err) != 0) {
            code = command_failed(&err);
        } else {
            code = show(options, result);
            inferd_result_free(result);
        }
    }
    tensor_inputs_fini(&inputs);
    inferd_model_info_free(info);
    return code;
}

// Takes one option; false where it makes no sense.
static bool take_option(struct options *options, int c)
{
    switch (c) {
    case 'i':
        if (options->input_count == TENSOR_INPUTS_MAX)
            return false;
        options->inputs[options->input_count++] = optarg;
        return true;
    case 'o':
        options->directory = optarg;
        return true;
    case 'd':
        options->device = optarg;
        return true;
    case 'l':
        options->labels = optarg;
        return true;
    case 'j':
        options->json = true;
        return true;
    case 'k':
        return command_number("--top", optarg, 0, TOP_MAX, &options->top);
    case 't':
        return command_number("--timeout", optarg, 1, 86400000, &options->timeout_ms);
    case 'r':
        return picture_options_range(&options->picture, optarg);
    case 'b':
        options->picture.bgr = true;
        return true;
    case 'x':
        options->picture.letterbox = true;
        return true;
    default:
        return false;
    }
}

static int run(const struct context *context, const struct command *command, int argc, char **argv)
{
    static const struct option longs[] = {
        {"input", required_argument, NULL, 'i'},  {"output", required_argument, NULL, 'o'},
        {"device", required_argument, NULL, 'd'}, {"labels", required_argument, NULL, 'l'},
        {"top", required_argument, NULL, 'k'},    {"timeout", required_argument, NULL, 't'},
        {"range", required_argument, NULL, 'r'},  {"bgr", no_argument, NULL, 'b'},
        {"letterbox", no_argument, NULL, 'x'},    {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},         {0}};
    struct options options = {
        .top = 5, .picture = {.low = 0, .high = 1}, .json = context->format == OUTPUT_JSON};
    for (int c; (c = getopt_long(argc, argv, "i:o:d:l:k:t:r:h", longs, NULL)) != -1;) {
        if (c == 'h' || c == '?')
            return command_usage(command, c == 'h');
        if (!take_option(&options, c))
            return EXIT_USAGE;
    }
    if (argc - optind != 1)
        return command_usage(command, false);
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    code = infer(client, argv[optind], &options);
    inferd_close(client);
    return code;
}

const struct command command_infer = {
    .name = "infer",
    .arguments = "MODEL -i [NAME=]FILE ...",
    .summary = "run MODEL once on files and show what comes out",
    .options =
        "  -i, --input NAME=FILE  an input from a .npy, JPEG or PNG file; NAME= may be left out\n"
        "                         where the model has one input. Pictures are resized to the\n"
        "                         model's input\n"
        "  -r, --range LOW:HIGH   what black and white become (default 0:1)\n"
        "      --bgr              channels in the order blue, green, red\n"
        "      --letterbox        keep a picture's aspect ratio, with black around it\n"
        "  -o, --output DIR       write each output to DIR/NAME.npy\n"
        "  -d, --device NAME      run on this device\n"
        "  -k, --top N            show the N best classes of a class vector (default 5)\n"
        "  -l, --labels FILE      their names, a line each\n"
        "  -t, --timeout MS       give up after so many milliseconds\n"
        "      --json             the answer as JSON (as -o json before the verb)\n",
    .run = run,
};
