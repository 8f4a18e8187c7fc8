// SPDX-License-Identifier: Apache-2.0
// The table of models by name: what is served as what, and what became of the last load. The
// loop's.
#ifndef INF_DAEMON_STORE_TABLE_H
#define INF_DAEMON_STORE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/load/load_job.h"
#include "proto/core/limits.h"

// A model by name.
struct inf_model_entry {
    char name[INF_LIMIT_MODEL_NAME + 1];
    uint64_t generation;       // loads of an older one were meant for an entry that is gone
    struct inf_served *served; // NULL: nothing is ready
    uint32_t pending;          // loads that wait or are under way
    uint32_t races;            // the same of races
    char pending_version[INF_VERSION_TEXT];
    char reason[256]; // why the last load failed; "" where it did not
};

// All zero: empty.
struct inf_model_table {
    struct inf_model_entry **entries; // by name
    uint32_t count, capacity;
    uint64_t generation; // the last one given
};

// Frees all entries, and their references to what is served.
void inf_model_table_fini(struct inf_model_table *table);

// The entry called `name`; NULL where there is none. Valid until it is removed.
struct inf_model_entry *inf_model_table_find(const struct inf_model_table *table, const char *name);

// The same, made where there is none; NULL without memory.
struct inf_model_entry *inf_model_table_obtain(struct inf_model_table *table, const char *name);

// Frees the entry called `name`, which is there.
void inf_model_table_remove(struct inf_model_table *table, const char *name);

// The entry that is served as `name` in `version` ("": the one there is). `reading`: there may be
// more models than are known yet.
//
// INF_NOT_FOUND    (MODEL_NOT_FOUND, VERSION_NOT_FOUND)
// INF_UNAVAILABLE  (LOADING) it is on its way.
// INF_PRECONDITION (MODEL_FAILED) it did not load; the text says why.
enum inf_code inf_model_table_find_served(const struct inf_model_table *table, const char *name,
                                          const char *version, bool reading,
                                          struct inf_model_entry **out_entry,
                                          struct inf_error *err) INF_NODISCARD;

enum inf_model_state {
    INF_MODEL_LOADING,
    INF_MODEL_READY,
    INF_MODEL_FAILED,
};

// One row of the list of models.
struct inf_model_row {
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    enum inf_model_state state;
    char reason[256];     // FAILED: why; READY: why the last reload failed, or ""
    const char *device;   // READY: its name; valid as long as the store's device list
    const char *platform; // READY: valid until the loop goes on
    uint64_t memory_bytes, requests, macs;
};

// Copies at most `capacity` rows, by name and version, and returns how many there are in all.
uint32_t inf_model_table_list(const struct inf_model_table *table, struct inf_model_row *rows,
                              uint32_t capacity);

#endif
