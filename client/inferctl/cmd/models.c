// SPDX-License-Identifier: Apache-2.0
// inferctl models: lists the models, or the inputs and outputs of one model.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/description.h"
#include "client/inferctl/tensor/text.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/table.h"

static void print_rows(const inferd_model_row *rows, size_t count, enum output_format format)
{
    static const char *const columns[] = {"name",     "version",      "labels",   "state",
                                          "device",   "memory_bytes", "requests", "macs",
                                          "platform", "reason"};
    char bytes[16];
    char macs[32];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        table_text(table, rows[i].name);
        table_text(table, rows[i].version);
        table_text(table, rows[i].labels);
        table_text(table, rows[i].state);
        table_text(table, rows[i].device);
        table_whole(table, (int64_t)rows[i].memory_bytes, table_bytes(rows[i].memory_bytes, bytes));
        table_whole(table, (int64_t)rows[i].requests, NULL);
        // The number is 0 if the model has no multiply-adds, or if the number depends on the shapes
        // of the request.
        if (rows[i].macs == 0)
            snprintf(macs, sizeof macs, "-");
        else
            snprintf(macs, sizeof macs, "%.1f M", (double)rows[i].macs / 1e6);
        table_whole(table, (int64_t)rows[i].macs, macs);
        table_text(table, rows[i].platform);
        table_text(table, rows[i].reason);
    }
    table_print(table, format, false);
}

static int list_models(const struct context *context, inferd_client *client)
{
    struct inferd_error err;
    inferd_model_row *rows;
    size_t count;
    if (inferd_models(client, &rows, &count, &err) != 0)
        return command_failed(&err);
    if (count == 0 && context->format == OUTPUT_TABLE)
        puts("no models; inferctl load NAME [FILE] loads one");
    else
        print_rows(rows, count, context->format);
    free(rows);
    return EXIT_OK;
}

// Prints the tensors as JSON, each with what the model says about it.
static void print_json(struct table *table, const struct description *description)
{
    json_t *rows = table_json(table);
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        bool is_input = strcmp(json_string_value(json_object_get(row, "direction")), "input") == 0;
        description_extend(description, is_input ? "inputs" : "outputs",
                           json_string_value(json_object_get(row, "name")), row);
    }
    json_value_print(rows);
}

static void add_tensors(struct table *table, const char *direction, const inferd_tensor *tensors,
                        size_t count)
{
    char shape[TENSOR_SHAPE_TEXT];
    for (size_t i = 0; i < count; i++) {
        table_text(table, direction);
        table_text(table, tensors[i].name);
        table_text(table, inferd_dtype_name(tensors[i].dtype));
        table_value(table, tensor_shape_json(&tensors[i]), tensor_shape_text(&tensors[i], shape));
    }
}

static int describe_model(const struct context *context, inferd_client *client, const char *name,
                          const char *version)
{
    static const char *const columns[] = {"direction", "name", "dtype", "shape"};
    inferd_model_info *info;
    int code = command_describe(client, name, version, &info);
    if (code != EXIT_OK)
        return code;
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    add_tensors(table, "input", info->inputs, info->input_count);
    add_tensors(table, "output", info->outputs, info->output_count);
    struct description description;
    description_load(&description, client, name, version);
    if (context->format == OUTPUT_JSON) {
        print_json(table, &description);
    } else {
        table_print(table, OUTPUT_TABLE, false);
        description_print(&description);
    }
    description_fini(&description);
    inferd_model_info_free(info);
    return EXIT_OK;
}

static int run_models(const struct context *context, const struct arguments *arguments)
{
    const char *model = arguments->names[0];
    const char *version = NULL;
    for (size_t i = 0; i < arguments->option_count; i++)
        version = arguments->options[i].value;
    if (version != NULL && model == NULL)
        return command_say(EXIT_USAGE, "--version goes with a MODEL");
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    code = model == NULL ? list_models(context, client)
                         : describe_model(context, client, model, version);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"version", required_argument, NULL, 'v'}, {0}};

const struct command command_models = {
    .name = "models",
    .names = "[MODEL]",
    .names_most = 1,
    .summary = "list the models, or what MODEL takes, gives and says about itself",
    .help = "  -v, --version V        this version of MODEL (default: the newest)\n",
    .short_options = "v:",
    .long_options = long_options,
    .run = run_models,
};
