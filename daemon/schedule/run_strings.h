// SPDX-License-Identifier: Apache-2.0
// The strings of one run of a job: makes handles of the strings in its inputs, and gives BYTES
// outputs private memory for their handles. Called by workers.
#ifndef INF_DAEMON_SCHEDULE_RUN_STRINGS_H
#define INF_DAEMON_SCHEDULE_RUN_STRINGS_H

#include "backends/base/string_pool.h"
#include "backends/exec/executable.h"
#include "daemon/schedule/job.h"

// Owned by a worker; zeroed at first. Between runs it holds a small amount of memory at most.
struct inf_run_strings {
    struct inf_string_pool pool;
    uint64_t *handles; // of all inputs, then of all outputs of known shape; NULL: no run, or none
    size_t output_offsets[INF_LIMIT_TENSORS]; // offset in `handles` of each output
};

// Prepares a run. Sets inputs[i] to the job's input or, for BYTES, to handles; sets outputs[i] to
// memory for handles if the output is BYTES, wanted and of known shape. inf_run_strings_end()
// frees them. Errors are reported in job->result.fault.
//
// INF_INVALID    (SIZE_MISMATCH) the bytes of an input are not the strings that its shape says.
// INF_EXHAUSTED  INF_LIMIT_STRING_ELEMENTS or INF_LIMIT_STRING_BYTES in one run, or no memory.
enum inf_code inf_run_strings_begin(struct inf_run_strings *strings, struct inf_job *job,
                                    const struct inf_graph *graph,
                                    const void *inputs[INF_LIMIT_TENSORS],
                                    void *outputs[INF_LIMIT_TENSORS]) INF_NODISCARD;

// Sets *result to a BYTES output of known shape. Returns false for other outputs.
bool inf_run_strings_result(const struct inf_run_strings *strings, const struct inf_graph *graph,
                            uint32_t output, struct inf_result *result) INF_NODISCARD;

// Returns the pools to which handles in the outputs refer.
struct inf_strings inf_run_strings_view(struct inf_run_strings *strings,
                                        const struct inf_graph *graph);

// Ends the run: all its strings and handles are freed. Also called after a failed begin.
void inf_run_strings_end(struct inf_run_strings *strings);

#endif
