// SPDX-License-Identifier: Apache-2.0
// Measures the run time of a model in this process. `inferctl bench --direct` compares it with the
// time of requests to the daemon.
#ifndef INF_DAEMON_CHECK_TIME_RUNS_H
#define INF_DAEMON_CHECK_TIME_RUNS_H

#include <jansson.h>

#include "backends/exec/model/model.h"
#include "backends/registry.h"

struct inf_time_wanted {
    uint32_t runs;      // number of timed runs, without the warm-up runs; 0: do not time the model
    const char *device; // name of the device; NULL: the first device
    // Input shapes, in the notation of daemon/model/shapes.h; NULL: the shapes that the model
    // declares.
    const char *shapes;
    struct inf_run_options options;
};

// Runs the model on zeros, one run after the other, and adds to `report` the times, the device and
// its threads.
//
// INF_NOT_FOUND  (NO_DEVICE) there is no such device; the text lists them.
// INF_INVALID    the size of an output depends on values.
// INF_EXHAUSTED  memory.
enum inf_code inf_check_time(json_t *report, struct inf_model *model,
                             const struct inf_device_list *devices,
                             const struct inf_time_wanted *wanted,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
