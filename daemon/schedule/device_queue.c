// SPDX-License-Identifier: Apache-2.0
#include "daemon/schedule/device_queue.h"

#include <stddef.h>

#include "backends/base/clock.h"

enum inf_code inf_device_queue_init(struct inf_device_queue *queue,
                                    const struct inf_device_queue_options *options,
                                    struct inf_error *err)
{
    struct inf_fair_queue *fair_queue = NULL;
    INF_TRY(inf_fair_queue_create(&fair_queue, options->jobs_max, err));
    *queue = (struct inf_device_queue){
        .workers = options->workers, .limits = options->limits, .fair_queue = fair_queue};
    inf_spin_wait_init(&queue->spin_wait, options->cores);
    inf_mutex_init(&queue->mutex);
    inf_cond_init(&queue->filled);
    return INF_OK;
}

void inf_device_queue_fini(struct inf_device_queue *queue)
{
    if (queue->fair_queue == NULL)
        return;
    inf_fair_queue_destroy(&queue->fair_queue);
    inf_cond_fini(&queue->filled);
    inf_mutex_fini(&queue->mutex);
}

static struct inf_job *job_of(struct inf_fair_queue_entry *turn)
{
    return turn == NULL ? NULL : (struct inf_job *)((char *)turn - offsetof(struct inf_job, turn));
}

// --- what is expected ---

// How much longer the jobs under way will take, all together.
static uint64_t running_ns(const struct inf_device_queue *queue, uint64_t now_ns)
{
    uint64_t elapsed_ns = queue->running * now_ns;
    return queue->ends_sum_ns > elapsed_ns ? queue->ends_sum_ns - elapsed_ns : 0;
}

// How long it takes until a job that came now would be begun.
static uint64_t ahead_ns(const struct inf_device_queue *queue, const struct inf_job *job,
                         uint64_t now_ns)
{
    if (queue->count + queue->running < queue->workers)
        return 0;
    return (inf_fair_queue_ahead_ns(queue->fair_queue, job->turn.user, job->turn.priority) +
            running_ns(queue, now_ns)) /
           queue->workers;
}

// Whether a job that came now would be begun, or done, too late for one of its deadlines. One that a
// worker can begin at once is always let try: it takes nobody's place, and what it takes is news.
static enum inf_device_queue_verdict foresee(struct inf_device_queue *queue,
                                             const struct inf_job *job, uint64_t now_ns)
{
    uint64_t end_at_ns = job->expected.run_ns != 0 ? job->deadline.at_ns : 0;
    uint64_t begin_at_ns = job->queue_deadline.at_ns;
    if ((end_at_ns == 0 && begin_at_ns == 0) || queue->count + queue->running < queue->workers)
        return INF_DEVICE_QUEUE_TAKEN;
    uint64_t begin_ns = now_ns + ahead_ns(queue, job, now_ns);
    if (begin_at_ns != 0 && begin_ns > begin_at_ns)
        return INF_DEVICE_QUEUE_LONG;
    return end_at_ns != 0 && begin_ns + job->expected.run_ns > end_at_ns ? INF_DEVICE_QUEUE_LATE
                                                                         : INF_DEVICE_QUEUE_TAKEN;
}

uint64_t inf_device_queue_finish_ns(struct inf_device_queue *queue, const struct inf_job *job,
                                    uint64_t run_ns)
{
    inf_mutex_lock(&queue->mutex);
    struct inf_estimate known = inf_estimates_find(&queue->estimates, job->estimate_key);
    uint64_t wait_ns = ahead_ns(queue, job, job->accepted_ns);
    inf_mutex_unlock(&queue->mutex);
    return INF_MAX(wait_ns + (known.run_ns != 0 ? known.run_ns : run_ns), 1u);
}

// --- jobs ---

// Looks until something is pushed beyond the pushes that were seen, somebody else wants the processor,
// or `end_ns`; whether it was. The mutex is given up meanwhile.
static bool look(struct inf_device_queue *queue, unsigned seen, uint64_t end_ns)
    INF_ATTR(requires_capability(queue->mutex))
{
    queue->looking = true;
    inf_mutex_unlock(&queue->mutex);
    // Relaxed: a hint to take the mutex again, which orders what it guards.
    while (atomic_load_explicit(&queue->pushes, memory_order_relaxed) == seen &&
           inf_clock_ns() < end_ns && inf_spin_wait_breathe())
        ;
    inf_mutex_lock(&queue->mutex);
    queue->looking = false;
    return atomic_load_explicit(&queue->pushes, memory_order_relaxed) != seen;
}

// A lane that is empty takes a job of any size: else it could never run.
static bool fits(const struct inf_device_queue *queue, const struct inf_job *job)
{
    return queue->count + queue->held == 0 ||
           (queue->count + queue->held < queue->limits.requests_max &&
            queue->bytes + queue->held_bytes + job->data_bytes <= queue->limits.bytes_max);
}

static void drop_held(struct inf_device_queue *queue, struct inf_job *job)
    INF_ATTR(requires_capability(queue->mutex))
{
    queue->held--;
    queue->held_bytes -= job->data_bytes;
    job->place = INF_JOB_LOOP;
}

enum inf_device_queue_verdict inf_device_queue_hold(struct inf_device_queue *queue,
                                                    struct inf_job *job)
{
    enum inf_device_queue_verdict verdict = INF_DEVICE_QUEUE_FULL;
    inf_mutex_lock(&queue->mutex);
    if (!queue->closed && fits(queue, job)) {
        queue->held++;
        queue->held_bytes += job->data_bytes;
        job->place = INF_JOB_HELD;
        verdict = INF_DEVICE_QUEUE_TAKEN;
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
    if (queue->closed || (!held && !fits(queue, job)))
        return INF_DEVICE_QUEUE_FULL;
    enum inf_device_queue_verdict verdict =
        held ? INF_DEVICE_QUEUE_TAKEN : foresee(queue, job, job->accepted_ns);
    if (verdict != INF_DEVICE_QUEUE_TAKEN)
        return verdict;
    job->turn.cost_ns = job->expected.run_ns != 0 ? job->expected.share_ns : queue->typical_ns;
    job->turn.since_ns = job->accepted_ns;
    job->place = INF_JOB_QUEUE;
    inf_fair_queue_add(queue->fair_queue, &job->turn);
    queue->count++;
    queue->bytes += job->data_bytes;
    atomic_fetch_add_explicit(&queue->pushes, 1, memory_order_relaxed);
    return INF_DEVICE_QUEUE_TAKEN;
}

enum inf_device_queue_verdict inf_device_queue_push(struct inf_device_queue *queue,
                                                    struct inf_job *job, uint64_t *out_wait_ns)
{
    inf_mutex_lock(&queue->mutex);
    enum inf_device_queue_verdict verdict = try_push(queue, job);
    uint64_t busy_ns =
        inf_fair_queue_waiting_ns(queue->fair_queue) + running_ns(queue, job->accepted_ns);
    // One that looks takes a job by itself.
    bool wake =
        verdict == INF_DEVICE_QUEUE_TAKEN && queue->waiting > 0 && queue->count > queue->looking;
    inf_mutex_unlock(&queue->mutex);
    if (wake)
        inf_cond_signal(&queue->filled);
    *out_wait_ns = busy_ns / queue->workers;
    return verdict;
}

bool inf_device_queue_recall(struct inf_device_queue *queue, struct inf_job *job)
{
    inf_mutex_lock(&queue->mutex);
    bool queued = job->place != INF_JOB_WORKER;
    if (job->place == INF_JOB_HELD) {
        drop_held(queue, job);
    } else if (job->place == INF_JOB_QUEUE) {
        inf_fair_queue_remove(queue->fair_queue, &job->turn);
        queue->count--;
        queue->bytes -= job->data_bytes;
        job->place = INF_JOB_LOOP;
    }
    inf_mutex_unlock(&queue->mutex);
    return queued;
}

bool inf_device_queue_withdraw(struct inf_device_queue *queue, struct inf_job *job)
{
    bool queued = inf_device_queue_recall(queue, job);
    // Relaxed: a hint to stop early; the job's result reaches the loop through the queue's lock.
    if (!queued)
        atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
    return queued;
}

static void begin(struct inf_device_queue *queue, struct inf_job *job, uint64_t now_ns)
    INF_ATTR(requires_capability(queue->mutex))
{
    inf_fair_queue_begin(queue->fair_queue, &job->turn);
    queue->count--;
    queue->bytes -= job->data_bytes;
    job->place = INF_JOB_WORKER;
    job->expected_end_ns = now_ns + job->turn.cost_ns;
    queue->running++;
    queue->ends_sum_ns += job->expected_end_ns;
}

// The earlier of two times, where 0 is none.
static uint64_t earliest(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

// Sums up what waits beside `first`, which has rows. False where something else waits as well, which
// must not be held up.
static bool sum_up(struct inf_device_queue *queue, struct inf_job *first,
                   struct inf_batch_waiting *waiting) INF_ATTR(requires_capability(queue->mutex))
{
    struct inf_fair_queue_entry *turns[INF_DEVICE_QUEUE_JOBS];
    uint32_t found =
        inf_fair_queue_gather(queue->fair_queue, &first->turn, turns, INF_DEVICE_QUEUE_JOBS);
    *waiting = (struct inf_batch_waiting){.model = first->turn.model};
    for (uint32_t i = 0; i < found; i++) {
        const struct inf_job *job = job_of(turns[i]);
        waiting->rows += job->rows;
        if (job->accepted_ns >= queue->batch_wait.end_ns)
            waiting->fresh += job->rows;
        waiting->deadline_ns = earliest(waiting->deadline_ns, job->deadline.at_ns);
        waiting->deadline_ns = earliest(waiting->deadline_ns, job->queue_deadline.at_ns);
    }
    return found == queue->count;
}

// Waits for rows that are about to come, where that pays: until there are enough, none has come for a
// while, or time is up. The mutex is given up meanwhile.
static void wait_for_rows(struct inf_device_queue *queue)
    INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t now_ns = inf_clock_ns();
    struct inf_job *first = job_of(inf_fair_queue_next(queue->fair_queue, now_ns));
    struct inf_batch_waiting waiting;
    uint64_t rows = 0;
    // Where another worker sleeps, what comes next is its.
    if (first == NULL || first->rows == 0 || queue->closed || queue->waiting > 0 ||
        !sum_up(queue, first, &waiting))
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
        bool came = look(queue, seen, INF_MIN(end_ns, stalls_ns));
        now_ns = inf_clock_ns();
        if (came)
            stalls_ns = now_ns + INF_BATCH_WAIT_STALL_NS;
        // Others may have been taken, or have come, in the meantime.
        first = job_of(inf_fair_queue_next(queue->fair_queue, now_ns));
        if (first == NULL || first->rows == 0 || queue->closed || !sum_up(queue, first, &waiting))
            break;
    }
    inf_batch_wait_learn(&queue->batch_wait, waiting.rows > before);
}

// Fills jobs[1...] with what had best run together with jobs[0]; how many there are then. Where other
// workers have nothing to do, some is left for them.
static uint32_t gather(struct inf_device_queue *queue, struct inf_job *jobs[INF_DEVICE_QUEUE_JOBS])
    INF_ATTR(requires_capability(queue->mutex))
{
    const struct inf_batch_ladder *ladder = &jobs[0]->served->ladder;
    struct inf_fair_queue_entry *turns[INF_DEVICE_QUEUE_JOBS];
    uint32_t found =
        inf_fair_queue_gather(queue->fair_queue, &jobs[0]->turn, turns, INF_DEVICE_QUEUE_JOBS);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < found; i++)
        rows += job_of(turns[i])->rows;
    uint64_t idle = queue->waiting + queue->looking;
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
static bool hopeless(const struct inf_device_queue *queue, const struct inf_job *job,
                     uint64_t now_ns)
{
    return job->deadline.at_ns != 0 && queue->count > 1 &&
           now_ns + job->expected.run_ns > job->deadline.at_ns;
}

static uint32_t take_turn(struct inf_device_queue *queue,
                          struct inf_job *jobs[INF_DEVICE_QUEUE_JOBS])
    INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t now_ns = inf_clock_ns();
    jobs[0] = job_of(inf_fair_queue_next(queue->fair_queue, now_ns));
    if (jobs[0] == NULL)
        return 0;
    jobs[0]->given_up = hopeless(queue, jobs[0], now_ns);
    uint32_t count = jobs[0]->rows > 0 && !jobs[0]->given_up ? gather(queue, jobs) : 1;
    for (uint32_t i = 0; i < count; i++)
        begin(queue, jobs[i], now_ns);
    return count;
}

// Waits for a job, or for the lane's end.
static void wait_for_job(struct inf_device_queue *queue) INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t begin_ns = inf_clock_ns();
    unsigned seen = atomic_load_explicit(&queue->pushes, memory_order_relaxed);
    if (!queue->looking && inf_spin_wait_pays(&queue->spin_wait))
        (void)look(queue, seen, begin_ns + queue->spin_wait.limit_ns);
    while (queue->count == 0 && !queue->closed) {
        queue->waiting++;
        inf_cond_wait(&queue->filled, &queue->mutex);
        queue->waiting--;
    }
    inf_spin_wait_note(&queue->spin_wait, inf_clock_ns() - begin_ns);
}

uint32_t inf_device_queue_pop(struct inf_device_queue *queue,
                              struct inf_job *jobs[INF_DEVICE_QUEUE_JOBS])
{
    inf_role_check_may_block();
    inf_mutex_lock(&queue->mutex);
    uint32_t count = 0;
    do {
        if (queue->count == 0 && !queue->closed)
            wait_for_job(queue);
        if (!queue->looking)
            wait_for_rows(queue);
        count = take_turn(queue, jobs);
        // Another worker may have taken them meanwhile.
    } while (count == 0 && !queue->closed);
    inf_mutex_unlock(&queue->mutex);
    return count;
}

static void settle(struct inf_device_queue *queue, struct inf_job *job)
    INF_ATTR(requires_capability(queue->mutex))
{
    uint64_t device_ns = job->result.device_ns;
    uint64_t whole_ns = job->result.done_ns - job->result.start_ns;
    uint64_t run_ns = job->result.end_ns - job->result.begin_ns;
    queue->running--;
    queue->ends_sum_ns -= job->expected_end_ns;
    inf_fair_queue_end(queue->fair_queue, &job->turn, device_ns);
    if (job->given_up)
        return;
    queue->typical_ns += (uint64_t)(((int64_t)device_ns - (int64_t)queue->typical_ns) / 8);
    // What was compiled on the way is charged, but will not be needed again; a run that failed or was
    // cancelled says nothing about the next.
    if (job->result.fault.err.code != INF_OK || run_ns == 0 || whole_ns == 0)
        return;
    const struct inf_estimate took = {
        .run_ns = run_ns,
        .share_ns = (uint64_t)((double)run_ns * (double)device_ns / (double)whole_ns)};
    inf_estimates_note(&queue->estimates, job->estimate_key, &took);
}

void inf_device_queue_settle(struct inf_device_queue *queue, struct inf_job *const *jobs,
                             uint32_t count)
{
    inf_mutex_lock(&queue->mutex);
    uint32_t rows = 0;
    inf_spin_wait_worked(&queue->spin_wait, jobs[0]->result.done_ns - jobs[0]->result.start_ns);
    for (uint32_t i = 0; i < count; i++) {
        rows += jobs[i]->rows;
        settle(queue, jobs[i]);
    }
    if (rows > 0)
        inf_batch_wait_note(&queue->batch_wait, jobs[0]->turn.model, rows, jobs[0]->result.done_ns);
    inf_mutex_unlock(&queue->mutex);
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
    inf_mutex_unlock(&queue->mutex);
    inf_cond_broadcast(&queue->filled);
}
