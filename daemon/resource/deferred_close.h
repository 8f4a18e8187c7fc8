// SPDX-License-Identifier: Apache-2.0
// Threads that release resources for the loop if releasing may take long: mappings of gigabytes,
// and descriptors from clients, whose last close() may block for as long as the client wants. The
// loop only queues tasks for these threads.
#ifndef INF_DAEMON_RESOURCE_DEFERRED_CLOSE_H
#define INF_DAEMON_RESOURCE_DEFERRED_CLOSE_H

#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "backends/device/mapping.h"
#include "daemon/resource/quota.h"
#include "proto/core/status.h"

struct inf_deferred_close;
// A task that closes one descriptor. Its memory is reserved before the descriptor is received, so
// that closing cannot fail.
struct inf_close_task;

// Starts the threads. The caller destroys *out_deferred_close.
enum inf_code inf_deferred_close_create(struct inf_deferred_close **out_deferred_close,
                                        struct inf_error *err) INF_NODISCARD;

// Waits until all queued tasks are done, but at most a second for descriptors that do not close,
// and ends the threads. A thread that is still in close() ends only when the process ends. The
// accounts of all users must still exist. NULL is allowed.
void inf_deferred_close_destroy(struct inf_deferred_close **deferred_close) INF_ON_LOOP;

// Reserves memory for `count` calls of inf_deferred_close_take(), inf_deferred_close_fd() or
// inf_deferred_close_unmap(). Each call uses one reservation.
//
// INF_EXHAUSTED  (HOST_OOM) nothing is reserved.
enum inf_code inf_deferred_close_reserve(struct inf_deferred_close *deferred_close, uint32_t count,
                                         struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Gives back `count` reservations that are not needed.
void inf_deferred_close_cancel(struct inf_deferred_close *deferred_close,
                               uint32_t count) INF_ON_LOOP;

// Takes a task out of a reservation, for a descriptor that another thread may have to close. `user`
// is already charged for one descriptor (INF_QUOTA_FDS), and is refunded when the descriptor is
// closed.
struct inf_close_task *
inf_deferred_close_take(struct inf_deferred_close *deferred_close,
                        struct inf_quota_user *user) INF_NODISCARD INF_ON_LOOP;

// Passes `fd` to a closing thread, which closes it and frees the task. May be called on any thread.
void inf_close_task_submit(struct inf_close_task *task, int fd);

// Closes `fd`, for which `user` was charged (INF_QUOTA_FDS), and refunds the user when the
// descriptor is closed. Uses one reservation.
void inf_deferred_close_fd(struct inf_deferred_close *deferred_close, int fd,
                           struct inf_quota_user *user) INF_ON_LOOP;

// Removes the mapping from the devices (NULL: no device maps the memory), sets *mapping to NULL,
// and unmaps `size_bytes` bytes at `memory`. No thread may still use the memory. Uses one
// reservation.
void inf_deferred_close_unmap(struct inf_deferred_close *deferred_close, void *memory,
                              size_t size_bytes, struct inf_mapping **mapping) INF_ON_LOOP;

// Refunds users for the descriptors that were closed since the last call. Cheap if no descriptor
// was closed.
void inf_deferred_close_settle(struct inf_deferred_close *deferred_close) INF_ON_LOOP;

#endif
