// SPDX-License-Identifier: Apache-2.0
// A thread that runs jobs of one device in one slot: takes them from the lane, some together, runs them, posts
// them to the queue of those that are done. Small replies it writes through a gate; it
// knows no connection.
#ifndef INF_DAEMON_SCHEDULE_WORKER_H
#define INF_DAEMON_SCHEDULE_WORKER_H

#include <stdatomic.h>

#include "backends/base/queue.h"
#include "backends/base/thread.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/batch.h"
#include "daemon/schedule/device_queue.h"
#include "daemon/schedule/job_reply.h"

// Embedded; does not move once started. Fill the first group, then inf_worker_start().
struct inf_worker {
    struct inf_device_queue *queue;
    struct inf_queue *done; // has room for every job there can be
    struct inf_pool *pool;
    uint32_t slot;

    struct inf_thread thread;
    struct inf_batch_memory batch_memory; // the thread's
    struct inf_job_replier *replier;
    _Atomic uint64_t busy_since_ns; // of inf_clock_ns(); 0: idle
};

// Starts the thread; it ends once the lane is closed and empty.
enum inf_code inf_worker_start(struct inf_worker *worker, struct inf_error *err) INF_NODISCARD;

// Waits for the thread to end; nothing to do for one never started. Blocks.
void inf_worker_join(struct inf_worker *worker);

#endif
