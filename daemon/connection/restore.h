// SPDX-License-Identifier: Apache-2.0
// Takes over the connections that an earlier process left. Everything in a slot is checked, as if
// it came from outside.
#ifndef INF_DAEMON_CONNECTION_RESTORE_H
#define INF_DAEMON_CONNECTION_RESTORE_H

#include "daemon/connection/state.h"

// A connection that an earlier process left: its socket with the peer's present credentials, its
// slot, and the memfds of its regions.
struct inf_left_connection {
    struct inf_peer peer;
    uint32_t slot, generation;
    int *region_fds; // INF_LIMIT_REGIONS elements, -1: none; NULL: no region at all
    int sessions_fd; // memfd with the sessions (session_image.h); -1: none
};

// Takes over a connection, and answers the requests that the earlier process accepted and did not
// answer: UNAVAILABLE, with NOT_BEGUN or OUTCOME_UNKNOWN. Adds their number to *answered. Nothing
// is read from the client before inf_connections_resume(). Takes ownership of the socket and of
// the descriptors of regions, which become -1. On failure the socket is closed, its descriptors are
// removed from the store, and the slot may be used again.
//
// INF_INVALID    the slot is damaged, or belongs to another connection.
// INF_EXHAUSTED  memory or a quota, or a reply was sent in part whose rest is lost.
enum inf_code inf_connections_restore(struct inf_connections *connections,
                                      struct inf_left_connection *left, uint32_t *answered,
                                      struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Closes the socket of a connection that cannot be taken over. Removes the descriptors of the
// connection from the store.
void inf_connections_drop_left(struct inf_connections *connections,
                               struct inf_left_connection *left) INF_ON_LOOP;

// Continues with the connections that were taken over: handles what the earlier process had read
// and not accepted, and reads on.
void inf_connections_resume(struct inf_connections *connections) INF_ON_LOOP;

#endif
