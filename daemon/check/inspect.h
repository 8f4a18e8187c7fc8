// SPDX-License-Identifier: Apache-2.0
// The additional report of `inferctl inspect`: the graph after the passes, and the plan of each
// device, step by step.
#ifndef INF_DAEMON_CHECK_INSPECT_H
#define INF_DAEMON_CHECK_INSPECT_H

#include <jansson.h>

#include "backends/exec/executable.h"

// Returns the text form of a graph as a JSON string, which the caller frees. NULL if memory is
// exhausted.
json_t *inf_inspect_graph(const struct inf_graph *graph);

// Returns a plan as a JSON list of steps: node, operator, device, and where each output is stored.
// The caller frees the list. NULL if memory is exhausted.
json_t *inf_inspect_plan(const struct inf_executable *executable);

// Prints the list of steps that inf_inspect_plan() returned, one line per step.
void inf_inspect_print_plan(const json_t *plan);

#endif
