// SPDX-License-Identifier: Apache-2.0
// Shadow check: computes some answers again on the reference device `ref`, on a thread with idle
// priority, and compares them, to detect devices that compute wrongly. The same thread traces
// requests in debug mode (debug_trace.h). Samples beyond a small limit are dropped and counted, so
// that requests never wait.
#ifndef INF_DAEMON_SCHEDULE_SHADOW_H
#define INF_DAEMON_SCHEDULE_SHADOW_H

#include "backends/base/idle_gate.h"
#include "daemon/schedule/job.h"

// The most samples in the queue, and the most tensor bytes in one sample.
#define INF_SHADOW_WAITING_MAX 4u
#define INF_SHADOW_BYTES_MAX   ((uint64_t)64 << 20)

struct inf_shadow;
struct inf_shadow_sample;

struct inf_shadow_options {
    struct inf_device *reference; // the reference device `ref`; outlives the shadow thread
    const struct inf_idle_gate *idle_gate;
    const struct inf_log *log;
};

// Starts the shadow thread. The caller destroys *out_shadow.
//
// INF_EXHAUSTED  memory or threads.
enum inf_code inf_shadow_create(struct inf_shadow **out_shadow,
                                const struct inf_shadow_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Stops the current run, frees the queued samples and ends the thread. NULL is allowed.
void inf_shadow_destroy(struct inf_shadow **shadow);

// Numbers of shadow checks over all models since the start of the daemon.
struct inf_shadow_totals {
    uint64_t checked, drifted, dropped;
};

// Returns the numbers of shadow checks. Any thread may call it.
struct inf_shadow_totals inf_shadow_read_totals(const struct inf_shadow *shadow);

// Returns true if the tensors of request number `count` of a model are to be copied for a shadow
// check, which is the case for one of `interval` requests (0: none). If the queue is full, returns
// false and counts the sample as dropped.
bool inf_shadow_should_sample(struct inf_shadow *shadow, struct inf_served *served, uint64_t count,
                              uint32_t interval) INF_ON_LOOP;

// Returns a copy of the inputs and outputs of a finished job that is `shadowed` or `traced`.
// Returns NULL if they are too large, or there is no memory. The worker calls this function before
// it posts the job to the loop.
struct inf_shadow_sample *inf_shadow_take(const struct inf_job *job) INF_NODISCARD;

// Frees a sample, that is, the copies of a job's inputs and outputs. NULL is allowed.
void inf_shadow_sample_destroy(struct inf_shadow_sample **sample);

// Queues the sample of a job; the shadow thread then owns the sample. `tolerance` is the allowed
// difference in fp32. A job without a sample, or one for which there is no room, is counted as
// dropped.
void inf_shadow_submit(struct inf_shadow *shadow, struct inf_job *job,
                       double tolerance) INF_ON_LOOP;

#endif
