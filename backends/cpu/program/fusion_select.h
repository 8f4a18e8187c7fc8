// SPDX-License-Identifier: Apache-2.0
// At which level of fusion (backends/cpu/native/fusion.h) the nodes of a fused group are computed:
// the largest possible
// steps by rule, or the level that won a race for this kind of group.
#ifndef INF_BACKENDS_CPU_PROGRAM_FUSION_SELECT_H
#define INF_BACKENDS_CPU_PROGRAM_FUSION_SELECT_H

#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/device.h"

// The static name of a level: "nodes", "chains" or "pipelines".
const char *inf_cpu_fusion_level_name(enum inf_cpu_fusion_level level);

// Returns the key of the race for `group` at `level`: it covers the threads, the precision, the
// nodes and how they read
// each other.
uint64_t inf_cpu_fusion_key(const struct inf_cpu_device *device, const struct inf_segment *segment,
                            const struct inf_cpu_group *group, enum inf_cpu_fusion_level level);

// Returns true if `node` belongs to a group of `level` that is computed as one step: no race was
// run for its kind, or
// that level won.
bool inf_cpu_fusion_applies(const struct inf_cpu_device *device, const struct inf_segment *segment,
                            uint32_t node, enum inf_cpu_fusion_level level);

// Returns the level at which `node` of the segment is computed. The answer is final only after
// inf_cpu_fusion_race_segment().
enum inf_cpu_fusion_level inf_cpu_fusion_level_of(const struct inf_cpu_device *device,
                                                  const struct inf_segment *segment, uint32_t node);

// The `fused_into` entry of struct inf_backend: the node whose step computes `node`; INF_NODE_NONE
// if `node` has a step
// of its own.
uint32_t inf_cpu_fusion_fused_into(struct inf_device *device, const struct inf_segment *segment,
                                   uint32_t node);

#endif
