// SPDX-License-Identifier: Apache-2.0
// Hash tables: filled once, by an initializer graph or by the model's own, from constants. While a
// model runs they only answer, so they become constants and a search.
#ifndef INF_BACKENDS_IMPORT_TFJS_TABLE_H
#define INF_BACKENDS_IMPORT_TFJS_TABLE_H

#include "backends/import/tfjs/lower.h"

// One table. The weights that fill it are named by the nodes they came from.
struct inf_tfjs_table {
    const char *name;          // of the node that makes it
    const char *keys, *values; // weights; NULL while nothing fills it
    bool is_computed;          // filled from something that is no constant
};

// All tables of a model. Embedded.
struct inf_tfjs_tables {
    struct inf_tfjs_graph *initializer; // NULL where the model has none
    struct inf_tfjs_table *items;
    uint32_t count, capacity;
};

// Finds the tables of a model, in its graph and in `document`'s modelInitializer, and what fills
// them; nodes of `source` that stand for one point to it from then on. The names are the document's
// and the graph's.
//
// INF_INVALID  the initializer, or its signature, is no graph.
enum inf_code inf_tfjs_tables_read(struct inf_tfjs_tables *tables, const struct inf_json *document,
                                   struct inf_tfjs_graph *source,
                                   struct inf_error *err) INF_NODISCARD;

// Frees the tables. Zeroed ones are fine.
void inf_tfjs_tables_fini(struct inf_tfjs_tables *tables);

// Gives the node, which stands for a table, an output that nobody looks at.
enum inf_code inf_tfjs_table_handle(struct inf_tfjs_scope *scope,
                                    struct inf_error *err) INF_NODISCARD;

#endif
