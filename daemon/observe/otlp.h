// SPDX-License-Identifier: Apache-2.0
// Spans of requests as OTLP/JSON: the messages of OpenTelemetry's protocol, one in a line, which
// its collector reads from files (receiver otlpjsonfile).
#ifndef INF_DAEMON_OBSERVE_OTLP_H
#define INF_DAEMON_OBSERVE_OTLP_H

#include <stddef.h>

#include "daemon/observe/request_record.h"

// The most bytes of a line. Five spans with the longest names, and a tracestate of quotation marks
// only, need less.
#define INF_OTLP_LINE_BYTES ((size_t)12 << 10)

// What the lines of a daemon have in common.
struct inf_otlp_source {
    const char *version;    // of the daemon
    int64_t wall_offset_ns; // is added to times of inf_clock_ns() to get times since 1970
    int process;
};

// Writes the spans of a request as one line with a final line end, and returns its size; 0 if it
// does not fit. The spans are "infer MODEL" (kind server), and below it "queue", "batch" with
// "device" below it, and "write"; those that the request did not reach are left out.
size_t inf_otlp_print_line(const struct inf_request_record *record,
                           const struct inf_otlp_source *source, char line[INF_OTLP_LINE_BYTES]);

#endif
