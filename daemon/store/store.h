// SPDX-License-Identifier: Apache-2.0
// The model store: knows which models are served and finds a model by name and version. The event
// loop owns the table of models. Loading, warming up and freeing happen on the loader thread, whose
// results come back as events.
#ifndef INF_DAEMON_STORE_STORE_H
#define INF_DAEMON_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/idle_gate.h"
#include "backends/registry.h"
#include "daemon/policy/memory_budget.h"
#include "daemon/store/table.h"

struct inf_model_store;

struct inf_model_store_options {
    const char *repository; // directory of the models; NULL: none
    // Files that change are loaded after they have not changed for this time; 0: at once.
    uint32_t settle_ms;
    // File that every complete directory of a model or version has; NULL or "": none.
    const char *ready_file;
    const struct inf_device_list *devices; // outlives the store
    uint32_t batch_rows_max;               // the most rows that one run may batch; 1: no batches
    const char *default_device;            // device name; "" or "auto": each model's best device
    struct inf_place_rules rules;          // rules for choosing the best device
    // Directory in which results of races are saved; NULL: they are not saved.
    const char *cache_directory;
    // Directory of the settings that admins made persistent; NULL: none are.
    const char *state_directory;
    // True: models on a GPU are also compiled for the device that takes over if it is lost.
    bool standby;
    // If all loaded models together need more memory, idle ones are unloaded; 0: no limit.
    uint64_t model_bytes_max;
    // Bytes of plans that are kept in the cache directory; 0: none are.
    uint64_t plan_bytes_max;
    // The memory that the daemon may use; outlives the store, which keeps the uses MODELS and
    // LOADING up to date. NULL: no limit.
    struct inf_memory_budget *budget;
    // Maximum memory of the executables of one user's requests, see
    // inf_model_store_set_arena_limit().
    uint64_t arena_bytes_per_uid_max;
    uint64_t request_bytes_max; // see inf_model_store_set_request_limit()
    // Maximum time of a load (inf_model_store_set_load_limit()); 0: no limit.
    uint32_t load_limit_ms;
    // Version and build of inferd; saved results of other builds are ignored. NULL: "".
    const char *version;
    const struct inf_log *log; // outlives the store
};

// Creates the store and starts its loader threads. The caller destroys *out_store. The function
// reads the cache directory, so it must be called before the loop runs.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no device called `default_device`.
// INF_EXHAUSTED  memory, threads or file descriptors.
enum inf_code inf_model_store_create(struct inf_model_store **out_store,
                                     const struct inf_model_store_options *options,
                                     struct inf_error *err) INF_NODISCARD;

// Cancels the running jobs, stops the loader threads, and frees everything. No reference to a model
// may be left except the store's own. NULL is allowed.
void inf_model_store_destroy(struct inf_model_store **store);

// Sets the device for future loads of models whose settings name none. If `name` is "" or "auto",
// the best device is chosen for each model.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no such device.
enum inf_code inf_model_store_set_device(struct inf_model_store *store, const char *name,
                                         struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Sets the placement rules for future loads.
void inf_model_store_set_rules(struct inf_model_store *store,
                               const struct inf_place_rules *rules) INF_ON_LOOP;

// Returns the measured speed of device `index` of the device list; NULL until the first model was
// placed. Valid as long as the store exists.
const struct inf_speed *inf_model_store_speed(const struct inf_model_store *store,
                                              uint32_t index) INF_ON_LOOP;

// Sets the time that a load or compilation may take; a longer one is cancelled between its steps.
// Applies to loads that begin later.
void inf_model_store_set_load_limit(struct inf_model_store *store, uint32_t limit_ms) INF_ON_LOOP;

// Sets the bytes of executables that the requests of one user may make; 0: no bound. Applies when
// the next one is made.
void inf_model_store_set_arena_limit(struct inf_model_store *store, uint64_t bytes_max) INF_ON_LOOP;

// Sets the bytes of intermediate results that one request may need; 0: no bound. A request that
// needs more is refused before it runs.
void inf_model_store_set_request_limit(struct inf_model_store *store,
                                       uint64_t bytes_max) INF_ON_LOOP;

// Cancels all loads, because the daemon ends. Their events follow when they have ended.
void inf_model_store_cancel_loads(struct inf_model_store *store) INF_ON_LOOP;

// A request to load a model.
struct inf_load_request {
    const char *name; // the name under which the model is served
    // Path of a model file or directory; "" or NULL: find it in the repository. With a directory
    // descriptor: name of the model file in it; "": the directory is laid out as in a repository.
    const char *path;
    const int *directory_fd; // borrowed; the store makes a copy; NULL: none
    const char *device;      // name of a device; "" or NULL: the default device
    bool saves;     // copy the model into the repository, and load it from there; needs a directory
    uint64_t token; // chosen by the caller; every event of this load carries it
};

// Starts a load, or a reload: an older version is served until the new one is warm. The model is
// the file repository/NAME.json, or the directory repository/NAME/VERSION/ with the highest numeric
// VERSION (daemon/model/repository.h has the whole list), or the version that the settings of the
// model name. Further versions that the settings name are loaded afterwards.
//
// INF_INVALID      the name is not a valid model name, or the path is too long.
// INF_NOT_FOUND    (NO_DEVICE) there is no such device.
// INF_UNAVAILABLE  too many loads are queued.
// INF_EXHAUSTED    memory.
enum inf_code inf_model_store_load(struct inf_model_store *store,
                                   const struct inf_load_request *request,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// A request to place a served model again. A setting that is "" stays unchanged.
struct inf_place_request {
    const char *name, *version; // the model; version "": the one that is served
    const char *device;         // name of a device, or "auto"
    const char *policy;
    const char *precision;
    const char *mode;
    bool persists;  // what admins set for the model holds after a restart
    uint64_t token; // chosen by the caller; every event of this placement carries it
};

// Makes a flag of the daemon persistent, or removes it from the persistent ones (`value` NULL). An
// event with `token` follows.
//
// INF_INVALID    a text is too long.
// INF_EXHAUSTED  memory.
enum inf_code inf_model_store_persist_flag(struct inf_model_store *store, const char *name,
                                           const char *value, uint64_t token,
                                           struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Removes what admins made persistent for a model, and loads it again with the settings of its
// file. The events are those of a load.
//
// INF_NOT_FOUND     the model is not loaded.
// INF_PRECONDITION  the model is not in the repository.
enum inf_code inf_model_store_forget_settings(struct inf_model_store *store, const char *name,
                                              uint64_t token,
                                              struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Starts placing a model again, without reading its file. The new executable is compiled and warmed
// up while the old one serves. Requests in flight end on the old executable, whose memory is then
// freed. The events are those of a load.
//
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  inf_model_store_find() or
//              inf_model_store_load() returned this error.
// INF_INVALID  (BAD_PARAMETER) there is no such policy, precision or mode, or `name` is one
//              signature of a model.
enum inf_code inf_model_store_place(struct inf_model_store *store,
                                    const struct inf_place_request *request,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Starts a race (a timing comparison) between the placement candidates of a served model. It runs
// while no request is served. Earlier results are ignored. If another candidate wins, the model is
// placed again.
//
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  inf_model_store_find() returned this error, or
//              a race of the model is already running.
enum inf_code inf_model_store_race(struct inf_model_store *store, const char *name,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// What has happened to models since the start, in numbers of events.
struct inf_model_store_counts {
    // Models that were unloaded: after idle_unload_ms, because of model_bytes_max or memory_max,
    // because memory was short, by an admin.
    uint64_t unloaded_idle, unloaded_memory, unloaded_pressure, unloaded_admin;
    // Loads that were put off until a request needs the model, and that were refused, because the
    // model does not fit into memory_max.
    uint64_t loads_deferred, loads_refused;
    // Races that ended: the model stayed, it is placed again, or the race found no winner.
    uint64_t races_kept, races_moved, races_failed;
};

// Returns the numbers of events since the start.
struct inf_model_store_counts
inf_model_store_counts(const struct inf_model_store *store) INF_ON_LOOP;

// Returns the number of races that are queued or running.
uint32_t inf_model_store_races(const struct inf_model_store *store) INF_ON_LOOP;

// Returns the gate that keeps background work waiting while requests are served. The scheduler
// opens and closes the gate. Valid as long as the store exists.
struct inf_idle_gate *inf_model_store_idle_gate(struct inf_model_store *store);

// Moves a model to fp32 on its device because its results in the present precision are wrong; `why`
// is the reason. The change is kept after a restart.
void inf_model_store_demote(struct inf_model_store *store, struct inf_served *served,
                            const char *why) INF_ON_LOOP;

// A request to compile a model for shapes before requests use them.
struct inf_precompile_request {
    const char *name, *version; // the model; version "": the one that is served
    const char *device;         // name of a device; "": the device of the model
    const char *shapes;         // sets of "NAME=SHAPE" (daemon/model/shapes.h); "": model's own
    uint64_t token;             // chosen by the caller; every event of this job carries it
};

// Starts compiling a served model for more shapes, without running it. The events are those of a
// load.
//
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  inf_model_store_find() returned this error.
// INF_INVALID  (BAD_PARAMETER) the shapes cannot be parsed; the text says what is allowed.
enum inf_code inf_model_store_precompile(struct inf_model_store *store,
                                         const struct inf_precompile_request *request,
                                         struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Starts saving the input shapes of recent requests to a model, so that they are compiled at the
// next start. If there is no memory, the shapes are not saved.
void inf_model_store_save_shapes(struct inf_model_store *store,
                                 struct inf_served *served) INF_ON_LOOP;

// Starts inspecting a served model. The events carry reports about some nodes each; the final event
// ends them. On success the store owns *request.
//
// INF_NOT_FOUND, INF_UNAVAILABLE, INF_PRECONDITION  inf_model_store_find() returned this error.
enum inf_code inf_model_store_inspect(struct inf_model_store *store, const char *name,
                                      uint64_t token, struct inf_inspect_request *order,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Finds the device called `name`. The result is borrowed from the device list.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no such device; the text lists all devices.
enum inf_code inf_model_store_find_device(const struct inf_model_store *store, const char *name,
                                          struct inf_device **out_device,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Starts loading all models of the repository, with token 0. A served model stays as it is if its
// file did not change, and stays served if its file was removed. Failures are logged and appear in
// the list of models.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_store_load_all(struct inf_model_store *store,
                                       struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Does what inf_model_store_load_all() does, and reports what becomes of each model: the event
// `token` (0: the daemon itself) has the report. The models are loaded after that event.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_store_reload(struct inf_model_store *store, uint64_t token,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Starts a load of the model `name` of the repository, with token 0. The loader skips the load if
// the files of the model are unchanged. If `only_known` is true, does nothing for a model that is
// not in the table.
void inf_model_store_refresh(struct inf_model_store *store, const char *name,
                             bool only_known) INF_ON_LOOP;

// Unloads each model that no request has used for the time in its setting idle_unload_ms. While all
// models together need more than model_bytes_max, or the daemon more than its budget, unloads
// further models that nothing uses. Returns the time at which the caller must call again;
// UINT64_MAX: after the next load has ended.
uint64_t inf_model_store_unload_idle(struct inf_model_store *store, uint64_t now_ns) INF_ON_LOOP;

// Makes sure that the budget of memory has room for `bytes` that a client wants for `what`, such as
// "region". Unloads models that nothing uses if that makes room. Takes the same time however many
// models there are, unless memory is short.
//
// INF_EXHAUSTED  (HOST_OOM) there is no room; the text says what holds the memory.
enum inf_code inf_model_store_claim_memory(struct inf_model_store *store, uint64_t bytes,
                                           const char *what,
                                           struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Unloads some models that nothing uses, because memory is short on the machine. Returns the bytes
// of the unloaded models.
uint64_t inf_model_store_relieve(struct inf_model_store *store, uint64_t now_ns) INF_ON_LOOP;

// Removes a model from the table. Requests in flight still finish. Queued and running loads of the
// model are cancelled, and end with INF_CANCELLED at their next step. If `version` is "", all
// versions are removed.
//
// INF_NOT_FOUND  there is no such model or version.
// INF_INVALID    (BAD_PARAMETER) `name` is one signature of a model.
enum inf_code inf_model_store_unload(struct inf_model_store *store, const char *name,
                                     const char *version,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Starts removing the files of a version that a save has put into the repository. When they are
// removed, the version is unloaded; if the repository has others, the highest of them that is to be
// served is loaded. `version` is a number or a label; if it is "", the model must have one version
// in the repository. The events are those of a load.
//
// INF_NOT_FOUND     (VERSION_NOT_FOUND) there is no such label.
// INF_INVALID       (BAD_PARAMETER) `name` is one signature of a model, or no name.
// INF_PRECONDITION  the model was not loaded from the repository.
// INF_UNAVAILABLE   too many loads are queued.
// INF_EXHAUSTED     memory.
enum inf_code inf_model_store_delete(struct inf_model_store *store, const char *name,
                                     const char *version, uint64_t token,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Finds the model called `name`, which is NAME or NAME:SIGNATURE, in `version`: a number, a label,
// or "" for the default version. *out_served is a new reference. `caller` is the client that wants
// to use the model; NULL: the daemon itself.
//
// INF_DENIED       (MODEL_ACL) the settings of the model do not allow the client to use it.
// INF_NOT_FOUND    (MODEL_NOT_FOUND, VERSION_NOT_FOUND) there is no such model, version or
//                  signature.
// INF_UNAVAILABLE  (LOADING) the model is being loaded. If it was idle, this call started the load.
// INF_PRECONDITION (MODEL_FAILED) the load failed; the text says why.
enum inf_code inf_model_store_find(struct inf_model_store *store, struct inf_caller *caller,
                                   const char *name, const char *version,
                                   struct inf_served **out_served,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Notes that a request waits for the model NAME or NAME:SIGNATURE, for which
// inf_model_store_find() has failed with LOADING. After the load, the model is kept until the
// request uses it. If a load of the model will end with an event, returns NAME, which is
// `reference` itself or a copy in `buffer`. Otherwise returns "": the request must be tried again
// after the next event of any load, if one is pending.
const char *inf_model_store_await(struct inf_model_store *store, const char *reference,
                                  char buffer[INF_LIMIT_MODEL_NAME + 1]) INF_ON_LOOP;

// Sets *out_ready to true if the model can answer a request: it is served, or it is idle, and the
// request would load it. Sets it to false if the model is being loaded or unloaded, or if its load
// failed. Unlike inf_model_store_find(), loads nothing, so that clients may ask at intervals.
//
// INF_DENIED, INF_NOT_FOUND  as of inf_model_store_find().
enum inf_code inf_model_store_is_ready(const struct inf_model_store *store,
                                       struct inf_caller *caller, const char *name,
                                       const char *version, bool *out_ready,
                                       struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Returns the descriptor of inf_load_journal_notes_fd(), the file in which a crash notes which
// model ran. It belongs to the store. -1: there is none.
int inf_model_store_notes_fd(const struct inf_model_store *store);

// Returns a descriptor that is readable while events for the loop are queued.
int inf_model_store_fd(const struct inf_model_store *store);

// Takes the next event and updates the table of models. Returns false if there is none. Each time
// the descriptor is readable, the caller repeats this call until it returns false.
bool inf_model_store_next_event(struct inf_model_store *store,
                                struct inf_load_event *event) INF_NODISCARD INF_ON_LOOP;

// Copies at most `capacity` rows of the list of models, sorted by name. The list has the models
// that `caller` may use; NULL: all. Returns the number of all models in the list.
uint32_t inf_model_store_list(struct inf_model_store *store, struct inf_caller *caller,
                              struct inf_model_row *rows, uint32_t capacity) INF_ON_LOOP;

// Counts the models by their states. While the repository is being read, is_starting is true.
struct inf_model_summary inf_model_store_summarize(const struct inf_model_store *store) INF_ON_LOOP;

// Returns true if not every client may use the model NAME or NAME:SIGNATURE.
bool inf_model_store_is_restricted(const struct inf_model_store *store,
                                   const char *reference) INF_ON_LOOP;

// Returns true while the repository is being read. During that time, some models may not be listed
// yet.
bool inf_model_store_reads_repository(const struct inf_model_store *store) INF_ON_LOOP;

// Returns the number of loads that are queued or running. Reading the repository counts as one
// load.
uint32_t inf_model_store_pending(const struct inf_model_store *store) INF_ON_LOOP;

#endif
