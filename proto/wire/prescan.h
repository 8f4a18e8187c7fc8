// SPDX-License-Identifier: Apache-2.0
// Checks protobuf bytes against their message type before protobuf-c sees them: it has no limit on
// depth, on the number of fields or on the cost of merging. Private to proto/wire.
#ifndef INF_PROTO_WIRE_PRESCAN_H
#define INF_PROTO_WIRE_PRESCAN_H

#include <protobuf-c/protobuf-c.h>

#include "proto/core/span.h"
#include "proto/core/status.h"

// Checks that `bytes` are one message of the type `descriptor`: at most INF_LIMIT_META_DEPTH deep,
// at most INF_LIMIT_META_FIELDS fields in all (unknown ones count), every singular message field
// once, wire types as declared and no groups, varints of at most 64 bits, lengths inside their
// message, strings of UTF-8 without NUL. Unknown fields are not looked into. Time is linear in the
// size, memory constant.
//
// INF_INVALID  (BAD_FRAME) the text names message, field and position.
enum inf_code inf_prescan(const ProtobufCMessageDescriptor *descriptor, struct inf_span bytes,
                          struct inf_error *err) INF_NODISCARD;

#endif
