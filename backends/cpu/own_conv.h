// SPDX-License-Identifier: Apache-2.0
// Convolutions of our own, with what comes before and after them in a chain (fuse.h).
#ifndef INF_BACKENDS_CPU_OWN_CONV_H
#define INF_BACKENDS_CPU_OWN_CONV_H

#include "backends/cpu/fuse.h"
#include "backends/cpu/own.h"

// INF_UNSUPPORTED where this family does not compute the conv2d node.
enum inf_code inf_own_conv_check(const struct inf_graph *graph, const struct inf_node *node,
                                 struct inf_error *err) INF_NODISCARD;

// Whether the conv2d node's windows are single pixels, one after the other.
bool inf_own_conv_is_pointwise(const struct inf_graph *graph, const struct inf_node *node);

// Makes the step of a chain.
enum inf_code inf_own_chain_create(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                   struct inf_error *err) INF_NODISCARD;

#endif
