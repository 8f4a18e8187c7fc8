// SPDX-License-Identifier: Apache-2.0
// inferctl check and inferctl inspect: examine a model file without the daemon. Both run the
// program inferd-check, which contains the engine, so inferctl need not link the engine. Nodes of a
// served model are reported by the verbs profile, debug and diff (nodes.c).
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/inferctl/bench/engine_program.h"

// Replaces this process with the program inferd-check.
static int run_program(const struct context *context, const char *file, bool inspect)
{
    const char *program = engine_program_path();
    const char *words[5] = {"inferd-check"};
    size_t count = 1;
    if (context->format == OUTPUT_JSON)
        words[count++] = "--json";
    if (inspect)
        words[count++] = "--inspect";
    words[count] = file;
    fflush(stdout);
    execv(program, (char *const *)words);
    return command_say(EXIT_FAILED, "'%s': %s; it comes with the daemon", program, strerror(errno));
}

static int run_check(const struct context *context, const struct arguments *arguments)
{
    return run_program(context, arguments->names[0], false);
}

static int run_inspect(const struct context *context, const struct arguments *arguments)
{
    return run_program(context, arguments->names[0], true);
}

const struct command command_check = {
    .name = "check",
    .names = "FILE",
    .names_least = 1,
    .names_most = 1,
    .summary = "check without a daemon whether a model file can be served",
    .help = "",
    .run = run_check,
};

const struct command command_inspect = {
    .name = "inspect",
    .names = "FILE",
    .names_least = 1,
    .names_most = 1,
    .summary = "show a model file's graph after all passes, and each device's plan",
    .help = "",
    .run = run_inspect,
};
