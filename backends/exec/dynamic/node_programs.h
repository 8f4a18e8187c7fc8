// SPDX-License-Identifier: Apache-2.0
// Programs of single nodes whose operands' shapes only a run tells: what the interpreter
// (interpret.h) runs instead of its evaluator where a device computes the node faster. Each is
// compiled when its node first meets these shapes, and kept for when it meets them again; matrices
// that are constants are packed once for all of them (node_packs.h). Behind executable.h, which
// users see.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_NODE_PROGRAMS_H
#define INF_BACKENDS_EXEC_DYNAMIC_NODE_PROGRAMS_H

#include "backends/base/role.h"
#include "backends/device/device.h"

struct inf_constants;
struct inf_node_programs;

// Programs for the first of the devices that computes in the host's memory, but for the last one,
// whose results the evaluator's are as good as: *out_programs is NULL where there is none. Each of
// `slots` slots has its own, without locks: one run at a time in each. `graph`, whose nodes they
// are, has the bytes of its constants and outlives them; nodes of other graphs have their matrices
// packed in each run.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_node_programs_create(struct inf_node_programs **out_programs,
                                       struct inf_device *const *devices, uint32_t device_count,
                                       uint32_t slots, const struct inf_graph *graph,
                                       struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

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

// Computes the node. *out_done is false where there is no program for it, which is no failure: it
// is too small to be worth one, or the device declines it.
//
// INF_INVALID, INF_CANCELLED, INF_UNAVAILABLE  as inf_program_run().
// INF_EXHAUSTED  no memory for the program of a node that only a program can compute.
enum inf_code inf_node_programs_run(struct inf_node_programs *programs,
                                    const struct inf_node_run *run, bool *out_done,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Whether the constant is there in a form of the programs' alone, so that its bytes may be given
// up: nodes that take it are computed by them, but those without results. NULL programs hold none.
bool inf_node_programs_hold(const struct inf_node_programs *programs, const struct inf_graph *graph,
                            uint32_t value);

// Lists the constants of the graph, without those of its subgraphs, as held or as read.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_node_programs_list_constants(const struct inf_node_programs *programs,
                                               const struct inf_graph *graph,
                                               struct inf_constants *constants,
                                               struct inf_error *err) INF_NODISCARD;

// Bytes that the programs take on the device: packed weights for themselves alone, and scratch
// memory.
uint64_t inf_node_programs_bytes(const struct inf_node_programs *programs);

#endif
