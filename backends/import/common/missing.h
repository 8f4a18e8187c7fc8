// SPDX-License-Identifier: Apache-2.0
// Lists the unsupported operators and classes of a model: truncated in an error text, and complete
// in a report with one line per item.
#ifndef INF_BACKENDS_IMPORT_COMMON_MISSING_H
#define INF_BACKENDS_IMPORT_COMMON_MISSING_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/graph/graph.h"

// The size of the list in an error text. The rest of the text says which kind of item is missing
// and how many items were omitted.
#define INF_MISSING_TEXT_SIZE 960

struct inf_missing {
    const char *separator; // text between two items of the list
    FILE *report;          // receives every item, at most INF_LIMIT_REPORTED_OPERATORS; may be NULL
    const char *hint;      // borrowed advice that the error text ends with; NULL: none
    char text[INF_MISSING_TEXT_SIZE];
    size_t used, left_out; // bytes of the text in use, and number of omitted items
    uint32_t count;
};

// Adds one item: an operator or class with its details.
void inf_missing_add(struct inf_missing *missing, const char *item);

// Sorts `names` and adds an item for each distinct name. If `unit` is "node", items are "Foo (3
// nodes)" or "Bar (1 node)".
void inf_missing_add_names(struct inf_missing *missing, const char **names, size_t count,
                           const char *unit);

// Returns INF_OK if no item was added. Otherwise fails with the text "WHAT not supported: ITEMS
// (HINT)"; without a hint the parentheses are absent.
//
// INF_UNSUPPORTED  (OPERATOR)
enum inf_code inf_missing_check(struct inf_missing *missing, const char *what,
                                struct inf_error *err) INF_NODISCARD;

#endif
