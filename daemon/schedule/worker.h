// SPDX-License-Identifier: Apache-2.0
// A thread that runs jobs of one device in one slot (one concurrent run): pops them from the device
// queue, runs them, and posts them to the queue of done jobs. The thread writes small replies
// itself, through a reply writer, but does not use connections.
#ifndef INF_DAEMON_SCHEDULE_WORKER_H
#define INF_DAEMON_SCHEDULE_WORKER_H

#include "backends/base/queue.h"
#include "backends/base/thread.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/batch.h"
#include "daemon/schedule/history_joined.h"
#include "daemon/schedule/job_reply.h"
#include "daemon/schedule/queue/device_queue.h"
#include "daemon/schedule/run_strings.h"
#include "daemon/schedule/run_watch.h"

// One worker. Embedded in the scheduler. Must not move after it was started. The caller sets the
// members `queue` to `slot` and then calls inf_worker_start().
struct inf_worker {
    struct inf_device_queue *queue;
    // Receives finished jobs for the loop; has room for all jobs that can exist.
    struct inf_queue *done;
    struct inf_pool *pool;
    uint32_t slot;

    struct inf_thread thread;
    struct inf_batch_memory batch_memory;   // used by the worker thread only
    struct inf_batch_memory history_memory; // inputs of runs with a history; as batch_memory
    struct inf_history_joined *joined;      // as batch_memory; NULL until it is needed
    struct inf_run_strings strings;         // used by the worker thread only
    struct inf_job_replier *replier;
    struct inf_run_watch watch; // limits the time of the current run; checked by the loop
};

// Starts the worker thread. It ends when its device queue is closed and empty. The caller
// initialises the watch before, and releases it after inf_worker_join().
enum inf_code inf_worker_start(struct inf_worker *worker, struct inf_error *err) INF_NODISCARD;

// Waits for the thread to end. Does nothing if the thread was never started. Blocks.
void inf_worker_join(struct inf_worker *worker);

#endif
