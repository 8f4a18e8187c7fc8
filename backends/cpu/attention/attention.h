// SPDX-License-Identifier: Apache-2.0
// The step that computes a whole attention.
#ifndef INF_BACKENDS_CPU_ATTENTION_ATTENTION_H
#define INF_BACKENDS_CPU_ATTENTION_ATTENTION_H

#include "backends/cpu/core/kernel.h"
#include "backends/device/attention_nodes.h"

// With fewer rows, or keys, the separate steps are faster: they need no packed copy of the keys.
#define INF_CPU_ATTENTION_LEAST 16u

// Creates the step of an attention. The step belongs to the last node.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_attention_create(struct inf_cpu_step *step,
                                       const struct inf_attention *attention,
                                       struct inf_error *err) INF_NODISCARD;

#endif
