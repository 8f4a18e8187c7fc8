// SPDX-License-Identifier: Apache-2.0
// The plan that an earlier load kept of a model (backends/saved/plan_file.h), between its file and
// the model: devices adopt the packed weights, and the model is offered the graphs that were
// compiled.
#ifndef INF_DAEMON_LOAD_KEPT_PLAN_H
#define INF_DAEMON_LOAD_KEPT_PLAN_H

#include "backends/registry.h"
#include "backends/saved/plan_cache.h"
#include "daemon/load/served.h"

// A plan that was read. Zeroed: none.
struct inf_kept_plan {
    struct inf_saved_plan saved; // its graph is taken by the caller
    // What the model's file says about itself; one reference, which the caller may take; NULL:
    // nothing.
    struct inf_model_description *description;
    // The list of the files that the load has read, for inf_read_files_decode(); borrowed from
    // `saved`.
    const void *files;
    size_t files_bytes;
    // What devices adopted, one reference each: the packs that a compilation finds. NULL: that form
    // was not adopted.
    struct inf_blob_form **forms;
};

// Reads the plan with this key, and gives its packed weights to the devices that packed them, so
// that compilations find them. Returns false if there is no plan that can be used; the reason is
// logged. The caller calls inf_kept_plan_fini() in both cases, when the model has compiled what it
// needs.
bool inf_kept_plan_find(struct inf_kept_plan *kept, struct inf_plan_cache *plans, uint64_t key,
                        const struct inf_device_list *devices,
                        const struct inf_log *log) INF_NODISCARD INF_MAY_BLOCK;

// Reads the plan in the file `name` of a directory, like inf_kept_plan_find(). `id` says what it
// must be made from.
//
// INF_NOT_FOUND  there is no such file.
// INF_DENIED, INF_INVALID, INF_UNSUPPORTED, INF_EXHAUSTED  the plan cannot be used.
enum inf_code inf_kept_plan_read(struct inf_kept_plan *kept, int directory_fd, const char *name,
                                 const struct inf_plan_id *id,
                                 const struct inf_device_list *devices,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Offers the graphs of the plan to the model, which was made of the plan's graph.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_kept_plan_offer(struct inf_kept_plan *kept, struct inf_model *model,
                                  const struct inf_device_list *devices,
                                  struct inf_error *err) INF_NODISCARD;

// Sets the batch ladder of a model to the ladder in the plan, if that was measured on the same
// device, with the same options and the same limit (served->rows_max). Otherwise returns false.
bool inf_kept_plan_take_ladder(const struct inf_kept_plan *kept,
                               struct inf_served *served) INF_NODISCARD;

// Writes the batch ladder of a served model, and the reason why it is not longer, to `facts`, for
// inf_kept_plan_take_ladder(). If the ladder is not measured yet, `facts` gets none.
void inf_kept_plan_note_ladder(struct inf_plan_facts *facts, const struct inf_served *served);

// Keeps the plan of a served model under served->cache_key for the next load, with these facts. A
// failure is logged.
void inf_kept_plan_keep(struct inf_plan_cache *plans, struct inf_served *served,
                        const struct inf_plan_facts *facts) INF_MAY_BLOCK;

// Writes the plan of a served model, with its batch ladder, to the file `name` of a directory. All
// users may read the file.
//
// INF_EXHAUSTED    memory.
// INF_UNAVAILABLE  the file cannot be written.
enum inf_code inf_kept_plan_write(struct inf_served *served, int directory_fd, const char *name,
                                  const struct inf_plan_id *id,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Drops the packs and frees the plan.
void inf_kept_plan_fini(struct inf_kept_plan *kept);

#endif
