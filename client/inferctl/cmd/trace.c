// SPDX-License-Identifier: Apache-2.0
// inferctl trace: records what the daemon does for some seconds, and writes it as a file for
// Perfetto. The daemon records while this program asks for the entries, again and again, and stops
// when its connection ends.
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/trace_file.h"

// How long the program waits before it asks again, if it has got all entries.
#define INTERVAL_MS 20
// The longest duration of a trace.
#define DURATION_MAX_S 600

struct options {
    const char *path;
    double duration_s;
};

static volatile sig_atomic_t interrupted;

static void note_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Asks for the entries that the daemon has, and writes them. *left tells whether it has more.
static int read_entries(inferd_client *client, struct trace_file *file, bool *left)
{
    struct inferd_error err;
    char *text = NULL;
    size_t size = 0;
    if (inferd_report(client, "timeline", &text, &size, &err) != 0)
        return command_failed(&err);
    json_t *report = json_loadb(text, size, 0, NULL);
    free(text);
    bool ok = trace_file_add(file, report);
    *left = json_integer_value(json_object_get(report, "left")) > 0;
    json_decref(report);
    return ok ? EXIT_OK : command_say(EXIT_FAILED, "the daemon's report is no timeline");
}

// Records until the time is up or a signal arrives, and then reads the entries that the daemon
// still has.
static int record_entries(inferd_client *client, struct trace_file *file, double duration_s)
{
    const double end_s = now_s() + duration_s;
    bool left = false;
    int code = read_entries(client, file, &left);
    while (code == EXIT_OK && !interrupted && now_s() < end_s) {
        if (!left)
            nanosleep(&(struct timespec){.tv_nsec = INTERVAL_MS * 1000000L}, NULL);
        code = read_entries(client, file, &left);
    }
    // A busy daemon may add entries as fast as they are read, so the number of reads is limited. It
    // is large enough for a full ring.
    for (int i = 0; i < 100 && code == EXIT_OK && left; i++)
        code = read_entries(client, file, &left);
    return code;
}

static int write_trace(inferd_client *client, const struct options *options)
{
    struct trace_file *file = trace_file_create(options->path);
    if (file == NULL)
        return command_say(EXIT_FILE, "'%s': %s", options->path, strerror(errno));
    const struct sigaction action = {.sa_handler = note_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int code = record_entries(client, file, options->duration_s);
    uint64_t requests = trace_file_requests(file);
    uint64_t lost = trace_file_lost(file);
    if (!trace_file_close(&file) && code == EXIT_OK)
        code = command_say(EXIT_FILE, "'%s': %s", options->path, strerror(errno));
    if (code == EXIT_OK && lost > 0)
        command_say(EXIT_OK, "%" PRIu64 " entries are lost: the daemon was too busy", lost);
    if (code == EXIT_OK)
        printf("%s: %" PRIu64 " requests\n", options->path, requests);
    return code;
}

// Parses a duration such as "10s", "500ms" or "10", which are seconds.
static bool parse_duration(const char *text, double *duration_s)
{
    char *end;
    *duration_s = strtod(text, &end);
    if (strcmp(end, "ms") == 0)
        *duration_s /= 1000;
    else if (*end != '\0' && strcmp(end, "s") != 0)
        *duration_s = 0;
    if (end != text && *duration_s >= 0.001 && *duration_s <= DURATION_MAX_S)
        return true;
    command_say(EXIT_USAGE, "--duration %s: wanted 1ms to %ds", text, DURATION_MAX_S);
    return false;
}

static int run_trace(const struct context *context, const struct arguments *arguments)
{
    struct options options = {.duration_s = 10};
    for (size_t i = 0; i < arguments->option_count; i++) {
        const char *value = arguments->options[i].value;
        if (arguments->options[i].option == 'o')
            options.path = value;
        else if (!parse_duration(value, &options.duration_s))
            return EXIT_USAGE;
    }
    if (options.path == NULL)
        return command_say(EXIT_USAGE, "wanted -o FILE");
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    code = write_trace(client, &options);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'}, {"duration", required_argument, NULL, 'd'}, {0}};

const struct command command_trace = {
    .name = "trace",
    .names = "",
    .summary = "record what the daemon does, for Perfetto",
    .help =
        "  -o, --output FILE      write the trace to FILE; ui.perfetto.dev loads it\n"
        "  -d, --duration TIME    how long to record, such as 10s (the default) or 500ms\n"
        "Needs the admin socket. Ctrl-C ends the recording early.\n",
    .short_options = "o:d:",
    .long_options = long_options,
    .run = run_trace,
};
