// SPDX-License-Identifier: Apache-2.0
// Values for JSON output. They are valid for any text and any number that the daemon sends.
#ifndef INF_CLIENT_INFERCTL_TEXT_JSON_VALUE_H
#define INF_CLIENT_INFERCTL_TEXT_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

// Returns the number, or null for infinities and NaN, which JSON does not have. All functions of
// this file end the program if there is no memory.
json_t *json_value_real(double number);

// Returns a whole number as a JSON value.
json_t *json_value_whole(int64_t number);

// Returns the text as a JSON value. If the text is not UTF-8, characters that are not ASCII become
// "?".
json_t *json_value_text(const char *text);

// Prints the value to stdout, indented, and frees it.
void json_value_print(json_t *value);

// Returns `memory`, but ends the program if it is NULL.
void *json_value_must(void *memory);

#endif
