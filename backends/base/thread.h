// SPDX-License-Identifier: Apache-2.0
// Mutex, condition and thread, annotated for clang -Wthread-safety. No other code uses <pthread.h>.
// No thread ever holds two mutexes. The declaration of each mutex says what it guards.
#ifndef INF_BACKENDS_BASE_THREAD_H
#define INF_BACKENDS_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

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

// Initialises an embedded mutex. Aborts if the system cannot provide one.
void inf_mutex_init(struct inf_mutex *mutex);
// Releases an embedded mutex. No thread may hold it.
void inf_mutex_fini(struct inf_mutex *mutex);
// Locks the mutex. The event loop may call this too, because mutexes are held for a few
// instructions only.
void inf_mutex_lock(struct inf_mutex *mutex) INF_ATTR(acquire_capability(*mutex));
// Unlocks the mutex.
void inf_mutex_unlock(struct inf_mutex *mutex) INF_ATTR(release_capability(*mutex));

// Initialises an embedded condition. Aborts if the system cannot provide one.
void inf_cond_init(struct inf_cond *cond);
// Releases an embedded condition. No thread may be waiting on it.
void inf_cond_fini(struct inf_cond *cond);
// Waits until the condition is signalled; may also return without a signal. Blocks, so never call
// it on the loop thread.
void inf_cond_wait(struct inf_cond *cond, struct inf_mutex *mutex)
    INF_ATTR(requires_capability(*mutex));
// Waits until the condition is signalled, or until the time `deadline_ns` of inf_clock_ns().
// Returns false on timeout. Like inf_cond_wait(), it may also return without a signal.
bool inf_cond_wait_until(struct inf_cond *cond, struct inf_mutex *mutex, uint64_t deadline_ns)
    INF_ATTR(requires_capability(*mutex));
// Wakes one waiter.
void inf_cond_signal(struct inf_cond *cond);
// Wakes all waiters.
void inf_cond_broadcast(struct inf_cond *cond);

// Blocks all signals in the calling thread, except those of crashes, and so in threads that it
// starts, and stores the previous signal mask in *before. Threads that libraries start need this:
// only the thread of the event loop handles signals.
void inf_thread_block_signals(sigset_t *before);
// Restores the mask that inf_thread_block_signals() stored.
void inf_thread_restore_signals(const sigset_t *before);

// Starts `body(argument)` on a new thread with all signals blocked, except those of crashes.
// Debuggers show `name` (at most 15 characters).
//
// INF_EXHAUSTED  the system refuses a thread.
enum inf_code inf_thread_start(struct inf_thread *thread, const char *name, void (*body)(void *),
                               void *argument, struct inf_error *err) INF_NODISCARD;

// Runs `body(argument)` on a new thread and waits until it ends. The thread gets only CPU time that
// no other thread wants (SCHED_IDLE, if the system allows it). The body must not hold a lock that
// other threads need.
//
// INF_EXHAUSTED  the system refuses a thread.
enum inf_code inf_thread_run_idle(const char *name, void (*body)(void *), void *argument,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Lowers the priority of the calling thread, and of threads that it starts later, permanently. Sets
// a nice value of 10 and, from Linux 6.12 on, time slices that any waking thread interrupts
// (sched_setattr(2)). Unlike an idle thread, such a thread makes progress when no CPU is free. Does
// nothing if the system refuses.
void inf_thread_set_background(void);

// Lets the calling thread run soon after it wakes up, even if all CPUs are computing. Sets time
// slices of 0.1 ms (from Linux 6.12 on), which interrupt longer ones, and a nice value of -10 if
// RLIMIT_NICE allows it. Only for threads that never compute for long. Threads that it starts do
// not inherit these settings. Does nothing if the system refuses.
void inf_thread_set_low_latency(void);

// A running thread of this process, for other threads.
struct inf_thread_handle {
    int number; // of the kernel
    int nice;   // value at the time of the call
    clockid_t cpu_clock;
};

// Returns the handle of the calling thread.
struct inf_thread_handle inf_thread_self(void);

// Sets the nice value of a thread. With a positive one, and from Linux 6.12 on, any waking thread
// interrupts the time slices of the thread. With 19 the policy is SCHED_IDLE: any other thread
// interrupts it at once, and the kernel counts its CPU as idle when it places a waking thread.
// Threads that it starts later inherit this. Returns false if the system refuses. Any thread.
bool inf_thread_set_nice(const struct inf_thread_handle *thread, int nice);

// Returns true if the system lets a thread take the nice value of the calling thread again after a
// higher one: that needs RLIMIT_NICE (LimitNICE=0) or the capability CAP_SYS_NICE.
bool inf_thread_may_raise(void) INF_MAY_BLOCK;

// Returns the processor time of a thread in nanoseconds; 0 if the thread has ended. Any thread.
uint64_t inf_thread_cpu_ns(const struct inf_thread_handle *thread);

// Waits for the thread to end. Does nothing if the thread was never started. Blocks.
void inf_thread_join(struct inf_thread *thread);

#endif
