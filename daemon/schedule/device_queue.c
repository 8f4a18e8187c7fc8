// SPDX-License-Identifier: Apache-2.0
#include "daemon/schedule/device_queue.h"

#include <stddef.h>

#include "backends/base/clock.h"

enum inf_code inf_lane_init(struct inf_lane *lane, const struct inf_lane_options *options,
                            struct inf_error *err)
{
    struct inf_fair *fair = NULL;
    INF_TRY(inf_fair_create(&fair, options->jobs_max, err));
    *lane = (struct inf_lane){.workers = options->workers, .limits = options->limits, .fair = fair};
    inf_patience_init(&lane->patience, options->cores);
    inf_mutex_init(&lane->mutex);
    inf_cond_init(&lane->filled);
    return INF_OK;
}

void inf_lane_fini(struct inf_lane *lane)
{
    if (lane->fair == NULL)
        return;
    inf_fair_destroy(&lane->fair);
    inf_cond_fini(&lane->filled);
    inf_mutex_fini(&lane->mutex);
}

static struct inf_job *job_of(struct inf_fair_entry *turn)
{
    return turn == NULL ? NULL : (struct inf_job *)((char *)turn - offsetof(struct inf_job, turn));
}

// --- what is expected ---

// How much longer the jobs under way will take, all together.
static uint64_t running_ns(const struct inf_lane *lane, uint64_t now_ns)
{
    uint64_t elapsed_ns = lane->running * now_ns;
    return lane->ends_sum_ns > elapsed_ns ? lane->ends_sum_ns - elapsed_ns : 0;
}

// How long it takes until a job that came now would be begun.
static uint64_t ahead_ns(const struct inf_lane *lane, const struct inf_job *job, uint64_t now_ns)
{
    if (lane->count + lane->running < lane->workers)
        return 0;
    return (inf_fair_ahead_ns(lane->fair, job->turn.user, job->turn.priority) +
            running_ns(lane, now_ns)) /
           lane->workers;
}

// Whether a job that came now would be begun, or done, too late for one of its deadlines. One that a
// worker can begin at once is always let try: it takes nobody's place, and what it takes is news.
static enum inf_lane_verdict foresee(struct inf_lane *lane, const struct inf_job *job,
                                     uint64_t now_ns)
{
    uint64_t end_at_ns = job->expected.run_ns != 0 ? job->deadline.at_ns : 0;
    uint64_t begin_at_ns = job->queue_deadline.at_ns;
    if ((end_at_ns == 0 && begin_at_ns == 0) || lane->count + lane->running < lane->workers)
        return INF_LANE_TAKEN;
    uint64_t begin_ns = now_ns + ahead_ns(lane, job, now_ns);
    if (begin_at_ns != 0 && begin_ns > begin_at_ns)
        return INF_LANE_LONG;
    return end_at_ns != 0 && begin_ns + job->expected.run_ns > end_at_ns ? INF_LANE_LATE
                                                                         : INF_LANE_TAKEN;
}

uint64_t inf_lane_finish_ns(struct inf_lane *lane, const struct inf_job *job, uint64_t run_ns)
{
    inf_mutex_lock(&lane->mutex);
    struct inf_estimate known = inf_estimates_find(&lane->estimates, job->estimate_key);
    uint64_t wait_ns = ahead_ns(lane, job, job->accepted_ns);
    inf_mutex_unlock(&lane->mutex);
    return INF_MAX(wait_ns + (known.run_ns != 0 ? known.run_ns : run_ns), 1u);
}

// --- jobs ---

// Looks until something is pushed beyond the pushes that were seen, somebody else wants the processor,
// or `end_ns`; whether it was. The mutex is given up meanwhile.
static bool look(struct inf_lane *lane, unsigned seen, uint64_t end_ns)
    INF_ATTR(requires_capability(lane->mutex))
{
    lane->looking = true;
    inf_mutex_unlock(&lane->mutex);
    // Relaxed: a hint to take the mutex again, which orders what it guards.
    while (atomic_load_explicit(&lane->pushes, memory_order_relaxed) == seen &&
           inf_clock_ns() < end_ns && inf_patience_breathe())
        ;
    inf_mutex_lock(&lane->mutex);
    lane->looking = false;
    return atomic_load_explicit(&lane->pushes, memory_order_relaxed) != seen;
}

// A lane that is empty takes a job of any size: else it could never run.
static bool fits(const struct inf_lane *lane, const struct inf_job *job)
{
    return lane->count + lane->held == 0 ||
           (lane->count + lane->held < lane->limits.requests_max &&
            lane->bytes + lane->held_bytes + job->data_bytes <= lane->limits.bytes_max);
}

static void drop_held(struct inf_lane *lane, struct inf_job *job)
    INF_ATTR(requires_capability(lane->mutex))
{
    lane->held--;
    lane->held_bytes -= job->data_bytes;
    job->place = INF_JOB_LOOP;
}

enum inf_lane_verdict inf_lane_hold(struct inf_lane *lane, struct inf_job *job)
{
    enum inf_lane_verdict verdict = INF_LANE_FULL;
    inf_mutex_lock(&lane->mutex);
    if (!lane->closed && fits(lane, job)) {
        lane->held++;
        lane->held_bytes += job->data_bytes;
        job->place = INF_JOB_HELD;
        verdict = INF_LANE_TAKEN;
    }
    inf_mutex_unlock(&lane->mutex);
    return verdict;
}

void inf_lane_drop(struct inf_lane *lane, struct inf_job *job)
{
    inf_mutex_lock(&lane->mutex);
    drop_held(lane, job);
    inf_mutex_unlock(&lane->mutex);
}

static enum inf_lane_verdict try_push(struct inf_lane *lane, struct inf_job *job)
    INF_ATTR(requires_capability(lane->mutex))
{
    job->expected = inf_estimates_find(&lane->estimates, job->estimate_key);
    bool held = job->place == INF_JOB_HELD;
    if (held)
        drop_held(lane, job);
    if (lane->closed || (!held && !fits(lane, job)))
        return INF_LANE_FULL;
    enum inf_lane_verdict verdict = held ? INF_LANE_TAKEN : foresee(lane, job, job->accepted_ns);
    if (verdict != INF_LANE_TAKEN)
        return verdict;
    job->turn.cost_ns = job->expected.run_ns != 0 ? job->expected.share_ns : lane->typical_ns;
    job->turn.since_ns = job->accepted_ns;
    job->place = INF_JOB_QUEUE;
    inf_fair_add(lane->fair, &job->turn);
    lane->count++;
    lane->bytes += job->data_bytes;
    atomic_fetch_add_explicit(&lane->pushes, 1, memory_order_relaxed);
    return INF_LANE_TAKEN;
}

enum inf_lane_verdict inf_lane_push(struct inf_lane *lane, struct inf_job *job,
                                    uint64_t *out_wait_ns)
{
    inf_mutex_lock(&lane->mutex);
    enum inf_lane_verdict verdict = try_push(lane, job);
    uint64_t busy_ns = inf_fair_waiting_ns(lane->fair) + running_ns(lane, job->accepted_ns);
    // One that looks takes a job by itself.
    bool wake = verdict == INF_LANE_TAKEN && lane->waiting > 0 && lane->count > lane->looking;
    inf_mutex_unlock(&lane->mutex);
    if (wake)
        inf_cond_signal(&lane->filled);
    *out_wait_ns = busy_ns / lane->workers;
    return verdict;
}

bool inf_lane_recall(struct inf_lane *lane, struct inf_job *job)
{
    inf_mutex_lock(&lane->mutex);
    bool queued = job->place != INF_JOB_WORKER;
    if (job->place == INF_JOB_HELD) {
        drop_held(lane, job);
    } else if (job->place == INF_JOB_QUEUE) {
        inf_fair_remove(lane->fair, &job->turn);
        lane->count--;
        lane->bytes -= job->data_bytes;
        job->place = INF_JOB_LOOP;
    }
    inf_mutex_unlock(&lane->mutex);
    return queued;
}

bool inf_lane_withdraw(struct inf_lane *lane, struct inf_job *job)
{
    bool queued = inf_lane_recall(lane, job);
    // Relaxed: a hint to stop early; the job's result reaches the loop through the queue's lock.
    if (!queued)
        atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
    return queued;
}

static void begin(struct inf_lane *lane, struct inf_job *job, uint64_t now_ns)
    INF_ATTR(requires_capability(lane->mutex))
{
    inf_fair_begin(lane->fair, &job->turn);
    lane->count--;
    lane->bytes -= job->data_bytes;
    job->place = INF_JOB_WORKER;
    job->expected_end_ns = now_ns + job->turn.cost_ns;
    lane->running++;
    lane->ends_sum_ns += job->expected_end_ns;
}

// The earlier of two times, where 0 is none.
static uint64_t earliest(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

// Sums up what waits beside `first`, which has rows. False where something else waits as well, which
// must not be held up.
static bool sum_up(struct inf_lane *lane, struct inf_job *first, struct inf_batch_waiting *waiting)
    INF_ATTR(requires_capability(lane->mutex))
{
    struct inf_fair_entry *turns[INF_LANE_JOBS];
    uint32_t found = inf_fair_gather(lane->fair, &first->turn, turns, INF_LANE_JOBS);
    *waiting = (struct inf_batch_waiting){.model = first->turn.model};
    for (uint32_t i = 0; i < found; i++) {
        const struct inf_job *job = job_of(turns[i]);
        waiting->rows += job->rows;
        if (job->accepted_ns >= lane->batch_wait.end_ns)
            waiting->fresh += job->rows;
        waiting->deadline_ns = earliest(waiting->deadline_ns, job->deadline.at_ns);
        waiting->deadline_ns = earliest(waiting->deadline_ns, job->queue_deadline.at_ns);
    }
    return found == lane->count;
}

// Waits for rows that are about to come, where that pays: until there are enough, none has come for a
// while, or time is up. The mutex is given up meanwhile.
static void wait_for_rows(struct inf_lane *lane) INF_ATTR(requires_capability(lane->mutex))
{
    uint64_t now_ns = inf_clock_ns();
    struct inf_job *first = job_of(inf_fair_next(lane->fair, now_ns));
    struct inf_batch_waiting waiting;
    uint64_t rows = 0;
    // Where another worker sleeps, what comes next is its.
    if (first == NULL || first->rows == 0 || lane->closed || lane->waiting > 0 ||
        !sum_up(lane, first, &waiting))
        return;
    uint64_t before = waiting.rows;
    uint64_t most_ns =
        inf_batch_wait_plan(&lane->batch_wait, &first->served->ladder, &waiting, now_ns, &rows);
    if (most_ns == 0)
        return;
    uint64_t end_ns = now_ns + most_ns;
    uint64_t stalls_ns = now_ns + INF_BATCH_WAIT_STALL_NS;
    while (waiting.rows < rows && now_ns < INF_MIN(end_ns, stalls_ns)) {
        unsigned seen = atomic_load_explicit(&lane->pushes, memory_order_relaxed);
        bool came = look(lane, seen, INF_MIN(end_ns, stalls_ns));
        now_ns = inf_clock_ns();
        if (came)
            stalls_ns = now_ns + INF_BATCH_WAIT_STALL_NS;
        // Others may have been taken, or have come, in the meantime.
        first = job_of(inf_fair_next(lane->fair, now_ns));
        if (first == NULL || first->rows == 0 || lane->closed || !sum_up(lane, first, &waiting))
            break;
    }
    inf_batch_wait_learn(&lane->batch_wait, waiting.rows > before);
}

// Fills jobs[1...] with what had best run together with jobs[0]; how many there are then. Where other
// workers have nothing to do, some is left for them.
static uint32_t gather(struct inf_lane *lane, struct inf_job *jobs[INF_LANE_JOBS])
    INF_ATTR(requires_capability(lane->mutex))
{
    const struct inf_batch_ladder *ladder = &jobs[0]->served->ladder;
    struct inf_fair_entry *turns[INF_LANE_JOBS];
    uint32_t found = inf_fair_gather(lane->fair, &jobs[0]->turn, turns, INF_LANE_JOBS);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < found; i++)
        rows += job_of(turns[i])->rows;
    uint64_t idle = lane->waiting + lane->looking;
    uint64_t share = (rows + idle) / (idle + 1);
    uint64_t room = inf_batch_choose(ladder, INF_MAX(share, jobs[0]->rows)).rows;
    uint32_t count = 1;
    uint64_t taken = jobs[0]->rows;
    for (uint32_t i = 1; i < found && taken < room; i++) {
        struct inf_job *job = job_of(turns[i]);
        if (job->rows == 0 || taken + job->rows > room)
            continue;
        taken += job->rows;
        job->given_up = false;
        jobs[count++] = job;
    }
    return count;
}

// Whether a run begun now would end too late for the job, as far as is known. Where nothing else waits
// it may try: the time is nobody's else, and what it takes is news.
static bool hopeless(const struct inf_lane *lane, const struct inf_job *job, uint64_t now_ns)
{
    return job->deadline.at_ns != 0 && lane->count > 1 &&
           now_ns + job->expected.run_ns > job->deadline.at_ns;
}

static uint32_t take_turn(struct inf_lane *lane, struct inf_job *jobs[INF_LANE_JOBS])
    INF_ATTR(requires_capability(lane->mutex))
{
    uint64_t now_ns = inf_clock_ns();
    jobs[0] = job_of(inf_fair_next(lane->fair, now_ns));
    if (jobs[0] == NULL)
        return 0;
    jobs[0]->given_up = hopeless(lane, jobs[0], now_ns);
    uint32_t count = jobs[0]->rows > 0 && !jobs[0]->given_up ? gather(lane, jobs) : 1;
    for (uint32_t i = 0; i < count; i++)
        begin(lane, jobs[i], now_ns);
    return count;
}

// Waits for a job, or for the lane's end.
static void wait_for_job(struct inf_lane *lane) INF_ATTR(requires_capability(lane->mutex))
{
    uint64_t begin_ns = inf_clock_ns();
    unsigned seen = atomic_load_explicit(&lane->pushes, memory_order_relaxed);
    if (!lane->looking && inf_patience_pays(&lane->patience))
        (void)look(lane, seen, begin_ns + lane->patience.limit_ns);
    while (lane->count == 0 && !lane->closed) {
        lane->waiting++;
        inf_cond_wait(&lane->filled, &lane->mutex);
        lane->waiting--;
    }
    inf_patience_note(&lane->patience, inf_clock_ns() - begin_ns);
}

uint32_t inf_lane_pop(struct inf_lane *lane, struct inf_job *jobs[INF_LANE_JOBS])
{
    inf_role_check_may_block();
    inf_mutex_lock(&lane->mutex);
    uint32_t count = 0;
    do {
        if (lane->count == 0 && !lane->closed)
            wait_for_job(lane);
        if (!lane->looking)
            wait_for_rows(lane);
        count = take_turn(lane, jobs);
        // Another worker may have taken them meanwhile.
    } while (count == 0 && !lane->closed);
    inf_mutex_unlock(&lane->mutex);
    return count;
}

static void settle(struct inf_lane *lane, struct inf_job *job)
    INF_ATTR(requires_capability(lane->mutex))
{
    uint64_t device_ns = job->result.device_ns;
    uint64_t whole_ns = job->result.done_ns - job->result.start_ns;
    uint64_t run_ns = job->result.end_ns - job->result.begin_ns;
    lane->running--;
    lane->ends_sum_ns -= job->expected_end_ns;
    inf_fair_end(lane->fair, &job->turn, device_ns);
    if (job->given_up)
        return;
    lane->typical_ns += (uint64_t)(((int64_t)device_ns - (int64_t)lane->typical_ns) / 8);
    // What was compiled on the way is charged, but will not be needed again; a run that failed or was
    // cancelled says nothing about the next.
    if (job->result.fault.err.code != INF_OK || run_ns == 0 || whole_ns == 0)
        return;
    const struct inf_estimate took = {
        .run_ns = run_ns,
        .share_ns = (uint64_t)((double)run_ns * (double)device_ns / (double)whole_ns)};
    inf_estimates_note(&lane->estimates, job->estimate_key, &took);
}

void inf_lane_settle(struct inf_lane *lane, struct inf_job *const *jobs, uint32_t count)
{
    inf_mutex_lock(&lane->mutex);
    uint32_t rows = 0;
    inf_patience_worked(&lane->patience, jobs[0]->result.done_ns - jobs[0]->result.start_ns);
    for (uint32_t i = 0; i < count; i++) {
        rows += jobs[i]->rows;
        settle(lane, jobs[i]);
    }
    if (rows > 0)
        inf_batch_wait_note(&lane->batch_wait, jobs[0]->turn.model, rows, jobs[0]->result.done_ns);
    inf_mutex_unlock(&lane->mutex);
}

void inf_lane_set_limits(struct inf_lane *lane, const struct inf_lane_limits *limits)
{
    inf_mutex_lock(&lane->mutex);
    lane->limits = *limits;
    inf_mutex_unlock(&lane->mutex);
}

uint32_t inf_lane_count(struct inf_lane *lane)
{
    inf_mutex_lock(&lane->mutex);
    uint32_t count = lane->count;
    inf_mutex_unlock(&lane->mutex);
    return count;
}

void inf_lane_close(struct inf_lane *lane)
{
    inf_mutex_lock(&lane->mutex);
    lane->closed = true;
    atomic_fetch_add_explicit(&lane->pushes, 1, memory_order_relaxed);
    inf_mutex_unlock(&lane->mutex);
    inf_cond_broadcast(&lane->filled);
}
