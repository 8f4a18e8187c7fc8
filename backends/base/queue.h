// SPDX-License-Identifier: Apache-2.0
// A bounded first-in first-out queue of pointers between threads. Its reader either blocks
// (inf_queue_pop) or watches an eventfd (inf_queue_fd, inf_queue_try_pop), which is how a libevent
// loop reads it. Any thread may push.
#ifndef INF_BACKENDS_BASE_QUEUE_H
#define INF_BACKENDS_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

struct inf_queue;

// Makes a queue of at most `capacity` items. With `with_fd`, its eventfd is readable while items
// wait. *out_queue is the caller's to destroy.
//
// INF_EXHAUSTED  no memory, or no file descriptor.
enum inf_code inf_queue_create(struct inf_queue **out_queue, size_t capacity, bool with_fd,
                               struct inf_error *err) INF_NODISCARD;

// Frees the queue; items still in it are the caller's loss. NULL is fine.
void inf_queue_destroy(struct inf_queue **queue);

// Appends `item`; false where the queue is full or closed. Never blocks longer than a swap.
bool inf_queue_push(struct inf_queue *queue, void *item) INF_NODISCARD;

// As inf_queue_push(), but whoever watches the eventfd is told by inf_queue_notify() only, which has to follow.
bool inf_queue_push_deferred(struct inf_queue *queue, void *item) INF_NODISCARD;
// Makes the eventfd readable where items wait for which it has not been, unless the reader looks by itself.
void inf_queue_notify(struct inf_queue *queue);

// Takes the oldest item, waiting for one; NULL once the queue is closed and empty. Blocks.
void *inf_queue_pop(struct inf_queue *queue) INF_MAY_BLOCK;

// Takes the oldest item, or NULL where there is none. Never blocks.
void *inf_queue_try_pop(struct inf_queue *queue);

// The eventfd, for a queue made with one; -1 otherwise. The queue owns it. The reader calls
// inf_queue_fd_clear() first and then pops until NULL, so that no wake-up is lost.
int inf_queue_fd(const struct inf_queue *queue);

// Until inf_queue_end_polling(), pushes leave the eventfd alone: the reader looks by itself.
void inf_queue_begin_polling(struct inf_queue *queue);
// Pushes make the eventfd readable again. True: items wait by now, for which it has not been.
bool inf_queue_end_polling(struct inf_queue *queue) INF_NODISCARD;

// Makes the eventfd unreadable until the next push; does nothing for a queue without one.
void inf_queue_fd_clear(struct inf_queue *queue);

// No further push succeeds; readers get what is left and then NULL.
void inf_queue_close(struct inf_queue *queue);

// Items waiting now.
size_t inf_queue_count(struct inf_queue *queue);

#endif
