// SPDX-License-Identifier: Apache-2.0
// A thread that gives back to the kernel what may take long to give back: mappings of gigabytes,
// and file descriptors of unknown kind, whose last close may wait for a file system of the
// client's making. The loop only hands them over.
#ifndef INF_DAEMON_RESOURCE_DEFERRED_CLOSE_H
#define INF_DAEMON_RESOURCE_DEFERRED_CLOSE_H

#include <stddef.h>

#include "backends/device/mapping.h"
#include "proto/core/status.h"

struct inf_deferred_close;

// Starts the thread. *out_deferred_close is the caller's to destroy.
enum inf_code inf_deferred_close_create(struct inf_deferred_close **out_deferred_close,
                                        struct inf_error *err) INF_NODISCARD;

// Waits until everything handed over is done, and ends the thread. NULL is fine.
void inf_deferred_close_destroy(struct inf_deferred_close **deferred_close);

// Takes the mapping from devices (NULL: there is none), sets it NULL, and unmaps `size_bytes` at `memory`; nobody may
// look at them any more. Any thread.
void inf_deferred_close_unmap(struct inf_deferred_close *deferred_close, void *memory,
                              size_t size_bytes, struct inf_mapping **mapping);

// Closes `fd`. Any thread.
void inf_deferred_close_close(struct inf_deferred_close *deferred_close, int fd);

#endif
