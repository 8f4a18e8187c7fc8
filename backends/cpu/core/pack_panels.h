// SPDX-License-Identifier: Apache-2.0
// The memory of packed panels. Equal panels of different constants share it: signatures of one file
// and versions of one model have the same weights in constants of their own.
#ifndef INF_BACKENDS_CPU_CORE_PACK_PANELS_H
#define INF_BACKENDS_CPU_CORE_PACK_PANELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/pages.h"

// Panels of one or more packs.
struct inf_cpu_panels {
    size_t references; // packs; guarded by the mutex of the table
    const void *panels;
    const uint16_t *lower;          // the lower halves (struct inf_cpu_pack); NULL: none
    size_t used_bytes;              // size of the panels, without what rounds it up
    size_t held_bytes;              // size of all memory
    struct inf_shared_pages *pages; // what the memory is in; NULL: it is owned
    uint64_t sample;                // hash of some bytes, for finding equal panels
    bool in_table;
    struct inf_cpu_panels *next; // in the same bucket
};

#define INF_CPU_PANELS_BUCKETS 256

// All panels of a device, in a hash table by `sample`. The caller has a mutex for it.
struct inf_cpu_panels_table {
    struct inf_cpu_panels *buckets[INF_CPU_PANELS_BUCKETS];
};

// Adds panels to the table and returns them. If the table already has panels with the same bytes,
// takes a reference to those and returns them instead; the caller then frees its own panels. The
// caller has the only reference to the panels. Panels with lower halves are not compared.
struct inf_cpu_panels *inf_cpu_panels_add(struct inf_cpu_panels_table *table,
                                          struct inf_cpu_panels *panels);

// Drops a reference to panels, and removes them from the table with the last one. Returns true if
// it was the last: the caller then frees the panels.
bool inf_cpu_panels_drop(struct inf_cpu_panels_table *table, struct inf_cpu_panels *panels);

// Frees panels without references. NULL is allowed.
void inf_cpu_panels_free(struct inf_cpu_panels *panels);

#endif
