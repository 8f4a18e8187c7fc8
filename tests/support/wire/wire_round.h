// SPDX-License-Identifier: Apache-2.0
// Round trips of messages: a message is filled in, encoded, and decoded again. For tests of
// encoding and decoding.
#ifndef INF_TESTS_SUPPORT_WIRE_WIRE_ROUND_H
#define INF_TESTS_SUPPORT_WIRE_WIRE_ROUND_H

#include <stddef.h>

#include "proto/wire/message.h"
#include "tests/support/wire/wire_bytes.h"

// The messages and memory of the current test's round trip.
struct wire_round {
    union inf_message sent, got;
    struct inf_scratch *scratch;
    struct wire_bytes bytes; // the encoded form of `sent`
};
extern struct wire_round wire_round;

// Prepare and free `wire_round`. They are the .init and .fini functions of a test suite.
void wire_round_open(void);
void wire_round_close(void);

// Encodes the message `sent` and decodes the bytes. Both must succeed.
void wire_round_encode(enum inf_message_kind kind);
void wire_round_decode(enum inf_message_kind kind);

// Fills in the sample message of that kind, and calls wire_round_encode().
void wire_round_go(enum inf_message_kind kind);

#define SAME(member)      cr_assert_eq(wire_round.got.member, wire_round.sent.member)
#define SAME_TEXT(member) cr_assert_str_eq(wire_round.got.member, wire_round.sent.member)

// A field of a struct, to be compared after a round trip.
struct wire_field {
    const char *name;
    size_t offset;
    size_t size; // size in bytes; 0 if the field is a text
};
#define WIRE_TEXT(type, member)                                                                    \
    {                                                                                              \
#member, offsetof(struct type, member), 0                                                  \
    }
#define WIRE_VALUE(type, member)                                                                   \
    {                                                                                              \
#member, offsetof(struct type, member), sizeof(((struct type *)0)->member)                 \
    }

// Asserts that the listed fields have the same values in the sent and in the decoded message.
// `part` is the member of the message that has the fields.
#define SAME_FIELDS(part, fields)                                                                  \
    wire_same_fields(&wire_round.got.part, &wire_round.sent.part, fields,                          \
                     sizeof(fields) / sizeof((fields)[0]))
void wire_same_fields(const void *got, const void *sent, const struct wire_field *fields,
                      size_t count);

// Asserts that two descriptions of a tensor in a message are equal.
void wire_same_entry(const struct inf_tensor_entry *a, const struct inf_tensor_entry *b);
void wire_same_limits(const struct inf_limits_message *a, const struct inf_limits_message *b);

#endif
