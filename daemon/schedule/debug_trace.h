// SPDX-License-Identifier: Apache-2.0
// Traces a request in debug mode: runs it again with every value kept, and logs a line for each
// node.
#ifndef INF_DAEMON_SCHEDULE_DEBUG_TRACE_H
#define INF_DAEMON_SCHEDULE_DEBUG_TRACE_H

#include "daemon/load/inspect.h"
#include "daemon/load/served.h"

// The request to be traced. All pointers are borrowed.
struct inf_trace_subject {
    struct inf_served *served;
    struct inf_device *device;
    enum inf_precision precision; // precision in which the original answer was computed
    const char *request_id;       // id that the client gave the request, for the log; "": none
    const struct inf_shape *shapes;
    struct inf_blob *const *inputs; // input tensors, in the order of the model
    uint32_t input_count;
};

// Runs the request again and logs one line for each node, and then a summary. A line has the node's
// name, operator, kernel, time, shapes, bytes and value range, and the number of NaN and infinite
// values together with whether this node produced them. If the model cannot be inspected, one line
// gives the reason.
void inf_trace_log(const struct inf_trace_subject *subject,
                   const struct inf_log *log) INF_MAY_BLOCK;

#endif
