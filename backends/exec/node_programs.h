// SPDX-License-Identifier: Apache-2.0
// Programs of single nodes whose operands' shapes only a run tells: what the interpreter (interpret.h) runs
// instead of its evaluator where a device computes the node faster. Each is compiled when its node first
// meets these shapes, and kept for when it meets them again. Behind executable.h, which users see.
#ifndef INF_BACKENDS_EXEC_NODE_PROGRAMS_H
#define INF_BACKENDS_EXEC_NODE_PROGRAMS_H

#include "backends/base/role.h"
#include "backends/device/device.h"

struct inf_node_programs;

// Programs for the first of the devices that computes in the host's memory, but for the last one, whose
// results the evaluator's are as good as: *out_programs is NULL where there is none. Each of `slots` slots
// has its own, without locks: one run at a time in each.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_node_programs_create(struct inf_node_programs **out_programs,
                                       struct inf_device *const *devices, uint32_t device_count,
                                       uint32_t slots, struct inf_error *err) INF_NODISCARD;

// Frees them. NULL is fine.
void inf_node_programs_destroy(struct inf_node_programs **programs);

// One node of a run.
struct inf_node_run {
    const struct inf_graph *graph;  // shapes are known, values of operands have their data
    const struct inf_graph *source; // the same before the run: which data are constants
    uint32_t node;
    uint32_t slot;
    struct inf_blob *const *outputs; // for its results
    const atomic_bool *cancelled;    // NULL, or as in struct inf_run
};

// Computes the node. *out_done is false where there is no program for it, which is no failure: it is too
// small to be worth one, or the device declines it.
//
// INF_INVALID, INF_CANCELLED, INF_UNAVAILABLE  as inf_program_run().
enum inf_code inf_node_programs_run(struct inf_node_programs *programs,
                                    const struct inf_node_run *run, bool *out_done,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Bytes that the programs take on the device: packed weights for themselves alone, and scratch memory.
uint64_t inf_node_programs_bytes(const struct inf_node_programs *programs);

#endif
