// SPDX-License-Identifier: Apache-2.0
// The known name that somebody may have meant.
#ifndef INF_CLIENT_INFERCTL_CLI_NEAREST_H
#define INF_CLIENT_INFERCTL_CLI_NEAREST_H

#include <stddef.h>

// A search among names; `found` is the best so far, NULL where none is near.
struct nearest {
    const char *name;
    const char *found;
    size_t distance;
};

// Starts a search for names near `name`: those that a third of its letters (two at least) put wrong,
// left out, added or exchanged turn into it.
struct nearest nearest_start(const char *name);

// Looks at one known name.
void nearest_consider(struct nearest *nearest, const char *known);

#endif
