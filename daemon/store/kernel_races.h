// SPDX-License-Identifier: Apache-2.0
// Races of the kernels of served models, one model after the other, so that at most one model is
// kept in memory by its race.
#ifndef INF_DAEMON_STORE_KERNEL_RACES_H
#define INF_DAEMON_STORE_KERNEL_RACES_H

#include "daemon/load/load_job.h"
#include "daemon/store/state.h"

// Delay until the next race of a model after one that gave up because requests were served all the
// time. It doubles with each further race of the model in a row that gives up
// (daemon/policy/retry_delay.h), to 43 minutes: each attempt costs a copy of the model in memory.
#define INF_STORE_KERNELS_RETRY_NS (UINT64_C(10) * INF_NS_PER_S)

// Starts a race of kernels for one served model some of whose kernels were chosen by rules. Starts
// none if there is no such model, if another race is queued or running, or if the races of all such
// models gave up and their delays have not passed. Returns the time of the next call; UINT64_MAX:
// no call is needed before the next load ends.
uint64_t inf_store_start_kernel_race(struct inf_model_store *store, uint64_t now_ns) INF_ON_LOOP;

// Handles the end of a race of kernels. If the kernels changed, places the model of the entry
// again. `entry` is NULL if it was removed or replaced.
void inf_store_finish_kernel_race(struct inf_model_store *store, struct inf_model_entry *entry,
                                  const struct inf_load_job *job) INF_ON_LOOP;

#endif
