// SPDX-License-Identifier: Apache-2.0
// Steps that compute one fused chain (fusion.h).
#ifndef INF_BACKENDS_CPU_NATIVE_FUSED_CHAIN_H
#define INF_BACKENDS_CPU_NATIVE_FUSED_CHAIN_H

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/native/fusion.h"

// Creates the step of a chain.
enum inf_code inf_fused_chain_create(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                     struct inf_error *err) INF_NODISCARD;

// Returns a chain that consists only of the conv2d node `node`.
struct inf_cpu_chain inf_fused_chain_of_node(uint32_t node);

// Sets operand 0 of the step to the value that the first node of the chain reads, and operand 1 to
// the residual, if there is one.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_fused_chain_set_operands(struct inf_cpu_step *step,
                                           const struct inf_cpu_chain *chain,
                                           struct inf_error *err) INF_NODISCARD;

#endif
