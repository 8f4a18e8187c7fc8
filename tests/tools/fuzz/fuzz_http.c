// SPDX-License-Identifier: Apache-2.0
// Heads and chunked bodies of HTTP/1.1. Whether bytes arrive together or one by one must not change
// what is parsed, because an attacker chooses the pieces.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/http/chunked.h"
#include "client/gateway/http/head.h"
#include "tests/tools/fuzz/fuzz.h"

const struct fuzz_seed fuzz_seeds[] = {
    FUZZ_SEED("GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    FUZZ_SEED("POST /v2/models/m/infer?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
              "Inference-Header-Content-Length: 2\r\nContent-Encoding: gzip\r\n"
              "Accept-Encoding: gzip;q=0.5, deflate\r\nConnection: close\r\n"
              "Expect: 100-continue\r\nX-Request-Id: abc\r\n\r\nhello"),
    FUZZ_SEED("POST /v2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
              "5\r\nhello\r\n10\r\n0123456789abcdef\r\n0\r\n\r\nGET / HTTP/1.1\r\n"),
    FUZZ_SEED("HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
};
const size_t fuzz_seed_count = sizeof fuzz_seeds / sizeof fuzz_seeds[0];
const bool fuzz_has_positions = false;

static void require_true(bool holds)
{
    if (!holds)
        abort();
}

static void require_inside(struct inf_span part, struct inf_span whole)
{
    require_true(part.size == 0 || (part.data >= whole.data && part.size <= whole.size &&
                                    (size_t)(part.data - whole.data) <= whole.size - part.size));
}

// Parses the head as if each byte arrived alone.
static enum inf_http_parse parse_slowly(struct inf_span bytes, struct inf_http_head *head)
{
    struct inf_http_refusal refusal = {0};
    for (size_t size = 1; size <= bytes.size; size++) {
        enum inf_http_parse parse =
            inf_http_head_parse((struct inf_span){bytes.data, size}, size - 1, head, &refusal);
        if (parse != INF_HTTP_INCOMPLETE)
            return parse;
    }
    return INF_HTTP_INCOMPLETE;
}

// Decodes a chunked body of which at most `step` bytes arrive at a time. Returns false if it is
// refused. Stores the data in `data`, and the number of used bytes in *used.
static bool decode_chunks(struct inf_span bytes, size_t step, uint8_t *data, size_t *size,
                          size_t *used, bool *done)
{
    struct inf_http_chunked chunked = {0};
    struct inf_http_refusal refusal = {0};
    *size = *used = 0;
    while (*used < bytes.size && chunked.state != INF_HTTP_CHUNK_DONE) {
        size_t count = bytes.size - *used < step ? bytes.size - *used : step;
        struct inf_span input = {bytes.data + *used, count}, piece;
        do {
            size_t before = input.size;
            if (!inf_http_chunked_decode(&chunked, &input, &piece, &refusal)) {
                require_true(refusal.status >= 400 && refusal.why != NULL);
                return false;
            }
            require_true(input.size <= before && piece.size <= before - input.size);
            require_inside(piece, bytes);
            if (piece.size > 0)
                memcpy(data + *size, piece.data, piece.size);
            *size += piece.size;
        } while (piece.size > 0);
        require_true(input.size == 0 || chunked.state == INF_HTTP_CHUNK_DONE);
        *used += count - input.size;
    }
    *done = chunked.state == INF_HTTP_CHUNK_DONE;
    return true;
}

static void check_chunks(struct inf_span body)
{
    uint8_t *data[2] = {malloc(body.size + 1), malloc(body.size + 1)};
    size_t size[2], used[2];
    bool done[2] = {false, false}, ok[2];
    require_true(data[0] != NULL && data[1] != NULL);
    ok[0] = decode_chunks(body, body.size + 1, data[0], &size[0], &used[0], &done[0]);
    ok[1] = decode_chunks(body, 1, data[1], &size[1], &used[1], &done[1]);
    require_true(ok[0] == ok[1]);
    if (ok[0])
        require_true(done[0] == done[1] && used[0] == used[1] && size[0] == size[1] &&
                     memcmp(data[0], data[1], size[0]) == 0);
    free(data[0]);
    free(data[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct inf_span input = {bytes, size};
    struct inf_http_head head, slow;
    struct inf_http_refusal refusal = {0};
    enum inf_http_parse parse = inf_http_head_parse(input, 0, &head, &refusal);
    enum inf_http_parse slow_parse = parse_slowly(input, &slow);
    if (parse == INF_HTTP_REFUSED)
        require_true(refusal.status >= 400 && refusal.why != NULL);
    if (parse == INF_HTTP_COMPLETE) {
        require_true(slow_parse == INF_HTTP_COMPLETE && slow.size == head.size);
        require_true(slow.chunked == head.chunked && slow.length == head.length);
        require_true(head.size <= size && head.size <= INF_HTTP_HEAD_BYTES);
        require_true(!(head.chunked && head.has_length));
        require_inside(head.path, input);
        require_inside(head.request_id, input);
        require_true(head.path.size > 0 && head.request_id.size <= INF_HTTP_REQUEST_ID_BYTES);
        check_chunks((struct inf_span){bytes + head.size, size - head.size});
    }
    if (parse == INF_HTTP_INCOMPLETE)
        require_true(slow_parse == INF_HTTP_INCOMPLETE);
    check_chunks(input);
    return 0;
}
