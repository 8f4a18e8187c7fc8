// SPDX-License-Identifier: Apache-2.0
// One inference of a client of the gateway, from its decoded request to the daemon's answer. Counts
// its outcome and its time.
#ifndef INF_GATEWAY_RUN_H
#define INF_GATEWAY_RUN_H

#include "client/gateway/core/gateway.h"
#include "client/gateway/oip/request.h"

struct inf_run;

// Starts an inference. `request`, and the data of its inputs, must stay valid until the callback
// has been called or the run was cancelled. `other_id` is the id for the daemon's log if the
// request has none; NULL: none either. The timeout of the request is reduced to the gateway's. On
// success *run identifies the run, and the callback is called later, once, unless the run is
// cancelled. On failure the callback is not called. Never blocks; used on the thread of the loop.
int inf_run_start(struct inf_gateway *gateway, struct inf_oip_request *request,
                  const char *other_id, inf_link_callback callback, void *context,
                  struct inf_run **run, struct inferd_error *err);

// Cancels a run. Its callback will not be called. NULL is allowed.
void inf_run_cancel(struct inf_run *run);

#endif
