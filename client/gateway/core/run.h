// SPDX-License-Identifier: Apache-2.0
// One inference of a client of the gateway, from its decoded request to the daemon's answer. Counts
// its outcome and its time.
#ifndef INF_GATEWAY_RUN_H
#define INF_GATEWAY_RUN_H

#include "client/gateway/core/gateway.h"
#include "client/gateway/oip/request.h"

struct inf_run;

// Receives the outcome of a run: a result, which the run owns, or NULL and the error. May free the
// run.
typedef void (*inf_run_callback)(void *context, const inferd_result *result,
                                 const struct inferd_error *err);

// Starts an inference. `request`, and the data of its inputs, must stay valid until the callback
// has been called or the run was freed. `other_id` is the id that the daemon logs if the request
// has none; NULL: no id. The timeout of the request is limited to that of the gateway. On success
// the caller must free *run, and the callback is called later, once, unless the run is freed
// before. On failure the callback is not called. Never blocks; used on the thread of the loop.
int inf_run_start(struct inf_gateway *gateway, struct inf_oip_request *request,
                  const char *other_id, inf_run_callback callback, void *context,
                  struct inf_run **run, struct inferd_error *err);

// Frees a run and its result. If the run has no outcome yet, cancels it. NULL is allowed.
void inf_run_free(struct inf_run *run);

#endif
