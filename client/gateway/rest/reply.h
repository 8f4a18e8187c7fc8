// SPDX-License-Identifier: Apache-2.0
// Sends the responses of the REST interface.
#ifndef INF_GATEWAY_REST_REPLY_H
#define INF_GATEWAY_REST_REPLY_H

#include "client/gateway/http/server.h"
#include "client/inferd.h"

// Sends a text, and frees it with free() when it was sent. If the client accepts it and the text
// has 1 KiB to 4 MiB, sends the text compressed. If `text` is NULL, sends the status 500 without a
// body.
void inf_rest_reply_text(struct inf_http_exchange *exchange, const char *content_type, char *text,
                         size_t size);

// Sends a JSON text that ends with NUL, like inf_rest_reply_text().
void inf_rest_reply_json(struct inf_http_exchange *exchange, char *text);

// Send an error status with the body {"error": "..."}. For the status 405, `message` lists the
// methods that the path takes, for the header field Allow and the body.
void inf_rest_reply_status(struct inf_http_exchange *exchange, int status, const char *message);
void inf_rest_reply_error(struct inf_http_exchange *exchange, const struct inferd_error *err);
void inf_rest_reply_failure(struct inf_http_exchange *exchange, const struct inf_error *err);

#endif
