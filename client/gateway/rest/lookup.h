// SPDX-License-Identifier: Apache-2.0
// Requests of the REST interface that ask the daemon about models and metrics, and requests that
// load and unload models. names[0] is the model, names[1] the version; both may be empty.
#ifndef INF_GATEWAY_REST_LOOKUP_H
#define INF_GATEWAY_REST_LOOKUP_H

#include "client/gateway/core/gateway.h"

// Each function asks the daemon, and responds to the exchange when the daemon has answered.
void inf_rest_lookup_model(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                           const struct inf_span names[]);
void inf_rest_lookup_ready(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                           const struct inf_span names[]);
void inf_rest_lookup_metrics(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                             const struct inf_span names[]);
void inf_rest_lookup_statistics(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                                const struct inf_span names[]);
void inf_rest_lookup_index(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                           const struct inf_span names[]);
void inf_rest_lookup_load(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                          const struct inf_span names[]);
void inf_rest_lookup_unload(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                            const struct inf_span names[]);

#endif
