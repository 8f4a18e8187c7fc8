// SPDX-License-Identifier: Apache-2.0
// inferctl reload: has the daemon read its configuration and its repository again.
#include <stdio.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/table.h"

static struct table *make_table(const inferd_reload_report *report)
{
    static const char *const columns[] = {"model", "outcome", "reason"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < report->count; i++) {
        table_text(table, report->rows[i].model);
        table_text(table, report->rows[i].outcome);
        table_text(table, report->rows[i].reason);
    }
    return table;
}

static void print_table(const inferd_reload_report *report)
{
    table_print(make_table(report), OUTPUT_TABLE, false);
    if (report->left_out > 0)
        printf("and %zu more models\n", report->left_out);
    if (report->changed_settings[0] != '\0')
        printf("settings changed: %s\n", report->changed_settings);
    if (report->restart_settings[0] != '\0')
        printf("settings that need a restart: %s\n", report->restart_settings);
}

static void print_json(const inferd_reload_report *report)
{
    json_t *answer = json_value_must(json_object());
    json_object_set_new(answer, "models", table_json(make_table(report)));
    json_object_set_new(answer, "left_out", json_value_whole((int64_t)report->left_out));
    json_object_set_new(answer, "changed_settings", json_value_text(report->changed_settings));
    json_object_set_new(answer, "restart_settings", json_value_text(report->restart_settings));
    json_object_set_new(answer, "config_error", json_value_text(report->config_error));
    json_value_print(answer);
}

// Prints the report. Returns an exit code: a refused model or a wrong configuration is a failure.
static int print_report(const inferd_reload_report *report, enum output_format format)
{
    size_t refused = 0;
    for (size_t i = 0; i < report->count; i++)
        refused += strcmp(report->rows[i].outcome, "refused") == 0;
    if (format == OUTPUT_TABLE)
        print_table(report);
    else
        print_json(report);
    if (report->config_error[0] != '\0')
        return command_say(EXIT_FAILED, "the configuration was not applied: %s",
                           report->config_error);
    return refused > 0 ? EXIT_FAILED : EXIT_OK;
}

static int run_reload(const struct context *context, const struct arguments *arguments)
{
    (void)arguments;
    inferd_client *client;
    inferd_reload_report *report;
    struct inferd_error err;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    if (inferd_reload(client, &report, &err) != 0)
        code = command_failed(&err);
    else
        code = print_report(report, context->format);
    inferd_reload_report_free(report);
    inferd_close(client);
    return code;
}

const struct command command_reload = {
    .name = "reload",
    .names = "",
    .summary = "read the configuration and the repository again, like SIGHUP",
    .help =
        "Prints what is done with each model: it is loading (it is new, has changed or did not\n"
        "load before), unchanged, removed (from the repository) or refused, with the reason.\n"
        "inferctl wait MODEL waits for a load. Needs the admin socket.\n",
    .run = run_reload,
};
