// SPDX-License-Identifier: Apache-2.0
// The memory of packed panels, shared by packs whose panels are equal. Equal panels are found by a
// hash of a few of their bytes, and are then compared byte by byte, so that no file can make two
// different weights share memory.
#include "backends/cpu/core/pack_panels.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 64u

// Smaller panels are not worth an entry in the table.
#define SHARED_BYTES_MIN 4096u

static uint64_t hash_sample(const struct inf_cpu_panels *panels)
{
    uint64_t hash = panels->used_bytes;
    size_t step = panels->used_bytes / SAMPLES;
    for (size_t i = 0; i < SAMPLES; i++) {
        uint64_t word;
        memcpy(&word, (const char *)panels->panels + i * step, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static struct inf_cpu_panels **bucket_of(struct inf_cpu_panels_table *table, uint64_t sample)
{
    return &table->buckets[sample % INF_CPU_PANELS_BUCKETS];
}

struct inf_cpu_panels *inf_cpu_panels_add(struct inf_cpu_panels_table *table,
                                          struct inf_cpu_panels *panels)
{
    if (panels->lower != NULL || panels->used_bytes < SHARED_BYTES_MIN)
        return panels;
    panels->sample = hash_sample(panels);
    struct inf_cpu_panels **bucket = bucket_of(table, panels->sample);
    for (struct inf_cpu_panels *other = *bucket; other != NULL; other = other->next)
        if (other->sample == panels->sample && other->used_bytes == panels->used_bytes &&
            memcmp(other->panels, panels->panels, panels->used_bytes) == 0) {
            other->references++;
            return other;
        }
    panels->in_table = true;
    panels->next = *bucket;
    *bucket = panels;
    return panels;
}

bool inf_cpu_panels_drop(struct inf_cpu_panels_table *table, struct inf_cpu_panels *panels)
{
    if (--panels->references > 0)
        return false;
    if (!panels->in_table)
        return true;
    struct inf_cpu_panels **link = bucket_of(table, panels->sample);
    while (*link != panels)
        link = &(*link)->next;
    *link = panels->next;
    return true;
}

void inf_cpu_panels_free(struct inf_cpu_panels *panels)
{
    if (panels == NULL)
        return;
    if (panels->pages == NULL) {
        free((void *)(uintptr_t)panels->panels);
        free((void *)(uintptr_t)panels->lower);
    }
    inf_shared_pages_unref(&panels->pages);
    free(panels);
}
