// SPDX-License-Identifier: Apache-2.0
// Releases inference jobs.
#ifndef INF_DAEMON_SERVICE_INFER_H
#define INF_DAEMON_SERVICE_INFER_H

#include "daemon/service/state.h"

// Releases everything that a job holds, and keeps the empty struct for the next inference.
void inf_service_release_job(struct inf_service *service, struct inf_job *job) INF_ON_LOOP;

#endif
