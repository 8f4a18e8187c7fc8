// SPDX-License-Identifier: Apache-2.0
// The table of inferctl bench. The list of columns says which kinds of tables have a column, and at
// which offset of struct bench_row its value is.
#include "client/inferctl/bench/table.h"

#include <stddef.h>

#define BOTH (BENCH_CLOSED | BENCH_OPEN)

enum kind {
    TEXT,
    WHOLE,
    REAL,
    BYTES // a whole number of bytes; 0: unknown
};

// All columns that a table of inferctl bench may have, from left to right.
static const struct column {
    const char *name;
    // Bits of enum bench_part: a table that has one of these parts has the column, and a row that
    // has one of them fills it.
    unsigned parts;
    enum kind kind;
    size_t offset; // offset in struct bench_row
} columns[] = {
    {"model", BOTH, TEXT, offsetof(struct bench_row, model)},
    {"device", BOTH, TEXT, offsetof(struct bench_row, device)},
    {"requests", BOTH, WHOLE, offsetof(struct bench_row, requests)},
    {"streams", BENCH_CLOSED, WHOLE, offsetof(struct bench_row, streams)},
    {"rate", BENCH_OPEN, WHOLE, offsetof(struct bench_row, rate)},
    {"per_second", BOTH, REAL, offsetof(struct bench_row, per_second)},
    {"refused", BENCH_OPEN, WHOLE, offsetof(struct bench_row, refused)},
    {"first_ms", BENCH_CLOSED, REAL, offsetof(struct bench_row, first_ms)},
    {"median_ms", BOTH, REAL, offsetof(struct bench_row, total.median)},
    {"mean_ms", BOTH, REAL, offsetof(struct bench_row, total.mean)},
    {"p95_ms", BOTH, REAL, offsetof(struct bench_row, total.p95)},
    {"p99_ms", BOTH, REAL, offsetof(struct bench_row, total.p99)},
    {"min_ms", BOTH, REAL, offsetof(struct bench_row, total.min)},
    {"max_ms", BOTH, REAL, offsetof(struct bench_row, total.max)},
    {"late_ms", BENCH_OPEN, REAL, offsetof(struct bench_row, late_ms)},
    {"queue_median_ms", BENCH_CLOSED, REAL, offsetof(struct bench_row, queue_ms)},
    {"compute_median_ms", BENCH_CLOSED, REAL, offsetof(struct bench_row, compute_ms)},
    {"added_median_ms", BENCH_CLOSED, REAL, offsetof(struct bench_row, added_ms)},
    {"socket_median_ms", BENCH_SOCKET, REAL, offsetof(struct bench_row, socket_ms)},
    {"engine_median_ms", BENCH_ENGINE, REAL, offsetof(struct bench_row, engine_ms)},
    {"memory_bytes", BENCH_DEVICES, BYTES, offsetof(struct bench_row, memory_bytes)},
    {"failure", BENCH_DEVICES, TEXT, offsetof(struct bench_row, failure)},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

struct table *bench_table_start(unsigned parts)
{
    const char *names[COLUMNS];
    unsigned count = 0;
    for (size_t i = 0; i < COLUMNS; i++)
        if ((columns[i].parts & parts) != 0)
            names[count++] = columns[i].name;
    return table_create(names, count);
}

// Returns whether the value of this column was measured for the row.
static bool is_known(const struct bench_row *row, const struct column *column)
{
    unsigned loop = row->streams != 0 ? BENCH_CLOSED : BENCH_OPEN;
    if (column->kind == TEXT)
        return true;
    return row->failure == NULL && ((column->parts & BOTH) == 0 || (column->parts & loop) != 0);
}

static void add_bytes(struct table *table, int64_t bytes)
{
    char text[16];
    if (bytes > 0)
        table_whole(table, bytes, table_bytes((uint64_t)bytes, text));
    else
        table_value(table, json_null(), "-");
}

static void add_cell(struct table *table, const struct column *column, const void *field)
{
    const char *text = column->kind == TEXT ? *(const char *const *)field : NULL;
    switch (column->kind) {
    case TEXT:
        table_text(table, text != NULL ? text : "");
        break;
    case WHOLE:
        table_whole(table, *(const int64_t *)field, NULL);
        break;
    case REAL:
        table_real(table, *(const double *)field, NULL);
        break;
    case BYTES:
        add_bytes(table, *(const int64_t *)field);
        break;
    }
}

void bench_table_add(struct table *table, unsigned parts, const struct bench_row *row)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct column *column = &columns[i];
        if ((column->parts & parts) == 0)
            continue;
        if (is_known(row, column))
            add_cell(table, column, (const char *)row + column->offset);
        else
            table_value(table, json_null(), "-");
    }
}
