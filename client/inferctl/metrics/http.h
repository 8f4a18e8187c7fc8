// SPDX-License-Identifier: Apache-2.0
// Just enough of HTTP/1.1 to answer one request of Prometheus: reading its head, and choosing among
// the formats of metrics by the field Accept. Does not depend on the daemon.
#ifndef INF_CLIENT_INFERCTL_METRICS_HTTP_H
#define INF_CLIENT_INFERCTL_METRICS_HTTP_H

#include <stdbool.h>
#include <stddef.h>

// The most bytes of the head of a request.
#define HTTP_HEAD_MAX 8192

enum http_format {
    HTTP_FORMAT_TEXT,        // Prometheus' text format 0.0.4
    HTTP_FORMAT_OPENMETRICS, // OpenMetrics 1.0
    HTTP_FORMAT_PROTOBUF,    // Prometheus' delimited protobuf messages, with native histograms
};

// A request that was read. `status` is 200 if it asks for the metrics, or else the status of the
// answer: 400, 404, 405, 408, 431 or 505; 0: the client closed the connection without a request.
struct http_request {
    int status;
    bool head_only; // the method is HEAD
    enum http_format format;
};

// Reads the head of a request from `fd`, for at most `timeout_ms`.
void http_read(int fd, int timeout_ms, struct http_request *request);

// Returns the format that a client likes best, by the value of its field Accept. A client that
// accepts none of the formats gets HTTP_FORMAT_TEXT.
enum http_format http_choose_format(const char *accept);

// Writes an answer to `fd`, for at most `timeout_ms`; a body of `size` bytes is left out if the
// request is HEAD. Returns false if the client did not take all of it.
bool http_write(int fd, int timeout_ms, const struct http_request *request, const char *media_type,
                const char *body, size_t size);

#endif
