// SPDX-License-Identifier: Apache-2.0
// Results of a benchmark with their bounds. Each result is printed when it is known, and all of
// them are written as JSON at the end.
#ifndef INF_TESTS_TOOLS_BENCH_FIGURES_H
#define INF_TESTS_TOOLS_BENCH_FIGURES_H

#include <stdbool.h>
#include <stdio.h>

enum figure_bound {
    FIGURE_NONE,    // no bound, for information
    FIGURE_AT_MOST, // the measurement must not exceed the bound
    FIGURE_AT_LEAST
};

struct figure {
    const char *what; // name; used only while the result is printed
    double measured;
    const char *unit;
    enum figure_bound kind;
    double bound;
};

struct figures {
    FILE *json; // the JSON file to write; NULL: none was requested
    unsigned count, missed;
};

// Begins the output; `json_path` may be NULL. Exits if the file cannot be created.
void figures_begin(struct figures *figures, const char *json_path);

// Prints one result.
void figures_add(struct figures *figures, const struct figure *figure);

// Reports that a property was not measured, and why.
void figures_skip(struct figures *figures, const char *what, const char *why);

// Ends the output, and reports how many bounds were missed.
void figures_end(struct figures *figures);

#endif
