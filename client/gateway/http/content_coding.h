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

// Maximum size of a body after decompression.
#define INF_HTTP_INFLATED_BYTES ((size_t)16 << 20)

// Memory of a coder beside its result, in bytes: what zlib's documentation (zconf.h) gives for the
// largest window and the usual memory level, and a few KiB more.
#define INF_HTTP_DEFLATE_STATE_BYTES ((size_t)264 << 10)
#define INF_HTTP_INFLATE_STATE_BYTES ((size_t)40 << 10)

struct z_stream_s;

// Compresses or decompresses one body, a bounded number of bytes at a time.
struct inf_http_coder {
    bool compresses;
    struct z_stream_s *stream; // NULL: not begun, or finished
    uint8_t *data;             // the result so far; the owner of the coder frees it with free()
    size_t size, capacity;
};

// Begin to decompress or compress `body`, which must stay valid. The coder must be
// zero-initialised. inf_http_inflate_begin() fails if the body is larger than
// INF_HTTP_INFLATED_BYTES; both fail if there is no memory.
enum inf_code inf_http_inflate_begin(struct inf_http_coder *coder, enum inf_http_coding coding,
                                     struct inf_span body, struct inf_error *err) INF_NODISCARD;
enum inf_code inf_http_deflate_begin(struct inf_http_coder *coder, enum inf_http_coding coding,
                                     struct inf_span body, struct inf_error *err) INF_NODISCARD;

// Continues until about `bytes_max` bytes of uncompressed data were read or written. Sets *done to
// true if coder->data is the whole result. Fails if there is no memory, if compressed data is
// damaged, if bytes follow it, or if the decompressed body exceeds INF_HTTP_INFLATED_BYTES.
enum inf_code inf_http_code(struct inf_http_coder *coder, size_t bytes_max, bool *done,
                            struct inf_error *err) INF_NODISCARD;

// Frees the memory of the coder and its result. The coder can then be used again.
void inf_http_coder_fini(struct inf_http_coder *coder);

#endif
