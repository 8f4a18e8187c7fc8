// SPDX-License-Identifier: Apache-2.0
// Operators that are not built: which a model has, and why not.
#ifndef INF_BACKENDS_IMPORT_TFJS_MISSING_H
#define INF_BACKENDS_IMPORT_TFJS_MISSING_H

#include <stdio.h>

#include "backends/import/tfjs/graph.h"

struct inf_tfjs_op;

// Why the operator `name`, which has no row in the tables of lower.h, is not built.
const char *inf_tfjs_missing_reason(const char *name);

// Fails, naming all of them with a node, its attributes and the reason, where reachable nodes have
// operators that are not built. `report` (NULL allowed) gets all of them, a line each.
//
// INF_UNSUPPORTED  (OPERATOR) there are some.
enum inf_code inf_tfjs_missing_check(struct inf_tfjs_graph *graph,
                                     const struct inf_tfjs_op *(*find_op)(const char *name),
                                     FILE *report, struct inf_error *err) INF_NODISCARD;

#endif
