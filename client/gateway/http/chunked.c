// SPDX-License-Identifier: Apache-2.0
// Decodes the chunked transfer coding, byte by byte except for the data. It accepts one to eight
// hexadecimal digits as a size. Chunk extensions and trailers are refused: no client of this
// protocol sends them, and HTTP implementations disagree about where they end.
#include "client/gateway/http/chunked.h"

#include "proto/core/attributes.h"

static int digit_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Handles one byte of the line that holds the size of a chunk. Returns false if the byte is
// invalid.
static bool read_size_byte(struct inf_http_chunked *chunked, uint8_t c)
{
    int digit = digit_value(c);
    if (digit >= 0) {
        chunked->left = chunked->left * 16 + (unsigned)digit;
        return ++chunked->digits <= 8;
    }
    chunked->state = INF_HTTP_CHUNK_SIZE_LF;
    return c == '\r' && chunked->digits > 0;
}

static bool step_state(struct inf_http_chunked *chunked, uint8_t c)
{
    switch (chunked->state) {
    case INF_HTTP_CHUNK_SIZE:
        return read_size_byte(chunked, c);
    case INF_HTTP_CHUNK_SIZE_LF:
        chunked->state = chunked->left > 0 ? INF_HTTP_CHUNK_DATA : INF_HTTP_CHUNK_LAST_CR;
        chunked->chunks++;
        return c == '\n';
    case INF_HTTP_CHUNK_END_CR:
        chunked->state = INF_HTTP_CHUNK_END_LF;
        return c == '\r';
    case INF_HTTP_CHUNK_END_LF:
        chunked->state = INF_HTTP_CHUNK_SIZE;
        chunked->digits = 0;
        return c == '\n';
    case INF_HTTP_CHUNK_LAST_CR:
        chunked->state = INF_HTTP_CHUNK_LAST_LF;
        return c == '\r';
    case INF_HTTP_CHUNK_LAST_LF:
        chunked->state = INF_HTTP_CHUNK_DONE;
        return c == '\n';
    default:
        return false;
    }
}

bool inf_http_chunked_decode(struct inf_http_chunked *chunked, struct inf_span *input,
                             struct inf_span *piece, struct inf_http_refusal *refusal)
{
    *piece = (struct inf_span){0};
    while (input->size > 0 && chunked->state != INF_HTTP_CHUNK_DONE) {
        if (chunked->state == INF_HTTP_CHUNK_DATA) {
            size_t size = (size_t)INF_MIN(chunked->left, input->size);
            *piece = (struct inf_span){input->data, size};
            input->data += size;
            input->size -= size;
            chunked->left -= size;
            if (chunked->left == 0)
                chunked->state = INF_HTTP_CHUNK_END_CR;
            return true;
        }
        if (!step_state(chunked, *input->data)) {
            *refusal = (struct inf_http_refusal){400, "the chunked coding is invalid"};
            return false;
        }
        input->data++;
        input->size--;
        if (chunked->chunks > INF_HTTP_CHUNKS) {
            *refusal = (struct inf_http_refusal){413, "the body has too many chunks"};
            return false;
        }
    }
    return true;
}
