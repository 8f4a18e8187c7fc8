// SPDX-License-Identifier: Apache-2.0
// The flatbuffer reader, tested with files that are written byte by byte: correct ones, and ones
// whose offsets, sizes and counts leave the file or overlap.
#include "backends/import/tflite/flatbuffer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/support/models/tflite_writer.h"

static struct tflite_file written;
static struct inf_fb_file file;
static struct inf_error err;

// Opens the file `written`, and returns its root table, which errors call "Root".
static struct inf_fb_table open_root(void)
{
    err = (struct inf_error){0};
    inf_fb_file_init(&file, tflite_bytes(&written), &err);
    return inf_fb_root(&file, "Root");
}

static void expect_refused(const char *part)
{
    cr_expect_eq(file.code, INF_INVALID);
    cr_expect_not_null(strstr(err.text, part), "'%s' lacks '%s'", err.text, part);
    cr_expect_null(strchr(err.text, '\n'));
}

Test(flatbuffer, scalars_of_every_type_and_defaults)
{
    static const uint8_t sizes[] = {1, 1, 1, 2, 4, 4, 8, 8, 4, 0};
    tflite_begin(&written);
    size_t root = tflite_table(&written, sizes, 10);
    tflite_set(&written, root, 0, 2, 1);
    tflite_set(&written, root, 1, 0xfe, 1);
    tflite_set(&written, root, 2, 0xfe, 1);
    tflite_set(&written, root, 3, 0xfffe, 2);
    tflite_set(&written, root, 4, 0xfffffffe, 4);
    tflite_set(&written, root, 5, 0xfffffffe, 4);
    tflite_set(&written, root, 6, (uint64_t)-3, 8);
    tflite_set(&written, root, 7, INT64_MAX, 8);
    tflite_set(&written, root, 8, 0x3fc00000, 4); // 1.5f
    struct inf_fb_table table = open_root();
    cr_expect_eq(inf_fb_int(&table, INF_FB_BOOL, 0, "a", 0), 1);
    cr_expect_eq(inf_fb_int(&table, INF_FB_I8, 1, "b", 0), -2);
    cr_expect_eq(inf_fb_int(&table, INF_FB_U8, 2, "c", 0), 254);
    cr_expect_eq(inf_fb_int(&table, INF_FB_U16, 3, "d", 0), 65534);
    cr_expect_eq(inf_fb_int(&table, INF_FB_I32, 4, "e", 0), -2);
    cr_expect_eq(inf_fb_int(&table, INF_FB_U32, 5, "f", 0), 4294967294);
    cr_expect_eq(inf_fb_int(&table, INF_FB_I64, 6, "g", 0), -3);
    cr_expect_eq(inf_fb_int(&table, INF_FB_U64, 7, "h", 0), INT64_MAX);
    cr_expect_eq(inf_fb_float(&table, 8, "i", 0), 1.5f);
    // Field 9 is absent in the vtable, and the vtable does not reach field 10.
    cr_expect_eq(inf_fb_int(&table, INF_FB_I32, 9, "j", 7), 7);
    cr_expect_eq(inf_fb_int(&table, INF_FB_I32, 10, "k", -7), -7);
    cr_expect_not(inf_fb_has(&table, 9));
    struct inf_fb_table absent = inf_fb_child(&table, 10, "k", "Child");
    cr_expect_not(inf_fb_exists(&absent));
    cr_expect_eq(inf_fb_int(&absent, INF_FB_I32, 0, "x", 5), 5);
    cr_expect(inf_fb_ok(&file), "%s", err.text);
    tflite_set(&written, root, 7, (uint64_t)1 << 63, 8);
    table = open_root();
    (void)inf_fb_int(&table, INF_FB_U64, 7, "h", 0);
    expect_refused("table Root, field h: is above 2^63");
}

Test(flatbuffer, vectors_strings_and_tables)
{
    static const uint8_t sizes[] = {4, 4, 4}, child_sizes[] = {4};
    const int16_t numbers[] = {1, -2, 3};
    struct inf_arena arena = {0};
    tflite_begin(&written);
    size_t root = tflite_table(&written, sizes, 3);
    tflite_vector(&written, root, 0, numbers, 3, 2);
    tflite_vector(&written, root, 1, "h\xc3\xa9", 3, 1);
    size_t list = tflite_vector(&written, root, 2, NULL, 1, 4);
    size_t child = tflite_table(&written, child_sizes, 1);
    tflite_set(&written, child, 0, 42, 4);
    tflite_point(&written, list, child);
    struct inf_fb_table table = open_root();
    struct inf_fb_vector vector = inf_fb_vector(&table, 0, "numbers", 2);
    cr_assert_eq(vector.count, 3);
    cr_expect_eq(inf_fb_int_at(&vector, INF_FB_U16, 1), 65534);
    cr_expect_str_eq(inf_fb_string(&table, 1, "text", &arena), "h\xc3\xa9");
    struct inf_fb_vector tables = inf_fb_vector(&table, 2, "children", 4);
    cr_assert_eq(tables.count, 1);
    struct inf_fb_table opened = inf_fb_table_at(&tables, 0, "Child");
    cr_expect_eq(inf_fb_int(&opened, INF_FB_I32, 0, "x", 0), 42);
    cr_expect(inf_fb_ok(&file), "%s", err.text);
    // A string is refused if it has a NUL byte or is not UTF-8.
    tflite_vector(&written, root, 1, "a\0b", 3, 1);
    table = open_root();
    cr_expect_str_eq(inf_fb_string(&table, 1, "text", &arena), "");
    expect_refused("field text: goes on after a NUL byte");
    tflite_vector(&written, root, 1, "\xff", 1, 1);
    table = open_root();
    (void)inf_fb_string(&table, 1, "text", &arena);
    expect_refused("field text: is no UTF-8");
    inf_arena_fini(&arena);
}

Test(flatbuffer, positions_outside_of_the_file_are_refused)
{
    static const uint8_t sizes[] = {4, 4};
    tflite_begin(&written);
    size_t root = tflite_table(&written, sizes, 2);
    size_t vtable = 8;
    struct {
        size_t at;
        uint64_t number;
        size_t size;
        const char *part;
    } cases[] = {
        {0, 0xfffffff0, 4, "table Root is at byte 4294967280"},
        {0, root + 2, 4, "wanted a multiple of 4"},
        {root, (uint64_t)-400, 4, "its vtable is at byte"},
        {root, root + 8, 4, "its vtable is at byte -8"},
        {vtable, 3, 2, "a vtable of 3"},
        {vtable, 2, 2, "a vtable of 2"},
        {vtable, 0xfffe, 2, "a vtable of 65534"},
        {vtable + 2, 0xffff, 2, "has 65535 bytes"},
        {vtable + 2, 0, 2, "has 0 bytes"},
        {vtable + 4, 0xfff0, 2, "field v: is at byte 65520"},
        {vtable + 4, 1, 2, "field v: is at byte 1"},
        {vtable + 4, 10, 2, "field v: is at byte 10"},
        {tflite_field(&written, root, 0), 0xfffffff0, 4, "its vector is at byte 4294967"},
        {tflite_field(&written, root, 0), 4, 4, "field v: its vector of"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tflite_file saved = written;
        tflite_put(&written, cases[i].at, cases[i].number, cases[i].size);
        // Set field 1 to a number that is no valid count, in case the reader takes it for the count
        // of the vector.
        tflite_put(&written, tflite_field(&saved, root, 1), 0x7fffffff, 4);
        struct inf_fb_table table = open_root();
        struct inf_fb_vector vector = inf_fb_vector(&table, 0, "v", 4);
        cr_expect_eq(vector.count, 0, "case %zu", i);
        expect_refused(cases[i].part);
        written = saved;
    }
}

Test(flatbuffer, huge_counts_are_refused)
{
    static const uint8_t sizes[] = {4};
    static const uint64_t counts[] = {4, 5, 0x3fffffff, 0x40000000, 0x7fffffff, 0xffffffff};
    tflite_begin(&written);
    size_t root = tflite_table(&written, sizes, 1);
    size_t list = tflite_vector(&written, root, 0, NULL, 3, 4);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        tflite_put(&written, list - 4, counts[i], 4);
        struct inf_fb_table table = open_root();
        cr_expect_eq(inf_fb_vector(&table, 0, "v", 4).count, 0);
        expect_refused("field v: its vector of ");
    }
}

Test(flatbuffer, tables_that_overlap_do_not_take_forever)
{
    // 1000 elements point to one table of 400 bytes: 400,000 bytes of tables in 4.5 KB.
    uint8_t wide[100];
    static const uint8_t sizes[] = {4};
    memset(wide, 4, sizeof wide);
    tflite_begin(&written);
    size_t root = tflite_table(&written, sizes, 1);
    size_t list = tflite_vector(&written, root, 0, NULL, 1000, 4);
    size_t shared = tflite_table(&written, wide, 100);
    for (size_t i = 0; i < 1000; i++)
        tflite_point(&written, list + 4 * i, shared);
    struct inf_fb_table table = open_root();
    struct inf_fb_vector vector = inf_fb_vector(&table, 0, "v", 4);
    uint32_t opened = 0;
    for (uint32_t i = 0; i < vector.count && inf_fb_ok(&file); i++, opened++)
        (void)inf_fb_table_at(&vector, i, "Shared");
    cr_expect_lt(opened, 100);
    expect_refused("table Shared: tables and vectors overlap too much");
}

Test(flatbuffer, short_files_are_refused)
{
    static const uint8_t bytes[8] = {4, 0, 0, 0, 4, 0, 0, 0};
    for (size_t size = 0; size <= sizeof bytes; size++) {
        err = (struct inf_error){0};
        inf_fb_file_init(&file, (struct inf_span){bytes, size}, &err);
        struct inf_fb_table table = inf_fb_root(&file, "Root");
        cr_expect_not(inf_fb_exists(&table), "%zu bytes", size);
        expect_refused("Root");
    }
}
