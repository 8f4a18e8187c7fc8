// SPDX-License-Identifier: Apache-2.0
// The head of an HTTP/1.1 request: its request line and its header fields.
#ifndef INF_GATEWAY_HTTP_HEAD_H
#define INF_GATEWAY_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/span.h"

// Maximum size of a head in bytes. The heads of usual clients are smaller than 1 KiB; proxies and
// bearer tokens add a few KiB.
#define INF_HTTP_HEAD_BYTES ((size_t)16 << 10)
// Maximum number of header fields, because comparing each name costs time.
#define INF_HTTP_FIELDS 64u
// Length of traceparent, in bytes.
#define INF_HTTP_TRACE_PARENT_BYTES ((size_t)55)
// Maximum length of X-Request-Id, in bytes.
#define INF_HTTP_REQUEST_ID_BYTES ((size_t)128)

enum inf_http_method {
    INF_HTTP_OTHER, // a valid method that this server does not support
    INF_HTTP_GET,
    INF_HTTP_HEAD,
    INF_HTTP_POST,
};

// The compression of a body (Content-Encoding).
enum inf_http_coding {
    INF_HTTP_IDENTITY,
    INF_HTTP_GZIP,
    INF_HTTP_DEFLATE, // the zlib format, which HTTP calls "deflate"
};

// A parsed head. Its spans point into the bytes that were passed to inf_http_head_parse().
struct inf_http_head {
    enum inf_http_method method;
    struct inf_span path; // path of the request target, without the query
    bool keep_alive;      // true: the client allows another request on the connection
    bool expects_continue;
    bool chunked;
    bool has_length;
    uint64_t length; // value of Content-Length
    enum inf_http_coding coding;
    bool accepts_gzip, accepts_deflate;
    bool has_json_length;
    uint64_t json_length;          // value of Inference-Header-Content-Length
    struct inf_span request_id;    // value of X-Request-Id; empty: the request has none
    struct inf_span trace_parent;  // value of traceparent; empty: the request has no valid one
    struct inf_span authorization; // value of Authorization; empty: the request has none
    // Quality, in thousandths, with which the client accepts OpenMetrics and other texts (Accept).
    unsigned openmetrics_quality, text_quality;
    size_t size; // size of the head with its empty line, in bytes
};

enum inf_http_parse {
    INF_HTTP_INCOMPLETE,
    INF_HTTP_COMPLETE,
    INF_HTTP_REFUSED,
};

// Why a request is refused.
struct inf_http_refusal {
    int status;      // status code of the response
    const char *why; // text of the error in the response
};

// Returns true if `value` is a valid traceparent of W3C Trace Context, version 00.
bool inf_http_trace_parent_valid(struct inf_span value);

// Returns true if `value` is a valid X-Request-Id: at most INF_HTTP_REQUEST_ID_BYTES printable
// ASCII characters without blanks.
bool inf_http_request_id_valid(struct inf_span value);

// Parses the head at the start of `bytes`. Bytes after the head are ignored. If an earlier call for
// the same head returned INF_HTTP_INCOMPLETE, `scanned` is the number of bytes that it got, so that
// they are not searched twice; 0 is always correct.
enum inf_http_parse inf_http_head_parse(struct inf_span bytes, size_t scanned,
                                        struct inf_http_head *head,
                                        struct inf_http_refusal *refusal);

#endif
