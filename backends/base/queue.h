// SPDX-License-Identifier: Apache-2.0
// A bounded first-in first-out queue of pointers between threads. Its reader either blocks
// (inf_queue_pop) or watches an eventfd (inf_queue_fd, inf_queue_try_pop), as a libevent loop does.
// Any thread may push.
#ifndef INF_BACKENDS_BASE_QUEUE_H
#define INF_BACKENDS_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

struct inf_queue;

// Creates a queue for at most `capacity` items. If `with_fd` is true, the queue has an eventfd that
// is readable while items wait. The caller destroys *out_queue.
//
// INF_EXHAUSTED  no memory, or no file descriptor.
enum inf_code inf_queue_create(struct inf_queue **out_queue, size_t capacity, bool with_fd,
                               struct inf_error *err) INF_NODISCARD;

// Frees the queue, but not the items that are still in it. NULL is allowed.
void inf_queue_destroy(struct inf_queue **queue);

// Appends `item`. Returns false if the queue is full or closed. Never blocks.
bool inf_queue_push(struct inf_queue *queue, void *item) INF_NODISCARD;

// Appends `item` without writing the eventfd, so that several items need one write. The caller must
// call inf_queue_notify() afterwards. Returns false if the queue is full or closed.
bool inf_queue_push_deferred(struct inf_queue *queue, void *item) INF_NODISCARD;
// Makes the eventfd readable if items were pushed without a notification and the reader does not
// poll.
void inf_queue_notify(struct inf_queue *queue);

// Removes the oldest item and returns it; waits until there is an item. Returns NULL if the queue
// is closed and empty.
void *inf_queue_pop(struct inf_queue *queue) INF_MAY_BLOCK;

// Removes the oldest item and returns it; NULL if the queue is empty. Never blocks.
void *inf_queue_try_pop(struct inf_queue *queue);

// Returns the eventfd, which the queue owns; -1 if it was created without one. The reader calls
// inf_queue_fd_clear() first and then pops until NULL, so that no wake-up is lost.
int inf_queue_fd(const struct inf_queue *queue);

// Until inf_queue_end_polling(), pushes do not write the eventfd, because the reader polls the
// queue.
void inf_queue_begin_polling(struct inf_queue *queue);
// Lets pushes write the eventfd again. Returns true if items are queued for which the eventfd was
// not written; the caller must pop them.
bool inf_queue_end_polling(struct inf_queue *queue) INF_NODISCARD;

// Makes the eventfd unreadable until the next push. Does nothing for a queue without an eventfd.
void inf_queue_fd_clear(struct inf_queue *queue);

// Closes the queue. Pushes then fail; readers get the remaining items and then NULL.
void inf_queue_close(struct inf_queue *queue);

// Returns the number of queued items.
size_t inf_queue_count(struct inf_queue *queue);

#endif
