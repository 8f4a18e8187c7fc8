// SPDX-License-Identifier: Apache-2.0
// Tests of encoding and decoding the frame header.
#include <criterion/criterion.h>
#include <string.h>

#include "proto/wire/frame.h"

// A REQUEST for ModelInfer with 17 bytes of metadata, 0x01020304 bytes of data and the stream
// 0x0807060504030201.
static const uint8_t request_bytes[INF_FRAME_HEADER_BYTES] = {
    0x11, 0x00, 0x00, 0x00, 0x04, 0x03, 0x02, 0x01, 0x01, 0x02, 0x03, 0x04,
    0x05, 0x06, 0x07, 0x08, 0x03, 0x00, 0x05, 0x00, 0x06, 0x00, 0x00, 0x00,
};

Test(frame, decodes_literal_bytes)
{
    struct inf_frame_header header;
    cr_assert_eq(inf_frame_header_decode(&header, request_bytes, NULL), INF_OK);
    cr_assert_eq(header.meta_bytes, 17);
    cr_assert_eq(header.data_bytes, 0x01020304);
    cr_assert_eq(header.stream_id, 0x0807060504030201);
    cr_assert_eq(header.type, 3);
    cr_assert_eq(header.fd_count, 0);
    cr_assert_eq(header.flags, 5);
    cr_assert_eq(header.method, 6);
}

Test(frame, encodes_literal_bytes)
{
    struct inf_frame_header header = {
        .meta_bytes = 17,
        .data_bytes = 0x01020304,
        .stream_id = 0x0807060504030201,
        .type = INF_FRAME_REQUEST,
        .flags = INF_FRAME_FINAL | INF_FRAME_CRITICAL,
        .method = INF_METHOD_MODEL_INFER,
    };
    uint8_t bytes[INF_FRAME_HEADER_BYTES];
    memset(bytes, 0xee, sizeof bytes);
    inf_frame_header_encode(&header, bytes);
    cr_assert_arr_eq(bytes, request_bytes, sizeof bytes);
}

Test(frame, carries_the_extremes)
{
    uint8_t bytes[INF_FRAME_HEADER_BYTES];
    memset(bytes, 0xff, 16);
    memcpy(bytes + 16, "\x06\x10\x00\x00\xff\xff\x00\x00", 8); // MEM_REGISTER, 16 fds
    struct inf_frame_header header;
    cr_assert_eq(inf_frame_header_decode(&header, bytes, NULL), INF_OK);
    cr_assert_eq(header.meta_bytes, UINT32_MAX);
    cr_assert_eq(header.data_bytes, UINT32_MAX);
    cr_assert_eq(header.stream_id, UINT64_MAX);
    cr_assert_eq(header.fd_count, 16);
    cr_assert_eq(header.method, 0xffff);
    uint8_t again[INF_FRAME_HEADER_BYTES];
    inf_frame_header_encode(&header, again);
    cr_assert_arr_eq(again, bytes, sizeof bytes);
}

// Changes one byte of the request, and expects that decoding fails with `text` in the error.
static void expect_refused(size_t at, uint8_t byte, const char *text)
{
    uint8_t bytes[INF_FRAME_HEADER_BYTES];
    memcpy(bytes, request_bytes, sizeof bytes);
    bytes[at] = byte;
    struct inf_frame_header header = {.method = 77};
    struct inf_error err = {0};
    cr_assert_eq(inf_frame_header_decode(&header, bytes, &err), INF_INVALID, "byte %zu", at);
    cr_assert_eq(err.reason, INF_REASON_BAD_FRAME);
    cr_assert_not_null(strstr(err.text, text), "'%s' does not say '%s'", err.text, text);
    cr_assert_eq(header.method, 77, "untouched on failure");
}

Test(frame, refuses_descriptors_with_types_that_carry_none)
{
    static const uint8_t types[] = {INF_FRAME_HELLO, INF_FRAME_CANCEL, INF_FRAME_PING,
                                    INF_FRAME_MEM_ALLOC, INF_FRAME_DATA};
    for (size_t i = 0; i < sizeof types; i++) {
        uint8_t bytes[INF_FRAME_HEADER_BYTES];
        const struct inf_frame_header header = {.type = types[i], .stream_id = 1, .fd_count = 1};
        struct inf_frame_header decoded;
        struct inf_error err = {0};
        inf_frame_header_encode(&header, bytes);
        cr_assert_eq(inf_frame_header_decode(&decoded, bytes, &err), INF_INVALID, "type %u",
                     types[i]);
        cr_expect_not_null(strstr(err.text, "frame: 1 file descriptors"), "%s", err.text);
    }
}

Test(frame, refuses_what_makes_no_sense)
{
    expect_refused(22, 1, "reserved field is 0x0001");
    expect_refused(23, 0x80, "reserved field is 0x8000");
    expect_refused(18, 0x08, "flags are 0x0008");
    expect_refused(19, 0x80, "flags are 0x8005");
    expect_refused(17, 17, "17 file descriptors declared, at most 16");
    expect_refused(17, 255, "255 file descriptors declared, at most 16");
    expect_refused(16, 0, "type 0");
    expect_refused(16, 17, "type 17 is not known"); // CRITICAL is set in the request
    expect_refused(16, 255, "type 255 is not known");
}

Test(frame, wants_a_stream_id_where_one_is_needed)
{
    // The comments of enum inf_frame_type say that REQUEST to MEM_RELEASED, MEM_ALLOC and DATA need
    // a stream.
    static const bool needs_stream[17] = {
        [3] = true, [4] = true, [5] = true,  [6] = true, [7] = true,
        [8] = true, [9] = true, [14] = true, [16] = true};
    for (uint8_t type = 1; type <= 16; type++) {
        uint8_t bytes[INF_FRAME_HEADER_BYTES] = {[16] = type};
        struct inf_frame_header header;
        struct inf_error err;
        enum inf_code code = inf_frame_header_decode(&header, bytes, &err);
        cr_assert_eq(code, needs_stream[type] ? INF_INVALID : INF_OK, "type %u", type);
        bytes[15] = 1;
        cr_assert_eq(inf_frame_header_decode(&header, bytes, &err), INF_OK, "type %u", type);
    }
}

Test(frame, lets_unknown_types_pass_unless_critical)
{
    uint8_t bytes[INF_FRAME_HEADER_BYTES] = {[16] = 200, [17] = 3};
    struct inf_frame_header header;
    cr_assert_eq(inf_frame_header_decode(&header, bytes, NULL), INF_OK);
    cr_assert_eq(header.fd_count, 3);
    bytes[18] = 4;
    cr_assert_eq(inf_frame_header_decode(&header, bytes, NULL), INF_INVALID);
}

Test(frame, names_types_and_methods)
{
    cr_assert_str_eq(inf_frame_type_name(1), "HELLO");
    cr_assert_str_eq(inf_frame_type_name(13), "ERROR");
    cr_assert_str_eq(inf_frame_type_name(0), "?");
    cr_assert_str_eq(inf_frame_type_name(14), "MEM_ALLOC");
    cr_assert_str_eq(inf_frame_type_name(15), "CREDIT");
    cr_assert_str_eq(inf_frame_type_name(16), "DATA");
    cr_assert_str_eq(inf_frame_type_name(17), "?");
    cr_assert_str_eq(inf_frame_type_name(255), "?");
    cr_assert_str_eq(inf_method_name(6), "ModelInfer");
    cr_assert_str_eq(inf_method_name(18), "RepositoryModelUnload");
    cr_assert_str_eq(inf_method_name(65), "ServerStatus");
    cr_assert_str_eq(inf_method_name(0), "?");
    cr_assert_str_eq(inf_method_name(7), "?");
    cr_assert_str_eq(inf_method_name(66), "MemoryInfo");
    cr_assert_str_eq(inf_method_name(67), "Metrics");
    cr_assert_str_eq(inf_method_name(80), "SessionOpen");
    cr_assert_str_eq(inf_method_name(81), "SessionClose");
    cr_assert_str_eq(inf_method_name(65535), "?");
}
