// SPDX-License-Identifier: Apache-2.0
// inferctl load, inferctl unload: load and unload models.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/progress.h"

static void show_progress(void *context, const char *stage, unsigned percent)
{
    progress_show(context, stage, percent);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Prints that a model is ready. `outside` means that it is not in the repository.
static void print_loaded(const struct context *context, const char *name, bool saved, bool outside,
                         double seconds)
{
    if (context->format == OUTPUT_TABLE) {
        printf("%s is %sready (%.0f ms)\n", name, saved ? "saved in the repository and " : "",
               seconds * 1e3);
        if (outside)
            puts("It is served until the daemon ends; a model in the repository is loaded again.");
        return;
    }
    json_t *answer = json_value_must(json_object());
    json_object_set_new(answer, "model", json_value_text(name));
    json_object_set_new(answer, "state", json_value_text("READY"));
    json_object_set_new(answer, "seconds", json_value_real(seconds));
    json_value_print(answer);
}

static int run_load(const struct context *context, const struct arguments *arguments)
{
    const char *name = arguments->names[0];
    const char *file = arguments->names[1];
    const char *device = NULL;
    bool save = false;
    for (size_t i = 0; i < arguments->option_count; i++)
        if (arguments->options[i].option == 'd')
            device = arguments->options[i].value;
        else
            save = true;
    if (save && file == NULL)
        return command_say(EXIT_USAGE, "load --save wants FILE");
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    struct progress progress = progress_start(name);
    double started = now_s();
    int failed = (save ? inferd_save : inferd_load)(client, name, file, device, show_progress,
                                                    &progress, &err);
    progress_end(&progress);
    if (failed != 0)
        code = command_failed(&err);
    else
        print_loaded(context, name, save, file != NULL && !save, now_s() - started);
    inferd_close(client);
    return code;
}

static void print_unloaded(const struct context *context, const char *name, bool deleted)
{
    if (context->format == OUTPUT_TABLE) {
        printf("%s is unloaded%s\n", name, deleted ? ", and its files are deleted" : "");
        return;
    }
    json_t *answer = json_value_must(json_object());
    json_object_set_new(answer, "model", json_value_text(name));
    json_object_set_new(answer, "state", json_value_text(deleted ? "DELETED" : "UNLOADED"));
    json_value_print(answer);
}

static int run_unload(const struct context *context, const struct arguments *arguments)
{
    const char *version = NULL;
    bool deletes = false;
    for (size_t i = 0; i < arguments->option_count; i++)
        if (arguments->options[i].option == 'v')
            version = arguments->options[i].value;
        else
            deletes = true;
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    if ((deletes ? inferd_delete : inferd_unload)(client, arguments->names[0], version, &err) != 0)
        code = command_failed(&err);
    else
        print_unloaded(context, arguments->names[0], deletes);
    inferd_close(client);
    return code;
}

static const struct option load_options[] = {
    {"device", required_argument, NULL, 'd'}, {"save", no_argument, NULL, 's'}, {0}};
static const struct option unload_options[] = {
    {"version", required_argument, NULL, 'v'}, {"delete", no_argument, NULL, 'D'}, {0}};

const struct command command_load = {
    .name = "load",
    .names = "MODEL [FILE]",
    .names_least = 1,
    .names_most = 2,
    .summary = "load MODEL from the repository, or from FILE, and wait until it is ready",
    .help =
        "FILE is a model file or a directory with one. A model that is loaded already keeps\n"
        "serving until the new one is ready. Needs the admin socket.\n\n"
        "  -d, --device NAME      run it on this device (inferctl devices lists them)\n"
        "  -s, --save             copy FILE into the repository, as MODEL's next version, and\n"
        "                         load it from there\n",
    .short_options = "d:s",
    .long_options = load_options,
    .run = run_load,
};

const struct command command_unload = {
    .name = "unload",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "unload MODEL; requests under way still finish",
    .help =
        "Needs the admin socket.\n\n"
        "  -v, --version V        this version only\n"
        "  -D, --delete           also delete the files that load --save put into the repository\n",
    .short_options = "v:D",
    .long_options = unload_options,
    .run = run_unload,
};
