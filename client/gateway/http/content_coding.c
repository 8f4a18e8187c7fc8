// SPDX-License-Identifier: Apache-2.0
// Compresses and decompresses bodies with zlib. The output buffer of decompression grows step by
// step up to the limit, so that a small body cannot expand to more memory than the limit.
#include "client/gateway/http/content_coding.h"

#include <stdlib.h>

#include <zlib.h>

// windowBits of zlib: 15 selects the largest window; adding 16 selects the gzip format.
#define WINDOW_BITS      15
#define GZIP_WINDOW_BITS (WINDOW_BITS + 16)
// The fastest level, because compression blocks the event loop.
#define LEVEL 1

static int window_bits(enum inf_http_coding coding)
{
    return coding == INF_HTTP_GZIP ? GZIP_WINDOW_BITS : WINDOW_BITS;
}

// Decompresses all of the stream's input into *data, which it allocates.
static enum inf_code inflate_stream(z_stream *stream, uint8_t **data, size_t *size,
                                    struct inf_error *err)
{
    size_t capacity = 0;
    for (;;) {
        if (*size == capacity) {
            if (capacity >= INF_HTTP_INFLATED_BYTES)
                return inf_fail_reason(err, INF_INVALID, INF_REASON_FRAME_TOO_LARGE,
                                       "the decompressed body is larger than %zu bytes",
                                       INF_HTTP_INFLATED_BYTES);
            capacity = INF_MAX(capacity * 2, (size_t)64 << 10);
            uint8_t *grown = realloc(*data, capacity);
            if (grown == NULL)
                return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                       "no memory to decompress the body");
            *data = grown;
        }
        stream->next_out = *data + *size;
        stream->avail_out = (uInt)(capacity - *size);
        int code = inflate(stream, Z_NO_FLUSH);
        *size = capacity - stream->avail_out;
        if (code == Z_STREAM_END && stream->avail_in == 0)
            return INF_OK;
        if (code != Z_OK || (stream->avail_in == 0 && stream->avail_out != 0))
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "the compressed body is damaged");
    }
}

enum inf_code inf_http_coding_inflate(enum inf_http_coding coding, struct inf_span body,
                                      uint8_t **data, size_t *size, struct inf_error *err)
{
    *data = NULL;
    *size = 0;
    if (body.size > INF_HTTP_INFLATED_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_FRAME_TOO_LARGE,
                               "the compressed body is larger than %zu bytes",
                               INF_HTTP_INFLATED_BYTES);
    z_stream stream = {.next_in = (Bytef *)body.data, .avail_in = (uInt)body.size};
    if (inflateInit2(&stream, window_bits(coding)) != Z_OK)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to decompress the body");
    enum inf_code code = inflate_stream(&stream, data, size, err);
    inflateEnd(&stream);
    if (code != INF_OK) {
        free(*data);
        *data = NULL;
    }
    return code;
}

uint8_t *inf_http_coding_deflate(enum inf_http_coding coding, struct inf_span body, size_t *size)
{
    z_stream stream = {.next_in = (Bytef *)body.data, .avail_in = (uInt)body.size};
    if (deflateInit2(&stream, LEVEL, Z_DEFLATED, window_bits(coding), 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return NULL;
    uLong bound = deflateBound(&stream, (uLong)body.size);
    uint8_t *data = malloc(bound);
    stream.next_out = data;
    stream.avail_out = (uInt)bound;
    bool done = data != NULL && deflate(&stream, Z_FINISH) == Z_STREAM_END;
    *size = bound - stream.avail_out;
    deflateEnd(&stream);
    if (!done) {
        free(data);
        return NULL;
    }
    return data;
}
