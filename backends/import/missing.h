// SPDX-License-Identifier: Apache-2.0
// What a model needs and is not built, as one line of text.
#ifndef INF_BACKENDS_IMPORT_MISSING_H
#define INF_BACKENDS_IMPORT_MISSING_H

#include <stddef.h>

#define INF_MISSING_TEXT_SIZE 960

// Sorts `names` and writes "Foo (3 nodes), Bar (1 node)", `unit` being "node"; what does not fit is
// counted at the end.
void inf_missing_print(const char **names, size_t count, const char *unit,
                       char text[INF_MISSING_TEXT_SIZE]);

#endif
