// SPDX-License-Identifier: Apache-2.0
// Remembers slow requests in the slow log and writes log lines about them.
#ifndef INF_DAEMON_SERVICE_REPORT_SLOW_H
#define INF_DAEMON_SERVICE_REPORT_SLOW_H

#include "daemon/service/state.h"

// Remembers an answered inference if inf_slow_log_wants() it, and writes a log line if it took at
// least slow_ms.
void inf_service_note_duration(struct inf_service *service, const struct inf_job *job,
                               const struct inf_metrics_answer *answer,
                               uint64_t now_ns) INF_ON_LOOP;

#endif
