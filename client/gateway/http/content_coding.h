// SPDX-License-Identifier: Apache-2.0
// Compressed request and response bodies: gzip and deflate.
#ifndef INF_GATEWAY_HTTP_CONTENT_CODING_H
#define INF_GATEWAY_HTTP_CONTENT_CODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gateway/http/head.h"
#include "proto/core/attributes.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

// Maximum size of a body after decompression. Decompressing 16 MiB takes about 0.1 s. During this
// time the gateway serves no other client.
#define INF_HTTP_INFLATED_BYTES ((size_t)16 << 20)

// Decompresses a body. Fails if the data is damaged, if bytes follow the compressed data, or if the
// body is larger than INF_HTTP_INFLATED_BYTES before or after decompression. The caller frees *data
// with free().
enum inf_code inf_http_coding_inflate(enum inf_http_coding coding, struct inf_span body,
                                      uint8_t **data, size_t *size,
                                      struct inf_error *err) INF_NODISCARD;

// Compresses a body. Returns NULL if there is no memory. The caller frees the result with free().
uint8_t *inf_http_coding_deflate(enum inf_http_coding coding, struct inf_span body, size_t *size);

#endif
