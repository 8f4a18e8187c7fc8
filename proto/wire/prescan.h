// SPDX-License-Identifier: Apache-2.0
// Checks protobuf bytes against their message type before protobuf-c unpacks them, because
// protobuf-c does not limit the depth, the number of fields or the cost of merging. Private to
// proto/wire.
#ifndef INF_PROTO_WIRE_PRESCAN_H
#define INF_PROTO_WIRE_PRESCAN_H

#include <protobuf-c/protobuf-c.h>

#include "proto/core/span.h"
#include "proto/core/status.h"

// Checks that `bytes` are one message of the type `descriptor`: its messages nest at most
// INF_LIMIT_META_DEPTH deep; it has at most INF_LIMIT_META_FIELDS fields in total (including
// unknown ones); a singular message field occurs once; wire types are as declared, and there are no
// groups; varints have at most 64 bits; no length exceeds its message; strings are UTF-8 without
// NUL. Unknown fields are skipped. The time is linear in the size, and the memory is constant.
//
// INF_INVALID  (BAD_FRAME) the error text names message, field and position.
enum inf_code inf_prescan(const ProtobufCMessageDescriptor *descriptor, struct inf_span bytes,
                          struct inf_error *err) INF_NODISCARD;

#endif
