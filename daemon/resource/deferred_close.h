// SPDX-License-Identifier: Apache-2.0
// A thread that releases what may take long to release: mappings of gigabytes, and descriptors from
// clients, whose last close() may block. The loop only queues them.
#ifndef INF_DAEMON_RESOURCE_DEFERRED_CLOSE_H
#define INF_DAEMON_RESOURCE_DEFERRED_CLOSE_H

#include <stddef.h>

#include "backends/device/mapping.h"
#include "proto/core/status.h"

struct inf_deferred_close;

// Starts the thread. *out_deferred_close is the caller's to destroy.
enum inf_code inf_deferred_close_create(struct inf_deferred_close **out_deferred_close,
                                        struct inf_error *err) INF_NODISCARD;

// Waits until all queued work is done, and ends the thread. NULL is allowed.
void inf_deferred_close_destroy(struct inf_deferred_close **deferred_close);

// Removes the mapping from the devices (NULL: there is none), sets *mapping to NULL, and unmaps
// `size_bytes` bytes at `memory`. No thread may use the memory any longer. Any thread.
void inf_deferred_close_unmap(struct inf_deferred_close *deferred_close, void *memory,
                              size_t size_bytes, struct inf_mapping **mapping);

// Closes `fd`. Any thread.
void inf_deferred_close_fd(struct inf_deferred_close *deferred_close, int fd);

#endif
