// SPDX-License-Identifier: Apache-2.0
// Names of classes, a line each.
#ifndef INF_CLIENT_INFERCTL_TENSOR_LABELS_H
#define INF_CLIENT_INFERCTL_TENSOR_LABELS_H

#include <stddef.h>

struct labels {
    char *text; // the file, line ends made NUL
    size_t size;
};

// Reads the file; prints what is wrong and returns an exit code.
int labels_load(struct labels *labels, const char *path);

// The name of class `index`; "" where there is none.
const char *labels_get(const struct labels *labels, size_t index);

// Frees the names.
void labels_fini(struct labels *labels);

#endif
