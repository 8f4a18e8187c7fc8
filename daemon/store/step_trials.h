// SPDX-License-Identifier: Apache-2.0
// Trials of joined decoding steps of served models (daemon/load/trial/step_trial.h), one model
// after the other. A model serves without joined steps until its trial is done.
#ifndef INF_DAEMON_STORE_STEP_TRIALS_H
#define INF_DAEMON_STORE_STEP_TRIALS_H

#include "daemon/load/load_job.h"
#include "daemon/store/state.h"

// Delay until the next trial of a model after one that was disturbed. It doubles with each further
// trial of the model in a row that is disturbed (daemon/policy/retry_delay.h).
#define INF_STORE_STEPS_RETRY_NS (UINT64_C(5) * INF_NS_PER_S)

// Starts a trial for one served model or signature whose trial is due, unless a race or another
// trial is queued or running. A trial begins after the races of its model, because races may change
// the kernels and the device of the model, but it does not wait for a race that requests disturbed.
// Returns the time of the next call; UINT64_MAX: no call is needed before the next load ends.
uint64_t inf_store_start_step_trial(struct inf_model_store *store, uint64_t now_ns) INF_ON_LOOP;

// Handles the end of a trial: from now on, steps of the model are joined if joining them pays. The
// plan of the model is kept with the ladder. `entry` is NULL if it was removed or replaced.
void inf_store_finish_step_trial(struct inf_model_store *store, struct inf_model_entry *entry,
                                 const struct inf_load_job *job,
                                 const struct inf_load_event *event) INF_ON_LOOP;

#endif
