// SPDX-License-Identifier: Apache-2.0
// inferctl limits: prints the limits of the daemon, or changes them while it runs.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/table.h"

// Parses decimal digits with an optional suffix K, M or G (powers of 1024), as in inferd.conf.
static bool parse_value(const char *text, uint64_t *value)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || errno != 0)
        return false;
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    unsigned shift = unit != NULL ? (unsigned)(unit - units + 1) * 10 : 0;
    if (end[unit != NULL] != '\0' || *value > UINT64_MAX >> shift)
        return false;
    *value <<= shift;
    return true;
}

static bool parse_limit(const char *argument, inferd_limit *limit)
{
    const char *equals = strchr(argument, '=');
    size_t length = equals != NULL ? (size_t)(equals - argument) : 0;
    if (length == 0 || length >= sizeof limit->name || !parse_value(equals + 1, &limit->value)) {
        command_say(EXIT_USAGE, "'%s': wanted NAME=NUMBER, which may end in K, M or G", argument);
        return false;
    }
    memcpy(limit->name, argument, length);
    limit->name[length] = '\0';
    return true;
}

static void print_limits(const inferd_limit *rows, size_t count, enum output_format format)
{
    static const char *const columns[] = {"limit", "value", "least", "most"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        const uint64_t numbers[] = {rows[i].value, rows[i].min, rows[i].max};
        bool bytes = strstr(rows[i].name, "bytes") != NULL;
        table_text(table, rows[i].name);
        for (size_t k = 0; k < 3; k++) {
            char text[16];
            table_whole(table, (int64_t)numbers[k], bytes ? table_bytes(numbers[k], text) : NULL);
        }
    }
    table_print(table, format, false);
}

static int run_limits(const struct context *context, const struct arguments *arguments)
{
    inferd_limit set[COMMAND_NAMES_MAX];
    size_t set_count = 0;
    for (; set_count < COMMAND_NAMES_MAX && arguments->names[set_count] != NULL; set_count++)
        if (!parse_limit(arguments->names[set_count], &set[set_count]))
            return EXIT_USAGE;
    inferd_client *client;
    int code = command_connect(context, set_count > 0, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    inferd_limit *rows;
    size_t count;
    if (inferd_limits(client, set, set_count, &rows, &count, &err) != INFERD_OK) {
        code = command_failed(&err);
    } else {
        print_limits(rows, count, context->format);
        free(rows);
    }
    inferd_close(client);
    return code;
}

const struct command command_limits = {
    .name = "limits",
    .names = "[NAME=VALUE...]",
    .names_most = COMMAND_NAMES_MAX,
    .summary = "show what the daemon allows, or change it while it runs",
    .help =
        "  NAME=VALUE   sets a limit until the daemon ends; VALUE may end in K, M or G. Needs the\n"
        "               admin socket\n",
    .run = run_limits,
};
