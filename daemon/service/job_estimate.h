// SPDX-License-Identifier: Apache-2.0
// Computes the key for a job's run-time estimate, and how many of its rows may be batched.
#ifndef INF_DAEMON_SERVICE_JOB_ESTIMATE_H
#define INF_DAEMON_SERVICE_JOB_ESTIMATE_H

#include "daemon/service/state.h"

// Sets the members of a job that depend on its shapes and its device: the key under which its run
// time is estimated, and the number of rows that may share a run with other jobs. The shapes of all
// inputs must be known.
void inf_service_estimate_job(struct inf_job *job);

#endif
