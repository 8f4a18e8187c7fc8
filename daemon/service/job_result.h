// SPDX-License-Identifier: Apache-2.0
// What happens when an inference is done: the answer, and what it says about the model.
#ifndef INF_DAEMON_SERVICE_JOB_RESULT_H
#define INF_DAEMON_SERVICE_JOB_RESULT_H

#include "daemon/service/state.h"

// Makes the answer of a job that is done.
enum inf_code inf_service_job_result(struct inf_service *service, struct inf_job *job,
                                     struct inf_answer *answer,
                                     struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Updates what is known about the model after a job was answered with its result, by the loop or a
// worker: counters, latency, result guard, shadow check, shapes.
void inf_service_note_job(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

#endif
