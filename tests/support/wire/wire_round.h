// SPDX-License-Identifier: Apache-2.0
// Messages that go there and back: filled, encoded, and decoded again. For tests of encoding and
// decoding.
#ifndef INF_TESTS_SUPPORT_WIRE_WIRE_ROUND_H
#define INF_TESTS_SUPPORT_WIRE_WIRE_ROUND_H

#include <stddef.h>

#include "proto/wire/message.h"
#include "tests/support/wire/wire_bytes.h"

// What the test under way has.
struct wire_round {
    union inf_message sent, got;
    struct inf_scratch *scratch;
    struct wire_bytes bytes; // of `sent`
};
extern struct wire_round wire_round;

// .init and .fini of a suite.
void wire_round_open(void);
void wire_round_close(void);

// Encodes what is to be sent, and decodes the bytes; either has to go well.
void wire_round_encode(enum inf_message_kind kind);
void wire_round_decode(enum inf_message_kind kind);

// Both, with the sample of that kind.
void wire_round_go(enum inf_message_kind kind);

#define SAME(member)      cr_assert_eq(wire_round.got.member, wire_round.sent.member)
#define SAME_TEXT(member) cr_assert_str_eq(wire_round.got.member, wire_round.sent.member)

// A field of a struct that goes round.
struct wire_field {
    const char *name;
    size_t offset;
    size_t size; // 0: it is a text
};
#define WIRE_TEXT(type, member)                                                                    \
    {                                                                                              \
#member, offsetof(struct type, member), 0                                                  \
    }
#define WIRE_VALUE(type, member)                                                                   \
    {                                                                                              \
#member, offsetof(struct type, member), sizeof(((struct type *)0)->member)                 \
    }

// Asserts that these fields of a part of the message are what they were.
#define SAME_FIELDS(part, fields)                                                                  \
    wire_same_fields(&wire_round.got.part, &wire_round.sent.part, fields,                          \
                     sizeof(fields) / sizeof((fields)[0]))
void wire_same_fields(const void *got, const void *sent, const struct wire_field *fields,
                      size_t count);

// Asserts that they are the same.
void wire_same_entry(const struct inf_tensor_entry *a, const struct inf_tensor_entry *b);
void wire_same_limits(const struct inf_limits_message *a, const struct inf_limits_message *b);

#endif
