// SPDX-License-Identifier: Apache-2.0
// Text from outside: is it UTF-8, and how is it shown in one line?
#ifndef INF_PROTO_CORE_UTF8_H
#define INF_PROTO_CORE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/span.h"

// The bytes of the character at `at`, of which there are `room`, 1 or more; 0 where what stands there
// is none.
size_t inf_utf8_character_size(const uint8_t *at, size_t room);

// Whether the bytes are UTF-8 (no overlong forms, no surrogates, at most U+10FFFF) without NUL.
bool inf_utf8_valid(struct inf_span bytes);

// Makes a text fit for a line: bytes of control characters, and such as are no UTF-8, become '?'.
void inf_text_clean(char *text);

// A piece of text made fit for an error's line.
struct inf_quoted {
    char text[68];
};

// The text cut to 64 bytes at a character's edge ("..." behind), control characters as '?'.
struct inf_quoted inf_quote(const char *text);

#endif
