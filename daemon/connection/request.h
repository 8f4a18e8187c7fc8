// SPDX-License-Identifier: Apache-2.0
// Handles the frames REQUEST, CANCEL and DATA of a client.
#ifndef INF_DAEMON_CONNECTION_REQUEST_H
#define INF_DAEMON_CONNECTION_REQUEST_H

#include "daemon/connection/state.h"

// Handles a REQUEST frame.
void inf_connection_take_request(struct inf_connection *connection,
                                 struct inf_frame *frame) INF_ON_LOOP;

// Handles a CANCEL frame. Does nothing if its stream is already answered or never existed.
void inf_connection_take_cancel(struct inf_connection *connection,
                                const struct inf_frame *frame) INF_ON_LOOP;

// Handles a DATA frame: data of a request that arrives before the request.
void inf_connection_take_data(struct inf_connection *connection,
                              struct inf_frame *frame) INF_ON_LOOP;

#endif
