// SPDX-License-Identifier: Apache-2.0
// Checks UTF-8 by the table of the Unicode standard. Each lead byte determines the size of the
// character. Four lead bytes also restrict the range of the second byte.
#include "proto/core/utf8.h"

#include <string.h>

size_t inf_utf8_character_size(const uint8_t *at, size_t room)
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
    // After these lead bytes, some values of the second byte are not valid: they would make
    // overlong forms, surrogates, or characters above U+10FFFF.
    if ((lead == 0xe0 && at[1] < 0xa0) || (lead == 0xed && at[1] > 0x9f) ||
        (lead == 0xf0 && at[1] < 0x90) || (lead == 0xf4 && at[1] > 0x8f))
        return 0;
    return size;
}

bool inf_utf8_valid(struct inf_span bytes)
{
    size_t at = 0;
    while (at < bytes.size) {
        size_t size = inf_utf8_character_size(bytes.data + at, bytes.size - at);
        if (size == 0)
            return false;
        at += size;
    }
    return true;
}

// Returns whether the character at `at` is printable. `size` is its size in bytes, or 0 if the
// bytes are no valid character.
static bool is_shown(const uint8_t *at, size_t size)
{
    // U+0080 to U+009F are control characters.
    if (size == 2 && at[0] == 0xc2 && at[1] < 0xa0)
        return false;
    return size > 1 || (size == 1 && at[0] >= 0x20 && at[0] != 0x7f);
}

void inf_text_clean(char *text)
{
    uint8_t *at = (uint8_t *)text;
    for (size_t left = strlen(text), taken; left > 0; at += taken, left -= taken) {
        size_t size = inf_utf8_character_size(at, left);
        taken = size == 0 ? 1 : size;
        if (!is_shown(at, size))
            memset(at, '?', taken);
    }
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
        size_t character = inf_utf8_character_size(bytes, left);
        bool shown = is_shown(bytes, character) && *bytes != '"';
        size_t taken = character == 0 ? 1 : character;
        size_t written = shown ? taken : 1;
        if (size + written > ROOM) {
            memcpy(quoted.text + size, "...", 3);
            break;
        }
        if (shown)
            memcpy(quoted.text + size, bytes, taken);
        else
            quoted.text[size] = *bytes == '"' ? '\'' : '?';
        size += written;
        bytes += taken;
        left -= taken;
    }
    return quoted;
}
