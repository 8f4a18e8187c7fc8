// SPDX-License-Identifier: Apache-2.0
// Compression of bodies in parts. gzip's and zlib's bytes of a known text are literals of Python.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/http/content_coding.h"

static const uint8_t gzip_bytes[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                     0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x90, 0x00,
                                     0x80, 0x88, 0xf9, 0xe5, 0x11, 0x00, 0x00, 0x00};

static enum inf_code inflate_all(enum inf_http_coding coding, struct inf_span body,
                                 size_t bytes_max, struct inf_http_coder *coder,
                                 struct inf_error *err)
{
    bool done = false;
    enum inf_code code = inf_http_inflate_begin(coder, coding, body, err);
    for (unsigned i = 0; code == INF_OK && !done; i++) {
        code = inf_http_code(coder, bytes_max, &done, err);
        cr_assert_lt(i, 1000000u);
    }
    return code;
}

Test(content_coding, what_is_compressed_reads_back_in_parts_of_any_size)
{
    static uint8_t text[100000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * i >> 7);
    for (int coding = INF_HTTP_GZIP; coding <= INF_HTTP_DEFLATE; coding++)
        for (size_t bytes = 1; bytes <= sizeof text * 2; bytes *= 7) {
            struct inf_http_coder packer = {0}, unpacker = {0};
            struct inf_error err;
            bool done = false;
            cr_assert_eq(inf_http_deflate_begin(&packer, (enum inf_http_coding)coding,
                                                (struct inf_span){text, sizeof text}, &err),
                         INF_OK);
            unsigned calls = 0;
            for (; !done; calls++)
                cr_assert_eq(inf_http_code(&packer, bytes, &done, &err), INF_OK, "%s", err.text);
            cr_assert(bytes >= 1000 ? calls <= sizeof text / bytes + 2 : calls > 100, "%u", calls);
            cr_assert_eq(inflate_all((enum inf_http_coding)coding,
                                     (struct inf_span){packer.data, packer.size}, bytes, &unpacker,
                                     &err),
                         INF_OK, "%s", err.text);
            cr_assert_eq(unpacker.size, sizeof text);
            cr_assert_eq(memcmp(unpacker.data, text, sizeof text), 0);
            inf_http_coder_fini(&packer);
            inf_http_coder_fini(&unpacker);
        }
}

Test(content_coding, reads_what_python_has_compressed)
{
    struct inf_http_coder coder = {0};
    struct inf_error err;
    cr_assert_eq(inflate_all(INF_HTTP_GZIP, (struct inf_span){gzip_bytes, sizeof gzip_bytes}, 4,
                             &coder, &err),
                 INF_OK, "%s", err.text);
    cr_assert_eq(coder.size, 17u);
    cr_assert_eq(memcmp(coder.data, "hello hello hello", 17), 0);
    inf_http_coder_fini(&coder);
}

Test(content_coding, refuses_damaged_bodies)
{
    for (size_t size = 0; size <= sizeof gzip_bytes + 1; size++)
        for (size_t bytes = 1; bytes <= 64; bytes *= 8) {
            uint8_t *copy = calloc(1, sizeof gzip_bytes + 1);
            memcpy(copy, gzip_bytes, sizeof gzip_bytes);
            struct inf_http_coder coder = {0};
            struct inf_error err;
            // Cut at `size`, or followed by a byte.
            enum inf_code code =
                inflate_all(INF_HTTP_GZIP, (struct inf_span){copy, size}, bytes, &coder, &err);
            cr_assert_eq(code, size == sizeof gzip_bytes ? INF_OK : INF_INVALID, "%zu", size);
            inf_http_coder_fini(&coder);
            if (size < sizeof gzip_bytes && size >= sizeof gzip_bytes - 8) {
                copy[size] ^= 1; // the check sum or the length
                code = inflate_all(INF_HTTP_GZIP, (struct inf_span){copy, sizeof gzip_bytes}, bytes,
                                   &coder, &err);
                cr_assert_eq(code, INF_INVALID, "%zu", size);
                inf_http_coder_fini(&coder);
            }
            free(copy);
        }
}

Test(content_coding, bounds_what_a_small_body_expands_to)
{
    for (size_t more = 0; more <= 1; more++) {
        size_t size = INF_HTTP_INFLATED_BYTES + more;
        uint8_t *zeros = calloc(1, size);
        struct inf_http_coder coder = {0}, packer = {0};
        struct inf_error err;
        bool done;
        cr_assert_eq(
            inf_http_deflate_begin(&packer, INF_HTTP_DEFLATE, (struct inf_span){zeros, size}, &err),
            INF_OK);
        cr_assert_eq(inf_http_code(&packer, SIZE_MAX, &done, &err), INF_OK);
        cr_assert(done);
        cr_assert_lt(packer.size, size / 100);
        cr_assert_eq(inflate_all(INF_HTTP_DEFLATE, (struct inf_span){packer.data, packer.size},
                                 1 << 15, &coder, &err),
                     more == 0 ? INF_OK : INF_INVALID, "%s", err.text);
        cr_assert_leq(coder.capacity, INF_HTTP_INFLATED_BYTES);
        inf_http_coder_fini(&coder);
        inf_http_coder_fini(&packer);
        free(zeros);
    }
}
