// SPDX-License-Identifier: Apache-2.0
// Values for JSON output, valid whatever the daemon says.
#ifndef INF_CLIENT_INFERCTL_TEXT_JSON_VALUE_H
#define INF_CLIENT_INFERCTL_TEXT_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

// The number; null for infinities and NaN, which JSON does not have. Like all functions here it dies
// where memory is short.
json_t *json_value_real(double number);

// A whole number.
json_t *json_value_whole(int64_t number);

// The text; bytes that are no UTF-8 become "?".
json_t *json_value_text(const char *text);

// Prints the value to stdout, indented, and frees it.
void json_value_print(json_t *value);

// Gives `memory` back unless it is NULL, which ends the program.
void *json_value_must(void *memory);

#endif
