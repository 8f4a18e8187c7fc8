// SPDX-License-Identifier: Apache-2.0
// Runs decoding steps of several sessions together. Such a run reads the weights of the model once.
#ifndef INF_DAEMON_SCHEDULE_HISTORY_JOINED_H
#define INF_DAEMON_SCHEDULE_HISTORY_JOINED_H

#include "daemon/schedule/history_step.h"

// Returns a key for a step that may share a run with other steps of the same key: it appends one
// row to the history of its session, and the model has a ladder for that. Returns 0 if the job must
// run alone. The key may be the same for steps that cannot share a run; they run one by one then.
// Called before the job is submitted, while the loop owns the tensors of its session.
uint64_t inf_history_find_join_key(struct inf_job *job);

// Memory of a worker for the steps of one run.
struct inf_history_joined;

// Returns NULL if there is no memory.
struct inf_history_joined *inf_history_joined_create(void);

// Frees the memory and sets the pointer to NULL. NULL is allowed.
void inf_history_joined_destroy(struct inf_history_joined **joined);

// Frees copies of inputs that are larger than `kept_bytes`. NULL is allowed.
void inf_history_joined_trim(struct inf_history_joined *joined, size_t kept_bytes);

// Runs decoding steps together. The `count` jobs have the same key and belong to different
// sessions; there are at most INF_HISTORY_SESSIONS_MAX. Jobs that cannot share the run are left
// out. The function fills the results of the jobs that have run, except start_ns and done_ns. The
// memory of `resources` is not used. *cancelled ends the run.
//
// Returns the jobs that have run: bit i is set for jobs[i]. The caller runs the other jobs one by
// one; nothing of their sessions has changed. If the run failed, the result of each job in it has
// the outcome INF_JOIN_SPOILED, because the function does not know which job made the run fail.
uint32_t inf_history_run_joined(struct inf_history_joined *joined, struct inf_job *const *jobs,
                                uint32_t count, const struct inf_history_resources *resources,
                                const atomic_bool *cancelled) INF_NODISCARD INF_MAY_BLOCK;

#endif
