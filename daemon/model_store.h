// SPDX-License-Identifier: Apache-2.0
// The models that are served: names and versions to models ready to run. The table is the loop's;
// loading, warming up and freeing happen on the loader thread, and come back as events.
#ifndef INF_DAEMON_MODEL_STORE_H
#define INF_DAEMON_MODEL_STORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/device/device.h"
#include "backends/exec/model.h"
#include "backends/registry.h"
#include "proto/core/limits.h"

struct inf_model_store;

#define INF_VERSION_TEXT 24 // "1", "20241105"

// One version of one model, ready. Immutable but for the counters; shared by reference: the store
// holds one, every request in flight another.
struct inf_served {
    _Atomic uint32_t references;
    struct inf_model_store *store; // outlives every reference
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    char platform[40];              // "inferd_tfjs_graph_model"
    struct inf_model *model;        // one reference
    struct inf_device *device;      // where it runs unless a request names another; one reference
    uint64_t macs;                  // at the shapes it was warmed up with
    _Atomic uint64_t request_count; // answered with OK
};

enum inf_model_state {
    INF_MODEL_LOADING,
    INF_MODEL_READY,
    INF_MODEL_FAILED,
};

struct inf_model_store_options {
    const char *repository;                // directory; NULL: none
    const struct inf_device_list *devices; // outlives the store
    const char *default_device;            // "" or "auto": the first that is no software device
    const struct inf_log *log;
};

// Makes the store and starts its loader thread. *out_store is the caller's to destroy.
enum inf_code inf_model_store_create(struct inf_model_store **out_store,
                                     const struct inf_model_store_options *options,
                                     struct inf_error *err) INF_NODISCARD;

// Stops the loader (a load under way is waited for) and frees everything. No reference may be left
// but the store's. NULL is fine.
void inf_model_store_destroy(struct inf_model_store **store);

// A load to be done.
struct inf_load_request {
    const char *name; // what it is served as
    const char *path; // a model file or a model's directory elsewhere; "" or NULL: the repository's
    const char *device; // "" or NULL: the default
    uint64_t token;     // comes back in the events
};

// Starts a load, or a reload: an older version keeps serving until the new one is warm. Single
// files: repository/NAME.json (or whatever importers know), directories: repository/NAME/VERSION/
// with the highest numeric VERSION.
//
// INF_INVALID      the name is no model name.
// INF_NOT_FOUND    (NO_DEVICE in reason) there is no such device.
// INF_UNAVAILABLE  too many loads wait.
enum inf_code inf_model_store_load(struct inf_model_store *store,
                                   const struct inf_load_request *request,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Starts loading everything in the repository, with token 0.
enum inf_code inf_model_store_load_all(struct inf_model_store *store,
                                       struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Takes a model out of the table; requests in flight still finish. "" as version: all of them.
//
// INF_NOT_FOUND  there is no such model or version.
enum inf_code inf_model_store_unload(struct inf_model_store *store, const char *name,
                                     const char *version,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// The version to serve: `version`, or the newest ready one where that is "". A new reference.
//
// INF_NOT_FOUND    (MODEL_NOT_FOUND, VERSION_NOT_FOUND)
// INF_UNAVAILABLE  (LOADING) it is on its way.
// INF_PRECONDITION (MODEL_FAILED) it did not load; the text says why.
enum inf_code inf_model_store_find(struct inf_model_store *store, const char *name,
                                   const char *version, struct inf_served **out_served,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Another reference. Any thread.
struct inf_served *inf_served_ref(struct inf_served *served) INF_NODISCARD;

// Drops a reference and sets the pointer NULL. The last one hands it to the loader thread to be
// freed, so this never blocks. Any thread. NULL is fine.
void inf_served_unref(struct inf_served **served);

// Something that happened on the loader thread.
struct inf_load_event {
    uint64_t token;
    bool final;           // the load ended; else progress
    const char *stage;    // progress: "read", "optimise", "compile", "warm-up"; static
    uint32_t percent;     // progress
    struct inf_error err; // final: INF_OK, or why it failed
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
};

// Readable while events wait.
int inf_model_store_fd(const struct inf_model_store *store);

// Takes the next event and brings the table up to date with it; false where there is none. Call
// until false each time the fd is readable.
bool inf_model_store_next_event(struct inf_model_store *store,
                                struct inf_load_event *event) INF_NODISCARD INF_ON_LOOP;

// One row of the list of models.
struct inf_model_row {
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
    enum inf_model_state state;
    char reason[256];     // FAILED: why
    const char *device;   // READY: its name; valid as long as the store's device list
    const char *platform; // READY: valid until the loop goes on
    uint64_t memory_bytes, requests, macs;
};

// Copies at most `capacity` rows, by name and version, and returns how many there are in all.
uint32_t inf_model_store_list(struct inf_model_store *store, struct inf_model_row *rows,
                              uint32_t capacity) INF_ON_LOOP;

// Loads that wait or are under way.
uint32_t inf_model_store_pending(const struct inf_model_store *store) INF_ON_LOOP;

#endif
