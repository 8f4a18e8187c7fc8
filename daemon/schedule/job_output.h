// SPDX-License-Identifier: Apache-2.0
// The memory of a job's outputs: regions, session buffers, or the data segment of the reply. Called
// by workers.
#ifndef INF_DAEMON_SCHEDULE_JOB_OUTPUT_H
#define INF_DAEMON_SCHEDULE_JOB_OUTPUT_H

#include "backends/exec/executable.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/job.h"
#include "daemon/schedule/run_strings.h"

// Clears what an earlier run noted about outputs in the memory of a session. Called before each
// run, because the memory of an answered job is used for later jobs, of other models too.
void inf_job_forget_history(struct inf_job *job);

// Places the outputs whose shapes are known before the run, and acquires the data segment for
// outputs without a region. The shapes come from `graph`; if `rows` is not 0, it replaces their
// first dimension. *out_late is set if the sizes of some outputs are known only after the run.
// Errors are reported in job->result.fault. The function may be called again, and then releases the
// data segment of the earlier call.
//
// INF_RANGE      (OUTPUT_TOO_SMALL) an output does not fit its region.
// INF_EXHAUSTED  (FRAME_TOO_LARGE, HOST_OOM)
enum inf_code inf_job_place_outputs(struct inf_job *job, const struct inf_graph *graph,
                                    uint32_t rows, struct inf_pool *pool,
                                    bool *out_late) INF_NODISCARD;

// Returns the memory of an output, after inf_job_place_outputs() assigned it. Returns NULL if the
// request does not want the output, or if the output is late (its size is known only after the
// run).
void *inf_job_output_memory(const struct inf_job *job, uint32_t index);

// Copies outputs to the session buffers that keep them, if the reply contains the same outputs.
// Called after a successful run.
void inf_job_keep_outputs(struct inf_job *job);

// The run that computed late outputs.
struct inf_late_source {
    const struct inf_executable *executable;
    uint32_t slot;
    struct inf_run_strings *strings; // the strings of the run
};

// Assigns memory to the outputs whose size became known only in the run ("late" outputs), and
// copies them there. The errors are those of inf_job_place_outputs().
enum inf_code inf_job_collect_late(struct inf_job *job, const struct inf_late_source *source,
                                   struct inf_pool *pool) INF_NODISCARD;

#endif
