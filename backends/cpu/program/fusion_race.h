// SPDX-License-Identifier: Apache-2.0
// Timing comparisons ("races") between levels of fusion. A fused group is compiled as one step, and
// as the smaller steps of the next lower level. Both programs are timed with operands of zeros.
#ifndef INF_BACKENDS_CPU_PROGRAM_FUSION_RACE_H
#define INF_BACKENDS_CPU_PROGRAM_FUSION_RACE_H

#include "backends/base/role.h"
#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/device.h"

// A timing comparison for a group has two candidates: two levels of fusion.
#define INF_CPU_FUSION_CANDIDATES 2u

// The `settle` function of struct inf_backend. Decides the fusion level of every fused group of the
// segment that has no recorded winner. A row pipeline is timed against its chains computed one by
// one. A chain that is in no pipeline is timed against its nodes computed one by one.
void inf_cpu_fusion_race_segment(struct inf_device *device,
                                 const struct inf_segment *segment) INF_MAY_BLOCK;

// Times the nodes of `group`, which belong to `segment`, at fusion level `level` and at the next
// lower level. Fills `candidates` with the names of the levels and their times. Each candidate is a
// program on slot 0 of the device. The two run in turn, for at most about 20 ms. The time of a
// candidate that fails is 0.
//
// INF_EXHAUSTED  no memory for operands.
enum inf_code
inf_cpu_fusion_race_levels(struct inf_cpu_candidate candidates[INF_CPU_FUSION_CANDIDATES],
                           struct inf_cpu_device *device, const struct inf_segment *segment,
                           const struct inf_cpu_group *group, enum inf_cpu_fusion_level level,
                           struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
