// SPDX-License-Identifier: Apache-2.0
// The connections of all clients: greeting, frames, calls in flight, replies, back-pressure. Each
// is a written-out state machine (frame.c); what they share lies in one object. The loop's.
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
    const struct inf_config *config; // what can be changed in it is read when it is needed
};

// Makes an empty set. *out_connections is the caller's to destroy.
enum inf_code inf_connections_create(struct inf_connections **out_connections,
                                     const struct inf_connections_options *options,
                                     struct inf_error *err) INF_NODISCARD;

// Closes every connection and frees the set. NULL is fine.
void inf_connections_destroy(struct inf_connections **connections) INF_ON_LOOP;

// A client that has just been accepted.
struct inf_peer {
    int fd; // non-blocking
    uid_t uid;
    bool admin;
};

// Takes a client in. On failure the client is told why and the descriptor closed.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS) too many connections, of all or of this user; (HOST_OOM)
// INF_UNAVAILABLE  (DRAINING)
enum inf_code inf_connections_add(struct inf_connections *connections, const struct inf_peer *peer,
                                  struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Takes the calls that are done, answers those that are not answered yet, and goes on writing where
// workers have left something to be written.
void inf_connections_take_done(struct inf_connections *connections) INF_ON_LOOP;

// Answers a call whose deadline has passed.
void inf_connections_expire(struct inf_connections *connections, struct inf_call *call) INF_ON_LOOP;

// Passes news of a load on to the call that waits for it.
void inf_connections_report(struct inf_connections *connections, struct inf_call *call,
                            const struct inf_load_event *event) INF_ON_LOOP;

// Says GOAWAY to every client: requests that come from now on are refused with DRAINING.
void inf_connections_drain(struct inf_connections *connections, uint64_t drain_ns) INF_ON_LOOP;

// Answers all calls in flight with CANCELLED/SHUTDOWN.
void inf_connections_shut_down(struct inf_connections *connections) INF_ON_LOOP;

// Whether every request is answered and every reply written.
bool inf_connections_idle(const struct inf_connections *connections) INF_ON_LOOP;

// Writes what the functions above have made, and frees connections that are over. The last thing a
// callback of libevent's does.
void inf_connections_flush(struct inf_connections *connections) INF_ON_LOOP;

#endif
