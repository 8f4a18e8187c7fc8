// SPDX-License-Identifier: Apache-2.0
// inferctl status: prints the state of the daemon.
#include <stdio.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/cli/memory_use.h"
#include "client/inferctl/text/table.h"

static void print_status(const inferd_server_status *status, const inferd_checks *checks,
                         const struct memory_use *memory, enum output_format format)
{
    static const char *const columns[] = {"version",           "state",
                                          "uptime_s",          "connections",
                                          "connections_total", "in_flight",
                                          "requests_accepted", "requests_ok",
                                          "requests_failed",   "models_ready",
                                          "regions",           "region_bytes",
                                          "resident_bytes",    "log_lines_dropped",
                                          "answers_checked",   "answers_drifted",
                                          "answers_unchecked", "models_demoted",
                                          "memory_used_bytes", "memory_max_bytes"};
    char text[24];
    char bytes[16];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    table_text(table, status->version);
    table_text(table, status->state);
    table_real(table, (double)status->uptime_ns / 1e9, table_duration(status->uptime_ns, text));
    table_whole(table, status->connections, NULL);
    table_whole(table, (int64_t)status->connections_total, NULL);
    table_whole(table, status->requests_in_flight, NULL);
    table_whole(table, (int64_t)status->requests_accepted, NULL);
    table_whole(table, (int64_t)status->requests_ok, NULL);
    table_whole(table, (int64_t)status->requests_failed, NULL);
    table_whole(table, status->models_ready, NULL);
    table_whole(table, status->regions, NULL);
    table_whole(table, (int64_t)status->region_bytes, table_bytes(status->region_bytes, bytes));
    table_whole(table, (int64_t)status->resident_bytes, table_bytes(status->resident_bytes, bytes));
    table_whole(table, (int64_t)status->log_lines_dropped, NULL);
    table_whole(table, (int64_t)checks->answers_checked, NULL);
    table_whole(table, (int64_t)checks->answers_drifted, NULL);
    table_whole(table, (int64_t)checks->answers_unchecked, NULL);
    table_whole(table, (int64_t)checks->models_demoted, NULL);
    table_whole(table, (int64_t)memory->used_bytes, table_bytes(memory->used_bytes, bytes));
    table_whole(table, (int64_t)memory->limit_bytes,
                memory->limit_bytes > 0 ? table_bytes(memory->limit_bytes, bytes) : "none");
    table_print(table, format, true);
}

static int run_status(const struct context *context, const struct arguments *arguments)
{
    (void)arguments;
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    inferd_server_status status;
    inferd_checks checks;
    if (inferd_status(client, &status, &err) != 0 ||
        inferd_status_checks(client, &checks, &err) != 0)
        code = command_failed(&err);
    if (code == EXIT_OK) {
        const struct memory_use memory = memory_use_read(client);
        print_status(&status, &checks, &memory, context->format);
    }
    inferd_close(client);
    return code;
}

const struct command command_status = {
    .name = "status",
    .names = "",
    .summary = "show the state and counters of the daemon",
    .help = "",
    .run = run_status,
};
