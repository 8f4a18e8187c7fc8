// SPDX-License-Identifier: Apache-2.0
// Requests that wait for a job of the model store: a load, a placement, a compilation, an
// inspection or a reload.
#ifndef INF_DAEMON_SERVICE_LOAD_CALL_H
#define INF_DAEMON_SERVICE_LOAD_CALL_H

#include "daemon/service/state.h"

// Type of a function that starts a job in the store. The events of the job carry `token`.
// service->request holds the decoded request.
typedef enum inf_code inf_service_load_starter(struct inf_service *service, uint64_t token,
                                               struct inf_error *err);

// Starts a job with `start`, and sets answer->call to a call that ends together with the job.
enum inf_code inf_service_begin_load(struct inf_service *service, inf_service_load_starter *start,
                                     struct inf_answer *answer,
                                     struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Removes a load from the service's list of loads in progress, and frees it.
// If the job still changes something persistent, the load is freed when the job has ended.
void inf_service_release_load(struct inf_service *service, struct inf_load *load) INF_ON_LOOP;

// Frees a load, whatever its job does.
void inf_service_free_load(struct inf_service *service, struct inf_load *load) INF_ON_LOOP;

#endif
