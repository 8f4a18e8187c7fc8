// SPDX-License-Identifier: Apache-2.0
// Hash tables. They are filled once, from constants, by an initializer graph or by the model
// itself, and only read afterwards. So they become constants and a search.
#ifndef INF_BACKENDS_IMPORT_TFJS_TABLE_H
#define INF_BACKENDS_IMPORT_TFJS_TABLE_H

#include "backends/import/tfjs/lower.h"

// One table. Weights are named by the nodes that hold them.
struct inf_tfjs_table {
    const char *name;          // name of the node that makes it
    const char *keys, *values; // names of weights; NULL until the table is filled
    bool is_computed;          // filled with computed values, which is not supported
};

// All tables of a model.
struct inf_tfjs_tables {
    struct inf_tfjs_graph *initializer; // NULL if the model has none
    struct inf_tfjs_table *items;
    uint32_t count, capacity;
};

// Finds the tables of a model in its graph and in `document`'s modelInitializer, and the constants
// that fill them. Nodes of `source` that mean a table point to it afterwards. Names are owned by
// the document and the graph.
//
// INF_INVALID  the initializer, or its signature, is no graph.
enum inf_code inf_tfjs_tables_read(struct inf_tfjs_tables *tables, const struct inf_json *document,
                                   struct inf_tfjs_graph *source,
                                   struct inf_error *err) INF_NODISCARD;

// Frees the tables. All-zero tables are allowed.
void inf_tfjs_tables_fini(struct inf_tfjs_tables *tables);

// Gives a node that means a table an output that is never read.
enum inf_code inf_tfjs_table_handle(struct inf_tfjs_scope *scope,
                                    struct inf_error *err) INF_NODISCARD;

#endif
