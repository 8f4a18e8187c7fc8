// SPDX-License-Identifier: Apache-2.0
// The order in which queued loads run.
#ifndef INF_DAEMON_LOAD_LOAD_ORDER_H
#define INF_DAEMON_LOAD_LOAD_ORDER_H

#include <stdint.h>

#include "daemon/load/load_job.h"

// What decides when a model is loaded.
struct inf_load_rank {
    bool wanted;      // a request or an admin waits for the model
    uint8_t priority; // enum inf_model_priority of the model's settings
    uint64_t uses;    // requests that the model has answered
    const char *name;
};

// Returns a number less than 0 if the model `a` is loaded before `b`, 0 if they are equal.
int inf_load_rank_compare(const struct inf_load_rank *a, const struct inf_load_rank *b);

// Returns the link to the job of a queue that runs next; NULL if the queue is empty, or if all jobs
// are put off until a time after `now_ns`. Jobs run in the order of the queue, except that a load
// at its head lets better ranked loads pass, but no job passes another one of the same model.
struct inf_load_job **inf_load_order_choose(struct inf_load_job **queue, uint64_t now_ns);

// Returns the time at which the first job of a queue runs that is put off; UINT64_MAX: none is.
uint64_t inf_load_order_next_ns(const struct inf_load_job *queue);

#endif
