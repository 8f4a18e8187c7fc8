// SPDX-License-Identifier: Apache-2.0
// What inferctl inspect shows beyond check: the graph after the passes, and each device's plan,
// step by step.
#ifndef INF_DAEMON_CHECK_INSPECT_H
#define INF_DAEMON_CHECK_INSPECT_H

#include <jansson.h>

#include "backends/exec/executable.h"

// The text form of a graph as a JSON string; NULL without memory. The caller's.
json_t *inf_inspect_graph(const struct inf_graph *graph);

// A plan as a list of steps: node, operator, device and where each output lies. NULL without
// memory. The caller's.
json_t *inf_inspect_plan(const struct inf_executable *executable);

// Prints what inf_inspect_plan() made, a line a step.
void inf_inspect_print_plan(const json_t *plan);

#endif
