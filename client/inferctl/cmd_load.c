// SPDX-License-Identifier: Apache-2.0
// inferctl load, inferctl unload: models in and out.
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "client/inferctl/command.h"
#include "client/inferctl/progress.h"

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

static int load(const struct context *context, char *name, const char *file, const char *device)
{
    // The daemon has another working directory.
    char path[PATH_MAX];
    if (file != NULL && realpath(file, path) == NULL) {
        fprintf(stderr, "inferctl: '%s': no such file\n", file);
        return EXIT_NOT_FOUND;
    }
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    double started = now_s();
    if (inferd_load(client, name, file != NULL ? path : NULL, device, show_progress, name, &err) !=
        0) {
        progress_clear();
        code = command_failed(&err);
    } else {
        progress_clear();
        if (context->format == OUTPUT_JSON)
            printf("{\"model\": \"%s\", \"seconds\": %.3f}\n", name, now_s() - started);
        else
            printf("%s is ready (%.0f ms)\n", name, (now_s() - started) * 1e3);
    }
    inferd_close(client);
    return code;
}

static int run_load(const struct context *context, const struct command *command, int argc,
                    char **argv)
{
    static const struct option longs[] = {
        {"device", required_argument, NULL, 'd'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *device = NULL;
    for (int c; (c = getopt_long(argc, argv, "d:h", longs, NULL)) != -1;) {
        if (c == 'd')
            device = optarg;
        else
            return command_usage(command, c == 'h');
    }
    if (argc - optind < 1 || argc - optind > 2)
        return command_usage(command, false);
    return load(context, argv[optind], argc - optind == 2 ? argv[optind + 1] : NULL, device);
}

static int run_unload(const struct context *context, const struct command *command, int argc,
                      char **argv)
{
    static const struct option longs[] = {
        {"version", required_argument, NULL, 'v'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *version = NULL;
    for (int c; (c = getopt_long(argc, argv, "v:h", longs, NULL)) != -1;) {
        if (c == 'v')
            version = optarg;
        else
            return command_usage(command, c == 'h');
    }
    if (argc - optind != 1)
        return command_usage(command, false);
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    if (inferd_unload(client, argv[optind], version, &err) != 0)
        code = command_failed(&err);
    inferd_close(client);
    return code;
}

const struct command command_load = {
    .name = "load",
    .arguments = "MODEL [FILE]",
    .summary = "load MODEL from the repository, or from FILE, and wait until it is ready",
    .options =
        "  -d, --device NAME   run it on this device (inferctl devices lists them)\n\n"
        "A model that is loaded already keeps serving until the new one is ready.\n",
    .run = run_load,
};

const struct command command_unload = {
    .name = "unload",
    .arguments = "MODEL",
    .summary = "unload MODEL; requests under way still finish",
    .options = "  -v, --version V     this version only\n",
    .run = run_unload,
};
