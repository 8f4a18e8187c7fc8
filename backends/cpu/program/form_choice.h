// SPDX-License-Identifier: Apache-2.0
// Whether nodes that one step may compute are computed by one: by rule steps are as large as they may be
// (backends/cpu/native/fusion.h), or what won a race, once for each kind of chain and stream.
#ifndef INF_BACKENDS_CPU_PROGRAM_FORM_CHOICE_H
#define INF_BACKENDS_CPU_PROGRAM_FORM_CHOICE_H

#include "backends/base/role.h"
#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/program.h"

// The entries of struct inf_backend of the same names. Streams race against their chains one by one, and
// chains that are in no stream against their nodes.
void inf_cpu_settle(struct inf_device *device, const struct inf_segment *segment) INF_MAY_BLOCK;
uint32_t inf_cpu_fused_into_chosen(struct inf_device *device, const struct inf_segment *segment,
                                   uint32_t node);

// What `node` may be part of a step of, of a segment that was settled; by rule where nothing races.
enum inf_cpu_fusing inf_cpu_form_of(const struct inf_cpu_device *device,
                                    const struct inf_segment *segment, uint32_t node);

#endif
