// SPDX-License-Identifier: Apache-2.0
// Compiled branches and loop bodies. The interpreter runs such a subgraph as a whole if the shapes
// of its inputs are the shapes for which it was compiled.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_SUBGRAPH_PROGRAMS_H
#define INF_BACKENDS_EXEC_DYNAMIC_SUBGRAPH_PROGRAMS_H

#include <stdatomic.h>

#include "backends/base/role.h"
#include "backends/exec/dynamic/tensor.h"

struct inf_constants;
struct inf_device;
struct inf_evaluator;
struct inf_executable;
struct inf_executable_memory;
struct inf_run_options;
struct inf_subgraph_programs;

// How subgraphs are compiled. Read during inf_subgraph_programs_create() only.
struct inf_subgraph_compiler {
    // Set to inf_dynamic_executable_create(). That module uses this one, so the function is passed
    // as a pointer to avoid a cyclic dependency.
    enum inf_code (*create)(struct inf_executable **out_executable, struct inf_graph **graph,
                            const struct inf_evaluator *evaluator,
                            struct inf_device *const *devices, uint32_t device_count,
                            const struct inf_run_options *options, struct inf_error *err);
    const struct inf_evaluator *evaluator;
    struct inf_device *const *devices; // subgraphs are compiled for the first one
    uint32_t device_count;
    const struct inf_run_options *options; // `cancelled` is also checked before each subgraph
};

// Compiles the subgraphs of `graph`, which must outlive the result. Subgraphs with unknown input
// shapes, small subgraphs, and subgraphs that no device can compile are left out.
//
// INF_EXHAUSTED  no memory.
// INF_CANCELLED  *compiler->options->cancelled became true.
enum inf_code inf_subgraph_programs_create(struct inf_subgraph_programs **out_programs,
                                           const struct inf_graph *graph,
                                           const struct inf_subgraph_compiler *compiler,
                                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the compiled subgraphs. NULL is allowed.
void inf_subgraph_programs_destroy(struct inf_subgraph_programs **programs);

// Returns true if `subgraph` is compiled for inputs with these types and shapes, one for each
// input.
bool inf_subgraph_programs_fit(const struct inf_subgraph_programs *programs,
                               const struct inf_graph *subgraph, const struct inf_tensor *inputs);

// One run of a subgraph.
struct inf_subgraph_run {
    const struct inf_graph *subgraph;
    const struct inf_tensor *inputs; // one for each input of the subgraph; borrowed
    // One for each output, zeroed before the call; owned by the caller.
    struct inf_tensor *outputs;
    uint32_t slot;
    const atomic_bool *cancelled;     // checked between steps; NULL: the run cannot be cancelled
    struct inf_run_step *step;        // receives the name of each node; may be NULL
    struct inf_tensor_memory *memory; // memory from which outputs are allocated
    struct inf_string_pool *strings;  // strings that the run makes; NULL: it must make none
    struct inf_core_use *core_use;    // receives the cores of the run; may be NULL
};

// Runs a subgraph for which inf_subgraph_programs_fit() returned true.
//
// INF_INVALID, INF_EXHAUSTED, INF_CANCELLED  as inf_interpret().
enum inf_code inf_subgraph_programs_run(const struct inf_subgraph_programs *programs,
                                        const struct inf_subgraph_run *run,
                                        struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Adds the weight and buffer bytes of all compiled subgraphs to *memory.
void inf_subgraph_programs_add_own_memory(const struct inf_subgraph_programs *programs,
                                          struct inf_executable_memory *memory);

// Lists the constants of all subgraphs of `graph`, which is interpreted. For compiled subgraphs
// this is done by inf_executable_list_constants(); constants of other subgraphs are listed as read.
enum inf_code inf_subgraph_programs_list_constants(const struct inf_subgraph_programs *programs,
                                                   const struct inf_graph *graph,
                                                   struct inf_constants *constants,
                                                   struct inf_error *err) INF_NODISCARD;

// Returns true if a compiled subgraph can never run again because its device was lost.
bool inf_subgraph_programs_lost(const struct inf_subgraph_programs *programs);

#endif
