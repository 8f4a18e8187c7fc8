// SPDX-License-Identifier: Apache-2.0
// Requests that wait for a job of the model store: loads, placements, compilations, inspections.
#ifndef INF_DAEMON_SERVICE_LOAD_CALL_H
#define INF_DAEMON_SERVICE_LOAD_CALL_H

#include "daemon/service/state.h"

// Starts a job in the store whose events carry `token`. service->request holds the decoded request.
typedef enum inf_code inf_service_load_starter(struct inf_service *service, uint64_t token,
                                               struct inf_error *err);

// Starts a job with `start`, and sets answer->call to the call that ends with it.
enum inf_code inf_service_begin_load(struct inf_service *service, inf_service_load_starter *start,
                                     struct inf_answer *answer,
                                     struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Removes a load from the list and frees it.
void inf_service_release_load(struct inf_service *service, struct inf_load *load) INF_ON_LOOP;

#endif
