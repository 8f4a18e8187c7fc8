// SPDX-License-Identifier: Apache-2.0
// Wraps pthreads. Calls that fail only by misuse abort on failure. Threads start with all signals
// blocked, except those of crashes, because the event loop handles signals.
#include "backends/base/thread.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/system/crash_note.h"

#define GIVE_WAY_NICE 10
// time slice of background threads: the longest that the kernel allows
#define GIVE_WAY_SLICE_NS 100000000u
#define PROMPT_NICE       (-10)
#define NICE_MOST         19
// time slice of threads that must run soon after they wake up: the shortest that the kernel allows
#define PROMPT_SLICE_NS 100000u
#define RESET_ON_FORK   1u // SCHED_FLAG_RESET_ON_FORK: new threads get the default time slice

// Aborts if a pthread call failed. The calls in this file fail only by misuse.
static void require_success(int result)
{
    assert(result == 0);
    (void)result;
}

void inf_mutex_init(struct inf_mutex *mutex)
{
    require_success(pthread_mutex_init(&mutex->native, NULL));
}

void inf_mutex_fini(struct inf_mutex *mutex)
{
    require_success(pthread_mutex_destroy(&mutex->native));
}

void inf_mutex_lock(struct inf_mutex *mutex) INF_ATTR(no_thread_safety_analysis)
{
    require_success(pthread_mutex_lock(&mutex->native));
}

void inf_mutex_unlock(struct inf_mutex *mutex) INF_ATTR(no_thread_safety_analysis)
{
    require_success(pthread_mutex_unlock(&mutex->native));
}

void inf_cond_init(struct inf_cond *cond)
{
    pthread_condattr_t attributes;
    require_success(pthread_condattr_init(&attributes));
    require_success(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
    require_success(pthread_cond_init(&cond->native, &attributes));
    require_success(pthread_condattr_destroy(&attributes));
}

void inf_cond_fini(struct inf_cond *cond)
{
    require_success(pthread_cond_destroy(&cond->native));
}

void inf_cond_wait(struct inf_cond *cond, struct inf_mutex *mutex)
{
    require_success(pthread_cond_wait(&cond->native, &mutex->native));
}

bool inf_cond_wait_until(struct inf_cond *cond, struct inf_mutex *mutex, uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                                .tv_nsec = (long)(deadline_ns % 1000000000u)};
    int result = pthread_cond_timedwait(&cond->native, &mutex->native, &deadline);
    assert(result == 0 || result == ETIMEDOUT);
    return result == 0;
}

void inf_cond_signal(struct inf_cond *cond)
{
    require_success(pthread_cond_signal(&cond->native));
}

void inf_cond_broadcast(struct inf_cond *cond)
{
    require_success(pthread_cond_broadcast(&cond->native));
}

// Arguments for a new thread. The new thread frees them.
struct launch {
    void (*body)(void *);
    void *argument;
    char name[16];
};

static void *run_body(void *raw)
{
    struct launch launch = *(struct launch *)raw;
    free(raw);
    pthread_setname_np(pthread_self(), launch.name);
    launch.body(launch.argument);
    return NULL;
}

void inf_thread_block_signals(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    // If the signal of a fault is blocked, the kernel ends the process without calling the handler.
    for (size_t i = 0; i < INF_CRASH_SIGNALS; i++)
        sigdelset(&all, inf_crash_signals[i]);
    require_success(pthread_sigmask(SIG_SETMASK, &all, before));
}

void inf_thread_restore_signals(const sigset_t *before)
{
    require_success(pthread_sigmask(SIG_SETMASK, before, NULL));
}

enum inf_code inf_thread_start(struct inf_thread *thread, const char *name, void (*body)(void *),
                               void *argument, struct inf_error *err)
{
    struct launch *launch = calloc(1, sizeof *launch);
    if (launch == NULL)
        return inf_fail(err, INF_EXHAUSTED, "thread '%s': no memory", name);
    launch->body = body;
    launch->argument = argument;
    strncpy(launch->name, name, sizeof launch->name - 1);

    sigset_t before;
    inf_thread_block_signals(&before);
    int result = pthread_create(&thread->native, NULL, run_body, launch);
    inf_thread_restore_signals(&before);
    if (result != 0) {
        free(launch);
        return inf_fail(err, INF_EXHAUSTED, "thread '%s': %s", name, strerror(result));
    }
    thread->started = true;
    return INF_OK;
}

void inf_thread_join(struct inf_thread *thread)
{
    if (!thread->started)
        return;
    require_success(pthread_join(thread->native, NULL));
    thread->started = false;
}

struct idle_call {
    void (*body)(void *);
    void *argument;
};

static void run_idle(void *context)
{
    const struct idle_call *call = context;
    // If a system call filter refuses SCHED_IDLE, `body` runs with normal priority.
    (void)pthread_setschedparam(pthread_self(), SCHED_IDLE, &(struct sched_param){0});
    call->body(call->argument);
}

enum inf_code inf_thread_run_idle(const char *name, void (*body)(void *), void *argument,
                                  struct inf_error *err)
{
    inf_role_check_may_block();
    struct idle_call call = {.body = body, .argument = argument};
    struct inf_thread thread = {.started = false};
    INF_TRY(inf_thread_start(&thread, name, run_idle, &call, err));
    inf_thread_join(&thread);
    return INF_OK;
}

// Has the layout of struct sched_attr of sched_setattr(2), which the C library does not declare.
struct attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

void inf_thread_set_low_latency(void)
{
    int nice = getpriority(PRIO_PROCESS, 0);
    struct attributes attributes = {.size = sizeof attributes,
                                    .policy = SCHED_OTHER,
                                    .flags = RESET_ON_FORK,
                                    .nice = INF_MIN(nice, PROMPT_NICE),
                                    .runtime_ns = PROMPT_SLICE_NS};
    if (syscall(SYS_sched_setattr, 0, &attributes, 0) == 0)
        return;
    // The kernel refuses a negative nice value unless RLIMIT_NICE allows it. Set only the time
    // slice.
    attributes.nice = nice;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

static bool set_nice(int number, int nice)
{
    const struct attributes attributes = {.size = sizeof attributes,
                                          .policy = SCHED_OTHER,
                                          .nice = nice,
                                          .runtime_ns = nice > 0 ? GIVE_WAY_SLICE_NS : 0};
    if (syscall(SYS_sched_setattr, number, &attributes, 0) != 0)
        return false;
    // SCHED_IDLE leaves the nice value as it is. If it is refused, the nice value alone holds.
    const struct attributes idle = {.size = sizeof idle, .policy = SCHED_IDLE};
    if (nice == NICE_MOST)
        (void)syscall(SYS_sched_setattr, number, &idle, 0);
    return true;
}

void inf_thread_set_background(void)
{
    (void)set_nice(0, GIVE_WAY_NICE);
}

struct inf_thread_handle inf_thread_self(void)
{
    struct inf_thread_handle self = {.number = (int)gettid(), .nice = getpriority(PRIO_PROCESS, 0)};
    require_success(pthread_getcpuclockid(pthread_self(), &self.cpu_clock));
    return self;
}

bool inf_thread_set_nice(const struct inf_thread_handle *thread, int nice)
{
    return set_nice(thread->number, nice);
}

static void try_raise(void *context)
{
    bool *may_raise = context;
    int nice = getpriority(PRIO_PROCESS, 0);
    *may_raise = set_nice(0, NICE_MOST) && set_nice(0, nice);
}

bool inf_thread_may_raise(void)
{
    struct inf_thread thread = {.started = false};
    bool may_raise = false;
    if (inf_thread_start(&thread, "inferd-raise", try_raise, &may_raise, NULL) == INF_OK)
        inf_thread_join(&thread);
    return may_raise;
}

uint64_t inf_thread_cpu_ns(const struct inf_thread_handle *thread)
{
    struct timespec used;
    if (clock_gettime(thread->cpu_clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * UINT64_C(1000000000) + (uint64_t)used.tv_nsec;
}
