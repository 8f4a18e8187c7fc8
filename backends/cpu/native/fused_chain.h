// SPDX-License-Identifier: Apache-2.0
// Steps that compute one fused chain (fusion.h).
#ifndef INF_BACKENDS_CPU_NATIVE_FUSED_CHAIN_H
#define INF_BACKENDS_CPU_NATIVE_FUSED_CHAIN_H

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/native/fusion.h"

// Creates the step of a chain.
enum inf_code inf_fused_chain_create(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                     struct inf_error *err) INF_NODISCARD;

#endif
