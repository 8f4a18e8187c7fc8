// SPDX-License-Identifier: Apache-2.0
// Parses input shapes, and binds them to the inputs of a graph.
#include "daemon/model/shapes.h"

#include <stdio.h>
#include <string.h>

#include "proto/core/tensor_name.h"

#define BLANKS " \t,"
#define SCALAR "scalar"

static enum inf_code refuse_shape(const char *part, size_t length, const char *wanted,
                                  struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER, "shape '%.*s': wanted %s",
                           (int)INF_MIN(length, (size_t)64), part, wanted);
}

// Parses a shape such as "1x3x224x224" from a text of `length` characters.
static bool read_shape(struct inf_shape *shape, const char *text, size_t length)
{
    *shape = (struct inf_shape){0};
    if (length == strlen(SCALAR) && memcmp(text, SCALAR, length) == 0)
        return true;
    for (size_t at = 0; at < length; at++) {
        int64_t dim = 0;
        size_t begin = at;
        for (; at < length && text[at] >= '0' && text[at] <= '9' && dim < INF_LIMIT_DIM; at++)
            dim = dim * 10 + (text[at] - '0');
        bool ends = at == length || (text[at] == 'x' && at + 1 < length);
        if (at == begin || !ends || dim >= INF_LIMIT_DIM || shape->rank == INF_LIMIT_RANK)
            return false;
        shape->dims[shape->rank++] = dim;
    }
    return shape->rank > 0;
}

// Parses "NAME=SHAPE" or "SHAPE". The last '=' is the separator, because tensor names may contain
// '='.
static enum inf_code read_entry(struct inf_shape_set *set, const char *text, size_t length,
                                struct inf_error *err)
{
    const char *equals = memrchr(text, '=', length);
    const char *shape = equals != NULL ? equals + 1 : text;
    size_t name_length = equals != NULL ? (size_t)(equals - text) : 0;
    if (set->count == INF_LIMIT_TENSORS)
        return refuse_shape(text, length, "at most 64 inputs", err);
    if (equals != NULL && name_length == 0)
        return refuse_shape(text, length, "an input's name before the =", err);
    if (!read_shape(&set->entries[set->count].shape, shape, length - (size_t)(shape - text)))
        return refuse_shape(text, length,
                            "INPUT=1x3x224x224, of at most 8 numbers, or INPUT=scalar", err);
    set->entries[set->count].name = equals != NULL ? text : NULL;
    set->entries[set->count++].name_length = (uint32_t)name_length;
    return INF_OK;
}

enum inf_code inf_shape_set_next(struct inf_shape_set *set, const char **text,
                                 struct inf_error *err)
{
    set->count = 0;
    const char *at = *text + strspn(*text, BLANKS ";");
    size_t length = strcspn(at, ";");
    *text = at + length;
    const char *end = at + length;
    while ((at += strspn(at, BLANKS)) < end) {
        size_t part = strcspn(at, BLANKS ";");
        INF_TRY(read_entry(set, at, part, err));
        at += part;
    }
    return INF_OK;
}

// --- finding the model input that a shape is meant for ---

static enum inf_code find_input(const struct inf_graph *graph, const char *name, uint32_t length,
                                uint32_t *out_index, struct inf_error *err)
{
    *out_index = 0;
    if (name == NULL && graph->input_count == 1)
        return INF_OK;
    if (name == NULL)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_UNKNOWN,
                               "a shape without a name: the model has %u inputs, wanted "
                               "INPUT=SHAPE",
                               graph->input_count);
    *out_index =
        inf_tensor_names_find(INF_TENSOR_NAMES(graph->inputs, graph->input_count), name, length);
    if (*out_index == graph->input_count)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_UNKNOWN,
                               "input '%.*s': the model has no such input; its first is '%s'",
                               (int)INF_MIN(length, 64u), name,
                               graph->input_count > 0 ? graph->inputs[0].name : "");
    return INF_OK;
}

// Fails if the model leaves the shape of an input open and the text does not give one.
static enum inf_code check_known(const struct inf_graph *graph, const struct inf_shape *shapes,
                                 struct inf_error *err)
{
    char text[INF_SHAPE_TEXT_SIZE];
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!inf_shape_known(&shapes[i]))
            return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                                   "input '%s': its shape %s is open, wanted %s=...",
                                   graph->inputs[i].name, inf_shape_print(&shapes[i], text),
                                   graph->inputs[i].name);
    return INF_OK;
}

enum inf_code inf_shape_set_bind(const struct inf_shape_set *set, const struct inf_graph *graph,
                                 struct inf_shape *shapes, struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        shapes[i] = graph->values[graph->inputs[i].value].shape;
    for (uint32_t i = 0; i < set->count; i++) {
        char actual[INF_SHAPE_TEXT_SIZE], wanted[INF_SHAPE_TEXT_SIZE];
        uint32_t index;
        INF_TRY(find_input(graph, set->entries[i].name, set->entries[i].name_length, &index, err));
        const struct inf_shape *own = &graph->values[graph->inputs[index].value].shape;
        if (!inf_shape_matches(&set->entries[i].shape, own))
            return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                                   "input '%s': shape is %s, wanted %s", graph->inputs[index].name,
                                   inf_shape_print(&set->entries[i].shape, actual),
                                   inf_shape_print(own, wanted));
        shapes[index] = set->entries[i].shape;
    }
    return check_known(graph, shapes, err);
}

bool inf_shape_set_bind_in_order(const struct inf_shape_set *set, const struct inf_graph *graph,
                                 struct inf_shape *shapes)
{
    bool fits = set->count == graph->input_count;
    for (uint32_t i = 0; fits && i < graph->input_count; i++) {
        shapes[i] = set->entries[i].shape;
        fits = inf_shape_matches(&shapes[i], &graph->values[graph->inputs[i].value].shape);
    }
    return fits;
}

bool inf_shape_sets_check(const char *text, char *wanted, size_t size)
{
    struct inf_shape_set set;
    struct inf_error err = {0};
    uint32_t count = 0;
    for (const char *rest = text; *rest != '\0'; count += set.count > 0)
        if (inf_shape_set_next(&set, &rest, &err) != INF_OK)
            break;
    if (err.code == INF_OK && count <= INF_SHAPE_SETS)
        return true;
    snprintf(wanted, size,
             "INPUT=1x3x224x224, blanks between inputs, and ; between at most %d sets",
             INF_SHAPE_SETS);
    return false;
}
