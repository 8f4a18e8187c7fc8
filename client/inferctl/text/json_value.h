// SPDX-License-Identifier: Apache-2.0
// Values for JSON output. They are valid for any text and number of the daemon.
#ifndef INF_CLIENT_INFERCTL_TEXT_JSON_VALUE_H
#define INF_CLIENT_INFERCTL_TEXT_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

// Returns the number, or null for infinities and NaN, which JSON does not have. All functions here
// end the program if there is no memory.
json_t *json_value_real(double number);

// Returns a whole number.
json_t *json_value_whole(int64_t number);

// Returns the text. If it is not UTF-8, characters that are not ASCII become "?".
json_t *json_value_text(const char *text);

// Prints the value to stdout, indented, and frees it.
void json_value_print(json_t *value);

// Returns `memory`. If it is NULL, ends the program.
void *json_value_must(void *memory);

#endif
