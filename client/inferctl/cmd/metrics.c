// SPDX-License-Identifier: Apache-2.0
// inferctl metrics: prints the metrics of the daemon, or writes them to a file for Prometheus'
// node_exporter. The file is written under another name and then renamed, so that a reader never
// sees a part of it.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/inferctl/cli/command.h"

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

static int run_metrics(const struct context *context, const struct arguments *arguments)
{
    const char *format = context->format == OUTPUT_JSON ? "json" : NULL;
    const char *path = NULL;
    bool all = false;
    for (size_t i = 0; i < arguments->option_count; i++) {
        if (arguments->options[i].option == 'f')
            format = arguments->options[i].value;
        else if (arguments->options[i].option == 't')
            path = arguments->options[i].value;
        else
            all = true;
    }
    if (format != NULL && strcmp(format, "prom") == 0)
        format = "prometheus";
    inferd_client *client;
    int code = command_connect(context, all, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    char *text;
    size_t size;
    if (inferd_metrics(client, format, &text, &size, &err) != 0)
        code = command_failed(&err);
    else if (path != NULL)
        code = replace_file(path, text, size);
    else
        fwrite(text, 1, size, stdout);
    free(text);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"all", no_argument, NULL, 'A'},
                                             {"format", required_argument, NULL, 'f'},
                                             {"textfile", required_argument, NULL, 't'},
                                             {0}};

const struct command command_metrics = {
    .name = "metrics",
    .names = "",
    .summary = "print the metrics of the daemon for a monitoring system",
    .help =
        "  -A, --all            the metrics of all models and users; needs the admin socket\n"
        "  -f, --format FORMAT  prom (Prometheus' text format, the default), openmetrics or\n"
        "                       json\n"
        "      --textfile PATH  write the file PATH, for node_exporter's textfile collector\n",
    .short_options = "Af:",
    .long_options = long_options,
    .run = run_metrics,
};
