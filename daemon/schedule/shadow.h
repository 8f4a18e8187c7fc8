// SPDX-License-Identifier: Apache-2.0
// Answers that were given are computed once more by the plainest device, on a thread that only gets
// processor time that nobody else wants, and compared: a device that has begun to err is told of. Those
// of models and requests in debug mode are computed once more by the device itself, to tell of each node
// (debug_trace.h). What is given to it never waits for it, and what it has no room for is left out and counted.
#ifndef INF_DAEMON_SCHEDULE_SHADOW_H
#define INF_DAEMON_SCHEDULE_SHADOW_H

#include "backends/base/idle_gate.h"
#include "daemon/schedule/job.h"

// Samples that wait, and bytes of tensors of one.
#define INF_SHADOW_WAITING_MAX 4u
#define INF_SHADOW_BYTES_MAX   ((uint64_t)64 << 20)

struct inf_shadow;
struct inf_shadow_sample;

struct inf_shadow_options {
    struct inf_device *judge; // the plainest device; outlives the shadow
    const struct inf_idle_gate *idle_gate;
    const struct inf_log *log;
};

// Starts the thread. *out_shadow is the caller's to destroy.
//
// INF_EXHAUSTED  memory or threads.
enum inf_code inf_shadow_create(struct inf_shadow **out_shadow,
                                const struct inf_shadow_options *options,
                                struct inf_error *err) INF_NODISCARD;

// Stops what is under way, frees what waits, ends the thread. NULL is fine.
void inf_shadow_destroy(struct inf_shadow **shadow);

// What was checked of all models, since the start.
struct inf_shadow_totals {
    uint64_t checked, drifted, dropped;
};

// Reads them. Any thread.
struct inf_shadow_totals inf_shadow_read_totals(const struct inf_shadow *shadow);

// Whether request number `count` of a model is to be looked at, one in `interval` being (0: none); what
// there is no room for is counted as dropped.
bool inf_shadow_wants(struct inf_shadow *shadow, struct inf_served *served, uint64_t count,
                      uint32_t interval) INF_ON_LOOP;

// Copies the inputs and outputs of a job that was answered and is `shadowed` or `traced`; NULL where they
// are too large, or without memory. On the worker, before the job is posted.
struct inf_shadow_sample *inf_shadow_take(const struct inf_job *job) INF_NODISCARD;

// Frees a sample. NULL is fine.
void inf_shadow_sample_destroy(struct inf_shadow_sample **sample);

// Gives a job's sample to the thread, which owns it from then on; `tolerance` is that of fp32. None, or one
// that there is no room for, is counted as dropped.
void inf_shadow_submit(struct inf_shadow *shadow, struct inf_job *job,
                       double tolerance) INF_ON_LOOP;

#endif
