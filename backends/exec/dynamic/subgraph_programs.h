// SPDX-License-Identifier: Apache-2.0
// Branches and loop bodies, compiled: what an interpreted node runs as a whole where the shapes it
// takes were known beforehand. Behind executable.h, which users see.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_SUBGRAPH_PROGRAMS_H
#define INF_BACKENDS_EXEC_DYNAMIC_SUBGRAPH_PROGRAMS_H

#include "backends/base/role.h"
#include "backends/exec/dynamic/interpret.h"

struct inf_constants;
struct inf_device;
struct inf_executable_memory;
struct inf_subgraph_programs;

// Compiles the subgraphs of `graph`, which must outlive this, for devices[0]; those whose inputs'
// shapes are not known, that are not worth it, or that the devices decline, are left out.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_subgraph_programs_create(struct inf_subgraph_programs **out_sides,
                                           const struct inf_graph *graph,
                                           const struct inf_evaluator *evaluator,
                                           struct inf_device *const *devices, uint32_t device_count,
                                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees them. NULL is fine.
void inf_subgraph_programs_destroy(struct inf_subgraph_programs **sides);

// Whether `subgraph` is compiled for inputs of these shapes.
bool inf_subgraph_programs_fit(const struct inf_subgraph_programs *sides,
                               const struct inf_graph *subgraph, const struct inf_tensor *inputs);

// Runs a subgraph that fits as inf_interpret() does, in the interpreter's slot.
enum inf_code inf_subgraph_programs_run(const struct inf_subgraph_programs *sides,
                                        struct inf_interpreter *interpreter,
                                        const struct inf_graph *subgraph,
                                        const struct inf_tensor *inputs, struct inf_tensor *outputs,
                                        struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// As inf_executable_add_own_memory(), for all of them.
void inf_subgraph_programs_add_own_memory(const struct inf_subgraph_programs *sides,
                                          struct inf_executable_memory *memory);

// As inf_executable_list_constants(), for the subgraphs of `graph`, which is interpreted: those that are
// compiled, and those that are not.
enum inf_code inf_subgraph_programs_list_constants(const struct inf_subgraph_programs *sides,
                                                   const struct inf_graph *graph,
                                                   struct inf_constants *constants,
                                                   struct inf_error *err) INF_NODISCARD;

// As inf_executable_lost().
bool inf_subgraph_programs_lost(const struct inf_subgraph_programs *sides);

#endif
