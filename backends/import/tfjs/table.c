// SPDX-License-Identifier: Apache-2.0
// Finds hash tables and the constants that fill them. An initializer graph or the model's own graph
// fills a table; a resourceId connects the two graphs.
#include "backends/import/tfjs/table.h"

#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *op, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(op, names[i]) == 0)
            return true;
    return false;
}

static bool is_table(const struct inf_tfjs_node *node)
{
    static const char *const names[] = {"HashTable", "HashTableV2"};
    return is_one_of(node->op, names, INF_ARRAY_LENGTH(names));
}

// Returns true for operators that fill a table: (table, keys, values).
static bool is_filling(const struct inf_tfjs_node *node)
{
    static const char *const names[] = {"InitializeTable", "InitializeTableV2", "LookupTableImport",
                                        "LookupTableImportV2"};
    return is_one_of(node->op, names, INF_ARRAY_LENGTH(names)) && node->input_count == 3;
}

static enum inf_code add_table(struct inf_tfjs_tables *tables, const char *name, uint32_t *out,
                               struct inf_error *err)
{
    for (*out = 0; *out < tables->count; (*out)++)
        if (strcmp(tables->items[*out].name, name) == 0)
            return INF_OK;
    if (tables->count == tables->capacity) {
        uint32_t wanted = tables->capacity * 2 + 4;
        struct inf_tfjs_table *grown = realloc(tables->items, wanted * sizeof *grown);
        if (grown == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory for %u hash tables", wanted);
        tables->items = grown;
        tables->capacity = wanted;
    }
    tables->items[tables->count++] = (struct inf_tfjs_table){.name = name};
    return INF_OK;
}

// Returns the node of a reference, after skipping nodes that return their input. The graph may have
// cycles.
static const struct inf_tfjs_node *skip_passing_nodes(const struct inf_tfjs_graph *graph,
                                                      const struct inf_tfjs_ref *ref)
{
    const struct inf_tfjs_node *node = &graph->nodes[ref->node];
    for (uint32_t i = 0; i < graph->node_count; i++) {
        if (strcmp(node->op, "Identity") != 0 || node->input_count == 0)
            break;
        node = &graph->nodes[node->inputs[0].node];
    }
    return node;
}

static enum inf_code find_tables(struct inf_tfjs_tables *tables, const struct inf_tfjs_graph *graph,
                                 struct inf_error *err)
{
    uint32_t index;
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (is_table(&graph->nodes[i]))
            INF_TRY(add_table(tables, graph->nodes[i].name, &index, err));
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_tfjs_node *node = &graph->nodes[i];
        if (!is_filling(node) || !is_table(skip_passing_nodes(graph, &node->inputs[0])))
            continue;
        const struct inf_tfjs_node *keys = skip_passing_nodes(graph, &node->inputs[1]);
        const struct inf_tfjs_node *values = skip_passing_nodes(graph, &node->inputs[2]);
        INF_TRY(add_table(tables, skip_passing_nodes(graph, &node->inputs[0])->name, &index, err));
        struct inf_tfjs_table *table = &tables->items[index];
        table->keys = keys->name;
        table->values = values->name;
        table->is_computed = strcmp(keys->op, "Const") != 0 || strcmp(values->op, "Const") != 0;
    }
    return INF_OK;
}

static enum inf_code read_initializer(struct inf_tfjs_tables *tables,
                                      const struct inf_json *document, struct inf_error *err)
{
    struct inf_json initializer;
    INF_TRY(inf_json_find(document, "modelInitializer", &initializer, err));
    if (initializer.value == NULL || !inf_json_has(&initializer, "node"))
        return INF_OK;
    INF_TRY(inf_tfjs_graph_create(&tables->initializer, &initializer, err));
    return find_tables(tables, tables->initializer, err);
}

// Sets *out to the node of `graph` that an entry of a signature names; NULL if the entry names no
// node.
static enum inf_code find_node(const struct inf_json *entry, struct inf_tfjs_graph *graph,
                               struct inf_tfjs_node **out, struct inf_error *err)
{
    struct inf_json name;
    const char *text = entry->key;
    char where[INF_JSON_PATH_SIZE];
    struct inf_tfjs_ref ref;
    INF_TRY(inf_json_find(entry, "name", &name, err));
    if (name.value != NULL)
        INF_TRY(inf_json_name(&name, &text, err));
    INF_TRY(inf_tfjs_graph_resolve(graph, text, &ref, inf_json_path(entry, where), err));
    *out = &graph->nodes[ref.node];
    return INF_OK;
}

// Sets *out to the resourceId of a signature's entry; -1 if it has none.
static enum inf_code read_resource(const struct inf_json *entry, int64_t *out,
                                   struct inf_error *err)
{
    struct inf_json id;
    *out = -1;
    INF_TRY(inf_json_find(entry, "resourceId", &id, err));
    return id.value != NULL ? inf_json_int(&id, 0, INT64_MAX, out, err) : INF_OK;
}

// Returns the table that is output `resource` of the initializer; NULL if there is none.
static enum inf_code find_resource(struct inf_tfjs_tables *tables, const struct inf_json *outputs,
                                   int64_t resource, const struct inf_tfjs_table **out,
                                   struct inf_error *err)
{
    struct inf_json entry;
    void *iterator = NULL;
    *out = NULL;
    while (*out == NULL && inf_json_next(outputs, &iterator, &entry)) {
        struct inf_tfjs_node *node;
        int64_t id;
        uint32_t index;
        INF_TRY(read_resource(&entry, &id, err));
        if (id != resource)
            continue;
        INF_TRY(find_node(&entry, tables->initializer, &node, err));
        const struct inf_tfjs_ref ref = {.node = (uint32_t)(node - tables->initializer->nodes)};
        const struct inf_tfjs_node *table = skip_passing_nodes(tables->initializer, &ref);
        // Operators that fill a table also return the table, so look at their first input.
        if (is_filling(table))
            table = skip_passing_nodes(tables->initializer, &table->inputs[0]);
        if (!is_table(table))
            return INF_OK;
        INF_TRY(add_table(tables, table->name, &index, err));
        *out = &tables->items[index];
    }
    return INF_OK;
}

// Connects inputs of the model to outputs of the initializer with the same resourceId.
static enum inf_code connect_resources(struct inf_tfjs_tables *tables,
                                       const struct inf_json *document,
                                       struct inf_tfjs_graph *source, struct inf_error *err)
{
    struct inf_json signature, inputs, made, outputs, entry;
    void *iterator = NULL;
    INF_TRY(inf_json_find(document, "signature", &signature, err));
    INF_TRY(inf_json_find(document, "initializerSignature", &made, err));
    if (signature.value == NULL || made.value == NULL || tables->initializer == NULL)
        return INF_OK;
    INF_TRY(inf_json_find(&signature, "inputs", &inputs, err));
    INF_TRY(inf_json_find(&made, "outputs", &outputs, err));
    while (inf_json_next(&inputs, &iterator, &entry)) {
        struct inf_tfjs_node *node;
        int64_t id;
        INF_TRY(read_resource(&entry, &id, err));
        if (id < 0)
            continue;
        INF_TRY(find_node(&entry, source, &node, err));
        INF_TRY(find_resource(tables, &outputs, id, &node->table, err));
    }
    return INF_OK;
}

enum inf_code inf_tfjs_tables_read(struct inf_tfjs_tables *tables, const struct inf_json *document,
                                   struct inf_tfjs_graph *source, struct inf_error *err)
{
    uint32_t index;
    INF_TRY(read_initializer(tables, document, err));
    INF_TRY(find_tables(tables, source, err));
    // From here on no table is added, so pointers to tables stay valid.
    INF_TRY(connect_resources(tables, document, source, err));
    for (uint32_t i = 0; i < source->node_count; i++)
        if (is_table(&source->nodes[i])) {
            INF_TRY(add_table(tables, source->nodes[i].name, &index, err));
            source->nodes[i].table = &tables->items[index];
        }
    return INF_OK;
}

void inf_tfjs_tables_fini(struct inf_tfjs_tables *tables)
{
    inf_tfjs_graph_destroy(&tables->initializer);
    free(tables->items);
    *tables = (struct inf_tfjs_tables){0};
}
