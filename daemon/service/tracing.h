// SPDX-License-Identifier: Apache-2.0
// Chooses the requests whose spans are written, and opens what writes them.
#ifndef INF_DAEMON_SERVICE_TRACING_H
#define INF_DAEMON_SERVICE_TRACING_H

#include "daemon/service/state.h"

// Starts the writer of traces if the configuration names a file or a socket for them.
enum inf_code inf_service_open_traces(struct inf_service *service,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Sets job->trace: whether the request is traced, and its ids. A request with a well-formed
// traceparent is traced if the client samples it (and trace_parents is set), any other one at
// random (trace_rate). Costs nothing if traces are not written.
void inf_service_choose_tracing(struct inf_service *service, struct inf_job *job,
                                const char *traceparent, const char *tracestate) INF_ON_LOOP;

#endif
