// SPDX-License-Identifier: Apache-2.0
// Facts that the daemon has detected about the machine and about itself.
#ifndef INF_CLIENT_INFERCTL_TEXT_FACT_H
#define INF_CLIENT_INFERCTL_TEXT_FACT_H

#include "client/inferctl/cli/command.h"

// Returns the value of the fact "GROUP.NAME.WHAT" (for example "device.cpu.precisions"), or "" if
// there is none. The string is valid as long as the environment.
const char *fact_find(const inferd_environment *environment, const char *group, const char *name,
                      const char *what);

// Reads the facts from the daemon and prints them with `print`. Returns an exit code, and prints a
// message on failure.
int fact_show(const struct context *context,
              void (*print)(const inferd_environment *environment, enum output_format format));

#endif
