// SPDX-License-Identifier: Apache-2.0
// Races between levels of fusion: a fused group is compiled as one step, and as the smaller steps
// of the next level, and
// both are timed with operands of zeros.
#ifndef INF_BACKENDS_CPU_PROGRAM_FUSION_RACE_H
#define INF_BACKENDS_CPU_PROGRAM_FUSION_RACE_H

#include "backends/base/role.h"
#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/device.h"

// The two levels that race for a group.
#define INF_CPU_FUSION_CANDIDATES 2u

// The `settle` entry of struct inf_backend: decides the level of every fused group of the segment
// that has no recorded
// winner. Row pipelines race against their chains; chains that are in no pipeline race against
// their nodes.
void inf_cpu_fusion_race_segment(struct inf_device *device,
                                 const struct inf_segment *segment) INF_MAY_BLOCK;

// Times the nodes of `group`, which belong to `segment`, at `level` and at the level below it.
// Fills `candidates` with
// the names of the levels and their times. Each candidate is a program on slot 0 of the device;
// both run in turn for at
// most about 20 ms. A candidate that fails keeps the time 0.
//
// INF_EXHAUSTED  no memory for operands.
enum inf_code
inf_cpu_fusion_race_levels(struct inf_cpu_candidate candidates[INF_CPU_FUSION_CANDIDATES],
                           struct inf_cpu_device *device, const struct inf_segment *segment,
                           const struct inf_cpu_group *group, enum inf_cpu_fusion_level level,
                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
