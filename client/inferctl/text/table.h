// SPDX-License-Identifier: Apache-2.0
// Rows for people or for programs: the same rows print as an aligned table or as JSON.
#ifndef INF_CLIENT_INFERCTL_TEXT_TABLE_H
#define INF_CLIENT_INFERCTL_TEXT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/inferctl/cli/command.h"

#define TABLE_COLUMNS 24

struct table;

// Starts a table with the given column names, `count` of them. Ends with table_print(); dies where
// memory is short.
struct table *table_create(const char *const *columns, unsigned count);

// Adds the next cell, row by row: a text. Control characters in it are shown as "?".
void table_text(struct table *table, const char *text);

// Adds the next cell: a whole number; `shown` is what the table shows for it (NULL: the number).
void table_whole(struct table *table, int64_t number, const char *shown);

// Adds the next cell: any number; NULL shows it with three decimals.
void table_real(struct table *table, double number, const char *shown);

// Adds the next cell: any value, which becomes the table's, shown as `shown`.
void table_value(struct table *table, json_t *value, const char *shown);

// Prints the table: aligned columns, or with OUTPUT_JSON an array of objects (one object alone where
// `single`). Frees it.
void table_print(struct table *table, enum output_format format, bool single);

// The rows as an array of objects, the caller's. Frees the table.
json_t *table_json(struct table *table);

// Frees a table that is not printed. NULL is fine.
void table_free(struct table *table);

// Writes "1.2 MiB" or the like into `text` and returns it.
const char *table_bytes(uint64_t bytes, char text[16]);

// Writes "3 d 4 h", "12 min", "5.2 s" or the like into `text` and returns it.
const char *table_duration(uint64_t ns, char text[24]);

#endif
