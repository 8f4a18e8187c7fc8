// SPDX-License-Identifier: Apache-2.0
// Memory to run an executable on before anybody else has it: to warm it up, to measure it, and to
// see whether another one answers the same.
#ifndef INF_BACKENDS_EXEC_TRIAL_RUN_H
#define INF_BACKENDS_EXEC_TRIAL_RUN_H

#include "backends/base/blob.h"
#include "backends/exec/executable.h"

// Embedded; all zero is one without memory.
struct inf_trial_run {
    uint32_t input_count, count;
    struct inf_blob **blobs; // inputs, then outputs
    void **pointers;         // their data, in the same order
};

// Gets zeroed memory for every input and output of `graph`.
//
// INF_INVALID    the size of one is not known.
// INF_EXHAUSTED  memory.
enum inf_code inf_trial_run_init(struct inf_trial_run *trial, const struct inf_graph *graph,
                                 struct inf_error *err) INF_NODISCARD;

// Frees the memory; half-made and all zero are fine.
void inf_trial_run_fini(struct inf_trial_run *trial);

// Fills every input of floats with numbers of 0 to 1, as pictures are, the same each time; others
// stay 0, since they may be indices.
void inf_trial_run_fill_inputs(const struct inf_trial_run *trial, const struct inf_graph *graph);

// Runs the executable on it once, in slot 0; *took_ns (NULL allowed) is how long that took.
// INF_CANCELLED: `cancelled` (NULL allowed) was set.
enum inf_code inf_trial_run_execute_cancellable(const struct inf_trial_run *trial,
                                                struct inf_executable *executable,
                                                const atomic_bool *cancelled, uint64_t *took_ns,
                                                struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// As inf_trial_run_execute_cancellable(), whatever happens.
enum inf_code inf_trial_run_execute(const struct inf_trial_run *trial,
                                    struct inf_executable *executable, uint64_t *took_ns,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The first element of `got` that is too far from that of `wanted`; SIZE_MAX where none is.
// Elements of FP32 may be apart by `tolerance` times the wanted one, or times 1 where that is less;
// NaNs are equal, infinities equal only to themselves. All other types have to be the same.
size_t inf_trial_run_find_difference(const void *got, const void *wanted, size_t size_bytes,
                                     enum inf_dtype dtype, double tolerance);

#endif
