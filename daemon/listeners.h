// SPDX-License-Identifier: Apache-2.0
// The listening sockets of the server: opening them, accepting clients, and deciding which clients
// are admins.
#ifndef INF_DAEMON_LISTENERS_H
#define INF_DAEMON_LISTENERS_H

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "daemon/config/config.h"
#include "daemon/connection/connection.h"

struct event_base;
struct inf_listeners;

struct inf_listeners_options {
    struct event_base *base;
    const struct inf_config *config;
    const struct inf_log *log;
    // Inherited sockets. For a kind without any, a socket is opened at its path in `config`.
    const int *data_fds;
    uint32_t data_fd_count;
    const int *admin_fds;
    uint32_t admin_fd_count;
    // Called on the loop when clients wait at the listener of this index. The callee calls
    // inf_listeners_accept() for each client.
    void (*ready)(void *context, uint32_t listener);
    void *context;
};

// Opens the sockets. Clients wait in their backlogs until inf_listeners_start(). The caller
// destroys *out_listeners. The errors are those of inf_listener_open(), and:
//
// INF_INVALID    the group `admin_group` does not exist.
// INF_EXHAUSTED  memory, file descriptors, or more sockets than the server can have.
enum inf_code inf_listeners_create(struct inf_listeners **out_listeners,
                                   const struct inf_listeners_options *options,
                                   struct inf_error *err) INF_NODISCARD;

// Begins to call ready(). Called once.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_listeners_start(struct inf_listeners *listeners,
                                  struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Accepts the next client of a listener. Returns its socket, which is non-blocking and belongs to
// the caller; -1: no client can be accepted at present. If no descriptor is left, all listeners
// pause for a while.
int inf_listeners_accept(struct inf_listeners *listeners, uint32_t listener) INF_ON_LOOP;

// Fills the user, the process and the role of the client of peer->fd, which a listener accepted.
//
// INF_UNAVAILABLE  the socket has no credentials.
enum inf_code inf_listeners_identify(const struct inf_listeners *listeners, uint32_t listener,
                                     struct inf_peer *peer,
                                     struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Finds the listener that accepted a socket, maybe in an earlier process. Returns false if none of
// these did.
bool inf_listeners_find(const struct inf_listeners *listeners, int fd,
                        uint32_t *out_listener) INF_NODISCARD INF_ON_LOOP;

// Closes the sockets. ready() is not called after this. Further calls do nothing.
void inf_listeners_close(struct inf_listeners *listeners);

// Closes the sockets, and frees the listeners. NULL is allowed.
void inf_listeners_destroy(struct inf_listeners **listeners);

#endif
