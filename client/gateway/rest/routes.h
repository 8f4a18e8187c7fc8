// SPDX-License-Identifier: Apache-2.0
// Passes each REST request to the function that handles its path.
#ifndef INF_GATEWAY_REST_ROUTES_H
#define INF_GATEWAY_REST_ROUTES_H

#include "client/gateway/core/gateway.h"

// Refuses a request without a token that the gateway accepts, except questions about health; see
// `check_head` of struct inf_http_handler.
bool inf_rest_check_head(void *gateway, const struct inf_http_head *head,
                         struct inf_http_refusal *refusal);

// Returns memory for the body of an inference, or NULL; see place_body of struct inf_http_handler.
uint8_t *inf_rest_place_body(void *gateway, struct inf_http_exchange *exchange, size_t size);

// Handles a request; see `handle` of struct inf_http_handler.
void inf_rest_handle(void *gateway, struct inf_http_exchange *exchange);

#endif
