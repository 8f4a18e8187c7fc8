// SPDX-License-Identifier: Apache-2.0
// Text from outside: is it UTF-8, and how is it shown in one line? Private to proto/wire.
#ifndef INF_PROTO_WIRE_UTF8_H
#define INF_PROTO_WIRE_UTF8_H

#include <stdbool.h>

#include "proto/core/span.h"

// Whether the bytes are UTF-8 (no overlong forms, no surrogates, at most U+10FFFF) without NUL.
bool inf_utf8_valid(struct inf_span bytes);

// A piece of text made fit for an error's line.
struct inf_quoted {
    char text[68];
};

// The text cut to 64 bytes at a character's edge ("..." behind), control characters as '?'.
struct inf_quoted inf_quote(const char *text);

#endif
