// SPDX-License-Identifier: Apache-2.0
// A device queue with several workers: how many of them run a model at once, and which one takes a
// job or is woken for it.
#include "tests/unit/daemon/queue_case.h"

Test(queue_workers, runs_no_more_jobs_of_a_model_than_its_limit)
{
    open_queue(3, 32, 1000);
    struct inf_job *limited[3];
    for (int i = 0; i < 3; i++) {
        limited[i] = make_job(1, 0);
        limited[i]->slot_limits.runs_max = 2;
        cr_assert_eq(push_job(limited[i]), INF_DEVICE_QUEUE_ACCEPTED);
    }
    struct inf_job *other = make_job(2, 0);
    cr_assert_eq(push_job(other), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(pop_job(), limited[0]);
    cr_expect_eq(pop_job(), limited[1]);
    cr_expect_eq(pop_job(), other, "it overtakes the third run of the other model");
    settle_job(limited[0], 1);
    cr_expect_eq(pop_job(), limited[2]);
    settle_job(limited[1], 1);
    settle_job(limited[2], 1);
    settle_job(other, 1);
    cr_expect_eq(queue.slot_share.running, 0u);
    inf_device_queue_fini(&queue);
}

static bool recall_job(struct inf_job *job) INF_ATTR(no_thread_safety_analysis)
{
    return inf_device_queue_recall(&queue, job);
}

// Pushes and takes a job of a model with a limit of one run.
static struct inf_job *start_limited(void)
{
    struct inf_job *job = make_job(1, 0);
    job->slot_limits.runs_max = 1;
    cr_assert_eq(push_job(job), INF_DEVICE_QUEUE_ACCEPTED);
    cr_assert_eq(pop_job(), job);
    return job;
}

Test(queue_workers, predicts_waits_by_the_limits_of_the_models)
{
    open_queue(2, 32, 1000);
    settle_job(start_limited(), 1000);
    struct inf_job *running = start_limited();
    // The other slot is of no use to this model: its next job ends after 2000 ms.
    struct inf_job *late = make_job(1, 1800), *queued[3], *other = make_job(2, 100);
    late->slot_limits.runs_max = 1;
    cr_expect_eq(push_job(late), INF_DEVICE_QUEUE_LATE_END);
    free(late);
    for (int i = 0; i < 3; i++) {
        queued[i] = make_job(1, 0);
        queued[i]->slot_limits.runs_max = 1;
        cr_assert_eq(push_job(queued[i]), INF_DEVICE_QUEUE_ACCEPTED);
        // One run after the other, until the last of them is done.
        cr_expect(last_wait_ns > (uint64_t)(i + 1) * 1000 * MS, "%llu ns",
                  (unsigned long long)last_wait_ns);
    }
    // The waiting jobs leave the other slot to other models, so this job starts at once.
    other->queue_deadline.at_ns = other->accepted_ns + 1;
    cr_expect_eq(push_job(other), INF_DEVICE_QUEUE_ACCEPTED);
    cr_assert_eq(pop_job(), other);
    // A job that was withdrawn is no longer ahead.
    cr_assert(recall_job(queued[2]));
    late = make_job(1, 3500);
    late->slot_limits.runs_max = 1;
    cr_expect_eq(push_job(late), INF_DEVICE_QUEUE_LATE_END, "it would end after 4000 ms");
    free(late);
    cr_assert(recall_job(queued[1]));
    late = make_job(1, 3500);
    late->slot_limits.runs_max = 1;
    cr_expect_eq(push_job(late), INF_DEVICE_QUEUE_ACCEPTED);
    settle_job(running, 1000);
    settle_job(other, 1);
    settle_job(pop_job(), 1000);
    settle_job(pop_job(), 1000);
    cr_expect_eq(queue.slot_share.models[0].jobs.waiting, 0u);
    cr_expect_eq(queue.slot_share.models[0].jobs.running, 0u);
    free(queued[1]);
    free(queued[2]);
    inf_device_queue_fini(&queue);
}

static void take_one(void *context) INF_ATTR(no_thread_safety_analysis)
{
    inf_role_enter_worker();
    *(struct inf_job **)context = pop_job();
}

// Waits until `wanted` workers sleep in the queue.
static void wait_for_sleepers(uint32_t wanted) INF_ATTR(no_thread_safety_analysis)
{
    uint32_t sleepers = UINT32_MAX;
    while (sleepers != wanted) {
        inf_spin_wait_yield();
        inf_mutex_lock(&queue.mutex);
        sleepers = queue.idle.asleep_count;
        inf_mutex_unlock(&queue.mutex);
    }
}

// Ends all reservations, as if they had not been used for a long time.
static void end_reservations(void) INF_ATTR(no_thread_safety_analysis)
{
    inf_mutex_lock(&queue.mutex);
    for (uint32_t i = 0; i < queue.slot_share.count; i++)
        queue.slot_share.models[i].limits.reserved = 0;
    inf_mutex_unlock(&queue.mutex);
}

Test(queue_workers, keeps_reserved_slots_free_and_wakes_workers_when_they_may_go_on)
{
    open_queue(2, 32, 1000);
    struct inf_thread thread = {0};
    struct inf_job *prompt = make_job(1, 0), *others[4], *taken = NULL;
    prompt->slot_limits.reserved = 1;
    cr_assert_eq(push_job(prompt), INF_DEVICE_QUEUE_ACCEPTED);
    settle_job(pop_job(), 1);
    for (int i = 0; i < 4; i++) {
        others[i] = make_job(2, 0);
        cr_assert_eq(push_job(others[i]), INF_DEVICE_QUEUE_ACCEPTED);
    }
    // One of two slots is reserved, so a second worker waits although jobs are queued.
    cr_expect_eq(pop_job(), others[0]);
    cr_assert_eq(inf_thread_start(&thread, "worker", take_one, &taken, NULL), INF_OK);
    wait_for_sleepers(1);
    // The model with the reservation gets the slot at once.
    prompt = make_job(1, 0);
    prompt->slot_limits.reserved = 1;
    cr_assert_eq(push_job(prompt), INF_DEVICE_QUEUE_ACCEPTED);
    inf_thread_join(&thread);
    cr_expect_eq(taken, prompt);
    settle_job(prompt, 1);
    cr_assert_eq(inf_thread_start(&thread, "worker", take_one, &taken, NULL), INF_OK);
    wait_for_sleepers(1);
    // After the end of the reservation both workers have a job. The one that finds it wakes the
    // other.
    end_reservations();
    settle_job(others[0], 1);
    cr_expect_eq(pop_job(), others[1]);
    inf_thread_join(&thread);
    cr_expect_eq(taken, others[2]);
    settle_job(others[1], 1);
    settle_job(others[2], 1);
    settle_job(pop_job(), 1);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, gives_a_job_to_the_worker_that_ran_last)
{
    open_queue(3, 32, 1000);
    struct inf_thread threads[2] = {{0}};
    struct inf_job *jobs[3], *taken[2] = {NULL, NULL};
    // Both workers sleep, the second one since a later time. It is the one that a push wakes.
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(inf_thread_start(&threads[i], "worker", take_one, &taken[i], NULL), INF_OK);
        wait_for_sleepers(i + 1);
    }
    for (int i = 0; i < 3; i++)
        jobs[i] = make_job(1, 0);
    cr_assert_eq(push_job(jobs[0]), INF_DEVICE_QUEUE_ACCEPTED);
    inf_thread_join(&threads[1]);
    cr_expect_eq(taken[1], jobs[0]);
    // A worker that has just finished a job takes the next one, and no other is woken for it.
    settle_job(jobs[0], 1);
    cr_assert_eq(push_job(jobs[1]), INF_DEVICE_QUEUE_ACCEPTED);
    wait_for_sleepers(1);
    cr_expect_eq(pop_job(), jobs[1]);
    // While it runs, the next job wakes the other worker.
    cr_assert_eq(push_job(jobs[2]), INF_DEVICE_QUEUE_ACCEPTED);
    inf_thread_join(&threads[0]);
    cr_expect_eq(taken[0], jobs[2]);
    settle_job(jobs[1], 1);
    settle_job(jobs[2], 1);
    inf_device_queue_fini(&queue);
}

static bool check_hand_over(uint64_t now_ns) INF_ATTR(no_thread_safety_analysis)
{
    return inf_device_queue_check_hand_over(&queue, now_ns);
}

Test(queue_workers, wakes_another_worker_if_the_one_that_ran_last_is_late)
{
    open_queue(3, 32, 1000);
    struct inf_thread threads[2] = {{0}};
    struct inf_job *jobs[4], *taken[2] = {NULL, NULL};
    for (int i = 0; i < 4; i++)
        jobs[i] = make_job(1, 0);
    cr_assert_eq(push_job(jobs[0]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_assert_eq(pop_job(), jobs[0]);
    cr_expect_not(check_hand_over(UINT64_MAX), "no job is queued");
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(inf_thread_start(&threads[i], "worker", take_one, &taken[i], NULL), INF_OK);
        wait_for_sleepers(i + 1);
    }
    // This worker finishes a job and does not come back for the next one.
    settle_job(jobs[0], 1);
    cr_assert_eq(push_job(jobs[1]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_assert(recall_job(jobs[1]));
    cr_expect_not(check_hand_over(0), "the job was taken back");
    cr_assert_eq(push_job(jobs[1]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect(check_hand_over(0), "the worker has only just finished");
    wait_for_sleepers(2);
    cr_expect_not(check_hand_over(inf_clock_ns() + MS));
    inf_thread_join(&threads[1]);
    cr_expect_eq(taken[1], jobs[1]);
    cr_expect_not(check_hand_over(0), "no job waits any longer");
    // The next push does not rely on the late worker either.
    cr_assert_eq(push_job(jobs[2]), INF_DEVICE_QUEUE_ACCEPTED);
    inf_thread_join(&threads[0]);
    cr_expect_eq(taken[0], jobs[2]);
    // A worker that comes back in time ends the watch.
    cr_assert_eq(inf_thread_start(&threads[0], "worker", take_one, &taken[0], NULL), INF_OK);
    wait_for_sleepers(1);
    settle_job(jobs[1], 1);
    cr_assert_eq(push_job(jobs[3]), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(pop_job(), jobs[3]);
    cr_expect_not(check_hand_over(0), "the job was taken");
    settle_job(jobs[2], 1);
    settle_job(jobs[3], 1);
    inf_device_queue_close(&queue);
    inf_thread_join(&threads[0]);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, leaves_no_rows_for_idle_workers_that_may_not_take_them)
{
    open_queue(2, 32, 1000);
    struct inf_thread thread = {0};
    struct inf_job *jobs[INF_QUEUE_BATCH_JOBS], *taken = NULL;
    for (int i = 0; i < 5; i++) {
        jobs[i] = make_rows(1, 1);
        jobs[i]->slot_limits.runs_max = 1;
    }
    cr_assert_eq(push_job(jobs[0]), INF_DEVICE_QUEUE_ACCEPTED);
    struct inf_job *first = pop_job();
    cr_assert_eq(inf_thread_start(&thread, "worker", take_one, &taken, NULL), INF_OK);
    wait_for_sleepers(1);
    for (int i = 1; i < 5; i++)
        cr_assert_eq(push_job(jobs[i]), INF_DEVICE_QUEUE_ACCEPTED);
    wait_for_sleepers(1);
    settle_job(first, 1);
    cr_assert_eq(take_all(jobs), 4, "the limit of one run keeps the other worker from the rows");
    for (int i = 0; i < 4; i++)
        settle_job(jobs[i], 1);
    inf_device_queue_close(&queue);
    inf_thread_join(&thread);
    cr_expect_null(taken);
    inf_device_queue_fini(&queue);
}

// Marks a worker as polling for jobs, which counts as idle.
static void set_polling(bool polling) INF_ATTR(no_thread_safety_analysis)
{
    inf_mutex_lock(&queue.mutex);
    queue.polling = polling;
    inf_mutex_unlock(&queue.mutex);
}

static struct inf_job *push_low(void)
{
    struct inf_job *job = make_job(1, 0);
    job->queue_entry.priority = INF_PRIORITY_LOW;
    cr_assert_eq(push_job(job), INF_DEVICE_QUEUE_ACCEPTED);
    return job;
}

Test(queue_workers, low_priority_leaves_a_slot_free_and_pauses_for_others)
{
    open_queue(2, 32, 1000);
    struct inf_thread thread = {0};
    struct inf_job *low[3], *taken = NULL, *normal = make_job(2, 0);
    for (int i = 0; i < 3; i++)
        low[i] = push_low();
    cr_expect_eq(pop_job(), low[0]);
    cr_expect_eq(low[0]->pause_until_ns,
                 low[0]->accepted_ns + INF_FAIR_QUEUE_AGING_MS * INF_NS_PER_MS);
    cr_expect_not(queue.low_runs.pause.wanted);
    // The second worker finds only jobs of low priority, and does not start one.
    cr_assert_eq(inf_thread_start(&thread, "worker", take_one, &taken, NULL), INF_OK);
    wait_for_sleepers(1);
    cr_assert_eq(push_job(normal), INF_DEVICE_QUEUE_ACCEPTED);
    inf_thread_join(&thread);
    cr_expect_eq(taken, normal);
    cr_expect_eq(normal->pause_until_ns, 0u);
    cr_expect(queue.low_runs.pause.wanted);
    // The time for which a run paused is no estimate of its run time, nor charged.
    low[0]->result.paused_ns = 990 * MS;
    settle_job(low[0], 1000);
    cr_expect_eq(inf_estimates_find(&queue.estimates, 1).run_ns, 10 * MS);
    settle_job(normal, 1);
    cr_expect_not(queue.low_runs.pause.wanted);
    settle_job(pop_job(), 1);
    settle_job(pop_job(), 1);
    cr_expect_eq(queue.low_runs.low, 0u);
    cr_expect_eq(queue.low_runs.others, 0u);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, wakes_a_worker_for_low_priority_when_a_slot_may_be_used)
{
    open_queue(3, 32, 1000);
    struct inf_thread thread = {0};
    struct inf_job *low[4], *taken = NULL;
    for (int i = 0; i < 3; i++)
        low[i] = push_low();
    cr_expect_eq(pop_job(), low[0]);
    cr_expect_eq(pop_job(), low[1]);
    cr_assert_eq(inf_thread_start(&thread, "worker", take_one, &taken, NULL), INF_OK);
    wait_for_sleepers(1);
    low[3] = push_low();
    // Two runs may go on beside the slot that stays free. After both have ended, this worker takes
    // one job and wakes the other worker for the other one.
    settle_job(low[0], 1);
    settle_job(low[1], 1);
    struct inf_job *own = pop_job();
    inf_thread_join(&thread);
    cr_expect((own == low[2] && taken == low[3]) || (own == low[3] && taken == low[2]));
    settle_job(low[2], 1);
    settle_job(low[3], 1);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, does_not_start_low_priority_beside_other_runs)
{
    open_queue(3, 32, 1000);
    struct inf_job *normal = make_job(2, 0);
    cr_assert_eq(push_job(normal), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(pop_job(), normal);
    struct inf_job *low = push_low();
    cr_expect_eq(inf_low_runs_count_startable(&queue.low_runs), 0u);
    settle_job(normal, 1);
    cr_expect_eq(pop_job(), low);
    settle_job(low, 1);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, predicts_no_wait_for_the_slot_that_low_priority_leaves_free)
{
    open_queue(2, 32, 1000);
    struct inf_job *low[2] = {push_low()};
    cr_expect_eq(pop_job(), low[0]);
    settle_job(low[0], 20000); // so a run of this kind is expected to take 20 s
    low[0] = push_low();
    low[1] = push_low();
    cr_expect_eq(pop_job(), low[0]);
    struct inf_job *normal = make_job(2, 0);
    normal->queue_deadline.at_ns = normal->accepted_ns + 1;
    cr_expect_eq(push_job(normal), INF_DEVICE_QUEUE_ACCEPTED);
    cr_expect_eq(pop_job(), normal);
    settle_job(normal, 1);
    settle_job(low[0], 1);
    cr_expect_eq(pop_job(), low[1]);
    settle_job(low[1], 1);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, looks_again_for_a_job_that_becomes_urgent)
{
    open_queue(2, 32, 1000);
    struct inf_thread thread = {0};
    struct inf_job *running = push_low(), *old = make_job(1, 0), *taken = NULL;
    cr_expect_eq(pop_job(), running);
    old->queue_entry.priority = INF_PRIORITY_LOW;
    old->accepted_ns -= (INF_FAIR_QUEUE_AGING_MS - 300) * INF_NS_PER_MS;
    cr_assert_eq(push_job(old), INF_DEVICE_QUEUE_ACCEPTED);
    cr_assert_eq(inf_thread_start(&thread, "worker", take_one, &taken, NULL), INF_OK);
    wait_for_sleepers(1);
    // No run ends and no job comes, and still the worker takes the job after 300 ms.
    inf_thread_join(&thread);
    cr_expect_eq(taken, old);
    settle_job(old, 1);
    settle_job(running, 1);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, low_priority_uses_the_only_slot_without_a_pause)
{
    open_queue(1, 32, 1000);
    struct inf_job *low = push_low();
    cr_expect_eq(pop_job(), low);
    cr_expect_eq(low->pause_until_ns, 0u, "nothing else could run meanwhile");
    settle_job(low, 1);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, a_job_of_low_priority_that_has_waited_long_is_like_others)
{
    open_queue(2, 32, 1000);
    struct inf_job *old = make_job(1, 0);
    old->queue_entry.priority = INF_PRIORITY_LOW;
    old->accepted_ns -= INF_FAIR_QUEUE_AGING_MS * INF_NS_PER_MS;
    cr_assert_eq(push_job(old), INF_DEVICE_QUEUE_ACCEPTED);
    struct inf_job *low = push_low();
    cr_expect_eq(pop_job(), old);
    cr_expect_eq(old->pause_until_ns, 0u);
    cr_expect_eq(pop_job(), low, "the slots of runs of low priority are not in use");
    settle_job(old, 1);
    settle_job(low, 1);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, a_batch_of_low_priority_leaves_no_rows_for_a_slot_that_stays_free)
{
    open_queue(2, 32, 1000);
    struct inf_job *jobs[INF_QUEUE_BATCH_JOBS];
    for (int i = 0; i < 4; i++) {
        jobs[i] = make_rows(1, 1);
        jobs[i]->queue_entry.priority = INF_PRIORITY_LOW;
        cr_assert_eq(push_job(jobs[i]), INF_DEVICE_QUEUE_ACCEPTED);
    }
    set_polling(true);
    cr_expect_eq(take_all(jobs), 4u);
    set_polling(false);
    for (int i = 0; i < 4; i++)
        settle_job(jobs[i], 1);
    inf_device_queue_fini(&queue);
}

Test(queue_workers, resumes_runs_of_low_priority_after_the_last_other_run)
{
    struct inf_low_runs runs;
    struct inf_job *low = make_job(1, 0), *others[2] = {make_job(2, 0), make_job(2, 0)};
    low->queue_entry.priority = INF_PRIORITY_LOW;
    low->queue_entry.since_ns = 1;
    inf_low_runs_init(&runs, 4);
    inf_low_runs_begin(&runs, &others[0], 1, 1);
    cr_expect_not(inf_low_runs_end(&runs, others[0]), "no run pauses");
    inf_low_runs_begin(&runs, &low, 1, 1);
    cr_expect_eq(inf_low_runs_count_startable(&runs), 2u);
    for (int i = 0; i < 2; i++)
        inf_low_runs_begin(&runs, &others[i], 1, 1);
    cr_expect_not(inf_low_runs_end(&runs, others[0]), "another one goes on");
    cr_expect(runs.pause.wanted);
    cr_expect(inf_low_runs_end(&runs, others[1]));
    cr_expect_not(runs.pause.wanted);
    cr_expect_not(inf_low_runs_end(&runs, low));
    inf_low_runs_fini(&runs);
    free(low);
    free(others[0]);
    free(others[1]);
}
