// SPDX-License-Identifier: Apache-2.0
// Keeps how much each model of the repository was used, so that the next start loads first what is
// needed most.
#ifndef INF_DAEMON_LOAD_SOURCE_MODEL_USES_H
#define INF_DAEMON_LOAD_SOURCE_MODEL_USES_H

#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// The most models that are counted. If more were used, those with the fewest requests are
// forgotten.
#define INF_MODEL_USES_MAX 1024u

// Requests that models have answered, sorted by name, so that the loop finds a model quickly.
struct inf_model_use_counts {
    uint32_t count;
    struct inf_model_use {
        char name[INF_LIMIT_MODEL_NAME + 1];
        uint64_t requests;
    } models[INF_MODEL_USES_MAX];
};

// Returns the number of requests of a model; 0 if it is not known.
uint64_t inf_model_use_counts_find(const struct inf_model_use_counts *counts, const char *name);

// Sets the number of requests of a model.
void inf_model_use_counts_set(struct inf_model_use_counts *counts, const char *name,
                              uint64_t requests);

// The file with the counts. Used by one thread at a time.
struct inf_model_uses;

// Opens DIRECTORY/uses.db and reads it into *counts; NULL: nothing is kept. Each reading halves the
// numbers, so that use in the past counts less and less. Faults of the file are logged, and its
// valid lines are used. The caller closes *out_uses.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_model_uses_open(struct inf_model_uses **out_uses, const char *directory,
                                  struct inf_model_use_counts *counts, const struct inf_log *log,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Replaces the file by one with these counts.
void inf_model_uses_write(struct inf_model_uses *uses,
                          struct inf_model_use_counts *counts) INF_MAY_BLOCK;

// Closes the file. NULL is allowed.
void inf_model_uses_close(struct inf_model_uses **uses);

#endif
