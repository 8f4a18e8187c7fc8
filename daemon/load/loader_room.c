// SPDX-License-Identifier: Apache-2.0
// A load that needs memory asks the loop whether the budget has room for the model, and waits on
// the loader thread until there is an answer. Meanwhile it gives up what holds memory, which may be
// the room that it waits for.
#include <stdlib.h>

#include "backends/base/clock.h"
#include "daemon/load/loader_state.h"

// A load that waits for room asks again after this time: models in use may have become idle.
#define ROOM_RETRY_NS (20 * INF_NS_PER_MS)

// Posts the question whether there is room for a model. Without memory the question is asked later.
static void post_question(struct inf_loader *loader, const struct inf_load_job *job,
                          const struct inf_load_room *room)
{
    struct inf_load_message *message = calloc(1, sizeof *message);
    if (message == NULL)
        return;
    message->event.token = job->token;
    message->event.room = *room;
    snprintf(message->event.name, sizeof message->event.name, "%s", job->name);
    snprintf(message->event.pin, sizeof message->event.pin, "%s", job->pin);
    inf_loader_post(loader, message);
}

// Waits for an answer until `end_ns`, and meanwhile gives up what holds memory. Returns true if
// there is an answer.
static bool wait_for_answer(struct inf_loader *loader, uint64_t end_ns) INF_MAY_BLOCK
{
    for (;;) {
        while (inf_loader_release_models(loader))
            ;
        inf_mutex_lock(&loader->mutex);
        bool answered = loader->room.answered;
        bool in_time = answered || inf_cond_wait_until(&loader->wanted, &loader->mutex, end_ns);
        inf_mutex_unlock(&loader->mutex);
        if (answered || !in_time)
            return answered;
    }
}

enum inf_code inf_loader_reserve_room(void *context, uint64_t bytes, bool may_defer,
                                      enum inf_room_answer *out_answer, struct inf_error *err)
{
    const struct inf_loader_listener *listener = context;
    struct inf_loader *loader = listener->loader;
    uint64_t start_ns = inf_clock_ns();
    for (;;) {
        INF_TRY(inf_load_job_check(listener->job, err));
        uint64_t now_ns = inf_clock_ns();
        struct inf_load_room room = {
            .bytes = bytes, .may_defer = may_defer, .waited_ns = now_ns - start_ns};
        inf_mutex_lock(&loader->mutex);
        // Skip 0, because events with this number ask nothing.
        loader->room.ticket += loader->room.ticket == UINT32_MAX ? 2 : 1;
        loader->room.answered = false;
        room.ticket = loader->room.ticket;
        inf_mutex_unlock(&loader->mutex);
        post_question(loader, listener->job, &room);
        if (wait_for_answer(loader, now_ns + ROOM_RETRY_NS))
            break;
    }
    // The room may be that of models that were retired just now.
    while (inf_loader_release_models(loader))
        ;
    *out_answer = loader->room.answer;
    if (*out_answer == INF_ROOM_REFUSED && err != NULL)
        *err = loader->room.err;
    return *out_answer == INF_ROOM_REFUSED ? loader->room.err.code : INF_OK;
}

void inf_loader_answer_room(struct inf_loader *loader, uint32_t ticket, enum inf_room_answer answer,
                            const struct inf_error *err)
{
    inf_mutex_lock(&loader->mutex);
    if (ticket == loader->room.ticket && !loader->room.answered) {
        loader->room.answer = answer;
        loader->room.err = err != NULL ? *err : (struct inf_error){0};
        loader->room.answered = true;
        inf_cond_signal(&loader->wanted);
    }
    inf_mutex_unlock(&loader->mutex);
}
