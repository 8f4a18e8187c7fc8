// SPDX-License-Identifier: Apache-2.0
// What the client does with each frame from the daemon.
#ifndef INF_CLIENT_LIB_INCOMING_H
#define INF_CLIENT_LIB_INCOMING_H

#include "client/inferd.h"
#include "proto/wire/assembler.h"

// Handles one frame and takes ownership of its data. The connection ends if the frame breaks the
// protocol.
void inf_client_incoming_handle_frame(inferd_client *client, struct inf_frame *frame);

#endif
