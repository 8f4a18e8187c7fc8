// SPDX-License-Identifier: Apache-2.0
// Checks protobuf bytes against their message type before protobuf-c sees them: it has no limit on
// depth, on the number of fields or on the cost of merging. Private to proto/wire.
#ifndef INF_PROTO_WIRE_PRESCAN_H
#define INF_PROTO_WIRE_PRESCAN_H

#include <protobuf-c/protobuf-c.h>

#include "proto/core/span.h"
#include "proto/core/status.h"

// Checks that `bytes` are one message of the type `descriptor`: it nests at most
// INF_LIMIT_META_DEPTH deep; it has at most INF_LIMIT_META_FIELDS fields in total (unknown ones
// count); a singular message field occurs once; wire types are as declared, and there are no
// groups; varints have at most 64 bits; lengths are inside of their message; strings are UTF-8
// without NUL. Unknown fields are skipped. The time is linear in the size, and the memory is
// constant.
//
// INF_INVALID  (BAD_FRAME) the text names message, field and position.
enum inf_code inf_prescan(const ProtobufCMessageDescriptor *descriptor, struct inf_span bytes,
                          struct inf_error *err) INF_NODISCARD;

#endif
