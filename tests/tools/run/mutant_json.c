// SPDX-License-Identifier: Apache-2.0
// Cuts a JSON document into parts: every value is a part.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/models/mutate.h"
#include "tests/tools/run/mutant.h"

// Values that are nested deeper than this are not cut into parts.
#define DEPTH_MOST 64

static size_t skip_space(const struct mutant *m, size_t at)
{
    while (at < m->size && strchr(" \t\r\n", m->data[at]) != NULL)
        at++;
    return at;
}

// Returns the end of the string that begins at `at`.
static size_t skip_string(const struct mutant *m, size_t at)
{
    for (at++; at < m->size && m->data[at] != '"'; at++)
        at += m->data[at] == '\\';
    return at + 1 < m->size ? at + 1 : m->size;
}

static uint32_t hash_text(const char *text, size_t size)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    return hash;
}

// Returns the type of the value that begins with `byte`.
static char type_of(char byte)
{
    if (byte == '{' || byte == '[' || byte == '"')
        return byte;
    return byte == '-' || (byte >= '0' && byte <= '9') ? '0' : 'l';
}

// Cuts the value that begins at `at`, and returns its end. The recursion depth is at most
// DEPTH_MOST.
static size_t cut_value(struct mutant_parts *parts, const struct mutant *m, size_t at,
                        uint32_t parent, uint32_t key, unsigned depth)
{
    if (at >= m->size)
        return m->size;
    char type = type_of(m->data[at]);
    uint32_t index = mutant_parts_add(
        parts,
        &(struct mutant_part){
            .begin = at, .body = at, .parent = parent, .key = key ^ (uint8_t)type, .type = type});
    if (type == '"') {
        at = skip_string(m, at);
    } else if ((type == '{' || type == '[') && depth < DEPTH_MOST) {
        for (at = skip_space(m, at + 1);
             at < m->size && m->data[at] != '}' && m->data[at] != ']';) {
            uint32_t child_key = key;
            if (type == '{') {
                size_t end = skip_string(m, at);
                child_key = hash_text(m->data + at, end - at);
                at = skip_space(m, skip_space(m, end) + 1);
            }
            at = skip_space(m, cut_value(parts, m, at, index, child_key, depth + 1));
            if (at < m->size && m->data[at] == ',')
                at = skip_space(m, at + 1);
        }
        at = at < m->size ? at + 1 : at;
    } else {
        while (at < m->size && strchr(",]} \t\r\n", m->data[at]) == NULL)
            at++;
    }
    parts->items[index].end = at;
    return at;
}

static void cut_parts(struct mutant_parts *parts, const struct mutant *document)
{
    cut_value(parts, document, skip_space(document, 0), MUTANT_NO_PART, 0, 0);
}

static void replace_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                         const char *text, size_t size)
{
    const struct mutant_part *p = &parts->items[part];
    mutant_splice(mutant, p->begin, p->end, text, size);
}

static void drop_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part)
{
    const struct mutant_part *p = &parts->items[part];
    size_t begin = p->begin, end = skip_space(mutant, p->end);
    // Go back to the preceding comma or to the parent's opening bracket.
    while (begin > 0 && strchr(",[{", mutant->data[begin - 1]) == NULL)
        begin--;
    if (end < mutant->size && mutant->data[end] == ',')
        end++;
    else if (begin > 0 && mutant->data[begin - 1] == ',')
        begin--;
    mutant_splice(mutant, begin, end, "", 0);
}

static void repeat_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                        unsigned times)
{
    // Repeat the enclosing array element instead of an object member, because the importer refuses
    // an object with a repeated key at once.
    while (parts->items[part].parent != MUTANT_NO_PART &&
           parts->items[parts->items[part].parent].type == '{')
        part = parts->items[part].parent;
    const struct mutant_part *p = &parts->items[part];
    size_t begin = p->begin, unit = p->end - begin + 1;
    if (p->parent == MUTANT_NO_PART || unit * times > (size_t)4 << 20)
        times = 1;
    char *text = malloc(unit * times);
    for (unsigned i = 0; i < times; i++) {
        memcpy(text + i * unit, mutant->data + begin, unit - 1);
        text[i * unit + unit - 1] = ',';
    }
    mutant_splice(mutant, begin, begin, text, unit * times);
    free(text);
}

static const char *put_bomb(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                            uint64_t *state)
{
    static const size_t depths[] = {8, 60, 70, 1000, 100000};
    static const char *const opens[] = {"[", "{\"a\":", "{\"func\":{\"name\":"};
    size_t depth = depths[inf_mutate_random(state) % 5];
    const char *open = opens[inf_mutate_random(state) % 3];
    size_t unit = strlen(open), closes = 0;
    char *text = malloc(depth * (unit + 2) + 1), *at = text;
    for (size_t i = 0; i < depth; i++, at += unit)
        memcpy(at, open, unit);
    *at++ = '0';
    for (size_t i = 0; i < depth; i++)
        for (closes = unit; closes-- > 0;)
            if (open[closes] == '[' || open[closes] == '{')
                *at++ = open[closes] == '[' ? ']' : '}';
    replace_part(mutant, parts, part, text, (size_t)(at - text));
    free(text);
    return "bomb";
}

static const char *change_part(struct mutant *mutant, const struct mutant_parts *parts,
                               uint32_t part, uint64_t *state)
{
    static const char *const numbers[] = {"-1",          "0",
                                          "1",           "3",
                                          "65536",       "1000000",
                                          "2147483647",  "2147483648",
                                          "4294967297",  "9223372036854775807",
                                          "-2147483649", "-9223372036854775808"};
    static const char *const others[] = {
        "null",          "true",         "0",           "-1",          "1e308",        "\"\"",
        "\"x\"",         "\"-1\"",       "[]",          "{}",          "[[]]",         "[-1]",
        "\"DT_STRING\"", "\"DT_INT32\"", "\"DT_BOOL\"", "\"DT_HALF\"", "\"DT_INT64\"", "{\"a\":1}",
        "\"^x\"",        "\"x:9\""};
    const struct mutant_part *p = &parts->items[part];
    char text[64];
    if (inf_mutate_random(state) % 16 == 0)
        return put_bomb(mutant, parts, part, state);
    bool quoted = p->type == '"' && type_of(mutant->data[p->begin + 1]) == '0';
    const char *put = others[inf_mutate_random(state) % (sizeof others / sizeof *others)];
    bool number = p->type == '0' || quoted;
    if (number && inf_mutate_random(state) % 4 > 0) {
        put = numbers[inf_mutate_random(state) % (sizeof numbers / sizeof *numbers)];
        snprintf(text, sizeof text, quoted ? "\"%s\"" : "%s", put);
        put = text;
    }
    replace_part(mutant, parts, part, put, strlen(put));
    return number ? "number" : "type";
}

const struct mutant_format mutant_json = {cut_parts, replace_part, drop_part, repeat_part,
                                          change_part};
