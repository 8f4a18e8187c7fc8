// SPDX-License-Identifier: Apache-2.0
// Mutex, condition and thread, annotated for clang -Wthread-safety. The only users of <pthread.h>.
// No two mutexes are ever held at once; the declaration of each says what it guards.
#ifndef INF_BACKENDS_BASE_THREAD_H
#define INF_BACKENDS_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

struct INF_ATTR(capability("mutex")) inf_mutex {
    pthread_mutex_t native;
};

struct inf_cond {
    pthread_cond_t native; // waits on CLOCK_MONOTONIC
};

struct inf_thread {
    pthread_t native;
    bool started;
};

// Prepares an embedded mutex. Aborts where the system has none to give.
void inf_mutex_init(struct inf_mutex *mutex);
// Releases an embedded mutex that nobody holds.
void inf_mutex_fini(struct inf_mutex *mutex);
// Waits for the mutex. Held for a swap at most, so the loop may call it too.
void inf_mutex_lock(struct inf_mutex *mutex) INF_ATTR(acquire_capability(*mutex));
// Gives the mutex back.
void inf_mutex_unlock(struct inf_mutex *mutex) INF_ATTR(release_capability(*mutex));

// Prepares an embedded condition. Aborts where the system has none to give.
void inf_cond_init(struct inf_cond *cond);
// Releases an embedded condition that nobody waits for.
void inf_cond_fini(struct inf_cond *cond);
// Waits until signalled; may wake without a signal. Blocks: never on the loop thread.
void inf_cond_wait(struct inf_cond *cond, struct inf_mutex *mutex)
    INF_ATTR(requires_capability(*mutex));
// As inf_cond_wait(), at most until `deadline_ns` of inf_clock_ns(). False where time ran out.
bool inf_cond_wait_until(struct inf_cond *cond, struct inf_mutex *mutex, uint64_t deadline_ns)
    INF_ATTR(requires_capability(*mutex));
// Wakes one waiter.
void inf_cond_signal(struct inf_cond *cond);
// Wakes all waiters.
void inf_cond_broadcast(struct inf_cond *cond);

// Starts `body(argument)` on a thread of its own with every signal blocked, named `name` (at most
// 15 characters) for debuggers.
//
// INF_EXHAUSTED  the system refuses a thread.
enum inf_code inf_thread_start(struct inf_thread *thread, const char *name, void (*body)(void *),
                               void *argument, struct inf_error *err) INF_NODISCARD;

// Runs `body(argument)` to its end on a thread that only gets processor time that nobody else wants
// (SCHED_IDLE, where the system allows that), and waits for it. It must hold no lock that others need.
//
// INF_EXHAUSTED  the system refuses a thread.
enum inf_code inf_thread_run_idle(const char *name, void (*body)(void *), void *argument,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Has the calling thread, and those that it starts, give way for good to others that wake up: a nice
// value of 10 and, from Linux 6.12 on, slices that any other thread's interrupt (sched_setattr(2)).
// Unlike an idle thread it goes on, more slowly, where processors are never free. Where the system
// refuses it, all stays as it is.
void inf_thread_set_background(void);

// Has the calling thread, which never computes for long, get a processor soon after it wakes, though all
// of them compute: from Linux 6.12 on, slices of a tenth of a millisecond, which interrupt longer ones, and a
// nice value of -10 where that is granted (RLIMIT_NICE). Threads that it starts inherit neither. Where the
// system refuses it, all stays as it is.
void inf_thread_set_low_latency(void);

// Waits for a started thread to end; nothing to do for one never started. Blocks.
void inf_thread_join(struct inf_thread *thread);

#endif
