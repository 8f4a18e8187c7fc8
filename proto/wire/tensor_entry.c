// SPDX-License-Identifier: Apache-2.0
// Tensors of messages: names, types, shapes and locations are checked in the same way in all
// protobuf messages that have tensors.
#include "proto/wire/tensor_entry.h"

#include <inttypes.h>
#include <string.h>

#include "proto/core/bytes_tensor.h"
#include "proto/core/utf8.h"

enum inf_code inf_tensor_check_count(const char *what, size_t count, struct inf_error *err)
{
    if (count > INF_LIMIT_TENSORS)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%zu %ss, at most %u are allowed", count, what, INF_LIMIT_TENSORS);
    return INF_OK;
}

enum inf_code inf_tensor_check_name(const char *what, const char *name, struct inf_error *err)
{
    if (name[0] == '\0')
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER, "%s without a name",
                               what);
    return inf_check_text(what, name, INF_LIMIT_TENSOR_NAME, err);
}

static enum inf_code decode_dtype(enum inf_dtype *dtype, const char *what,
                                  const struct inf_wire_tensor *wire, struct inf_error *err)
{
    *dtype = inf_dtype_parse(wire->datatype);
    if (*dtype == INF_DTYPE_NONE)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s': datatype '%s' is not known, wanted BOOL, INT8 to INT64, "
                               "UINT8 to UINT64, FP16, BF16, FP32, FP64 or BYTES",
                               what, inf_quote(wire->name).text, inf_quote(wire->datatype).text);
    return INF_OK;
}

// Decodes and checks a shape as inf_shape_decode() does. Each dimension must be at least `least`.
static enum inf_code decode_shape(struct inf_shape *shape, const char *what,
                                  const struct inf_wire_tensor *wire, int64_t least,
                                  struct inf_error *err)
{
    if (wire->rank > INF_LIMIT_RANK)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s': shape has %zu dimensions, at most %d are allowed", what,
                               inf_quote(wire->name).text, wire->rank, INF_LIMIT_RANK);
    *shape = (struct inf_shape){.rank = (int32_t)wire->rank};
    for (size_t i = 0; i < wire->rank; i++) {
        if (wire->dims[i] < least || wire->dims[i] >= INF_LIMIT_DIM)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "%s '%s': dimension %zu of the shape is %" PRId64
                                   ", wanted %" PRId64 " to %" PRId64,
                                   what, inf_quote(wire->name).text, i, wire->dims[i], least,
                                   INF_LIMIT_DIM - 1);
        shape->dims[i] = wire->dims[i];
    }
    return INF_OK;
}

enum inf_code inf_shape_decode(struct inf_shape *shape, const char *what,
                               const struct inf_wire_tensor *wire, struct inf_error *err)
{
    return decode_shape(shape, what, wire, 0, err);
}

enum inf_code inf_location_decode(struct inf_location *location, const char *what, const char *name,
                                  const Inference__Location *wire, struct inf_error *err)
{
    *location = (struct inf_location){0};
    if (wire == NULL)
        return INF_OK;
    *location = (struct inf_location){
        .present = true,
        .region_id = wire->region_id,
        .offset = wire->offset,
        .length = wire->length,
    };
    if (!inf_range_ok(wire->offset, wire->length, UINT64_MAX))
        return inf_fail_reason(err, INF_RANGE, INF_REASON_REGION_BOUNDS,
                               "%s '%s': %" PRIu64 " bytes at offset %" PRIu64
                               " end beyond any region",
                               what, inf_quote(name).text, wire->length, wire->offset);
    return INF_OK;
}

enum inf_code inf_tensor_bytes(size_t *size_bytes, const char *what,
                               const struct inf_tensor_entry *entry, struct inf_error *err)
{
    char shape[INF_SHAPE_TEXT_SIZE];
    size_t count;
    if (entry->dtype == INF_DTYPE_BYTES) {
        if (!inf_shape_count(&entry->shape, &count) || count > INF_LIMIT_STRING_ELEMENTS)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "%s '%s': BYTES of shape %s has more than %u strings", what,
                                   inf_quote(entry->name).text,
                                   inf_shape_print(&entry->shape, shape),
                                   INF_LIMIT_STRING_ELEMENTS);
        *size_bytes = count * INF_BYTES_LENGTH_SIZE;
        return INF_OK;
    }
    if (inf_shape_bytes(&entry->shape, entry->dtype, size_bytes))
        return INF_OK;
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "%s '%s': %s of shape %s is above the %" PRIu64
                           " bytes that a tensor may have",
                           what, inf_quote(entry->name).text, inf_dtype_name(entry->dtype),
                           inf_shape_print(&entry->shape, shape), INF_LIMIT_TENSOR_BYTES);
}

enum inf_code inf_session_tensor_decode(struct inf_tensor_entry *entry, const char *what,
                                        const char *session_tensor, bool in_session,
                                        struct inf_error *err)
{
    if (session_tensor[0] == '\0')
        return INF_OK;
    INF_TRY(inf_check_text("session_tensor", session_tensor, INF_LIMIT_TENSOR_NAME, err));
    if (!in_session)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s': session_tensor '%s', but the request has no session_id",
                               what, inf_quote(entry->name).text, inf_quote(session_tensor).text);
    if (entry->location.present)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s': a location beside session_tensor '%s', wanted one of them",
                               what, inf_quote(entry->name).text, inf_quote(session_tensor).text);
    entry->session_tensor = session_tensor;
    return INF_OK;
}

enum inf_code inf_tensor_decode(struct inf_tensor_entry *entry, const char *what,
                                const struct inf_wire_tensor *wire, struct inf_error *err)
{
    size_t bytes;
    *entry = (struct inf_tensor_entry){.name = wire->name};
    INF_TRY(inf_tensor_check_name(what, wire->name, err));
    INF_TRY(decode_dtype(&entry->dtype, what, wire, err));
    INF_TRY(decode_shape(&entry->shape, what, wire, 0, err));
    INF_TRY(inf_tensor_bytes(&bytes, what, entry, err));
    return inf_location_decode(&entry->location, what, wire->name, wire->location, err);
}

enum inf_code inf_tensor_decode_metadata(struct inf_tensor_entry *entry, const char *what,
                                         const struct inf_wire_tensor *wire, struct inf_error *err)
{
    *entry = (struct inf_tensor_entry){.name = wire->name};
    INF_TRY(inf_tensor_check_name(what, wire->name, err));
    INF_TRY(decode_dtype(&entry->dtype, what, wire, err));
    return decode_shape(&entry->shape, what, wire, INF_DIM_UNKNOWN, err);
}

enum inf_code inf_tensor_check_distinct(const char *what, const struct inf_tensor_entry *entries,
                                        uint32_t count, struct inf_error *err)
{
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(entries[i].name, entries[j].name) == 0)
                return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                       "%s '%s' is named twice", what,
                                       inf_quote(entries[i].name).text);
    return INF_OK;
}

enum inf_code inf_tensor_check_encodable(const char *what, const struct inf_tensor_entry *entry,
                                         bool metadata, struct inf_error *err)
{
    const char *name = inf_wire_text(entry->name);
    int32_t least = metadata ? INF_RANK_UNKNOWN : 0;
    if (inf_dtype_size(entry->dtype) == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s' has no element type", what, inf_quote(name).text);
    if (entry->shape.rank < least || entry->shape.rank > INF_LIMIT_RANK)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s': rank is %d, wanted %d to %d", what, inf_quote(name).text,
                               entry->shape.rank, least, INF_LIMIT_RANK);
    return INF_OK;
}

enum inf_code inf_location_encode(Inference__Location **out_wire,
                                  const struct inf_location *location, struct inf_scratch *scratch,
                                  struct inf_error *err)
{
    *out_wire = NULL;
    if (!location->present)
        return INF_OK;
    Inference__Location *wire = inf_wire_new(&inference__location__descriptor, scratch, err);
    if (wire == NULL)
        return INF_EXHAUSTED;
    wire->region_id = location->region_id;
    wire->offset = location->offset;
    wire->length = location->length;
    *out_wire = wire;
    return INF_OK;
}
