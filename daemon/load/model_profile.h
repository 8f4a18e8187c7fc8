// SPDX-License-Identifier: Apache-2.0
// What a model is made of on the device it was placed on: what rules of thumb go by, and what the
// device leaves to others. Found on the loader thread, fixed then.
#ifndef INF_DAEMON_LOAD_MODEL_PROFILE_H
#define INF_DAEMON_LOAD_MODEL_PROFILE_H

#include "backends/exec/model/model.h"

// Kinds of declined nodes that are kept; further ones are only counted.
#define INF_PROFILE_DECLINED 16

// An operator that the device does not run.
struct inf_declined {
    const char *op; // its name; static
    uint32_t nodes;
    struct inf_device *device; // who runs them; no reference: one of the model's hosts
    char reason[160];          // of the first such node
};

struct inf_model_profile {
    uint64_t macs, const_bytes;
    uint32_t steps;       // of the plan
    uint32_t interpreted; // nodes in no plan, since sizes hang on values
    // Nodes whose inputs all have less elements than INF_PRIOR_HANDOFF_WEBGL, and ..._WEBGPU.
    uint32_t small_webgl, small_webgpu;
    uint32_t declined_count;
    struct inf_declined declined[INF_PROFILE_DECLINED];
};

// Reads the facts off `executable`, which runs on `device`, a fact each. `hosts` are the devices
// that the model may fall back on.
void inf_model_profile_read(struct inf_model_profile *facts,
                            const struct inf_executable *executable, struct inf_device *device,
                            struct inf_device *const *hosts, uint32_t host_count);

#endif
