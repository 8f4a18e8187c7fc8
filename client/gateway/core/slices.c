// SPDX-License-Identifier: Apache-2.0
// A queue of unfinished computations. A timer without delay runs slices in each turn of the loop,
// after the loop has looked for events of sockets, until all tasks are finished. The time of a turn
// is limited for all tasks together, because many clients can have one each.
#include "client/gateway/core/slices.h"

#include <assert.h>
#include <stdlib.h>

#include <event2/event.h>

#include "client/gateway/http/clock.h"

// No slice begins later than this after the start of a turn, in nanoseconds.
#define TURN_NS 300000

struct inf_slices {
    struct event *timer;
    TAILQ_HEAD(, inf_slice_task) tasks;
};

static void add_task(struct inf_slices *slices, struct inf_slice_task *task)
{
    task->queued = true;
    TAILQ_INSERT_TAIL(&slices->tasks, task, next);
}

static void set_timer(struct inf_slices *slices)
{
    static const struct timeval now = {0};
    event_add(slices->timer, &now);
}

static void run_turn(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    struct inf_slices *slices = context;
    struct inf_slice_task *task;
    uint64_t begin_ns = inf_http_clock_ns();
    while ((task = TAILQ_FIRST(&slices->tasks)) != NULL &&
           inf_http_clock_ns() - begin_ns < TURN_NS) {
        inf_slices_cancel(slices, task);
        if (task->step(task->context))
            add_task(slices, task);
    }
    if (!TAILQ_EMPTY(&slices->tasks))
        set_timer(slices);
}

enum inf_code inf_slices_create(struct inf_slices **slices, struct event_base *base,
                                struct inf_error *err)
{
    struct inf_slices *made = calloc(1, sizeof *made);
    if (made != NULL)
        made->timer = evtimer_new(base, run_turn, made);
    if (made == NULL || made->timer == NULL) {
        free(made);
        return inf_fail(err, INF_EXHAUSTED, "no memory for a queue of tasks");
    }
    TAILQ_INIT(&made->tasks);
    *slices = made;
    return INF_OK;
}

void inf_slices_destroy(struct inf_slices **slices)
{
    if (*slices == NULL)
        return;
    assert(TAILQ_EMPTY(&(*slices)->tasks));
    event_free((*slices)->timer);
    free(*slices);
    *slices = NULL;
}

void inf_slices_start(struct inf_slices *slices, struct inf_slice_task *task)
{
    if (!task->step(task->context))
        return;
    add_task(slices, task);
    set_timer(slices);
}

void inf_slices_cancel(struct inf_slices *slices, struct inf_slice_task *task)
{
    if (task->queued)
        TAILQ_REMOVE(&slices->tasks, task, next);
    task->queued = false;
}
