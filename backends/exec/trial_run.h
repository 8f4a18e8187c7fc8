// SPDX-License-Identifier: Apache-2.0
// Trial runs: inputs and outputs for running an executable before it serves requests. A trial run
// warms an executable up, times it, or compares its results with those of another executable.
#ifndef INF_BACKENDS_EXEC_TRIAL_RUN_H
#define INF_BACKENDS_EXEC_TRIAL_RUN_H

#include "backends/base/blob.h"
#include "backends/exec/executable.h"

// Embedded in its owner. A zeroed struct has no memory.
struct inf_trial_run {
    uint32_t input_count, count;
    struct inf_blob **blobs;   // inputs, then outputs
    void **pointers;           // pointers[i] is the address of the data of blobs[i]
    struct inf_run_step *step; // as in struct inf_execution; NULL: not needed
};

// Allocates zeroed memory for every input and output of `graph`.
//
// INF_INVALID    the size of an input or output is not known.
// INF_EXHAUSTED  memory.
enum inf_code inf_trial_run_init(struct inf_trial_run *trial, const struct inf_graph *graph,
                                 struct inf_error *err) INF_NODISCARD;

// Frees the memory. `trial` may be zeroed, or inf_trial_run_init() may have failed.
void inf_trial_run_fini(struct inf_trial_run *trial);

// Fills float inputs with numbers from 0 to 1, the range of images; the numbers are the same on
// each call. Other inputs stay 0, because they may be indices.
void inf_trial_run_fill_inputs(const struct inf_trial_run *trial, const struct inf_graph *graph);

// Returns a run in slot 0 with these inputs and outputs, and without a cancel flag. The result is
// valid until inf_trial_run_fini().
struct inf_execution inf_trial_run_execution(const struct inf_trial_run *trial);

// Runs the executable once, in slot 0. Sets *took_ns, which may be NULL, to the time of the run.
//
// INF_CANCELLED  *cancelled became true; `cancelled` may be NULL.
enum inf_code inf_trial_run_execute_cancellable(const struct inf_trial_run *trial,
                                                struct inf_executable *executable,
                                                const atomic_bool *cancelled, uint64_t *took_ns,
                                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Runs the executable once, in slot 0, without a cancel flag. Sets *took_ns, which may be NULL, to
// the time of the run.
enum inf_code inf_trial_run_execute(const struct inf_trial_run *trial,
                                    struct inf_executable *executable, uint64_t *took_ns,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns the index of the first element of `got` that differs from `wanted`; SIZE_MAX if there is
// none. FP32 elements may differ by `tolerance` * max(1, |wanted|); two NaNs are equal, and an
// infinity equals only itself. Elements of other types must be identical.
size_t inf_trial_run_find_difference(const void *got, const void *wanted, size_t size_bytes,
                                     enum inf_dtype dtype, double tolerance);

#endif
