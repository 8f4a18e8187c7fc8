// SPDX-License-Identifier: Apache-2.0
// Runs a graph whose shapes depend on values, node by node: infers shapes from the actual inputs,
// allocates memory, and lets an evaluator compute. Branches and loops run their subgraphs in the
// same way.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_INTERPRET_H
#define INF_BACKENDS_EXEC_DYNAMIC_INTERPRET_H

#include <stdatomic.h>

#include "backends/device/run_step.h"
#include "backends/exec/dynamic/tensor.h"
#include "backends/graph/pass/pass.h"

struct inf_node_programs;
struct inf_subgraph_programs;

// One run of a graph by one thread.
struct inf_interpreter {
    const struct inf_evaluator *evaluator; // its callback measure() must be set
    const atomic_bool *cancelled; // checked between nodes; NULL: the run cannot be cancelled
    struct inf_run_step *step; // receives the name of each node before it is computed; may be NULL
    struct inf_tensor_memory memory;
    const struct inf_subgraph_programs *subgraphs; // compiled subgraphs; NULL: none
    struct inf_node_programs *programs;            // NULL: the evaluator computes all nodes
    uint32_t slot;                                 // the slot in which compiled programs run
    struct inf_string_pool *strings; // strings that the run makes; NULL: it must make none
    struct inf_core_use *core_use;   // receives the cores of compiled programs; may be NULL
};

// Runs `graph` (verified) on inputs[i], one for each of its inputs; the caller keeps their
// ownership. Fills outputs[i], which must be zeroed before. The caller owns the references in
// outputs[], even after a failure. The graph is not changed, so several threads may run it at the
// same time.
//
// INF_INVALID    values that an operator does not accept, or shapes that do not fit.
// INF_EXHAUSTED  INF_LIMIT_LOOP_ITERATIONS, INF_LIMIT_DYNAMIC_BYTES, or memory.
// INF_CANCELLED
enum inf_code inf_interpret(struct inf_interpreter *interpreter, const struct inf_graph *graph,
                            const struct inf_tensor *inputs, struct inf_tensor *outputs,
                            struct inf_error *err) INF_NODISCARD;

#endif
