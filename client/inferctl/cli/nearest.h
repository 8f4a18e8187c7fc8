// SPDX-License-Identifier: Apache-2.0
// Finds the known name that is most similar to a misspelled one.
#ifndef INF_CLIENT_INFERCTL_CLI_NEAREST_H
#define INF_CLIENT_INFERCTL_CLI_NEAREST_H

#include <stddef.h>

// A search for the name most similar to a given one. `found` is the best name so far; NULL: none.
struct nearest {
    const char *name;
    const char *found;
    size_t distance;
};

// Starts a search for names whose edit distance to `name` is at most a third of its length, or at
// most two for short names.
struct nearest nearest_start(const char *name);

// Compares `name` with one known name.
void nearest_consider(struct nearest *nearest, const char *known);

#endif
