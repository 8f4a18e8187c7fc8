// SPDX-License-Identifier: Apache-2.0
// The connections of all clients: greeting, frames, calls in flight, replies and back-pressure.
// Each connection is a state machine (frame.c); struct inf_connections holds the state that all
// connections share. Used by the loop only.
#ifndef INF_DAEMON_CONNECTION_CONNECTION_H
#define INF_DAEMON_CONNECTION_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "daemon/config/config.h"
#include "daemon/resource/quota.h"
#include "daemon/service/service.h"
#include "daemon/system/counters.h"

struct event_base;
struct inf_fd_store;
struct inf_handover;
struct inf_connection;
struct inf_connections;

// What all connections need from the daemon. All objects that this struct points to outlive the
// connections.
struct inf_connections_options {
    struct event_base *base;
    struct inf_service *service;
    struct inf_pool *pool;
    struct inf_deferred_close *deferred_close;
    struct inf_reply_writer_returns *returns;
    struct inf_counters *counters;
    const struct inf_log *log;
    const char *version; // version of the daemon
    struct inf_quota *quota;
    // Where connections are kept for the next process, with the store of their descriptors; NULL:
    // they end with this process.
    struct inf_handover *handover;
    struct inf_fd_store *fd_store;
    // The flags of the daemon. The connections read live flags from here on every use, because an
    // admin can change these flags.
    const struct inf_config *config;
};

// Creates a set of connections that contains none yet. The caller destroys *out_connections.
enum inf_code inf_connections_create(struct inf_connections **out_connections,
                                     const struct inf_connections_options *options,
                                     struct inf_error *err) INF_NODISCARD;

// Closes every connection, and frees *connections. NULL is allowed.
void inf_connections_destroy(struct inf_connections **connections) INF_ON_LOOP;

// A client that has just been accepted.
struct inf_peer {
    int fd; // socket of the client, non-blocking
    uid_t uid;
    pid_t pid;
    bool admin;
};

// Adds a client. On failure the client receives the reason, and the descriptor is closed.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS) too many connections in total or for this user; (HOST_OOM)
//                  memory is exhausted.
// INF_UNAVAILABLE  (DRAINING) the daemon shuts down.
enum inf_code inf_connections_add(struct inf_connections *connections, const struct inf_peer *peer,
                                  struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Takes the calls that workers have finished, and sends the replies that the workers did not send.
// Also continues writing on connections on which a worker could not write everything.
void inf_connections_take_done(struct inf_connections *connections) INF_ON_LOOP;

// Answers a call whose deadline has passed.
void inf_connections_expire(struct inf_connections *connections, struct inf_call *call) INF_ON_LOOP;

// Passes an event of a model load on to the call that waits for this load.
void inf_connections_report(struct inf_connections *connections, struct inf_call *call,
                            const struct inf_load_event *event) INF_ON_LOOP;

// Sends GOAWAY to every client. Requests that arrive later are refused with DRAINING.
void inf_connections_drain(struct inf_connections *connections, uint64_t drain_ns) INF_ON_LOOP;

// Answers all calls in flight with CANCELLED/SHUTDOWN.
void inf_connections_shut_down(struct inf_connections *connections) INF_ON_LOOP;

// Returns true if every request is answered and every reply is written.
bool inf_connections_idle(const struct inf_connections *connections) INF_ON_LOOP;

// Closes a socket that has no connection object. A helper thread does the closing, because close()
// of descriptors that the client sent can block the loop.
void inf_connections_close_socket(struct inf_connections *connections, int fd) INF_ON_LOOP;

// Writes the frames that are queued on all connections, and frees closed connections. Every
// callback of libevent must call this function at its end.
void inf_connections_flush(struct inf_connections *connections) INF_ON_LOOP;

#endif
