// SPDX-License-Identifier: Apache-2.0
// Exporters keep labels in the metadata of a model as one text: most as the text of a Python
// dictionary, {0: 'person', 1: 'bicycle'}, others as a list, as JSON, or as lines. One parser reads
// all of them, because they differ only in quotes and in keys. Labels are decoded into one buffer
// as large as the text, since no escape is shorter than what it stands for.
#include "backends/import/common/label_text.h"

#include <inttypes.h>
#include <string.h>

#include "backends/import/common/description.h"
#include "proto/core/utf8.h"

// A label that was read, and its key in a map.
struct label {
    uint64_t key;
    const char *text;
};

struct parser {
    struct inf_span left;
    struct inf_arena *arena;
    char *end; // where the next text is decoded to
    struct inf_error *err;
};

static enum inf_code fail_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for labels");
}

static uint8_t peek_byte(const struct parser *parser)
{
    return parser->left.size > 0 ? parser->left.data[0] : 0;
}

static uint8_t take_byte(struct parser *parser)
{
    uint8_t byte = peek_byte(parser);
    if (parser->left.size > 0) {
        parser->left.data++;
        parser->left.size--;
    }
    return byte;
}

static void skip_spaces(struct parser *parser)
{
    while (parser->left.size > 0 && memchr(" \t\r\n", peek_byte(parser), 4) != NULL)
        (void)take_byte(parser);
}

// --- texts ---

static void put_byte(struct parser *parser, uint32_t byte)
{
    *parser->end++ = (char)byte;
}

// Appends a character as UTF-8; control characters and halves of surrogate pairs become spaces.
static void put_character(struct parser *parser, uint32_t character)
{
    if (character < 0x20 || character == 0x7f || (character >= 0xd800 && character < 0xe000))
        character = ' ';
    if (character < 0x80) {
        put_byte(parser, character);
    } else if (character < 0x800) {
        put_byte(parser, 0xc0 | character >> 6);
        put_byte(parser, 0x80 | (character & 0x3f));
    } else {
        put_byte(parser, 0xe0 | character >> 12);
        put_byte(parser, 0x80 | (character >> 6 & 0x3f));
        put_byte(parser, 0x80 | (character & 0x3f));
    }
}

static enum inf_code read_hex(struct parser *parser, int digits, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < digits; i++) {
        uint8_t byte = take_byte(parser);
        uint32_t digit = byte >= '0' && byte <= '9'   ? byte - '0'
                         : byte >= 'a' && byte <= 'f' ? byte - 'a' + 10
                         : byte >= 'A' && byte <= 'F' ? byte - 'A' + 10
                                                      : 16;
        if (digit == 16)
            return inf_fail(parser->err, INF_INVALID, "an escape of a label has no %d digits",
                            digits);
        *out = *out * 16 + digit;
    }
    return INF_OK;
}

static enum inf_code read_escape(struct parser *parser)
{
    uint8_t kind = take_byte(parser);
    uint32_t character = kind;
    if (kind == 'x')
        INF_TRY(read_hex(parser, 2, &character));
    else if (kind == 'u')
        INF_TRY(read_hex(parser, 4, &character));
    else if (kind != 0 && strchr("ntrbf", kind) != NULL)
        character = ' ';
    else if (kind == 0 || strchr("\\/'\"", kind) == NULL)
        return inf_fail(parser->err, INF_INVALID, "a label has the unknown escape '\\%c'",
                        kind > 0x20 && kind < 0x7f ? kind : '?');
    put_character(parser, character);
    return INF_OK;
}

// Reads a text in quotes, or a bare one that ends before a comma, a colon or a bracket.
static enum inf_code read_item(struct parser *parser, const char **out)
{
    skip_spaces(parser);
    *out = parser->end;
    uint8_t quote = peek_byte(parser);
    bool is_quoted = quote == '\'' || quote == '"';
    if (is_quoted)
        (void)take_byte(parser);
    while (parser->left.size > 0) {
        uint8_t byte = peek_byte(parser);
        if (is_quoted ? byte == quote : memchr(",:]})", byte, 5) != NULL)
            break;
        (void)take_byte(parser);
        if (is_quoted && byte == '\\')
            INF_TRY(read_escape(parser));
        else
            put_byte(parser, byte < 0x20 || byte == 0x7f ? ' ' : byte);
    }
    if (parser->left.size == 0)
        return inf_fail(parser->err, INF_INVALID, "the labels end within a label");
    if (is_quoted)
        (void)take_byte(parser);
    while (!is_quoted && parser->end > *out && parser->end[-1] == ' ')
        parser->end--;
    put_byte(parser, 0);
    return INF_OK;
}

// --- lists and maps ---

static enum inf_code read_key(struct parser *parser, uint64_t *key)
{
    const char *text;
    char *before = parser->end;
    INF_TRY(read_item(parser, &text));
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 9 || text[digits] != '\0')
        return inf_fail(parser->err, INF_INVALID, "'%s' is the key of a label, wanted a number",
                        inf_quote(text).text);
    *key = 0;
    for (size_t i = 0; i < digits; i++)
        *key = *key * 10 + (uint64_t)(text[i] - '0');
    parser->end = before;
    skip_spaces(parser);
    if (take_byte(parser) != ':')
        return inf_fail(parser->err, INF_INVALID, "key %" PRIu64 " of the labels has no label",
                        *key);
    return INF_OK;
}

static enum inf_code read_items(struct parser *parser, bool is_map, struct label *labels,
                                uint32_t *count)
{
    for (;;) {
        skip_spaces(parser);
        if (memchr("]})", peek_byte(parser), 3) != NULL && parser->left.size > 0)
            return INF_OK;
        labels[*count].key = *count;
        if (is_map)
            INF_TRY(read_key(parser, &labels[*count].key));
        INF_TRY(read_item(parser, &labels[*count].text));
        (*count)++;
        skip_spaces(parser);
        if (peek_byte(parser) == ',')
            (void)take_byte(parser);
        else if (memchr("]})", peek_byte(parser), 3) == NULL || parser->left.size == 0)
            return inf_fail(parser->err, INF_INVALID, "label %u is followed by no comma",
                            *count - 1);
    }
}

// Joins the labels in the order of their keys.
static enum inf_code join_labels(struct inf_label_list *list, struct parser *parser,
                                 const struct label *labels, uint32_t count, size_t size)
{
    const char **ordered = inf_arena_alloc(parser->arena, ((size_t)count + 1) * sizeof *ordered);
    char *joined = inf_arena_alloc(parser->arena, size + 1);
    if (ordered == NULL || joined == NULL)
        return fail_memory(parser->err);
    for (uint32_t i = 0; i < count; i++) {
        if (labels[i].key >= count || ordered[labels[i].key] != NULL)
            return inf_fail(parser->err, INF_INVALID,
                            "%u labels have the key %" PRIu64 ", wanted 0 to %u, each once", count,
                            labels[i].key, count - 1);
        ordered[labels[i].key] = labels[i].text;
    }
    *list = (struct inf_label_list){joined, count};
    for (uint32_t i = 0; i < count; i++) {
        size_t length = strlen(ordered[i]) + 1;
        memcpy(joined, ordered[i], length);
        joined += length;
    }
    return INF_OK;
}

static enum inf_code read_list(struct inf_label_list *list, struct parser *parser)
{
    size_t capacity = 2;
    for (size_t i = 0; i < parser->left.size; i++)
        capacity += parser->left.data[i] == ',';
    struct label *labels = inf_arena_alloc(parser->arena, capacity * sizeof *labels);
    // A label has at most as many bytes as its text, and a NUL in place of its comma or bracket.
    char *decoded = inf_arena_alloc(parser->arena, parser->left.size + 1);
    if (labels == NULL || decoded == NULL)
        return fail_memory(parser->err);
    uint32_t count = 0;
    parser->end = decoded;
    bool is_map = take_byte(parser) == '{';
    INF_TRY(read_items(parser, is_map, labels, &count));
    return join_labels(list, parser, labels, count, (size_t)(parser->end - decoded));
}

enum inf_code inf_label_list_read(struct inf_label_list *list, struct inf_arena *arena,
                                  struct inf_span text, struct inf_error *err)
{
    struct parser parser = {.left = text, .arena = arena, .err = err};
    *list = (struct inf_label_list){0};
    if (text.size > INF_DESCRIPTION_LABEL_BYTES)
        return inf_fail(err, INF_EXHAUSTED, "the labels have %zu bytes, at most %u are read",
                        text.size, INF_DESCRIPTION_LABEL_BYTES);
    if (!inf_utf8_valid(text))
        return inf_fail(err, INF_INVALID, "the labels are no UTF-8");
    skip_spaces(&parser);
    if (parser.left.size > 0 && memchr("[{(", peek_byte(&parser), 3) != NULL)
        return read_list(list, &parser);
    char *lines = inf_arena_alloc(arena, parser.left.size + 2);
    if (lines == NULL)
        return fail_memory(err);
    for (size_t i = 0; i < parser.left.size; i++) {
        char byte = (char)parser.left.data[i];
        lines[i] = byte == '\t' ? ' ' : byte;
    }
    *list = (struct inf_label_list){lines, inf_description_split_labels(lines, parser.left.size)};
    return INF_OK;
}
