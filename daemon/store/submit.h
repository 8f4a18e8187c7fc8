// SPDX-License-Identifier: Apache-2.0
// Submits the jobs of the store to its loader, for the files of this folder only. All on the loop.
#ifndef INF_DAEMON_STORE_SUBMIT_H
#define INF_DAEMON_STORE_SUBMIT_H

#include "backends/base/role.h"
#include "daemon/store/state.h"

// A job about one entry of the table, on behalf of a client or of the daemon itself (token 0).
struct inf_store_load {
    uint64_t token;                      // comes back in the events
    const char *path;                    // as in struct inf_load_request
    struct inf_model_config config;      // the settings that admins gave
    bool if_changed;                     // skip the load if the files are those that are served
    bool precision_requested;            // `config` names a precision that the client asked for
    struct inf_place_decision *decision; // to be followed; the job's on success; NULL: none
};

// Fails if too many jobs that clients asked for are queued.
//
// INF_UNAVAILABLE  (LOADING)
enum inf_code inf_store_check_room(const struct inf_model_store *store,
                                   const struct inf_model_entry *entry,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a load of the entry from its file.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_load(struct inf_model_store *store, struct inf_model_entry *entry,
                                    const struct inf_store_load *load,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits placing the served model of the entry again, without reading its file.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_placing(struct inf_model_store *store, struct inf_model_entry *entry,
                                       const struct inf_store_load *load,
                                       struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits an inspection of the served model. *request is the job's on success.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_inspection(struct inf_model_store *store,
                                          struct inf_model_entry *entry, uint64_t token,
                                          struct inf_inspect_request *request,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits compiling the served model for `shapes` on `device`.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_compilation(struct inf_model_store *store,
                                           struct inf_model_entry *entry, uint64_t token,
                                           struct inf_device *device, const char *shapes,
                                           struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits a race between the candidates of the served model's placement.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_race(struct inf_model_store *store, struct inf_model_entry *entry,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits reading the repository.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_store_submit_scan(struct inf_model_store *store,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Submits saving a decision for the next start. Takes ownership; without memory the decision is
// lost.
void inf_store_submit_decision(struct inf_model_store *store,
                               struct inf_place_decision *decision) INF_ON_LOOP;

// Submits saving the shapes that a model served. Without memory they are not saved.
void inf_store_submit_shapes(struct inf_model_store *store, struct inf_served *served) INF_ON_LOOP;

#endif
