// SPDX-License-Identifier: Apache-2.0
// A device queue with the test as its loop and worker, for the tests of this folder.
#ifndef INF_TESTS_UNIT_DAEMON_QUEUE_CASE_H
#define INF_TESTS_UNIT_DAEMON_QUEUE_CASE_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "daemon/schedule/queue/device_queue.h"

#define MS INF_NS_PER_MS

static struct inf_device_queue queue;

static inline void open_queue(uint32_t workers, uint32_t requests_max, uint64_t bytes_max)
{
    const struct inf_device_queue_options options = {
        .workers = workers,
        .jobs_max = 64,
        .cores = 2,
        .limits = {.requests_max = requests_max, .bytes_max = bytes_max}};
    struct inf_error err;
    cr_assert_eq(inf_device_queue_init(&queue, &options, &err), INF_OK);
}

// Makes a job of one user. `model` is the key that identifies the model.
static inline struct inf_job *make_job(uint64_t model, uint64_t timeout_ms)
{
    struct inf_job *job = calloc(1, sizeof *job);
    cr_assert_not_null(job);
    job->accepted_ns = inf_clock_ns();
    job->estimate_key = model;
    job->queue_entry.model = model;
    job->queue_entry.priority = INF_PRIORITY_NORMAL;
    if (timeout_ms != 0)
        job->deadline.at_ns = job->accepted_ns + timeout_ms * MS;
    return job;
}

static uint64_t last_wait_ns; // expected wait in nanoseconds that the last push reported

static inline enum inf_device_queue_verdict push_job(struct inf_job *job)
    INF_ATTR(no_thread_safety_analysis)
{
    return inf_device_queue_push(&queue, job, &last_wait_ns);
}

// Pops the next job.
static inline struct inf_job *pop_job(void) INF_ATTR(no_thread_safety_analysis)
{
    struct inf_job *jobs[INF_QUEUE_BATCH_JOBS];
    uint32_t count = inf_device_queue_pop(&queue, jobs);
    cr_assert_leq(count, 1);
    return count == 1 ? jobs[0] : NULL;
}

static inline void finish_only(struct inf_job *job) INF_ATTR(no_thread_safety_analysis)
{
    inf_device_queue_finish(&queue, &job, 1);
}

static inline void finish_job(struct inf_job *job)
{
    finish_only(job);
    free(job);
}

// Ends a popped job as if its run had taken `took_ms`, and frees it.
static inline void settle_job(struct inf_job *job, uint64_t took_ms)
{
    job->result.start_ns = job->result.begin_ns = inf_clock_ns();
    job->result.done_ns = job->result.end_ns = job->result.start_ns + took_ms * MS;
    job->result.device_ns = job->result.core_ns = took_ms * MS;
    job->result.fault.err.code = INF_OK;
    finish_job(job);
}

// Pops the next job, together with all jobs that run in one batch with it. Returns their number.
static inline uint32_t take_all(struct inf_job **jobs) INF_ATTR(no_thread_safety_analysis)
{
    return inf_device_queue_pop(&queue, jobs);
}

// A model whose batch ladder says that up to four rows run in twice the time of one row.
static struct inf_served shared = {
    .ladder = {.count = 3, .rungs = {{1, 100}, {2, 140}, {4, 200}}, .bytes = 1}};

static inline struct inf_job *make_rows(uint64_t user, uint32_t rows)
{
    struct inf_job *job = make_job(1, 0);
    job->served = &shared;
    job->rows = rows;
    job->queue_entry.user = user;
    return job;
}

#endif
