// SPDX-License-Identifier: Apache-2.0
// The serving side of the daemon as one object: sockets, connections, requests and workers.
// daemon.c creates and starts the server, and starts the drain; the event loop does the rest.
#ifndef INF_DAEMON_SERVER_H
#define INF_DAEMON_SERVER_H

#include "backends/base/role.h"
#include "backends/registry.h"
#include "daemon/config/config.h"
#include "daemon/store/store.h"

struct event_base;
struct inf_environment;
struct inf_fd_store;
struct inf_handover;
struct inf_left_connection;
struct inf_server;

// What the server needs from the daemon. All objects that the pointers refer to outlive the server.
struct inf_server_options {
    struct event_base *base;
    const struct inf_config *config;
    struct inf_model_store *store; // the server reads the events of the store
    struct inf_environment *environment;
    const struct inf_device_list *devices;
    struct inf_memory_budget *memory_budget; // that of the store; outlives the server
    const struct inf_log *logs;              // array of logs, indexed by enum inf_log_part
    const char *version;                     // version of the daemon, such as "0.1.0"

    // Inherited listening sockets, which the server owns and closes. If there is no data or no
    // admin socket among them, the server creates the missing socket at the path in the
    // configuration.
    const int *data_fds;
    uint32_t data_fd_count;
    const int *admin_fds;
    uint32_t admin_fd_count;

    // Where connections are kept for the next process; NULL: they end with this one.
    struct inf_handover *handover;
    struct inf_fd_store *fd_store;

    // Called on the loop when a drain or stop is complete. The callee should then end the loop.
    void (*drained)(void *context);
    // Called on the loop for each event of the model store; may be NULL.
    void (*loaded)(void *context, const struct inf_load_event *event);
    // Returns how many log lines were dropped, for the reply of ServerStatus; NULL: reported as 0.
    uint64_t (*log_lines_dropped)(void *context);
    // Starts reading the configuration again, see struct inf_service_options.
    enum inf_code (*reload)(void *context, struct inf_error *err);
    void *context;
};

// Creates the server: binds sockets and starts workers, but serves no client yet. The caller
// destroys *out_server.
//
// INF_EXISTS     another daemon serves this socket; its file was not touched.
// INF_DENIED, INF_INVALID  a socket cannot be created at this path.
// INF_EXHAUSTED  memory, threads or file descriptors.
enum inf_code inf_server_create(struct inf_server **out_server,
                                const struct inf_server_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Starts serving: adds the events to the loop.
enum inf_code inf_server_start(struct inf_server *server,
                               struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Takes over a connection of an earlier process, see inf_connections_restore(). Fills left->peer
// except for the descriptor. The local address of the socket tells whether the client connected to
// the admin socket.
//
// INF_INVALID  the client connected to a socket that this server does not serve.
//
// Further errors are those of inf_connections_restore().
enum inf_code inf_server_restore(struct inf_server *server, struct inf_left_connection *left,
                                 uint32_t *answered,
                                 struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Begins to read from the connections that were taken over. Further calls do nothing.
void inf_server_resume(struct inf_server *server) INF_ON_LOOP;

// Starts draining: refuses new connections and requests, and sends GOAWAY to every client. Requests
// in flight may finish within config->drain_timeout_ms; after that, unfinished requests are
// answered with CANCELLED/SHUTDOWN. Then drained() is called. Further calls do nothing.
void inf_server_drain(struct inf_server *server) INF_ON_LOOP;

// Stops serving like inf_server_drain(), but without a timeout: requests in flight are answered
// with CANCELLED/SHUTDOWN at once.
void inf_server_stop(struct inf_server *server) INF_ON_LOOP;

// Continues a reload after the configuration was read again, see inf_service_finish_reload().
void inf_server_finish_reload(struct inf_server *server, const struct inf_config *next,
                              const struct inf_error *why) INF_ON_LOOP;

// Adds an event for each model that was unloaded while it was idle since the last call.
void inf_server_watch_models(struct inf_server *server) INF_ON_LOOP;

// Notes in the budget of memory what clients use.
void inf_server_update_memory(struct inf_server *server) INF_ON_LOOP;

// Must be called before each iteration of the loop. Polls for finished inferences, if that is
// likely to save time. Returns true if the function must be called again soon; then the iteration
// must not sleep.
bool inf_server_poll(struct inf_server *server) INF_ON_LOOP;

// Returns true if a run ignores its cancellation, so that a worker is lost. Used by the watchdog.
bool inf_server_is_stuck(struct inf_server *server) INF_ON_LOOP;

// Returns the number of open connections.
uint32_t inf_server_connections(const struct inf_server *server) INF_ON_LOOP;

// Returns the number of requests without a final reply.
uint32_t inf_server_in_flight(const struct inf_server *server) INF_ON_LOOP;

// Closes every connection, stops the workers after their running jobs, and frees everything. The
// loop must have ended. Afterwards the calling thread no longer has the role of the loop. NULL is
// allowed.
void inf_server_destroy(struct inf_server **server);

#endif
