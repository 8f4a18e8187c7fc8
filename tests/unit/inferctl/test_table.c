// SPDX-License-Identifier: Apache-2.0
// Tests of tables, as text and as JSON.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/inferctl/text/json_value.h"
#include "client/inferctl/text/table.h"

// Prints the table and copies the output to `text`.
static void capture_output(struct table *table, enum output_format format, bool single, char *text,
                           size_t size)
{
    fflush(stdout);
    FILE *file = tmpfile();
    int saved = dup(STDOUT_FILENO);
    cr_assert(file != NULL && saved >= 0);
    dup2(fileno(file), STDOUT_FILENO);
    table_print(table, format, single);
    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    size_t got = fread(text, 1, size - 1, file);
    text[got] = '\0';
    fclose(file);
}

static const char *const columns[] = {"name", "count", "ms"};

static struct table *two_rows(void)
{
    struct table *table = table_create(columns, 3);
    table_text(table, "a longer name");
    table_whole(table, 7, NULL);
    table_real(table, 0.25, NULL);
    table_text(table, "b");
    table_whole(table, -1, "none");
    table_real(table, 12, "a dozen");
    return table;
}

Test(table, columns_are_aligned_and_lines_end_without_blanks)
{
    char text[1000];
    capture_output(two_rows(), OUTPUT_TABLE, false, text, sizeof text);
    cr_assert_str_eq(text,
                     "name           count  ms\n"
                     "a longer name  7      0.250\n"
                     "b              none   a dozen\n",
                     "%s", text);
}

Test(table, one_row_is_lines_of_name_and_value)
{
    struct table *table = table_create(columns, 3);
    table_text(table, "x");
    table_whole(table, INT64_MAX, NULL);
    table_real(table, 1.0 / 3, NULL);
    char text[1000];
    capture_output(table, OUTPUT_TABLE, true, text, sizeof text);
    cr_assert_str_eq(text,
                     "name   x\n"
                     "count  9223372036854775807\n"
                     "ms     0.333\n",
                     "%s", text);
}

Test(table, without_rows_is_its_head_or_an_empty_array)
{
    char text[1000];
    capture_output(table_create(columns, 3), OUTPUT_TABLE, false, text, sizeof text);
    cr_assert_str_eq(text, "name  count  ms\n");
    capture_output(table_create(columns, 3), OUTPUT_JSON, false, text, sizeof text);
    cr_assert_str_eq(text, "[]\n");
}

Test(table, letters_are_counted_not_bytes)
{
    struct table *table = table_create(columns, 2);
    table_text(table, "k\xc3\xa4se");
    table_whole(table, 1, NULL);
    table_text(table, "brie");
    table_whole(table, 2, NULL);
    char text[1000];
    capture_output(table, OUTPUT_TABLE, false, text, sizeof text);
    cr_assert_str_eq(text, "name  count\nk\xc3\xa4se  1\nbrie  2\n", "%s", text);
}

Test(table, names_cannot_steer_the_terminal)
{
    struct table *table = table_create(columns, 1);
    table_text(table, "a\x1b[2Jb\nc\x7f");
    char text[1000];
    capture_output(table, OUTPUT_TABLE, false, text, sizeof text);
    cr_assert_str_eq(text, "name\na?[2Jb?c?\n");
}

Test(table, json_has_the_values)
{
    char text[1000];
    capture_output(two_rows(), OUTPUT_JSON, false, text, sizeof text);
    json_t *rows = json_loads(text, 0, NULL);
    cr_assert_eq(json_array_size(rows), 2u, "%s", text);
    const char *name;
    json_int_t count;
    double ms;
    cr_assert_eq(json_unpack(json_array_get(rows, 0), "{s:s, s:I, s:F}", "name", &name, "count",
                             &count, "ms", &ms),
                 0);
    cr_assert_str_eq(name, "a longer name");
    cr_assert_eq(count, 7);
    cr_assert_eq(ms, 0.25);
    cr_assert_eq(json_integer_value(json_object_get(json_array_get(rows, 1), "count")), -1);
    json_decref(rows);
}

Test(table, json_is_valid_for_any_text)
{
    struct table *table = table_create(columns, 3);
    table_text(table, "say \"hi\"\\\n\x01");
    table_real(table, (double)NAN, NULL);
    table_real(table, -(double)INFINITY, NULL);
    char text[1000];
    capture_output(table, OUTPUT_JSON, true, text, sizeof text);
    json_t *row = json_loads(text, 0, NULL);
    cr_assert(json_is_object(row), "%s", text);
    cr_assert_str_eq(json_string_value(json_object_get(row, "name")), "say \"hi\"\\\n\x01");
    cr_assert(json_is_null(json_object_get(row, "count")));
    cr_assert(json_is_null(json_object_get(row, "ms")));
    json_decref(row);
    table = table_create(columns, 3);
    table_text(table, "no utf-8: \xff\xfe.");
    table_whole(table, INT64_MIN, NULL);
    table_real(table, 1e300, NULL);
    capture_output(table, OUTPUT_JSON, true, text, sizeof text);
    row = json_loads(text, 0, NULL);
    cr_assert_str_eq(json_string_value(json_object_get(row, "name")), "no utf-8: ??.");
    cr_assert_eq(json_integer_value(json_object_get(row, "count")), INT64_MIN);
    cr_assert_eq(json_real_value(json_object_get(row, "ms")), 1e300);
    json_decref(row);
}

Test(table, bytes_and_durations_read_well)
{
    char bytes[16];
    char duration[24];
    cr_assert_str_eq(table_bytes(0, bytes), "0 B");
    cr_assert_str_eq(table_bytes(1023, bytes), "1023 B");
    cr_assert_str_eq(table_bytes(1536, bytes), "1.5 KiB");
    cr_assert_str_eq(table_bytes(3ull << 30, bytes), "3.0 GiB");
    cr_assert_str_eq(table_bytes(UINT64_MAX, bytes), "16777216.0 TiB");
    cr_assert_str_eq(table_duration(0, duration), "0.0 s");
    cr_assert_str_eq(table_duration(59900000000, duration), "59.9 s");
    cr_assert_str_eq(table_duration(60000000000, duration), "1 min 0 s");
    cr_assert_str_eq(table_duration(3661000000000, duration), "1 h 1 min");
    cr_assert_str_eq(table_duration(90000000000000, duration), "1 d 1 h");
    cr_assert_str_eq(table_duration(UINT64_MAX, duration), "213503 d 23 h");
}
