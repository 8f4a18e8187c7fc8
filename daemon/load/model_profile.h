// SPDX-License-Identifier: Apache-2.0
// Facts about a model on the device that it was placed on: node sizes, which rules of thumb for
// choosing a device use, and the operators that the device leaves to other devices. Collected on
// the loader thread, and constant afterwards.
#ifndef INF_DAEMON_LOAD_MODEL_PROFILE_H
#define INF_DAEMON_LOAD_MODEL_PROFILE_H

#include "backends/exec/model/model.h"

// The most kinds of declined nodes that are listed; further ones are ignored.
#define INF_PROFILE_DECLINED 16

// A kind of operator that the device declines.
struct inf_declined {
    const char *op; // name of the operator; static
    uint32_t nodes;
    // The device that runs these nodes instead; borrowed from the model's hosts.
    struct inf_device *device;
    char reason[160]; // why the first such node was declined
};

struct inf_model_profile {
    uint64_t macs, const_bytes;
    uint32_t steps; // steps of the plan
    // Nodes that the interpreter runs one by one, because their sizes depend on computed values.
    uint32_t interpreted;
    // Number of nodes whose inputs all have fewer elements than INF_PRIOR_HANDOFF_WEBGL or
    // INF_PRIOR_HANDOFF_WEBGPU, the sizes below which TensorFlow.js runs a node on the CPU.
    uint32_t small_webgl, small_webgpu;
    uint32_t declined_count;
    struct inf_declined declined[INF_PROFILE_DECLINED];
};

// Collects the facts from `executable`, which runs on `device`. `hosts` are the devices that the
// model may fall back on.
void inf_model_profile_read(struct inf_model_profile *facts,
                            const struct inf_executable *executable, struct inf_device *device,
                            struct inf_device *const *hosts, uint32_t host_count);

#endif
