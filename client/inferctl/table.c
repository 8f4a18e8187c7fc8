// SPDX-License-Identifier: Apache-2.0
#include "client/inferctl/table.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A cell: what a person sees, and what a program gets.
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

static void *must(void *memory)
{
    if (memory != NULL)
        return memory;
    fputs("inferctl: no memory\n", stderr);
    exit(EXIT_FAILED);
}

struct table *table_create(const char *const *columns, unsigned count)
{
    struct table *table = must(calloc(1, sizeof *table));
    table->column_count = count < TABLE_COLUMNS ? count : TABLE_COLUMNS;
    memcpy(table->columns, columns, table->column_count * sizeof *columns);
    return table;
}

static void add(struct table *table, const char *shown, json_t *json)
{
    if (table->cell_count == table->cell_capacity) {
        table->cell_capacity = table->cell_capacity * 2 + 32;
        table->cells = must(realloc(table->cells, table->cell_capacity * sizeof *table->cells));
    }
    table->cells[table->cell_count++] =
        (struct cell){.shown = must(strdup(shown)), .json = must(json)};
}

void table_text(struct table *table, const char *text)
{
    json_t *json = json_string(text);
    add(table, text, json != NULL ? json : json_string("?")); // not UTF-8
}

void table_number(struct table *table, double number, const char *shown)
{
    char text[32];
    bool whole = number == floor(number) && fabs(number) < 1e15;
    snprintf(text, sizeof text, whole ? "%.0f" : "%.3f", number);
    json_t *json = whole ? json_integer((json_int_t)number) : json_real(number);
    add(table, shown != NULL ? shown : text, json != NULL ? json : json_null());
}

static void print_json(const struct table *table, bool single)
{
    json_t *rows = must(json_array());
    for (size_t at = 0; at < table->cell_count; at += table->column_count) {
        json_t *row = must(json_object());
        for (unsigned c = 0; c < table->column_count; c++)
            json_object_set(row, table->columns[c], table->cells[at + c].json);
        json_array_append_new(rows, row);
    }
    json_dumpf(single ? json_array_get(rows, 0) : rows, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(rows);
}

static void print_aligned(const struct table *table)
{
    size_t widths[TABLE_COLUMNS] = {0};
    for (unsigned c = 0; c < table->column_count; c++)
        widths[c] = strlen(table->columns[c]);
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t width = strlen(table->cells[i].shown);
        if (width > widths[i % table->column_count])
            widths[i % table->column_count] = width;
    }
    for (unsigned c = 0; c < table->column_count; c++)
        printf("%-*s%s", (int)widths[c], table->columns[c],
               c + 1 < table->column_count ? "  " : "\n");
    for (size_t i = 0; i < table->cell_count; i++) {
        unsigned c = (unsigned)(i % table->column_count);
        bool last = c + 1 == table->column_count;
        printf("%-*s%s", last ? 0 : (int)widths[c], table->cells[i].shown, last ? "\n" : "  ");
    }
}

// One row reads better as lines of "name: value".
static void print_lines(const struct table *table)
{
    size_t width = 0;
    for (unsigned c = 0; c < table->column_count; c++)
        if (strlen(table->columns[c]) > width)
            width = strlen(table->columns[c]);
    for (unsigned c = 0; c < table->column_count && c < table->cell_count; c++)
        printf("%-*s  %s\n", (int)width, table->columns[c], table->cells[c].shown);
}

void table_print(struct table *table, enum output_format format, bool single)
{
    if (format == OUTPUT_JSON)
        print_json(table, single);
    else if (single)
        print_lines(table);
    else
        print_aligned(table);
    for (size_t i = 0; i < table->cell_count; i++) {
        free(table->cells[i].shown);
        json_decref(table->cells[i].json);
    }
    free(table->cells);
    free(table);
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
