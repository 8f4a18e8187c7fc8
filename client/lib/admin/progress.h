// SPDX-License-Identifier: Apache-2.0
// Progress of loading or placing a model, passed on to a callback of the caller.
#ifndef INF_CLIENT_LIB_ADMIN_PROGRESS_H
#define INF_CLIENT_LIB_ADMIN_PROGRESS_H

#include <stdbool.h>

#include "client/inferd.h"
#include "proto/core/status.h"
#include "proto/wire/message.h"

// The progress messages of one load or placement, for the application's callback. Set the first
// three fields; the others begin with zero. If messages arrive while the callback runs (because the
// callback calls functions of the library), only the newest of them is reported after the callback
// returns.
struct inf_client_progress {
    inferd_client *client;
    inferd_progress callback; // NULL: progress is not reported
    void *context;
    bool running; // true while the callback runs
    bool pending; // `stage` and `percent` have not been passed to the callback yet
    char stage[64];
    unsigned percent;
};

// Handles a progress message. `context` is a struct inf_client_progress. The signature is that of
// inf_client_question.on_reply.
enum inf_code inf_client_progress_handle(void *context, const union inf_message *message,
                                         bool final, struct inf_error *err);

#endif
