// SPDX-License-Identifier: Apache-2.0
// The connection of a client to the daemon's socket: its state, and the steps that open it. This
// module does not wait for the daemon's greeting; connect.c (blocking) and retry.c (asynchronous)
// do.
#ifndef INF_CLIENT_LIB_IO_CONNECTION_H
#define INF_CLIENT_LIB_IO_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/status.h"
#include "proto/wire/message.h"

// How long the client waits for the greeting, and for answers to questions that cost the daemon no
// work. inferd_connect_timeout() can set another time.
#define INF_CLIENT_ANSWER_NS ((uint64_t)10 * 1000 * 1000 * 1000)

struct inf_client_connection {
    int fd;            // the socket; -1: closed
    char *path;        // path of the socket; the client frees it
    uint64_t epoch[2]; // a number that the daemon chooses at each start
    // If failure.code is not INF_OK, the connection has failed for this reason.
    struct inf_error failure;
    bool greeted;            // HELLO_ACK was received
    bool needs_registration; // regions are not registered with this connection yet
    bool draining;           // GOAWAY was received: the daemon takes no new requests
    // The daemon did not start requests on streams with larger numbers; set when GOAWAY arrives.
    uint64_t last_stream;
    uint64_t next_stream; // the next unused stream number, which is not reset by reconnecting
    uint64_t attempt_ns;  // when the last attempt to connect began, or when the next one may begin
    struct inf_limits_message limits; // the limits that the daemon sent in HELLO_ACK
};

// Opens the socket and connects it. If the daemon's backlog is full, retries until `until_ns`
// (blocking).
//
// INF_UNAVAILABLE  no daemon listens on the path.
// INF_DENIED       this user may not connect.
enum inf_code inf_client_connection_open(inferd_client *client, const char *path, uint64_t until_ns,
                                         struct inf_error *err) INF_NODISCARD;

// Appends the frame HELLO, the client's greeting, to the send queue.
enum inf_code inf_client_connection_send_hello(inferd_client *client,
                                               struct inf_error *err) INF_NODISCARD;

// Closes the socket and drops all state that depends on the connection. The caller makes sure that
// no request is in flight.
void inf_client_connection_reset(inferd_client *client);

// Resets the connection and opens another one. Afterwards HELLO is queued, or connection.failure is
// set. Never blocks.
void inf_client_connection_begin(inferd_client *client, uint64_t now_ns);

#endif
