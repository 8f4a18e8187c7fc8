// SPDX-License-Identifier: Apache-2.0
// inferctl: parses the options before the verb, and runs the verb.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/cli/nearest.h"

static const struct command *const commands[] = {
    &command_status,  &command_backends, &command_devices, &command_memory, &command_models,
    &command_check,   &command_inspect,  &command_compile, &command_load,   &command_reload,
    &command_unload,  &command_infer,    &command_verify,  &command_bench,  &command_limits,
    &command_explain, &command_advise,   &command_place,   &command_warm,   &command_env,
    &command_flags,   &command_profile,  &command_debug,   &command_diff,   &command_metrics,
    &command_health,  &command_requests, &command_clients, &command_cancel, &command_disconnect,
    &command_slow,    &command_events,   &command_trace,   &command_report, &command_selftest,
    &command_wait,    &command_top,
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static int print_usage(FILE *out, int code)
{
    fputs("usage: inferctl [--socket PATH] [-o table|json] VERB ...\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs(
        "\n"
        "  --socket PATH    the daemon's socket (default: $INFERD_SOCKET, else\n"
        "                   /run/inferd/inferd.sock; for changes /run/inferd/admin.sock)\n"
        "  -o table|json    how results are printed\n"
        "  --version        show the version\n"
        "  --help           show this help; inferctl VERB --help shows a verb's\n"
        "\n"
        "exit codes: 0 success, 1 the request failed, 2 wrong arguments, 3 no daemon,\n"
        "            4 not found, 5 needs the admin socket, 6 timeout, 7 a file is unusable\n",
        out);
    return code;
}

static const struct command *find_command(const char *name)
{
    struct nearest nearest = nearest_start(name);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
        nearest_consider(&nearest, commands[i]->name);
    }
    if (nearest.found != NULL)
        command_say(EXIT_USAGE, "there is no verb '%s'; is '%s' meant?", name, nearest.found);
    else
        command_say(EXIT_USAGE, "there is no verb '%s'; inferctl --help lists them", name);
    return NULL;
}

static int run_command(int argc, char **argv)
{
    static const struct option longs[] = {
        {"socket", required_argument, NULL, 's'}, {"output", required_argument, NULL, 'o'},
        {"json", no_argument, NULL, 'j'},         {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},         {0}};
    struct context context = {0};
    // "+" stops parsing at the verb, because the options after it belong to the verb.
    for (int c; (c = getopt_long(argc, argv, "+s:o:h", longs, NULL)) != -1;) {
        if (c == 's')
            context.socket = optarg;
        else if (c == 'j')
            context.format = OUTPUT_JSON;
        else if (c == 'V')
            return printf("inferctl " INFERCTL_VERSION "\n") < 0 ? EXIT_FILE : EXIT_OK;
        else if (c != 'o')
            return print_usage(c == 'h' ? stdout : stderr, c == 'h' ? EXIT_OK : EXIT_USAGE);
        else if (!command_format(&context.format, optarg))
            return EXIT_USAGE;
    }
    if (optind == argc)
        return print_usage(stderr, EXIT_USAGE);
    const struct command *command = find_command(argv[optind]);
    if (command == NULL)
        return EXIT_USAGE;
    int verb_argc = argc - optind;
    char **verb_argv = argv + optind;
    verb_argv[0] = argv[0]; // getopt uses this as the prefix of its messages
    optind = 0;             // resets getopt
    return command_run(&context, command, verb_argc, verb_argv);
}

int main(int argc, char **argv)
{
    int code = run_command(argc, argv);
    // Fail if the output could not be written, for example because the disk is full.
    if (fflush(stdout) != 0 || ferror(stdout))
        return command_say(code == EXIT_OK ? EXIT_FILE : code, "standard output: %s",
                           strerror(errno));
    return code;
}
