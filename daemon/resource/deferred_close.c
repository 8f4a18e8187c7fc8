// SPDX-License-Identifier: Apache-2.0
// A thread that unmaps memory and closes descriptors for the loop.
//
// The problem: munmap() of gigabytes takes milliseconds, and close() of a descriptor that a client
// passed may block for as long as the client likes: its last close may wait for a file system in
// user space that the client controls. The loop must not wait for either. The idea: the loop puts a
// small task into a bounded queue, and this thread does the work. If the queue is full or there is
// no memory for a task, the caller does the work itself: that is slow but correct, so nothing
// leaks. A client that blocks the thread delays only other closes.
#include "daemon/resource/deferred_close.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/base/queue.h"
#include "backends/base/thread.h"

// The most queued tasks. Beyond that the caller does the work.
#define WAITING_MAX 1024

struct inf_deferred_close {
    struct inf_queue *queue;
    struct inf_thread thread;
};

struct task {
    void *memory; // to be unmapped; NULL: the task is a file descriptor
    size_t size_bytes;
    struct inf_mapping *mapping; // mapping of the memory on devices; NULL: none
    int fd;
};

static void perform_task(struct task *task)
{
    inf_mapping_destroy(&task->mapping);
    if (task->memory != NULL)
        munmap(task->memory, task->size_bytes);
    else
        close(task->fd);
}

static void run_deferred_close(void *context) INF_ATTR(no_thread_safety_analysis)
{
    struct inf_deferred_close *deferred_close = context;
    struct task *task;
    while ((task = inf_queue_pop(deferred_close->queue)) != NULL) {
        perform_task(task);
        free(task);
    }
}

static enum inf_code init_deferred_close(struct inf_deferred_close *deferred_close,
                                         struct inf_error *err)
{
    INF_TRY(inf_queue_create(&deferred_close->queue, WAITING_MAX, false, err));
    return inf_thread_start(&deferred_close->thread, "inferd-close", run_deferred_close,
                            deferred_close, err);
}

enum inf_code inf_deferred_close_create(struct inf_deferred_close **out_deferred_close,
                                        struct inf_error *err)
{
    struct inf_deferred_close *deferred_close = calloc(1, sizeof *deferred_close);
    if (deferred_close == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for deferred closing");
    enum inf_code code = init_deferred_close(deferred_close, err);
    if (code == INF_OK)
        *out_deferred_close = deferred_close;
    else
        inf_deferred_close_destroy(&deferred_close);
    return code;
}

void inf_deferred_close_destroy(struct inf_deferred_close **deferred_close)
{
    if (*deferred_close == NULL)
        return;
    if ((*deferred_close)->queue != NULL)
        inf_queue_close((*deferred_close)->queue);
    inf_thread_join(&(*deferred_close)->thread);
    inf_queue_destroy(&(*deferred_close)->queue);
    free(*deferred_close);
    *deferred_close = NULL;
}

static void queue_task(struct inf_deferred_close *deferred_close, struct task *task)
{
    struct task *copy = malloc(sizeof *copy);
    if (copy != NULL) {
        *copy = *task;
        if (inf_queue_push(deferred_close->queue, copy))
            return;
        free(copy);
    }
    perform_task(task);
}

void inf_deferred_close_unmap(struct inf_deferred_close *deferred_close, void *memory,
                              size_t size_bytes, struct inf_mapping **mapping)
{
    queue_task(deferred_close,
               &(struct task){.memory = memory, .size_bytes = size_bytes, .mapping = *mapping});
    *mapping = NULL;
}

void inf_deferred_close_fd(struct inf_deferred_close *deferred_close, int fd)
{
    queue_task(deferred_close, &(struct task){.fd = fd});
}
