// SPDX-License-Identifier: Apache-2.0
// Connections that a restart of the daemon keeps: what the next process must know is recorded in
// the slot of the connection (daemon/handover) before a client can notice it.
#ifndef INF_DAEMON_CONNECTION_KEPT_H
#define INF_DAEMON_CONNECTION_KEPT_H

#include "daemon/connection/state.h"

// Returns true if the next process will serve the connection.
bool inf_connection_is_kept(const struct inf_connection *connection);

// Begins to keep an open connection, if nothing is in flight on it and it is not kept yet. Does
// nothing if connections are not kept, or if there are too many.
void inf_connection_keep(struct inf_connection *connection) INF_ON_LOOP;

// Lets a kept connection end with the process after all. Further calls do nothing.
void inf_connection_give_up(struct inf_connection *connection) INF_ON_LOOP;

// Frees the slot of a connection whose writer was just closed, and removes its descriptors from the
// store. If the process ends, leaves both to the next process.
void inf_connection_end_keeping(struct inf_connection *connection) INF_ON_LOOP;

// Frees the slots of connections that ended while a worker was writing, if the worker is done.
void inf_connections_reap_slots(struct inf_connections *connections) INF_ON_LOOP;

// Allocates what a kept connection has in this process, for the slot `index`, and makes all writes
// go through the log in the slot. If `fresh` is set, the slot is all zero.
//
// INF_EXHAUSTED  (HOST_OOM) no memory.
enum inf_code inf_connection_attach_slot(struct inf_connection *connection, uint32_t index,
                                         bool fresh,
                                         struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Removes the descriptor of this name from the store.
void inf_connections_remove_stored(struct inf_connections *connections,
                                   const struct inf_stored_name *name) INF_ON_LOOP;

// --- reading ---

// Calls recvmsg() for the connection and records the result. `direct` says that the bytes are not
// read to inf_connection_read_buffer(). The arguments and the result are those of recvmsg().
ssize_t inf_connection_receive(struct inf_connection *connection, struct msghdr *message,
                               bool direct, int flags) INF_ON_LOOP;

// Returns the buffer for reads of INF_CONNECTION_READ_BYTES.
uint8_t *inf_connection_read_buffer(struct inf_connection *connection) INF_ON_LOOP;

// Records that all bytes of the last read were handled.
void inf_connection_end_read(struct inf_connection *connection) INF_ON_LOOP;

// Returns the entry of the frame that is being handled; NULL: there is none.
struct inf_pending *inf_connection_frame_pending(struct inf_connection *connection) INF_ON_LOOP;

// Records the last stream of the connection.
void inf_connection_note_stream(struct inf_connection *connection) INF_ON_LOOP;

// Frees an entry of the send log without an answer. 0 is allowed. If the process ends, leaves the
// entry to the next process, which answers the request.
void inf_connection_drop_pending(struct inf_connection *connection,
                                 uint32_t pending_plus_1) INF_ON_LOOP;

// --- regions ---

// Records the region that was registered last, and stores its memfd.
void inf_connection_keep_region(struct inf_connection *connection, uint64_t stream_id) INF_ON_LOOP;

// Removes a region from the records and the store.
void inf_connection_forget_region(struct inf_connection *connection, uint64_t id) INF_ON_LOOP;

// --- sessions ---

// Stores the sessions of all kept connections that have no request in flight, within the limits for
// them, when the process ends. The others end with the process, and the log says how many.
void inf_connections_keep_sessions(struct inf_connections *connections) INF_ON_LOOP;

// Opens the sessions that an earlier process stored (fd is -1: none), and removes them from the
// store, because the next request changes them. If they are damaged, the connection has none.
void inf_connection_take_sessions(struct inf_connection *connection, int fd) INF_ON_LOOP;

#endif
