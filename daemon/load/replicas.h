// SPDX-License-Identifier: Apache-2.0
// Replicas: additional devices for one model, which its settings name after the main device. A
// request runs on the device where it is expected to finish first.
#ifndef INF_DAEMON_LOAD_REPLICAS_H
#define INF_DAEMON_LOAD_REPLICAS_H

#include "backends/base/log.h"
#include "backends/exec/model/model.h"
#include "backends/registry.h"
#include "daemon/load/warm_plan.h"

// The most replicas of a model, counting each combination of a device and a set of shapes.
#define INF_REPLICAS_MAX 32

// The replicas of a model. Immutable once the model is served.
struct inf_replicas {
    // Number of used elements of `entries`; 0: the model runs on its main device only.
    uint32_t count;
    struct inf_replica {
        uint32_t device_index; // index of the device in the device list
        uint64_t key;          // estimate key of the shapes (daemon/policy/run_estimate.h)
        uint64_t run_ns;       // run time on this device, measured at load
    } entries[INF_REPLICAS_MAX];
};

// The model that gets replicas, and their devices.
struct inf_replicas_subject {
    const char *name; // name of the model, for logs
    const void *key;  // identifies the model in the keys of run-time estimates (inf_estimate_key())
    struct inf_model *model;
    const struct inf_device *main_device; // the device that the model is placed on
    // The replica devices that the settings name, separated by commas.
    const char *names;
    const struct inf_device_list *devices;
    const struct inf_warm_plan *plan;
    const struct inf_log *log;
};

// Compiles a new model for each shape set of the warm-up plan on each named device except the main
// one, and measures a run there. A device that cannot run the model is logged and left out.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no such device; the text lists the devices.
enum inf_code inf_replicas_warm_up(struct inf_replicas *replicas,
                                   const struct inf_replicas_subject *subject,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
