// SPDX-License-Identifier: Apache-2.0
// One message of every kind with every field set, to be encoded.
#ifndef INF_TESTS_SUPPORT_WIRE_WIRE_SAMPLES_H
#define INF_TESTS_SUPPORT_WIRE_WIRE_SAMPLES_H

#include "proto/wire/message.h"

// Fills `message` with the sample of that kind. Its texts and lists are constants.
void wire_sample(union inf_message *message, enum inf_message_kind kind);

#endif
