// SPDX-License-Identifier: Apache-2.0
// The table of models by name: the served version of each model, and how the last load ended. Used
// by the loop only.
#ifndef INF_DAEMON_STORE_TABLE_H
#define INF_DAEMON_STORE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/load/load_job.h"
#include "proto/core/limits.h"

// Everything that the store knows about the models loaded under one name.
struct inf_model_entry {
    char name[INF_LIMIT_MODEL_NAME + 1];
    // Number of the entry in order of creation. If an entry is removed and created again, its
    // number differs, so that jobs for the removed entry are recognised.
    uint64_t generation;
    struct inf_served *served; // the model that is served; one reference; NULL: none is ready
    uint32_t pending;          // jobs that are queued or running
    uint32_t races;            // races that are queued or running
    char pending_version[INF_VERSION_TEXT];
    char reason[256]; // why the last load failed; "": it did not
};

// A zeroed table is empty.
struct inf_model_table {
    struct inf_model_entry **entries; // sorted by name
    uint32_t count, capacity;
    uint64_t generation; // generation of the newest entry
};

// Frees all entries and drops their references.
void inf_model_table_fini(struct inf_model_table *table);

// Returns the entry called `name`; NULL if there is none. Valid until the entry is removed.
struct inf_model_entry *inf_model_table_find(const struct inf_model_table *table, const char *name);

// Returns the entry called `name`, and creates it if there is none; NULL without memory.
struct inf_model_entry *inf_model_table_obtain(struct inf_model_table *table, const char *name);

// Removes the entry called `name`, which must exist.
void inf_model_table_remove(struct inf_model_table *table, const char *name);

// Finds the entry that serves `name` in `version` ("" matches any). If `reading` is true, the
// repository is being read, so some models may not be known yet.
//
// INF_NOT_FOUND    (MODEL_NOT_FOUND, VERSION_NOT_FOUND)
// INF_UNAVAILABLE  (LOADING) the model is being loaded.
// INF_PRECONDITION (MODEL_FAILED) the load failed; the text says why.
enum inf_code inf_model_table_find_served(const struct inf_model_table *table, const char *name,
                                          const char *version, bool reading,
                                          struct inf_model_entry **out_entry,
                                          struct inf_error *err) INF_NODISCARD;

enum inf_model_state {
    INF_MODEL_LOADING,
    INF_MODEL_READY,
    INF_MODEL_FAILED,
};

// One row of the list of models that clients receive.
struct inf_model_row {
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    enum inf_model_state state;
    char reason[256];     // FAILED: why; READY: why the last reload failed, or ""
    const char *device;   // if READY: name of the device; valid as long as the device list exists
    const char *platform; // if READY: valid until the next event
    uint64_t memory_bytes, requests, macs;
};

// Copies at most `capacity` rows, sorted by name, and returns the number of all entries.
uint32_t inf_model_table_list(const struct inf_model_table *table, struct inf_model_row *rows,
                              uint32_t capacity);

#endif
