// SPDX-License-Identifier: Apache-2.0
// Ends an inference: makes its answer, and updates the statistics of its model.
#ifndef INF_DAEMON_SERVICE_JOB_RESULT_H
#define INF_DAEMON_SERVICE_JOB_RESULT_H

#include "daemon/service/state.h"

// Makes the answer to the client from the result of a finished job.
enum inf_code inf_service_job_result(struct inf_service *service, struct inf_job *job,
                                     struct inf_answer *answer,
                                     struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Updates the statistics of the model after the loop or a worker has answered a job with its
// result: counters, latency watch, result guard, shadow check and served shapes.
void inf_service_note_job(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

#endif
