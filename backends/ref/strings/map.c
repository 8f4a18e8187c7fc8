// SPDX-License-Identifier: Apache-2.0
// Functions of one or two strings: upper and lower case, joining, looking up, matching.
#include <locale.h>
#include <wctype.h>

#include "backends/base/pattern/pattern.h"
#include "backends/base/pattern/pattern_parse.h"
#include "backends/ref/text.h"

// --- upper and lower case ---

// Writes a character as UTF-8. Returns the address behind it.
static uint8_t *put_character(uint8_t *to, uint32_t character)
{
    if (character < 0x80) {
        *to++ = (uint8_t)character;
        return to;
    }
    unsigned more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint8_t heads[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (uint8_t)(heads[more] | character >> (6 * more));
    while (more-- > 0)
        *to++ = (uint8_t)(0x80 | (character >> (6 * more) & 0x3f));
    return to;
}

// Writes `string` in the other case to `to`, which has room for twice its bytes. Returns how many
// bytes were written. A letter of the other case takes at most 3 bytes where it took 2.
static size_t change_case(uint8_t *to, struct inf_span string, bool upper, locale_t locale)
{
    uint8_t *begin = to;
    for (size_t at = 0, size; at < string.size; at += size) {
        uint32_t character;
        size = inf_pattern_character(string, at, &character);
        bool is_valid = character < 0x80 || size > 1;
        if (is_valid) {
            wint_t changed = upper ? towupper_l((wint_t)character, locale)
                                   : towlower_l((wint_t)character, locale);
            to = put_character(to, (uint32_t)changed);
        } else {
            *to++ = string.data[at];
        }
    }
    return (size_t)(to - begin);
}

enum inf_code inf_ref_string_case(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    // C.UTF-8 has the simple case mappings of Unicode, and is built into glibc.
    locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    enum inf_code code = INF_OK;
    if (locale == (locale_t)0)
        return inf_fail(err, INF_UNAVAILABLE, "the system has no locale C.UTF-8");
    for (size_t i = 0; code == INF_OK && i < x->count; i++) {
        struct inf_span string;
        uint8_t *room = NULL;
        code = inf_ref_load_string(call, x, i, &string, err);
        if (code == INF_OK)
            code = inf_ref_reserve_string(call, 2 * string.size, &room, err);
        if (code == INF_OK) // the string may have moved
            code = inf_ref_load_string(call, x, i, &string, err);
        if (code == INF_OK)
            inf_ref_commit_string(
                call, &call->outputs[0], i,
                change_case(room, string, call->node->attrs.string_case.upper, locale));
    }
    freelocale(locale);
    return code;
}

// --- repairing UTF-8 ---

// Returns how many bytes at `at`, which do not begin a character, the decoder replaces together:
// the longest begin of a character that they are, at least one byte.
static size_t measure_broken(struct inf_span string, size_t at)
{
    const uint8_t *bytes = string.data + at;
    size_t room = string.size - at, wanted = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
    uint8_t low = bytes[0] == 0xe0 ? 0xa0 : bytes[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = bytes[0] == 0xed ? 0x9f : bytes[0] == 0xf4 ? 0x8f : 0xbf;
    size_t size = 1;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
        return 1;
    for (; size < wanted && size < room && bytes[size] >= low && bytes[size] <= high; size++) {
        low = 0x80;
        high = 0xbf;
    }
    return size;
}

// Writes the repaired string to `to`, unless it is NULL. Returns the size of the repaired string.
static size_t repair_string(uint8_t *to, struct inf_span string)
{
    static const uint8_t replacement[] = {0xef, 0xbf, 0xbd};
    size_t total = 0;
    for (size_t at = 0, size; at < string.size; at += size) {
        uint32_t character;
        size = inf_pattern_character(string, at, &character);
        bool is_valid = size > 1 || string.data[at] < 0x80;
        struct inf_span piece = {string.data + at, size};
        if (!is_valid) {
            size = measure_broken(string, at);
            piece = (struct inf_span){replacement, sizeof replacement};
        }
        if (to != NULL)
            memcpy(to + total, piece.data, piece.size);
        total += piece.size;
    }
    return total;
}

enum inf_code inf_ref_string_repair(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    for (size_t i = 0; i < x->count; i++) {
        struct inf_span string;
        uint8_t *room;
        INF_TRY(inf_ref_load_string(call, x, i, &string, err));
        size_t size = repair_string(NULL, string);
        INF_TRY(inf_ref_reserve_string(call, size, &room, err));
        INF_TRY(inf_ref_load_string(call, x, i, &string, err)); // it may have moved
        (void)repair_string(room, string);
        inf_ref_commit_string(call, &call->outputs[0], i, size);
    }
    return INF_OK;
}

// --- joining ---

enum inf_code inf_ref_string_join(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, call->inputs[0].shape);
    inf_ref_walk_broadcast(&walk, 1, call->inputs[1].shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        struct inf_span parts[2];
        uint8_t *room;
        for (uint32_t k = 0; k < 2; k++)
            INF_TRY(inf_ref_load_string(call, &call->inputs[k], (size_t)walk.offsets[k], &parts[k],
                                        err));
        INF_TRY(inf_ref_reserve_string(call, parts[0].size + parts[1].size, &room, err));
        for (uint32_t k = 0; k < 2; k++) { // the strings may have moved
            INF_TRY(inf_ref_load_string(call, &call->inputs[k], (size_t)walk.offsets[k], &parts[k],
                                        err));
            if (parts[k].size > 0)
                memcpy(room, parts[k].data, parts[k].size);
            room += parts[k].size;
        }
        inf_ref_commit_string(call, y, i, parts[0].size + parts[1].size);
    }
    return INF_OK;
}

// --- looking up ---

// Sets *index to the place of a string among the sorted keys, or to -1.
static enum inf_code find_key(const struct inf_ref_call *call, struct inf_span string,
                              int64_t *index, struct inf_error *err)
{
    const struct inf_ref_tensor *keys = &call->inputs[1];
    size_t low = 0, high = keys->count;
    *index = -1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct inf_span key;
        INF_TRY(inf_ref_load_string(call, keys, middle, &key, err));
        int order = inf_string_compare(key, string);
        if (order == 0) {
            *index = (int64_t)middle;
            return INF_OK;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return INF_OK;
}

enum inf_code inf_ref_string_find(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    for (size_t i = 0; i < y->count; i++) {
        struct inf_span string;
        int64_t index;
        INF_TRY(inf_ref_load_string(call, &call->inputs[0], i, &string, err));
        INF_TRY(find_key(call, string, &index, err));
        inf_ref_store_int(y, i, index);
    }
    return INF_OK;
}

// --- matching ---

static enum inf_code match_all(const struct inf_ref_call *call, struct inf_pattern *pattern,
                               struct inf_error *err)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    for (size_t i = 0; i < y->count; i++) {
        struct inf_span string;
        bool matches;
        INF_TRY(inf_ref_load_string(call, &call->inputs[0], i, &string, err));
        INF_TRY(inf_pattern_match(pattern, string, call->cancelled, &matches, err));
        inf_ref_store_int(y, i, matches);
    }
    return INF_OK;
}

enum inf_code inf_ref_string_match(const struct inf_ref_call *call, struct inf_error *err)
{
    struct inf_pattern *pattern;
    struct inf_span text;
    INF_TRY(inf_ref_load_string(call, &call->inputs[1], 0, &text, err));
    INF_TRY(inf_pattern_compile(&pattern, text, err));
    enum inf_code code = match_all(call, pattern, err);
    inf_pattern_destroy(&pattern);
    return code;
}
