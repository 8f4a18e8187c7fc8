// SPDX-License-Identifier: Apache-2.0
// Reads flatbuffers from untrusted bytes. Every position is checked against the size of the file
// before it is read, so that no file makes a read outside its bytes.
//
// Errors latch, as in graph/build/builder.h: the file keeps the first failure. After it, every
// function here returns a default, an absent table or an empty vector, and the caller tests
// inf_fb_ok() once at the end. Error texts name table and field.
#ifndef INF_BACKENDS_IMPORT_TFLITE_FLATBUFFER_H
#define INF_BACKENDS_IMPORT_TFLITE_FLATBUFFER_H

#include "backends/base/arena.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// The most bytes of a string, without the final NUL.
#define INF_FB_STRING_MAX 65536u

// A flatbuffer and the first failure of reading it. Used by one thread.
struct inf_fb_file {
    const uint8_t *data; // borrowed
    size_t size;
    // Bytes of tables and vectors that may still be opened. Tables of a sound file do not overlap;
    // without this limit, a small file whose tables share their parts would take very long to read.
    uint64_t budget_bytes;
    enum inf_code code;    // the first failure, or INF_OK
    struct inf_error *err; // text of the first failure; may be NULL
};

// The types of scalar fields.
enum inf_fb_type {
    INF_FB_BOOL,
    INF_FB_I8,
    INF_FB_U8,
    INF_FB_U16,
    INF_FB_I32,
    INF_FB_U32,
    INF_FB_I64,
    INF_FB_U64,
    INF_FB_F32,
};

// A table. An absent table has position 0, and all its fields are absent.
struct inf_fb_table {
    struct inf_fb_file *file;
    const char *name;      // for messages: the table's type in the schema
    size_t at, vtable;     // positions in the file
    uint32_t vtable_bytes; // size of the vtable, which has the positions of the fields
    uint32_t table_bytes;  // size of the table's inline part
};

// A vector of scalars or of tables.
struct inf_fb_vector {
    struct inf_fb_file *file;
    const char *table, *field; // for messages: the field that holds the vector
    size_t at;                 // position of element 0
    uint32_t count;
};

// Starts reading a file of `size` bytes. `err` gets the text of the first failure.
void inf_fb_file_init(struct inf_fb_file *file, struct inf_span bytes, struct inf_error *err);

// Returns true if nothing has failed so far.
static inline bool inf_fb_ok(const struct inf_fb_file *file)
{
    return file->code == INF_OK;
}

// Latches a failure about a field of a table, unless an earlier failure is latched. The text
// becomes "table NAME, field FIELD: ...".
void inf_fb_fail(const struct inf_fb_table *table, const char *field, enum inf_code code,
                 const char *format, ...) INF_PRINTF(4, 5);

// Opens the root table.
struct inf_fb_table inf_fb_root(struct inf_fb_file *file, const char *name);

// Returns true if the table is not absent.
static inline bool inf_fb_exists(const struct inf_fb_table *table)
{
    return table->at != 0;
}

// Returns true if the field with number `id` is present.
bool inf_fb_has(const struct inf_fb_table *table, uint32_t id);

// Returns an integer or bool field, or `fallback` if the field is absent. An unsigned 64-bit number
// above INT64_MAX latches INF_INVALID.
int64_t inf_fb_int(const struct inf_fb_table *table, enum inf_fb_type type, uint32_t id,
                   const char *field, int64_t fallback);

// Returns a float field, or `fallback` if the field is absent.
float inf_fb_float(const struct inf_fb_table *table, uint32_t id, const char *field,
                   float fallback);

// Returns a table field of type `name`.
struct inf_fb_table inf_fb_child(const struct inf_fb_table *table, uint32_t id, const char *field,
                                 const char *name);

// Returns a vector field whose elements have `element_bytes` bytes; 4 for tables.
struct inf_fb_vector inf_fb_vector(const struct inf_fb_table *table, uint32_t id, const char *field,
                                   uint32_t element_bytes);

// Returns the bytes of a vector of bytes. They are borrowed from the file.
struct inf_span inf_fb_bytes(const struct inf_fb_table *table, uint32_t id, const char *field);

// Returns a string field as a copy in `arena`; "" if the field is absent. Latches INF_INVALID for a
// string that is longer than INF_FB_STRING_MAX, has a NUL byte or is not UTF-8.
const char *inf_fb_string(const struct inf_fb_table *table, uint32_t id, const char *field,
                          struct inf_arena *arena);

// Returns element `index`, which must be below the count, of a vector of tables of type `name`.
struct inf_fb_table inf_fb_table_at(const struct inf_fb_vector *vector, uint32_t index,
                                    const char *name);

// Returns element `index`, which must be below the count, of a vector of integers of that type.
int64_t inf_fb_int_at(const struct inf_fb_vector *vector, enum inf_fb_type type, uint32_t index);

// Returns element `index`, which must be below the count, of a vector of floats.
float inf_fb_float_at(const struct inf_fb_vector *vector, uint32_t index);

#endif
