// SPDX-License-Identifier: Apache-2.0
// Progress of loading or placing a model, passed on to a callback of the caller.
#include "client/lib/admin/progress.h"

#include <stdio.h>

#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "client/lib/client_lock.h"

enum inf_code inf_client_progress_handle(void *context, const union inf_message *message,
                                         bool final, struct inf_error *err)
{
    (void)err;
    struct inf_client_progress *progress = context;
    if (final || progress->callback == NULL)
        return INF_OK;
    INF_COPY_TEXT(progress->stage, message->load_progress.stage);
    progress->percent = message->load_progress.percent;
    progress->pending = true;
    if (progress->running)
        return INF_OK;
    progress->running = true;
    while (progress->pending) {
        char stage[sizeof progress->stage];
        INF_COPY_TEXT(stage, progress->stage);
        progress->pending = false;
        unsigned depth = inf_client_lock_begin_callback(progress->client);
        progress->callback(progress->context, stage, progress->percent);
        inf_client_lock_end_callback(progress->client, depth);
    }
    progress->running = false;
    return INF_OK;
}
