// SPDX-License-Identifier: Apache-2.0
// Records of inferences that have ended, for the access log and the traces.
#ifndef INF_DAEMON_SERVICE_REPORT_RECORD_H
#define INF_DAEMON_SERVICE_REPORT_RECORD_H

#include "daemon/service/state.h"

// Returns whether anything uses the record of this job. Called for every inference, so it is cheap.
bool inf_service_wants_record(const struct inf_service *service,
                              const struct inf_job *job) INF_ON_LOOP;

// Fills a record from a job that a worker has finished, or that waits in a queue or runs. Of a job
// that runs, only what the loop has set is read.
void inf_service_fill_record(struct inf_service *service, const struct inf_job *job,
                             struct inf_request_record *record) INF_ON_LOOP;

// Sets the outcome of a record, and passes the record on to everything that uses it. `err` is NULL
// or has code INF_OK if the inference was answered with its result.
void inf_service_note_record(struct inf_service *service, struct inf_request_record *record,
                             const struct inf_error *err) INF_ON_LOOP;

#endif
