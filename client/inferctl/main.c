// SPDX-License-Identifier: Apache-2.0
// inferctl: arguments before the verb, then the verb.
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "client/inferctl/command.h"

static const struct command *const commands[] = {
    &command_status, &command_devices, &command_models, &command_load,
    &command_unload, &command_infer,   &command_bench,
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static int usage(FILE *out, int code)
{
    fputs("usage: inferctl [--socket PATH] [-o table|json] VERB ...\n\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
    fputs(
        "\n"
        "  --socket PATH    the daemon's socket (default: $INFERD_SOCKET, else\n"
        "                   /run/inferd/inferd.sock, for load and unload /run/inferd/admin.sock)\n"
        "  -o table|json    how results are printed\n"
        "  --version        what this is\n"
        "  --help           this; inferctl VERB --help tells more\n",
        out);
    return code;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"socket", required_argument, NULL, 's'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"version", no_argument, NULL, 'V'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct context context = {0};
    // "+": options behind the verb are the verb's.
    for (int c; (c = getopt_long(argc, argv, "+s:o:h", longs, NULL)) != -1;) {
        if (c == 's')
            context.socket = optarg;
        else if (c == 'o' && strcmp(optarg, "json") == 0)
            context.format = OUTPUT_JSON;
        else if (c == 'o' && strcmp(optarg, "table") == 0)
            context.format = OUTPUT_TABLE;
        else if (c == 'V')
            return printf("inferctl " INFERCTL_VERSION "\n") < 0 ? EXIT_FAILED : EXIT_OK;
        else if (c == 'o')
            return command_wrong("-o '%s': wanted table or json", optarg);
        else
            return usage(c == 'h' ? stdout : stderr, c == 'h' ? EXIT_OK : EXIT_USAGE);
    }
    if (optind == argc)
        return usage(stderr, EXIT_USAGE);
    const struct command *command = find_command(argv[optind]);
    if (command == NULL)
        return command_wrong("there is no verb '%s'; inferctl --help lists them", argv[optind]);
    int verb_argc = argc - optind;
    char **verb_argv = argv + optind;
    optind = 0; // getopt starts anew
    return command->run(&context, command, verb_argc, verb_argv);
}
