// SPDX-License-Identifier: Apache-2.0
// Tables. Each cell has a text and a JSON value, so that one description serves both formats.
// Column widths are known when all rows have been added.
#include "client/inferctl/text/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/text/json_value.h"

// A cell: the text in a table, and the value in JSON.
struct cell {
    char *shown;
    json_t *json;
};

struct table {
    const char *columns[TABLE_COLUMNS];
    unsigned column_count;
    struct cell *cells;
    size_t cell_count, cell_capacity;
};

struct table *table_create(const char *const *columns, unsigned count)
{
    struct table *table = json_value_must(calloc(1, sizeof *table));
    table->column_count = count < TABLE_COLUMNS ? count : TABLE_COLUMNS;
    memcpy(table->columns, columns, table->column_count * sizeof *columns);
    return table;
}

static void add_cell(struct table *table, const char *shown, json_t *json)
{
    if (table->cell_count == table->cell_capacity) {
        table->cell_capacity = table->cell_capacity * 2 + 32;
        table->cells =
            json_value_must(realloc(table->cells, table->cell_capacity * sizeof *table->cells));
    }
    struct cell cell = {.shown = json_value_must(strdup(shown)), .json = json};
    for (char *at = cell.shown; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = '?';
    table->cells[table->cell_count++] = cell;
}

void table_text(struct table *table, const char *text)
{
    add_cell(table, text, json_value_text(text));
}

void table_whole(struct table *table, int64_t number, const char *shown)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    add_cell(table, shown != NULL ? shown : text, json_value_whole(number));
}

void table_real(struct table *table, double number, const char *shown)
{
    char text[336]; // enough for a double, which has up to 309 digits before the point
    snprintf(text, sizeof text, "%.3f", number);
    add_cell(table, shown != NULL ? shown : text, json_value_real(number));
}

void table_value(struct table *table, json_t *value, const char *shown)
{
    add_cell(table, shown, value);
}

static json_t *rows_of(const struct table *table)
{
    json_t *rows = json_value_must(json_array());
    for (size_t at = 0; at < table->cell_count; at += table->column_count) {
        json_t *row = json_value_must(json_object());
        for (unsigned c = 0; c < table->column_count; c++)
            json_object_set(row, table->columns[c], table->cells[at + c].json);
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *table_json(struct table *table)
{
    json_t *rows = rows_of(table);
    table_free(table);
    return rows;
}

static void print_json(const struct table *table, bool single)
{
    json_t *rows = rows_of(table);
    if (single) {
        json_value_print(json_incref(json_array_get(rows, 0)));
        json_decref(rows);
    } else {
        json_value_print(rows);
    }
}

// Returns how many terminal columns a text occupies: one for each character.
static size_t columns_of(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += (*text & 0xc0) != 0x80;
    return count;
}

// Prints a text, padded with blanks to `width`.
static void print_padded(const char *text, size_t width)
{
    printf("%s%*s", text, (int)(width - columns_of(text)), "");
}

static void print_aligned(const struct table *table)
{
    size_t widths[TABLE_COLUMNS] = {0};
    for (unsigned c = 0; c < table->column_count; c++)
        widths[c] = strlen(table->columns[c]);
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t width = columns_of(table->cells[i].shown);
        if (width > widths[i % table->column_count])
            widths[i % table->column_count] = width;
    }
    // The last column is printed without blanks behind its text.
    unsigned last = table->column_count - 1;
    for (unsigned c = 0; c < last; c++)
        print_padded(table->columns[c], widths[c] + 2);
    puts(table->columns[last]);
    for (size_t i = 0; i < table->cell_count; i++) {
        unsigned c = (unsigned)(i % table->column_count);
        if (c == last)
            puts(table->cells[i].shown);
        else
            print_padded(table->cells[i].shown, widths[c] + 2);
    }
}

// Prints a single row as lines of "name: value".
static void print_lines(const struct table *table)
{
    size_t width = 0;
    for (unsigned c = 0; c < table->column_count; c++)
        if (strlen(table->columns[c]) > width)
            width = strlen(table->columns[c]);
    for (unsigned c = 0; c < table->column_count && c < table->cell_count; c++) {
        print_padded(table->columns[c], width + 2);
        puts(table->cells[c].shown);
    }
}

void table_free(struct table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->cell_count; i++) {
        free(table->cells[i].shown);
        json_decref(table->cells[i].json);
    }
    free(table->cells);
    free(table);
}

void table_print(struct table *table, enum output_format format, bool single)
{
    if (format == OUTPUT_JSON)
        print_json(table, single);
    else if (single)
        print_lines(table);
    else
        print_aligned(table);
    table_free(table);
}

bool table_is_empty(const struct table *table)
{
    return table->cell_count == 0;
}

const char *table_bytes(uint64_t bytes, char text[16])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    unsigned unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(text, 16, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
    return text;
}

const char *table_duration(uint64_t ns, char text[24])
{
    uint64_t seconds = ns / 1000000000u;
    if (seconds >= 86400)
        snprintf(text, 24, "%" PRIu64 " d %" PRIu64 " h", seconds / 86400, seconds / 3600 % 24);
    else if (seconds >= 3600)
        snprintf(text, 24, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600, seconds / 60 % 60);
    else if (seconds >= 60)
        snprintf(text, 24, "%" PRIu64 " min %" PRIu64 " s", seconds / 60, seconds % 60);
    else
        snprintf(text, 24, "%.1f s", (double)ns / 1e9);
    return text;
}
