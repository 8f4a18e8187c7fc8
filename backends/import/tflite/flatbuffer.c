// SPDX-License-Identifier: Apache-2.0
// Reads flatbuffers from untrusted bytes. A flatbuffer is a tree of tables:
//
//     table:  [i32: position of the table minus that of its vtable] [fields ...]
//     vtable: [u16: bytes of the vtable] [u16: bytes of the table]
//             [u16: position of field 0 in the table; 0 if absent] [u16: field 1] ...
//     a field that is a table, vector or string: [u32: distance from here to it]
//     vector: [u32: count] [elements ...]      string: a vector of bytes, followed by NUL
//
// All numbers are little-endian, like every machine that the project supports. A table is checked
// when it is opened, a field when it is read. All positions are 64-bit sums of 32-bit numbers, so
// they cannot overflow.
#include "backends/import/tflite/flatbuffer.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/core/utf8.h"

// Bytes of tables and vectors that may be opened for each byte of the file. A reader opens some
// tables twice, and no sound file has tables that overlap.
#define OPENED_EACH_BYTE 4u
// Sizes of the parts of a flatbuffer.
#define OFFSET_BYTES      4u
#define VTABLE_HEAD_BYTES 4u
#define SLOT_BYTES        2u

void inf_fb_file_init(struct inf_fb_file *file, struct inf_span bytes, struct inf_error *err)
{
    *file = (struct inf_fb_file){.data = bytes.data,
                                 .size = bytes.size,
                                 .budget_bytes = (uint64_t)bytes.size * OPENED_EACH_BYTE,
                                 .err = err};
}

// --- failures ---

static void fail_field(struct inf_fb_file *file, const char *table, const char *field,
                       enum inf_code code, const char *format, va_list arguments)
{
    char text[256];
    if (!inf_fb_ok(file))
        return;
    vsnprintf(text, sizeof text, format, arguments);
    file->code = inf_fail(file->err, code, "table %s%s%s: %s", table,
                          *field != '\0' ? ", field " : "", field, text);
}

void inf_fb_fail(const struct inf_fb_table *table, const char *field, enum inf_code code,
                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_field(table->file, table->name, field, code, format, arguments);
    va_end(arguments);
}

static void INF_PRINTF(4, 5) fail_invalid(struct inf_fb_file *file, const char *table,
                                          const char *field, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_field(file, table, field, INF_INVALID, format, arguments);
    va_end(arguments);
}

// --- numbers ---

// Copies `size` bytes at a position that was checked.
static void copy_bytes(const struct inf_fb_file *file, uint64_t at, void *out, size_t size)
{
    assert(inf_range_ok(at, size, file->size));
    memcpy(out, file->data + at, size);
}

static uint32_t read_u32(const struct inf_fb_file *file, uint64_t at)
{
    uint32_t number;
    copy_bytes(file, at, &number, sizeof number);
    return number;
}

static uint16_t read_u16(const struct inf_fb_file *file, uint64_t at)
{
    uint16_t number;
    copy_bytes(file, at, &number, sizeof number);
    return number;
}

static uint32_t type_bytes(enum inf_fb_type type)
{
    switch (type) {
    case INF_FB_BOOL:
    case INF_FB_I8:
    case INF_FB_U8:
        return 1;
    case INF_FB_U16:
        return 2;
    case INF_FB_I64:
    case INF_FB_U64:
        return 8;
    default:
        return 4;
    }
}

// Reads an integer at a position that was checked. Returns false if it exceeds int64.
static bool read_int(const struct inf_fb_file *file, enum inf_fb_type type, uint64_t at,
                     int64_t *out)
{
    uint64_t bits = 0;
    copy_bytes(file, at, &bits, type_bytes(type));
    *out = (int64_t)bits;
    if (type == INF_FB_I8)
        *out = (int8_t)bits;
    else if (type == INF_FB_I32)
        *out = (int32_t)bits;
    else if (type == INF_FB_BOOL)
        *out = bits != 0;
    return type != INF_FB_U64 || bits <= INT64_MAX;
}

// --- tables ---

// Takes `bytes` from the budget. Latches a failure if fewer are left.
static bool spend_bytes(struct inf_fb_file *file, const char *table, const char *field,
                        uint64_t bytes)
{
    if (bytes > file->budget_bytes)
        fail_invalid(file, table, field, "tables and vectors overlap too much");
    else
        file->budget_bytes -= bytes;
    return inf_fb_ok(file);
}

// Opens the table at a position. `holder` and `field` say where the position comes from.
static struct inf_fb_table open_table(struct inf_fb_file *file, uint64_t at, const char *name,
                                      const char *holder, const char *field)
{
    const struct inf_fb_table absent = {.file = file, .name = name};
    struct inf_fb_table table = absent;
    if (at % OFFSET_BYTES != 0 || !inf_range_ok(at, OFFSET_BYTES, file->size)) {
        fail_invalid(file, holder, field,
                     "table %s is at byte %llu, wanted a multiple of 4 within the %zu bytes", name,
                     (unsigned long long)at, file->size);
        return absent;
    }
    int64_t vtable = (int64_t)at - (int32_t)read_u32(file, at);
    if (vtable < 0 || vtable % SLOT_BYTES != 0 ||
        !inf_range_ok((uint64_t)vtable, VTABLE_HEAD_BYTES, file->size)) {
        fail_invalid(file, name, "", "its vtable is at byte %lld, wanted one of the %zu bytes",
                     (long long)vtable, file->size);
        return absent;
    }
    table.at = at;
    table.vtable = (size_t)vtable;
    table.vtable_bytes = read_u16(file, table.vtable);
    table.table_bytes = read_u16(file, table.vtable + SLOT_BYTES);
    if (table.vtable_bytes < VTABLE_HEAD_BYTES || table.vtable_bytes % SLOT_BYTES != 0 ||
        !inf_range_ok(table.vtable, table.vtable_bytes, file->size) ||
        table.table_bytes < OFFSET_BYTES || !inf_range_ok(at, table.table_bytes, file->size)) {
        fail_invalid(file, name, "", "has %u bytes at byte %llu and a vtable of %u at byte %lld",
                     table.table_bytes, (unsigned long long)at, table.vtable_bytes,
                     (long long)vtable);
        return absent;
    }
    return spend_bytes(file, name, "", table.table_bytes) ? table : absent;
}

struct inf_fb_table inf_fb_root(struct inf_fb_file *file, const char *name)
{
    const struct inf_fb_table absent = {.file = file, .name = name};
    if (file->size < OFFSET_BYTES)
        fail_invalid(file, name, "", "the file has %zu bytes, wanted at least 4", file->size);
    return inf_fb_ok(file) ? open_table(file, read_u32(file, 0), name, "of the file", "") : absent;
}

// Finds a field of `bytes` bytes. Returns its position; 0 if the field is absent or after a
// failure.
static uint64_t find_field(const struct inf_fb_table *table, uint32_t id, const char *field,
                           uint32_t bytes)
{
    uint32_t slot = VTABLE_HEAD_BYTES + id * SLOT_BYTES;
    if (!inf_fb_exists(table) || !inf_fb_ok(table->file) || slot >= table->vtable_bytes)
        return 0;
    uint32_t place = read_u16(table->file, table->vtable + slot);
    if (place == 0)
        return 0;
    if (place < OFFSET_BYTES || !inf_range_ok(place, bytes, table->table_bytes)) {
        inf_fb_fail(table, field, INF_INVALID, "is at byte %u of the %u bytes of the table", place,
                    table->table_bytes);
        return 0;
    }
    return table->at + place;
}

bool inf_fb_has(const struct inf_fb_table *table, uint32_t id)
{
    return find_field(table, id, "", 0) != 0;
}

int64_t inf_fb_int(const struct inf_fb_table *table, enum inf_fb_type type, uint32_t id,
                   const char *field, int64_t fallback)
{
    assert(type != INF_FB_F32);
    int64_t number = fallback;
    uint64_t at = find_field(table, id, field, type_bytes(type));
    if (at != 0 && !read_int(table->file, type, at, &number)) {
        inf_fb_fail(table, field, INF_INVALID, "is above 2^63");
        return fallback;
    }
    return number;
}

float inf_fb_float(const struct inf_fb_table *table, uint32_t id, const char *field, float fallback)
{
    float number = fallback;
    uint64_t at = find_field(table, id, field, sizeof number);
    if (at != 0)
        copy_bytes(table->file, at, &number, sizeof number);
    return number;
}

// Returns the position to which an offset field points; 0 if the field is absent.
static uint64_t follow_field(const struct inf_fb_table *table, uint32_t id, const char *field)
{
    uint64_t at = find_field(table, id, field, OFFSET_BYTES);
    return at != 0 ? at + read_u32(table->file, at) : 0;
}

struct inf_fb_table inf_fb_child(const struct inf_fb_table *table, uint32_t id, const char *field,
                                 const char *name)
{
    uint64_t at = follow_field(table, id, field);
    if (at == 0)
        return (struct inf_fb_table){.file = table->file, .name = name};
    return open_table(table->file, at, name, table->name, field);
}

// --- vectors and strings ---

struct inf_fb_vector inf_fb_vector(const struct inf_fb_table *table, uint32_t id, const char *field,
                                   uint32_t element_bytes)
{
    struct inf_fb_file *file = table->file;
    const struct inf_fb_vector empty = {.file = file, .table = table->name, .field = field};
    struct inf_fb_vector vector = empty;
    uint64_t at = follow_field(table, id, field);
    if (at == 0)
        return empty;
    if (!inf_range_ok(at, OFFSET_BYTES, file->size)) {
        inf_fb_fail(table, field, INF_INVALID, "its vector is at byte %llu of the %zu bytes",
                    (unsigned long long)at, file->size);
        return empty;
    }
    vector.count = read_u32(file, at);
    vector.at = at + OFFSET_BYTES;
    if (!inf_range_ok(vector.at, (uint64_t)vector.count * element_bytes, file->size)) {
        inf_fb_fail(table, field, INF_INVALID,
                    "its vector of %u elements at byte %llu ends beyond the %zu bytes",
                    vector.count, (unsigned long long)at, file->size);
        return empty;
    }
    uint64_t bytes = (uint64_t)vector.count * element_bytes;
    return spend_bytes(file, table->name, field, bytes) ? vector : empty;
}

struct inf_span inf_fb_bytes(const struct inf_fb_table *table, uint32_t id, const char *field)
{
    struct inf_fb_vector vector = inf_fb_vector(table, id, field, 1);
    return (struct inf_span){vector.count > 0 ? vector.file->data + vector.at : NULL, vector.count};
}

const char *inf_fb_string(const struct inf_fb_table *table, uint32_t id, const char *field,
                          struct inf_arena *arena)
{
    struct inf_span bytes = inf_fb_bytes(table, id, field);
    if (bytes.size == 0)
        return "";
    if (bytes.size > INF_FB_STRING_MAX)
        inf_fb_fail(table, field, INF_INVALID, "has %zu bytes, at most %u are allowed", bytes.size,
                    INF_FB_STRING_MAX);
    else if (memchr(bytes.data, 0, bytes.size) != NULL)
        inf_fb_fail(table, field, INF_INVALID, "goes on after a NUL byte");
    else if (!inf_utf8_valid(bytes))
        inf_fb_fail(table, field, INF_INVALID, "is no UTF-8");
    char *text = inf_fb_ok(table->file) ? inf_arena_alloc(arena, bytes.size + 1) : NULL;
    if (text == NULL) {
        inf_fb_fail(table, field, INF_EXHAUSTED, "no memory for a string");
        return "";
    }
    memcpy(text, bytes.data, bytes.size);
    return text;
}

struct inf_fb_table inf_fb_table_at(const struct inf_fb_vector *vector, uint32_t index,
                                    const char *name)
{
    assert(index < vector->count);
    uint64_t at = vector->at + (uint64_t)index * OFFSET_BYTES;
    if (!inf_fb_ok(vector->file))
        return (struct inf_fb_table){.file = vector->file, .name = name};
    return open_table(vector->file, at + read_u32(vector->file, at), name, vector->table,
                      vector->field);
}

int64_t inf_fb_int_at(const struct inf_fb_vector *vector, enum inf_fb_type type, uint32_t index)
{
    int64_t number;
    assert(index < vector->count && type != INF_FB_F32);
    if (!read_int(vector->file, type, vector->at + (uint64_t)index * type_bytes(type), &number)) {
        fail_invalid(vector->file, vector->table, vector->field, "element %u is above 2^63", index);
        return 0;
    }
    return number;
}

float inf_fb_float_at(const struct inf_fb_vector *vector, uint32_t index)
{
    float number;
    assert(index < vector->count);
    copy_bytes(vector->file, vector->at + (uint64_t)index * sizeof number, &number, sizeof number);
    return number;
}
