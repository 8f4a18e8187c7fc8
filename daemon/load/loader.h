// SPDX-License-Identifier: Apache-2.0
// The thread that loads, warms up and frees models, so that the loop never waits for this work.
// Jobs go in through one queue. Messages come out through another, and an eventfd announces them.
// The loader has no table of models; that is in daemon/store.
#ifndef INF_DAEMON_LOAD_LOADER_H
#define INF_DAEMON_LOAD_LOADER_H

#include "daemon/load/load_job.h"

struct inf_loader;

struct inf_loader_options {
    struct inf_load_options load;
    // Loader that receives the messages, and outlives this one; NULL: this loader itself.
    struct inf_loader *reports_to;
    uint32_t limit_ms; // time of each job (inf_loader_set_limit()); 0: no limit
    // The thread yields the CPU to all other threads (inf_thread_set_background()).
    bool low_priority;
};

// Starts the loader thread. The caller destroys *out_loader.
enum inf_code inf_loader_create(struct inf_loader **out_loader,
                                const struct inf_loader_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Cancels the running job, and waits until it ends at its next step. Drops queued jobs and
// messages, frees every model without references, and stops the thread. Queued jobs that only
// save results still run before. NULL is allowed.
void inf_loader_destroy(struct inf_loader **loader);

// Queues a job from inf_load_job_create(), whose outcome fields are zero. The loader takes
// ownership of the job. Never blocks.
void inf_loader_submit(struct inf_loader *loader, struct inf_load_job *job);

// Notes that a request waits for the model `name`: its queued loads go before those for which
// nothing waits, and are not put off. Never blocks.
void inf_loader_want(struct inf_loader *loader, const char *name);

// Returns true if a load of the model `name` from the repository, for which no admin asked, is
// still queued and not running, and nothing of the model is served or idle: another load would do
// the same. If `settled` is true, its files need not be waited for. Never blocks.
bool inf_loader_has_first_load(struct inf_loader *loader, const char *name, bool settled);

// Notes for the next start that a run of a model does not end, because the service manager will
// give up the process. Never blocks.
void inf_loader_note_hang(struct inf_served *served);

// Cancels the queued and running jobs about the model `name`; NULL: about all models. Jobs that
// only save results are not cancelled. Never blocks: a running job ends at its next step, and
// its final message follows as always.
void inf_loader_cancel(struct inf_loader *loader, const char *name, enum inf_load_stop why);

// Changes the time limit of later jobs: a load or compilation that takes longer is cancelled.
void inf_loader_set_limit(struct inf_loader *loader, uint32_t limit_ms);

// Answers question number `ticket` of an event with a question (struct inf_load_room). `err` is the
// reason of INF_ROOM_REFUSED, and may be NULL otherwise. The answer to an older question is
// ignored.
void inf_loader_answer_room(struct inf_loader *loader, uint32_t ticket, enum inf_room_answer answer,
                            const struct inf_error *err);

// Returns an eventfd that is readable while messages for the loop are queued.
int inf_loader_fd(const struct inf_loader *loader);

// Removes and returns the oldest message, which the caller destroys; NULL if the queue is empty.
// Never blocks. Each time the descriptor is readable, the caller repeats this call until it returns
// NULL.
struct inf_load_message *inf_loader_receive(struct inf_loader *loader);

#endif
