// SPDX-License-Identifier: Apache-2.0
// What the daemon found: all of it, or of one thing.
#ifndef INF_CLIENT_INFERCTL_TEXT_FACT_H
#define INF_CLIENT_INFERCTL_TEXT_FACT_H

#include "client/inferctl/cli/command.h"

// The value of the fact "GROUP.NAME.WHAT" ("device.cpu.precisions"), valid as long as the environment; ""
// where there is none.
const char *fact_find(const inferd_environment *environment, const char *group, const char *name,
                      const char *what);

// Asks the daemon what it found, and has it printed. Prints what goes wrong and returns an exit code.
int fact_show(const struct context *context,
              void (*print)(const inferd_environment *environment, enum output_format format));

#endif
