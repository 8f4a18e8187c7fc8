// SPDX-License-Identifier: Apache-2.0
// Steps that compute several chains in turn, some rows of each: what lies between them stays in rings
// of rows near the core.
#ifndef INF_BACKENDS_CPU_NATIVE_ROW_PIPELINE_H
#define INF_BACKENDS_CPU_NATIVE_ROW_PIPELINE_H

#include "backends/cpu/core/kernel.h"
#include "backends/cpu/native/fusion.h"

// Makes the step of a stream.
enum inf_code inf_row_pipeline_create(struct inf_cpu_step *step,
                                      const struct inf_cpu_row_pipeline *stream,
                                      struct inf_error *err) INF_NODISCARD;

#endif
