// SPDX-License-Identifier: Apache-2.0
// inferctl top: shows devices, models, clients and requests, and refreshes the screen. If standard
// input or output is no terminal, or with --once, prints one screen and ends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/top/sample.h"
#include "client/inferctl/top/terminal.h"
#include "client/inferctl/top/view.h"

#define CTRL_C 3

struct options {
    bool all, once;
    unsigned long interval_ms;
    struct view view;
};

static bool parse_order(const char *text, enum view_order *order)
{
    for (*order = 0; *order < VIEW_ORDERS; (*order)++)
        if (strcmp(text, view_order_name(*order)) == 0)
            return true;
    command_say(EXIT_USAGE, "--sort '%s': wanted rate, memory or name", text);
    return false;
}

static bool parse_options(const struct arguments *arguments, struct options *options)
{
    *options =
        (struct options){.interval_ms = 2000, .view = {.width = 80, .line_end = "", .filter = ""}};
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct option_given *given = &arguments->options[i];
        if (given->option == 'A')
            options->all = true;
        else if (given->option == '1')
            options->once = true;
        else if (given->option == 'f')
            options->view.filter = given->value;
        else if (given->option == 's' && !parse_order(given->value, &options->view.order))
            return false;
        else if (given->option == 'i' &&
                 !command_number("--interval", given->value, 10, 3600000, &options->interval_ms))
            return false;
    }
    return true;
}

// Takes two samples at a distance of one interval, and prints one screen with the rates between
// them.
static int print_once(inferd_client *client, const struct options *options)
{
    struct inferd_error err;
    struct sample before, now = {0};
    const struct timespec interval = {.tv_sec = (time_t)(options->interval_ms / 1000),
                                      .tv_nsec = (long)(options->interval_ms % 1000) * 1000000};
    int code = sample_read(client, &before, &err);
    if (code == 0) {
        nanosleep(&interval, NULL);
        code = sample_read(client, &now, &err);
    }
    if (code == 0)
        view_draw(&options->view, &before, &now, stdout);
    sample_free(&before);
    sample_free(&now);
    return code == 0 ? EXIT_OK : command_failed(&err);
}

static void draw_screen(struct view *view, const struct sample *before, const struct sample *now)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return;
    terminal_size(&view->width, &view->height);
    view_draw(view, before, now, out);
    if (fclose(out) == 0)
        terminal_draw(text, size);
    free(text);
}

// Waits for the end of the interval or the space bar, and handles other keys meanwhile. Returns
// false if the program must end.
static bool handle_keys(const struct terminal *terminal, struct options *options,
                        const struct sample *before, const struct sample *now)
{
    for (;;) {
        int key = terminal_wait(terminal, (int)options->interval_ms);
        if (key == TERMINAL_TIMEOUT || key == ' ')
            return true;
        if (key == TERMINAL_END || key == 'q' || key == CTRL_C)
            return false;
        if (key == 's')
            options->view.order = (options->view.order + 1) % VIEW_ORDERS;
        draw_screen(&options->view, before, now);
    }
}

static int show_live(inferd_client *client, struct options *options)
{
    struct terminal terminal;
    struct inferd_error err;
    struct sample before = {0}, now = {0};
    if (!terminal_open(&terminal))
        return print_once(client, options);
    options->view.line_end = "\x1b[K";
    options->view.colour = true;
    int code;
    while ((code = sample_read(client, &now, &err)) == 0) {
        // The first screen shows rates of 0, because there is no earlier sample.
        draw_screen(&options->view, before.at_ns != 0 ? &before : &now, &now);
        if (!handle_keys(&terminal, options, before.at_ns != 0 ? &before : &now, &now))
            break;
        sample_free(&before);
        before = now;
        now = (struct sample){0};
    }
    terminal_close(&terminal);
    sample_free(&before);
    sample_free(&now);
    return code == 0 ? EXIT_OK : command_failed(&err);
}

static int run_top(const struct context *context, const struct arguments *arguments)
{
    struct options options;
    inferd_client *client;
    if (!parse_options(arguments, &options))
        return EXIT_USAGE;
    if (context->format == OUTPUT_JSON)
        return command_say(EXIT_USAGE,
                           "top is for people; status, devices, models, clients and "
                           "requests print JSON");
    int code = command_connect(context, options.all, &client);
    if (code != EXIT_OK)
        return code;
    code = options.once || isatty(STDOUT_FILENO) != 1 ? print_once(client, &options)
                                                      : show_live(client, &options);
    inferd_close(client);
    return code;
}

static const struct option long_options[] = {{"all", no_argument, NULL, 'A'},
                                             {"once", no_argument, NULL, '1'},
                                             {"interval", required_argument, NULL, 'i'},
                                             {"sort", required_argument, NULL, 's'},
                                             {"filter", required_argument, NULL, 'f'},
                                             {0}};

const struct command command_top = {
    .name = "top",
    .names = "",
    .summary = "show live what devices, models, clients and requests do",
    .help =
        "  -A, --all              clients and requests of all users; needs the admin\n"
        "                         socket\n"
        "      --once             print one screen and end\n"
        "  -i, --interval MS      time between two screens (default: 2000)\n"
        "  -s, --sort ORDER       order of models and clients: rate, memory or name\n"
        "  -f, --filter TEXT      only models, devices and clients with TEXT in the name\n"
        "Keys: q quits, s changes the order, the space bar refreshes.\n",
    .short_options = "Ai:s:f:",
    .long_options = long_options,
    .run = run_top,
};
