// SPDX-License-Identifier: Apache-2.0
// inferctl devices: lists the devices in the order of preference.
#include <stdio.h>
#include <stdlib.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/fact.h"
#include "client/inferctl/text/table.h"

static void print_devices(const inferd_device_row *rows, size_t count,
                          const inferd_environment *environment, enum output_format format)
{
    static const char *const columns[] = {
        "name",        "backend",  "kind",   "priority",     "slots",  "threads",    "queue",
        "queue_limit", "requests", "busy_s", "memory_bytes", "health", "precisions", "description"};
    char text[24];
    char bytes[16];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        table_text(table, rows[i].name);
        table_text(table, rows[i].backend);
        table_text(table, rows[i].kind);
        table_whole(table, rows[i].priority, NULL);
        table_whole(table, rows[i].slots, NULL);
        table_whole(table, rows[i].threads, NULL);
        table_whole(table, rows[i].queue_depth, NULL);
        table_whole(table, rows[i].queue_limit, NULL);
        table_whole(table, (int64_t)rows[i].requests, NULL);
        table_real(table, (double)rows[i].busy_ns / 1e9, table_duration(rows[i].busy_ns, text));
        table_whole(table, (int64_t)rows[i].memory_bytes, table_bytes(rows[i].memory_bytes, bytes));
        table_text(table, rows[i].health);
        table_text(table, fact_find(environment, "device", rows[i].name, "precisions"));
        table_text(table, rows[i].description);
    }
    table_print(table, format, false);
}

static int run_devices(const struct context *context, const struct arguments *arguments)
{
    (void)arguments;
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    inferd_device_row *rows = NULL;
    inferd_environment *environment = NULL;
    size_t count;
    if (inferd_devices(client, &rows, &count, &err) != 0 ||
        inferd_environment_read(client, &environment, &err) != 0)
        code = command_failed(&err);
    else
        print_devices(rows, count, environment, context->format);
    inferd_environment_free(environment);
    free(rows);
    inferd_close(client);
    return code;
}

const struct command command_devices = {
    .name = "devices",
    .names = "",
    .summary = "list the devices that compute, best first",
    .help = "",
    .run = run_devices,
};
