// SPDX-License-Identifier: Apache-2.0
// Submits the jobs of the store to its loader, for the files of this folder only. Called by the
// loop.
#ifndef INF_DAEMON_STORE_SUBMIT_H
#define INF_DAEMON_STORE_SUBMIT_H

#include "backends/base/role.h"
#include "daemon/store/state.h"

// A job about one model, on behalf of a client or of the daemon itself (token 0).
struct inf_store_load {
    uint64_t token; // chosen by the caller; every event of this job carries it
    // Path and directory of the model, as in struct inf_load_request.
    const char *path;
    const int *directory_fd;
    bool saves;                     // as in struct inf_load_request
    bool persists, forgets;         // as in struct inf_load_model_job
    struct inf_model_config config; // the settings that admins set
    struct inf_model_config asked;  // as in struct inf_load_model_job
    bool wanted;                    // a client waits for the model, so idle models make room for it
    bool if_changed; // skip the load if the files are unchanged since the served model was loaded
    bool precision_requested; // `config` contains a precision that the client requested
    bool takes_kernels;       // as in struct inf_load_model_job
    // Race result that the new placement must use; on success the job owns it; NULL: none.
    struct inf_place_decision *decision;
};

// Returns how many requests a version of a model has answered since the start.
uint64_t inf_store_count_uses(const struct inf_model_entry *entry);

// Fails if too many jobs that clients started are queued.
//
// INF_UNAVAILABLE  (reason LOADING) the queue of loads has no room for another job of a client.
enum inf_code inf_store_check_room(const struct inf_model_store *store,
                                   const struct inf_model_entry *entry,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a job that loads the model of an entry from its file.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_load(struct inf_model_store *store, struct inf_model_entry *entry,
                                    const struct inf_store_load *load,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a load of the version that an entry is for. The loader skips it if the files are
// unchanged. Settings that an admin gave for a served or idle model are kept. If there is no
// memory, the reason of the entry says so.
void inf_store_submit_refresh(struct inf_model_store *store,
                              struct inf_model_entry *entry) INF_ON_LOOP;

// Submits a job that makes a flag of the daemon persistent, or removes it (`value` NULL).
//
// INF_INVALID      a text is too long.
// INF_EXHAUSTED    memory.
// INF_UNAVAILABLE  (reason LOADING) too many jobs are queued.
enum inf_code inf_store_submit_persisting(struct inf_model_store *store, const char *name,
                                          const char *value, uint64_t token,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a deletion of a version from the repository; see inf_model_store_delete().
enum inf_code inf_store_submit_deletion(struct inf_model_store *store, const char *name,
                                        const char *version, uint64_t token,
                                        struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a job that places the served model of the entry again, without reading its file.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_placing(struct inf_model_store *store, struct inf_model_entry *entry,
                                       const struct inf_store_load *load,
                                       struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits an inspection of a served model of an entry, that of any signature. On success the job
// owns *request.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_inspection(struct inf_model_store *store,
                                          struct inf_model_entry *entry, struct inf_served *served,
                                          uint64_t token, struct inf_inspect_request *request,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a job that compiles a served model of an entry, that of any signature, for `shapes` on
// `device`.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_compilation(struct inf_model_store *store,
                                           struct inf_model_entry *entry, struct inf_served *served,
                                           uint64_t token, struct inf_device *device,
                                           const char *shapes,
                                           struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a job that keeps how much models were used, if that has changed since the last one.
void inf_store_submit_uses(struct inf_model_store *store);

// Submits a race (a timing comparison) between the placement candidates of an entry's served model.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_race(struct inf_model_store *store, struct inf_model_entry *entry,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a job that lists the models in the repository. If `known` is set, its event has a report;
// the function takes ownership of `known`, even if it fails.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_scan(struct inf_model_store *store,
                                    struct inf_scan_known_models *known, uint64_t token,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a race of the kernels of an entry's served model.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_kernel_race(struct inf_model_store *store,
                                           struct inf_model_entry *entry,
                                           struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a trial of the joined steps of `served`: the served model of the entry or one of its
// signatures.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_steps(struct inf_model_store *store, struct inf_model_entry *entry,
                                     struct inf_served *served,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a job that saves the result of a race for the next start. Takes ownership of the
// decision. If there is no memory, the decision is lost.
void inf_store_submit_decision(struct inf_model_store *store,
                               struct inf_place_decision *decision) INF_ON_LOOP;

// Submits a job that saves the input shapes of recent requests to a model. If there is no memory,
// the shapes are not saved.
void inf_store_submit_shapes(struct inf_model_store *store, struct inf_served *served) INF_ON_LOOP;

// Submits a job that compiles a served model or one of its signatures for `device`, which takes
// over if the model's device is lost. If there is no memory for the job, the model is compiled when
// a request moves there.
void inf_store_submit_standby(struct inf_model_store *store, struct inf_served *served,
                              struct inf_device *device) INF_ON_LOOP;

// Submits a job that keeps the plan of a model and its batch ladder for the next load. The caller
// has checked that served->cache_key is not 0. If there is no memory, the plan is not kept.
void inf_store_submit_plan(struct inf_model_store *store, struct inf_served *served) INF_ON_LOOP;

#endif
