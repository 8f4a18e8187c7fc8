// SPDX-License-Identifier: Apache-2.0
// Programs of single nodes whose operand shapes are known only during a run. The interpreter
// (interpret.h) runs them instead of its evaluator if a device computes the node faster. A program
// is compiled when its node first has these shapes, and cached. Constant matrices are packed once
// for all programs (node_packs.h). Private to executable.h.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_NODE_PROGRAMS_H
#define INF_BACKENDS_EXEC_DYNAMIC_NODE_PROGRAMS_H

#include "backends/base/role.h"
#include "backends/device/device.h"

struct inf_constants;
struct inf_node_programs;

// Creates programs for the first device that computes in host memory. The last device does not
// count, because the evaluator's results are as good as its own. *out_programs is NULL if no device
// is left. Each of `slots` slots has its own programs, without locks, for one run at a time.
// `graph` must outlive them and holds the bytes of its constants. Nodes of other graphs have their
// matrices packed in each run.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_node_programs_create(struct inf_node_programs **out_programs,
                                       struct inf_device *const *devices, uint32_t device_count,
                                       uint32_t slots, const struct inf_graph *graph,
                                       struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the programs. NULL is allowed.
void inf_node_programs_destroy(struct inf_node_programs **programs);

// The arguments for running one node with a compiled program.
struct inf_node_run {
    const struct inf_graph *graph;  // with known shapes and the data of all operands
    const struct inf_graph *source; // the graph before the run: shows which operands are constants
    uint32_t node;
    uint32_t slot;
    struct inf_blob *const *outputs; // buffers for the results
    const atomic_bool *cancelled;    // checked while running; NULL: the run cannot be cancelled
    struct inf_core_use *core_use;   // receives the cores of the program; may be NULL
};

// Computes the node. *out_done is false if there is no program for the node, because the node is
// too small or the device declines it. This is not a failure.
//
// INF_INVALID, INF_CANCELLED, INF_UNAVAILABLE  as inf_program_run().
// INF_EXHAUSTED  no memory for the program of a node that only a program can compute.
enum inf_code inf_node_programs_run(struct inf_node_programs *programs,
                                    const struct inf_node_run *run, bool *out_done,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns true if the programs hold the constant in their own form, so that its bytes may be
// evicted: programs then compute all nodes that read it, except nodes with empty results. Returns
// false if `programs` is NULL.
bool inf_node_programs_hold(const struct inf_node_programs *programs, const struct inf_graph *graph,
                            uint32_t value);

// Adds the constants of the graph, without those of its subgraphs, to the list. Each is marked as
// used in packed form or as read.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_node_programs_list_constants(const struct inf_node_programs *programs,
                                               const struct inf_graph *graph,
                                               struct inf_constants *constants,
                                               struct inf_error *err) INF_NODISCARD;

// Returns the bytes that the programs take on the device: weights that only they use in packed
// form, and scratch memory.
uint64_t inf_node_programs_bytes(const struct inf_node_programs *programs);

#endif
