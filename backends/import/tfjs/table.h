// SPDX-License-Identifier: Apache-2.0
// Hash tables. An initializer graph or the model itself fills them once, from constants, and
// afterwards they are only read. Therefore a table becomes constants and a search.
#ifndef INF_BACKENDS_IMPORT_TFJS_TABLE_H
#define INF_BACKENDS_IMPORT_TFJS_TABLE_H

#include "backends/import/tfjs/lower.h"

// One table. Its weights are identified by the names of the nodes that hold them.
struct inf_tfjs_table {
    const char *name; // name of the node that creates it
    // Names of the weights with the keys and values; NULL until the table is filled.
    const char *keys, *values;
    bool is_computed; // true: filled with computed values, which is not supported
};

// All tables of a model.
struct inf_tfjs_tables {
    struct inf_tfjs_graph *initializer; // NULL if the model has none
    struct inf_tfjs_table *items;
    uint32_t count, capacity;
};

// Finds the tables of a model in its graph and in `document`'s modelInitializer, and the constants
// that fill them. Nodes of `source` that refer to a table point to it afterwards. Names are owned
// by the document and the graph.
//
// INF_INVALID  the initializer is not a graph, or its signature is invalid.
enum inf_code inf_tfjs_tables_read(struct inf_tfjs_tables *tables, const struct inf_json *document,
                                   struct inf_tfjs_graph *source,
                                   struct inf_error *err) INF_NODISCARD;

// Frees the tables. A zeroed struct is allowed.
void inf_tfjs_tables_fini(struct inf_tfjs_tables *tables);

// Lowers a node whose result is a reference to a hash table. The node gets a placeholder as its
// output, because lookups find the table through the node and never read this value.
enum inf_code inf_tfjs_table_handle(struct inf_tfjs_scope *scope,
                                    struct inf_error *err) INF_NODISCARD;

#endif
