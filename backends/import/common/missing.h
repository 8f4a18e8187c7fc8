// SPDX-License-Identifier: Apache-2.0
// What a model needs and is not built: as one line of text for an error, and whole, a line each, for
// whoever asks.
#ifndef INF_BACKENDS_IMPORT_COMMON_MISSING_H
#define INF_BACKENDS_IMPORT_COMMON_MISSING_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/graph/graph.h"

// What is left of an error's text that must also say what is missing, and count what does not fit.
#define INF_MISSING_TEXT_SIZE 960

struct inf_missing {
    const char *separator; // between items
    FILE *report;          // NULL, or where every item goes, INF_LIMIT_REPORTED_OPERATORS of them
    char text[INF_MISSING_TEXT_SIZE];
    size_t used, left_out; // of the text
    uint32_t count;
};

// Adds one item: an operator or class with what there is to say about it.
void inf_missing_add(struct inf_missing *missing, const char *item);

// Sorts `names` and adds "Foo (3 nodes)" and "Bar (1 node)", `unit` being "node".
void inf_missing_add_names(struct inf_missing *missing, const char **names, size_t count,
                           const char *unit);

// INF_OK where nothing was added; else fails with "WHAT not supported: " and the text.
//
// INF_UNSUPPORTED  (OPERATOR)
enum inf_code inf_missing_check(struct inf_missing *missing, const char *what,
                                struct inf_error *err) INF_NODISCARD;

#endif
