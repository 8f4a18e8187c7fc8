// SPDX-License-Identifier: Apache-2.0
// Finds the readers of a reshape. Private to reshape.c.
#ifndef INF_BACKENDS_GRAPH_PASS_LAYOUT_READERS_H
#define INF_BACKENDS_GRAPH_PASS_LAYOUT_READERS_H

#include "backends/graph/pass/layout/writer.h"

// Finds transposes that read the result of the node `reshape` of the old list, directly or behind
// nodes that transposes pass. Returns the permutation of the first one; NULL if there is none
// nearby, or if its order would not save a copy: then each round of the pass would change the order
// back.
const struct inf_ints *inf_layout_find_reader_order(const struct inf_layout *layout,
                                                    const struct inf_node *reshape);

// Returns the matmul that is the only reader of the result of the node `reshape` of the old list,
// and multiplies it with a constant matrix; NULL if there is none nearby.
struct inf_node *inf_layout_find_product(const struct inf_layout *layout,
                                         const struct inf_node *reshape);

#endif
