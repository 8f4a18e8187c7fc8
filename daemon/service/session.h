// SPDX-License-Identifier: Apache-2.0
// Requests of sessions: the session tensors that they read and write, and the order in which they
// run.
#ifndef INF_DAEMON_SERVICE_SESSION_H
#define INF_DAEMON_SERVICE_SESSION_H

#include "daemon/service/state.h"

// Binds the inputs and outputs of a job to the tensors of its session. These are the tensors that
// the request names, and those state pairs of the session that the model has and the request does
// not mention. Bit i of `given` is set if the request itself contains input i.
enum inf_code inf_service_join_session(struct inf_job *job, const struct inf_infer_request *infer,
                                       const struct inf_request *request, uint64_t given,
                                       struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Accepts a filled job of a session. The job is submitted at once, or after the jobs before it are
// over. On failure the caller still owns the job.
enum inf_code inf_service_enter_session(struct inf_service *service, struct inf_job *job,
                                        struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Removes a job from its session, whether it was accepted or not. If the session was running this
// job, its next job is submitted.
void inf_service_leave_session(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

// Makes the outputs that a finished job keeps the new values of the session's tensors.
enum inf_code inf_service_commit_session(struct inf_job *job,
                                         struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

#endif
