// SPDX-License-Identifier: Apache-2.0
// The queue between the loop and the workers of one device.
//
// The problems: workers must start within microseconds of a push, but waking a sleeping thread
// takes tens of microseconds. Jobs must be refused early if they cannot meet their deadline, which
// requires an estimate of all the work ahead of them. Several small jobs should run as one batch.
//
// Spin before sleeping. At most one worker polls `pushes` for a short time before it sleeps, and
// only if recent waits were short (inf_spin_wait). `pushes` is read without the mutex, as a hint.
// The worker takes the mutex afterwards and checks the queue, so a stale value only costs time.
//
// Prefer the worker that ran last (idle_workers.c). Runs of low priority give way (low_runs.c).
//
// Estimate the start of a job. `ends_sum_ns` is the sum of the expected end times of all running
// jobs. Subtracting running * now gives their total remaining time, without a list. Adding the
// queued device time that goes first (inf_fair_queue_ahead_ns()) and dividing by the number of
// workers gives the expected wait, if no model has limits or reservations (wait_estimate.c). A job
// that a worker can start at once is always accepted, because it delays no other job and its run
// time improves the estimate.
//
//   remaining = max(0, ends_sum_ns - running * now)          wait = (ahead + remaining) / workers
//
// Batch the jobs that wait. A worker that takes a job also takes queued jobs of the same model, up
// to the best rung of the batch ladder, but leaves a share for idle workers (queue_batch.c). Before
// that, the worker may wait for more jobs (batch_wait.c).
//
// Held jobs (requests of a session that wait for an earlier one) count towards the limits but are
// not in the fair queue. A job changes its place only under the mutex: LOOP -> HELD -> QUEUE ->
// WORKER -> LOOP.
#include "daemon/schedule/queue/device_queue.h"

#include <assert.h>

#include "backends/base/clock.h"

// After this time a worker looks again for jobs that were held back, which may have become more
// urgent.
#define HELD_BACK_MS (INF_FAIR_QUEUE_AGING_MS / 8)

enum inf_code inf_device_queue_init(struct inf_device_queue *queue,
                                    const struct inf_device_queue_options *options,
                                    struct inf_error *err)
{
    struct inf_fair_queue *fair_queue = NULL;
    INF_TRY(inf_fair_queue_create(&fair_queue, options->jobs_max, err));
    *queue = (struct inf_device_queue){
        .workers = options->workers, .limits = options->limits, .fair_queue = fair_queue};
    queue->slot_share.slots = options->workers;
    enum inf_code code = inf_idle_workers_init(&queue->idle, options->workers, err);
    if (code != INF_OK) {
        inf_fair_queue_destroy(&queue->fair_queue);
        return code;
    }
    inf_spin_wait_init(&queue->spin_wait, options->cores);
    inf_low_runs_init(&queue->low_runs, options->workers);
    inf_mutex_init(&queue->mutex);
    return INF_OK;
}

void inf_device_queue_fini(struct inf_device_queue *queue)
{
    if (queue->fair_queue == NULL)
        return;
    inf_fair_queue_destroy(&queue->fair_queue);
    inf_idle_workers_fini(&queue->idle);
    inf_low_runs_fini(&queue->low_runs);
    inf_mutex_fini(&queue->mutex);
}

static bool may_begin(const void *context, uint64_t model, uint64_t now_ns)
{
    return inf_slot_share_may_begin(context, model, now_ns);
}

// Returns the job that should run next and whose model may start a run; NULL if there is none.
static struct inf_job *find_next_job(struct inf_device_queue *queue, uint64_t now_ns)
    INF_ATTR(requires_capability(queue->mutex))
{
    const struct inf_fair_queue_filter filter = {
        may_begin, &queue->slot_share, inf_low_runs_count_startable(&queue->low_runs) == 0};
    bool limited = queue->slot_share.count > 0 || filter.skips_low;
    return inf_queue_batch_find_job(
        inf_fair_queue_next(queue->fair_queue, limited ? &filter : NULL, now_ns));
}

// --- predicting how long a job waits ---

// Returns the total remaining time of the running jobs in nanoseconds, from their expected end
// times.
static uint64_t find_running_ns(const struct inf_device_queue *queue, uint64_t now_ns)
{
    uint64_t elapsed_ns = queue->running * now_ns;
    return queue->ends_sum_ns > elapsed_ns ? queue->ends_sum_ns - elapsed_ns : 0;
}

// Returns the work of the device from the point of view of a job that arrived now.
static struct inf_wait_work find_work(const struct inf_device_queue *queue,
                                      const struct inf_job *job, uint64_t now_ns)
{
    return (struct inf_wait_work){.queued = queue->count,
                                  .ahead_ns = inf_fair_queue_ahead_ns(queue->fair_queue,
                                                                      job->queue_entry.user,
                                                                      job->queue_entry.priority),
                                  .waiting_ns = inf_fair_queue_waiting_ns(queue->fair_queue),
                                  .running_ns = find_running_ns(queue, now_ns)};
}

// Returns true if a job that arrived now would start at once.
static bool starts_at_once(struct inf_device_queue *queue, const struct inf_job *job,
                           uint64_t now_ns) INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t model = job->queue_entry.model;
    if (inf_wait_estimate_starts_at_once(&queue->slot_share, model, queue->count, now_ns))
        return true;
    // Queued jobs that may not start leave the free slot to this one.
    return job->queue_entry.priority != INF_PRIORITY_LOW && queue->low_runs.low > 0 &&
           inf_slot_share_may_begin(&queue->slot_share, model, now_ns) &&
           find_next_job(queue, now_ns) == NULL;
}

// Returns the expected time until a job that arrived now would start, in nanoseconds.
static uint64_t find_ahead_ns(struct inf_device_queue *queue, const struct inf_job *job,
                              uint64_t now_ns) INF_ATTR(requires_capability(queue->mutex))
{
    if (starts_at_once(queue, job, now_ns))
        return 0;
    const struct inf_wait_work work = find_work(queue, job, now_ns);
    return inf_wait_estimate_start_ns(&queue->slot_share, job->queue_entry.model, &work, now_ns);
}

// Predicts whether a job that arrives now would start or end too late for one of its deadlines. A
// job that a worker can start at once is always accepted, because it delays no other job and its
// run time updates the estimate.
static enum inf_device_queue_verdict predict_verdict(struct inf_device_queue *queue,
                                                     const struct inf_job *job, uint64_t now_ns)
    INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t end_at_ns = job->expected.run_ns != 0 ? job->deadline.at_ns : 0;
    uint64_t begin_at_ns = job->queue_deadline.at_ns;
    if ((end_at_ns == 0 && begin_at_ns == 0) || starts_at_once(queue, job, now_ns))
        return INF_DEVICE_QUEUE_ACCEPTED;
    uint64_t begin_ns = now_ns + find_ahead_ns(queue, job, now_ns);
    if (begin_at_ns != 0 && begin_ns > begin_at_ns)
        return INF_DEVICE_QUEUE_LATE_START;
    return end_at_ns != 0 && begin_ns + job->expected.run_ns > end_at_ns
               ? INF_DEVICE_QUEUE_LATE_END
               : INF_DEVICE_QUEUE_ACCEPTED;
}

uint64_t inf_device_queue_finish_ns(struct inf_device_queue *queue, const struct inf_job *job,
                                    uint64_t run_ns)
{
    inf_mutex_lock(&queue->mutex);
    struct inf_estimate known = inf_estimates_find(&queue->estimates, job->estimate_key);
    uint64_t wait_ns = find_ahead_ns(queue, job, job->accepted_ns);
    inf_mutex_unlock(&queue->mutex);
    return INF_MAX(wait_ns + (known.run_ns != 0 ? known.run_ns : run_ns), 1u);
}

// --- pushing, batching and popping jobs ---

// Polls until `pushes` differs from `seen`, another thread needs this processor, or the time
// `end_ns` is reached. Returns true if `pushes` differs. Releases the mutex while polling.
static bool poll_pushes(struct inf_device_queue *queue, unsigned seen, uint64_t end_ns)
    INF_ATTR(requires_capability(queue->mutex))
{
    queue->polling = true;
    inf_mutex_unlock(&queue->mutex);
    // Relaxed memory order is enough: the value is only a hint to take the mutex, which orders the
    // data.
    while (atomic_load_explicit(&queue->pushes, memory_order_relaxed) == seen &&
           inf_clock_ns() < end_ns && inf_spin_wait_yield())
        ;
    inf_mutex_lock(&queue->mutex);
    queue->polling = false;
    return atomic_load_explicit(&queue->pushes, memory_order_relaxed) != seen;
}

// Returns true if the limits of the queue allow one more job of this size. An empty queue accepts a
// job of any size, because otherwise such a job could never run.
static bool has_room(const struct inf_device_queue *queue, const struct inf_job *job)
{
    return queue->count + queue->held == 0 ||
           (queue->count + queue->held < queue->limits.requests_max &&
            queue->bytes + queue->held_bytes + job->data_bytes <= queue->limits.bytes_max);
}

static void drop_held(struct inf_device_queue *queue, struct inf_job *job)
    INF_ATTR(requires_capability(queue->mutex))
{
    assert(job->place == INF_JOB_HELD && queue->held > 0);
    queue->held--;
    queue->held_bytes -= job->data_bytes;
    job->place = INF_JOB_LOOP;
}

enum inf_device_queue_verdict inf_device_queue_hold(struct inf_device_queue *queue,
                                                    struct inf_job *job)
{
    enum inf_device_queue_verdict verdict = INF_DEVICE_QUEUE_FULL;
    inf_mutex_lock(&queue->mutex);
    if (!queue->closed && has_room(queue, job)) {
        queue->held++;
        queue->held_bytes += job->data_bytes;
        job->place = INF_JOB_HELD;
        verdict = INF_DEVICE_QUEUE_ACCEPTED;
    }
    inf_mutex_unlock(&queue->mutex);
    return verdict;
}

void inf_device_queue_drop(struct inf_device_queue *queue, struct inf_job *job)
{
    inf_mutex_lock(&queue->mutex);
    drop_held(queue, job);
    inf_mutex_unlock(&queue->mutex);
}

static enum inf_device_queue_verdict try_push(struct inf_device_queue *queue, struct inf_job *job)
    INF_ATTR(requires_capability(queue->mutex))
{
    job->expected = inf_estimates_find(&queue->estimates, job->estimate_key);
    bool held = job->place == INF_JOB_HELD;
    if (held)
        drop_held(queue, job);
    if (queue->closed || (!held && !has_room(queue, job)))
        return INF_DEVICE_QUEUE_FULL;
    // The prediction needs the limits of the model.
    inf_slot_share_note(&queue->slot_share, job->queue_entry.model, &job->slot_limits,
                        job->accepted_ns);
    enum inf_device_queue_verdict verdict =
        held ? INF_DEVICE_QUEUE_ACCEPTED : predict_verdict(queue, job, job->accepted_ns);
    if (verdict != INF_DEVICE_QUEUE_ACCEPTED)
        return verdict;
    job->queue_entry.cost_ns =
        job->expected.run_ns != 0 ? job->expected.share_ns : queue->typical_ns;
    job->queue_entry.since_ns = job->accepted_ns;
    job->place = INF_JOB_QUEUE;
    job->ahead = queue->begun - queue->running;
    inf_fair_queue_add(queue->fair_queue, &job->queue_entry);
    inf_slot_share_add_waiting(&queue->slot_share, job->queue_entry.model,
                               job->queue_entry.cost_ns);
    queue->count++;
    queue->bytes += job->data_bytes;
    atomic_fetch_add_explicit(&queue->pushes, 1, memory_order_relaxed);
    return INF_DEVICE_QUEUE_ACCEPTED;
}

enum inf_device_queue_verdict inf_device_queue_push(struct inf_device_queue *queue,
                                                    struct inf_job *job, uint64_t *out_wait_ns)
{
    inf_mutex_lock(&queue->mutex);
    enum inf_device_queue_verdict verdict = try_push(queue, job);
    const struct inf_wait_work work = find_work(queue, job, job->accepted_ns);
    *out_wait_ns = inf_wait_estimate_drain_ns(&queue->slot_share, &work, job->accepted_ns);
    struct inf_sleeping_worker *worker =
        verdict == INF_DEVICE_QUEUE_ACCEPTED
            ? inf_idle_workers_choose(&queue->idle, queue->count, queue->polling)
            : NULL;
    inf_mutex_unlock(&queue->mutex);
    inf_sleeping_worker_wake(worker);
    return verdict;
}

bool inf_device_queue_check_hand_over(struct inf_device_queue *queue, uint64_t now_ns)
{
    enum inf_hand_over state = inf_idle_workers_check(&queue->idle, now_ns);
    if (state != INF_HAND_OVER_LATE)
        return state == INF_HAND_OVER_DUE;
    inf_mutex_lock(&queue->mutex);
    struct inf_sleeping_worker *worker = inf_idle_workers_replace(&queue->idle, queue->count);
    inf_mutex_unlock(&queue->mutex);
    inf_sleeping_worker_wake(worker);
    return false;
}

bool inf_device_queue_recall(struct inf_device_queue *queue, struct inf_job *job)
{
    inf_mutex_lock(&queue->mutex);
    bool queued = job->place != INF_JOB_WORKER;
    if (job->place == INF_JOB_HELD) {
        drop_held(queue, job);
    } else if (job->place == INF_JOB_QUEUE) {
        inf_fair_queue_remove(queue->fair_queue, &job->queue_entry);
        inf_slot_share_remove_waiting(&queue->slot_share, job->queue_entry.model,
                                      job->queue_entry.cost_ns);
        queue->count--;
        queue->bytes -= job->data_bytes;
        job->place = INF_JOB_LOOP;
        inf_idle_workers_note_queued(&queue->idle, queue->count);
    }
    inf_mutex_unlock(&queue->mutex);
    return queued;
}

bool inf_device_queue_withdraw(struct inf_device_queue *queue, struct inf_job *job)
{
    bool queued = inf_device_queue_recall(queue, job);
    // Relaxed memory order is enough, because `cancelled` is only a hint to stop early. The result
    // of the job reaches the loop through the lock of another queue.
    if (!queued)
        atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
    return queued;
}

enum inf_job_place inf_device_queue_place(struct inf_device_queue *queue, const struct inf_job *job)
{
    inf_mutex_lock(&queue->mutex);
    enum inf_job_place place = job->place;
    inf_mutex_unlock(&queue->mutex);
    return place;
}

static void begin_job(struct inf_device_queue *queue, struct inf_job *job, uint64_t now_ns)
    INF_ATTR(requires_capability(queue->mutex))
{
    inf_fair_queue_begin(queue->fair_queue, &job->queue_entry);
    inf_slot_share_remove_waiting(&queue->slot_share, job->queue_entry.model,
                                  job->queue_entry.cost_ns);
    queue->count--;
    queue->bytes -= job->data_bytes;
    job->place = INF_JOB_WORKER;
    job->expected_end_ns = now_ns + job->queue_entry.cost_ns;
    job->begun = ++queue->begun;
    job->shared = queue->running > 0;
    queue->running++;
    queue->ends_sum_ns += job->expected_end_ns;
    inf_slot_share_begin_job(&queue->slot_share, job->queue_entry.model, job->expected_end_ns);
}

// Counts the queued rows that may run together with the queued job `first` in *waiting. Returns
// false if jobs of other models are queued too, because waiting for more rows would delay them.
static bool count_waiting(struct inf_device_queue *queue, struct inf_job *first,
                          struct inf_batch_waiting *waiting)
    INF_ATTR(requires_capability(queue->mutex))
{
    return inf_queue_batch_count(queue->fair_queue, first, queue->batch_wait.end_ns, waiting) ==
           queue->count;
}

// Waits for more rows of the model of the next job, if that pays. The wait ends when there are
// enough rows, no row arrives for a while, or the time is up. Releases the mutex while waiting.
static void wait_for_rows(struct inf_device_queue *queue)
    INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t now_ns = inf_clock_ns();
    struct inf_job *first = find_next_job(queue, now_ns);
    struct inf_batch_waiting waiting;
    uint64_t rows = 0;
    // Do not wait if another worker sleeps, because that worker takes the jobs that arrive next.
    if (first == NULL || first->rows == 0 || queue->closed || queue->idle.asleep_count > 0 ||
        !count_waiting(queue, first, &waiting))
        return;
    uint64_t before = waiting.rows;
    uint64_t most_ns =
        inf_batch_wait_plan(&queue->batch_wait, &first->served->ladder, &waiting, now_ns, &rows);
    if (most_ns == 0)
        return;
    uint64_t end_ns = now_ns + most_ns;
    uint64_t stalls_ns = now_ns + INF_BATCH_WAIT_STALL_NS;
    while (waiting.rows < rows && now_ns < INF_MIN(end_ns, stalls_ns)) {
        unsigned seen = atomic_load_explicit(&queue->pushes, memory_order_relaxed);
        bool came = poll_pushes(queue, seen, INF_MIN(end_ns, stalls_ns));
        now_ns = inf_clock_ns();
        if (came)
            stalls_ns = now_ns + INF_BATCH_WAIT_STALL_NS;
        // Find the first job again, because other workers may have taken jobs meanwhile, and jobs
        // of other models may have arrived.
        first = find_next_job(queue, now_ns);
        if (first == NULL || first->rows == 0 || queue->closed ||
            !count_waiting(queue, first, &waiting))
            break;
    }
    inf_batch_wait_learn(&queue->batch_wait, waiting.rows > before);
}

// Returns how many idle workers may take further jobs like this one, besides the worker that starts
// a run of it.
static uint32_t count_idle(const struct inf_device_queue *queue, const struct inf_job *job,
                           uint64_t now_ns) INF_ATTR(requires_capability(queue->mutex))
{
    uint32_t runs =
        inf_slot_share_count_startable(&queue->slot_share, job->queue_entry.model, now_ns);
    if (inf_fair_queue_is_low(&job->queue_entry, now_ns))
        runs = INF_MIN(runs, inf_low_runs_count_startable(&queue->low_runs));
    return INF_MIN(queue->idle.asleep_count + queue->polling, INF_MAX(runs, 1u) - 1);
}

// Returns true if a run that starts now is expected to end after the job's deadline. If no other
// job is queued, returns false, because running the job delays no other job and updates the
// estimate.
static bool misses_deadline(const struct inf_device_queue *queue, const struct inf_job *job,
                            uint64_t now_ns)
{
    return job->deadline.at_ns != 0 && queue->count > 1 &&
           now_ns + job->expected.run_ns > job->deadline.at_ns;
}

static uint32_t take_jobs(struct inf_device_queue *queue,
                          struct inf_job *jobs[INF_QUEUE_BATCH_JOBS])
    INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t now_ns = inf_clock_ns();
    jobs[0] = find_next_job(queue, now_ns);
    if (jobs[0] == NULL)
        return 0;
    jobs[0]->skip_run = misses_deadline(queue, jobs[0], now_ns);
    uint32_t count = 1;
    if (jobs[0]->rows > 0 && !jobs[0]->skip_run)
        count = inf_queue_batch_gather(queue->fair_queue, count_idle(queue, jobs[0], now_ns), jobs);
    // The jobs of one batch do not wait for each other, so all of them use the same count.
    const uint64_t begun = queue->begun;
    for (uint32_t i = 0; i < count; i++) {
        jobs[i]->ahead = begun - jobs[i]->ahead;
        jobs[i]->behind_uid = queue->last_uid;
        jobs[i]->is_run = i == 0;
        begin_job(queue, jobs[i], now_ns);
    }
    queue->last_uid = (uint32_t)jobs[0]->queue_entry.user;
    inf_slot_share_begin(&queue->slot_share, jobs[0]->queue_entry.model);
    inf_low_runs_begin(&queue->low_runs, jobs, count, now_ns);
    return count;
}

// Waits until there is a job or the queue is closed.
static void wait_for_job(struct inf_device_queue *queue) INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t begin_ns = inf_clock_ns();
    unsigned seen = atomic_load_explicit(&queue->pushes, memory_order_relaxed);
    if (!queue->polling && inf_spin_wait_should_spin(&queue->spin_wait))
        (void)poll_pushes(queue, seen, begin_ns + queue->spin_wait.limit_ns);
    while (queue->count == 0 && !queue->closed)
        inf_idle_workers_sleep(&queue->idle, &queue->mutex);
    inf_spin_wait_note_wait(&queue->spin_wait, inf_clock_ns() - begin_ns);
}

uint32_t inf_device_queue_pop(struct inf_device_queue *queue,
                              struct inf_job *jobs[INF_QUEUE_BATCH_JOBS])
{
    inf_role_check_may_block();
    inf_mutex_lock(&queue->mutex);
    uint32_t count = 0;
    inf_idle_workers_arrive(&queue->idle);
    do {
        if (queue->count == 0 && !queue->closed)
            wait_for_job(queue);
        if (!queue->polling)
            wait_for_rows(queue);
        count = take_jobs(queue, jobs);
        // Jobs are queued, but limits of their models forbid to start them before a run ends.
        if (count == 0 && queue->count > 0 && !queue->closed) {
            queue->held_back = true;
            // Jobs become more urgent, and reservations end, without an event.
            inf_idle_workers_sleep_until(&queue->idle, &queue->mutex,
                                         inf_clock_ns() + HELD_BACK_MS * INF_NS_PER_MS);
        }
        // Another worker may have taken the jobs before this one woke up; then wait again.
    } while (count == 0 && !queue->closed);
    inf_idle_workers_note_queued(&queue->idle, queue->count);
    // A job that was held back may start now, and a worker that sleeps does not know that.
    bool pass_on = (queue->slot_share.count > 0 || queue->held_back) && queue->count > 0;
    queue->held_back = queue->held_back && queue->count > 0;
    struct inf_sleeping_worker *worker = pass_on ? inf_idle_workers_take(&queue->idle) : NULL;
    inf_mutex_unlock(&queue->mutex);
    inf_sleeping_worker_wake(worker);
    return count;
}

// Returns true if runs that pause must be resumed.
static bool finish_job(struct inf_device_queue *queue, struct inf_job *job)
    INF_ATTR(requires_capability(queue->mutex))
{
    bool resume = false;
    uint64_t device_ns = job->result.device_ns, paused_ns = job->result.paused_ns;
    uint64_t whole_ns = job->result.done_ns - job->result.start_ns;
    uint64_t run_ns = job->result.end_ns - job->result.begin_ns;
    whole_ns -= INF_MIN(paused_ns, whole_ns);
    run_ns -= INF_MIN(paused_ns, run_ns);
    assert(job->place == INF_JOB_WORKER && queue->running > 0);
    job->shared |= queue->begun != job->begun;
    queue->running--;
    queue->ends_sum_ns -= job->expected_end_ns;
    inf_slot_share_end_job(&queue->slot_share, job->queue_entry.model, job->expected_end_ns);
    if (job->is_run) {
        inf_slot_share_end(&queue->slot_share, job->queue_entry.model);
        resume = inf_low_runs_end(&queue->low_runs, job);
    }
    // Charge all cores that the run had, so that users get equal shares of the cores, whatever
    // number of threads their runs have.
    inf_fair_queue_end(queue->fair_queue, &job->queue_entry, job->result.core_ns);
    if (job->skip_run)
        return resume;
    queue->typical_ns += (uint64_t)(((int64_t)device_ns - (int64_t)queue->typical_ns) / 8);
    // Do not use every run time for the estimates. Time spent compiling is only charged to the
    // user, because the next run does not need it. A run that failed or was cancelled predicts
    // nothing about the next run.
    if (job->result.fault.err.code != INF_OK || run_ns == 0 || whole_ns == 0)
        return resume;
    const struct inf_estimate took = {
        .run_ns = run_ns,
        .share_ns = (uint64_t)((double)run_ns * (double)device_ns / (double)whole_ns)};
    inf_estimates_note(&queue->estimates, job->estimate_key, &took);
    return resume;
}

void inf_device_queue_finish(struct inf_device_queue *queue, struct inf_job *const *jobs,
                             uint32_t count)
{
    inf_mutex_lock(&queue->mutex);
    uint32_t rows = 0;
    bool resume = false;
    inf_idle_workers_return(&queue->idle);
    inf_spin_wait_note_work(&queue->spin_wait, jobs[0]->result.done_ns - jobs[0]->result.start_ns);
    for (uint32_t i = 0; i < count; i++) {
        rows += jobs[i]->rows;
        resume = finish_job(queue, jobs[i]) || resume;
    }
    if (rows > 0)
        inf_batch_wait_note(&queue->batch_wait, jobs[0]->queue_entry.model, rows,
                            jobs[0]->result.done_ns);
    inf_mutex_unlock(&queue->mutex);
    if (resume)
        inf_low_runs_resume(&queue->low_runs);
}

void inf_device_queue_set_limits(struct inf_device_queue *queue,
                                 const struct inf_device_queue_limits *limits)
{
    inf_mutex_lock(&queue->mutex);
    queue->limits = *limits;
    inf_mutex_unlock(&queue->mutex);
}

uint32_t inf_device_queue_count(struct inf_device_queue *queue)
{
    inf_mutex_lock(&queue->mutex);
    uint32_t count = queue->count;
    inf_mutex_unlock(&queue->mutex);
    return count;
}

void inf_device_queue_close(struct inf_device_queue *queue)
{
    inf_mutex_lock(&queue->mutex);
    queue->closed = true;
    atomic_fetch_add_explicit(&queue->pushes, 1, memory_order_relaxed);
    while (queue->idle.asleep_count > 0)
        inf_sleeping_worker_wake(inf_idle_workers_take(&queue->idle));
    inf_mutex_unlock(&queue->mutex);
}
