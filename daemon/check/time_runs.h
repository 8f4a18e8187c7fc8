// SPDX-License-Identifier: Apache-2.0
// How long a model's runs take in this process: what inferctl bench --direct sets beside the
// daemon's answers.
#ifndef INF_DAEMON_CHECK_TIME_RUNS_H
#define INF_DAEMON_CHECK_TIME_RUNS_H

#include <jansson.h>

#include "backends/exec/model/model.h"
#include "backends/registry.h"

struct inf_time_wanted {
    uint32_t runs;      // beside some to warm up; 0: nothing is to be timed
    const char *device; // NULL: the first
    const char *shapes; // as daemon/model/shapes.h has them; NULL: the model's own
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
