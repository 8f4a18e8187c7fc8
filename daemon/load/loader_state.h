// SPDX-License-Identifier: Apache-2.0
// What the files of the loader share: its lists, and what is done with them. Only loader.c and the
// files named loader_*.c include it.
#ifndef INF_DAEMON_LOAD_LOADER_STATE_H
#define INF_DAEMON_LOAD_LOADER_STATE_H

#include "backends/base/thread.h"
#include "daemon/load/load_limit.h"
#include "daemon/load/load_pace.h"
#include "daemon/load/loader.h"

struct inf_loader {
    struct inf_loader_options options;
    struct inf_thread thread;
    int fd; // eventfd that is readable while messages are queued
    struct inf_load_limit limit;
    struct inf_load_pace pace; // of loads and of freeing models
    _Atomic uint32_t limit_ms;

    struct inf_mutex mutex; // guards `stopping` and the lists of jobs, models and messages
    // Signalled when a job or a model to be freed is queued, or `stopping` is set.
    struct inf_cond wanted;
    bool stopping;
    struct inf_load_job *jobs, **jobs_tail;
    struct inf_load_job *running; // the job that the thread runs; NULL: none
    struct inf_load_message *messages, **messages_tail;
    struct inf_served *retired; // models to be freed, in any order
    uint64_t load_count;        // loads that read the files of a model; only the thread uses it
    // The question for room that the thread waits for; `ticket` is its number.
    struct {
        uint32_t ticket;
        bool answered;
        enum inf_room_answer answer;
        struct inf_error err;
    } room;
};

// Context of the callbacks of a job.
struct inf_loader_listener {
    struct inf_loader *loader;
    const struct inf_load_job *job;
};

// Appends a message to the list that the loop reads, and makes the eventfd readable.
void inf_loader_post(struct inf_loader *from, struct inf_load_message *message);

// Posts the outcome of a job. The final message returns the job to the sender.
void inf_loader_post_outcome(struct inf_loader *loader, struct inf_load_job *job);

// Queues a model for freeing on the loader thread, because its last reference was dropped. Called
// on any thread.
void inf_loader_retire(struct inf_served *served);

// Frees a list of models that have no references left, and gives their memory back to the system.
void inf_loader_free_retired(struct inf_served *retired) INF_MAY_BLOCK;

// Saves the result of a race, the shapes with which clients ran a model, or the plan of a model.
void inf_loader_run_saving_job(struct inf_loader *loader, struct inf_load_job *job) INF_MAY_BLOCK;

// Frees retired models, and runs the jobs that only save results: such a job holds a reference to
// its model, whose memory the load may wait for. Returns false if there was nothing to do.
bool inf_loader_release_models(struct inf_loader *loader) INF_MAY_BLOCK;

// The callback `reserve` of struct inf_load_progress_sink; `context` is a struct
// inf_loader_listener. Asks the loop whether there is room for a model, and waits for the answer.
enum inf_code inf_loader_reserve_room(void *context, uint64_t bytes, bool may_defer,
                                      enum inf_room_answer *out_answer,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
