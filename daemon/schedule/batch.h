// SPDX-License-Identifier: Apache-2.0
// Runs the rows of several jobs of one model together, or the rows of one job in several runs.
// Called by workers.
#ifndef INF_DAEMON_SCHEDULE_BATCH_H
#define INF_DAEMON_SCHEDULE_BATCH_H

#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/job.h"

// Memory of a worker, into which tensors are copied for one run, such as the rows of several jobs.
// It grows to the size that the models need, and is kept. All zero means no memory.
struct inf_batch_memory {
    uint8_t *data;
    size_t capacity;
};

// Reserves `size` bytes, aligned to 64. The bytes that were there before are lost if it grows.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code inf_batch_memory_reserve(struct inf_batch_memory *memory, size_t size,
                                       struct inf_error *err) INF_NODISCARD;

// Frees the memory if it has more than `kept_bytes`.
void inf_batch_memory_trim(struct inf_batch_memory *memory, size_t kept_bytes);

// Frees the memory that a worker kept for copying tensors.
void inf_batch_memory_fini(struct inf_batch_memory *memory);

// What a worker provides for a batch.
struct inf_batch_resources {
    struct inf_pool *pool;
    struct inf_batch_memory *memory;
    uint32_t slot; // the slot (one concurrent run) of the worker
    // Cancels the whole batch, whatever number of jobs it has.
    const atomic_bool *cancelled;
    struct inf_run_step *step; // receives the name of each node before it is computed; may be NULL
};

// Runs `count` jobs of one model, all with rows > 0, and fills their results except start_ns and
// done_ns. If a run of several jobs fails, each job is run alone, so that only the faulty job
// fails. If the batch is cancelled, all jobs that were not run before fail with INF_CANCELLED.
void inf_batch_run(struct inf_job *const *jobs, uint32_t count,
                   const struct inf_batch_resources *resources) INF_ON_WORKER INF_MAY_BLOCK;

#endif
