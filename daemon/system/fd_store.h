// SPDX-License-Identifier: Apache-2.0
// The store of descriptors of the service manager, which outlives the process (sd_notify(3),
// FDSTORE=1). The next process gets the descriptors with their names. Nothing here blocks: what the
// manager has no room for is sent later, in order.
#ifndef INF_DAEMON_SYSTEM_FD_STORE_H
#define INF_DAEMON_SYSTEM_FD_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

struct event_base;
struct inf_fd_store;
struct inf_log;

// Creates the client side of the store. `room` is the number from inf_notify_store_room(), not 0,
// and `held` is how many descriptors are in the store already. `log` outlives the store. The caller
// destroys *out_store before the base.
//
// INF_INVALID    NOTIFY_SOCKET is malformed, or nothing listens there.
// INF_EXHAUSTED  memory, or file descriptors.
enum inf_code inf_fd_store_create(struct inf_fd_store **out_store, struct event_base *base,
                                  uint32_t room, uint32_t held, const struct inf_log *log,
                                  struct inf_error *err) INF_NODISCARD;

// Puts a descriptor into the store under a name of at most 63 characters, without ':'. The caller
// may close the descriptor at once. Returns false if the store is full, if too many messages wait
// for the manager, if the kernel refuses to send the descriptor, or if memory is exhausted.
bool inf_fd_store_add(struct inf_fd_store *store, const char *name,
                      int fd) INF_NODISCARD INF_ON_LOOP;

// Removes the descriptor of this name, which must be in the store.
void inf_fd_store_remove(struct inf_fd_store *store, const char *name) INF_ON_LOOP;

// Returns how many descriptors inf_fd_store_add() has accepted and could not send later. The next
// process does not get them. Each has a line in the log.
uint64_t inf_fd_store_lost(const struct inf_fd_store *store) INF_ON_LOOP;

// Sends what waits, and frees the store. Waits at most a second. NULL is allowed.
void inf_fd_store_destroy(struct inf_fd_store **store);

#endif
