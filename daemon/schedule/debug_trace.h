// SPDX-License-Identifier: Apache-2.0
// A request in debug mode: run once more with every value kept, a line in the log for each node.
#ifndef INF_DAEMON_SCHEDULE_DEBUG_TRACE_H
#define INF_DAEMON_SCHEDULE_DEBUG_TRACE_H

#include "daemon/load/inspect.h"
#include "daemon/load/served.h"

// What is to be run. All of it is borrowed.
struct inf_trace_subject {
    struct inf_served *served;
    struct inf_device *device;
    enum inf_precision precision; // of its answer
    const char *request_id;       // "": it has none
    const struct inf_shape *shapes;
    struct inf_blob *const *inputs; // by the model's order
    uint32_t input_count;
};

// Runs it, and logs for each node its name, operator, kernel, time, the shapes and bytes of what it makes
// and takes, how far its values reach, how many of them are NaN or infinite and whether those were made
// there; then a line for all of it. Where the model cannot be looked into, one line says why.
void inf_trace_log(const struct inf_trace_subject *subject,
                   const struct inf_log *log) INF_MAY_BLOCK;

#endif
