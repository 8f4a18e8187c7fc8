// SPDX-License-Identifier: Apache-2.0
// Makes broken model files (mutants) from valid ones, by changing one part at a time.
#include "tests/tools/run/mutant.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/models/mutate.h"

// The maximum size of a document in which parts are repeated. Repeating stops at this size.
#define SIZE_MOST ((size_t)4 << 20)

// argument of compare_keys(), valid while qsort() runs
static const struct mutant_part *sorted_items;

static int compare_keys(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    uint32_t left_key = sorted_items[left].key, right_key = sorted_items[right].key;
    return left_key != right_key ? (left_key > right_key) - (left_key < right_key)
                                 : (left > right) - (left < right);
}

void mutant_parts_cut(struct mutant_parts *parts, const struct mutant_format *format,
                      const struct mutant *document)
{
    *parts = (struct mutant_parts){0};
    format->cut(parts, document);
    parts->by_key = malloc((parts->count + 1) * sizeof *parts->by_key);
    for (uint32_t i = 0; i < parts->count; i++)
        parts->by_key[i] = i;
    sorted_items = parts->items;
    qsort(parts->by_key, parts->count, sizeof *parts->by_key, compare_keys);
}

void mutant_parts_free(struct mutant_parts *parts)
{
    free(parts->items);
    free(parts->by_key);
    *parts = (struct mutant_parts){0};
}

uint32_t mutant_parts_add(struct mutant_parts *parts, const struct mutant_part *part)
{
    if (parts->count == parts->capacity) {
        parts->capacity = parts->capacity * 2 + 64;
        parts->items = realloc(parts->items, parts->capacity * sizeof *parts->items);
    }
    parts->items[parts->count] = *part;
    return parts->count++;
}

void mutant_splice(struct mutant *mutant, size_t begin, size_t end, const char *text, size_t size)
{
    size_t left = mutant->size - (end - begin);
    char *data = malloc(left + size + 1);
    memcpy(data, mutant->data, begin);
    if (size > 0)
        memcpy(data + begin, text, size);
    memcpy(data + begin + size, mutant->data + end, mutant->size - end);
    free(mutant->data);
    mutant->data = data;
    mutant->size = left + size;
}

// Returns a random part of the same kind (with the same key) as `part`, possibly `part` itself.
static uint32_t choose_alike(const struct mutant_parts *parts, uint32_t part, uint64_t *state)
{
    uint32_t key = parts->items[part].key, first = 0, end = parts->count;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (parts->items[parts->by_key[middle]].key < key)
            first = middle + 1;
        else
            end = middle;
    }
    for (end = first; end < parts->count && parts->items[parts->by_key[end]].key == key;)
        end++;
    return parts->by_key[first + inf_mutate_random(state) % (end - first)];
}

// Returns a random part. In most cases it chooses the kind first, so that rare kinds are as likely
// as frequent ones.
static uint32_t choose_part(const struct mutant_parts *parts, uint64_t *state)
{
    uint32_t any = inf_mutate_random(state) % parts->count;
    if (inf_mutate_random(state) % 4 == 0)
        return any;
    // Choose one of 64 hash values at random, and take the next part whose key has this hash value.
    uint32_t kind = inf_mutate_random(state) % 64, index = any;
    for (uint32_t i = 0; i < parts->count; i++) {
        uint32_t at = (any + i) % parts->count;
        if (parts->items[at].key * 2654435761u >> 26 == kind) {
            index = at;
            break;
        }
    }
    return choose_alike(parts, index, state);
}

const char *mutant_change(struct mutant *mutant, const struct mutant_format *format,
                          const struct mutant_parts *parts, uint64_t *state)
{
    if (parts->count == 0)
        return mutant_change_bytes(mutant, state);
    uint32_t part = choose_part(parts, state);
    size_t size = parts->items[part].end - parts->items[part].begin;
    switch (inf_mutate_random(state) % 8) {
    case 0:
        format->drop(mutant, parts, part);
        return "drop";
    case 1: {
        unsigned times = inf_mutate_random(state) % 8 == 0 ? 1000 : 1;
        while (times > 1 && size * times > SIZE_MOST)
            times /= 2;
        format->repeat(mutant, parts, part, times);
        return "repeat";
    }
    case 2:
    case 3:
    case 4: {
        const struct mutant_part *other = &parts->items[choose_alike(parts, part, state)];
        size_t other_size = other->end - other->body;
        char *text = malloc(other_size + 1);
        memcpy(text, mutant->data + other->body, other_size);
        format->replace(mutant, parts, part, text, other_size);
        free(text);
        return "swap";
    }
    default:
        return format->estrange(mutant, parts, part, state);
    }
}

const char *mutant_change_bytes(struct mutant *mutant, uint64_t *state)
{
    size_t size = mutant->size;
    if (size == 0)
        return "nothing";
    switch (inf_mutate_random(state) % 4) {
    case 0:
        mutant->size = inf_mutate_random(state) % size;
        return "truncate";
    case 1: {
        size_t length = inf_mutate_random(state) % (size < 4096 ? size : 4096);
        size_t from = inf_mutate_random(state) % (size - length);
        size_t to = inf_mutate_random(state) % (size - length);
        memmove(mutant->data + to, mutant->data + from, length);
        return "splice";
    }
    default:
        for (unsigned n = inf_mutate_random(state) % 4 + 1; n > 0; n--) {
            size_t at = inf_mutate_random(state) % size;
            mutant->data[at] = (char)(mutant->data[at] ^ 1 << inf_mutate_random(state) % 8);
        }
        return "flip";
    }
}
