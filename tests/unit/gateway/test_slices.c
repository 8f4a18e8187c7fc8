// SPDX-License-Identifier: Apache-2.0
// The queue of unfinished computations: what runs at once, in which order tasks take turns, and
// that the loop serves other events between slices.
#include <criterion/criterion.h>
#include <event2/event.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/gateway/core/slices.h"
#include "client/gateway/http/clock.h"

struct counted {
    struct inf_slice_task task;
    struct inf_slices *slices;
    unsigned left, steps;
    uint64_t spin_ns;
    struct counted *cancels; // this task is cancelled by the next step
};

static bool count_step(void *context)
{
    struct counted *counted = context;
    uint64_t end_ns = inf_http_clock_ns() + counted->spin_ns;
    while (inf_http_clock_ns() < end_ns)
        ;
    counted->steps++;
    if (counted->cancels != NULL)
        inf_slices_cancel(counted->slices, &counted->cancels->task);
    counted->cancels = NULL;
    return --counted->left > 0;
}

static struct counted make_task(struct inf_slices *slices, unsigned steps, uint64_t spin_ns)
{
    return (struct counted){.slices = slices, .left = steps, .spin_ns = spin_ns};
}

static void start_task(struct counted *counted)
{
    counted->task.step = count_step;
    counted->task.context = counted;
    inf_slices_start(counted->slices, &counted->task);
}

static void create_queue(struct event_base **base, struct inf_slices **slices)
{
    *base = event_base_new();
    cr_assert_eq(inf_slices_create(slices, *base, NULL), INF_OK);
}

static void destroy_queue(struct event_base *base, struct inf_slices *slices)
{
    inf_slices_destroy(&slices);
    cr_assert_null(slices);
    event_base_free(base);
}

Test(slices, a_short_task_is_done_at_once)
{
    struct event_base *base;
    struct inf_slices *slices;
    create_queue(&base, &slices);
    struct counted counted = make_task(slices, 1, 0);
    start_task(&counted);
    cr_assert_eq(counted.steps, 1u);
    cr_assert_eq(event_base_loop(base, 0), 1); // no event is left
    cr_assert_eq(counted.steps, 1u);
    destroy_queue(base, slices);
}

Test(slices, tasks_take_turns)
{
    struct event_base *base;
    struct inf_slices *slices;
    create_queue(&base, &slices);
    // Each slice fills a turn of the loop.
    struct counted first = make_task(slices, 5, 1000000), second = make_task(slices, 5, 1000000);
    start_task(&first);
    start_task(&second);
    cr_assert(first.steps == 1 && second.steps == 1);
    for (unsigned turn = 1; turn <= 4; turn++) {
        event_base_loop(base, EVLOOP_ONCE);
        cr_assert(first.steps == 1 + (turn + 1) / 2 && second.steps == 1 + turn / 2, "%u: %u, %u",
                  turn, first.steps, second.steps);
    }
    event_base_loop(base, 0);
    cr_assert(first.steps == 5 && second.steps == 5);
    destroy_queue(base, slices);
}

Test(slices, short_slices_share_a_turn)
{
    struct event_base *base;
    struct inf_slices *slices;
    create_queue(&base, &slices);
    struct counted counted = make_task(slices, 20, 0);
    start_task(&counted);
    event_base_loop(base, EVLOOP_ONCE);
    cr_assert_gt(counted.steps, 2u);
    event_base_loop(base, 0);
    cr_assert_eq(counted.steps, 20u);
    destroy_queue(base, slices);
}

static void count_event(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    ++*(unsigned *)context;
}

Test(slices, other_events_are_served_between_turns)
{
    struct event_base *base;
    struct inf_slices *slices;
    create_queue(&base, &slices);
    unsigned fired = 0;
    int pipes[2];
    cr_assert_eq(pipe(pipes), 0);
    cr_assert_eq(write(pipes[1], "x", 1), 1);
    // The pipe stays readable, so that its event fires in every turn.
    struct event *event = event_new(base, pipes[0], EV_READ | EV_PERSIST, count_event, &fired);
    event_add(event, NULL);
    struct counted counted = make_task(slices, 10, 1000000);
    start_task(&counted);
    for (unsigned i = 0; i < 1000 && counted.left > 0; i++)
        event_base_loop(base, EVLOOP_ONCE);
    cr_assert_eq(counted.left, 0u);
    cr_assert_geq(fired, 8u);
    event_free(event);
    close(pipes[0]);
    close(pipes[1]);
    destroy_queue(base, slices);
}

Test(slices, a_task_can_be_cancelled_by_another)
{
    struct event_base *base;
    struct inf_slices *slices;
    create_queue(&base, &slices);
    struct counted first = make_task(slices, 3, 0), second = make_task(slices, 9, 0);
    start_task(&first);
    start_task(&second);
    first.cancels = &second;
    event_base_loop(base, 0);
    cr_assert(first.steps == 3 && second.steps == 1 && second.left == 8);
    inf_slices_cancel(slices, &second.task); // is not queued
    start_task(&second);
    event_base_loop(base, 0);
    cr_assert_eq(second.left, 0u);
    destroy_queue(base, slices);
}
