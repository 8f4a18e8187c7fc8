// SPDX-License-Identifier: Apache-2.0
// The models that are served: names and versions to models ready to run. The table is the loop's;
// loading, warming up and freeing happen on the loader thread, and come back as events.
#ifndef INF_DAEMON_STORE_STORE_H
#define INF_DAEMON_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/idle_gate.h"
#include "backends/registry.h"
#include "daemon/store/table.h"

struct inf_model_store;

struct inf_model_store_options {
    const char *repository;                // directory; NULL: none
    const struct inf_device_list *devices; // outlives the store
    uint32_t batch_rows_max;               // rows that a model may run at once; 1: no batches
    const char *default_device;            // "" or "auto": each model's best
    struct inf_place_rules rules;          // how that is found
    const char *cache_directory;           // where races are remembered; NULL: nowhere
    const char *version;                   // and build of inferd, which they hold for; NULL: ""
    const struct inf_log *log;             // outlives the store
};

// Makes the store and starts its loader thread. *out_store is the caller's to destroy. Reads the
// cache directory: before the loop runs.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no device of the default one's name.
// INF_EXHAUSTED  memory, threads or file descriptors.
enum inf_code inf_model_store_create(struct inf_model_store **out_store,
                                     const struct inf_model_store_options *options,
                                     struct inf_error *err) INF_NODISCARD;

// Stops the loader (a load under way is waited for) and frees everything. No reference may be left
// but the store's. NULL is fine.
void inf_model_store_destroy(struct inf_model_store **store);

// Which device models run on that are loaded from now on and name none; "" or "auto": each model's
// best.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no such device.
enum inf_code inf_model_store_set_device(struct inf_model_store *store, const char *name,
                                         struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// How the best device is found, for loads from now on.
void inf_model_store_set_rules(struct inf_model_store *store,
                               const struct inf_place_rules *rules) INF_ON_LOOP;

// How fast device `index` of the list is; NULL until the first model was placed. Valid as long as
// the store.
const struct inf_speed *inf_model_store_speed(const struct inf_model_store *store,
                                              uint32_t index) INF_ON_LOOP;

// A load to be done.
struct inf_load_request {
    const char *name; // what it is served as
    const char *path; // a model file or a model's directory elsewhere; "" or NULL: the repository's
    const char *device; // "" or NULL: the default
    uint64_t token;     // comes back in the events
};

// Starts a load, or a reload: an older version keeps serving until the new one is warm. Single
// files: repository/NAME.json, directories: repository/NAME/VERSION/ with the highest numeric
// VERSION (daemon/model/repository.h has the whole list). One version of a model is served at a
// time.
//
// INF_INVALID      the name is no model name, or the path is too long.
// INF_NOT_FOUND    (NO_DEVICE in reason) there is no such device.
// INF_UNAVAILABLE  too many loads wait.
// INF_EXHAUSTED    memory.
enum inf_code inf_model_store_load(struct inf_model_store *store,
                                   const struct inf_load_request *request,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Where a model that is served is to run from now on.
struct inf_place_request {
    const char *name, *version; // version "": the one there is
    const char *device;         // a device's name, or "auto"; "": as it is
    const char *policy;         // "": as it is
    const char *precision;      // "": as it is
    const char *mode;           // "": as it is
    uint64_t token;             // comes back in the events
};

// Starts placing a model anew, without reading its file: the new executable is compiled and warmed
// up while the old one serves; requests in flight end on the old one, whose memory then returns.
// The events are those of a load.
//
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  as inf_model_store_find(), inf_model_store_load().
// INF_INVALID  (BAD_PARAMETER) there is no such policy, precision or mode.
enum inf_code inf_model_store_place(struct inf_model_store *store,
                                    const struct inf_place_request *request,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Has candidates race anew for a model that is served, as soon as nothing is; what earlier races
// found does not count. Where another one wins, the model is placed anew.
//
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  as inf_model_store_find(); one is under
//                                                   way already.
enum inf_code inf_model_store_race(struct inf_model_store *store, const char *name,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Races that wait or are under way.
uint32_t inf_model_store_races(const struct inf_model_store *store) INF_ON_LOOP;

// Whether anything is served: whoever serves tells it. Valid as long as the store.
struct inf_idle_gate *inf_model_store_idle_gate(struct inf_model_store *store);

// A model has turned out not to be computed well in its mode: from now on, and after a restart, it
// is in fp32 where it runs.
void inf_model_store_demote(struct inf_model_store *store, struct inf_served *served,
                            const char *why) INF_ON_LOOP;

// What is to be compiled before anybody asks for it.
struct inf_precompile_request {
    const char *name, *version; // version "": the one there is
    const char *device;         // "": where the model is placed
    const char *shapes;         // sets by name (shapes.h); "": the model's own
    uint64_t token;             // comes back in the events
};

// Starts compiling a model that is served for further shapes, without running it. The events are
// those of a load.
//
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  as inf_model_store_find(), inf_model_store_load().
// INF_INVALID  (BAD_PARAMETER) the shapes cannot be read; the text says what was wanted.
enum inf_code inf_model_store_precompile(struct inf_model_store *store,
                                         const struct inf_precompile_request *request,
                                         struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Has the shapes written down that a model serves. Without memory nothing is.
void inf_model_store_save_shapes(struct inf_model_store *store,
                                 struct inf_served *served) INF_ON_LOOP;

// Starts looking into a model that is served. The events are rows and then the end; *order is the
// store's where this succeeds.
//
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  as inf_model_store_find().
enum inf_code inf_model_store_inspect(struct inf_model_store *store, const char *name,
                                      uint64_t token, struct inf_inspect_request *order,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// The device called `name`; no reference: the device list's.
//
// INF_NOT_FOUND  (NO_DEVICE) the text lists those there are.
enum inf_code inf_model_store_find_device(const struct inf_model_store *store, const char *name,
                                          struct inf_device **out_device,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Starts loading everything in the repository, with token 0. Models that are served and whose file
// did not change are left alone; those whose files are gone go on being served. What goes wrong is
// logged, and in the list.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_store_load_all(struct inf_model_store *store,
                                       struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Takes a model out of the table; requests in flight still finish, loads of it that wait or are
// under way end with INF_CANCELLED. "" as version: whichever there is.
//
// INF_NOT_FOUND  there is no such model or version.
enum inf_code inf_model_store_unload(struct inf_model_store *store, const char *name,
                                     const char *version,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// The version to serve: `version`, or the one there is where that is "". A new reference.
//
// INF_NOT_FOUND    (MODEL_NOT_FOUND, VERSION_NOT_FOUND)
// INF_UNAVAILABLE  (LOADING) it is on its way.
// INF_PRECONDITION (MODEL_FAILED) it did not load; the text says why.
enum inf_code inf_model_store_find(struct inf_model_store *store, const char *name,
                                   const char *version, struct inf_served **out_served,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Readable while events wait.
int inf_model_store_fd(const struct inf_model_store *store);

// Takes the next event and brings the table up to date with it; false where there is none. Call
// until false each time the fd is readable.
bool inf_model_store_next_event(struct inf_model_store *store,
                                struct inf_load_event *event) INF_NODISCARD INF_ON_LOOP;

// Copies at most `capacity` rows, by name and version, and returns how many there are in all.
uint32_t inf_model_store_list(struct inf_model_store *store, struct inf_model_row *rows,
                              uint32_t capacity) INF_ON_LOOP;

// Loads that wait or are under way; a scan of the repository counts as one.
uint32_t inf_model_store_pending(const struct inf_model_store *store) INF_ON_LOOP;

#endif
