// SPDX-License-Identifier: Apache-2.0
// Finds the weights of layers by name. A list sorted by name has every weight under its own name
// and under a simplified one.
#include "backends/import/layers/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/graph.h"

// One name under which a weight is found: its own name or a simplified one.
struct alias {
    const char *name;
    uint32_t index;
};

struct inf_layers_weights {
    const struct inf_weights *weights;
    uint32_t *values;
    struct alias *aliases; // sorted by name
    uint32_t alias_count;
};

static int compare_aliases(const void *a, const void *b)
{
    const struct alias *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : (left->index > right->index) - (left->index < right->index);
}

// Simplifies a name: removes ":0" and one component, so that "lstm/cell/kernel" becomes
// "lstm/kernel".
static void simplify_name(char *name)
{
    size_t length = strlen(name);
    if (length > 2 && strcmp(name + length - 2, ":0") == 0)
        name[length - 2] = '\0';
    char *last = strrchr(name, '/');
    if (last == NULL)
        return;
    *last = '\0';
    char *middle = strrchr(name, '/');
    *last = '/';
    if (middle != NULL)
        memmove(middle, last, strlen(last) + 1);
}

static enum inf_code add_alias(struct inf_layers_weights *weights, uint32_t index,
                               struct inf_arena *arena, struct inf_error *err)
{
    const char *name = weights->weights->items[index].name;
    weights->values[index] = INF_VALUE_NONE;
    weights->aliases[weights->alias_count++] = (struct alias){name, index};
    char *simple = inf_arena_strdup(arena, name);
    if (simple == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the name of a weight");
    simplify_name(simple);
    if (strcmp(simple, name) != 0)
        weights->aliases[weights->alias_count++] = (struct alias){simple, index};
    return INF_OK;
}

enum inf_code inf_layers_weights_create(struct inf_layers_weights **out_weights,
                                        const struct inf_weights *source, struct inf_arena *arena,
                                        struct inf_error *err)
{
    struct inf_layers_weights *weights = inf_arena_alloc(arena, sizeof *weights);
    if (weights == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the names of weights");
    weights->weights = source;
    weights->values = inf_arena_alloc(arena, (source->count + 1) * sizeof *weights->values);
    weights->aliases = inf_arena_alloc(arena, (2 * source->count + 1) * sizeof *weights->aliases);
    if (weights->values == NULL || weights->aliases == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the names of weights");
    for (uint32_t i = 0; i < source->count; i++)
        INF_TRY(add_alias(weights, i, arena, err));
    qsort(weights->aliases, weights->alias_count, sizeof *weights->aliases, compare_aliases);
    *out_weights = weights;
    return INF_OK;
}

uint32_t inf_layers_weights_find(const struct inf_layers_weights *weights, const char *layer,
                                 const char *name)
{
    char text[INF_JSON_NAME_MAX + 64];
    if ((size_t)snprintf(text, sizeof text, "%s/%s", layer, name) >= sizeof text)
        return UINT32_MAX;
    // A weight's own name has priority over the simplified names of other weights.
    const struct inf_weight *exact = inf_weights_find(weights->weights, text);
    if (exact != NULL)
        return (uint32_t)(exact - weights->weights->items);
    struct alias key = {.name = text};
    uint32_t low = 0, high = weights->alias_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_aliases(&weights->aliases[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == weights->alias_count || strcmp(weights->aliases[low].name, text) != 0)
        return UINT32_MAX;
    return weights->aliases[low].index;
}

const struct inf_weight *inf_layers_weights_at(const struct inf_layers_weights *weights,
                                               uint32_t index)
{
    return &weights->weights->items[index];
}

uint32_t *inf_layers_weights_value(struct inf_layers_weights *weights, uint32_t index)
{
    return &weights->values[index];
}
