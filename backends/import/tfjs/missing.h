// SPDX-License-Identifier: Apache-2.0
// The unsupported operators of a model.
#ifndef INF_BACKENDS_IMPORT_TFJS_MISSING_H
#define INF_BACKENDS_IMPORT_TFJS_MISSING_H

#include <stdio.h>

#include "backends/import/tfjs/graph.h"

struct inf_tfjs_op;

// Returns the reason why operator `name` is not supported.
const char *inf_tfjs_missing_reason(const char *name);

// Fails if reachable nodes have operators that `find_op` does not find. The error text lists each
// operator with a node, its attributes and the reason. `report` (may be NULL) receives all of them,
// one per line.
//
// INF_UNSUPPORTED  (OPERATOR) at least one operator is unsupported.
enum inf_code inf_tfjs_missing_check(struct inf_tfjs_graph *graph,
                                     const struct inf_tfjs_op *(*find_op)(const char *name),
                                     FILE *report, struct inf_error *err) INF_NODISCARD;

#endif
