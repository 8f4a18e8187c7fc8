// SPDX-License-Identifier: Apache-2.0
// Selects the level of fusion (backends/cpu/native/fusion.h) for the nodes of a fused group. The
// level is the winner of a timing comparison for this kind of group. Without a comparison, steps
// are as large as possible.
#ifndef INF_BACKENDS_CPU_PROGRAM_FUSION_SELECT_H
#define INF_BACKENDS_CPU_PROGRAM_FUSION_SELECT_H

#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/device.h"

// Returns the name of a fusion level, a static string: "nodes", "chains" or "pipelines".
const char *inf_cpu_fusion_level_name(enum inf_cpu_fusion_level level);

// Returns the key under which the timing comparison for `group` at `level` is recorded. The key
// covers the threads, the precision, the nodes, and which node reads the result of which.
uint64_t inf_cpu_fusion_key(const struct inf_cpu_device *device, const struct inf_segment *segment,
                            const struct inf_cpu_group *group, enum inf_cpu_fusion_level level);

// Returns true if `node` belongs to a group of fusion level `level` and this group is computed as
// one step. This is so if `level` won the timing comparison for this kind of group, or if there was
// none.
bool inf_cpu_fusion_applies(const struct inf_cpu_device *device, const struct inf_segment *segment,
                            uint32_t node, enum inf_cpu_fusion_level level);

// Returns the level of fusion at which `node` of the segment is computed. The result is final only
// after inf_cpu_fusion_race_segment().
enum inf_cpu_fusion_level inf_cpu_fusion_level_of(const struct inf_cpu_device *device,
                                                  const struct inf_segment *segment, uint32_t node);

// The `fused_into` function of struct inf_backend. Returns the node whose step also computes
// `node`; INF_NODE_NONE if `node` has its own step.
uint32_t inf_cpu_fusion_fused_into(struct inf_device *device, const struct inf_segment *segment,
                                   uint32_t node);

#endif
