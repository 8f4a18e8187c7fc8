// SPDX-License-Identifier: Apache-2.0
// The state of one load, which the files of the load share. Only load.c and the files of this
// folder include it.
#ifndef INF_DAEMON_LOAD_SOURCE_LOAD_STATE_H
#define INF_DAEMON_LOAD_SOURCE_LOAD_STATE_H

#include "backends/import/import.h"
#include "daemon/load/kept_plan.h"
#include "daemon/load/load_job.h"
#include "daemon/load/source/read_files.h"
#include "daemon/model/devices.h"
#include "daemon/model/repository.h"
#include "daemon/model/repository_save.h"

struct inf_load {
    struct inf_load_job *job;
    uint64_t plan_key;   // key of the plan of the model; 0: plans are not kept
    bool from_plan;      // the graph is that of a plan, `kept`
    bool plan_was_ahead; // the plan was made ahead, and is not in the cache
    struct inf_kept_plan kept;
    // Key of the model's files and of this build in the journal of loads; 0: nothing was noted.
    uint64_t journal_key;
    uint64_t hang_key; // likewise for runs of the model; 0: none
    // The job whose cancellation ends the load: `job`, or, if this is the load of a further
    // signature, the job of the whole file.
    const struct inf_load_job *order;
    const struct inf_load_options *options;
    const struct inf_load_progress_sink *progress;
    struct inf_model_location location;
    // The files that the load reads. Owned by the load of the whole file, also in the loads of
    // further signatures. NULL: the model is placed again, and its directory is not open.
    struct inf_read_files *files;
    struct inf_model_config config;
    struct inf_allow_rules allow; // rules for allowed devices; the texts in them belong to `config`
    struct inf_device *pinned; // the device that the settings name, borrowed; NULL: choose the best
    struct inf_graph *graph;
    struct inf_model_info info;
    uint64_t file_hash;                        // hash of the model file, without its signature
    struct inf_model_description *description; // of the model file; one reference; NULL: none
    // Format of the model file, such as "inferd_tfjs_graph_model".
    char platform[40];
    struct inf_served *served;
    bool is_saved; // the load has put the model into the repository
    struct inf_repository_save saved;
};

#endif
