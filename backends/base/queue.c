// SPDX-License-Identifier: Apache-2.0
// A bounded queue: a ring buffer under a mutex, with two ways to wake its reader.
//
// A reader that blocks sleeps on a condition variable. A reader that is an event loop watches an
// eventfd. Writing to an eventfd is a system call, so it is done once for each burst of items. The
// first push after the queue was empty sets `announced`, and later pushes skip the write. While the
// reader polls by itself (inf_queue_begin_polling()), no push writes.
//
// No wake-up is lost: the reader clears the eventfd before it pops, and the pop that empties the
// queue clears `announced`. Therefore an item that is pushed after the last pop writes the eventfd
// again. When polling ends, the queue reports whether it has items for which the eventfd was not
// written.
#include "backends/base/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/thread.h"

struct inf_queue {
    struct inf_mutex mutex; // guards all following members except `fd` and `capacity`
    struct inf_cond filled;
    size_t capacity;
    size_t head; // index of the oldest item
    size_t count;
    size_t waiting; // number of threads inside inf_queue_pop()
    bool polling;   // true: the reader pops without watching the eventfd
    bool announced; // true: the eventfd was written since the queue was last empty
    bool closed;
    int fd; // -1 if the queue has no eventfd
    void *items[];
};

enum inf_code inf_queue_create(struct inf_queue **out_queue, size_t capacity, bool with_fd,
                               struct inf_error *err)
{
    struct inf_queue *queue = calloc(1, sizeof *queue + capacity * sizeof queue->items[0]);
    if (queue == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a queue of %zu", capacity);
    inf_mutex_init(&queue->mutex);
    inf_cond_init(&queue->filled);
    queue->capacity = capacity;
    queue->fd = with_fd ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
    if (with_fd && queue->fd < 0) {
        enum inf_code code = inf_fail(err, INF_EXHAUSTED, "eventfd: %s", strerror(errno));
        inf_queue_destroy(&queue);
        return code;
    }
    *out_queue = queue;
    return INF_OK;
}

void inf_queue_destroy(struct inf_queue **queue)
{
    if (*queue == NULL)
        return;
    if ((*queue)->fd >= 0)
        close((*queue)->fd);
    inf_cond_fini(&(*queue)->filled);
    inf_mutex_fini(&(*queue)->mutex);
    free(*queue);
    *queue = NULL;
}

// Makes the eventfd readable. The counter cannot overflow in practice, and a full counter is
// readable too.
static void wake_fd(const struct inf_queue *queue)
{
    if (queue->fd < 0)
        return;
    uint64_t one = 1;
    while (write(queue->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

// Decides after a push whether the caller must write the eventfd. Returns true for the first item
// of a burst and sets `announced`, so that later pushes return false.
static bool claim_announcement(struct inf_queue *queue) INF_ATTR(requires_capability(queue->mutex))
{
    bool wake = queue->count > 0 && !queue->announced && !queue->polling;
    queue->announced |= wake;
    return wake;
}

static bool push_item(struct inf_queue *queue, void *item, bool deferred)
{
    inf_mutex_lock(&queue->mutex);
    bool accepted = !queue->closed && queue->count < queue->capacity;
    bool wake = false;
    if (accepted) {
        queue->items[(queue->head + queue->count++) % queue->capacity] = item;
        wake = queue->waiting > 0;
    }
    bool wake_reader = accepted && !deferred && claim_announcement(queue);
    inf_mutex_unlock(&queue->mutex);
    if (wake)
        inf_cond_signal(&queue->filled);
    if (wake_reader)
        wake_fd(queue);
    return accepted;
}

bool inf_queue_push(struct inf_queue *queue, void *item)
{
    return push_item(queue, item, false);
}

bool inf_queue_push_deferred(struct inf_queue *queue, void *item)
{
    return push_item(queue, item, true);
}

void inf_queue_notify(struct inf_queue *queue)
{
    inf_mutex_lock(&queue->mutex);
    bool wake = claim_announcement(queue);
    inf_mutex_unlock(&queue->mutex);
    if (wake)
        wake_fd(queue);
}

static void *pop_oldest(struct inf_queue *queue)
{
    if (queue->count == 0)
        return NULL;
    void *item = queue->items[queue->head];
    queue->head = (queue->head + 1) % queue->capacity;
    queue->count--;
    queue->announced &= queue->count > 0;
    return item;
}

void *inf_queue_pop(struct inf_queue *queue)
{
    inf_role_check_may_block();
    inf_mutex_lock(&queue->mutex);
    while (queue->count == 0 && !queue->closed) {
        queue->waiting++;
        inf_cond_wait(&queue->filled, &queue->mutex);
        queue->waiting--;
    }
    void *item = pop_oldest(queue);
    inf_mutex_unlock(&queue->mutex);
    return item;
}

void *inf_queue_try_pop(struct inf_queue *queue)
{
    inf_mutex_lock(&queue->mutex);
    void *item = pop_oldest(queue);
    inf_mutex_unlock(&queue->mutex);
    return item;
}

void inf_queue_begin_polling(struct inf_queue *queue)
{
    inf_mutex_lock(&queue->mutex);
    queue->polling = true;
    inf_mutex_unlock(&queue->mutex);
}

bool inf_queue_end_polling(struct inf_queue *queue)
{
    inf_mutex_lock(&queue->mutex);
    queue->polling = false;
    bool waits = queue->count > 0;
    inf_mutex_unlock(&queue->mutex);
    return waits;
}

int inf_queue_fd(const struct inf_queue *queue)
{
    return queue->fd;
}

void inf_queue_fd_clear(struct inf_queue *queue)
{
    uint64_t count;
    if (queue->fd >= 0)
        while (read(queue->fd, &count, sizeof count) < 0 && errno == EINTR)
            ;
}

void inf_queue_close(struct inf_queue *queue)
{
    inf_mutex_lock(&queue->mutex);
    queue->closed = true;
    inf_mutex_unlock(&queue->mutex);
    inf_cond_broadcast(&queue->filled);
    wake_fd(queue);
}

size_t inf_queue_count(struct inf_queue *queue)
{
    inf_mutex_lock(&queue->mutex);
    size_t count = queue->count;
    inf_mutex_unlock(&queue->mutex);
    return count;
}
