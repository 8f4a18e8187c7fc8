// SPDX-License-Identifier: Apache-2.0
// struct inf_tensor_entry to and from the four protobuf messages that describe a tensor. Private to
// proto/wire.
#ifndef INF_PROTO_WIRE_TENSOR_ENTRY_H
#define INF_PROTO_WIRE_TENSOR_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wire/message_codec.h"

// What the protobuf messages have in common.
struct inf_wire_tensor {
    const char *name;
    const char *datatype;
    size_t rank;
    const int64_t *dims;
    const Inference__Location *location; // NULL: absent
};

// Fails where a message has more than INF_LIMIT_TENSORS tensors. `what` is "input" or "output", here
// and below.
enum inf_code inf_tensor_check_count(const char *what, size_t count,
                                     struct inf_error *err) INF_NODISCARD;

// Decodes and checks name, datatype, shape (no unknown dimensions, and not above
// INF_LIMIT_TENSOR_BYTES) and location.
enum inf_code inf_tensor_decode(struct inf_tensor_entry *entry, const char *what,
                                const struct inf_wire_tensor *wire,
                                struct inf_error *err) INF_NODISCARD;

// The same for a tensor that a model takes or gives: dimensions may be unknown, there is no
// location.
enum inf_code inf_tensor_decode_metadata(struct inf_tensor_entry *entry, const char *what,
                                         const struct inf_wire_tensor *wire,
                                         struct inf_error *err) INF_NODISCARD;

// Decodes and checks the shape alone: no unknown dimensions.
enum inf_code inf_shape_decode(struct inf_shape *shape, const char *what,
                               const struct inf_wire_tensor *wire,
                               struct inf_error *err) INF_NODISCARD;

// Decodes and checks the name of a tensor that a session keeps; "" is none. Only a request with a
// session may have one, and it says no location beside it.
enum inf_code inf_session_tensor_decode(struct inf_tensor_entry *entry, const char *what,
                                        const char *session_tensor, bool in_session,
                                        struct inf_error *err) INF_NODISCARD;

// Checks a tensor's name.
enum inf_code inf_tensor_check_name(const char *what, const char *name,
                                    struct inf_error *err) INF_NODISCARD;

// Decodes and checks a location; NULL gives an absent one.
enum inf_code inf_location_decode(struct inf_location *location, const char *what, const char *name,
                                  const Inference__Location *wire,
                                  struct inf_error *err) INF_NODISCARD;

// Fails where two entries have the same name.
enum inf_code inf_tensor_check_distinct(const char *what, const struct inf_tensor_entry *entries,
                                        uint32_t count, struct inf_error *err) INF_NODISCARD;

// Checks what an entry must have before it is encoded: a type, and a rank (an unknown one only where
// `metadata`).
enum inf_code inf_tensor_check_encodable(const char *what, const struct inf_tensor_entry *entry,
                                         bool metadata, struct inf_error *err) INF_NODISCARD;

// *out_wire = the location for protobuf-c, NULL where absent.
enum inf_code inf_location_encode(Inference__Location **out_wire,
                                  const struct inf_location *location, struct inf_scratch *scratch,
                                  struct inf_error *err) INF_NODISCARD;

// *size_bytes = the bytes of a decoded entry's shape and datatype.
//
// INF_INVALID  (BAD_PARAMETER) above INF_LIMIT_TENSOR_BYTES.
enum inf_code inf_tensor_bytes(size_t *size_bytes, const char *what,
                               const struct inf_tensor_entry *entry,
                               struct inf_error *err) INF_NODISCARD;

#endif
