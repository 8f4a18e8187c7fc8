// SPDX-License-Identifier: Apache-2.0
// A binary heap of deadlines, and one timerfd for the earliest of them. Each deadline stores its
// index in the heap, so that it can be removed without a search. Removal is the usual case, because
// most requests are done in time.
#include "daemon/policy/deadline.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "backends/base/clock.h"

struct inf_deadlines {
    int fd;
    uint64_t armed_ns; // time at which the timer fires; 0: it is off
    uint32_t count;
    uint32_t capacity;
    struct inf_deadline *heap[]; // the root, which is the earliest, has index 1
};

uint64_t inf_deadline_after(uint64_t from_ns, uint64_t timeout_ns)
{
    uint64_t at_ns;
    if (timeout_ns == 0 || __builtin_add_overflow(from_ns, timeout_ns, &at_ns) ||
        at_ns >= INT64_MAX)
        return 0;
    return at_ns;
}

enum inf_code inf_deadlines_create(struct inf_deadlines **out_deadlines, uint32_t capacity,
                                   struct inf_error *err)
{
    struct inf_deadlines *deadlines =
        calloc(1, sizeof *deadlines + ((size_t)capacity + 1) * sizeof deadlines->heap[0]);
    if (deadlines == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u deadlines", capacity);
    deadlines->capacity = capacity;
    deadlines->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (deadlines->fd < 0) {
        enum inf_code code = inf_fail(err, INF_EXHAUSTED, "timerfd: %s", strerror(errno));
        free(deadlines);
        return code;
    }
    *out_deadlines = deadlines;
    return INF_OK;
}

void inf_deadlines_destroy(struct inf_deadlines **deadlines)
{
    if (*deadlines == NULL)
        return;
    close((*deadlines)->fd);
    free(*deadlines);
    *deadlines = NULL;
}

int inf_deadlines_fd(const struct inf_deadlines *deadlines)
{
    return deadlines->fd;
}

static void arm_timer(struct inf_deadlines *deadlines, uint64_t at_ns)
{
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at_ns / INF_NS_PER_S),
                                           .tv_nsec = (long)(at_ns % INF_NS_PER_S)}};
    int result = timerfd_settime(deadlines->fd, TFD_TIMER_ABSTIME, &when, NULL);
    assert(result == 0);
    (void)result;
    deadlines->armed_ns = at_ns;
}

static void place_deadline(struct inf_deadlines *deadlines, uint32_t index,
                           struct inf_deadline *deadline)
{
    deadlines->heap[index] = deadline;
    deadline->index = index;
}

static void sift_up(struct inf_deadlines *deadlines, uint32_t index, struct inf_deadline *deadline)
{
    while (index > 1 && deadlines->heap[index / 2]->at_ns > deadline->at_ns) {
        place_deadline(deadlines, index, deadlines->heap[index / 2]);
        index /= 2;
    }
    place_deadline(deadlines, index, deadline);
}

static void sift_down(struct inf_deadlines *deadlines, uint32_t index,
                      struct inf_deadline *deadline)
{
    for (;;) {
        uint32_t child = index * 2;
        if (child > deadlines->count)
            break;
        if (child < deadlines->count &&
            deadlines->heap[child + 1]->at_ns < deadlines->heap[child]->at_ns)
            child++;
        if (deadlines->heap[child]->at_ns >= deadline->at_ns)
            break;
        place_deadline(deadlines, index, deadlines->heap[child]);
        index = child;
    }
    place_deadline(deadlines, index, deadline);
}

void inf_deadlines_add(struct inf_deadlines *deadlines, struct inf_deadline *deadline)
{
    deadline->index = 0;
    if (deadline->at_ns == 0)
        return;
    assert(deadlines->count < deadlines->capacity);
    sift_up(deadlines, ++deadlines->count, deadline);
    // Set the timer only if it would fire after this deadline. Most requests are done long before
    // their deadline, and setting the timer for each of them would cost a system call.
    if (deadlines->armed_ns == 0 || deadline->at_ns < deadlines->armed_ns)
        arm_timer(deadlines, deadline->at_ns);
}

void inf_deadlines_remove(struct inf_deadlines *deadlines, struct inf_deadline *deadline)
{
    uint32_t index = deadline->index;
    if (index == 0)
        return;
    assert(deadlines->heap[index] == deadline);
    deadline->index = 0;
    struct inf_deadline *last = deadlines->heap[deadlines->count--];
    if (last == deadline)
        return;
    if (index > 1 && deadlines->heap[index / 2]->at_ns > last->at_ns)
        sift_up(deadlines, index, last);
    else
        sift_down(deadlines, index, last);
}

struct inf_deadline *inf_deadlines_next(struct inf_deadlines *deadlines)
{
    if (deadlines->count > 0 && deadlines->heap[1]->at_ns <= inf_clock_ns()) {
        struct inf_deadline *passed = deadlines->heap[1];
        inf_deadlines_remove(deadlines, passed);
        return passed;
    }
    // Setting the timer also clears the expiry of the timerfd, so the descriptor is not readable
    // until the timer fires again.
    arm_timer(deadlines, deadlines->count > 0 ? deadlines->heap[1]->at_ns : 0);
    return NULL;
}
