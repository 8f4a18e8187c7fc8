// SPDX-License-Identifier: Apache-2.0
// One sample message of every kind, with every field set, for tests of encoding and decoding.
#ifndef INF_TESTS_SUPPORT_WIRE_WIRE_SAMPLES_H
#define INF_TESTS_SUPPORT_WIRE_WIRE_SAMPLES_H

#include "proto/wire/message.h"

// Fills `message` with the sample message of that kind. Its texts and lists are constants.
void wire_sample(union inf_message *message, enum inf_message_kind kind);

#endif
