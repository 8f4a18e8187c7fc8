// SPDX-License-Identifier: Apache-2.0
// inferctl models: what is served, or one model's inputs and outputs.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/command.h"
#include "client/inferctl/table.h"
#include "client/inferctl/tensor_text.h"

static void print_rows(const inferd_model_row *rows, size_t count, enum output_format format)
{
    static const char *const columns[] = {"name",   "version",      "state",
                                          "device", "memory_bytes", "requests",
                                          "macs",   "platform",     "reason"};
    char bytes[16];
    char macs[32];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        table_text(table, rows[i].name);
        table_text(table, rows[i].version);
        table_text(table, rows[i].state);
        table_text(table, rows[i].device);
        table_number(table, (double)rows[i].memory_bytes, table_bytes(rows[i].memory_bytes, bytes));
        table_number(table, (double)rows[i].requests, NULL);
        snprintf(macs, sizeof macs, "%.1f M", (double)rows[i].macs / 1e6);
        table_number(table, (double)rows[i].macs, macs);
        table_text(table, rows[i].platform);
        table_text(table, rows[i].reason);
    }
    table_print(table, format, false);
}

static int list(const struct context *context, inferd_client *client)
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

static void add_tensors(struct table *table, const char *direction, const inferd_tensor *tensors,
                        size_t count)
{
    char shape[TENSOR_SHAPE_TEXT];
    for (size_t i = 0; i < count; i++) {
        table_text(table, direction);
        table_text(table, tensors[i].name);
        table_text(table, inferd_dtype_name(tensors[i].dtype));
        table_text(table, tensor_shape_text(&tensors[i], shape));
    }
}

static int describe(const struct context *context, inferd_client *client, const char *name)
{
    static const char *const columns[] = {"direction", "name", "dtype", "shape"};
    struct inferd_error err;
    inferd_model_info *info;
    if (inferd_model_describe(client, name, NULL, &info, &err) != 0)
        return command_failed(&err);
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    add_tensors(table, "input", info->inputs, info->input_count);
    add_tensors(table, "output", info->outputs, info->output_count);
    table_print(table, context->format, false);
    inferd_model_info_free(info);
    return EXIT_OK;
}

static int run(const struct context *context, const struct command *command, int argc, char **argv)
{
    static const struct option longs[] = {{"help", no_argument, NULL, 'h'}, {0}};
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;)
        return command_usage(command, c == 'h');
    if (argc - optind > 1)
        return command_usage(command, false);
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    code = optind == argc ? list(context, client) : describe(context, client, argv[optind]);
    inferd_close(client);
    return code;
}

const struct command command_models = {
    .name = "models",
    .arguments = "[MODEL]",
    .summary = "list the models, or what MODEL takes and gives",
    .options = "",
    .run = run,
};
