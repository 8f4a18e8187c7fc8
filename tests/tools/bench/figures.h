// SPDX-License-Identifier: Apache-2.0
// What a benchmark has measured beside what it should be: a line each as it comes, and all of it as JSON.
#ifndef INF_TESTS_TOOLS_BENCH_FIGURES_H
#define INF_TESTS_TOOLS_BENCH_FIGURES_H

#include <stdbool.h>
#include <stdio.h>

enum figure_bound {
    FIGURE_NONE,    // to read beside the others
    FIGURE_AT_MOST, // the bound
    FIGURE_AT_LEAST
};

struct figure {
    const char *what; // outlives the call only in print
    double measured;
    const char *unit;
    enum figure_bound kind;
    double bound;
};

struct figures {
    FILE *json; // NULL: none is wanted
    unsigned count, missed;
};

// Begins; `json_path` may be NULL. Ends the program where the file cannot be made.
void figures_begin(struct figures *figures, const char *json_path);

// Prints one.
void figures_add(struct figures *figures, const struct figure *figure);

// Says what was not measured, and why.
void figures_skip(struct figures *figures, const char *what, const char *why);

// Ends, and says how many were missed.
void figures_end(struct figures *figures);

#endif
