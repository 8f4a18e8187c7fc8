// SPDX-License-Identifier: Apache-2.0
#include "daemon/resource/deferred_close.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/base/queue.h"
#include "backends/base/thread.h"

// Things waiting at once; beyond that the caller does the work.
#define WAITING_MAX 1024

struct inf_reaper {
    struct inf_queue *queue;
    struct inf_thread thread;
};

struct task {
    void *memory; // NULL: a file descriptor
    size_t size_bytes;
    struct inf_mapping *mapping; // of the memory; NULL: there is none
    int fd;
};

static void perform(struct task *task)
{
    inf_mapping_destroy(&task->mapping);
    if (task->memory != NULL)
        munmap(task->memory, task->size_bytes);
    else
        close(task->fd);
}

static void run(void *context) INF_ATTR(no_thread_safety_analysis)
{
    struct inf_reaper *reaper = context;
    struct task *task;
    while ((task = inf_queue_pop(reaper->queue)) != NULL) {
        perform(task);
        free(task);
    }
}

static enum inf_code fill(struct inf_reaper *reaper, struct inf_error *err)
{
    INF_TRY(inf_queue_create(&reaper->queue, WAITING_MAX, false, err));
    return inf_thread_start(&reaper->thread, "inferd-reaper", run, reaper, err);
}

enum inf_code inf_reaper_create(struct inf_reaper **out_reaper, struct inf_error *err)
{
    struct inf_reaper *reaper = calloc(1, sizeof *reaper);
    if (reaper == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a reaper");
    enum inf_code code = fill(reaper, err);
    if (code == INF_OK)
        *out_reaper = reaper;
    else
        inf_reaper_destroy(&reaper);
    return code;
}

void inf_reaper_destroy(struct inf_reaper **reaper)
{
    if (*reaper == NULL)
        return;
    if ((*reaper)->queue != NULL)
        inf_queue_close((*reaper)->queue);
    inf_thread_join(&(*reaper)->thread);
    inf_queue_destroy(&(*reaper)->queue);
    free(*reaper);
    *reaper = NULL;
}

static void hand_over(struct inf_reaper *reaper, struct task *task)
{
    struct task *copy = malloc(sizeof *copy);
    if (copy != NULL) {
        *copy = *task;
        if (inf_queue_push(reaper->queue, copy))
            return;
        free(copy);
    }
    perform(task);
}

void inf_reaper_unmap(struct inf_reaper *reaper, void *memory, size_t size_bytes,
                      struct inf_mapping **mapping)
{
    hand_over(reaper,
              &(struct task){.memory = memory, .size_bytes = size_bytes, .mapping = *mapping});
    *mapping = NULL;
}

void inf_reaper_close(struct inf_reaper *reaper, int fd)
{
    hand_over(reaper, &(struct task){.fd = fd});
}
