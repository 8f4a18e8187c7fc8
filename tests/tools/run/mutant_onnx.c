// SPDX-License-Identifier: Apache-2.0
// Cuts an ONNX model into parts: every field of its messages is a part. Can also add functions that
// call themselves.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/models/mutate.h"
#include "tests/tools/run/mutant.h"

// Messages of onnx.proto that contain other messages, or fields that are worth changing.
enum message {
    MODEL,
    GRAPH,
    NODE,
    ATTRIBUTE,
    TENSOR,
    VALUE,
    TYPE,
    TENSOR_TYPE,
    LIST_TYPE,
    SHAPE,
    DIM,
    FUNCTION,
    OPSET,
    LEAF
};

static const struct {
    uint8_t message, field, child;
} schema[] = {
    {MODEL, 7, GRAPH},         {MODEL, 25, FUNCTION}, {MODEL, 8, OPSET},
    {GRAPH, 1, NODE},          {GRAPH, 5, TENSOR},    {GRAPH, 11, VALUE},
    {GRAPH, 12, VALUE},        {GRAPH, 13, VALUE},    {NODE, 5, ATTRIBUTE},
    {ATTRIBUTE, 5, TENSOR},    {ATTRIBUTE, 6, GRAPH}, {ATTRIBUTE, 10, TENSOR},
    {ATTRIBUTE, 11, GRAPH},    {VALUE, 2, TYPE},      {TYPE, 1, TENSOR_TYPE},
    {TYPE, 4, LIST_TYPE},      {TYPE, 9, LIST_TYPE},  {LIST_TYPE, 1, TYPE},
    {TENSOR_TYPE, 2, SHAPE},   {SHAPE, 1, DIM},       {FUNCTION, 7, NODE},
    {FUNCTION, 11, ATTRIBUTE}, {FUNCTION, 9, OPSET},
};

#define KEY(message, field) ((uint32_t)(message) << 16 | (uint32_t)(field))

static enum message child_of(enum message message, uint64_t field)
{
    for (size_t i = 0; i < sizeof schema / sizeof *schema; i++)
        if (schema[i].message == message && schema[i].field == field)
            return (enum message)schema[i].child;
    return LEAF;
}

// Reads a varint at *at. If there is none, returns 0 and sets *at to `end`.
static uint64_t read_varint(const struct mutant *m, size_t *at, size_t end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = (uint8_t)m->data[(*at)++];
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return value;
    }
    *at = end;
    return 0;
}

static size_t write_varint(char *text, uint64_t value)
{
    size_t size = 0;
    for (; value >= 128; value >>= 7)
        text[size++] = (char)(value | 128);
    text[size++] = (char)value;
    return size;
}

// Cuts a message into parts. The recursion is as deep as the schema and the nesting of graphs.
static void cut_message(struct mutant_parts *parts, const struct mutant *m, size_t at, size_t end,
                        uint32_t parent, enum message message, unsigned depth)
{
    while (at < end && depth < 64) {
        size_t begin = at;
        uint64_t tag = read_varint(m, &at, end), size = 0;
        enum message child = child_of(message, tag >> 3);
        struct mutant_part part = {
            .begin = begin, .parent = parent, .key = KEY(message, tag >> 3), .type = 'v'};
        if ((tag & 7) == 2)
            size = read_varint(m, &at, end);
        part.body = at;
        if ((tag & 7) == 0)
            read_varint(m, &at, end);
        else if ((tag & 7) == 2)
            part.type = child == LEAF ? 'b' : 'm';
        else
            size = (tag & 7) == 5 ? 4 : 8;
        at = size > end - at ? end : at + size;
        part.end = at;
        uint32_t index = mutant_parts_add(parts, &part);
        if (part.type == 'm')
            cut_message(parts, m, part.body, part.end, index, child, depth + 1);
    }
}

static void cut_parts(struct mutant_parts *parts, const struct mutant *document)
{
    cut_message(parts, document, 0, document->size, MUTANT_NO_PART, MODEL, 0);
}

// Adds `grown` to the length field of `part` and of each part that encloses it, after `part` has
// become longer by so many bytes.
static void grow_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                      int64_t grown)
{
    for (; part != MUTANT_NO_PART; part = parts->items[part].parent) {
        const struct mutant_part *p = &parts->items[part];
        size_t at = p->begin;
        char text[10];
        read_varint(mutant, &at, p->body);
        size_t size = write_varint(text, (uint64_t)((int64_t)(p->end - p->body) + grown));
        mutant_splice(mutant, at, p->body, text, size);
        grown += (int64_t)size - (int64_t)(p->body - at);
    }
}

static void replace_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                         const char *text, size_t size)
{
    const struct mutant_part *p = &parts->items[part];
    int64_t grown = (int64_t)size - (int64_t)(p->end - p->body);
    mutant_splice(mutant, p->body, p->end, text, size);
    grow_part(mutant, parts, p->type == 'v' ? p->parent : part, grown);
}

static void drop_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part)
{
    const struct mutant_part *p = &parts->items[part];
    mutant_splice(mutant, p->begin, p->end, "", 0);
    grow_part(mutant, parts, p->parent, -(int64_t)(p->end - p->begin));
}

static void insert_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                        const char *text, size_t size)
{
    const struct mutant_part *p = &parts->items[part];
    mutant_splice(mutant, p->begin, p->begin, text, size);
    grow_part(mutant, parts, p->parent, (int64_t)size);
}

static void repeat_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                        unsigned times)
{
    const struct mutant_part *p = &parts->items[part];
    size_t unit = p->end - p->begin;
    char *text = malloc(unit * times + 1);
    for (unsigned i = 0; i < times; i++)
        memcpy(text + i * unit, mutant->data + p->begin, unit);
    insert_part(mutant, parts, part, text, unit * times);
    free(text);
}

// Appends a protobuf field with `bytes` to the buffer `text`, which must have room for the field.
static size_t put_field(char *text, unsigned field, const char *bytes, size_t size)
{
    char tag[10];
    size_t used = write_varint(tag, (uint64_t)field << 3 | 2);
    memcpy(text, tag, used);
    used += write_varint(text + used, size);
    memcpy(text + used, bytes, size);
    return used + size;
}

// Replaces a part by a node with a branch whose graph contains a node with a branch, and so on.
static const char *put_bomb(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                            uint64_t *state)
{
    static const unsigned depths[] = {4, 9, 30, 70, 2000};
    // Numbers of the nested fields: a graph in an attribute, the attribute in a node, the node in a
    // graph.
    static const unsigned path[] = {6, 5, 1};
    unsigned depth = depths[inf_mutate_random(state) % 5];
    const struct mutant_part *p = &parts->items[part];
    size_t size = p->end - p->body, room = size + (size_t)depth * 3 * 12 + 64;
    char *text = malloc(room), *outer = malloc(room);
    memcpy(text, mutant->data + p->body, size);
    for (unsigned i = 0; i < depth * 3; i++) {
        size = put_field(outer, path[i % 3], text, size);
        char *swap = text;
        text = outer;
        outer = swap;
    }
    replace_part(mutant, parts, part, text, size);
    free(text);
    free(outer);
    return "bomb";
}

// Adds a function that has the name of one of the operators and calls itself.
static const char *add_function(struct mutant *mutant, const struct mutant_parts *parts,
                                uint64_t *state)
{
    uint32_t part = inf_mutate_random(state) % parts->count;
    for (uint32_t i = 0; parts->items[part].key != KEY(NODE, 4) && i < parts->count; i++)
        part = (part + 1) % parts->count;
    const struct mutant_part *p = &parts->items[part];
    size_t length = p->end - p->body;
    if (p->key != KEY(NODE, 4) || length > 100)
        return "nothing";
    char node[256], body[512], text[600];
    size_t size = put_field(node, 4, mutant->data + p->body, length);
    size += put_field(node + size, 1, "a", 1);
    size += put_field(node + size, 2, "b", 1);
    size_t used = put_field(body, 1, mutant->data + p->body, length);
    used += put_field(body + used, 4, "a", 1);
    used += put_field(body + used, 5, "b", 1);
    used += put_field(body + used, 7, node, size);
    size = put_field(text, 25, body, used);
    mutant_splice(mutant, mutant->size, mutant->size, text, size);
    return "function";
}

static const char *change_part(struct mutant *mutant, const struct mutant_parts *parts,
                               uint32_t part, uint64_t *state)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       7,
                                       9,
                                       16,
                                       127,
                                       65536,
                                       1000000,
                                       INT32_MAX,
                                       (uint64_t)INT32_MAX + 1,
                                       UINT32_MAX,
                                       (uint64_t)1 << 40,
                                       INT64_MAX,
                                       (uint64_t)INT64_MIN,
                                       UINT64_MAX};
    static const char *const texts[] = {"", "x", "\xff\xfe", "a\nb", "../x", "ai.onnx", "N"};
    const struct mutant_part *p = &parts->items[part];
    char text[10];
    if (inf_mutate_random(state) % 16 == 0)
        return add_function(mutant, parts, state);
    if (p->type == 'm')
        return put_bomb(mutant, parts, part, state);
    if (p->type == 'v' && ((uint8_t)mutant->data[p->begin] & 7) == 0) {
        size_t size = write_varint(
            text, numbers[inf_mutate_random(state) % (sizeof numbers / sizeof *numbers)]);
        replace_part(mutant, parts, part, text, size);
        return "number";
    }
    if (p->type == 'v' || (p->end - p->body > 8 && inf_mutate_random(state) % 2 == 0)) {
        // Overwrite eight bytes, because fixed-size numbers and weights hold sizes, axes and
        // bounds.
        uint64_t number = numbers[inf_mutate_random(state) % (sizeof numbers / sizeof *numbers)];
        size_t words = (p->end - p->body) / 8;
        size_t at = p->body + (words > 1 ? inf_mutate_random(state) % words * 8 : 0);
        memcpy(mutant->data + at, &number, p->end - at < 8 ? p->end - at : 8);
        return "word";
    }
    const char *put = texts[inf_mutate_random(state) % (sizeof texts / sizeof *texts)];
    replace_part(mutant, parts, part, put, strlen(put));
    return "text";
}

const struct mutant_format mutant_onnx = {cut_parts, replace_part, drop_part, repeat_part,
                                          change_part};
