// SPDX-License-Identifier: Apache-2.0
// inferctl memory: prints the memory of each device.
#include <stdio.h>
#include <stdlib.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/table.h"

static void add_bytes(struct table *table, uint64_t number)
{
    char text[16];
    table_whole(table, (int64_t)number, table_bytes(number, text));
}

static void print_memory(const inferd_memory_row *rows, size_t count, enum output_format format)
{
    static const char *const columns[] = {
        "device",       "num_tensors",  "num_data_buffers", "num_bytes",  "constant_bytes",
        "weight_bytes", "buffer_bytes", "budget_bytes",     "peak_bytes",
    };
    char text[16];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        table_text(table, rows[i].device);
        table_whole(table, rows[i].num_tensors, NULL);
        table_whole(table, rows[i].num_data_buffers, NULL);
        add_bytes(table, rows[i].num_bytes);
        add_bytes(table, rows[i].constant_bytes);
        add_bytes(table, rows[i].weight_bytes);
        add_bytes(table, rows[i].buffer_bytes);
        table_whole(table, (int64_t)rows[i].budget_bytes,
                    rows[i].budget_bytes > 0 ? table_bytes(rows[i].budget_bytes, text) : "host");
        add_bytes(table, rows[i].peak_bytes);
    }
    table_print(table, format, false);
}

static int run_memory(const struct context *context, const struct arguments *arguments)
{
    (void)arguments;
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    inferd_memory_row *rows;
    size_t count;
    if (inferd_memory_info(client, &rows, &count, NULL, &err) != 0) {
        code = command_failed(&err);
    } else {
        print_memory(rows, count, context->format);
        free(rows);
    }
    inferd_close(client);
    return code;
}

const struct command command_memory = {
    .name = "memory",
    .names = "",
    .summary = "show the memory that each device uses",
    .help = "",
    .run = run_memory,
};
