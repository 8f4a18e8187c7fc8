// SPDX-License-Identifier: Apache-2.0
// Error messages as JSON, for programs that call inferctl with -o json.
#ifndef INF_CLIENT_INFERCTL_CLI_JSON_ERRORS_H
#define INF_CLIENT_INFERCTL_CLI_JSON_ERRORS_H

#include <stddef.h>
#include <stdio.h>

// Collects everything that is written to stderr. Zero-initialise.
struct json_errors {
    FILE *before; // the stream that stderr was; NULL: nothing is collected
    FILE *memory;
    char *text;
    size_t size;
};

// Starts collecting: until json_errors_end(), stderr is a stream in memory. Without memory for it,
// messages stay plain text.
void json_errors_begin(struct json_errors *errors);

// Stops collecting and, if there are messages, prints them to the real stderr as one object:
// {"error": TEXT, "exit_code": CODE}. Does nothing if nothing is collected.
void json_errors_end(struct json_errors *errors, int exit_code);

#endif
