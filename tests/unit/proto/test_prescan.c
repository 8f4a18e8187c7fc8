// SPDX-License-Identifier: Apache-2.0
// Tests of the prescan, which checks protobuf bytes before they are unpacked.
#include <criterion/criterion.h>
#include <string.h>
#include <time.h>

#include "proto/core/limits.h"
#include "proto/core/utf8.h"
#include "proto/wire/inferd.pb-c.h"
#include "proto/wire/prescan.h"
#include "tests/support/wire/wire_bytes.h"

// A message type that contains itself (field 1, singular) and a list of itself (field 2), like
// messages of ONNX. No message of inferd contains itself, so the limit on the depth needs this type
// for its tests.
extern const ProtobufCMessageDescriptor nest;
static const ProtobufCFieldDescriptor nest_fields[] = {
    {.name = "one",
     .id = 1,
     .label = PROTOBUF_C_LABEL_NONE,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .descriptor = &nest},
    {.name = "many",
     .id = 2,
     .label = PROTOBUF_C_LABEL_REPEATED,
     .type = PROTOBUF_C_TYPE_MESSAGE,
     .descriptor = &nest},
    {.name = "fixed", .id = 3, .label = PROTOBUF_C_LABEL_REPEATED, .type = PROTOBUF_C_TYPE_FIXED32},
    {.name = "wide", .id = 4, .label = PROTOBUF_C_LABEL_NONE, .type = PROTOBUF_C_TYPE_DOUBLE},
};
static const ProtobufCIntRange nest_ranges[] = {{1, 0}, {0, 4}};
const ProtobufCMessageDescriptor nest = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "test.Nest",
    .short_name = "Nest",
    .n_fields = 4,
    .fields = nest_fields,
    .n_field_ranges = 1,
    .field_ranges = nest_ranges,
};

static enum inf_code scan_bytes(const ProtobufCMessageDescriptor *descriptor,
                                const struct wire_bytes *bytes, struct inf_error *err)
{
    return inf_prescan(descriptor, wire_span(bytes), err);
}

// Expects that the prescan accepts the bytes as this message type.
static void expect_accepted(const ProtobufCMessageDescriptor *descriptor,
                            const struct wire_bytes *bytes)
{
    struct inf_error err;
    cr_assert_eq(scan_bytes(descriptor, bytes, &err), INF_OK, "%s", err.text);
}

// Expects that the prescan refuses the bytes with `text` in the error.
static void expect_refused(const ProtobufCMessageDescriptor *descriptor,
                           const struct wire_bytes *bytes, const char *text)
{
    struct inf_error err;
    cr_assert_eq(scan_bytes(descriptor, bytes, &err), INF_INVALID, "wanted: %s", text);
    cr_assert_eq(err.reason, INF_REASON_BAD_FRAME);
    cr_assert_not_null(strstr(err.text, text), "'%s' does not say '%s'", err.text, text);
}

static void refuses_literal(const ProtobufCMessageDescriptor *descriptor, const char *data,
                            size_t size, const char *text)
{
    static struct wire_bytes bytes;
    bytes.size = 0;
    wire_raw(&bytes, data, size);
    expect_refused(descriptor, &bytes, text);
}

#define INFER  (&inference__model_infer_request__descriptor)
#define STATUS (&inference__status__descriptor)
#define INPUT  (&inference__model_infer_request__infer_input_tensor__descriptor)

// --- attacks of the size of the largest allowed metadata ---

// Writes `levels` nested messages, each in field `field` of the message around it.
static void put_nest(struct wire_bytes *bytes, uint32_t field, size_t levels)
{
    static struct wire_bytes inner;
    bytes->size = 0;
    for (size_t i = 1; i < levels; i++) {
        inner = *bytes;
        bytes->size = 0;
        wire_message(bytes, field, &inner);
    }
}

Test(prescan, bounds_the_depth)
{
    static struct wire_bytes bytes;
    for (uint32_t field = 1; field <= 2; field++) {
        put_nest(&bytes, field, INF_LIMIT_META_DEPTH);
        expect_accepted(&nest, &bytes);
        put_nest(&bytes, field, INF_LIMIT_META_DEPTH + 1);
        expect_refused(&nest, &bytes, "nest too deeply");
        put_nest(&bytes, field, 3000);
        expect_refused(&nest, &bytes, "nest too deeply");
    }
}

Test(prescan, does_not_look_into_unknown_fields)
{
    static struct wire_bytes bytes;
    static struct wire_bytes outer;
    put_nest(&bytes, 9, 3000);
    outer.size = 0;
    wire_message(&outer, 9, &bytes);
    expect_accepted(&nest, &outer);
}

Test(prescan, bounds_the_number_of_fields)
{
    static struct wire_bytes bytes;
    // A repeated singular scalar, an unknown varint, empty bytes, and an empty message in a list.
    static const struct {
        const char *data;
        const ProtobufCMessageDescriptor *descriptor;
    } bombs[] = {
        {"\x08\x01", STATUS},
        {"\x78\x01", INFER},
        {"\x3a\x00", INFER},
        {"\x2a\x00", INFER},
    };
    for (size_t i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        bytes.size = 0;
        wire_repeat(&bytes, bombs[i].data, 2, INF_LIMIT_META_FIELDS);
        expect_accepted(bombs[i].descriptor, &bytes);
        wire_raw(&bytes, bombs[i].data, 2);
        expect_refused(bombs[i].descriptor, &bytes, "too many fields");
        bytes.size = 0;
        wire_repeat(&bytes, bombs[i].data, 2, INF_LIMIT_META_BYTES / 2);
        expect_refused(bombs[i].descriptor, &bytes, "too many fields");
    }
}

Test(prescan, counts_fields_of_all_depths_together)
{
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    tensor.size = 0;
    wire_repeat(&tensor, "\x78\x01", 2, 99);
    bytes.size = 0;
    for (int i = 0; i < 40; i++)
        wire_message(&bytes, 5, &tensor); // each tensor has 100 fields
    expect_accepted(INFER, &bytes);
    wire_message(&bytes, 5, &tensor);
    expect_refused(INFER, &bytes, "too many fields");
}

Test(prescan, refuses_a_singular_message_twice_in_no_time)
{
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    tensor.size = 0;
    // InferInputTensor.location occurs 4000 times; protobuf-c would merge each one into the
    // previous one.
    wire_repeat(&tensor, "\xa2\x06\x02\x08\x01", 5, 4000);
    bytes.size = 0;
    wire_message(&bytes, 5, &tensor);
    struct timespec before;
    struct timespec after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    expect_refused(INFER, &bytes, "InferInputTensor.location at byte");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 +
                (double)(after.tv_nsec - before.tv_nsec) / 1e6;
    cr_assert_lt(ms, 5.0, "took %.1f ms of the processor", ms);
}

Test(prescan, tells_the_same_field_of_two_messages_from_a_repetition)
{
    static struct wire_bytes bytes;
    bytes.size = 0;
    wire_repeat(&bytes, "\x2a\x05\xa2\x06\x02\x08\x01", 7, 2);
    expect_accepted(INFER, &bytes);
}

Test(prescan, reads_a_full_block_of_packed_numbers_in_linear_time)
{
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    static uint8_t ones[60000];
    memset(ones, 1, sizeof ones);
    tensor.size = 0;
    wire_block(&tensor, 3, ones, sizeof ones);
    bytes.size = 0;
    wire_message(&bytes, 5, &tensor);
    expect_accepted(INFER, &bytes);
}

// --- valid and invalid protobuf ---

Test(prescan, accepts_what_protobuf_allows)
{
    static struct wire_bytes bytes;
    bytes.size = 0;
    expect_accepted(INFER, &bytes);
    cr_assert_eq(inf_prescan(INFER, (struct inf_span){0}, NULL), INF_OK);
    // The value int32 -1 in ten bytes, an unknown field of each wire type, and the highest field
    // number.
    wire_raw(&bytes, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    wire_raw(&bytes, "\x78\x00\x79........\x7d....\x7a\x03...", 21);
    wire_raw(&bytes, "\xf8\xff\xff\xff\x0f\x00", 6);
    expect_accepted(STATUS, &bytes);
    // A list of numbers in three encodings: packed, not packed, and packed without elements.
    bytes.size = 0;
    wire_raw(&bytes, "\x1a\x03\x01\x80\x01\x18\x05\x1a\x00", 9);
    expect_accepted(INPUT, &bytes);
    bytes.size = 0;
    wire_raw(&bytes, "\x1a\x08........\x1d....\x21........", 24);
    expect_accepted(&nest, &bytes);
}

Test(prescan, refuses_broken_bytes)
{
    refuses_literal(STATUS, "\x08", 1, "Status.code at byte 1: no valid varint");
    refuses_literal(STATUS, "\x88", 1, "no valid tag");
    refuses_literal(STATUS, "\x08\x80", 2, "no valid varint");
    refuses_literal(STATUS, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "no valid varint");
    refuses_literal(STATUS, "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 12,
                    "no valid varint");
    refuses_literal(STATUS, "\x00\x00", 2, "no valid tag");
    refuses_literal(STATUS, "\x07", 1, "no valid tag");
    refuses_literal(STATUS, "\x80\x80\x80\x80\x10\x00", 6, "no valid tag");
    refuses_literal(STATUS, "\x12\x02x", 3, "reaches beyond the end");
    refuses_literal(STATUS, "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11,
                    "reaches beyond the end");
    refuses_literal(STATUS, "\x12\x80", 2, "no valid length");
    refuses_literal(STATUS, "\x79.......", 8, "reaches beyond the end");
    refuses_literal(STATUS, "\x7d...", 4, "reaches beyond the end");
    refuses_literal(STATUS, "\x7a\x04...", 5, "reaches beyond the end");
    // A sub-message ends inside its parent, but a field of the sub-message does not.
    refuses_literal(INFER, "\x2a\x02\x0a\x01x", 5, "InferInputTensor.name at byte 4");
}

Test(prescan, refuses_groups_and_wrong_wire_types)
{
    refuses_literal(STATUS, "\x0b\x0c", 2, "Status.code at byte 1: groups are not allowed");
    refuses_literal(STATUS, "\x7b\x7c", 2, "groups are not allowed");
    refuses_literal(STATUS, "\x7e", 1, "wire types 6 and 7");
    refuses_literal(STATUS, "\x0a\x00", 2, "wire type is not that of the field");
    refuses_literal(STATUS, "\x09........", 9, "wire type is not that of the field");
    refuses_literal(STATUS, "\x10\x00", 2, "Status.message at byte 1: wire type");
    refuses_literal(INFER, "\x28\x00", 2, "ModelInferRequest.inputs at byte 1: wire type");
    refuses_literal(INPUT, "\x1d....", 5, "InferInputTensor.shape at byte 1: wire type");
    refuses_literal(&nest, "\x20\x00", 2, "wire type is not that of the field");
}

Test(prescan, refuses_broken_packed_lists)
{
    refuses_literal(INPUT, "\x1a\x02\x01\x80", 4, "no valid varint in the packed list");
    refuses_literal(&nest, "\x1a\x07.......", 9, "packed list is cut");
    refuses_literal(INPUT, "\x1a\x02\x01", 3, "reaches beyond the end");
}

Test(prescan, refuses_text_that_is_not_utf8)
{
    static const struct {
        const char *text;
        size_t size;
    } bad[] = {
        {"a\0b", 3},
        {"\x80", 1},
        {"\xc0\xaf", 2},
        {"\xc1\xbf", 2},
        {"\xe0\x80\xaf", 3},
        {"\xed\xa0\x80", 3},
        {"\xf0\x8f\xbf\xbf", 4},
        {"\xf4\x90\x80\x80", 4},
        {"\xf5\x80\x80\x80", 4},
        {"\xff", 1},
        {"\xe2\x82", 2},
        {"\xc3", 1},
        {"\xe2\x28\xa1", 3},
    };
    static struct wire_bytes bytes;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bytes.size = 0;
        wire_block(&bytes, 2, bad[i].text, bad[i].size);
        expect_refused(STATUS, &bytes, "string is not UTF-8");
    }
    // The characters are U+7FF, U+800, U+D7FF, U+E000, U+FFFD, U+10000 and U+10FFFF.
    bytes.size = 0;
    wire_text(&bytes, 2,
              "\xdf\xbf\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbd\xf0\x90\x80\x80"
              "\xf4\x8f\xbf\xbf");
    expect_accepted(STATUS, &bytes);
}

Test(prescan, refuses_every_truncation_but_those_between_fields)
{
    static struct wire_bytes bytes;
    static struct wire_bytes tensor;
    tensor.size = 0;
    wire_text(&tensor, 1, "x");
    wire_text(&tensor, 2, "FP32");
    wire_block(&tensor, 3, "\x01\x02", 2);
    bytes.size = 0;
    wire_text(&bytes, 1, "m");
    wire_message(&bytes, 5, &tensor);
    wire_number(&bytes, 100, 1000000);
    expect_accepted(INFER, &bytes);
    size_t whole = bytes.size;
    for (bytes.size = 0; bytes.size < whole; bytes.size++) {
        bool between = bytes.size == 0 || bytes.size == 3 || bytes.size == 5 + tensor.size;
        cr_assert_eq(scan_bytes(INFER, &bytes, NULL), between ? INF_OK : INF_INVALID, "cut at %zu",
                     bytes.size);
    }
}

// --- names of fields that are quoted in errors ---

Test(quote, makes_one_line_of_anything)
{
    cr_assert_str_eq(inf_quote("a/b:0").text, "a/b:0");
    cr_assert_str_eq(inf_quote("a\nb\x1b[0m\x7f").text, "a?b?[0m?");
    cr_assert_str_eq(inf_quote("m\" uid=\"0").text, "m' uid='0", "no text ends its field");
    cr_assert_str_eq(inf_quote("\xc2\x85\xc3\xa9\xff").text, "?\xc3\xa9?");
    char text[200];
    memset(text, 'x', sizeof text);
    text[64] = '\0';
    cr_assert_str_eq(inf_quote(text).text, text);
    text[64] = 'x';
    text[65] = '\0';
    cr_assert_eq(strlen(inf_quote(text).text), 67);
    // The truncation must not split a character.
    memcpy(text + 63, "\xc3\xa9", 3);
    cr_assert_eq(strlen(inf_quote(text).text), 66);
    cr_assert_str_eq(inf_quote(text).text + 62, "x...");
}
