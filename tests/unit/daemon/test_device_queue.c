// SPDX-License-Identifier: Apache-2.0
// A device queue with the test as its loop and worker: which jobs the queue accepts, in which order
// it returns them, and which run times it learns.
#include "tests/unit/daemon/queue_case.h"

static bool withdraw_job(struct inf_job *job) INF_ATTR(no_thread_safety_analysis)
{
    return inf_device_queue_withdraw(&queue, job);
}

// Teaches the queue the run time of a model.
static void teach_run_time(uint64_t model, uint64_t took_ms)
{
    cr_assert_eq(push_job(make_job(model, 0)), INF_DEVICE_QUEUE_ACCEPTED);
    settle_job(pop_job(), took_ms);
}

Test(queue, is_bounded_in_requests_and_in_bytes)
{
    open_queue(1, 2, 100);
    struct inf_job *jobs[4];
    for (int i = 0; i < 4; i++)
        jobs[i] = make_job(1, 0);
    jobs[0]->data_bytes = 1000; // an empty queue accepts a job of any size
    jobs[1]->data_bytes = 60;
    jobs[2]->data_bytes = 50;
    cr_expect_eq(push_job(jobs[0]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(push_job(jobs[1]), INF_DEVICE_QUEUE_FULL);
    settle_job(pop_job(), 1);
    cr_expect_eq(push_job(jobs[1]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(push_job(jobs[2]), INF_DEVICE_QUEUE_FULL, "110 bytes");
    jobs[2]->data_bytes = 40;
    cr_expect_eq(push_job(jobs[2]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(push_job(jobs[3]), INF_DEVICE_QUEUE_FULL, "3 requests");
    cr_expect(withdraw_job(jobs[1]));
    cr_expect_eq(inf_device_queue_count(&queue), 1);
    cr_expect_eq(push_job(jobs[3]), INF_DEVICE_QUEUE_ACCEPTED);
    settle_job(pop_job(), 1);
    settle_job(pop_job(), 1);
    inf_device_queue_close(&queue);
    cr_expect_eq(push_job(jobs[1]), INF_DEVICE_QUEUE_FULL);
    cr_expect_null(pop_job());
    free(jobs[1]);
    inf_device_queue_fini(&queue);
}

Test(queue, refuses_jobs_that_would_be_late)
{
    open_queue(1, 32, 1000);
    teach_run_time(1, 1000);
    // While the worker is free, expect that every job is accepted.
    struct inf_job *running = make_job(1, 10);
    cr_expect_eq(push_job(running), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(pop_job(), running);
    // The expected end of a new job is one second for the running job, one for each queued job, and
    // one for its own run. Expect that a job is refused if this is after its deadline.
    struct inf_job *hopeless = make_job(1, 1500);
    cr_expect_eq(push_job(hopeless), INF_DEVICE_QUEUE_LATE_END);
    free(hopeless);
    struct inf_job *waiting[2] = {make_job(1, 2500), make_job(1, 3500)};
    cr_expect_eq(push_job(waiting[0]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(push_job(waiting[1]), INF_DEVICE_QUEUE_ACCEPTED);
    hopeless = make_job(1, 3500);
    cr_expect_eq(push_job(hopeless), INF_DEVICE_QUEUE_LATE_END);
    free(hopeless);
    // Expect that a job is also refused if it would start after its queue deadline.
    struct inf_job *impatient = make_job(1, 0);
    impatient->queue_deadline.at_ns = impatient->accepted_ns + 2500 * MS;
    cr_expect_eq(push_job(impatient), INF_DEVICE_QUEUE_LATE_START);
    impatient->queue_deadline.at_ns = impatient->accepted_ns + 3500 * MS;
    cr_expect_eq(push_job(impatient), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect(withdraw_job(impatient));
    cr_expect(withdraw_job(impatient), "it is the loop's already");
    free(impatient);
    // A more urgent job runs before the queued ones, so expect that it is accepted.
    struct inf_job *urgent = make_job(1, 2500);
    urgent->queue_entry.priority = INF_PRIORITY_HIGH;
    cr_expect_eq(push_job(urgent), INF_DEVICE_QUEUE_ACCEPTED);
    // A job without an estimate is accepted, because the queue cannot predict its end.
    struct inf_job *strange = make_job(2, 1);
    cr_expect_eq(push_job(strange), INF_DEVICE_QUEUE_ACCEPTED);
    settle_job(running, 1000);
    for (int i = 0; i < 4; i++)
        settle_job(pop_job(), 1000);
    inf_device_queue_fini(&queue);
}

Test(queue, estimates_the_time_of_queued_jobs)
{
    open_queue(2, 32, 1000);
    teach_run_time(1, 100);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(push_job(make_job(1, 0)), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(last_wait_ns, 200 * MS, "400 ms for two workers");
    for (int i = 0; i < 4; i++)
        settle_job(pop_job(), 100);
    inf_device_queue_fini(&queue);
}

Test(queue, pops_queued_jobs_of_one_model_together)
{
    open_queue(1, 32, 1000);
    struct inf_job *jobs[INF_QUEUE_BATCH_JOBS];
    struct inf_job *made[7];
    static const uint32_t rows[7] = {1, 1, 2, 1, 1, 7, 1};
    for (uint32_t i = 0; i < 7; i++) {
        made[i] = make_rows(i % 2, rows[i]);
        cr_assert_eq(push_job(made[i]), INF_DEVICE_QUEUE_ACCEPTED);
    }
    struct inf_job *other = make_job(2, 0); // a job of another model, which must run alone
    cr_assert_eq(push_job(other), INF_DEVICE_QUEUE_ACCEPTED);
    // Expect a batch of the three jobs of the first user, who is next; they have four rows.
    cr_expect_eq(take_all(jobs), 3);
    cr_expect_eq(jobs[0], made[0]);
    cr_expect_eq(jobs[1], made[2]);
    cr_expect_eq(jobs[2], made[4]);
    for (int i = 0; i < 3; i++)
        settle_job(jobs[i], 1);
    uint32_t taken = 0;
    bool alone = false;
    while (inf_device_queue_count(&queue) > 0) {
        uint32_t count = take_all(jobs);
        uint32_t all = 0;
        for (uint32_t i = 0; i < count; i++) {
            all += jobs[i]->rows;
            alone |= jobs[i] == other && count == 1;
            settle_job(jobs[i], 1);
        }
        cr_expect(all <= 4 || count == 1, "%u rows of %u jobs", all, count);
        taken += count;
    }
    cr_expect_eq(taken, 5);
    cr_expect(alone);
    inf_device_queue_fini(&queue);
}

// A worker thread that pops jobs until the queue is closed.
static void take_until_closed(void *context) INF_ATTR(no_thread_safety_analysis)
{
    uint32_t *taken = context;
    inf_role_enter_worker();
    struct inf_job *job;
    while ((job = pop_job()) != NULL) {
        settle_job(job, 1);
        ++*taken;
    }
}

Test(queue, loses_no_job_between_polling_and_sleeping_workers)
{
    struct inf_thread threads[2] = {{0}};
    uint32_t taken[2] = {0};
    uint32_t pushed = 0;
    open_queue(2, 32, 1000);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(inf_thread_start(&threads[i], "worker", take_until_closed, &taken[i], NULL),
                     INF_OK);
    // Vary the time between pushes around the spin limit, so that spinning ends sometimes with a
    // job and sometimes without.
    for (uint32_t i = 0; i < 2000; i++) {
        struct inf_job *job = make_job(1, 0);
        if (push_job(job) == INF_DEVICE_QUEUE_ACCEPTED)
            pushed++;
        else
            free(job);
        uint64_t until_ns = inf_clock_ns() + i % 16 * (INF_SPIN_WAIT_MIN_NS / 8);
        while (i % 16 != 0 && inf_clock_ns() < until_ns)
            ;
    }
    while (inf_device_queue_count(&queue) > 0)
        // If the queue misses a wake-up, a job stays queued and this loop does not end.
        inf_spin_wait_yield();
    inf_device_queue_close(&queue);
    for (int i = 0; i < 2; i++)
        inf_thread_join(&threads[i]);
    cr_expect_gt(pushed, 0);
    cr_expect_eq(taken[0] + taken[1], pushed);
    inf_device_queue_fini(&queue);
}

Test(queue, skips_jobs_that_would_end_too_late_if_others_wait)
{
    open_queue(1, 32, 1000);
    teach_run_time(1, 1000);
    struct inf_job *first = make_job(1, 0);
    struct inf_job *late = make_job(2, 100); // accepted, because its run time is not known
    struct inf_job *last = make_job(1, 0);
    late->queue_entry.model = 1;
    cr_expect_eq(push_job(first), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(push_job(late), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(push_job(last), INF_DEVICE_QUEUE_ACCEPTED);
    late->expected.run_ns = 1000 * MS; // imitates a run time that was learnt meanwhile
    cr_expect_eq(pop_job(), first);
    settle_job(first, 1000);
    cr_expect_eq(pop_job(), late);
    cr_expect(late->skip_run);
    late->result.start_ns = late->result.done_ns = inf_clock_ns();
    late->result.fault.err.code = INF_DEADLINE;
    finish_job(late);
    cr_expect_eq(pop_job(), last);
    cr_expect_not(last->skip_run, "no deadline");
    settle_job(last, 1000);
    struct inf_job *only = make_job(2, 100);
    cr_expect_eq(push_job(only), INF_DEVICE_QUEUE_ACCEPTED);
    only->expected.run_ns = 1000 * MS;
    cr_expect_eq(pop_job(), only);
    cr_expect_not(only->skip_run, "nothing else waits");
    settle_job(only, 1);
    inf_device_queue_fini(&queue);
}

Test(queue, learns_nothing_from_runs_that_failed)
{
    open_queue(1, 32, 1000);
    teach_run_time(1, 100);
    struct inf_job *failed = make_job(1, 0);
    cr_expect_eq(push_job(failed), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(pop_job(), failed);
    failed->result.start_ns = failed->result.begin_ns = inf_clock_ns();
    failed->result.done_ns = failed->result.end_ns = failed->result.start_ns + 1;
    failed->result.fault.err.code = INF_CANCELLED;
    finish_job(failed);
    struct inf_job *job = make_job(1, 0);
    cr_expect_eq(push_job(job), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(job->expected.run_ns, 100 * MS);
    settle_job(pop_job(), 1);
    inf_device_queue_fini(&queue);
}

static uint64_t finish_ns(const struct inf_job *job, uint64_t run_ns)
    INF_ATTR(no_thread_safety_analysis)
{
    return inf_device_queue_finish_ns(&queue, job, run_ns);
}

Test(queue, estimates_when_a_job_would_be_done)
{
    open_queue(1, 32, 1000);
    struct inf_job *asked = make_job(2, 0);
    cr_expect_eq(finish_ns(asked, 0), 1u);
    cr_expect_eq(finish_ns(asked, 7 * MS), 7 * MS, "it has no estimate, and no job waits");
    teach_run_time(1, 1000);
    teach_run_time(2, 50);
    cr_expect_eq(finish_ns(asked, 7 * MS), 50 * MS, "what it took counts more");
    struct inf_job *running = make_job(1, 0), *waiting = make_job(1, 0);
    cr_expect_eq(push_job(running), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(pop_job(), running);
    cr_expect_eq(push_job(waiting), INF_DEVICE_QUEUE_ACCEPTED);
    // The expected wait is one second for the running job, minus the time that has passed, and one
    // for the queued job.
    asked->accepted_ns = inf_clock_ns();
    cr_expect_leq(finish_ns(asked, 0), 2050 * MS);
    cr_expect_gt(finish_ns(asked, 0), 1550 * MS);
    settle_job(running, 1000);
    settle_job(pop_job(), 1000);
    cr_expect_eq(finish_ns(asked, 0), 50 * MS);
    free(asked);
    inf_device_queue_fini(&queue);
}

Test(queue, marks_jobs_that_ran_beside_others)
{
    open_queue(2, 8, 1 << 20);
    struct inf_job *jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = make_job(1, 0);
        jobs[i]->queue_entry.user = 1;
    }
    // The run of job 0 ends before job 1 begins. Jobs 1 and 2 overlap. Job 3 begins during the run
    // of job 2.
    cr_assert_eq(push_job(jobs[0]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_assert_eq(pop_job(), jobs[0]);
    finish_only(jobs[0]);
    cr_expect_not(jobs[0]->shared);
    for (int i = 1; i < 4; i++)
        cr_assert_eq(push_job(jobs[i]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_assert_eq(pop_job(), jobs[1]);
    cr_assert_eq(pop_job(), jobs[2]);
    finish_only(jobs[1]);
    cr_expect(jobs[1]->shared, "job 2 began during its run");
    cr_assert_eq(pop_job(), jobs[3]);
    finish_only(jobs[2]);
    finish_only(jobs[3]);
    cr_expect(jobs[2]->shared);
    cr_expect(jobs[3]->shared, "job 2 was in progress when it began");
    struct inf_job *last = make_job(1, 0);
    cr_assert_eq(push_job(last), INF_DEVICE_QUEUE_ACCEPTED);
    cr_assert_eq(pop_job(), last);
    finish_only(last);
    cr_expect_not(last->shared);
    free(last);
    for (int i = 0; i < 4; i++)
        free(jobs[i]);
    inf_device_queue_fini(&queue);
}

static struct inf_job *make_job_of(uint64_t user, uint64_t model)
{
    struct inf_job *job = make_job(model, 0);
    job->queue_entry.user = user;
    return job;
}

Test(queue, charges_every_core_that_a_run_had)
{
    open_queue(1, 32, 1000);
    // Two jobs of each user. The first user's run takes 10 ms on two cores, the other's 15 ms on
    // one core, so the other user has used less and is next.
    struct inf_job *jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = make_job_of(i % 2, 1);
        cr_assert_eq(push_job(jobs[i]), INF_DEVICE_QUEUE_ACCEPTED);
    }
    cr_assert_eq(pop_job(), jobs[0]);
    jobs[0]->result.device_ns = 10 * MS;
    jobs[0]->result.core_ns = 20 * MS;
    finish_job(jobs[0]);
    cr_assert_eq(pop_job(), jobs[1]);
    jobs[1]->result.device_ns = jobs[1]->result.core_ns = 15 * MS;
    finish_job(jobs[1]);
    cr_expect_eq(pop_job(), jobs[3]);
    settle_job(jobs[3], 15);
    cr_expect_eq(pop_job(), jobs[2]);
    settle_job(jobs[2], 1);
    inf_device_queue_fini(&queue);
}

Test(queue, pops_decoding_steps_of_one_key_together)
{
    open_queue(1, 32, 1000);
    struct inf_job *jobs[INF_QUEUE_BATCH_JOBS];
    struct inf_job *made[6];
    static const uint64_t keys[6] = {7, 9, 7, 0, 9, 7};
    for (uint32_t i = 0; i < 6; i++) {
        made[i] = make_rows(1, 1);
        made[i]->join_key = keys[i];
        cr_assert_eq(push_job(made[i]), INF_DEVICE_QUEUE_ACCEPTED);
    }
    uint32_t taken = 0, most = 0;
    while (inf_device_queue_count(&queue) > 0) {
        uint32_t count = take_all(jobs);
        const uint64_t key = jobs[0]->join_key; // the job is freed below
        for (uint32_t i = 0; i < count; i++) {
            cr_expect_eq(jobs[i]->join_key, key);
            settle_job(jobs[i], 1);
        }
        most = INF_MAX(most, count);
        taken += count;
    }
    cr_expect_geq(most, 2);
    cr_expect_eq(taken, 6);
    inf_device_queue_fini(&queue);
}
