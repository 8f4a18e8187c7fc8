// SPDX-License-Identifier: Apache-2.0
// Facts about a model on the device that it was placed on: node sizes, which rules of thumb for
// choosing a device use, and the operators that the device leaves to other devices. Collected on
// the loader thread, and constant afterwards.
#ifndef INF_DAEMON_LOAD_MODEL_PROFILE_H
#define INF_DAEMON_LOAD_MODEL_PROFILE_H

#include "backends/exec/model/model.h"

// The most operators that a profile lists as declined; further ones are left out.
#define INF_PROFILE_DECLINED 16

// An operator whose nodes the model's device declines, so that another device runs them.
struct inf_declined {
    const char *op; // name of the operator; static
    uint32_t nodes;
    // The device that runs these nodes instead; one of `hosts` in inf_model_profile_read().
    struct inf_device *device;
    char reason[160]; // why the device declines the first of these nodes
};

struct inf_model_profile {
    uint64_t macs, const_bytes;
    uint32_t steps; // number of steps of the plan
    // Nodes that the interpreter runs one by one, because their sizes depend on computed values.
    uint32_t interpreted;
    // Number of nodes whose inputs all have fewer elements than INF_PRIOR_HANDOFF_WEBGL or
    // INF_PRIOR_HANDOFF_WEBGPU, the sizes below which TensorFlow.js runs a node on the CPU.
    uint32_t small_webgl, small_webgpu;
    // Multiply-adds of the plan's nodes, and those of nodes that run on the reference device `ref`
    // although the model is placed on another device.
    uint64_t planned_macs, ref_macs;
    uint32_t declined_count;
    struct inf_declined declined[INF_PROFILE_DECLINED];
};

// Collects the facts from `executable`, which runs on `device`. `hosts` are the devices that the
// model may fall back on.
void inf_model_profile_read(struct inf_model_profile *facts,
                            const struct inf_executable *executable, struct inf_device *device,
                            struct inf_device *const *hosts, uint32_t host_count);

// Returns true if more than 1 % of the multiply-adds run on the reference device `ref`, which is
// many times slower than other devices. Writes to `text` which operators these are, how many nodes
// of each, and why the model's device declines the first one.
bool inf_model_profile_is_slow(const struct inf_model_profile *facts, char *text,
                               size_t size_bytes);

#endif
