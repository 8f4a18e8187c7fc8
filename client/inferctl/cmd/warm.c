// SPDX-License-Identifier: Apache-2.0
// inferctl warm: compiles a model for given shapes before requests need them.
#include <stdio.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/progress.h"

// The maximum length of the shapes in a request, in bytes.
#define SHAPES_SIZE 256

static void show_progress(void *context, const char *stage, unsigned percent)
{
    progress_show(context, stage, percent);
}

static void print_outcome(const struct context *context, const char *name, const char *shapes)
{
    if (context->format == OUTPUT_TABLE) {
        printf("%s is compiled for %s\n", name, shapes[0] != '\0' ? shapes : "its own shapes");
        return;
    }
    json_t *answer = json_value_must(json_object());
    json_object_set_new(answer, "model", json_value_text(name));
    json_object_set_new(answer, "shapes", json_value_text(shapes));
    json_value_print(answer);
}

// Appends the shapes of one set of inputs to the request. Returns false if the text becomes too
// long.
static bool add_shapes(char shapes[SHAPES_SIZE], const char *set)
{
    size_t used = strlen(shapes);
    int length = snprintf(shapes + used, SHAPES_SIZE - used, "%s%s", used > 0 ? "; " : "", set);
    return length >= 0 && used + (size_t)length < SHAPES_SIZE;
}

static int run_warm(const struct context *context, const struct arguments *arguments)
{
    const char *name = arguments->names[0], *version = NULL, *device = NULL;
    char shapes[SHAPES_SIZE] = "";
    for (size_t i = 0; i < arguments->option_count; i++) {
        const char *value = arguments->options[i].value;
        if (arguments->options[i].option == 'd')
            device = value;
        else if (arguments->options[i].option == 'v')
            version = value;
        else if (!add_shapes(shapes, value))
            return command_say(EXIT_USAGE, "--shape: wanted at most %d characters in all",
                               SHAPES_SIZE - 1);
    }
    inferd_client *client;
    int code = command_connect(context, true, &client);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    struct progress progress = progress_start(name);
    int failed =
        inferd_precompile(client, name, version, device, shapes, show_progress, &progress, &err);
    progress_end(&progress);
    if (failed != 0)
        code = command_failed(&err);
    else
        print_outcome(context, name, shapes);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"shape", required_argument, NULL, 's'},
                                             {"device", required_argument, NULL, 'd'},
                                             {"version", required_argument, NULL, 'v'},
                                             {0}};

const struct command command_warm = {
    .name = "warm",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "compile MODEL for shapes before the first request, without running it",
    .help =
        "Needs the admin socket.\n\n"
        "  -s, --shape SHAPES     INPUT=1x3x224x224, inputs separated by blanks; repeat it for\n"
        "                         other sets (default: the model's own shapes)\n"
        "  -d, --device NAME      on this device (default: where the model is placed)\n"
        "  -v, --version V        this version\n",
    .short_options = "s:d:v:",
    .long_options = long_options,
    .run = run_warm,
};
