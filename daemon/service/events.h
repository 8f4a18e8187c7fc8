// SPDX-License-Identifier: Apache-2.0
// Events tell clients what happened to models and to the daemon. A client uses the method Report to
// ask for the events after the last event that it knows. If there is none and the client asked to
// wait, the request becomes a call, which is answered when the next event is added.
#ifndef INF_DAEMON_SERVICE_EVENTS_H
#define INF_DAEMON_SERVICE_EVENTS_H

#include "daemon/service/state.h"

// Adds an event to the event log.
void inf_service_add_event(struct inf_service *service, const struct inf_event *event) INF_ON_LOOP;

// Adds an event about a model that is served.
void inf_service_add_model_event(struct inf_service *service, const char *kind,
                                 const struct inf_served *served, const char *text) INF_ON_LOOP;

// Compares the list of models with the list of the previous call, and adds an event for each
// change.
void inf_service_watch_models(struct inf_service *service) INF_ON_LOOP;

// Removes a request from the service's list of those that wait for an event, and frees it.
void inf_service_release_wait(struct inf_service *service, struct inf_event_wait *wait) INF_ON_LOOP;

#endif
