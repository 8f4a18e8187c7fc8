// SPDX-License-Identifier: Apache-2.0
// Strings of attributes. Looking up a string needs sorted keys that differ, so the keys are sorted
// when the model is imported, and a table turns places in the sorted list into places in the list
// of the file. Numbers are compared with every key.
#include "backends/import/onnx/keys.h"

#include <stdlib.h>
#include <string.h>

#include "backends/base/pattern/pattern.h"
#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"

// Field numbers of AttributeProto.
#define FIELD_TEXT  4
#define FIELD_TEXTS 9

// Adds the string to the strings of the graph, and stores its handle.
static void store_string(struct inf_onnx_scope *s, struct inf_span string, uint64_t *handle)
{
    if (inf_build_ok(&s->b))
        s->b.code = inf_string_pool_add(inf_shared_strings_pool(s->b.graph->strings), string,
                                        handle, s->b.err);
}

uint32_t inf_onnx_attr_strings(struct inf_onnx_scope *s, const char *name)
{
    const struct inf_onnx_attr *attr = inf_onnx_find_attr(s, name);
    struct inf_pb_field field;
    uint64_t *handles;
    uint32_t count = 0;
    bool more;
    if (attr == NULL)
        return INF_VALUE_NONE;
    if (attr->type != INF_ONNX_ATTR_STRINGS && attr->type != INF_ONNX_ATTR_NONE)
        inf_build_fail(&s->b, INF_INVALID, "attribute '%s' is of type %d, wanted strings", name,
                       (int)attr->type);
    for (struct inf_pb pb = {attr->body}; inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more;)
        count += field.number == FIELD_TEXTS && field.type == INF_PB_BYTES;
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_BYTES, &INF_SHAPE(count), &handles);
    if (handles == NULL)
        return INF_VALUE_NONE;
    for (struct inf_pb pb = {attr->body}; inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more;)
        if (field.number == FIELD_TEXTS && field.type == INF_PB_BYTES)
            store_string(s, field.bytes, handles++);
    return value;
}

uint32_t inf_onnx_attr_string(struct inf_onnx_scope *s, const char *name, const char *fallback)
{
    const struct inf_onnx_attr *attr = inf_onnx_find_attr(s, name);
    struct inf_span string = {(const uint8_t *)fallback, strlen(fallback)};
    struct inf_pb_field field;
    uint64_t *handle;
    if (attr != NULL && attr->type != INF_ONNX_ATTR_STRING)
        inf_build_fail(&s->b, INF_INVALID, "attribute '%s' is of type %d, wanted a string", name,
                       (int)attr->type);
    if (attr != NULL) {
        inf_onnx_field(attr->body, FIELD_TEXT, &field);
        string = field.bytes;
    }
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_BYTES, &(struct inf_shape){0}, &handle);
    if (handle != NULL)
        store_string(s, string, handle);
    return value;
}

uint32_t inf_onnx_attr_labels(struct inf_onnx_scope *s, const char *ints, const char *strings)
{
    uint32_t labels = inf_onnx_attr_strings(s, strings);
    // A file may have an empty list beside the one that is used.
    uint32_t numbers = inf_onnx_attr_long_ints(s, ints);
    if (labels == INF_VALUE_NONE || inf_build_dim(&s->b, labels, 0) == 0)
        labels = numbers;
    if (labels == INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "has neither %s nor %s", ints, strings);
    return labels;
}

void inf_onnx_check_patterns(struct inf_onnx_scope *s, uint32_t patterns)
{
    const struct inf_strings strings = {.constants = inf_shared_strings_pool(s->b.graph->strings)};
    const struct inf_blob *data = inf_build_ok(&s->b) ? s->b.graph->values[patterns].data : NULL;
    size_t count = data != NULL ? data->size_bytes / sizeof(uint64_t) : 0;
    for (size_t i = 0; inf_build_ok(&s->b) && i < count; i++) {
        struct inf_pattern *compiled = NULL;
        struct inf_error why = {0};
        struct inf_span text;
        enum inf_code code =
            inf_strings_get(&strings, ((const uint64_t *)data->data)[i], &text, &why);
        if (code == INF_OK)
            code = inf_pattern_compile(&compiled, text, &why);
        inf_pattern_destroy(&compiled);
        if (code != INF_OK)
            inf_build_fail(&s->b, code, "%.200s", why.text);
    }
}

// --- looking up strings ---

struct sorter {
    const struct inf_string_pool *pool;
    const uint64_t *handles;
};

static struct inf_span key_at(const struct sorter *sorter, uint32_t index)
{
    const struct inf_strings strings = {.constants = sorter->pool};
    struct inf_span key;
    if (inf_strings_get(&strings, sorter->handles[index], &key, NULL) != INF_OK)
        key = (struct inf_span){0};
    return key;
}

static int by_key_then_place(const void *a, const void *b, void *context)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int order = inf_string_compare(key_at(context, i), key_at(context, j));
    return order != 0 ? order : (i > j) - (i < j);
}

// Sorts the places of the keys, and drops those whose keys are equal to an earlier one. Returns how
// many are left.
static uint32_t sort_places(struct sorter *sorter, uint32_t *places, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        places[i] = i;
    qsort_r(places, count, sizeof *places, by_key_then_place, sorter);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 ||
            inf_string_compare(key_at(sorter, places[kept - 1]), key_at(sorter, places[i])) != 0)
            places[kept++] = places[i];
    return kept;
}

void inf_onnx_number_keys(const struct inf_string_pool *pool, const uint64_t *handles,
                          uint32_t count, int64_t *places, struct inf_builder *b)
{
    struct sorter sorter = {pool, handles};
    uint32_t *sorted = calloc((size_t)count + 1, sizeof *sorted);
    if (sorted == NULL) {
        inf_build_fail(b, INF_EXHAUSTED, "no memory for %u strings", count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = i;
    qsort_r(sorted, count, sizeof *sorted, by_key_then_place, &sorter);
    for (uint32_t i = 0; i < count; i++) {
        bool is_same = i > 0 && inf_string_compare(key_at(&sorter, sorted[i - 1]),
                                                   key_at(&sorter, sorted[i])) == 0;
        places[sorted[i]] = is_same ? places[sorted[i - 1]] : sorted[i];
    }
    free(sorted);
}

static uint32_t find_strings(struct inf_onnx_scope *s, uint32_t x, uint32_t keys)
{
    uint32_t count = (uint32_t)inf_build_known_dim(&s->b, keys, 0);
    uint32_t *places = calloc((size_t)count + 1, sizeof *places);
    uint64_t *sorted;
    int32_t *table;
    if (places == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for %u strings", count);
    if (!inf_build_ok(&s->b)) {
        free(places);
        return INF_VALUE_NONE;
    }
    struct sorter sorter = {inf_shared_strings_pool(s->b.graph->strings),
                            s->b.graph->values[keys].data->data};
    uint32_t kept = sort_places(&sorter, places, count);
    uint32_t sorted_keys = inf_build_const(&s->b, INF_DTYPE_BYTES, &INF_SHAPE(kept), &sorted);
    uint32_t place_table = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(kept + 1), &table);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < kept; i++) {
        sorted[i] = sorter.handles[places[i]];
        table[i] = (int32_t)places[i];
    }
    if (inf_build_ok(&s->b))
        table[kept] = (int32_t)count;
    free(places);
    struct inf_build_node node =
        inf_build_describe(INF_OP_STRING_FIND, x, sorted_keys, INF_VALUE_NONE);
    uint32_t found = inf_build_value(&s->b, &node);
    uint32_t lacks = inf_build_compare(&s->b, INF_COMPARE_LESS, found,
                                       inf_build_scalar(&s->b, INF_DTYPE_I32, 0));
    found = inf_build_select(&s->b, lacks, inf_build_scalar(&s->b, INF_DTYPE_I32, kept), found);
    return inf_build_gather(&s->b, place_table, found, 0);
}

// Compares each element with all keys along a further axis. The first key that is equal has the
// largest value of (equal ? count - place : 0).
static uint32_t find_numbers(struct inf_onnx_scope *s, uint32_t x, uint32_t keys)
{
    int64_t count = inf_build_known_dim(&s->b, keys, 0), axis = inf_build_rank(&s->b, x);
    const struct inf_ints axes = {.count = 1, .values = {(int32_t)axis}};
    uint32_t total = inf_build_scalar(&s->b, INF_DTYPE_I32, (double)count);
    uint32_t wide = inf_build_expand_dims(&s->b, x, &axis, 1);
    uint32_t equal = inf_build_compare(&s->b, INF_COMPARE_EQUAL, wide, keys);
    if (inf_dtype_is_float(inf_build_dtype(&s->b, x))) {
        uint32_t both =
            inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND,
                             inf_build_compare(&s->b, INF_COMPARE_NOT_EQUAL, wide, wide),
                             inf_build_compare(&s->b, INF_COMPARE_NOT_EQUAL, keys, keys));
        equal = inf_build_binary(&s->b, INF_BINARY_LOGICAL_OR, equal, both);
    }
    uint32_t rest = inf_build_sub(&s->b, total, inf_build_iota(&s->b, INF_DTYPE_I32, count));
    rest = inf_build_mul(&s->b, inf_build_cast(&s->b, equal, INF_DTYPE_I32), rest);
    return inf_build_sub(&s->b, total, inf_build_reduce(&s->b, INF_REDUCE_MAX, rest, &axes, false));
}

uint32_t inf_onnx_find_keys(struct inf_onnx_scope *s, uint32_t x, uint32_t keys)
{
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    if (inf_build_dtype(&s->b, x) != inf_build_dtype(&s->b, keys))
        inf_build_fail(&s->b, INF_INVALID, "x is %s, its keys are %s",
                       inf_dtype_name(inf_build_dtype(&s->b, x)),
                       inf_dtype_name(inf_build_dtype(&s->b, keys)));
    if (!inf_build_is_const(&s->b, keys) || inf_build_rank(&s->b, keys) != 1)
        inf_build_fail(&s->b, INF_INVALID, "its keys are no list of constants");
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    return inf_build_dtype(&s->b, x) == INF_DTYPE_BYTES ? find_strings(s, x, keys)
                                                        : find_numbers(s, x, keys);
}
