// SPDX-License-Identifier: Apache-2.0
// Converts struct inf_tensor_entry to and from the four protobuf messages that describe a tensor.
// Private to proto/wire.
#ifndef INF_PROTO_WIRE_TENSOR_ENTRY_H
#define INF_PROTO_WIRE_TENSOR_ENTRY_H

#include <stddef.h>
#include <stdint.h>

#include "proto/wire/message_codec.h"

// The fields that all protobuf messages about tensors have, whatever the message is called.
struct inf_wire_tensor {
    const char *name;
    const char *datatype;
    size_t rank;
    const int64_t *dims;
    const Inference__Location *location; // NULL: the message has no location
};

// Fails if a message has more than INF_LIMIT_TENSORS tensors. In all functions of this file, `what`
// is "input" or "output".
enum inf_code inf_tensor_check_count(const char *what, size_t count,
                                     struct inf_error *err) INF_NODISCARD;

// Decodes and checks name, datatype, location and shape. The shape must have no unknown dimensions,
// and the tensor must not exceed INF_LIMIT_TENSOR_BYTES.
enum inf_code inf_tensor_decode(struct inf_tensor_entry *entry, const char *what,
                                const struct inf_wire_tensor *wire,
                                struct inf_error *err) INF_NODISCARD;

// Decodes and checks an input or output of a model's description as inf_tensor_decode() does for a
// tensor. Dimensions may be unknown, and there is no location.
enum inf_code inf_tensor_decode_metadata(struct inf_tensor_entry *entry, const char *what,
                                         const struct inf_wire_tensor *wire,
                                         struct inf_error *err) INF_NODISCARD;

// Decodes and checks a shape without unknown dimensions.
enum inf_code inf_shape_decode(struct inf_shape *shape, const char *what,
                               const struct inf_wire_tensor *wire,
                               struct inf_error *err) INF_NODISCARD;

// Decodes and checks the name of a tensor in a session; "" means none. Only a request with a
// session may have one, and the tensor must then have no location.
enum inf_code inf_session_tensor_decode(struct inf_tensor_entry *entry, const char *what,
                                        const char *session_tensor, bool in_session,
                                        struct inf_error *err) INF_NODISCARD;

// Checks the name of a tensor.
enum inf_code inf_tensor_check_name(const char *what, const char *name,
                                    struct inf_error *err) INF_NODISCARD;

// Decodes and checks a location. NULL becomes a location with `present` false.
enum inf_code inf_location_decode(struct inf_location *location, const char *what, const char *name,
                                  const Inference__Location *wire,
                                  struct inf_error *err) INF_NODISCARD;

// Fails if two entries have the same name.
enum inf_code inf_tensor_check_distinct(const char *what, const struct inf_tensor_entry *entries,
                                        uint32_t count, struct inf_error *err) INF_NODISCARD;

// Checks that an entry can be encoded: it has a type and a rank. The rank may be unknown if
// `metadata` is true.
enum inf_code inf_tensor_check_encodable(const char *what, const struct inf_tensor_entry *entry,
                                         bool metadata, struct inf_error *err) INF_NODISCARD;

// Converts the location to a protobuf-c message in *out_wire. If the location is not present, sets
// *out_wire to NULL.
enum inf_code inf_location_encode(Inference__Location **out_wire,
                                  const struct inf_location *location, struct inf_scratch *scratch,
                                  struct inf_error *err) INF_NODISCARD;

// Sets *size_bytes to the size of a tensor with the entry's shape and type. For BYTES it is the
// least size, that of empty strings.
//
// INF_INVALID  (BAD_PARAMETER) the size exceeds INF_LIMIT_TENSOR_BYTES, or the strings
//              INF_LIMIT_STRING_ELEMENTS.
enum inf_code inf_tensor_bytes(size_t *size_bytes, const char *what,
                               const struct inf_tensor_entry *entry,
                               struct inf_error *err) INF_NODISCARD;

#endif
