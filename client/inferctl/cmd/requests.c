// SPDX-License-Identifier: Apache-2.0
// inferctl requests: lists the requests in flight. inferctl cancel: cancels one request. The first
// column of the list names each request CLIENT:STREAM, and inferctl cancel takes this name.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/table.h"

static void print_requests(const inferd_request_row *rows, size_t count, enum output_format format)
{
    static const char *const columns[] = {"request", "uid",        "pid",    "method",
                                          "model",   "version",    "device", "phase",
                                          "age_ns",  "data_bytes", "rows",   "id"};
    char text[48];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%" PRIu64 ":%" PRIu64, rows[i].client_id, rows[i].stream_id);
        table_text(table, text);
        table_whole(table, rows[i].uid, NULL);
        table_whole(table, rows[i].pid, NULL);
        table_text(table, rows[i].method);
        table_text(table, rows[i].model);
        table_text(table, rows[i].version);
        table_text(table, rows[i].device);
        table_text(table, rows[i].phase);
        table_whole(table, (int64_t)rows[i].age_ns, table_duration(rows[i].age_ns, text));
        table_whole(table, (int64_t)rows[i].data_bytes, table_bytes(rows[i].data_bytes, text));
        table_whole(table, rows[i].rows, NULL);
        table_text(table, rows[i].id);
    }
    table_print(table, format, false);
}

static int run_requests(const struct context *context, const struct arguments *arguments)
{
    inferd_client *client;
    inferd_request_row *rows;
    size_t count, left_out = 0;
    struct inferd_error err;
    int code = command_connect(context, arguments->option_count > 0, &client);
    if (code != EXIT_OK)
        return code;
    if (inferd_requests(client, &rows, &count, &left_out, &err) != 0)
        code = command_failed(&err);
    else
        print_requests(rows, count, context->format);
    if (left_out > 0)
        command_say(EXIT_OK, "%zu more requests are in flight", left_out);
    free(rows);
    inferd_close(client);
    return code;
}

static bool parse_number(const char **text, char end, uint64_t *number)
{
    char *rest;
    errno = 0;
    *number = strtoull(*text, &rest, 10);
    bool ok = **text >= '0' && **text <= '9' && errno == 0 && *rest == end;
    *text = ok ? rest + (end != '\0') : *text;
    return ok;
}

static int run_cancel(const struct context *context, const struct arguments *arguments)
{
    const char *at = arguments->names[0];
    uint64_t client_id, stream_id;
    struct inferd_error err;
    inferd_client *client;
    if (!parse_number(&at, ':', &client_id) || !parse_number(&at, '\0', &stream_id))
        return command_say(EXIT_USAGE, "'%s' is no request, wanted CLIENT:STREAM such as 7:42",
                           arguments->names[0]);
    int code = command_connect(context, arguments->option_count > 0, &client);
    if (code != EXIT_OK)
        return code;
    if (inferd_cancel_request(client, client_id, stream_id, &err) != 0)
        code = command_failed(&err);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"all", no_argument, NULL, 'A'}, {0}};

const struct command command_requests = {
    .name = "requests",
    .names = "",
    .summary = "list the requests in flight",
    .help = "  -A, --all              those of all users; needs the admin socket\n",
    .short_options = "A",
    .long_options = long_options,
    .run = run_requests,
};

const struct command command_cancel = {
    .name = "cancel",
    .names = "REQUEST",
    .names_least = 1,
    .names_most = 1,
    .summary = "cancel a request that inferctl requests lists",
    .help = "  -A, --all              a request of any user; needs the admin socket\n",
    .short_options = "A",
    .long_options = long_options,
    .run = run_cancel,
};
