// SPDX-License-Identifier: Apache-2.0
// Handling of the daemon's answer to an inference.
#ifndef INF_CLIENT_LIB_INFER_REPLY_H
#define INF_CLIENT_LIB_INFER_REPLY_H

#include <stdbool.h>

#include "client/lib/infer/call.h"
#include "proto/wire/assembler.h"

// Handles the answer to an inference, or to its question for metadata. If the result needs
// frame->data, takes ownership of the data and sets the field to NULL. Returns false if the daemon
// broke the protocol; *err describes the violation.
bool inf_client_reply_handle(inferd_client *client, struct inf_client_call *call,
                             struct inf_frame *frame, struct inf_error *err);

// Handles the failure in client->message.status: sends the inference again if that helps, or ends
// the call.
void inf_client_reply_handle_failure(inferd_client *client, struct inf_client_call *call);

#endif
