// SPDX-License-Identifier: Apache-2.0
// Changes JSON documents in a reproducible way.
#include "tests/support/models/mutate.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

uint32_t inf_mutate_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

void inf_mutate_truncate(const char *text, size_t size, size_t step, inf_mutate_visit *visit)
{
    for (size_t length = 0; length < size; length += step)
        visit(text, length);
}

void inf_mutate_bytes(const char *text, size_t size, unsigned rounds, inf_mutate_visit *visit)
{
    static const char bytes[] = "\"{}[]:,0123456789-.eE\\u truefalsnil^:\0\xff\x80/";
    char *mutant = malloc(size);
    uint64_t state = 1;
    for (unsigned round = 0; round < rounds; round++) {
        memcpy(mutant, text, size);
        for (unsigned n = inf_mutate_random(&state) % 3 + 1; n > 0; n--) {
            char byte = (char)inf_mutate_random(&state);
            if (inf_mutate_random(&state) % 4 > 0)
                byte = bytes[inf_mutate_random(&state) % (sizeof bytes - 1)];
            mutant[inf_mutate_random(&state) % size] = byte;
        }
        visit(mutant, size);
    }
    free(mutant);
}

void inf_mutate_digits(const char *text, size_t size, unsigned rounds, inf_mutate_visit *visit)
{
    char *mutant = malloc(size);
    uint64_t state = 2;
    for (unsigned round = 0; round < rounds; round++) {
        memcpy(mutant, text, size);
        for (unsigned n = inf_mutate_random(&state) % 4 + 1; n > 0;) {
            size_t at = inf_mutate_random(&state) % size;
            if (mutant[at] < '0' || mutant[at] > '9')
                continue;
            mutant[at] = (char)("0123456789-"[inf_mutate_random(&state) % 11]);
            n--;
        }
        visit(mutant, size);
    }
    free(mutant);
}

// The place of a value in its parent: a key in an object or an index in an array.
struct place {
    json_t *parent;
    const char *key; // key in an object; NULL in an array
    size_t index;    // index in an array
};

// Finds value number *index below `value`, counting all nested values in document order, stores its
// place, and returns 1. If there are fewer values, subtracts their number from *index and returns
// 0.
static int find_place(json_t *value, size_t *index, struct place *place)
{
    const char *key;
    size_t i;
    json_t *child;
    json_object_foreach(value, key, child)
    {
        *place = (struct place){.parent = value, .key = key};
        if ((*index)-- == 0 || find_place(child, index, place))
            return 1;
    }
    json_array_foreach(value, i, child)
    {
        *place = (struct place){.parent = value, .index = i};
        if ((*index)-- == 0 || find_place(child, index, place))
            return 1;
    }
    return 0;
}

static void replace_value(const struct place *place, json_t *other)
{
    if (place->key != NULL && other != NULL)
        json_object_set_new_nocheck(place->parent, place->key, other);
    else if (place->key != NULL)
        json_object_del(place->parent, place->key);
    else if (other != NULL)
        json_array_set_new(place->parent, place->index, other);
    else
        json_array_remove(place->parent, place->index);
}

size_t inf_mutate_values(const char *text, size_t size, inf_mutate_visit *visit)
{
    static const char *const others[] = {"null",  "true", "0",     "-1",      "9223372036854775807",
                                         "1e308", "\"\"", "\"x\"", "\"x:3\"", "\"-1\"",
                                         "[]",    "{}",   "[[]]",  "[-1]",    "{\"a\":1}",
                                         NULL};
    for (size_t count = 0;; count++) {
        json_t *root = json_loadb(text, size, 0, NULL);
        size_t index = count;
        struct place place = {0};
        int found = find_place(root, &index, &place);
        // Remove the value last, because its place does not exist after that.
        for (size_t i = 0; found && i < sizeof others / sizeof *others; i++) {
            replace_value(&place,
                          others[i] != NULL ? json_loads(others[i], JSON_DECODE_ANY, NULL) : NULL);
            char *mutant = json_dumps(root, JSON_COMPACT);
            visit(mutant, strlen(mutant));
            free(mutant);
        }
        json_decref(root);
        if (!found)
            return count;
    }
}
