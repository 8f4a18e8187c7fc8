// SPDX-License-Identifier: Apache-2.0
// Lookups in hash tables. The sorted keys become a constant. A binary search finds a position, and
// if the key there is equal, the result is the value at that position.
#include <stdlib.h>
#include <string.h>

#include "backends/import/tfjs/op_table.h"
#include "backends/import/tfjs/table.h"

enum inf_code inf_tfjs_table_handle(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, 0, &value, err));
    return inf_tfjs_result(scope, value, err);
}

// Returns the table of the node's first input; NULL if it is unknown.
static const struct inf_tfjs_table *find_table(const struct inf_tfjs_scope *scope)
{
    const struct inf_tfjs_node *node = &scope->source->nodes[scope->node->inputs[0].node];
    // This loop ends, because the Identity nodes have been lowered and therefore form no cycle.
    while (node->table == NULL && strcmp(node->op, "Identity") == 0 && node->input_count > 0)
        node = &scope->source->nodes[node->inputs[0].node];
    return node->table;
}

// The keys and values of the hash table that a lookup reads.
struct contents {
    const struct inf_weight *keys, *values;
    uint32_t count;  // number of keys, including duplicates
    uint32_t *order; // `count` indices of keys in sorted order; the caller frees them
};

static enum inf_code check_weight(struct inf_tfjs_scope *scope, const char *name,
                                  const struct inf_weight **out, struct inf_error *err)
{
    *out = inf_weights_find(scope->weights, name);
    if (*out == NULL)
        return inf_tfjs_fail(scope, err, INF_INVALID,
                             "its table is filled from '%.200s', and weightsManifest has no weight "
                             "of that name",
                             name);
    if ((*out)->data == NULL || (*out)->dtype == INF_DTYPE_BYTES)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "its table holds dtype %s ('%.200s'), wanted float32, int32 or bool",
                             (*out)->type_name, name);
    if ((*out)->shape.rank != 1)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "its table is filled from '%.200s' of rank %d, wanted a list", name,
                             (*out)->shape.rank);
    return INF_OK;
}

static double get_key(const struct inf_weight *keys, uint32_t index)
{
    const void *data = keys->data->data;
    return keys->dtype == INF_DTYPE_F32 ? (double)((const float *)data)[index]
                                        : (double)((const int32_t *)data)[index];
}

static int compare_keys(const void *a, const void *b, void *context)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    double x = get_key(context, left), y = get_key(context, right);
    // Sort a later key before an earlier equal one, because the later one replaces it.
    return x != y ? (x > y) - (x < y) : (left < right) - (left > right);
}

static enum inf_code read_contents(struct inf_tfjs_scope *scope, struct contents *contents,
                                   struct inf_error *err)
{
    const struct inf_tfjs_table *table = find_table(scope);
    if (table == NULL)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "which table it asks is not known");
    if (table->keys == NULL)
        return inf_tfjs_fail(scope, err, INF_INVALID, "nothing fills the table '%.200s'",
                             table->name);
    if (table->is_computed)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "table '%.200s' is filled by other nodes, wanted constants",
                             table->name);
    INF_TRY(check_weight(scope, table->keys, &contents->keys, err));
    INF_TRY(check_weight(scope, table->values, &contents->values, err));
    if (contents->keys->dtype == INF_DTYPE_BOOL)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "the keys of table '%.200s' are bools",
                             table->name);
    if (contents->keys->shape.dims[0] != contents->values->shape.dims[0])
        return inf_tfjs_fail(
            scope, err, INF_INVALID, "table '%.200s' has %lld keys and %lld values", table->name,
            (long long)contents->keys->shape.dims[0], (long long)contents->values->shape.dims[0]);
    contents->count = (uint32_t)contents->keys->shape.dims[0];
    contents->order = malloc(((size_t)contents->count + 1) * sizeof *contents->order);
    if (contents->order == NULL)
        return inf_tfjs_fail(scope, err, INF_EXHAUSTED, "no memory for %u keys", contents->count);
    for (uint32_t i = 0; i < contents->count; i++)
        contents->order[i] = i;
    qsort_r(contents->order, contents->count, sizeof *contents->order, compare_keys,
            (void *)contents->keys);
    // Keep only the first of equal keys.
    uint32_t kept = 0;
    for (uint32_t i = 0; i < contents->count; i++)
        if (kept == 0 || get_key(contents->keys, contents->order[kept - 1]) !=
                             get_key(contents->keys, contents->order[i]))
            contents->order[kept++] = contents->order[i];
    contents->count = kept;
    return INF_OK;
}

// Adds the elements of a weight as a constant, in the sorted order of the table.
static enum inf_code add_ordered(struct inf_tfjs_scope *scope, const struct contents *contents,
                                 const struct inf_weight *weight, uint32_t *out_value,
                                 struct inf_error *err)
{
    size_t size = inf_dtype_size(weight->dtype);
    struct inf_blob *data = inf_blob_create(contents->count * size);
    if (data == NULL)
        return inf_tfjs_fail(scope, err, INF_EXHAUSTED, "no memory for %u keys", contents->count);
    for (uint32_t i = 0; i < contents->count; i++)
        memcpy((char *)data->data + i * size,
               (const char *)weight->data->data + contents->order[i] * size, size);
    struct inf_shape shape = INF_SHAPE(contents->count);
    return inf_graph_add_const(scope->graph, weight->name, weight->dtype, &shape, data, out_value,
                               err);
}

static enum inf_code emit_binary_op(struct inf_tfjs_scope *scope, enum inf_op op, uint32_t a,
                                    uint32_t b, uint32_t *out_value, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe(op, a, b, INF_VALUE_NONE);
    return inf_tfjs_emit(scope, &call, out_value, err);
}

// Adds nodes that look up the keys in the list `asked`. Keys that are not in the table get the
// default value.
static enum inf_code emit_lookup(struct inf_tfjs_scope *scope, const struct contents *contents,
                                 uint32_t asked, uint32_t *out_value, struct inf_error *err)
{
    uint32_t keys, values, place, last, near, found, value;
    INF_TRY(add_ordered(scope, contents, contents->keys, &keys, err));
    INF_TRY(add_ordered(scope, contents, contents->values, &values, err));
    INF_TRY(emit_binary_op(scope, INF_OP_SEARCH_SORTED, keys, asked, &place, err));
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, contents->count - 1, &last, err));
    struct inf_build_node call = inf_build_describe(INF_OP_BINARY, place, last, INF_VALUE_NONE);
    call.attrs.binary.kind = INF_BINARY_MIN;
    INF_TRY(inf_tfjs_emit(scope, &call, &place, err));
    INF_TRY(emit_binary_op(scope, INF_OP_GATHER, keys, place, &near, err));
    INF_TRY(emit_binary_op(scope, INF_OP_GATHER, values, place, &value, err));
    INF_TRY(emit_binary_op(scope, INF_OP_COMPARE, near, asked, &found, err));
    call = inf_build_describe(INF_OP_SELECT, found, value, scope->inputs[2]);
    return inf_tfjs_emit(scope, &call, out_value, err);
}

// Looks up a list of keys. Other shapes are flattened first, and the result is reshaped.
static enum inf_code emit_find(struct inf_tfjs_scope *scope, const struct contents *contents,
                               uint32_t *out_value, struct inf_error *err)
{
    uint32_t asked = scope->inputs[1], shape, flat;
    INF_TRY(emit_binary_op(scope, INF_OP_SHAPE, asked, INF_VALUE_NONE, &shape, err));
    if (contents->count == 0)
        return emit_binary_op(scope, INF_OP_FILL, shape, scope->inputs[2], out_value, err);
    if (inf_tfjs_input(scope, 1)->shape.rank == 1)
        return emit_lookup(scope, contents, asked, out_value, err);
    INF_TRY(inf_tfjs_add_ints(scope, (const int64_t[]){-1}, 1, &flat, err));
    INF_TRY(emit_binary_op(scope, INF_OP_RESHAPE, asked, flat, &asked, err));
    INF_TRY(emit_lookup(scope, contents, asked, out_value, err));
    return emit_binary_op(scope, INF_OP_RESHAPE, *out_value, shape, out_value, err);
}

// Lowers LookupTableFind. The inputs are table, keys, default.
static enum inf_code lower_find(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct contents contents = {.order = NULL};
    uint32_t value;
    enum inf_code code = read_contents(scope, &contents, err);
    if (code == INF_OK)
        code = emit_find(scope, &contents, &value, err);
    free(contents.order);
    return code == INF_OK ? inf_tfjs_result(scope, value, err) : code;
}

static enum inf_code lower_size(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct contents contents = {.order = NULL};
    uint32_t value;
    enum inf_code code = read_contents(scope, &contents, err);
    free(contents.order);
    INF_TRY(code);
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, contents.count, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static const struct inf_tfjs_op ops[] = {
    {"HashTable", inf_tfjs_table_handle, 0, 0, 0},
    {"HashTableV2", inf_tfjs_table_handle, 0, 0, 0},
    // No node is needed, because the operators that fill tables are read before any node is
    // lowered.
    {"InitializeTable", inf_tfjs_table_handle, 3, 3, 0},
    {"InitializeTableV2", inf_tfjs_table_handle, 3, 3, 0},
    {"LookupTableImport", inf_tfjs_table_handle, 3, 3, 0},
    {"LookupTableImportV2", inf_tfjs_table_handle, 3, 3, 0},
    {"LookupTableFind", lower_find, 3, 3, 0},
    {"LookupTableFindV2", lower_find, 3, 3, 0},
    {"LookupTableSize", lower_size, 1, 1, 0},
    {"LookupTableSizeV2", lower_size, 1, 1, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_table = {ops, INF_ARRAY_LENGTH(ops)};
