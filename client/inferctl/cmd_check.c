// SPDX-License-Identifier: Apache-2.0
// inferctl check: what would become of a model file here. The engine is in a program of its own, so
// that this one stays small and needs no daemon.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/inferctl/command.h"

static int run(const struct context *context, const struct arguments *arguments)
{
    const char *program = getenv("INFERD_CHECK");
    if (program == NULL || program[0] == '\0')
        program = INFERD_CHECK_PROGRAM;
    const char *file = arguments->names[0];
    fflush(stdout);
    if (context->format == OUTPUT_JSON)
        execl(program, "inferd-check", "--json", file, (char *)NULL);
    else
        execl(program, "inferd-check", file, (char *)NULL);
    return command_say(EXIT_FAILED, "'%s': %s; it comes with the daemon", program, strerror(errno));
}

const struct command command_check = {
    .name = "check",
    .names = "FILE",
    .names_least = 1,
    .names_most = 1,
    .summary = "tell what would become of a model file, without a daemon",
    .help = "",
    .run = run,
};
