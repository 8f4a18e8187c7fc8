// SPDX-License-Identifier: Apache-2.0
// Text from outside: checking that it is UTF-8, and making it printable in one line.
#ifndef INF_PROTO_CORE_UTF8_H
#define INF_PROTO_CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/span.h"

// Returns the size in bytes of the character at `at`, or 0 if it is not a valid UTF-8 character.
// `room` is the number of readable bytes, at least 1.
size_t inf_utf8_character_size(const uint8_t *at, size_t room);

// Returns whether the bytes are UTF-8 (no overlong forms, no surrogates, at most U+10FFFF) without
// NUL.
bool inf_utf8_valid(struct inf_span bytes);

// Replaces the bytes of control characters, and bytes that are not UTF-8, by '?'.
void inf_text_clean(char *text);

// A part of a text, printable in the line of an error.
struct inf_quoted {
    char text[68];
};

// Returns the text, truncated between characters to at most 64 bytes (with "..." behind), with '?'
// in place of control characters and invalid bytes.
struct inf_quoted inf_quote(const char *text);

#endif
