// SPDX-License-Identifier: Apache-2.0
// The state of the store, for the files of this folder only.
#ifndef INF_DAEMON_STORE_STATE_H
#define INF_DAEMON_STORE_STATE_H

#include "backends/base/idle_gate.h"
#include "daemon/load/loader.h"
#include "daemon/store/table.h"

struct inf_model_store {
    struct inf_loader *loader;
    // A second loader thread with low priority, which only runs races; its messages go through
    // `loader`.
    struct inf_loader *racer;
    struct inf_idle_gate idle_gate; // open while no request is served
    uint32_t races;                 // races that are queued or running
    const struct inf_device_list *devices;
    struct inf_device *default_device;       // borrowed; NULL: choose the best device of each model
    struct inf_tune *tune;                   // used by the loader thread only
    struct inf_served_shapes *served_shapes; // used by the loader thread only
    struct inf_place_speeds speeds;
    struct inf_place_rules rules; // placement rules for future loads
    struct inf_model_table table;
    uint32_t pending; // number of queued or running jobs: loads, scans, inspections, compilations
    uint32_t scans;   // number of jobs in `pending` that read the repository
};

#endif
