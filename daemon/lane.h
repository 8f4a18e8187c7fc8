// SPDX-License-Identifier: Apache-2.0
// The bounded queue of jobs in front of one device. The loop puts jobs in and takes waiting ones
// back; workers take them out in order. A lock is held for a swap only.
#ifndef INF_DAEMON_LANE_H
#define INF_DAEMON_LANE_H

#include "backends/base/role.h"
#include "backends/base/thread.h"
#include "daemon/job.h"

// Embedded; does not move once in use.
struct inf_lane {
    struct inf_mutex mutex; // guards everything down to `closed`, and the lane's part of jobs
    struct inf_cond filled;
    struct inf_job *first, *last;
    uint32_t count;
    uint64_t bytes;   // of data segments
    uint32_t waiting; // workers in inf_lane_pop()
    bool closed;
    uint32_t count_max;
    uint64_t bytes_max;
};

// Prepares an embedded lane.
void inf_lane_init(struct inf_lane *lane, uint32_t count_max, uint64_t bytes_max);

// Releases a lane that no worker uses any more.
void inf_lane_fini(struct inf_lane *lane);

// Appends a job; false where the lane is full or closed.
bool inf_lane_push(struct inf_lane *lane, struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Takes a job back that no worker has begun; false, and job->cancelled set, where one has.
bool inf_lane_withdraw(struct inf_lane *lane, struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Takes the oldest job, waiting for one; NULL once the lane is closed and empty. Blocks.
struct inf_job *inf_lane_pop(struct inf_lane *lane) INF_NODISCARD INF_ON_WORKER INF_MAY_BLOCK;

// Jobs waiting now. Any thread.
uint32_t inf_lane_count(struct inf_lane *lane);

// No further job gets in; workers get what is left, and then NULL. Any thread.
void inf_lane_close(struct inf_lane *lane);

#endif
