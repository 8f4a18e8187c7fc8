// SPDX-License-Identifier: Apache-2.0
// inferctl metrics: prints the metrics of the daemon, writes them to a file for Prometheus'
// node_exporter, or answers one request of Prometheus on a socket. The file is written under
// another name and then renamed, so that a reader never sees a part of it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/metrics/http.h"
#include "client/inferctl/metrics/native.h"
#include "client/inferctl/metrics/sample_table.h"

// The mode of the file: node_exporter runs as a user of its own.
#define TEXTFILE_MODE 0644

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, text, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        text += written;
        size -= (size_t)written;
    }
    return true;
}

// Replaces the file at `path` by a text.
static int replace_file(const char *path, const char *text, size_t size)
{
    char *temporary;
    // A name that does not end with ".prom", which node_exporter would read.
    if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
        return command_say(EXIT_FAILED, "no memory for the name of a file");
    int fd = mkostemp(temporary, O_CLOEXEC);
    bool made = fd >= 0;
    bool ok = made && write_all(fd, text, size) && fchmod(fd, TEXTFILE_MODE) == 0;
    if (made)
        ok = close(fd) == 0 && ok;
    ok = ok && rename(temporary, path) == 0;
    int code = ok ? EXIT_OK : command_say(EXIT_FILE, "%s: %s", path, strerror(errno));
    if (made && !ok)
        unlink(temporary);
    free(temporary);
    return code;
}

// How long a client of --http may take to send its request, and to take the answer.
#define HTTP_READ_MS  5000
#define HTTP_WRITE_MS 10000

// What to do with the metrics.
struct options {
    const char *format; // as inferd_metrics() wants it; "table" is printed by this program
    const char *path;   // write this file; NULL: print
    bool all, watch, http;
    unsigned long interval_ms;
};

static bool parse_options(const struct context *context, const struct arguments *arguments,
                          struct options *options)
{
    *options = (struct options){.format = context->format == OUTPUT_JSON ? "json" : "prometheus",
                                .interval_ms = 2000};
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct option_given *given = &arguments->options[i];
        if (given->option == 'o' || given->option == 'f')
            options->format = strcmp(given->value, "prom") == 0 ? "prometheus" : given->value;
        else if (given->option == 't')
            options->path = given->value;
        else if (given->option == 'i' &&
                 !command_number("--interval", given->value, 10, 3600000, &options->interval_ms))
            return false;
        options->all |= given->option == 'A';
        options->watch |= given->option == 'w';
        options->http |= given->option == 'H';
    }
    if (options->http && (options->watch || options->path != NULL)) {
        command_say(EXIT_USAGE, "--http answers one request: not with --watch or --textfile");
        return false;
    }
    if (options->path != NULL && strcmp(options->format, "table") == 0) {
        command_say(EXIT_USAGE, "--textfile wants a format for node_exporter, not a table");
        return false;
    }
    return true;
}

static double read_clock_s(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

// The previous answer of the daemon, from which a table computes rates.
struct previous {
    json_t *metrics; // NULL: none
    double at_s;
};

// Prints a table of the metrics in the JSON text.
static int print_table(const char *text, struct previous *previous)
{
    const double now_s = read_clock_s();
    json_t *metrics = json_loads(text, 0, NULL);
    if (metrics == NULL)
        return command_say(EXIT_FAILED, "the metrics of the daemon are no JSON");
    sample_table_print(metrics, previous->metrics, now_s - previous->at_s);
    json_decref(previous->metrics);
    *previous = (struct previous){metrics, now_s};
    return EXIT_OK;
}

// Reads the metrics once, and prints or writes them.
static int show_metrics(inferd_client *client, const struct options *options,
                        struct previous *previous)
{
    struct inferd_error err;
    char *text;
    size_t size;
    int code = EXIT_OK;
    bool table = strcmp(options->format, "table") == 0;
    if (inferd_metrics(client, table ? "json" : options->format, &text, &size, &err) != 0)
        return command_failed(&err);
    if (table)
        code = print_table(text, previous);
    else if (options->path != NULL)
        code = replace_file(options->path, text, size);
    else
        fwrite(text, 1, size, stdout);
    free(text);
    if (fflush(stdout) != 0)
        code = command_say(EXIT_FILE, "standard output: %s", strerror(errno));
    return code;
}

static int watch_metrics(inferd_client *client, const struct options *options)
{
    const struct timespec interval = {.tv_sec = (time_t)(options->interval_ms / 1000),
                                      .tv_nsec = (long)(options->interval_ms % 1000) * 1000000};
    struct previous previous = {0};
    int code = show_metrics(client, options, &previous);
    while (code == EXIT_OK && options->watch) {
        nanosleep(&interval, NULL);
        if (options->path == NULL)
            fputs(isatty(STDOUT_FILENO) ? "\x1b[H\x1b[2J" : "\n", stdout);
        code = show_metrics(client, options, &previous);
    }
    json_decref(previous.metrics);
    return code;
}

// --- answering a request ---

// Reads the metrics in the format that the client wants. Returns the body of the answer, which the
// caller frees; NULL and a message to standard error if the daemon does not answer.
static char *read_body(const struct context *context, bool all, enum http_format format,
                       size_t *size)
{
    static const char *const formats[] = {[HTTP_FORMAT_TEXT] = "prometheus",
                                          [HTTP_FORMAT_OPENMETRICS] = "openmetrics",
                                          [HTTP_FORMAT_PROTOBUF] = "json"};
    struct inferd_error err;
    inferd_client *client;
    char *text = NULL;
    if (command_connect(context, all, &client) != EXIT_OK)
        return NULL;
    if (inferd_metrics(client, formats[format], &text, size, &err) != 0)
        command_failed(&err);
    inferd_close(client);
    if (format != HTTP_FORMAT_PROTOBUF || text == NULL)
        return text;
    json_t *metrics = json_loads(text, 0, NULL);
    free(text);
    text = metrics != NULL ? native_encode(metrics, size) : NULL;
    json_decref(metrics);
    return text;
}

// Reads a request of HTTP from the socket that is standard input, and answers it there.
static int answer_request(const struct context *context, bool all)
{
    static const char *const types[] = {
        [HTTP_FORMAT_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
        [HTTP_FORMAT_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
        [HTTP_FORMAT_PROTOBUF] = NATIVE_MEDIA_TYPE};
    struct http_request request;
    struct stat info;
    if (fstat(STDIN_FILENO, &info) != 0 || !S_ISSOCK(info.st_mode))
        return command_say(EXIT_USAGE, "--http wants a socket as standard input");
    http_read(STDIN_FILENO, HTTP_READ_MS, &request);
    if (request.status == 0)
        return EXIT_OK;
    size_t size = 0;
    char *body = request.status == 200 ? read_body(context, all, request.format, &size) : NULL;
    const char *type = types[request.format];
    if (body == NULL) {
        request.status = request.status == 200 ? 503 : request.status;
        type = types[HTTP_FORMAT_TEXT];
    }
    bool done = http_write(STDIN_FILENO, HTTP_WRITE_MS, &request, type, body, size);
    free(body);
    return done && request.status == 200 ? EXIT_OK : EXIT_FAILED;
}

static int run_metrics(const struct context *context, const struct arguments *arguments)
{
    struct options options;
    if (!parse_options(context, arguments, &options))
        return EXIT_USAGE;
    if (options.http)
        return answer_request(context, options.all);
    inferd_client *client;
    int code = command_connect(context, options.all, &client);
    if (code != EXIT_OK)
        return code;
    code = watch_metrics(client, &options);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"all", no_argument, NULL, 'A'},
                                             {"format", required_argument, NULL, 'f'},
                                             {"output", required_argument, NULL, 'o'},
                                             {"watch", no_argument, NULL, 'w'},
                                             {"interval", required_argument, NULL, 'i'},
                                             {"textfile", required_argument, NULL, 't'},
                                             {"http", no_argument, NULL, 'H'},
                                             {0}};

const struct command command_metrics = {
    .name = "metrics",
    .names = "",
    .summary = "print the metrics of the daemon for a monitoring system",
    .help =
        "  -A, --all            the metrics of all models and users; needs the admin socket\n"
        "  -o, --output FORMAT  prom (Prometheus' text format, the default), openmetrics, json\n"
        "                       or table\n"
        "  -f, --format FORMAT  the same as -o\n"
        "  -w, --watch          print them again and again; a table then has rates\n"
        "  -i, --interval MS    the time between two prints (default 2000)\n"
        "      --textfile PATH  write the file PATH, for node_exporter's textfile collector\n"
        "      --http           answer one HTTP request on the socket that is standard input\n",
    .short_options = "Af:o:wi:",
    .long_options = long_options,
    .run = run_metrics,
};
