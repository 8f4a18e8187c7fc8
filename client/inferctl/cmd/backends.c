// SPDX-License-Identifier: Apache-2.0
// inferctl backends: lists the built-in backends, and for unused ones the reason why they are not
// used.
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/fact.h"
#include "client/inferctl/text/table.h"

#define PREFIX "backend."

static void print_backends(const inferd_environment *environment, enum output_format format)
{
    static const char *const columns[] = {"name", "priority", "devices", "left_out"};
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < environment->fact_count; i++) {
        const char *name = environment->facts[i].name + strlen(PREFIX);
        const char *end = strrchr(environment->facts[i].name, '.');
        char text[sizeof environment->facts[i].name];
        if (strncmp(environment->facts[i].name, PREFIX, strlen(PREFIX)) != 0 ||
            strcmp(end, ".priority") != 0)
            continue;
        size_t length = (size_t)(end - name);
        memcpy(text, name, length);
        text[length] = '\0';
        table_text(table, text);
        table_whole(table, strtol(environment->facts[i].value, NULL, 10), NULL);
        table_whole(table, strtol(fact_find(environment, "backend", text, "devices"), NULL, 10),
                    NULL);
        table_text(table, fact_find(environment, "backend", text, "left_out"));
    }
    table_print(table, format, false);
}

static int run_backends(const struct context *context, const struct arguments *arguments)
{
    (void)arguments;
    return fact_show(context, print_backends);
}

const struct command command_backends = {
    .name = "backends",
    .names = "",
    .summary =
        "list the backends that are built in, how many devices each has, and why one has none",
    .help = "",
    .run = run_backends,
};
