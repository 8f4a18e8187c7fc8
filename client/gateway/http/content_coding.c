// SPDX-License-Identifier: Apache-2.0
// Compresses and decompresses bodies with zlib. The output buffer of decompression grows step by
// step up to the limit, so that a small body cannot expand to more memory than the limit.
#include "client/gateway/http/content_coding.h"

#include <stdlib.h>

#include <zlib.h>

// windowBits of zlib: 15 selects the largest window; adding 16 selects the gzip format.
#define WINDOW_BITS      15
#define GZIP_WINDOW_BITS (WINDOW_BITS + 16)
// The fastest level, because compression takes time from other clients.
#define LEVEL 1
// Initial capacity of a result, in bytes. It doubles when the result is full.
#define FIRST_CAPACITY ((size_t)4 << 10)

static int window_bits(enum inf_http_coding coding)
{
    return coding == INF_HTTP_GZIP ? GZIP_WINDOW_BITS : WINDOW_BITS;
}

static enum inf_code begin_coder(struct inf_http_coder *coder, enum inf_http_coding coding,
                                 struct inf_span body, struct inf_error *err)
{
    z_stream *stream = calloc(1, sizeof *stream);
    int code = stream == NULL      ? Z_MEM_ERROR
               : coder->compresses ? deflateInit2(stream, LEVEL, Z_DEFLATED, window_bits(coding), 8,
                                                  Z_DEFAULT_STRATEGY)
                                   : inflateInit2(stream, window_bits(coding));
    if (code != Z_OK) {
        free(stream);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to code the body");
    }
    stream->next_in = (Bytef *)body.data;
    stream->avail_in = (uInt)body.size;
    coder->stream = stream;
    return INF_OK;
}

enum inf_code inf_http_inflate_begin(struct inf_http_coder *coder, enum inf_http_coding coding,
                                     struct inf_span body, struct inf_error *err)
{
    if (body.size > INF_HTTP_INFLATED_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_FRAME_TOO_LARGE,
                               "the compressed body is larger than %zu bytes",
                               INF_HTTP_INFLATED_BYTES);
    coder->compresses = false;
    return begin_coder(coder, coding, body, err);
}

enum inf_code inf_http_deflate_begin(struct inf_http_coder *coder, enum inf_http_coding coding,
                                     struct inf_span body, struct inf_error *err)
{
    coder->compresses = true;
    return begin_coder(coder, coding, body, err);
}

// Makes room for at least one byte behind the result, and for at most `bytes_max` bytes.
static enum inf_code reserve_output(struct inf_http_coder *coder, size_t bytes_max,
                                    struct inf_error *err)
{
    if (coder->size == coder->capacity) {
        if (!coder->compresses && coder->capacity >= INF_HTTP_INFLATED_BYTES)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_FRAME_TOO_LARGE,
                                   "the decompressed body is larger than %zu bytes",
                                   INF_HTTP_INFLATED_BYTES);
        size_t capacity = INF_MAX(coder->capacity * 2, FIRST_CAPACITY);
        uint8_t *grown = realloc(coder->data, capacity);
        if (grown == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory to code the body");
        coder->data = grown;
        coder->capacity = capacity;
    }
    coder->stream->next_out = coder->data + coder->size;
    coder->stream->avail_out = (uInt)INF_MIN(coder->capacity - coder->size, bytes_max);
    return INF_OK;
}

// Calls zlib once. Sets *used to the number of bytes of uncompressed data, and *done to true if the
// result is complete.
static enum inf_code run_zlib(struct inf_http_coder *coder, size_t bytes_max, size_t *used,
                              bool *done, struct inf_error *err)
{
    z_stream *stream = coder->stream;
    INF_TRY(reserve_output(coder, coder->compresses ? SIZE_MAX : bytes_max, err));
    size_t hidden = 0;
    if (coder->compresses && stream->avail_in > bytes_max) {
        hidden = stream->avail_in - bytes_max;
        stream->avail_in = (uInt)bytes_max;
    }
    uInt in = stream->avail_in, out = stream->avail_out;
    int code = coder->compresses ? deflate(stream, hidden > 0 ? Z_NO_FLUSH : Z_FINISH)
                                 : inflate(stream, Z_NO_FLUSH);
    coder->size += out - stream->avail_out;
    *used = coder->compresses ? in - stream->avail_in : out - stream->avail_out;
    stream->avail_in += (uInt)hidden;
    *done = code == Z_STREAM_END && stream->avail_in == 0;
    // zlib reports Z_BUF_ERROR if it could do nothing: because it needs more room for output, or
    // because the compressed data ends too early.
    bool ok = code == Z_OK || (code == Z_BUF_ERROR && stream->avail_out == 0);
    if (!*done && !ok)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "the compressed body is damaged");
    return INF_OK;
}

enum inf_code inf_http_code(struct inf_http_coder *coder, size_t bytes_max, bool *done,
                            struct inf_error *err)
{
    *done = false;
    while (!*done && bytes_max > 0) {
        size_t used;
        INF_TRY(run_zlib(coder, bytes_max, &used, done, err));
        // A call that moves no data counts as well, so that the loop ends.
        bytes_max -= INF_MIN(INF_MAX(used, 64u), bytes_max);
    }
    return INF_OK;
}

void inf_http_coder_fini(struct inf_http_coder *coder)
{
    if (coder->stream != NULL && coder->compresses)
        deflateEnd(coder->stream);
    else if (coder->stream != NULL)
        inflateEnd(coder->stream);
    free(coder->stream);
    free(coder->data);
    *coder = (struct inf_http_coder){0};
}
