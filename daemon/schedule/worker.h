// SPDX-License-Identifier: Apache-2.0
// A thread that runs jobs of one device in one slot (one concurrent run): pops them from the device
// queue, runs them, and posts them to the queue of done jobs. The thread writes small replies
// itself, through a reply writer, but does not use connections.
#ifndef INF_DAEMON_SCHEDULE_WORKER_H
#define INF_DAEMON_SCHEDULE_WORKER_H

#include <stdatomic.h>

#include "backends/base/queue.h"
#include "backends/base/thread.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/batch.h"
#include "daemon/schedule/device_queue.h"
#include "daemon/schedule/job_reply.h"

// Embedded in the scheduler. Must not move after it was started. Set the first group of members,
// then call inf_worker_start().
struct inf_worker {
    struct inf_device_queue *queue;
    // Receives finished jobs for the loop; has room for all jobs that can exist.
    struct inf_queue *done;
    struct inf_pool *pool;
    uint32_t slot;

    struct inf_thread thread;
    struct inf_batch_memory batch_memory; // used by the thread only
    struct inf_job_replier *replier;
    // Since when the current run lasts, on the clock of inf_clock_ns(); 0: idle.
    _Atomic uint64_t busy_since_ns;
};

// Starts the thread. It ends when the queue is closed and empty.
enum inf_code inf_worker_start(struct inf_worker *worker, struct inf_error *err) INF_NODISCARD;

// Waits for the thread to end. Does nothing if the thread was never started. Blocks.
void inf_worker_join(struct inf_worker *worker);

#endif
