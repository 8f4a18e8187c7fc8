// SPDX-License-Identifier: Apache-2.0
// The connections of all clients: greeting, frames, calls in flight, replies and back-pressure.
// Each connection is a state machine (frame.c); what they share is in one object. Used by the loop
// only.
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
struct inf_connection;
struct inf_connections;

// Everything pointed to outlives the connections.
struct inf_connections_options {
    struct event_base *base;
    struct inf_service *service;
    struct inf_pool *pool;
    struct inf_deferred_close *deferred_close;
    struct inf_reply_writer_returns *returns;
    struct inf_counters *counters;
    const struct inf_log *log;
    const char *version; // of the daemon
    struct inf_quota *quota;
    const struct inf_config *config; // values that can change are read each time they are needed
};

// Creates an empty set. *out_connections is the caller's to destroy.
enum inf_code inf_connections_create(struct inf_connections **out_connections,
                                     const struct inf_connections_options *options,
                                     struct inf_error *err) INF_NODISCARD;

// Closes every connection and frees the set. NULL is allowed.
void inf_connections_destroy(struct inf_connections **connections) INF_ON_LOOP;

// A client that has just been accepted.
struct inf_peer {
    int fd; // non-blocking
    uid_t uid;
    bool admin;
};

// Adds a client. On failure the client is told why, and the descriptor is closed.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS) too many connections, of all or of this user; (HOST_OOM)
// INF_UNAVAILABLE  (DRAINING)
enum inf_code inf_connections_add(struct inf_connections *connections, const struct inf_peer *peer,
                                  struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Takes the calls that are done and answers those that are not answered yet; and continues writing
// where workers left something unwritten.
void inf_connections_take_done(struct inf_connections *connections) INF_ON_LOOP;

// Answers a call whose deadline has passed.
void inf_connections_expire(struct inf_connections *connections, struct inf_call *call) INF_ON_LOOP;

// Passes an event of a load on to the call that waits for it.
void inf_connections_report(struct inf_connections *connections, struct inf_call *call,
                            const struct inf_load_event *event) INF_ON_LOOP;

// Sends GOAWAY to every client. Requests that arrive later are refused with DRAINING.
void inf_connections_drain(struct inf_connections *connections, uint64_t drain_ns) INF_ON_LOOP;

// Answers all calls in flight with CANCELLED/SHUTDOWN.
void inf_connections_shut_down(struct inf_connections *connections) INF_ON_LOOP;

// Returns true if every request is answered and every reply is written.
bool inf_connections_idle(const struct inf_connections *connections) INF_ON_LOOP;

// Closes a socket for which there is no connection. The client may have sent descriptors whose
// close() blocks, so that the loop must not close it.
void inf_connections_close_socket(struct inf_connections *connections, int fd) INF_ON_LOOP;

// Writes what the functions above queued, and frees connections that are closed. To be called at
// the end of every callback of libevent.
void inf_connections_flush(struct inf_connections *connections) INF_ON_LOOP;

#endif
