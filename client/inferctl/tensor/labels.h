// SPDX-License-Identifier: Apache-2.0
// Names of classes: a text file with one name per line.
#ifndef INF_CLIENT_INFERCTL_TENSOR_LABELS_H
#define INF_CLIENT_INFERCTL_TENSOR_LABELS_H

#include <stddef.h>

struct labels {
    char *text; // text of the file, with NUL in place of line ends
    size_t size;
};

// Reads the file. Returns an exit code, and prints a message on failure.
int labels_load(struct labels *labels, const char *path);

// Returns the name of class `index`, or "" if there is none.
const char *labels_get(const struct labels *labels, size_t index);

// Returns the number of names. Empty lines at the end of the file do not count.
size_t labels_count(const struct labels *labels);

// Frees the names of the classes.
void labels_fini(struct labels *labels);

#endif
