// SPDX-License-Identifier: Apache-2.0
// Requests that wait until their model is loaded (daemon/policy/model_waits.h).
#ifndef INF_DAEMON_SERVICE_MODEL_WAIT_H
#define INF_DAEMON_SERVICE_MODEL_WAIT_H

#include "daemon/service/state.h"

// Makes a call of a request that a handler has refused with LOADING; service->request holds the
// decoded request. On success the call owns request->data, and true is returned. Returns false if
// too many requests wait, its deadline has passed, no load will end, or memory is exhausted.
bool inf_service_wait_for_model(struct inf_service *service, struct inf_request *request,
                                const struct inf_fault *fault,
                                struct inf_answer *answer) INF_NODISCARD INF_ON_LOOP;

// Lets a call wait again whose handler has refused it with LOADING once more. Returns false if it
// cannot.
bool inf_service_wait_again(struct inf_service *service,
                            struct inf_waiting_request *waiting) INF_NODISCARD INF_ON_LOOP;

// Wakes the requests that the end of a load may concern. `name` is the model that was loaded; "":
// the repository was read.
void inf_service_wake_waiting(struct inf_service *service, const char *name,
                              const struct inf_error *err) INF_ON_LOOP;

// Returns the next waiting request whose deadline passed; NULL if there is none.
struct inf_call *inf_service_next_expired_wait(struct inf_service *service) INF_ON_LOOP;

// Frees a waiting request.
void inf_service_release_waiting(struct inf_service *service,
                                 struct inf_waiting_request *waiting) INF_ON_LOOP;

#endif
