// SPDX-License-Identifier: Apache-2.0
// Files of plans: a model's graph after the passes that need no shapes, with its constants, so that
// the next load neither reads the model nor runs these passes. A plan is for this machine and this
// build. A file is used only if it belongs to the user of the daemon, no other user may write to
// it, and every byte of it agrees with its checksums.
#ifndef INF_BACKENDS_SAVED_PLAN_FILE_H
#define INF_BACKENDS_SAVED_PLAN_FILE_H

#include "backends/base/role.h"
#include "backends/graph/graph.h"

// What a plan was made from.
struct inf_plan_id {
    // Key of the model's files and of the settings that change its graph.
    uint64_t key;
    const char *build; // version and build of inferd; other builds do not use the plan
};

// What a load needs to know about the model's files besides the graph.
struct inf_plan_facts {
    char format[32];       // format of the model, as in struct inf_model_info
    uint64_t content_hash; // hash of the model's files, as in struct inf_model_info
};

// Writes the plan of `graph`, whose constants must have their bytes, to the file `name` in a
// directory. Replaces an older file as a whole.
//
// INF_UNSUPPORTED  the graph has constants of strings.
// INF_EXHAUSTED    memory.
// INF_UNAVAILABLE  the file cannot be written.
enum inf_code inf_plan_file_write(int directory_fd, const char *name, const struct inf_plan_id *id,
                                  const struct inf_plan_facts *facts, const struct inf_graph *graph,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Reads a plan. The caller destroys *out_graph.
//
// INF_NOT_FOUND  there is no such file.
// INF_DENIED     the file is a link, belongs to another user, or others may write to it.
// INF_INVALID    the file is damaged, or is of another model or build.
// INF_EXHAUSTED  memory.
enum inf_code inf_plan_file_read(struct inf_graph **out_graph, struct inf_plan_facts *facts,
                                 int directory_fd, const char *name, const struct inf_plan_id *id,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
