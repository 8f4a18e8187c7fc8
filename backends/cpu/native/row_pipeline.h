// SPDX-License-Identifier: Apache-2.0
// Steps that compute a row pipeline (several fused chains, see fusion.h). Each chain computes a few
// rows at a time, which the next chain reads from a ring buffer.
#ifndef INF_BACKENDS_CPU_NATIVE_ROW_PIPELINE_H
#define INF_BACKENDS_CPU_NATIVE_ROW_PIPELINE_H

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/native/fusion.h"

// Creates the step of a pipeline.
enum inf_code inf_row_pipeline_create(struct inf_cpu_step *step,
                                      const struct inf_cpu_row_pipeline *pipeline,
                                      struct inf_error *err) INF_NODISCARD;

#endif
