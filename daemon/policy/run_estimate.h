// SPDX-License-Identifier: Apache-2.0
// What runs take, learnt from those that are done: one running mean for each model and shape. What has
// not run lately is forgotten. Embedded and of fixed size; the caller has the lock.
#ifndef INF_DAEMON_POLICY_RUN_ESTIMATE_H
#define INF_DAEMON_POLICY_RUN_ESTIMATE_H

#include <stdint.h>

#include "proto/core/shape.h"

// Models and shapes that are remembered: sets of ways, by the key.
#define INF_ESTIMATE_SETS 64
#define INF_ESTIMATE_WAYS 4

// What one run takes: from its start to its end, and of the device's time where it shares a batch.
struct inf_estimate {
    uint64_t run_ns; // 0: not known
    uint64_t share_ns;
};

struct inf_estimates {
    struct {
        uint64_t key; // 0: free
        uint64_t used_at;
        struct inf_estimate mean;
    } entries[INF_ESTIMATE_SETS][INF_ESTIMATE_WAYS];
    uint64_t clock;
};

// A number for runs of a model (whatever tells models apart) with inputs of these shapes; never 0.
uint64_t inf_estimate_key(const void *model, const struct inf_shape *shapes, uint32_t count);

// What such a run is expected to take; all 0 where none is remembered.
struct inf_estimate inf_estimates_find(struct inf_estimates *estimates, uint64_t key);

// Learns from a run.
void inf_estimates_note(struct inf_estimates *estimates, uint64_t key,
                        const struct inf_estimate *took);

#endif
