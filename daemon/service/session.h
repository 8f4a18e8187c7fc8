// SPDX-License-Identifier: Apache-2.0
// Requests of sessions: the state that they read and write, and their order.
#ifndef INF_DAEMON_SERVICE_SESSION_H
#define INF_DAEMON_SERVICE_SESSION_H

#include "daemon/service/state.h"

// Binds the inputs and outputs of a job to the tensors of its session: those that the request
// names, and those of the session's state pairs that the model has and the request leaves out. Bit
// i of `given` is set if the request itself has input i.
enum inf_code inf_service_join_session(struct inf_job *job, const struct inf_infer_request *infer,
                                       const struct inf_request *request, uint64_t given,
                                       struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Accepts a filled job of a session. It is submitted at once, or when the jobs before it are over.
// On failure the job stays the caller's.
enum inf_code inf_service_enter_session(struct inf_service *service, struct inf_job *job,
                                        struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Takes a job out of its session, whether it was accepted or not, and submits the session's next
// job if it was the running one.
void inf_service_leave_session(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

// Commits the outputs that a finished job keeps to its session.
enum inf_code inf_service_commit_session(struct inf_job *job,
                                         struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

#endif
