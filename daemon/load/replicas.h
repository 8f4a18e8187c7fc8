// SPDX-License-Identifier: Apache-2.0
// Further devices that a model may run on: those that its settings name beside its own, to which a
// request goes that would be done earlier there.
#ifndef INF_DAEMON_LOAD_REPLICAS_H
#define INF_DAEMON_LOAD_REPLICAS_H

#include "backends/base/log.h"
#include "backends/exec/model/model.h"
#include "backends/registry.h"
#include "daemon/load/warm_plan.h"

// Devices times sets of shapes that are remembered.
#define INF_REPLICAS_MAX 32

// Immutable once the model is served.
struct inf_replicas {
    uint32_t count; // 0: it runs on its own device only
    struct inf_replica {
        uint32_t device_index; // in the list of devices
        uint64_t key;    // of the shapes it was compiled for there (daemon/policy/run_estimate.h)
        uint64_t run_ns; // what a run took there when the model was loaded
    } entries[INF_REPLICAS_MAX];
};

// What is spread, and over what.
struct inf_replicas_subject {
    const char *name; // the model's, for logs
    const void *key;  // what tells the model apart in keys
    struct inf_model *model;
    const struct inf_device *main_device; // where it runs anyway
    const char *names;                    // comma-separated devices
    const struct inf_device_list *devices;
    const struct inf_warm_plan *plan;
    const struct inf_log *log;
};

// Compiles a new model for the sets of the plan on each of the named devices but its own, and runs
// it there to see how long that takes. What a device cannot do is logged and left out.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no such device; the text lists those there are.
enum inf_code inf_replicas_warm_up(struct inf_replicas *replicas,
                                   const struct inf_replicas_subject *subject,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
