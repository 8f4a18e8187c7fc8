// SPDX-License-Identifier: Apache-2.0
#include "proto/wire/utf8.h"

#include <string.h>

// The bytes of the character at `at`, at most `room`; 0 where there is none.
static size_t character_size(const uint8_t *at, size_t room)
{
    uint8_t lead = at[0];
    if (lead < 0x80)
        return lead != 0 ? 1 : 0;
    size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || size > room)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    // The second byte tells overlong forms, surrogates and what lies beyond U+10FFFF.
    if ((lead == 0xe0 && at[1] < 0xa0) || (lead == 0xed && at[1] > 0x9f) ||
        (lead == 0xf0 && at[1] < 0x90) || (lead == 0xf4 && at[1] > 0x8f))
        return 0;
    return size;
}

bool inf_utf8_valid(struct inf_span bytes)
{
    size_t at = 0;
    while (at < bytes.size) {
        size_t size = character_size(bytes.data + at, bytes.size - at);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

struct inf_quoted inf_quote(const char *text)
{
    enum {
        ROOM = 64
    };
    struct inf_quoted quoted = {{0}};
    const uint8_t *bytes = (const uint8_t *)text;
    size_t left = strlen(text);
    size_t size = 0;
    while (left > 0) {
        size_t character = character_size(bytes, left);
        bool shown = character > 1 || (character == 1 && bytes[0] >= 0x20 && bytes[0] != 0x7f);
        // U+0080 to U+009F are controls too.
        if (character == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0)
            shown = false;
        size_t taken = character == 0 ? 1 : character;
        size_t written = shown ? taken : 1;
        if (size + written > ROOM) {
            memcpy(quoted.text + size, "...", 3);
            break;
        }
        if (shown)
            memcpy(quoted.text + size, bytes, taken);
        else
            quoted.text[size] = '?';
        size += written;
        bytes += taken;
        left -= taken;
    }
    return quoted;
}
