// SPDX-License-Identifier: Apache-2.0
// Fills the timeline while an admin reads it, and prints it as the topic "timeline" of a report.
#ifndef INF_DAEMON_SERVICE_REPORT_TIMELINE_H
#define INF_DAEMON_SERVICE_REPORT_TIMELINE_H

#include "daemon/observe/timeline.h"
#include "daemon/service/report/report.h"

// Adds a request to the timeline.
void inf_service_note_timeline(struct inf_service *service,
                               const struct inf_request_record *record) INF_ON_LOOP;

// Prints the recorded entries that were not printed before, and removes them from the timeline. The
// first call of a client starts the recording.
//
// INF_DENIED  the reader is no admin.
// INF_EXISTS  another client records.
enum inf_code inf_service_print_timeline(struct inf_service *service,
                                         const struct inf_report_reader *reader,
                                         struct inf_report_text *report,
                                         struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

#endif
