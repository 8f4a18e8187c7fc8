// SPDX-License-Identifier: Apache-2.0
// Connects the loop with the device queues, workers and deadlines, and decides when the loop polls
// for results.
//
// Polling for results: waking the loop from epoll costs more than a small inference. So the loop
// polls the queue of done jobs while a result is about to arrive. The polling window depends on the
// expected time of the job, and on whether other jobs are in flight:
//
//   up to INF_SPIN_WAIT_MIN_NS         poll at once, for that time
//   alone, up to POLL_THROUGH_NS       poll from the start until the expected end plus a margin
//   alone, longer                      a timer wakes the loop before the expected end; then poll
//   several jobs, longer               do not poll: the eventfd wakes the loop
//
// While the loop polls, workers do not write to the eventfd (inf_queue_begin_polling()). When the
// loop stops polling, a result may have arrived unannounced. inf_queue_end_polling() reports this,
// so no result is lost.
#include "daemon/schedule/scheduler.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "backends/base/queue.h"
#include "backends/base/system/cores.h"
#include "daemon/schedule/queue/device_queue.h"
#include "daemon/schedule/worker.h"

// If the loop waits for only one job, and the job is expected to take at most this many
// nanoseconds, the loop polls during the whole run.
#define POLL_THROUGH_NS (3 * INF_NS_PER_MS / 2)

// The queue and the workers of one device.
struct device_state {
    struct inf_device_queue queue;
    struct inf_worker *workers;
    uint32_t worker_count;
    uint64_t requests;
    uint64_t busy_ns;
};

struct inf_scheduler {
    struct inf_queue *done;
    struct inf_deadlines *deadlines;
    const struct inf_device_list *devices;
    struct inf_idle_gate *idle_gate;
    uint32_t queue_requests_max;
    uint32_t jobs_max;      // the most `jobs`; `done` and `deadlines` have room for this number
    uint32_t jobs;          // number of jobs submitted and not yet returned to the loop
    bool may_poll;          // polling is allowed, because there are several processors
    bool polling;           // the loop is polling now
    uint64_t last_run_ns;   // run time of the job that the loop took back last
    uint64_t poll_from_ns;  // time at which the loop starts to poll for a result
    uint64_t poll_until_ns; // time at which the loop gives up polling
    struct inf_deadline poll_timer; // wakes the loop at poll_from_ns
    struct inf_run_limits run_limits;
    const struct inf_log *log;
    // Wakes the loop when the next run could exceed a limit. In the heap while there are jobs.
    struct inf_deadline watch_timer;
    uint32_t device_count; // number of devices whose state is initialised
    struct device_state device_states[INF_REGISTRY_DEVICES];
};

static enum inf_code start_workers(struct inf_scheduler *scheduler, struct device_state *state,
                                   const struct inf_scheduler_options *options,
                                   struct inf_error *err)
{
    uint32_t slots = state->queue.workers;
    state->workers = calloc(slots, sizeof *state->workers);
    if (state->workers == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u workers", slots);
    for (uint32_t i = 0; i < slots; i++) {
        struct inf_worker *worker = &state->workers[i];
        worker->queue = &state->queue;
        worker->done = scheduler->done;
        worker->pool = options->pool;
        worker->slot = i;
        inf_run_watch_init(&worker->watch);
        enum inf_code code = inf_worker_start(worker, err);
        if (code != INF_OK) {
            inf_run_watch_fini(&worker->watch);
            return code;
        }
        state->worker_count++;
    }
    return INF_OK;
}

// Returns the most jobs that one device can have: a full queue and busy workers, plus the same
// number of jobs that are done but that the loop has not taken back.
static uint32_t find_jobs_max(const struct inf_scheduler_options *options, uint32_t index)
{
    uint32_t most = INF_MAX(options->queue_requests_max, options->queue_requests_most);
    return 2 * (INF_MAX(most, 1) + inf_device_info(options->devices->devices[index])->slots);
}

static enum inf_code init_scheduler(struct inf_scheduler *scheduler,
                                    const struct inf_scheduler_options *options,
                                    struct inf_error *err)
{
    for (uint32_t i = 0; i < options->devices->count; i++)
        scheduler->jobs_max += find_jobs_max(options, i);
    INF_TRY(inf_queue_create(&scheduler->done, scheduler->jobs_max, true, err));
    INF_TRY(inf_deadlines_create(&scheduler->deadlines, 2 * scheduler->jobs_max + 2, err));
    scheduler->devices = options->devices;
    scheduler->idle_gate = options->idle_gate;
    scheduler->queue_requests_max = options->queue_requests_max;
    scheduler->run_limits = options->run_limits;
    scheduler->log = options->log;
    uint32_t cores = inf_cores_usable();
    scheduler->may_poll = cores > 1;
    for (uint32_t i = 0; i < options->devices->count; i++) {
        struct device_state *state = &scheduler->device_states[scheduler->device_count++];
        const struct inf_device_queue_options queue = {
            .workers = inf_device_info(options->devices->devices[i])->slots,
            .jobs_max = find_jobs_max(options, i),
            .cores = cores,
            .limits = {.requests_max = options->queue_requests_max,
                       .bytes_max = options->queue_bytes_max}};
        INF_TRY(inf_device_queue_init(&state->queue, &queue, err));
        INF_TRY(start_workers(scheduler, state, options, err));
    }
    return INF_OK;
}

enum inf_code inf_scheduler_create(struct inf_scheduler **out_scheduler,
                                   const struct inf_scheduler_options *options,
                                   struct inf_error *err)
{
    struct inf_scheduler *scheduler = calloc(1, sizeof *scheduler);
    if (scheduler == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a scheduler");
    enum inf_code code = init_scheduler(scheduler, options, err);
    if (code == INF_OK)
        *out_scheduler = scheduler;
    else
        inf_scheduler_destroy(&scheduler);
    return code;
}

void inf_scheduler_stop(struct inf_scheduler *scheduler)
{
    for (uint32_t i = 0; i < scheduler->device_count; i++)
        inf_device_queue_close(&scheduler->device_states[i].queue);
    for (uint32_t i = 0; i < scheduler->device_count; i++)
        for (uint32_t k = 0; k < scheduler->device_states[i].worker_count; k++)
            inf_worker_join(&scheduler->device_states[i].workers[k]);
}

void inf_scheduler_destroy(struct inf_scheduler **scheduler)
{
    if (*scheduler == NULL)
        return;
    inf_scheduler_stop(*scheduler);
    for (uint32_t i = 0; i < (*scheduler)->device_count; i++) {
        struct device_state *state = &(*scheduler)->device_states[i];
        for (uint32_t k = 0; k < state->worker_count; k++)
            inf_run_watch_fini(&state->workers[k].watch);
        free(state->workers);
        inf_device_queue_fini(&(*scheduler)->device_states[i].queue);
    }
    inf_deadlines_destroy(&(*scheduler)->deadlines);
    inf_queue_destroy(&(*scheduler)->done);
    free(*scheduler);
    *scheduler = NULL;
}

// Returns the delay in milliseconds after which a refused client should try again: half of
// `wait_ns`, the time in which the workers do the queued jobs.
static uint32_t find_retry_ms(uint64_t wait_ns)
{
    return (uint32_t)INF_MIN(INF_MAX(wait_ns / 2 / INF_NS_PER_MS, 1), 60000);
}

static enum inf_code refuse_job(struct inf_scheduler *scheduler, const struct inf_job *job,
                                enum inf_device_queue_verdict verdict, uint64_t wait_ns,
                                struct inf_fault *fault)
{
    const char *device = inf_device_info(job->device)->name;
    struct inf_device_queue *queue = &scheduler->device_states[job->device_index].queue;
    fault->retry_after_ms = find_retry_ms(wait_ns);
    fault->phase = "queue";
    if (verdict == INF_DEVICE_QUEUE_LATE_START)
        return inf_fail_reason(&fault->err, INF_DEADLINE, INF_REASON_PREDICTED,
                               "device '%s': the time given for the queue, %" PRIu64
                               " us, would run out before the request is begun",
                               device, (job->queue_deadline.at_ns - job->accepted_ns) / 1000);
    if (verdict == INF_DEVICE_QUEUE_LATE_END)
        return inf_fail_reason(&fault->err, INF_DEADLINE, INF_REASON_PREDICTED,
                               "device '%s': the time given, %" PRIu64
                               " us, would run out before the request is done",
                               device, (job->deadline.at_ns - job->accepted_ns) / 1000);
    return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_QUEUE_FULL,
                           "device '%s': %u requests wait already", device,
                           inf_device_queue_count(queue));
}

// Kinds of deadlines of a job: for the end of its run, and for the start (the queue deadline).
enum {
    DEADLINE_END,
    DEADLINE_QUEUE
};

static void add_deadlines(struct inf_scheduler *scheduler, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_loop))
{
    job->deadline.kind = DEADLINE_END;
    job->queue_deadline.kind = DEADLINE_QUEUE;
    inf_deadlines_add(scheduler->deadlines, &job->deadline);
    inf_deadlines_add(scheduler->deadlines, &job->queue_deadline);
}

static void remove_deadlines(struct inf_scheduler *scheduler, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_loop))
{
    inf_deadlines_remove(scheduler->deadlines, &job->deadline);
    inf_deadlines_remove(scheduler->deadlines, &job->queue_deadline);
}

// --- limiting the time of runs ---

// Checks all runs, and sets the timer for the next check. A run that begins later cannot exceed its
// limit before the timer, because the timer is at most one limit away.
static void check_runs(struct inf_scheduler *scheduler) INF_ATTR(requires_capability(inf_role_loop))
{
    uint64_t now_ns = inf_clock_ns();
    uint64_t next_ns = now_ns + scheduler->run_limits.limit_ms * INF_NS_PER_MS;
    for (uint32_t i = 0; i < scheduler->device_count; i++) {
        for (uint32_t k = 0; k < scheduler->device_states[i].worker_count; k++) {
            struct inf_worker *worker = &scheduler->device_states[i].workers[k];
            uint64_t at_ns =
                inf_run_watch_check(&worker->watch, &scheduler->run_limits, now_ns, scheduler->log);
            next_ns = at_ns != 0 ? INF_MIN(next_ns, at_ns) : next_ns;
        }
    }
    scheduler->watch_timer.at_ns = next_ns;
    inf_deadlines_remove(scheduler->deadlines, &scheduler->watch_timer);
    if (scheduler->jobs > 0)
        inf_deadlines_add(scheduler->deadlines, &scheduler->watch_timer);
}

// Starts the timer for the limits of runs unless it is set, because a job was submitted.
static void start_watch_timer(struct inf_scheduler *scheduler, uint64_t now_ns)
    INF_ATTR(requires_capability(inf_role_loop))
{
    if (scheduler->watch_timer.index != 0)
        return;
    scheduler->watch_timer.at_ns = now_ns + scheduler->run_limits.limit_ms * INF_NS_PER_MS;
    inf_deadlines_add(scheduler->deadlines, &scheduler->watch_timer);
}

void inf_scheduler_set_run_limits(struct inf_scheduler *scheduler,
                                  const struct inf_run_limits *limits)
{
    scheduler->run_limits = *limits;
    check_runs(scheduler);
}

bool inf_scheduler_is_stuck(struct inf_scheduler *scheduler)
{
    for (uint32_t i = 0; i < scheduler->device_count; i++)
        for (uint32_t k = 0; k < scheduler->device_states[i].worker_count; k++)
            if (inf_run_watch_is_stuck(&scheduler->device_states[i].workers[k].watch))
                return true;
    return false;
}

// --- submitting and polling ---

// Sets the time window in which the loop polls for the result of a job. `wait_ns` is the expected
// time until the job is done, including the jobs ahead of it.
static void plan_polling(struct inf_scheduler *scheduler, const struct inf_job *job,
                         uint64_t wait_ns) INF_ATTR(requires_capability(inf_role_loop))
{
    uint64_t end_ns = job->accepted_ns + wait_ns;
    uint64_t margin_ns = INF_MIN(INF_MAX(wait_ns / 8, (uint64_t)INF_SPIN_WAIT_MIN_NS),
                                 (uint64_t)INF_SPIN_WAIT_MAX_NS);
    inf_deadlines_remove(scheduler->deadlines, &scheduler->poll_timer);
    if (!scheduler->may_poll || job->expected.run_ns == 0)
        return;
    if (wait_ns <= INF_SPIN_WAIT_MIN_NS) {
        scheduler->poll_from_ns = job->accepted_ns;
        scheduler->poll_until_ns = job->accepted_ns + INF_SPIN_WAIT_MIN_NS;
    } else if (scheduler->jobs == 1) {
        scheduler->poll_from_ns =
            wait_ns <= POLL_THROUGH_NS ? job->accepted_ns : end_ns - margin_ns;
        scheduler->poll_until_ns = end_ns + margin_ns;
        scheduler->poll_timer.at_ns = scheduler->poll_from_ns;
        if (wait_ns > POLL_THROUGH_NS)
            inf_deadlines_add(scheduler->deadlines, &scheduler->poll_timer);
    }
}

enum inf_code inf_scheduler_submit(struct inf_scheduler *scheduler, struct inf_job *job,
                                   struct inf_fault *fault)
{
    struct device_state *state = &scheduler->device_states[job->device_index];
    uint64_t wait_ns = 0;
    enum inf_device_queue_verdict verdict = INF_DEVICE_QUEUE_FULL;
    if (scheduler->jobs < scheduler->jobs_max)
        verdict = inf_device_queue_push(&state->queue, job, &wait_ns);
    if (verdict != INF_DEVICE_QUEUE_ACCEPTED)
        return refuse_job(scheduler, job, verdict, wait_ns, fault);
    scheduler->jobs++;
    inf_idle_gate_begin_request(scheduler->idle_gate);
    add_deadlines(scheduler, job);
    start_watch_timer(scheduler, job->accepted_ns);
    plan_polling(scheduler, job, wait_ns);
    return INF_OK;
}

uint64_t inf_scheduler_finish_ns(struct inf_scheduler *scheduler, uint32_t index,
                                 const struct inf_job *job, uint64_t run_ns)
{
    return inf_device_queue_finish_ns(&scheduler->device_states[index].queue, job, run_ns);
}

// Returns true if a job of any device waits for a worker that is awake although another one sleeps.
static bool check_hand_overs(struct inf_scheduler *scheduler, uint64_t now_ns) INF_ON_LOOP
{
    bool waits = false;
    for (uint32_t i = 0; i < scheduler->device_count; i++)
        waits |= inf_device_queue_check_hand_over(&scheduler->device_states[i].queue, now_ns);
    return waits;
}

bool inf_scheduler_poll(struct inf_scheduler *scheduler)
{
    bool poll = false;
    if (scheduler->jobs > 0) {
        uint64_t now_ns = inf_clock_ns();
        poll = check_hand_overs(scheduler, now_ns) ||
               (now_ns >= scheduler->poll_from_ns && now_ns < scheduler->poll_until_ns);
    }
    if (poll && !scheduler->polling)
        inf_queue_begin_polling(scheduler->done);
    bool late = !poll && scheduler->polling && inf_queue_end_polling(scheduler->done);
    scheduler->polling = poll;
    return poll || late;
}

bool inf_scheduler_stop_polling(struct inf_scheduler *scheduler)
{
    scheduler->poll_until_ns = 0;
    (void)check_hand_overs(scheduler, UINT64_MAX);
    return inf_scheduler_poll(scheduler);
}

enum inf_code inf_scheduler_hold(struct inf_scheduler *scheduler, struct inf_job *job,
                                 struct inf_fault *fault)
{
    struct device_state *state = &scheduler->device_states[job->device_index];
    if (scheduler->jobs >= scheduler->jobs_max ||
        inf_device_queue_hold(&state->queue, job) != INF_DEVICE_QUEUE_ACCEPTED)
        return refuse_job(scheduler, job, INF_DEVICE_QUEUE_FULL, 0, fault);
    scheduler->jobs++;
    inf_idle_gate_begin_request(scheduler->idle_gate);
    add_deadlines(scheduler, job);
    start_watch_timer(scheduler, job->accepted_ns);
    return INF_OK;
}

// Puts a job that did not run into the queue of done jobs.
static void post_unrun_job(struct inf_scheduler *scheduler, struct inf_job *job)
{
    job->result.start_ns = job->result.begin_ns = job->accepted_ns;
    job->result.end_ns = job->result.done_ns = job->accepted_ns;
    job->result.device_ns = job->result.core_ns = job->result.paused_ns = 0;
    job->place = INF_JOB_WORKER;
    bool posted = inf_queue_push(scheduler->done, job);
    assert(posted && "the queue has room for every job there can be");
    (void)posted;
}

void inf_scheduler_resume(struct inf_scheduler *scheduler, struct inf_job *job)
{
    uint64_t wait_ns;
    enum inf_device_queue_verdict verdict =
        inf_device_queue_push(&scheduler->device_states[job->device_index].queue, job, &wait_ns);
    if (verdict == INF_DEVICE_QUEUE_ACCEPTED)
        return;
    inf_fault_init(&job->result.fault);
    inf_fail_reason(&job->result.fault.err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                    "the daemon shuts down");
    post_unrun_job(scheduler, job);
}

void inf_scheduler_fail(struct inf_scheduler *scheduler, struct inf_job *job)
{
    inf_device_queue_drop(&scheduler->device_states[job->device_index].queue, job);
    post_unrun_job(scheduler, job);
}

bool inf_scheduler_withdraw(struct inf_scheduler *scheduler, struct inf_job *job)
{
    struct inf_device_queue *queue = &scheduler->device_states[job->device_index].queue;
    remove_deadlines(scheduler, job);
    bool queued = inf_device_queue_withdraw(queue, job);
    if (queued) {
        scheduler->jobs--;
        inf_idle_gate_end_request(scheduler->idle_gate);
    }
    return queued;
}

enum inf_job_place inf_scheduler_job_place(struct inf_scheduler *scheduler,
                                           const struct inf_job *job)
{
    return inf_device_queue_place(&scheduler->device_states[job->device_index].queue, job);
}

int inf_scheduler_done_fd(const struct inf_scheduler *scheduler)
{
    return inf_queue_fd(scheduler->done);
}

struct inf_job *inf_scheduler_next_done(struct inf_scheduler *scheduler)
{
    struct inf_job *job = inf_queue_try_pop(scheduler->done);
    if (job == NULL)
        return NULL;
    assert(scheduler->jobs > 0);
    job->place = INF_JOB_LOOP;
    scheduler->jobs--;
    inf_idle_gate_end_request(scheduler->idle_gate);
    remove_deadlines(scheduler, job);
    struct device_state *state = &scheduler->device_states[job->device_index];
    state->requests++;
    state->busy_ns += job->result.device_ns;
    scheduler->last_run_ns = job->result.done_ns - job->result.start_ns;
    return job;
}

int inf_scheduler_timer_fd(const struct inf_scheduler *scheduler)
{
    return inf_deadlines_fd(scheduler->deadlines);
}

struct inf_job *inf_scheduler_next_expired(struct inf_scheduler *scheduler)
{
    struct inf_deadline *passed;
    while ((passed = inf_deadlines_next(scheduler->deadlines)) != NULL) {
        if (passed == &scheduler->poll_timer) // this timer only wakes the loop; no job has expired
            continue;
        if (passed == &scheduler->watch_timer) {
            check_runs(scheduler);
            continue;
        }
        if (passed->kind == DEADLINE_END)
            return (struct inf_job *)((char *)passed - offsetof(struct inf_job, deadline));
        struct inf_job *job =
            (struct inf_job *)((char *)passed - offsetof(struct inf_job, queue_deadline));
        if (inf_device_queue_recall(&scheduler->device_states[job->device_index].queue, job))
            return job;
    }
    return NULL;
}

void inf_scheduler_set_limits(struct inf_scheduler *scheduler, uint32_t queue_requests_max,
                              uint64_t queue_bytes_max)
{
    const struct inf_device_queue_limits limits = {.requests_max = queue_requests_max,
                                                   .bytes_max = queue_bytes_max};
    scheduler->queue_requests_max = queue_requests_max;
    for (uint32_t i = 0; i < scheduler->device_count; i++)
        inf_device_queue_set_limits(&scheduler->device_states[i].queue, &limits);
}

struct inf_device_load inf_scheduler_device_load(struct inf_scheduler *scheduler, uint32_t index)
{
    struct device_state *state = &scheduler->device_states[index];
    return (struct inf_device_load){
        .queue_depth = inf_device_queue_count(&state->queue),
        .queue_limit = scheduler->queue_requests_max,
        .requests = state->requests,
        .busy_ns = state->busy_ns,
    };
}

uint32_t inf_scheduler_jobs(const struct inf_scheduler *scheduler)
{
    return scheduler->jobs;
}

uint64_t inf_scheduler_last_run_ns(const struct inf_scheduler *scheduler)
{
    return scheduler->last_run_ns;
}
