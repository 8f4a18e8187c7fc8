// SPDX-License-Identifier: Apache-2.0
// Frees memory that is in use since the import of a graph and its passes, but is not needed: names
// and index lists of removed nodes, and copies of equal names and of equal small constants. Names,
// lists and constants are compacted one after the other. Each of these steps allocates all its
// memory before it changes the graph, so that a step without memory changes nothing.
#include <stdlib.h>
#include <string.h>

#include "backends/graph/graph.h"
#include "proto/core/hash.h"

// --- names ---

// Distinct names, in an open-addressing hash table. `slots` has a power of two of entries, of which
// at least half are NULL.
struct name_set {
    const char **slots;
    size_t mask;
};

static size_t hash_bytes(const void *bytes, size_t size)
{
    uint64_t hash = inf_hash_bytes(INF_HASH_INIT, bytes, size);
    return (size_t)(hash ^ hash >> 32);
}

// Returns a power of two that is at least twice `count`.
static size_t table_size(size_t count)
{
    size_t size = 2;
    while (size < 2 * count)
        size *= 2;
    return size;
}

// Returns the slot that holds the name or, if there is none, the empty slot for the name.
static const char **find_slot(const struct name_set *names, const char *name)
{
    size_t at = hash_bytes(name, strlen(name)) & names->mask;
    while (names->slots[at] != NULL && strcmp(names->slots[at], name) != 0)
        at = (at + 1) & names->mask;
    return &names->slots[at];
}

// A function that visit_names() calls for each name of a graph. Returns false to end the visits.
typedef bool visit_fn(const struct name_set *names, struct inf_texts *texts, const char **name);

// Calls `visit` for all names but those of subgraphs. Returns false if a call returned false.
static bool visit_names(struct inf_graph *graph, const struct name_set *names,
                        struct inf_texts *texts, visit_fn *visit)
{
    bool ok = true;
    for (uint32_t i = 0; i < graph->value_count && ok; i++)
        ok = visit(names, texts, &graph->values[i].name);
    for (uint32_t i = 0; i < graph->node_count && ok; i++)
        ok = visit(names, texts, &graph->nodes[i].name) &&
             visit(names, texts, &graph->nodes[i].source);
    for (uint32_t i = 0; i < graph->input_count && ok; i++)
        ok = visit(names, texts, &graph->inputs[i].name);
    for (uint32_t i = 0; i < graph->output_count && ok; i++)
        ok = visit(names, texts, &graph->outputs[i].name);
    return ok;
}

static bool add_name(const struct name_set *names, struct inf_texts *texts, const char **name)
{
    const char **slot = find_slot(names, *name);
    if (*slot == NULL)
        *slot = inf_texts_add(texts, *name);
    return *slot != NULL;
}

static bool replace_name(const struct name_set *names, struct inf_texts *texts, const char **name)
{
    (void)texts;
    *name = *find_slot(names, *name);
    return true;
}

// Replaces the texts of the graph by a set that has each name once.
static void compact_names(struct inf_graph *graph)
{
    size_t size = table_size((size_t)graph->value_count + 2 * (size_t)graph->node_count +
                             graph->input_count + graph->output_count);
    struct name_set names = {calloc(size, sizeof *names.slots), size - 1};
    struct inf_texts *texts = inf_texts_create(NULL);
    if (names.slots != NULL && texts != NULL && visit_names(graph, &names, texts, add_name)) {
        visit_names(graph, &names, NULL, replace_name);
        inf_texts_unref(&graph->texts);
        graph->texts = texts;
        texts = NULL;
    }
    inf_texts_unref(&texts);
    free(names.slots);
}

// --- index lists ---

// Moves the index lists of the nodes to a new arena, which holds nothing else.
static void compact_lists(struct inf_graph *graph)
{
    size_t count = 0;
    struct inf_arena arena = {0};
    for (uint32_t i = 0; i < graph->node_count; i++)
        count += (size_t)graph->nodes[i].input_count + graph->nodes[i].output_count;
    uint32_t *lists = inf_arena_alloc(&arena, count * sizeof *lists);
    if (lists == NULL)
        return;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct inf_node *node = &graph->nodes[i];
        if (node->input_count > 0)
            memcpy(lists, node->inputs, node->input_count * sizeof *lists);
        node->inputs = lists;
        lists += node->input_count;
        if (node->output_count > 0)
            memcpy(lists, node->outputs, node->output_count * sizeof *lists);
        node->outputs = lists;
        lists += node->output_count;
    }
    inf_arena_fini(&graph->arena);
    graph->arena = arena;
}

// --- constants ---

static bool same_blobs(const struct inf_blob *a, const struct inf_blob *b)
{
    return a->size_bytes == b->size_bytes && memcmp(a->data, b->data, a->size_bytes) == 0;
}

// Lets equal constants share a blob if their bytes are too few to be evicted.
static void share_constants(struct inf_graph *graph)
{
    size_t mask = table_size(graph->value_count) - 1;
    struct inf_blob **slots = calloc(mask + 1, sizeof *slots);
    for (uint32_t i = 0; slots != NULL && i < graph->value_count; i++) {
        struct inf_value *value = &graph->values[i];
        if (value->data == NULL || value->data->data == NULL ||
            value->data->size_bytes >= INF_BLOB_EVICTED_BYTES_MIN)
            continue;
        size_t at = hash_bytes(value->data->data, value->data->size_bytes) & mask;
        while (slots[at] != NULL && !same_blobs(slots[at], value->data))
            at = (at + 1) & mask;
        if (slots[at] == NULL) {
            slots[at] = value->data;
        } else if (slots[at] != value->data) {
            inf_blob_unref(&value->data);
            value->data = inf_blob_ref(slots[at]);
        }
    }
    free(slots);
}

// Compacts subgraphs recursively. The verifier limits the recursion depth to INF_LIMIT_GRAPH_DEPTH.
void inf_graph_compact(struct inf_graph *graph)
{
    compact_names(graph);
    compact_lists(graph);
    share_constants(graph);
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        inf_graph_compact(graph->subgraphs[i]);
}
