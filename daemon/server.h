// SPDX-License-Identifier: Apache-2.0
// The serving side of the daemon as one object: sockets, connections, requests, workers. main.c
// makes it, starts it, and asks it to drain; the loop does the rest.
#ifndef INF_DAEMON_SERVER_H
#define INF_DAEMON_SERVER_H

#include "backends/base/role.h"
#include "backends/registry.h"
#include "daemon/config/config.h"
#include "daemon/store/store.h"

struct event_base;
struct inf_environment;
struct inf_server;

// Everything pointed to outlives the server.
struct inf_server_options {
    struct event_base *base;
    const struct inf_config *config;
    struct inf_model_store *store; // its events are read by the server from here on
    struct inf_environment *environment;
    const struct inf_device_list *devices;
    const struct inf_log *log;
    const char *version; // of the daemon: "0.1.0"

    // Listening sockets that were inherited; the server owns and closes them. Where there are none
    // of a kind, the server makes the socket that the config names.
    const int *data_fds;
    uint32_t data_fd_count;
    const int *admin_fds;
    uint32_t admin_fd_count;

    // Called on the loop once a drain (or a stop) is complete: end the loop now.
    void (*drained)(void *context);
    // Called on the loop for each event of the model store; NULL: nobody wants to know.
    void (*loaded)(void *context, const struct inf_load_event *event);
    // Log lines dropped so far, for the status; NULL: 0.
    uint64_t (*log_lines_dropped)(void *context);
    void *context;
};

// Makes the server: sockets are bound, workers run, nobody is served yet. *out_server is the
// caller's to destroy.
//
// INF_EXISTS     another daemon serves this socket; its file was not touched.
// INF_DENIED, INF_INVALID  a socket cannot be made there.
// INF_EXHAUSTED  memory, threads or file descriptors.
enum inf_code inf_server_create(struct inf_server **out_server,
                                const struct inf_server_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Starts serving: adds the events to the loop.
enum inf_code inf_server_start(struct inf_server *server,
                               struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Begins to drain: no new connections or requests, GOAWAY to everybody, requests in flight finish
// until config->drain_timeout_ms, the rest is answered CANCELLED/SHUTDOWN; then drained() is
// called. Again: does nothing.
void inf_server_drain(struct inf_server *server) INF_ON_LOOP;

// As inf_server_drain() with no time left: what is in flight is answered CANCELLED/SHUTDOWN now.
void inf_server_stop(struct inf_server *server) INF_ON_LOOP;

// To be called before each turn of the loop: takes inferences that are done, where it pays to look
// for them rather than to be woken. True: look again soon, the turn must not sleep.
bool inf_server_poll(struct inf_server *server) INF_ON_LOOP;

// How long the longest run that goes on now has taken so far, in nanoseconds; 0 where every worker
// is idle. For the watchdog.
uint64_t inf_server_longest_run_ns(struct inf_server *server) INF_ON_LOOP;

// How many connections are open.
uint32_t inf_server_connections(const struct inf_server *server) INF_ON_LOOP;

// How many requests have not had their final reply.
uint32_t inf_server_in_flight(const struct inf_server *server) INF_ON_LOOP;

// Closes every connection, stops the workers (a run under way is waited for) and frees everything.
// The loop does not run any more, and its thread has no role afterwards. NULL is fine.
void inf_server_destroy(struct inf_server **server);

#endif
