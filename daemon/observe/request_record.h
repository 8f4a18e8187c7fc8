// SPDX-License-Identifier: Apache-2.0
// What is known about an inference that has ended: whose it was, where it ran, the time of each
// phase, and its outcome. A record holds no tensor, and no path of a client.
#ifndef INF_DAEMON_OBSERVE_REQUEST_RECORD_H
#define INF_DAEMON_OBSERVE_REQUEST_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/observe/trace_context.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// Times are in nanoseconds, on the clock of inf_clock_ns().
struct inf_request_record {
    uint64_t client_id, stream_id;
    uint32_t uid;
    char model[INF_LIMIT_MODEL_NAME + 1], version[INF_LIMIT_MODEL_NAME + 1], device[32];
    uint32_t device_index; // in the list of devices
    uint32_t rows;
    uint64_t accepted_ns;
    // The fields from `ran` to `done_ns` are set if a worker had finished the request.
    bool ran;
    uint32_t worker;           // number of the device's worker that ran the request
    uint32_t batch_rows;       // rows of the run, summed over the requests of the batch
    uint64_t start_ns;         // a worker took the request
    uint64_t begin_ns, end_ns; // the run of the model began and ended; 0: it did not run
    uint64_t done_ns;          // the worker was done with the request
    uint64_t ended_ns;         // the answer was given to the connection
    enum inf_code code;        // outcome
    enum inf_reason reason;
    struct inf_trace_context trace;
};

// Returns the time from `begin_ns` to `end_ns`; 0 if one of the times is not set.
static inline uint64_t inf_request_record_span_ns(uint64_t begin_ns, uint64_t end_ns)
{
    return begin_ns == 0 || end_ns < begin_ns ? 0 : end_ns - begin_ns;
}

#endif
