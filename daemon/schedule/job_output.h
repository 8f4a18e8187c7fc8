// SPDX-License-Identifier: Apache-2.0
// Where the outputs of a job go: into regions, or into the data segment of its reply. For workers.
#ifndef INF_DAEMON_SCHEDULE_JOB_OUTPUT_H
#define INF_DAEMON_SCHEDULE_JOB_OUTPUT_H

#include "backends/exec/executable.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/job.h"

// Measures the outputs whose shapes are known before the run, as `graph` has them but for the first
// dimension where `rows` is not 0, and gets the data segment for those without a region. *out_late
// tells that the sizes of some are known after the run only. The job's fault says what is wrong; what
// an earlier call got is given back.
//
// INF_RANGE      (OUTPUT_TOO_SMALL) the room of one.
// INF_EXHAUSTED  (FRAME_TOO_LARGE, HOST_OOM)
enum inf_code inf_job_place_outputs(struct inf_job *job, const struct inf_graph *graph,
                                    uint32_t rows, struct inf_pool *pool,
                                    bool *out_late) INF_NODISCARD;

// Where an output that was measured goes; NULL where it is not wanted, or late.
void *inf_job_output_memory(const struct inf_job *job, uint32_t index);

// A run went well: what is to be kept as well as returned is copied to where it is kept.
void inf_job_keep_outputs(struct inf_job *job);

// Fetches the outputs whose sizes only the run in `slot` could tell. Fails as
// inf_job_place_outputs().
enum inf_code inf_job_collect_late(struct inf_job *job, const struct inf_executable *executable,
                                   uint32_t slot, struct inf_pool *pool) INF_NODISCARD;

#endif
