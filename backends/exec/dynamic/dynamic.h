// SPDX-License-Identifier: Apache-2.0
// Graphs in which some shapes hang on values: what hangs on none of them is planned and compiled as
// usual and runs first; the rest is interpreted. Behind executable.h, which users see.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_DYNAMIC_H
#define INF_BACKENDS_EXEC_DYNAMIC_DYNAMIC_H

#include "backends/exec/executable.h"
#include "backends/graph/pass/pass.h"

struct inf_dynamic;

// Whether a graph whose inputs' shapes are bound has nodes that cannot be planned.
bool inf_graph_needs_values(const struct inf_graph *graph);

// Splits `graph`, which stays the caller's and must outlive this, and compiles what can be. The
// evaluator's tables must be static; it is copied.
//
// INF_UNSUPPORTED, INF_EXHAUSTED  as inf_executable_create().
enum inf_code inf_dynamic_create(struct inf_dynamic **out_dynamic, const struct inf_graph *graph,
                                 const struct inf_evaluator *evaluator,
                                 struct inf_device *const *devices, uint32_t device_count,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees it. NULL is fine.
void inf_dynamic_destroy(struct inf_dynamic **dynamic);

// As inf_executable_run().
enum inf_code inf_dynamic_run(struct inf_dynamic *dynamic, const struct inf_execution *execution,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// As inf_executable_result().
bool inf_dynamic_result(const struct inf_dynamic *dynamic, uint32_t slot, uint32_t output,
                        struct inf_result *result);

// As inf_executable_drop_results().
void inf_dynamic_drop_results(struct inf_dynamic *dynamic, uint32_t slot);

// As inf_executable_add_own_memory().
void inf_dynamic_add_own_memory(const struct inf_dynamic *dynamic,
                                struct inf_executable_memory *memory);

// As inf_executable_list_constants(), but for the whole graph's.
enum inf_code inf_dynamic_list_constants(const struct inf_dynamic *dynamic,
                                         struct inf_constants *constants,
                                         struct inf_error *err) INF_NODISCARD;

// As inf_executable_lost().
bool inf_dynamic_lost(const struct inf_dynamic *dynamic);

// The executable of the part that runs first. Valid as long as this.
const struct inf_executable *inf_dynamic_planned(const struct inf_dynamic *dynamic);

// The index, in the whole graph, of a node of that part.
uint32_t inf_dynamic_planned_node(const struct inf_dynamic *dynamic, uint32_t node);

#endif
