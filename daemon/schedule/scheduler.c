// SPDX-License-Identifier: Apache-2.0
#include "daemon/schedule/scheduler.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "backends/base/cores.h"
#include "backends/base/queue.h"
#include "daemon/schedule/device_queue.h"
#include "daemon/schedule/worker.h"

// Runs up to so long are looked for from their beginning on.
#define LOOK_THROUGH_NS (3 * INF_NS_PER_MS / 2)

// What the loop knows of one device.
struct station {
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
    uint32_t
        jobs_max; // submitted and not yet taken back: what `done` and `deadlines` have room for
    uint32_t jobs;
    bool patient;              // whether it may pay to look rather than to sleep
    bool looking;              // the loop does
    uint64_t last_run_ns;      // what the job took that was taken back last
    uint64_t look_from_ns;     // from when it may pay,
    uint64_t look_until_ns;    // by when all that was worth it is done
    struct inf_deadline alarm; // wakes the loop at look_from_ns
    uint32_t station_count;    // prepared so far
    struct station stations[INF_REGISTRY_DEVICES];
};

static enum inf_code start_workers(struct inf_scheduler *scheduler, struct station *station,
                                   const struct inf_scheduler_options *options,
                                   struct inf_error *err)
{
    uint32_t slots = station->queue.workers;
    station->workers = calloc(slots, sizeof *station->workers);
    if (station->workers == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u workers", slots);
    for (uint32_t i = 0; i < slots; i++) {
        struct inf_worker *worker = &station->workers[i];
        worker->queue = &station->queue;
        worker->done = scheduler->done;
        worker->pool = options->pool;
        worker->slot = i;
        INF_TRY(inf_worker_start(worker, err));
        station->worker_count++;
    }
    return INF_OK;
}

// Jobs that one device can have: a full lane and busy workers, and as many again that are done while
// the loop still reads.
static uint32_t station_jobs_max(const struct inf_scheduler_options *options, uint32_t index)
{
    return 2 * (INF_MAX(options->queue_requests_max, 1) +
                inf_device_info(options->devices->devices[index])->slots);
}

static enum inf_code fill(struct inf_scheduler *scheduler,
                          const struct inf_scheduler_options *options, struct inf_error *err)
{
    for (uint32_t i = 0; i < options->devices->count; i++)
        scheduler->jobs_max += station_jobs_max(options, i);
    INF_TRY(inf_queue_create(&scheduler->done, scheduler->jobs_max, true, err));
    INF_TRY(inf_deadlines_create(&scheduler->deadlines, 2 * scheduler->jobs_max + 1, err));
    scheduler->devices = options->devices;
    scheduler->idle_gate = options->idle_gate;
    scheduler->queue_requests_max = options->queue_requests_max;
    uint32_t cores = inf_cores_usable();
    scheduler->patient = cores > 1;
    for (uint32_t i = 0; i < options->devices->count; i++) {
        struct station *station = &scheduler->stations[scheduler->station_count++];
        const struct inf_device_queue_options queue = {
            .workers = inf_device_info(options->devices->devices[i])->slots,
            .jobs_max = station_jobs_max(options, i),
            .cores = cores,
            .limits = {.requests_max = options->queue_requests_max,
                       .bytes_max = options->queue_bytes_max}};
        INF_TRY(inf_device_queue_init(&station->queue, &queue, err));
        INF_TRY(start_workers(scheduler, station, options, err));
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
    enum inf_code code = fill(scheduler, options, err);
    if (code == INF_OK)
        *out_scheduler = scheduler;
    else
        inf_scheduler_destroy(&scheduler);
    return code;
}

void inf_scheduler_stop(struct inf_scheduler *scheduler)
{
    for (uint32_t i = 0; i < scheduler->station_count; i++)
        inf_device_queue_close(&scheduler->stations[i].queue);
    for (uint32_t i = 0; i < scheduler->station_count; i++)
        for (uint32_t k = 0; k < scheduler->stations[i].worker_count; k++)
            inf_worker_join(&scheduler->stations[i].workers[k]);
}

void inf_scheduler_destroy(struct inf_scheduler **scheduler)
{
    if (*scheduler == NULL)
        return;
    inf_scheduler_stop(*scheduler);
    for (uint32_t i = 0; i < (*scheduler)->station_count; i++) {
        free((*scheduler)->stations[i].workers);
        inf_device_queue_fini(&(*scheduler)->stations[i].queue);
    }
    inf_deadlines_destroy(&(*scheduler)->deadlines);
    inf_queue_destroy(&(*scheduler)->done);
    free(*scheduler);
    *scheduler = NULL;
}

// When to come again: once half of what waits is done.
static uint32_t retry_after_ms(uint64_t wait_ns)
{
    return (uint32_t)INF_MIN(INF_MAX(wait_ns / 2 / INF_NS_PER_MS, 1), 60000);
}

static enum inf_code refuse(struct inf_scheduler *scheduler, const struct inf_job *job,
                            enum inf_device_queue_verdict verdict, uint64_t wait_ns,
                            struct inf_fault *fault)
{
    const char *device = inf_device_info(job->device)->name;
    struct inf_device_queue *queue = &scheduler->stations[job->device_index].queue;
    fault->retry_after_ms = retry_after_ms(wait_ns);
    fault->phase = "queue";
    if (verdict == INF_DEVICE_QUEUE_LONG)
        return inf_fail_reason(&fault->err, INF_DEADLINE, INF_REASON_PREDICTED,
                               "device '%s': the time given for the queue, %" PRIu64
                               " us, would run out before the request is begun",
                               device, (job->queue_deadline.at_ns - job->accepted_ns) / 1000);
    if (verdict == INF_DEVICE_QUEUE_LATE)
        return inf_fail_reason(&fault->err, INF_DEADLINE, INF_REASON_PREDICTED,
                               "device '%s': the time given, %" PRIu64
                               " us, would run out before the request is done",
                               device, (job->deadline.at_ns - job->accepted_ns) / 1000);
    return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_QUEUE_FULL,
                           "device '%s': %u requests wait already", device,
                           inf_device_queue_count(queue));
}

// Which of a job's deadlines one is.
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

// Plans when the loop looks for a job that should be done after `wait_ns`, with all that is ahead of it.
// One that is alone is looked for about then: waking a processor that slept meanwhile would cost more
// than all else that the daemon does for it.
static void plan_look(struct inf_scheduler *scheduler, const struct inf_job *job, uint64_t wait_ns)
    INF_ATTR(requires_capability(inf_role_loop))
{
    uint64_t end_ns = job->accepted_ns + wait_ns;
    uint64_t margin_ns = INF_MIN(INF_MAX(wait_ns / 8, (uint64_t)INF_SPIN_WAIT_LEAST_NS),
                                 (uint64_t)INF_SPIN_WAIT_MOST_NS);
    inf_deadlines_remove(scheduler->deadlines, &scheduler->alarm);
    if (!scheduler->patient || job->expected.run_ns == 0)
        return;
    if (wait_ns <= INF_SPIN_WAIT_LEAST_NS) {
        scheduler->look_from_ns = job->accepted_ns;
        scheduler->look_until_ns = job->accepted_ns + INF_SPIN_WAIT_LEAST_NS;
    } else if (scheduler->jobs == 1) {
        scheduler->look_from_ns =
            wait_ns <= LOOK_THROUGH_NS ? job->accepted_ns : end_ns - margin_ns;
        scheduler->look_until_ns = end_ns + margin_ns;
        scheduler->alarm.at_ns = scheduler->look_from_ns;
        if (wait_ns > LOOK_THROUGH_NS)
            inf_deadlines_add(scheduler->deadlines, &scheduler->alarm);
    }
}

enum inf_code inf_scheduler_submit(struct inf_scheduler *scheduler, struct inf_job *job,
                                   struct inf_fault *fault)
{
    struct station *station = &scheduler->stations[job->device_index];
    uint64_t wait_ns = 0;
    enum inf_device_queue_verdict verdict = INF_DEVICE_QUEUE_FULL;
    if (scheduler->jobs < scheduler->jobs_max)
        verdict = inf_device_queue_push(&station->queue, job, &wait_ns);
    if (verdict != INF_DEVICE_QUEUE_TAKEN)
        return refuse(scheduler, job, verdict, wait_ns, fault);
    scheduler->jobs++;
    inf_idle_gate_stir(scheduler->idle_gate);
    add_deadlines(scheduler, job);
    plan_look(scheduler, job, wait_ns);
    return INF_OK;
}

uint64_t inf_scheduler_finish_ns(struct inf_scheduler *scheduler, uint32_t index,
                                 const struct inf_job *job, uint64_t run_ns)
{
    return inf_device_queue_finish_ns(&scheduler->stations[index].queue, job, run_ns);
}

bool inf_scheduler_poll(struct inf_scheduler *scheduler)
{
    bool look = false;
    if (scheduler->jobs > 0) {
        uint64_t now_ns = inf_clock_ns();
        look = now_ns >= scheduler->look_from_ns && now_ns < scheduler->look_until_ns;
    }
    if (look && !scheduler->looking)
        inf_queue_begin_looking(scheduler->done);
    bool late = !look && scheduler->looking && inf_queue_end_looking(scheduler->done);
    scheduler->looking = look;
    return look || late;
}

bool inf_scheduler_stop_polling(struct inf_scheduler *scheduler)
{
    scheduler->look_until_ns = 0;
    return inf_scheduler_poll(scheduler);
}

enum inf_code inf_scheduler_hold(struct inf_scheduler *scheduler, struct inf_job *job,
                                 struct inf_fault *fault)
{
    struct station *station = &scheduler->stations[job->device_index];
    if (scheduler->jobs >= scheduler->jobs_max ||
        inf_device_queue_hold(&station->queue, job) != INF_DEVICE_QUEUE_TAKEN)
        return refuse(scheduler, job, INF_DEVICE_QUEUE_FULL, 0, fault);
    scheduler->jobs++;
    inf_idle_gate_stir(scheduler->idle_gate);
    add_deadlines(scheduler, job);
    return INF_OK;
}

// Puts a job that never ran among those that are done.
static void post(struct inf_scheduler *scheduler, struct inf_job *job)
{
    job->result.start_ns = job->result.begin_ns = job->accepted_ns;
    job->result.end_ns = job->result.done_ns = job->accepted_ns;
    job->result.device_ns = 0;
    job->place = INF_JOB_WORKER;
    bool posted = inf_queue_push(scheduler->done, job);
    assert(posted && "the queue has room for every job there can be");
    (void)posted;
}

void inf_scheduler_resume(struct inf_scheduler *scheduler, struct inf_job *job)
{
    uint64_t wait_ns;
    enum inf_device_queue_verdict verdict =
        inf_device_queue_push(&scheduler->stations[job->device_index].queue, job, &wait_ns);
    if (verdict == INF_DEVICE_QUEUE_TAKEN)
        return;
    inf_fault_init(&job->result.fault);
    inf_fail_reason(&job->result.fault.err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                    "the daemon shuts down");
    post(scheduler, job);
}

void inf_scheduler_fail(struct inf_scheduler *scheduler, struct inf_job *job)
{
    inf_device_queue_drop(&scheduler->stations[job->device_index].queue, job);
    post(scheduler, job);
}

bool inf_scheduler_withdraw(struct inf_scheduler *scheduler, struct inf_job *job)
{
    struct inf_device_queue *queue = &scheduler->stations[job->device_index].queue;
    remove_deadlines(scheduler, job);
    bool queued = inf_device_queue_withdraw(queue, job);
    if (queued) {
        scheduler->jobs--;
        inf_idle_gate_settle(scheduler->idle_gate);
    }
    return queued;
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
    job->place = INF_JOB_LOOP;
    scheduler->jobs--;
    inf_idle_gate_settle(scheduler->idle_gate);
    remove_deadlines(scheduler, job);
    struct station *station = &scheduler->stations[job->device_index];
    station->requests++;
    station->busy_ns += job->result.device_ns;
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
        if (passed == &scheduler->alarm) // the loop is awake now, which is all it is for
            continue;
        if (passed->kind == DEADLINE_END)
            return (struct inf_job *)((char *)passed - offsetof(struct inf_job, deadline));
        struct inf_job *job =
            (struct inf_job *)((char *)passed - offsetof(struct inf_job, queue_deadline));
        if (inf_device_queue_recall(&scheduler->stations[job->device_index].queue, job))
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
    for (uint32_t i = 0; i < scheduler->station_count; i++)
        inf_device_queue_set_limits(&scheduler->stations[i].queue, &limits);
}

struct inf_device_load inf_scheduler_device_load(struct inf_scheduler *scheduler, uint32_t index)
{
    struct station *station = &scheduler->stations[index];
    return (struct inf_device_load){
        .queue_depth = inf_device_queue_count(&station->queue),
        .queue_limit = scheduler->queue_requests_max,
        .requests = station->requests,
        .busy_ns = station->busy_ns,
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

uint64_t inf_scheduler_longest_run_ns(struct inf_scheduler *scheduler)
{
    uint64_t now_ns = inf_clock_ns();
    uint64_t longest_ns = 0;
    for (uint32_t i = 0; i < scheduler->station_count; i++) {
        for (uint32_t k = 0; k < scheduler->stations[i].worker_count; k++) {
            struct inf_worker *worker = &scheduler->stations[i].workers[k];
            uint64_t since_ns = atomic_load_explicit(&worker->busy_since_ns, memory_order_relaxed);
            if (since_ns != 0 && since_ns < now_ns)
                longest_ns = INF_MAX(longest_ns, now_ns - since_ns);
        }
    }
    return longest_ns;
}
