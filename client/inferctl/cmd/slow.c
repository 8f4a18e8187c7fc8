// SPDX-License-Identifier: Apache-2.0
// inferctl slow: lists slow inferences with the time of each phase and the number of requests that
// they waited for. The daemon sends the list as JSON.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/table.h"

static uint64_t number_of(const json_t *row, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(row, key));
}

static const char *text_of(const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text != NULL ? text : "";
}

// Returns a text about the requests before this one on the device, such as "behind 3, the last of
// uid 1000", or "-" if there were none.
static const char *wait_text(const json_t *row, char text[64])
{
    uint64_t ahead = number_of(row, "ahead");
    if (ahead == 0)
        snprintf(text, 64, "-");
    else
        snprintf(text, 64, "behind %" PRIu64 "%s of uid %" PRIu64, ahead,
                 ahead > 1 ? ", the last" : "", number_of(row, "behind_uid"));
    return text;
}

static void print_rows(const json_t *rows)
{
    static const char *const columns[] = {"ago",   "model", "device", "uid",    "total",
                                          "queue", "input", "run",    "output", "rows",
                                          "batch", "bytes", "id",     "waited"};
    static const char *const phases[] = {"duration_ns", "queue_ns", "input_ns", "compute_ns",
                                         "output_ns"};
    char text[64];
    size_t i;
    const json_t *row;
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    json_array_foreach(rows, i, row)
    {
        table_whole(table, (int64_t)number_of(row, "age_ns"),
                    table_duration(number_of(row, "age_ns"), text));
        table_text(table, text_of(row, "model"));
        table_text(table, text_of(row, "device"));
        table_whole(table, (int64_t)number_of(row, "uid"), NULL);
        for (size_t k = 0; k < sizeof phases / sizeof phases[0]; k++) {
            uint64_t ns = number_of(row, phases[k]);
            snprintf(text, sizeof text, "%.1f ms", (double)ns / 1e6);
            table_whole(table, (int64_t)ns, text);
        }
        table_whole(table, (int64_t)number_of(row, "rows"), NULL);
        table_whole(table, (int64_t)number_of(row, "batch_rows"), NULL);
        uint64_t bytes = number_of(row, "input_bytes") + number_of(row, "output_bytes");
        table_whole(table, (int64_t)bytes, table_bytes(bytes, text));
        table_text(table, text_of(row, "id"));
        table_text(table, wait_text(row, text));
    }
    table_print(table, OUTPUT_TABLE, false);
}

static int run_slow(const struct context *context, const struct arguments *arguments)
{
    inferd_client *client;
    struct inferd_error err;
    char *text = NULL;
    size_t size = 0;
    int code = command_connect(context, arguments->option_count > 0, &client);
    if (code != EXIT_OK)
        return code;
    if (inferd_report(client, "slow", &text, &size, &err) != 0)
        code = command_failed(&err);
    json_t *rows = code == EXIT_OK ? json_loadb(text, size, 0, NULL) : NULL;
    if (code == EXIT_OK && !json_is_array(rows))
        code = command_say(EXIT_FAILED, "the daemon's report is no list");
    else if (code == EXIT_OK && context->format == OUTPUT_JSON)
        json_value_print(json_incref(rows));
    else if (code == EXIT_OK)
        print_rows(rows);
    json_decref(rows);
    free(text);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"all", no_argument, NULL, 'A'}, {0}};

const struct command command_slow = {
    .name = "slow",
    .names = "",
    .summary = "list slow inferences, and what they waited for",
    .help = "  -A, --all              those of all users; needs the admin socket\n",
    .short_options = "A",
    .long_options = long_options,
    .run = run_slow,
};
