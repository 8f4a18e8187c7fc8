// SPDX-License-Identifier: Apache-2.0
// Facts that the daemon found out about the machine and itself.
#ifndef INF_CLIENT_INFERCTL_TEXT_FACT_H
#define INF_CLIENT_INFERCTL_TEXT_FACT_H

#include "client/inferctl/cli/command.h"

// Returns the value of the fact "GROUP.NAME.WHAT" ("device.cpu.precisions"), or "". It is valid as
// long as the environment.
const char *fact_find(const inferd_environment *environment, const char *group, const char *name,
                      const char *what);

// Reads the facts from the daemon and prints them with `print`. Prints what is wrong and returns an
// exit code.
int fact_show(const struct context *context,
              void (*print)(const inferd_environment *environment, enum output_format format));

#endif
