// SPDX-License-Identifier: Apache-2.0
// The state machine of a connection: what each frame from the client causes.
#ifndef INF_DAEMON_CONNECTION_FRAME_H
#define INF_DAEMON_CONNECTION_FRAME_H

#include "daemon/connection/state.h"

// Handles one frame. Takes ownership of its data and descriptors.
void inf_connection_take_frame(struct inf_connection *connection,
                               struct inf_frame *frame) INF_ON_LOOP;

#endif
