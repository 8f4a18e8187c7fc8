// SPDX-License-Identifier: Apache-2.0
// Estimates how long runs take, learned from finished runs: a running mean for each model and
// shape. Entries that are not used are replaced. The struct is embedded and of fixed size; the
// caller holds the lock that protects it.
#ifndef INF_DAEMON_POLICY_RUN_ESTIMATE_H
#define INF_DAEMON_POLICY_RUN_ESTIMATE_H

#include <stdint.h>

#include "proto/core/shape.h"

// Number of sets of the cache, and of entries in each set.
#define INF_ESTIMATE_SETS 64
#define INF_ESTIMATE_WAYS 4

// The expected times of one run.
struct inf_estimate {
    uint64_t run_ns;   // time from the start of the run to its end; 0: not known
    uint64_t share_ns; // device time of the request; less than run_ns if it ran in a batch
};

struct inf_estimates {
    struct {
        uint64_t key; // key of the model and the shapes; 0: this entry is free
        // Value of inf_estimates.clock at the last use. The entry of a set with the smallest value
        // is replaced first.
        uint64_t used_at;
        struct inf_estimate mean;
    } entries[INF_ESTIMATE_SETS][INF_ESTIMATE_WAYS];
    uint64_t clock;
};

// Returns the key of runs of a model with inputs of these shapes; never 0. `model` identifies the
// model.
uint64_t inf_estimate_key(const void *model, const struct inf_shape *shapes, uint32_t count);

// Returns the expected times of a run; all 0 if they are not known.
struct inf_estimate inf_estimates_find(struct inf_estimates *estimates, uint64_t key);

// Updates the running means for `key` with the times of a finished run.
void inf_estimates_note(struct inf_estimates *estimates, uint64_t key,
                        const struct inf_estimate *took);

#endif
