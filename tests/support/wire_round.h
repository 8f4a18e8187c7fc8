// SPDX-License-Identifier: Apache-2.0
// Messages that go there and back: filled, encoded, and decoded again. For tests of encoding and decoding.
#ifndef INF_TESTS_SUPPORT_WIRE_ROUND_H
#define INF_TESTS_SUPPORT_WIRE_ROUND_H

#include "proto/wire/message.h"
#include "tests/support/wire_bytes.h"

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

// Asserts that they are the same.
void wire_same_entry(const struct inf_tensor_entry *a, const struct inf_tensor_entry *b);
void wire_same_limits(const struct inf_limits_message *a, const struct inf_limits_message *b);

#endif
