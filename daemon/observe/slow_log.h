// SPDX-License-Identifier: Apache-2.0
// Remembers slow requests: those that reached a threshold, and the slowest requests of the last
// hour in each series (model, version and device). Memory is bounded. Only the loop uses it.
#ifndef INF_DAEMON_OBSERVE_SLOW_LOG_H
#define INF_DAEMON_OBSERVE_SLOW_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "daemon/observe/metrics.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"
#include "proto/core/utf8.h"

// The number of requests over the threshold that are remembered; a new request replaces the oldest.
#define INF_SLOW_LOG_RECENT 128u
// The number of slowest requests that are remembered for each series.
#define INF_SLOW_LOG_SLOWEST 4u
// The most log lines about slow requests per minute, so that a slow device does not fill the log.
#define INF_SLOW_LOG_LINES 6u

// One request. Times are in nanoseconds.
struct inf_slow_request {
    uint64_t number;   // set by the log, which numbers its requests from 1
    uint64_t ended_ns; // when the request ended, on the clock of inf_clock_ns()
    char model[INF_LIMIT_MODEL_NAME + 1], version[INF_LIMIT_MODEL_NAME + 1], device[32];
    struct inf_quoted id; // id that the client gave the request
    uint32_t uid;
    uint64_t stream_id;
    uint64_t duration_ns;
    uint64_t queue_ns;   // time in the device queue
    uint64_t input_ns;   // time of copying inputs and waiting for the run to begin
    uint64_t compute_ns; // time of the run
    uint64_t output_ns;  // time of copying outputs and writing the reply
    uint64_t input_bytes, output_bytes;
    uint32_t rows, batch_rows;
    // Number of requests that the device was running when this one was queued, plus the number that
    // workers took between then and the start of this one.
    uint64_t ahead;
    uint32_t behind_uid; // user of the last request counted in `ahead`; valid if `ahead` is not 0
};

struct inf_slow_log;

// Creates an empty log. The caller destroys *out_log.
enum inf_code inf_slow_log_create(struct inf_slow_log **out_log,
                                  struct inf_error *err) INF_NODISCARD;

// Frees the log. NULL is allowed.
void inf_slow_log_destroy(struct inf_slow_log **log);

// Returns true if inf_slow_log_add() would remember a request of this series and duration. Called
// for every inference, so it must be cheap. If `threshold_ns` is 0, there is no threshold.
bool inf_slow_log_wants(const struct inf_slow_log *log, uint32_t series, uint64_t duration_ns,
                        uint64_t threshold_ns, uint64_t now_ns) INF_ON_LOOP;

// Remembers a request and sets its number. `over` is true if the duration reached the threshold.
void inf_slow_log_add(struct inf_slow_log *log, uint32_t series,
                      const struct inf_slow_request *request, bool over,
                      uint64_t now_ns) INF_ON_LOOP;

// Returns true if the caller is allowed to write one more log line about a slow request. Then
// *left_out is the number of lines that were refused since the previous allowed line.
bool inf_slow_log_may_write(struct inf_slow_log *log, uint64_t now_ns,
                            uint64_t *left_out) INF_ON_LOOP;

// Each call returns another remembered request: first the requests that reached the threshold,
// newest first, then the slowest requests of each series. No request is returned twice. *cursor is
// 0 for the first call, and is advanced. Returns NULL after the last request.
const struct inf_slow_request *inf_slow_log_next(const struct inf_slow_log *log, uint32_t *cursor,
                                                 uint64_t now_ns) INF_ON_LOOP;

#endif
