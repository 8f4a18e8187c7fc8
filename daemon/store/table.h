// SPDX-License-Identifier: Apache-2.0
// The table of models by name: the served versions of each model, and how their last loads ended. A
// model has one entry for its default version, which also has the labels of the model, and one
// entry for each further version. Used by the loop only.
#ifndef INF_DAEMON_STORE_TABLE_H
#define INF_DAEMON_STORE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/load/load_job.h"
#include "daemon/policy/retry_delay.h"
#include "proto/core/limits.h"

// Everything that the store knows about one version of a model.
struct inf_model_entry {
    char name[INF_LIMIT_MODEL_NAME + 1];
    // "": this entry is for the default version, whatever its number is. Otherwise the number of
    // the further version that this entry is for.
    char pin[INF_VERSION_TEXT];
    // Only in the entry of the default version: `labels` are the labels that clients can use, and
    // `wanted` has the versions and labels that the settings ask for. wanted.labels replace
    // `labels` when all their versions are served.
    char labels[INF_CONFIG_TEXT];
    struct inf_model_versions wanted;
    // Number of this entry, counted over all entries ever created. If an entry is removed and
    // created again, its number differs, so that jobs for the removed entry are recognised.
    uint64_t generation;
    struct inf_served *served; // the model that is served; one reference; NULL: none is ready
    // Number of loads, inspections and compilations of this model that are queued or running.
    uint32_t pending;
    uint32_t races;  // number of races of this model that are queued or running
    uint32_t trials; // number of trials of its joined steps that are queued or running
    // When the next race of its kernels, and the next trial of its joined steps, may begin.
    struct inf_retry_delay kernels_retry, steps_retry;
    bool outside; // the model was not loaded from the repository
    // An admin has this model loaded from a file, no load of it has succeeded yet, and the
    // repository is not known to have it.
    bool is_new;
    // Only in the entry of the default version: who may use the model. Until the first load has
    // read the settings, `access_known` is false and every client may see the entry.
    bool access_known;
    struct inf_access access;
    // Only in the entry of the default version: `access` is from a load that has failed, so the
    // next load reads the settings file even if nothing has changed since the served model was
    // loaded.
    bool access_unsure;
    // Only in the entry of the default version: the account of the model; one reference.
    struct inf_model_quota *quota;
    bool idle;                     // the model was unloaded; the next request loads it
    struct inf_model_config asked; // valid if `idle`: settings of the unloaded model
    uint64_t idle_bytes;           // memory of the model when it was unloaded; 0: not known
    // If `idle`: the files that the unloaded model was loaded from (one reference; NULL: not
    // known), and the stamp of its settings file.
    struct inf_read_files *idle_files;
    uint64_t idle_config_stamp;
    // Time until which the model is kept for the request that had it loaded; 0: it came, or no
    // request asked for the load.
    uint64_t awaited_until_ns;
    bool is_wanted; // a request waits for the present load
    // enum inf_model_priority of the settings, as far as known; only in the entry of the default
    // version.
    uint8_t load_priority;
    uint64_t past_uses; // requests that were answered before the present model was loaded
    // The model is in use, but a load waits for its memory: it takes no new requests.
    bool leaving;
    // An idle model is not loaded before this time (inf_clock_ns()), because its last load failed.
    uint64_t load_after_ns;
    bool warming;    // the current load has reached the compilation
    bool was_loaded; // a load of this entry has ended, whatever its outcome
    char pending_version[INF_VERSION_TEXT];
    char reason[256]; // why the last load of this model failed; "": it did not fail
};

// All models by name. A zeroed table is empty.
struct inf_model_table {
    struct inf_model_entry **entries; // array sorted by `name` and then `pin`
    uint32_t count, capacity;
    uint64_t generation; // number of entries ever created, which the newest entry has as its number
};

// Frees all entries of the table and drops their references to models.
void inf_model_table_fini(struct inf_model_table *table);

// Returns the entry with this `name` and `pin` ("": the default version); NULL if there is none.
// Valid until the entry is removed.
struct inf_model_entry *inf_model_table_find(const struct inf_model_table *table, const char *name,
                                             const char *pin);

// Returns the entry with this `name` and `pin`, and creates it if there is none. Returns NULL if
// memory is exhausted.
struct inf_model_entry *inf_model_table_obtain(struct inf_model_table *table, const char *name,
                                               const char *pin);

// Removes the entry with this `name` and `pin`, which must exist.
void inf_model_table_remove(struct inf_model_table *table, const char *name, const char *pin);

// Returns the first entry of the model `name` whose `pin` sorts after `pin`, in the order of
// strcmp(); NULL if there is none. If `pin` is "", that is the first further version.
struct inf_model_entry *inf_model_table_next_pin(const struct inf_model_table *table,
                                                 const char *name, const char *pin);

// Finds the entry of a model for `version`, a number or a label. `model` is the entry of the
// default version. It is the result if it serves `version`, or if it serves no version yet and
// there is no entry of its own for `version`.
//
// INF_NOT_FOUND  (VERSION_NOT_FOUND) the model has no such version or label.
enum inf_code inf_model_table_find_version(const struct inf_model_table *table,
                                           struct inf_model_entry *model, const char *version,
                                           struct inf_model_entry **out_entry,
                                           struct inf_error *err) INF_NODISCARD;

// Finds the entry that serves `name` in `version`: a number, a label, or "" for the default
// version. If `reading` is true, the repository is being read, so an unknown model counts as
// loading. `caller` is the client that wants to use the model; NULL: the daemon itself.
//
// INF_DENIED       (MODEL_ACL) the client may not use the model, whatever its state.
// INF_NOT_FOUND    (MODEL_NOT_FOUND, VERSION_NOT_FOUND)
// INF_UNAVAILABLE  (LOADING) the model is being loaded.
// INF_PRECONDITION (MODEL_FAILED) the load failed; the text says why.
enum inf_code inf_model_table_find_served(const struct inf_model_table *table, const char *name,
                                          const char *version, struct inf_caller *caller,
                                          bool reading, struct inf_model_entry **out_entry,
                                          struct inf_error *err) INF_NODISCARD;

enum inf_model_state {
    INF_MODEL_LOADING, // the load is queued or reads the model file
    INF_MODEL_WARMING, // the model is being compiled and run for the first time
    INF_MODEL_READY,
    INF_MODEL_UNLOADING, // requests in flight end; another model needs the memory
    INF_MODEL_IDLE,      // unloaded; the next request starts a load
    INF_MODEL_FAILED,
};

// One row of the list of models that clients receive: a version of a model, or one of its further
// signatures.
struct inf_model_row {
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    char labels[INF_CONFIG_TEXT]; // labels of this version, separated by commas
    enum inf_model_state state;
    char reason[256];     // state FAILED: why; READY: why the last reload failed, or ""
    const char *device;   // state READY: name of the device; belongs to the device list
    const char *platform; // state READY: format of the model file; valid until the next event
    uint64_t memory_bytes, requests, macs;
    bool is_restricted; // not every client may see this row
    // Account of the model; only in the row of the default version, and valid until the next event.
    const struct inf_model_quota *quota;
};

// Copies at most `capacity` rows, sorted by name, signatures behind their model. Leaves out the
// models that `caller` may not use; NULL: none. Returns the number of all rows that are not left
// out.
uint32_t inf_model_table_list(const struct inf_model_table *table, struct inf_caller *caller,
                              struct inf_model_row *rows, uint32_t capacity);

// How many models there are in which state. A model with several versions counts once, with the
// state of its default version.
struct inf_model_summary {
    uint32_t models;
    uint32_t served; // a reload of some of them may have failed
    uint32_t idle;   // the next request starts a load
    uint32_t failed;
    // A version of a model is being loaded of which no load has ended yet.
    bool is_starting;
    // The failed model whose name sorts first, and the reason; NULL: none failed. Valid until the
    // next event.
    const char *failed_name, *failed_reason;
};

// Counts the models of the table.
struct inf_model_summary inf_model_table_summarize(const struct inf_model_table *table);

#endif
