// SPDX-License-Identifier: Apache-2.0
// Running a graph whose shapes hang on values: constant folding at run time. Node by node, shapes are
// inferred from the actual inputs, memory is allocated and an evaluator computes. Branches and loops
// run their subgraphs in the same way. Slow and general: what can be planned is planned, and this
// does the rest.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_INTERPRET_H
#define INF_BACKENDS_EXEC_DYNAMIC_INTERPRET_H

#include <stdatomic.h>

#include "backends/graph/pass/pass.h"

struct inf_node_programs;
struct inf_subgraph_programs;
struct inf_scratch_cache;

// A tensor with its data. All zero is none.
struct inf_tensor {
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_blob *data; // one reference is the tensor's
};

// One run.
struct inf_interpreter {
    const struct inf_evaluator *evaluator;     // with measure()
    const atomic_bool *cancelled;              // NULL, or looked at between nodes
    uint64_t bytes;                            // in use now; 0 to begin with
    const struct inf_subgraph_programs *sides; // subgraphs that are compiled; NULL: none
    struct inf_node_programs *programs;        // of nodes; NULL: the evaluator computes all
    uint32_t slot;                             // that those run in
    struct inf_scratch_cache *scratch_cache;   // of the slot
};

// Runs `graph` (verified) on inputs[i], one for each of its inputs, which stay the caller's, and
// fills outputs[i], all zero before, whose references become the caller's, on failure too. The graph
// is not changed, so many may run it at once.
//
// INF_INVALID    values that an operator cannot mean, shapes that do not fit.
// INF_EXHAUSTED  INF_LIMIT_LOOP_ITERATIONS, INF_LIMIT_DYNAMIC_BYTES, or memory.
// INF_CANCELLED
enum inf_code inf_interpret(struct inf_interpreter *interpreter, const struct inf_graph *graph,
                            const struct inf_tensor *inputs, struct inf_tensor *outputs,
                            struct inf_error *err) INF_NODISCARD;

// *out_blob = memory for a tensor of the run, named in errors; the run's bytes grow by it.
//
// INF_EXHAUSTED  INF_LIMIT_DYNAMIC_BYTES, or memory.
enum inf_code inf_interpreter_create_blob(struct inf_interpreter *interpreter, const char *name,
                                          size_t size_bytes, struct inf_blob **out_blob,
                                          struct inf_error *err) INF_NODISCARD;

// Drops the reference and makes the tensor none.
void inf_tensor_clear(struct inf_tensor *tensor);

#endif
