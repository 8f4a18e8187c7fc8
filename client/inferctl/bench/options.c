// SPDX-License-Identifier: Apache-2.0
// Parses the options of inferctl bench, and refuses options that exclude each other.
#include "client/inferctl/bench/options.h"

#include <stdio.h>
#include <string.h>

#include "client/inferctl/bench/open_loop.h"

#define RUNS_DEFAULT 200
#define RUNS_MAX     10000000
#define STREAMS_MAX  1024
#define RATE_MAX     1000000

// Parses a list of loads such as "1,2,4". The benchmark measures one table row for each load.
static int take_loads(struct bench_loads *loads, const char *name, const char *list,
                      unsigned long most)
{
    char text[24];
    loads->count = 0;
    do {
        size_t length = strcspn(list, ",");
        if (loads->count == BENCH_LOADS_MAX)
            return command_say(EXIT_USAGE, "%s: more than %d numbers", name, BENCH_LOADS_MAX);
        snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1),
                 list);
        if (!command_number(name, text, 1, most, &loads->values[loads->count++]))
            return EXIT_USAGE;
        list += length + (list[length] == ',');
    } while (*list != '\0');
    return EXIT_OK;
}

static int take_arrivals(struct bench_options *options, const char *text)
{
    options->even = strcmp(text, "even") == 0;
    if (options->even || strcmp(text, "poisson") == 0)
        return EXIT_OK;
    return command_say(EXIT_USAGE, "--arrivals %s: wanted poisson or even", text);
}

static int take_option(struct bench_options *options, const struct option_given *given)
{
    int code;
    if (request_options_take(&options->request, given, &code))
        return code;
    switch (given->option) {
    case 'a':
        options->all_backends = true;
        return EXIT_OK;
    case 'B':
        options->beside = true;
        return EXIT_OK;
    case 'D':
        options->direct = given->value;
        return EXIT_OK;
    case 'C':
        return command_number("--connections", given->value, 1, OPEN_LOOP_CLIENTS_MAX,
                              &options->connections)
                   ? EXIT_OK
                   : EXIT_USAGE;
    case 'c':
        return take_loads(&options->streams, "--streams", given->value, STREAMS_MAX);
    case 'R':
        return take_loads(&options->rates, "--rate", given->value, RATE_MAX);
    case 'A':
        return take_arrivals(options, given->value);
    case 't':
        return command_number("--timeout", given->value, 1, 86400000, &options->timeout_ms)
                   ? EXIT_OK
                   : EXIT_USAGE;
    case 'q':
        return command_number("--queue-timeout", given->value, 1, 86400000,
                              &options->queue_timeout_ms)
                   ? EXIT_OK
                   : EXIT_USAGE;
    case 'p':
        options->plot = given->value;
        return EXIT_OK;
    default:
        return command_number("--runs", given->value, 1, RUNS_MAX, &options->runs) ? EXIT_OK
                                                                                   : EXIT_USAGE;
    }
}

// Refuses combinations of options that exclude each other.
static int check_options(const struct bench_options *options)
{
    if (options->all_backends && (options->rates.count > 0 || options->streams.count > 1))
        return command_say(EXIT_USAGE, "--all-backends: not with --rate or several --streams");
    if (options->beside && options->all_backends)
        return command_say(EXIT_USAGE, "--beside: not with --all-backends");
    if (options->direct != NULL && options->all_backends)
        return command_say(EXIT_USAGE, "--direct: not with --all-backends");
    if (options->connections > 1 && options->rates.count == 0)
        return command_say(EXIT_USAGE, "--connections: only with --rate");
    return EXIT_OK;
}

int bench_options_read(struct bench_options *options, const struct arguments *arguments)
{
    *options = (struct bench_options){.runs = RUNS_DEFAULT, .connections = 1};
    int code = EXIT_OK;
    for (size_t i = 0; i < arguments->option_count && code == EXIT_OK; i++)
        code = take_option(options, &arguments->options[i]);
    if (options->streams.count == 0 && options->rates.count == 0)
        options->streams = (struct bench_loads){.values = {1}, .count = 1};
    return code == EXIT_OK ? check_options(options) : code;
}

const struct option bench_long_options[] = {REQUEST_LONG_OPTIONS,
                                            {"runs", required_argument, NULL, 'n'},
                                            {"streams", required_argument, NULL, 'c'},
                                            {"all-backends", no_argument, NULL, 'a'},
                                            {"beside", no_argument, NULL, 'B'},
                                            {"direct", required_argument, NULL, 'D'},
                                            {"connections", required_argument, NULL, 'C'},
                                            {"rate", required_argument, NULL, 'R'},
                                            {"arrivals", required_argument, NULL, 'A'},
                                            {"plot", required_argument, NULL, 'p'},
                                            {"queue-timeout", required_argument, NULL, 'q'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {0}};
