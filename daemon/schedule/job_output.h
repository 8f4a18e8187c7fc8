// SPDX-License-Identifier: Apache-2.0
// The memory of a job's outputs: regions, session buffers, or the data segment of the reply. For
// workers.
#ifndef INF_DAEMON_SCHEDULE_JOB_OUTPUT_H
#define INF_DAEMON_SCHEDULE_JOB_OUTPUT_H

#include "backends/exec/executable.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/job.h"

// Places the outputs whose shapes are known before the run, and acquires the data segment for those
// without a region. The shapes are those of `graph`; if `rows` is not 0, it replaces their first
// dimension. *out_late is set if the sizes of some outputs are known after the run only. Errors are
// in job->result.fault. May be called again; then the data segment of the earlier call is released.
//
// INF_RANGE      (OUTPUT_TOO_SMALL) an output does not fit its region.
// INF_EXHAUSTED  (FRAME_TOO_LARGE, HOST_OOM)
enum inf_code inf_job_place_outputs(struct inf_job *job, const struct inf_graph *graph,
                                    uint32_t rows, struct inf_pool *pool,
                                    bool *out_late) INF_NODISCARD;

// Returns the memory of an output that has its place; NULL if it is not wanted, or late.
void *inf_job_output_memory(const struct inf_job *job, uint32_t index);

// Copies outputs that are both returned and kept to their session buffers, after a successful run.
void inf_job_keep_outputs(struct inf_job *job);

// Places and copies the late outputs of the run in `slot`. Fails as
// inf_job_place_outputs().
enum inf_code inf_job_collect_late(struct inf_job *job, const struct inf_executable *executable,
                                   uint32_t slot, struct inf_pool *pool) INF_NODISCARD;

#endif
