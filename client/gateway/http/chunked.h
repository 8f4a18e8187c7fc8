// SPDX-License-Identifier: Apache-2.0
// Decodes the chunked transfer coding of HTTP/1.1.
#ifndef INF_GATEWAY_HTTP_CHUNKED_H
#define INF_GATEWAY_HTTP_CHUNKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gateway/http/head.h"
#include "proto/core/span.h"

// Maximum number of chunks of one body, because each chunk costs time to parse. Triton has the same
// limit.
#define INF_HTTP_CHUNKS 65536u

enum inf_http_chunked_state {
    INF_HTTP_CHUNK_SIZE,
    INF_HTTP_CHUNK_SIZE_LF,
    INF_HTTP_CHUNK_DATA,
    INF_HTTP_CHUNK_END_CR,
    INF_HTTP_CHUNK_END_LF,
    INF_HTTP_CHUNK_LAST_CR,
    INF_HTTP_CHUNK_LAST_LF,
    INF_HTTP_CHUNK_DONE,
};

// Zero-initialise before the first byte of a body.
struct inf_http_chunked {
    enum inf_http_chunked_state state;
    uint64_t left;   // bytes of the current chunk that have not arrived
    unsigned digits; // number of digits of the current chunk's size so far
    unsigned chunks; // number of chunks so far
};

// Decodes bytes at the start of *input, and removes the decoded bytes from *input. Returns after
// one piece of the body's data, which *piece then refers to, at the end of *input, or at the end of
// the body (state INF_HTTP_CHUNK_DONE). Without a piece, piece->size is 0. Returns false, and sets
// *refusal, if the coding is invalid or the body has too many chunks.
bool inf_http_chunked_decode(struct inf_http_chunked *chunked, struct inf_span *input,
                             struct inf_span *piece, struct inf_http_refusal *refusal);

#endif
