// SPDX-License-Identifier: Apache-2.0
// A table of a fixed number of keys: a hash table with chains in an array, which allocates nothing
// after its creation. If the table is full, the key that was unused for longest can be replaced,
// but only if it was unused for a minimum time. Finding this key means to read all entries. If it
// was used too recently, the next such search is made only when its minimum time is over.
#include "daemon/observe/key_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

struct key_entry {
    uint64_t used_ns; // when the key was used last
    uint32_t next;    // next entry of the same chain; table->capacity: none
    uint32_t hash;
    uint32_t size; // bytes of the key
    char key[INF_KEY_BYTES_MAX];
};

struct inf_key_table {
    uint32_t capacity, count;
    uint64_t search_ns;  // no entry can be replaced before this time
    uint32_t chain_mask; // number of chains, a power of two, minus 1
    uint32_t *chains;    // first entry of each chain
    struct key_entry *entries;
};

enum inf_code inf_key_table_create(struct inf_key_table **out_table, uint32_t capacity,
                                   struct inf_error *err)
{
    assert(capacity > 0 && capacity <= UINT16_MAX);
    struct inf_key_table *table = calloc(1, sizeof *table);
    if (table != NULL) {
        table->capacity = capacity;
        while (table->chain_mask + 1 < capacity)
            table->chain_mask = table->chain_mask * 2 + 1;
        table->chains = calloc(table->chain_mask + 1, sizeof *table->chains);
        table->entries = calloc(capacity, sizeof *table->entries);
    }
    if (table == NULL || table->chains == NULL || table->entries == NULL) {
        inf_key_table_destroy(&table);
        return inf_fail(err, INF_EXHAUSTED, "no memory for a table of %u keys", capacity);
    }
    for (uint32_t i = 0; i <= table->chain_mask; i++)
        table->chains[i] = capacity;
    *out_table = table;
    return INF_OK;
}

void inf_key_table_destroy(struct inf_key_table **table)
{
    if (*table == NULL)
        return;
    free((*table)->chains);
    free((*table)->entries);
    free(*table);
    *table = NULL;
}

// Adds a word to a hash. The multiplier is 2^64 divided by the golden ratio, which spreads
// neighbouring numbers.
static inline uint64_t mix_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

// Returns a hash of a key, made of eight bytes at a time.
static uint32_t hash_key(const char *key, size_t size)
{
    uint64_t hash = size;
    uint64_t word;
    for (; size >= sizeof word; size -= sizeof word, key += sizeof word) {
        memcpy(&word, key, sizeof word);
        hash = mix_word(hash, word);
    }
    word = 0;
    for (size_t i = 0; i < size; i++)
        word = word << 8 | (unsigned char)key[i];
    return (uint32_t)mix_word(hash, word);
}

static void unlink_entry(struct inf_key_table *table, uint32_t index)
{
    uint32_t *link = &table->chains[table->entries[index].hash & table->chain_mask];
    while (*link != index)
        link = &table->entries[*link].next;
    *link = table->entries[index].next;
}

// Returns the entry that was unused for longest, if it may be replaced; otherwise the capacity.
static uint32_t find_idle(struct inf_key_table *table, uint64_t now_ns)
{
    if (now_ns < table->search_ns)
        return table->capacity;
    uint32_t oldest = 0;
    for (uint32_t i = 1; i < table->capacity; i++)
        if (table->entries[i].used_ns < table->entries[oldest].used_ns)
            oldest = i;
    table->search_ns = table->entries[oldest].used_ns + INF_KEY_IDLE_NS;
    return now_ns >= table->search_ns ? oldest : table->capacity;
}

uint32_t inf_key_table_obtain(struct inf_key_table *table, const void *key, size_t size,
                              uint64_t now_ns, bool *out_replaced)
{
    assert(size > 0 && size <= INF_KEY_BYTES_MAX);
    uint32_t hash = hash_key(key, size);
    uint32_t *chain = &table->chains[hash & table->chain_mask];
    *out_replaced = false;
    for (uint32_t i = *chain; i < table->capacity; i = table->entries[i].next) {
        struct key_entry *entry = &table->entries[i];
        if (entry->hash == hash && entry->size == size && memcmp(entry->key, key, size) == 0) {
            entry->used_ns = INF_MAX(entry->used_ns, now_ns);
            return i;
        }
    }
    uint32_t index = table->count;
    if (table->count < table->capacity) {
        table->count++;
    } else {
        index = find_idle(table, now_ns);
        if (index == table->capacity)
            return index;
        unlink_entry(table, index);
        *out_replaced = true;
    }
    struct key_entry *entry = &table->entries[index];
    *entry =
        (struct key_entry){.used_ns = now_ns, .next = *chain, .hash = hash, .size = (uint32_t)size};
    memcpy(entry->key, key, size);
    *chain = index;
    return index;
}

void inf_key_table_touch(struct inf_key_table *table, uint32_t index, uint64_t now_ns)
{
    assert(index < table->count);
    struct key_entry *entry = &table->entries[index];
    entry->used_ns = INF_MAX(entry->used_ns, now_ns);
}

const void *inf_key_table_key(const struct inf_key_table *table, uint32_t index, size_t *out_size)
{
    if (index >= table->count)
        return NULL;
    *out_size = table->entries[index].size;
    return table->entries[index].key;
}
