// SPDX-License-Identifier: Apache-2.0
// The thread that loads, warms up and frees models, so that the loop never waits for any of it.
// Jobs go in through a queue; messages come out through another, and an eventfd announces them. The
// loader knows no table of models: that is daemon/store.
#ifndef INF_DAEMON_LOAD_LOADER_H
#define INF_DAEMON_LOAD_LOADER_H

#include "daemon/load/load_job.h"

struct inf_loader;

struct inf_loader_options {
    struct inf_load_options load;
    struct inf_loader *reports_to; // receives the messages, and outlives this one; NULL: itself
    bool low_priority;             // the thread yields to all others (inf_thread_set_background())
};

// Starts the thread. *out_loader is the caller's to destroy.
enum inf_code inf_loader_create(struct inf_loader **out_loader,
                                const struct inf_loader_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Waits for the running job, drops queued jobs and messages, frees every model without references,
// and stops the thread. Queued jobs that only save results are still run. NULL is allowed.
void inf_loader_destroy(struct inf_loader **loader);

// Queues a job from inf_load_job_create(), whose outcome fields are zero. Takes ownership. Never
// blocks.
void inf_loader_submit(struct inf_loader *loader, struct inf_load_job *job);

// Returns a descriptor that is readable while messages are queued.
int inf_loader_fd(const struct inf_loader *loader);

// Takes the oldest message, the caller's to destroy; NULL if the queue is empty. Never blocks. Call
// until NULL each time the descriptor is readable.
struct inf_load_message *inf_loader_receive(struct inf_loader *loader);

#endif
