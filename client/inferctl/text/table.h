// SPDX-License-Identifier: Apache-2.0
// Tables whose rows are printed either with aligned columns or as JSON.
#ifndef INF_CLIENT_INFERCTL_TEXT_TABLE_H
#define INF_CLIENT_INFERCTL_TEXT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/inferctl/cli/command.h"

#define TABLE_COLUMNS 24

struct table;

// Starts a table with `count` columns of these names. table_print() frees the table. All functions
// of this file end the program if there is no memory.
struct table *table_create(const char *const *columns, unsigned count);

// Fills the next cell of the current row with a text. Control characters become "?".
void table_text(struct table *table, const char *text);

// Fills the next cell of the current row with a whole number. In the printed table the cell is
// shown as `shown` (NULL: as the number).
void table_whole(struct table *table, int64_t number, const char *shown);

// Fills the next cell of the current row with a number. In the printed table the cell is shown as
// `shown` (NULL: as the number with three decimals).
void table_real(struct table *table, double number, const char *shown);

// Fills the next cell of the current row with a JSON value, which the table then owns. In the
// printed table the cell is shown as `shown`.
void table_value(struct table *table, json_t *value, const char *shown);

// Prints the table with aligned columns or, with OUTPUT_JSON, as an array of objects (if `single`,
// as one object). Frees the table.
void table_print(struct table *table, enum output_format format, bool single);

// Returns the rows as an array of objects, which the caller owns. Frees the table.
json_t *table_json(struct table *table);

// Returns whether the table has no rows.
bool table_is_empty(const struct table *table);

// Frees a table that is not printed. NULL is allowed.
void table_free(struct table *table);

// Writes a size such as "1.2 MiB" to `text` and returns it.
const char *table_bytes(uint64_t bytes, char text[16]);

// Writes a duration such as "3 d 4 h", "12 min" or "5.2 s" to `text` and returns it.
const char *table_duration(uint64_t ns, char text[24]);

#endif
