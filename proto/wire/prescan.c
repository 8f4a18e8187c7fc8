// SPDX-License-Identifier: Apache-2.0
// Checks protobuf bytes before protobuf-c unpacks them.
//
// protobuf-c trusts its input too much for a daemon. It recurses into sub-messages without a limit,
// so a few kilobytes of nested messages overflow the stack. If a singular sub-message occurs twice,
// protobuf-c merges the two by copying, so n occurrences cost time in the order of n * n. It also
// allocates a struct for each sub-message, so two bytes on the wire can cost a hundred bytes of
// memory.
//
// The prescan walks the bytes once, without recursion and without memory. It keeps a stack of
// INF_LIMIT_META_DEPTH levels, one for each message that is open:
//
//   bytes    [ field | field: message [ field | field: message [ field | ...
//   levels     0                        1                         2   <- depth 3
//
// A level has the descriptor of its message, its end, and a bit for each singular sub-message that
// has occurred. When the position reaches the end of the top level, that level is closed. A field
// must end inside of its level, so that no read goes beyond the buffer. The walk ends because each
// field advances the position by at least one byte.
#include "proto/wire/prescan.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/core/limits.h"
#include "proto/core/utf8.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_LENGTH = 2,
    WIRE_FIXED32 = 5,
};

// A message whose fields are being checked. Messages that contain each other form a stack of
// levels.
struct level {
    const ProtobufCMessageDescriptor *descriptor;
    const uint8_t *end;
    uint64_t
        // Bit i is set if the field with index i in the descriptor has occurred and is a singular
        // sub-message, which must not occur again.
        seen;
};

struct scan {
    const uint8_t *begin;
    const uint8_t *at;
    uint32_t fields; // number of fields read so far, in all messages
    uint32_t depth;  // number of elements of `levels` in use
    struct level levels[INF_LIMIT_META_DEPTH];
    const char *field_name; // name of the field being read, used in error texts
};

static enum inf_code fail_scan(const struct scan *scan, const char *what, struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                           "metadata: %s.%s at byte %zu: %s",
                           scan->levels[scan->depth - 1].descriptor->short_name, scan->field_name,
                           (size_t)(scan->at - scan->begin), what);
}

// Reads a varint. Returns false if it does not end before `end`, or has more than 64 bits.
static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (*at == end)
            return false;
        uint8_t byte = *(*at)++;
        if (shift == 63 && byte > 1)
            return false;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = result;
            return true;
        }
    }
    return false;
}

static bool is_packable(ProtobufCType type)
{
    return type != PROTOBUF_C_TYPE_STRING && type != PROTOBUF_C_TYPE_BYTES &&
           type != PROTOBUF_C_TYPE_MESSAGE;
}

static enum wire_type wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return WIRE_FIXED32;
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return WIRE_FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return WIRE_LENGTH;
    default:
        return WIRE_VARINT;
    }
}

static enum inf_code skip_bytes(struct scan *scan, uint64_t size, struct inf_error *err)
{
    const uint8_t *end = scan->levels[scan->depth - 1].end;
    if (size > (uint64_t)(end - scan->at))
        return fail_scan(scan, "reaches beyond the end of its message", err);
    scan->at += size;
    return INF_OK;
}

// Skips a value of fixed size or a varint, that is, a value that has no length field.
static enum inf_code skip_scalar(struct scan *scan, enum wire_type wire, struct inf_error *err)
{
    if (wire == WIRE_FIXED32)
        return skip_bytes(scan, 4, err);
    if (wire == WIRE_FIXED64)
        return skip_bytes(scan, 8, err);
    uint64_t value;
    if (!read_varint(&scan->at, scan->levels[scan->depth - 1].end, &value))
        return fail_scan(scan, "no valid varint", err);
    return INF_OK;
}

// Checks and skips the elements of a packed list (a repeated field with one length) of `size`
// bytes.
static enum inf_code scan_packed(struct scan *scan, enum wire_type wire, size_t size,
                                 struct inf_error *err)
{
    size_t element_bytes = wire == WIRE_FIXED32 ? 4 : wire == WIRE_FIXED64 ? 8 : 1;
    if (size % element_bytes != 0)
        return fail_scan(scan, "packed list is cut inside an element", err);
    if (wire != WIRE_VARINT)
        return skip_bytes(scan, size, err);
    const uint8_t *end = scan->at + size;
    while (scan->at < end) {
        uint64_t value;
        if (!read_varint(&scan->at, end, &value))
            return fail_scan(scan, "no valid varint in the packed list", err);
    }
    return INF_OK;
}

// Begins to check the sub-message of `size` bytes at the current position: pushes a level for it.
static enum inf_code open_level(struct scan *scan, const ProtobufCFieldDescriptor *field,
                                size_t size, struct inf_error *err)
{
    struct level *parent = &scan->levels[scan->depth - 1];
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        uint64_t bit = (uint64_t)1 << (field - parent->descriptor->fields);
        if ((parent->seen & bit) != 0)
            return fail_scan(scan, "occurs twice, but is not a list", err);
        parent->seen |= bit;
    }
    if (scan->depth == INF_LIMIT_META_DEPTH)
        return fail_scan(scan, "messages nest too deeply", err);
    scan->levels[scan->depth++] =
        (struct level){.descriptor = field->descriptor, .end = scan->at + size};
    return INF_OK;
}

// Reads the length of a field. Then opens a level if the value is a sub-message, and skips other
// values.
static enum inf_code scan_length_value(struct scan *scan, const ProtobufCFieldDescriptor *field,
                                       struct inf_error *err)
{
    uint64_t size;
    const uint8_t *end = scan->levels[scan->depth - 1].end;
    if (!read_varint(&scan->at, end, &size))
        return fail_scan(scan, "no valid length", err);
    if (size > (uint64_t)(end - scan->at))
        return fail_scan(scan, "reaches beyond the end of its message", err);
    if (field == NULL || field->type == PROTOBUF_C_TYPE_BYTES)
        return skip_bytes(scan, size, err);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return open_level(scan, field, (size_t)size, err);
    if (is_packable(field->type))
        return scan_packed(scan, wire_type_of(field->type), (size_t)size, err);
    if (!inf_utf8_valid((struct inf_span){scan->at, (size_t)size}))
        return fail_scan(scan, "string is not UTF-8, or holds a NUL", err);
    return skip_bytes(scan, size, err);
}

static enum inf_code scan_field(struct scan *scan, struct inf_error *err)
{
    const struct level *level = &scan->levels[scan->depth - 1];
    scan->field_name = "(tag)";
    if (++scan->fields > INF_LIMIT_META_FIELDS)
        return fail_scan(scan, "too many fields", err);
    uint64_t tag;
    if (!read_varint(&scan->at, level->end, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return fail_scan(scan, "no valid tag", err);

    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(level->descriptor, (unsigned)(tag >> 3));
    unsigned wire = tag & 7;
    scan->field_name = field != NULL ? field->name : "(unknown field)";
    if (wire != WIRE_VARINT && wire != WIRE_FIXED64 && wire != WIRE_LENGTH && wire != WIRE_FIXED32)
        return fail_scan(scan, "groups are not allowed, nor wire types 6 and 7", err);
    if (field != NULL && wire != wire_type_of(field->type)) {
        bool packed = wire == WIRE_LENGTH && field->label == PROTOBUF_C_LABEL_REPEATED;
        if (!packed || !is_packable(field->type))
            return fail_scan(scan, "wire type is not that of the field", err);
    }
    if (wire == WIRE_LENGTH)
        return scan_length_value(scan, field, err);
    return skip_scalar(scan, (enum wire_type)wire, err);
}

enum inf_code inf_prescan(const ProtobufCMessageDescriptor *descriptor, struct inf_span bytes,
                          struct inf_error *err)
{
    struct scan scan = {.begin = bytes.data, .at = bytes.data, .depth = 1, .field_name = ""};
    // Return early, because an empty message is valid and its data may be NULL, to which no offset
    // can be added.
    if (bytes.size == 0)
        return INF_OK;
    scan.levels[0] = (struct level){.descriptor = descriptor, .end = bytes.data + bytes.size};
    while (scan.depth > 0) {
        // `seen` of a level has 64 bits, one for each field of the message.
        assert(scan.levels[scan.depth - 1].descriptor->n_fields <= 64);
        if (scan.at == scan.levels[scan.depth - 1].end)
            scan.depth--;
        else
            INF_TRY(scan_field(&scan, err));
    }
    return INF_OK;
}
