// SPDX-License-Identifier: Apache-2.0
// Text from outside: functions that check whether it is UTF-8, and make it printable on one line.
#ifndef INF_PROTO_CORE_UTF8_H
#define INF_PROTO_CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/span.h"

// Returns the size in bytes of the UTF-8 character at `at`, or 0 if the bytes are not valid UTF-8.
// `room` is the number of readable bytes, at least 1.
size_t inf_utf8_character_size(const uint8_t *at, size_t room);

// Returns whether the bytes are UTF-8 (no overlong forms, no surrogates, at most U+10FFFF) without
// NUL.
bool inf_utf8_valid(struct inf_span bytes);

// Replaces control characters and bytes that are not UTF-8 by '?'.
void inf_text_clean(char *text);

// The beginning of a text, in a form that can be printed in an error message.
struct inf_quoted {
    char text[68];
};

// Returns the beginning of the text: at most 64 bytes, without a partial character, followed by
// "..." if the text is longer. '?' replaces control characters and invalid bytes, and an apostrophe
// replaces a quotation mark, because log lines put such texts between quotation marks.
struct inf_quoted inf_quote(const char *text);

#endif
