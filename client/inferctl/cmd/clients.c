// SPDX-License-Identifier: Apache-2.0
// inferctl clients: lists the connections to the daemon. inferctl disconnect: closes one
// connection.
#include <stdio.h>
#include <stdlib.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/table.h"

static void print_clients(const inferd_client_row *rows, size_t count, enum output_format format)
{
    static const char *const columns[] = {
        "client",    "uid",        "pid",          "name",    "role",         "age_ns",  "requests",
        "in_flight", "data_bytes", "unread_bytes", "regions", "region_bytes", "sessions"};
    char text[24];
    char bytes[16];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        table_whole(table, (int64_t)rows[i].client_id, NULL);
        table_whole(table, rows[i].uid, NULL);
        table_whole(table, rows[i].pid, NULL);
        table_text(table, rows[i].name);
        table_text(table, rows[i].role);
        table_whole(table, (int64_t)rows[i].age_ns, table_duration(rows[i].age_ns, text));
        table_whole(table, (int64_t)rows[i].requests, NULL);
        table_whole(table, rows[i].in_flight, NULL);
        table_whole(table, (int64_t)rows[i].data_bytes, table_bytes(rows[i].data_bytes, bytes));
        table_whole(table, (int64_t)rows[i].unread_bytes, table_bytes(rows[i].unread_bytes, bytes));
        table_whole(table, rows[i].regions, NULL);
        table_whole(table, (int64_t)rows[i].region_bytes, table_bytes(rows[i].region_bytes, bytes));
        table_whole(table, rows[i].sessions, NULL);
    }
    table_print(table, format, false);
}

static int run_clients(const struct context *context, const struct arguments *arguments)
{
    inferd_client *client;
    inferd_client_row *rows;
    size_t count, left_out = 0;
    struct inferd_error err;
    int code = command_connect(context, arguments->option_count > 0, &client);
    if (code != EXIT_OK)
        return code;
    if (inferd_clients(client, &rows, &count, &left_out, &err) != 0)
        code = command_failed(&err);
    else
        print_clients(rows, count, context->format);
    if (left_out > 0)
        command_say(EXIT_OK, "%zu more clients are connected", left_out);
    free(rows);
    inferd_close(client);
    return code;
}

static int run_disconnect(const struct context *context, const struct arguments *arguments)
{
    unsigned long client_id;
    struct inferd_error err;
    inferd_client *client;
    if (!command_number("CLIENT", arguments->names[0], 1, (unsigned long)INT64_MAX, &client_id))
        return EXIT_USAGE;
    int code = command_connect(context, arguments->option_count > 0, &client);
    if (code != EXIT_OK)
        return code;
    if (inferd_disconnect_client(client, client_id, &err) != 0)
        code = command_failed(&err);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"all", no_argument, NULL, 'A'}, {0}};

const struct command command_clients = {
    .name = "clients",
    .names = "",
    .summary = "list the connections to the daemon",
    .help = "  -A, --all              those of all users; needs the admin socket\n",
    .short_options = "A",
    .long_options = long_options,
    .run = run_clients,
};

const struct command command_disconnect = {
    .name = "disconnect",
    .names = "CLIENT",
    .names_least = 1,
    .names_most = 1,
    .summary = "close a connection that inferctl clients lists",
    .help = "  -A, --all              a client of any user; needs the admin socket\n",
    .short_options = "A",
    .long_options = long_options,
    .run = run_disconnect,
};
