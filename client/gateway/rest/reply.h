// SPDX-License-Identifier: Apache-2.0
// Sends the responses of the REST interface.
#ifndef INF_GATEWAY_REST_REPLY_H
#define INF_GATEWAY_REST_REPLY_H

#include "client/gateway/core/gateway.h"
#include "client/inferd.h"

// A text to send, and what is known of it.
struct inf_rest_text {
    const char *content_type;
    char *data; // made by malloc(); NULL: there was no memory for it
    size_t size;
    size_t charged; // bytes of it that are charged to the server (inf_http_server_charge())
};

// Sends a text with the status 200. If the client accepts it and the text has at least 1 KiB, sends
// the text compressed, after some turns of the loop if it is large. When the text was sent or the
// exchange ended, frees the data and releases the charge. If the text has no data, sends the status
// 503.
void inf_rest_reply_text(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                         const struct inf_rest_text *text);

// Sends a JSON text that ends with NUL and is not charged, like inf_rest_reply_text().
void inf_rest_reply_json(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                         char *text);

// Send an error status with the body {"error": "..."}. For the status 405, `message` lists the
// methods that the path takes, for the header field Allow and the body.
void inf_rest_reply_status(struct inf_http_exchange *exchange, int status, const char *message);
void inf_rest_reply_error(struct inf_http_exchange *exchange, const struct inferd_error *err);
void inf_rest_reply_failure(struct inf_http_exchange *exchange, const struct inf_error *err);

#endif
