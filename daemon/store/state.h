// SPDX-License-Identifier: Apache-2.0
// The fields of the model store. Only the files of this folder include this header.
#ifndef INF_DAEMON_STORE_STATE_H
#define INF_DAEMON_STORE_STATE_H

#include "backends/base/idle_gate.h"
#include "daemon/load/loader.h"
#include "daemon/store/store.h"

struct inf_model_store {
    struct inf_loader *loader;
    // A second loader thread with low priority, which only runs races; its messages go through
    // `loader`.
    struct inf_loader *racer;
    struct inf_arena_budget arena_budget; // bounds the executables that requests make
    struct inf_idle_gate idle_gate;       // lets races run while no request is served
    uint32_t races;                       // number of races that are queued or running
    bool kernels_race;                    // one of them is a race of kernels
    const struct inf_log *log;
    const struct inf_device_list *devices;
    struct inf_device *default_device;       // borrowed; NULL: each model gets its best device
    struct inf_tune *tune;                   // used by the loader thread only
    struct inf_served_shapes *served_shapes; // used by the loader thread only
    struct inf_precision_results *precision_results; // used by the loader thread only
    struct inf_load_journal *journal;                // used by the loader thread only
    struct inf_persisted *persisted;                 // used by the loader thread only
    struct inf_model_uses *uses;                     // used by the loader thread only
    // How much models were used, when that was kept last; and when that was (0: at the start).
    struct inf_model_use_counts use_counts;
    uint64_t uses_kept_ns;
    uint64_t claim_failed_ns;     // last time at which a claim of memory was refused
    struct inf_plan_cache *plans; // used by the loader thread only
    struct inf_place_speeds speeds;
    struct inf_place_rules rules; // placement rules for future loads
    struct inf_model_table table;
    // If all loaded models together need more memory, idle ones are unloaded; 0: no limit.
    uint64_t model_bytes_max;
    bool standby; // models on a GPU are compiled for the device that takes over if it is lost
    struct inf_memory_budget *budget; // memory of the daemon; NULL: no limit
    uint32_t pending; // number of queued or running jobs: loads, scans, inspections, compilations
    uint32_t scans;   // number of jobs in `pending` that read the repository
    struct inf_model_store_counts counts;
};

#endif
