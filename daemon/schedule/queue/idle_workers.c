// SPDX-License-Identifier: Apache-2.0
// Chooses the worker that takes the next job.
//
// Prefer the worker that ran last: the memory of its slot is in the caches, and on the cpu device
// its processor is not the one of the helper threads. A push wakes a worker only if there are more
// jobs than workers that poll or are about to pop again, and it wakes the one that fell asleep
// last. Another program may take the processor of a worker that was awake, for milliseconds. So the
// loop does not sleep until such a job is taken, and wakes a sleeping worker after HAND_OVER_NS.
#include "daemon/schedule/queue/idle_workers.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "proto/core/span.h"

// A worker that is awake should take a job within this time, in which it sends a small reply.
// Otherwise another worker is woken after all, which takes 20 to 40 us.
#define HAND_OVER_NS 100000u

enum inf_code inf_idle_workers_init(struct inf_idle_workers *idle, uint32_t workers,
                                    struct inf_error *err)
{
    *idle = (struct inf_idle_workers){.workers = workers};
    idle->elements = calloc(workers, sizeof *idle->elements);
    if (idle->elements == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u workers", workers);
    for (uint32_t i = 0; i < workers; i++) {
        inf_cond_init(&idle->elements[i].wake);
        idle->elements[i].next = idle->unused;
        idle->unused = &idle->elements[i];
    }
    return INF_OK;
}

void inf_idle_workers_fini(struct inf_idle_workers *idle)
{
    for (uint32_t i = 0; i < idle->workers; i++)
        inf_cond_fini(&idle->elements[i].wake);
    free(idle->elements);
}

// Puts this worker into the list of sleeping workers.
static struct inf_sleeping_worker *enter_list(struct inf_idle_workers *idle)
{
    struct inf_sleeping_worker *self = idle->unused;
    assert(self != NULL && "there is an element for each worker");
    idle->unused = self->next;
    self->next = idle->asleep;
    self->asleep = true;
    idle->asleep = self;
    idle->asleep_count++;
    return self;
}

static void give_back(struct inf_idle_workers *idle, struct inf_sleeping_worker *self)
{
    self->next = idle->unused;
    idle->unused = self;
}

void inf_idle_workers_sleep(struct inf_idle_workers *idle, struct inf_mutex *mutex)
{
    struct inf_sleeping_worker *self = enter_list(idle);
    while (self->asleep)
        inf_cond_wait(&self->wake, mutex);
    give_back(idle, self);
}

void inf_idle_workers_sleep_until(struct inf_idle_workers *idle, struct inf_mutex *mutex,
                                  uint64_t until_ns)
{
    struct inf_sleeping_worker *self = enter_list(idle);
    while (self->asleep && inf_cond_wait_until(&self->wake, mutex, until_ns))
        ;
    if (self->asleep) {
        struct inf_sleeping_worker **link = &idle->asleep;
        while (*link != self)
            link = &(*link)->next;
        *link = self->next;
        self->asleep = false;
        idle->asleep_count--;
    }
    give_back(idle, self);
}

struct inf_sleeping_worker *inf_idle_workers_take(struct inf_idle_workers *idle)
{
    struct inf_sleeping_worker *worker = idle->asleep;
    if (worker != NULL) {
        idle->asleep = worker->next;
        worker->asleep = false;
        idle->asleep_count--;
    }
    return worker;
}

void inf_sleeping_worker_wake(struct inf_sleeping_worker *worker)
{
    if (worker != NULL)
        inf_cond_signal(&worker->wake);
}

void inf_idle_workers_return(struct inf_idle_workers *idle)
{
    idle->returning = INF_MIN(idle->returning + 1, idle->workers);
}

void inf_idle_workers_arrive(struct inf_idle_workers *idle)
{
    idle->returning -= idle->returning > 0;
}

struct inf_sleeping_worker *inf_idle_workers_choose(struct inf_idle_workers *idle, uint32_t queued,
                                                    uint32_t polling)
{
    if (queued > polling + idle->returning)
        return inf_idle_workers_take(idle);
    if (idle->asleep_count > 0 &&
        atomic_load_explicit(&idle->not_woken_ns, memory_order_relaxed) == 0)
        atomic_store_explicit(&idle->not_woken_ns, inf_clock_ns(), memory_order_relaxed);
    return NULL;
}

void inf_idle_workers_note_queued(struct inf_idle_workers *idle, uint32_t queued)
{
    if (queued == 0)
        atomic_store_explicit(&idle->not_woken_ns, 0, memory_order_relaxed);
}

enum inf_hand_over inf_idle_workers_check(const struct inf_idle_workers *idle, uint64_t now_ns)
{
    // Relaxed memory order is enough: only the loop, which calls this, sets a time that is not 0.
    uint64_t since_ns = atomic_load_explicit(&idle->not_woken_ns, memory_order_relaxed);
    if (since_ns == 0)
        return INF_HAND_OVER_NONE;
    return now_ns < since_ns || now_ns - since_ns < HAND_OVER_NS ? INF_HAND_OVER_DUE
                                                                 : INF_HAND_OVER_LATE;
}

struct inf_sleeping_worker *inf_idle_workers_replace(struct inf_idle_workers *idle, uint32_t queued)
{
    // Do not rely on the late workers for the next jobs either.
    idle->returning = 0;
    atomic_store_explicit(&idle->not_woken_ns, 0, memory_order_relaxed);
    return queued > 0 ? inf_idle_workers_take(idle) : NULL;
}
