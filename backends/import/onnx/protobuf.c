// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format: cursor, varints, and a check of nested messages with an explicit stack.
#include "backends/import/onnx/protobuf.h"

#include <string.h>

#include "proto/core/attributes.h"

bool inf_pb_varint(struct inf_span *bytes, uint64_t *value)
{
    uint64_t result = 0;
    for (size_t i = 0; i < bytes->size && i < 10; i++) {
        uint8_t byte = bytes->data[i];
        if (i == 9 && byte > 1)
            return false;
        result |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte & 0x80)
            continue;
        bytes->data += i + 1;
        bytes->size -= i + 1;
        *value = result;
        return true;
    }
    return false;
}

// Removes a little-endian number of `size` bytes from the front.
static bool take_fixed(struct inf_span *bytes, size_t size, uint64_t *value)
{
    if (bytes->size < size)
        return false;
    *value = 0;
    for (size_t i = 0; i < size; i++)
        *value |= (uint64_t)bytes->data[i] << (8 * i);
    bytes->data += size;
    bytes->size -= size;
    return true;
}

static bool take_bytes(struct inf_span *from, struct inf_span *bytes)
{
    uint64_t size;
    if (!inf_pb_varint(from, &size) || size > from->size)
        return false;
    *bytes = (struct inf_span){from->data, (size_t)size};
    from->data += size;
    from->size -= (size_t)size;
    return true;
}

enum inf_code inf_pb_next(struct inf_pb *pb, struct inf_pb_field *field, bool *more,
                          struct inf_error *err)
{
    uint64_t tag;
    bool whole = true;
    *more = pb->left.size > 0;
    if (!*more)
        return INF_OK;
    if (!inf_pb_varint(&pb->left, &tag) || tag >> 3 == 0 || tag >> 3 > (1u << 29) - 1)
        return inf_fail(err, INF_INVALID, "a protobuf field has no valid number");
    *field =
        (struct inf_pb_field){.number = (uint32_t)(tag >> 3), .type = (enum inf_pb_type)(tag & 7)};
    switch (field->type) {
    case INF_PB_VARINT:
        whole = inf_pb_varint(&pb->left, &field->value);
        break;
    case INF_PB_FIXED64:
        whole = take_fixed(&pb->left, 8, &field->value);
        break;
    case INF_PB_FIXED32:
        whole = take_fixed(&pb->left, 4, &field->value);
        break;
    case INF_PB_BYTES:
        whole = take_bytes(&pb->left, &field->bytes);
        break;
    default:
        return inf_fail(err, INF_INVALID, "protobuf field %u has wire type %u, wanted 0, 1, 2 or 5",
                        field->number, (unsigned)(tag & 7));
    }
    if (!whole)
        return inf_fail(err, INF_INVALID, "protobuf field %u goes beyond its message",
                        field->number);
    return INF_OK;
}

// A message that is being checked.
struct level {
    struct inf_pb pb;
    uint64_t seen; // bit i is set if the field of schema row i has occurred
    uint8_t message;
};

static enum inf_code check_field(const struct inf_pb_child *schema, struct level *level,
                                 const struct inf_pb_field *field,
                                 const struct inf_pb_child **out_child, struct inf_error *err)
{
    *out_child = NULL;
    for (size_t i = 0; schema[i].field != 0; i++) {
        const struct inf_pb_child *child = &schema[i];
        if (child->message != level->message || child->field != field->number)
            continue;
        if (field->type != INF_PB_BYTES)
            return inf_fail(err, INF_INVALID, "%s is not a protobuf message", child->name);
        if (!child->repeated && (level->seen & (uint64_t)1 << i))
            return inf_fail(err, INF_INVALID, "%s is there twice", child->name);
        level->seen |= (uint64_t)1 << i;
        *out_child = child;
        return INF_OK;
    }
    return INF_OK;
}

enum inf_code inf_pb_check(struct inf_span bytes, const struct inf_pb_child *schema,
                           uint8_t message, uint64_t fields_max, struct inf_error *err)
{
    struct level levels[INF_PB_DEPTH_MAX];
    size_t depth = 1;
    uint64_t fields = 0;
    levels[0] = (struct level){.pb = {bytes}, .message = message};
    while (depth > 0) {
        struct inf_pb_field field;
        const struct inf_pb_child *child;
        bool more;
        INF_TRY(inf_pb_next(&levels[depth - 1].pb, &field, &more, err));
        if (!more) {
            depth--;
            continue;
        }
        if (++fields > fields_max)
            return inf_fail(err, INF_EXHAUSTED, "more than %llu protobuf fields",
                            (unsigned long long)fields_max);
        INF_TRY(check_field(schema, &levels[depth - 1], &field, &child, err));
        if (child == NULL)
            continue;
        if (depth == INF_PB_DEPTH_MAX)
            return inf_fail(err, INF_EXHAUSTED, "%s is nested more than %d messages deep",
                            child->name, INF_PB_DEPTH_MAX);
        levels[depth++] = (struct level){.pb = {field.bytes}, .message = child->child};
    }
    return INF_OK;
}
