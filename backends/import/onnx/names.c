// SPDX-License-Identifier: Apache-2.0
// A hash table with open addressing. At most half of the entries are in use, so that a search
// always ends at a free entry.
#include "backends/import/onnx/names.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/hash.h"

// Returns the table entry of a name or, if the name is not in the table, the free entry for it.
static struct inf_onnx_name *find_entry(const struct inf_onnx_names *names, const char *name)
{
    uint64_t hash = inf_hash_bytes(INF_HASH_INIT, name, strlen(name));
    hash ^= hash >> 32;
    uint32_t index = (uint32_t)hash & (names->capacity - 1);
    while (names->places[index].name != NULL && strcmp(names->places[index].name, name) != 0)
        index = (index + 1) & (names->capacity - 1);
    return &names->places[index];
}

// Grows the table so that at most half of the entries are in use.
static bool make_room(struct inf_onnx_names *names)
{
    if (names->count < names->capacity / 2)
        return true;
    if (names->capacity >= 1u << 28)
        return false;
    struct inf_onnx_names larger = {.capacity = names->capacity == 0 ? 64 : names->capacity * 2,
                                    .count = names->count};
    larger.places = calloc(larger.capacity, sizeof *larger.places);
    if (larger.places == NULL)
        return false;
    for (uint32_t i = 0; i < names->capacity; i++)
        if (names->places[i].name != NULL)
            *find_entry(&larger, names->places[i].name) = names->places[i];
    free(names->places);
    *names = larger;
    return true;
}

bool inf_onnx_names_add(struct inf_onnx_names *names, const char *name, uint32_t value, bool *known)
{
    if (!make_room(names))
        return false;
    struct inf_onnx_name *place = find_entry(names, name);
    *known = place->name != NULL;
    if (*known)
        return true;
    *place = (struct inf_onnx_name){name, value};
    names->count++;
    return true;
}

bool inf_onnx_names_find(const struct inf_onnx_names *names, const char *name, uint32_t *out_value)
{
    if (names->capacity == 0)
        return false;
    const struct inf_onnx_name *place = find_entry(names, name);
    if (place->name != NULL)
        *out_value = place->value;
    return place->name != NULL;
}

void inf_onnx_names_fini(struct inf_onnx_names *names)
{
    free(names->places);
    *names = (struct inf_onnx_names){0};
}
