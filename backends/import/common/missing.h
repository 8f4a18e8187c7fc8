// SPDX-License-Identifier: Apache-2.0
// Lists what a model needs and is not supported: shortened in the text of an error, and complete in
// a report with one line per item.
#ifndef INF_BACKENDS_IMPORT_COMMON_MISSING_H
#define INF_BACKENDS_IMPORT_COMMON_MISSING_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/graph/graph.h"

// Bytes of an error text for the list; the rest of the text says what is missing and how many items
// do not fit.
#define INF_MISSING_TEXT_SIZE 960

struct inf_missing {
    const char *separator; // between items
    FILE *report;          // gets every item, at most INF_LIMIT_REPORTED_OPERATORS; may be NULL
    char text[INF_MISSING_TEXT_SIZE];
    size_t used, left_out; // bytes of the text, and items that did not fit
    uint32_t count;
};

// Adds one item: an operator or class with its details.
void inf_missing_add(struct inf_missing *missing, const char *item);

// Sorts `names` and adds an item per distinct name: "Foo (3 nodes)", "Bar (1 node)" if `unit` is
// "node".
void inf_missing_add_names(struct inf_missing *missing, const char **names, size_t count,
                           const char *unit);

// Returns INF_OK if no item was added; else fails with "WHAT not supported: " and the items.
//
// INF_UNSUPPORTED  (OPERATOR)
enum inf_code inf_missing_check(struct inf_missing *missing, const char *what,
                                struct inf_error *err) INF_NODISCARD;

#endif
