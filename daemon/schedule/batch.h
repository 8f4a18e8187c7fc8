// SPDX-License-Identifier: Apache-2.0
// Runs the rows of several jobs of one model together, or those of one job in several runs: gathers
// them, pads to a rung of the model's ladder, and hands each job its rows. For workers.
#ifndef INF_DAEMON_SCHEDULE_BATCH_H
#define INF_DAEMON_SCHEDULE_BATCH_H

#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/job.h"

// A worker's memory for gathered tensors: grows to what the models need, and is kept. All zero is
// none.
struct inf_batch_memory {
    uint8_t *data;
    size_t capacity;
};

// Frees it.
void inf_batch_memory_fini(struct inf_batch_memory *memory);

// What a worker lends.
struct inf_batch_means {
    struct inf_pool *pool;
    struct inf_batch_memory *memory;
    uint32_t slot;
};

// Runs `count` jobs of one model, all with rows, and fills their results but for the times of start
// and done. A failure is its job's alone: where a run of several fails, each is run by itself.
void inf_batch_run(struct inf_job *const *jobs, uint32_t count,
                   const struct inf_batch_means *means) INF_ON_WORKER INF_MAY_BLOCK;

#endif
