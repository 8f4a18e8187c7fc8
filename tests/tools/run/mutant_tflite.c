// SPDX-License-Identifier: Apache-2.0
// Cuts a TFLite model into parts: scalar fields, elements of vectors, entries of vtables, and whole
// vectors with their counts. The parts of a flatbuffer refer to each other by distances, so all
// changes are made in place and nothing moves.
#include <string.h>

#include "tests/support/models/mutate.h"
#include "tests/tools/run/mutant.h"

// The tables of schema.fbs that hold what an importer reads.
enum table {
    MODEL,
    CODE,
    SUBGRAPH,
    TENSOR,
    QUANTIZATION,
    OPERATOR,
    OPTIONS,
    BUFFER,
    SIGNATURE,
    MAP,
    SPARSITY,
    LEVEL,
    INDICES,
};

// Kinds of fields: a number of `size` bytes, a vector of such numbers, a table of type `child`, or
// a vector of such tables.
enum kind {
    SCALAR,
    VECTOR,
    CHILD,
    CHILDREN
};

static const struct {
    uint8_t table, field, kind, size, child;
} schema[] = {
    {MODEL, 0, SCALAR, 4, 0},
    {MODEL, 1, CHILDREN, 4, CODE},
    {MODEL, 2, CHILDREN, 4, SUBGRAPH},
    {MODEL, 3, VECTOR, 1, 0},
    {MODEL, 4, CHILDREN, 4, BUFFER},
    {MODEL, 7, CHILDREN, 4, SIGNATURE},
    {CODE, 0, SCALAR, 1, 0},
    {CODE, 1, VECTOR, 1, 0},
    {CODE, 2, SCALAR, 4, 0},
    {CODE, 3, SCALAR, 4, 0},
    {SUBGRAPH, 0, CHILDREN, 4, TENSOR},
    {SUBGRAPH, 1, VECTOR, 4, 0},
    {SUBGRAPH, 2, VECTOR, 4, 0},
    {SUBGRAPH, 3, CHILDREN, 4, OPERATOR},
    {SUBGRAPH, 4, VECTOR, 1, 0},
    {TENSOR, 0, VECTOR, 4, 0},
    {TENSOR, 1, SCALAR, 1, 0},
    {TENSOR, 2, SCALAR, 4, 0},
    {TENSOR, 3, VECTOR, 1, 0},
    {TENSOR, 4, CHILD, 4, QUANTIZATION},
    {TENSOR, 5, SCALAR, 1, 0},
    {TENSOR, 6, CHILD, 4, SPARSITY},
    {TENSOR, 7, VECTOR, 4, 0},
    {QUANTIZATION, 2, VECTOR, 4, 0},
    {QUANTIZATION, 3, VECTOR, 8, 0},
    {QUANTIZATION, 4, SCALAR, 1, 0},
    {QUANTIZATION, 5, CHILD, 4, OPTIONS},
    {QUANTIZATION, 6, SCALAR, 4, 0},
    {OPERATOR, 0, SCALAR, 4, 0},
    {OPERATOR, 1, VECTOR, 4, 0},
    {OPERATOR, 2, VECTOR, 4, 0},
    {OPERATOR, 3, SCALAR, 1, 0},
    {OPERATOR, 4, CHILD, 4, OPTIONS},
    {OPERATOR, 5, VECTOR, 1, 0},
    {OPERATOR, 11, SCALAR, 1, 0},
    {OPERATOR, 12, CHILD, 4, OPTIONS},
    {OPTIONS, 0, SCALAR, 1, 0},
    {OPTIONS, 1, SCALAR, 1, 0},
    {OPTIONS, 2, SCALAR, 1, 0},
    {OPTIONS, 3, SCALAR, 1, 0},
    {OPTIONS, 4, SCALAR, 1, 0},
    {OPTIONS, 5, SCALAR, 1, 0},
    {BUFFER, 0, VECTOR, 1, 0},
    {BUFFER, 1, SCALAR, 8, 0},
    {BUFFER, 2, SCALAR, 8, 0},
    {SIGNATURE, 0, CHILDREN, 4, MAP},
    {SIGNATURE, 1, CHILDREN, 4, MAP},
    {SIGNATURE, 2, VECTOR, 1, 0},
    {SIGNATURE, 4, SCALAR, 4, 0},
    {MAP, 0, VECTOR, 1, 0},
    {MAP, 1, SCALAR, 4, 0},
    {SPARSITY, 0, VECTOR, 4, 0},
    {SPARSITY, 1, VECTOR, 4, 0},
    {SPARSITY, 2, CHILDREN, 4, LEVEL},
    {LEVEL, 0, SCALAR, 1, 0},
    {LEVEL, 1, SCALAR, 4, 0},
    {LEVEL, 2, SCALAR, 1, 0},
    {LEVEL, 3, CHILD, 4, INDICES},
    {LEVEL, 4, SCALAR, 1, 0},
    {LEVEL, 5, CHILD, 4, INDICES},
    {INDICES, 0, VECTOR, 2, 0},
};

// The most elements of a vector that become parts of their own.
#define ELEMENTS_MAX 64
#define DEPTH_MAX    8
// The most parts of a model. Tables of a mutant may overlap, so that a few bytes have many parts.
#define PARTS_MAX 16384u

// What a part is. The key of a part has this number, and the numbers of its table and field.
enum part {
    VALUE,
    SLOT,  // the entry of a vtable, or the count of a vector
    LINK,  // the distance to a table or vector
    WHOLE, // a vector with its count
};
#define KEY(table, field, part)                                                                    \
    ((uint32_t)(table) << 16 | (uint32_t)(field) << 4 | (uint32_t)(part))

static uint32_t read_number(const struct mutant *m, size_t at, size_t size)
{
    uint32_t number = 0;
    if (at <= m->size && m->size - at >= size)
        memcpy(&number, m->data + at, size);
    return number;
}

static void add_part(struct mutant_parts *parts, const struct mutant *m, size_t at, size_t size,
                     uint32_t key)
{
    if (at > m->size || m->size - at < size)
        return;
    mutant_parts_add(parts, &(struct mutant_part){.begin = at,
                                                  .end = at + size,
                                                  .body = at,
                                                  .parent = MUTANT_NO_PART,
                                                  .key = key,
                                                  .type = 'v'});
}

static void cut_table(struct mutant_parts *parts, const struct mutant *m, size_t at,
                      enum table table, unsigned depth);

// Cuts the table or vector at byte `at`, to which the field in schema[row] points, into parts.
static void cut_target(struct mutant_parts *parts, const struct mutant *m, size_t at, size_t row,
                       unsigned depth)
{
    uint32_t table = schema[row].table, field = schema[row].field, size = schema[row].size;
    if (schema[row].kind == CHILD) {
        cut_table(parts, m, at, (enum table)schema[row].child, depth + 1);
        return;
    }
    uint32_t count = read_number(m, at, 4);
    if ((uint64_t)at + 4 + (uint64_t)count * size > m->size)
        return;
    add_part(parts, m, at, 4 + (size_t)count * size, KEY(table, field, WHOLE));
    add_part(parts, m, at, 4, KEY(table, field, SLOT));
    for (uint32_t i = 0; i < count && i < ELEMENTS_MAX; i++) {
        size_t element = at + 4 + (size_t)i * size;
        add_part(parts, m, element, size, KEY(table, field, VALUE));
        if (schema[row].kind == CHILDREN)
            cut_table(parts, m, element + read_number(m, element, 4), (enum table)schema[row].child,
                      depth + 1);
    }
}

static void cut_table(struct mutant_parts *parts, const struct mutant *m, size_t at,
                      enum table table, unsigned depth)
{
    size_t vtable = at - (size_t)(int64_t)(int32_t)read_number(m, at, 4);
    uint32_t bytes = read_number(m, vtable, 2);
    if (at >= m->size || vtable >= m->size || depth > DEPTH_MAX || parts->count >= PARTS_MAX)
        return;
    for (size_t row = 0; row < sizeof schema / sizeof *schema; row++) {
        size_t slot = 4 + 2 * (size_t)schema[row].field;
        if (schema[row].table != table || slot + 2 > bytes)
            continue;
        uint32_t place = read_number(m, vtable + slot, 2);
        add_part(parts, m, vtable + slot, 2, KEY(table, schema[row].field, SLOT));
        if (place == 0)
            continue;
        bool is_scalar = schema[row].kind == SCALAR;
        add_part(parts, m, at + place, schema[row].kind == VECTOR ? 4 : schema[row].size,
                 KEY(table, schema[row].field, is_scalar ? VALUE : LINK));
        if (!is_scalar)
            cut_target(parts, m, at + place + read_number(m, at + place, 4), row, depth);
    }
}

static void cut_model(struct mutant_parts *parts, const struct mutant *m)
{
    cut_table(parts, m, read_number(m, 0, 4), MODEL, 0);
}

// Overwrites the beginning of a part.
static void replace_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                         const char *text, size_t size)
{
    const struct mutant_part *p = &parts->items[part];
    size_t room = p->end - p->begin;
    memcpy(mutant->data + p->begin, text, size < room ? size : room);
}

// Sets the beginning of a part to 0: its count or distance becomes 0, or its field becomes absent.
static void drop_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part)
{
    const struct mutant_part *p = &parts->items[part];
    size_t size = p->end - p->begin;
    memset(mutant->data + p->begin, 0, size < 8 ? size : 4);
}

// Copies the part over the bytes that follow it, `times` times or up to the end of the file.
static void repeat_part(struct mutant *mutant, const struct mutant_parts *parts, uint32_t part,
                        unsigned times)
{
    const struct mutant_part *p = &parts->items[part];
    size_t size = p->end - p->begin;
    for (unsigned i = 1; i <= times && mutant->size - p->begin >= (i + 1) * size; i++)
        memcpy(mutant->data + p->begin + i * size, mutant->data + p->begin, size);
}

static const char *change_part(struct mutant *mutant, const struct mutant_parts *parts,
                               uint32_t part, uint64_t *state)
{
    static const uint64_t numbers[] = {
        0,   1,     2,     3,       9,         16,         64,         127,        128,
        255, 65535, 65536, 1000000, INT32_MAX, 0x7fc00000, 0x80000000, UINT32_MAX, UINT64_MAX};
    uint64_t number = numbers[inf_mutate_random(state) % (sizeof numbers / sizeof *numbers)];
    const struct mutant_part *p = &parts->items[part];
    size_t size = p->end - p->begin;
    if (inf_mutate_random(state) % 3 == 0) {
        // In one of three cases, choose a number near the old one.
        memcpy(&number, mutant->data + p->begin, size < 8 ? size : 8);
        number += (uint64_t)inf_mutate_random(state) % 9 - 4;
    }
    memcpy(mutant->data + p->begin, &number, size < 4 ? size : 4);
    return "number";
}

const struct mutant_format mutant_tflite = {cut_model, replace_part, drop_part, repeat_part,
                                            change_part};
