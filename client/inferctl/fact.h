// SPDX-License-Identifier: Apache-2.0
// What the daemon found of one thing, among all that it found.
#ifndef INF_CLIENT_INFERCTL_FACT_H
#define INF_CLIENT_INFERCTL_FACT_H

#include "client/inferd.h"

// The value of the fact "GROUP.NAME.WHAT" ("device.cpu.precisions"), valid as long as the environment; ""
// where there is none.
const char *fact_find(const inferd_environment *environment, const char *group, const char *name,
                      const char *what);

#endif
