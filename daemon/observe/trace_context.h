// SPDX-License-Identifier: Apache-2.0
// The trace context of a request, as in W3C Trace Context: which trace the request belongs to, and
// which span of the client caused it.
#ifndef INF_DAEMON_OBSERVE_TRACE_CONTEXT_H
#define INF_DAEMON_OBSERVE_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/limits.h"

#define INF_TRACE_ID_BYTES 16u
#define INF_SPAN_ID_BYTES  8u

struct inf_trace_context {
    bool recorded; // spans of the request are written; the fields below are set
    uint8_t trace_id[INF_TRACE_ID_BYTES];
    uint8_t parent_id[INF_SPAN_ID_BYTES];  // span of the client; all 0: none
    uint64_t span_id;                      // span of the request in the daemon; the next numbers
                                           // are those of its child spans
    char state[INF_LIMIT_TRACE_STATE + 1]; // tracestate of the client; "": none
};

// Parses a traceparent into the members trace_id and parent_id, and *sampled, the decision of the
// client. Returns false if the text is malformed; W3C Trace Context demands that it is then
// ignored.
bool inf_trace_context_parse(struct inf_trace_context *context, const char *traceparent,
                             bool *sampled);

// Copies a tracestate. One that has a character that is not printable ASCII is left out.
void inf_trace_context_set_state(struct inf_trace_context *context, const char *tracestate);

#endif
