// SPDX-License-Identifier: Apache-2.0
// Limits the time of a run in two stages:
//
//   begin ---- limit_ms ----> cancelled: the run ends at its next step, and the jobs get an answer
//         ---- limit_ms + grace_ms ----> stuck: the process no longer notifies its watchdog
//
// The second stage is needed because a kernel that was not written here, or a driver, may ignore
// the cancellation, and a thread cannot be ended from outside. Both stages are logged before they
// take effect, with model, users, device and node, because the process may be gone afterwards.
//
// The mutex excludes the loop, which reads the jobs, from the worker, which is about to give them
// back. No time is taken and no lock is waited for while a run is in progress.
#include "daemon/schedule/run_watch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/load/loader.h"

// Room for the name of a node in a log line.
#define NODE_TEXT 128

// Room for the distinct users of a run, at most 10 digits and a comma each.
#define USERS_TEXT (11 * INF_BATCH_ROWS_MAX + 1)

void inf_run_watch_init(struct inf_run_watch *watch)
{
    *watch = (struct inf_run_watch){.jobs = NULL};
    atomic_init(&watch->cancelled, false);
    inf_mutex_init(&watch->mutex);
    inf_run_step_init(&watch->step);
}

void inf_run_watch_fini(struct inf_run_watch *watch)
{
    inf_run_step_fini(&watch->step);
    inf_mutex_fini(&watch->mutex);
}

// --- the worker's side ---

void inf_run_watch_begin(struct inf_run_watch *watch, struct inf_job *const *jobs, uint32_t count,
                         uint64_t since_ns)
{
    assert(count > 0 && count <= INF_BATCH_ROWS_MAX);
    atomic_store_explicit(&watch->cancelled, false, memory_order_relaxed);
    inf_mutex_lock(&watch->mutex);
    watch->jobs = jobs;
    watch->count = count;
    watch->since_ns = since_ns;
    watch->passed_ms = 0;
    watch->is_stuck = false;
    inf_mutex_unlock(&watch->mutex);
}

// Replaces the error of a cancelled run by one that names the limit, and keeps the text that says
// how far the run came.
static void explain_limit(struct inf_job *job, uint32_t limit_ms)
{
    struct inf_error *err = &job->result.fault.err;
    err->code = INF_DEADLINE;
    err->reason = INF_REASON_IN_EXEC;
    (void)inf_error_prefix(err, INF_DEADLINE,
                           "model '%s': the run took longer than the %u ms of run_limit_ms",
                           job->served->name, limit_ms);
}

void inf_run_watch_end(struct inf_run_watch *watch)
{
    inf_mutex_lock(&watch->mutex);
    struct inf_job *const *jobs = watch->jobs;
    uint32_t passed_ms = watch->passed_ms;
    watch->jobs = NULL;
    watch->is_stuck = false;
    inf_mutex_unlock(&watch->mutex);
    for (uint32_t i = 0; passed_ms > 0 && i < watch->count; i++)
        if (jobs[i]->result.fault.err.code == INF_CANCELLED)
            explain_limit(jobs[i], passed_ms);
}

bool inf_run_watch_has_passed(struct inf_run_watch *watch)
{
    inf_mutex_lock(&watch->mutex);
    bool passed = watch->passed_ms > 0;
    inf_mutex_unlock(&watch->mutex);
    return passed;
}

// --- the loop's side ---

// What a log line says about a run. Copied, so that no line is written under the mutex.
struct description {
    char model[INF_LIMIT_MODEL_NAME + 1];
    char users[USERS_TEXT]; // distinct users, separated by commas
    const char *device;     // static
    uint32_t requests;
};

static bool is_listed(struct inf_job *const *jobs, uint32_t count, uint64_t user)
{
    for (uint32_t i = 0; i < count; i++)
        if (jobs[i]->queue_entry.user == user)
            return true;
    return false;
}

static void describe_run(const struct inf_run_watch *watch, struct description *description)
{
    size_t used = 0;
    snprintf(description->model, sizeof description->model, "%s", watch->jobs[0]->served->name);
    description->device = inf_device_info(watch->jobs[0]->device)->name;
    description->requests = watch->count;
    for (uint32_t i = 0; i < watch->count; i++) {
        uint64_t user = watch->jobs[i]->queue_entry.user;
        if (!is_listed(watch->jobs, i, user))
            used += (size_t)snprintf(description->users + used, sizeof description->users - used,
                                     "%s%" PRIu64, used > 0 ? "," : "", user);
        used = INF_MIN(used, sizeof description->users - 1);
    }
}

static void log_run(struct inf_run_watch *watch, const struct inf_log *log,
                    enum inf_log_level level, const char *event,
                    const struct description *description, const struct inf_run_limits *limits,
                    uint64_t ran_ns)
{
    char node[NODE_TEXT];
    inf_run_step_copy(&watch->step, node, sizeof node);
    inf_log(log, level,
            "%s model=%s uid=%s device=%s node=\"%s\" requests=%u ran_ms=%" PRIu64
            " run_limit_ms=%u run_grace_ms=%u",
            event, description->model, description->users, description->device, node,
            description->requests, ran_ns / INF_NS_PER_MS, limits->limit_ms, limits->grace_ms);
}

static void cancel_jobs(struct inf_run_watch *watch)
{
    // Relaxed is enough, because the flags are only a hint to stop early.
    atomic_store_explicit(&watch->cancelled, true, memory_order_relaxed);
    for (uint32_t i = 0; i < watch->count; i++)
        atomic_store_explicit(&watch->jobs[i]->cancelled, true, memory_order_relaxed);
}

uint64_t inf_run_watch_check(struct inf_run_watch *watch, const struct inf_run_limits *limits,
                             uint64_t now_ns, const struct inf_log *log)
{
    struct description description;
    uint64_t limit_ns = limits->limit_ms * INF_NS_PER_MS;
    uint64_t grace_ns = limits->grace_ms * INF_NS_PER_MS;
    bool cancels = false, sticks = false;
    struct inf_served *stuck = NULL;
    uint64_t next_ns = 0;
    inf_mutex_lock(&watch->mutex);
    uint64_t since_ns = watch->since_ns;
    if (watch->jobs != NULL && !watch->is_stuck) {
        cancels = watch->passed_ms == 0 && now_ns >= since_ns + limit_ns;
        sticks = watch->passed_ms != 0 && now_ns >= since_ns + limit_ns + grace_ns;
        if (cancels || sticks)
            describe_run(watch, &description);
        if (sticks)
            stuck = inf_served_ref(watch->jobs[0]->served);
        if (cancels) {
            watch->passed_ms = limits->limit_ms;
            cancel_jobs(watch);
        }
        watch->is_stuck = sticks;
        next_ns = watch->passed_ms == 0 ? since_ns + limit_ns : since_ns + limit_ns + grace_ns;
    }
    inf_mutex_unlock(&watch->mutex);
    if (cancels)
        log_run(watch, log, INF_LOG_WARNING, "run cancelled", &description, limits,
                now_ns - since_ns);
    if (sticks)
        log_run(watch, log, INF_LOG_ERROR, "run does not end", &description, limits,
                now_ns - since_ns);
    if (stuck != NULL)
        inf_loader_note_hang(stuck);
    inf_served_unref(&stuck);
    return sticks ? 0 : next_ns;
}

bool inf_run_watch_is_stuck(struct inf_run_watch *watch)
{
    inf_mutex_lock(&watch->mutex);
    bool stuck = watch->is_stuck;
    inf_mutex_unlock(&watch->mutex);
    return stuck;
}
