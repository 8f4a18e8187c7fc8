// SPDX-License-Identifier: Apache-2.0
// The protobuf reader, tested with hand-written bytes.
#include "backends/import/onnx/protobuf.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define SPAN(text) ((struct inf_span){(const uint8_t *)(text), sizeof(text) - 1})

// The schema of one kind of message. The message may contain itself in field 1 (repeated) and in
// field 2 (at most once).
static const struct inf_pb_child schema[] = {
    {0, 0, 1, true, "a child"}, {0, 0, 2, false, "the child"}, {0}};

static enum inf_code check_bytes(struct inf_span bytes, struct inf_error *err)
{
    return inf_pb_check(bytes, schema, 0, 1000, err);
}

Test(pbwire, every_kind_of_field_is_read)
{
    // Field 1 is 150 (the example in the protobuf documentation), field 2 is "testing", field 3 is
    // 1.0f, field 4 is 1.0.
    struct inf_pb pb = {
        SPAN("\x08\x96\x01\x12\x07testing\x1d\0\0\x80\x3f\x21\0\0\0\0\0\0\xf0\x3f")};
    struct inf_pb_field field;
    bool more;
    cr_assert_eq(inf_pb_next(&pb, &field, &more, NULL), INF_OK);
    cr_assert(field.number == 1 && field.type == INF_PB_VARINT && field.value == 150);
    cr_assert_eq(inf_pb_next(&pb, &field, &more, NULL), INF_OK);
    cr_assert(field.number == 2 && field.bytes.size == 7);
    cr_assert_eq(memcmp(field.bytes.data, "testing", 7), 0);
    cr_assert_eq(inf_pb_next(&pb, &field, &more, NULL), INF_OK);
    cr_assert(field.number == 3 && field.value == 0x3f800000);
    cr_assert_eq(inf_pb_next(&pb, &field, &more, NULL), INF_OK);
    cr_assert(field.number == 4 && field.value == 0x3ff0000000000000);
    cr_assert_eq(inf_pb_next(&pb, &field, &more, NULL), INF_OK);
    cr_assert_not(more);
}

Test(pbwire, a_varint_holds_64_bits_and_no_more)
{
    uint64_t value;
    struct inf_span most = SPAN("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    cr_assert(inf_pb_varint(&most, &value));
    cr_assert_eq(value, UINT64_MAX);
    cr_assert_eq(most.size, 0);
    struct inf_span more = SPAN("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02");
    cr_assert_not(inf_pb_varint(&more, &value));
    struct inf_span endless = SPAN("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01");
    cr_assert_not(inf_pb_varint(&endless, &value));
    struct inf_span cut = SPAN("\xff\xff");
    cr_assert_not(inf_pb_varint(&cut, &value));
    struct inf_span empty = {NULL, 0};
    cr_assert_not(inf_pb_varint(&empty, &value));
}

Test(pbwire, malformed_fields_are_refused)
{
    static const struct {
        struct inf_span bytes;
        const char *part;
    } cases[] = {
        // a tag with field number 0, which is invalid
        {{(const uint8_t *)"\x00\x01", 2}, "no valid number"},
        // a tag that starts a group, which is refused
        {{(const uint8_t *)"\x0b", 1}, "wire type 3"},
        // a tag that ends a group, which is refused
        {{(const uint8_t *)"\x0c", 1}, "wire type 4"},
        {{(const uint8_t *)"\x0f", 1}, "wire type 7"}, // a tag with an undefined wire type
        // a tag without the value that must follow
        {{(const uint8_t *)"\x08", 1}, "beyond its message"},
        {{(const uint8_t *)"\x1a\x05"
                           "abcd",
          6},
         "beyond its message"}, // the value lacks one byte
        {{(const uint8_t *)"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                           "abc",
          14},
         "beyond"},
        {{(const uint8_t *)"\x1d\0\0\0", 4}, "beyond its message"},
        {{(const uint8_t *)"\x19\0\0\0\0\0\0\0", 8}, "beyond its message"},
        // the field number 2^29 is too large
        {{(const uint8_t *)"\x80\x80\x80\x80\x10\x01", 6}, "no valid number"},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_error err = {0};
        cr_assert_eq(check_bytes(cases[i].bytes, &err), INF_INVALID, "case %zu", i);
        cr_assert_not_null(strstr(err.text, cases[i].part), "case %zu: %s", i, err.text);
    }
}

// Makes `levels` nested messages.
static uint8_t *nest_messages(size_t levels, size_t *size)
{
    // A message of n bytes takes at most n + 6 bytes inside another message.
    uint8_t *bytes = malloc(levels * 6 + 1), *at = bytes + levels * 6;
    uint8_t *end = at;
    cr_assert_not_null(bytes);
    for (size_t i = 1; i < levels; i++) {
        size_t length = (size_t)(end - at), count = 0;
        uint8_t head[6] = {0x0a};
        do {
            head[1 + count] = (uint8_t)((length & 127) | (length > 127 ? 128 : 0));
            length >>= 7;
            count++;
        } while (length > 0);
        at -= count + 1;
        memcpy(at, head, count + 1);
    }
    *size = (size_t)(end - at);
    memmove(bytes, at, *size);
    return bytes;
}

Test(pbwire, messages_nest_64_deep_and_no_deeper)
{
    static const size_t levels[] = {1, 63, 64, 65, 1000, 1000000};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(levels); i++) {
        size_t size;
        struct inf_error err = {0};
        uint8_t *bytes = nest_messages(levels[i], &size);
        bool fits = levels[i] <= INF_PB_DEPTH_MAX;
        cr_assert_eq(inf_pb_check((struct inf_span){bytes, size}, schema, 0, 1 << 21, &err),
                     fits ? INF_OK : INF_EXHAUSTED, "%zu levels", levels[i]);
        if (!fits)
            cr_assert_not_null(strstr(err.text, "64 messages deep"), "%s", err.text);
        free(bytes);
    }
}

Test(pbwire, what_may_be_there_once_is_refused_twice)
{
    struct inf_error err = {0};
    cr_assert_eq(check_bytes(SPAN("\x0a\0\x0a\0\x12\0"), &err), INF_OK, "%s", err.text);
    cr_assert_eq(check_bytes(SPAN("\x12\0\x0a\0\x12\0"), &err), INF_INVALID);
    cr_assert_str_eq(err.text, "the child is there twice");
    // The fields of each nested message are counted separately.
    cr_assert_eq(check_bytes(SPAN("\x12\0\x0a\x02\x12\0"), &err), INF_OK);
    cr_assert_eq(check_bytes(SPAN("\x10\x01"), &err), INF_INVALID);
    cr_assert_str_eq(err.text, "the child is not a protobuf message");
}

Test(pbwire, fields_are_counted)
{
    uint8_t bytes[2002];
    struct inf_error err = {0};
    for (size_t i = 0; i < sizeof bytes; i += 2) {
        bytes[i] = 0x78;
        bytes[i + 1] = 1;
    }
    cr_assert_eq(check_bytes((struct inf_span){bytes, 2000}, &err), INF_OK);
    cr_assert_eq(check_bytes((struct inf_span){bytes, 2002}, &err), INF_EXHAUSTED);
    cr_assert_not_null(strstr(err.text, "1000"), "%s", err.text);
}
