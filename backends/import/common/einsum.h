// SPDX-License-Identifier: Apache-2.0
// Einstein summation as nodes of the graph: transposes, reshapes, products and sums.
#ifndef INF_BACKENDS_IMPORT_COMMON_EINSUM_H
#define INF_BACKENDS_IMPORT_COMMON_EINSUM_H

#include "backends/graph/graph.h"

// Adds nodes for `equation`, such as "bij,bjk->bik", over `inputs` and infers their shapes. "..."
// and a missing "->" have the meaning that NumPy defines. The ranks of inputs must be known, and so
// must the sizes of axes if a letter occurs twice in one term.
//
// INF_INVALID      the equation does not match the inputs.
// INF_UNSUPPORTED  (OPERATOR) sizes are not known, or there are more than INF_LIMIT_RANK axes.
enum inf_code inf_graph_add_einsum(struct inf_graph *graph, const char *name, const char *equation,
                                   const uint32_t *inputs, uint32_t input_count,
                                   uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

#endif
