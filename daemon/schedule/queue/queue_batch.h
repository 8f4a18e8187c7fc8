// SPDX-License-Identifier: Apache-2.0
// Chooses the queued jobs that one run computes together. Part of struct inf_device_queue. The
// mutex of the queue guards the fair queue and its jobs: all functions are called with that mutex
// locked.
#ifndef INF_DAEMON_SCHEDULE_QUEUE_QUEUE_BATCH_H
#define INF_DAEMON_SCHEDULE_QUEUE_QUEUE_BATCH_H

#include "daemon/policy/batch_ladder.h"
#include "daemon/policy/batch_wait.h"
#include "daemon/policy/fair_queue.h"
#include "daemon/schedule/job.h"

// The most jobs that a worker pops at once. Each of them has at least one row.
#define INF_QUEUE_BATCH_JOBS INF_BATCH_ROWS_MAX

// Returns the job of an entry of a fair queue. NULL is allowed, and returns NULL.
struct inf_job *inf_queue_batch_find_job(struct inf_fair_queue_entry *entry);

// Counts the queued rows that may run together with the queued job `first` in *waiting. Rows that
// were accepted at `fresh_ns` or later count as fresh. Returns the number of queued jobs of the
// model, but not more than INF_QUEUE_BATCH_JOBS.
uint32_t inf_queue_batch_count(const struct inf_fair_queue *fair_queue, struct inf_job *first,
                               uint64_t fresh_ns, struct inf_batch_waiting *waiting);

// Fills jobs[1...] with jobs that should run together with the queued job jobs[0], and returns the
// total number. Leaves a share of the jobs for `idle` other workers.
uint32_t inf_queue_batch_gather(const struct inf_fair_queue *fair_queue, uint64_t idle,
                                struct inf_job *jobs[INF_QUEUE_BATCH_JOBS]);

#endif
