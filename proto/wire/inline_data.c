// SPDX-License-Identifier: Apache-2.0
// Determines the offsets of a frame's tensors in its data segment. Tensors without a location
// follow each other in the order of the message, at aligned offsets; tensors with a location in the
// segment are checked. All tensors together must fill the segment, apart from padding.
#include "proto/wire/message.h"

#include <inttypes.h>

#include "proto/core/utf8.h"
#include "proto/wire/frame.h"
#include "proto/wire/tensor_entry.h"

// State of a loop over the tensors of a message, which gives each a location in the data segment.
struct walk {
    const char *what; // "input" or "output", for error texts
    uint64_t data_bytes;
    uint64_t next; // aligned offset for the next tensor whose location the message does not give
    uint64_t end;  // end of the bytes that the tensors before the current one use
};

// Assigns a location to a tensor for which the message gives none.
static enum inf_code place_tensor(struct walk *walk, struct inf_tensor_entry *entry, size_t size,
                                  struct inf_error *err)
{
    entry->location = (struct inf_location){.present = true, .length = size};
    if (size == 0)
        return INF_OK;
    if (!inf_range_ok(walk->next, size, walk->data_bytes))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "%s '%s': %zu bytes at offset %" PRIu64
                               " are missing from the data segment of %" PRIu64,
                               walk->what, inf_quote(entry->name).text, size, walk->next,
                               walk->data_bytes);
    entry->location.offset = walk->next;
    return INF_OK;
}

// Checks a location in the data segment that the message gives.
static enum inf_code check_inline(const struct walk *walk, const struct inf_tensor_entry *entry,
                                  struct inf_error *err)
{
    const struct inf_location *location = &entry->location;
    if (location->offset % INF_FRAME_DATA_ALIGNMENT != 0)
        return inf_fail_reason(
            err, INF_INVALID, INF_REASON_BAD_PARAMETER,
            "%s '%s': offset %" PRIu64 " in the data segment is no multiple of %d", walk->what,
            inf_quote(entry->name).text, location->offset, INF_FRAME_DATA_ALIGNMENT);
    if (!inf_range_ok(location->offset, location->length, walk->data_bytes))
        return inf_fail_reason(err, INF_RANGE, INF_REASON_REGION_BOUNDS,
                               "%s '%s': %" PRIu64 " bytes at offset %" PRIu64
                               " reach beyond the data segment of %" PRIu64,
                               walk->what, inf_quote(entry->name).text, location->length,
                               location->offset, walk->data_bytes);
    return INF_OK;
}

// Checks the location of a tensor of strings, which must give its size: the shape does not. `least`
// is the size of as many empty strings.
static enum inf_code check_strings(const struct walk *walk, struct inf_tensor_entry *entry,
                                   size_t least, struct inf_error *err)
{
    struct inf_location *location = &entry->location;
    if (!location->present && least == 0)
        location->present = true; // no strings have no bytes
    if (!location->present)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s': a tensor of BYTES needs a location with its length",
                               walk->what, inf_quote(entry->name).text);
    if (location->length >= least && location->length <= INF_LIMIT_TENSOR_BYTES)
        return INF_OK;
    char shape[INF_SHAPE_TEXT_SIZE];
    return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                           "%s '%s': location has %" PRIu64
                           " bytes, BYTES of shape %s takes %zu to %" PRIu64,
                           walk->what, inf_quote(entry->name).text, location->length,
                           inf_shape_print(&entry->shape, shape), least, INF_LIMIT_TENSOR_BYTES);
}

static enum inf_code resolve_tensor(struct walk *walk, struct inf_tensor_entry *entry,
                                    struct inf_error *err)
{
    size_t size;
    if (entry->session_tensor != NULL)
        return INF_OK;
    INF_TRY(inf_tensor_bytes(&size, walk->what, entry, err));
    if (entry->dtype == INF_DTYPE_BYTES) {
        INF_TRY(check_strings(walk, entry, size, err));
        size = (size_t)entry->location.length;
    } else if (!entry->location.present) {
        INF_TRY(place_tensor(walk, entry, size, err));
    } else if (entry->location.length != size) {
        char shape[INF_SHAPE_TEXT_SIZE];
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "%s '%s': location has %" PRIu64 " bytes, %s of shape %s takes %zu",
                               walk->what, inf_quote(entry->name).text, entry->location.length,
                               inf_dtype_name(entry->dtype), inf_shape_print(&entry->shape, shape),
                               size);
    }
    if (entry->location.region_id != 0)
        return INF_OK;
    INF_TRY(check_inline(walk, entry, err));
    if (size > 0) {
        // The sum cannot overflow, because the location ends inside the segment, which is in
        // memory.
        uint64_t end = entry->location.offset + entry->location.length;
        walk->next = inf_size_align(end, INF_FRAME_DATA_ALIGNMENT);
        walk->end = INF_MAX(walk->end, end);
    }
    return INF_OK;
}

static enum inf_code resolve_all(const char *what, struct inf_tensor_entry *entries, uint32_t count,
                                 uint64_t data_bytes, struct inf_error *err)
{
    struct walk walk = {.what = what, .data_bytes = data_bytes};
    for (uint32_t i = 0; i < count; i++)
        INF_TRY(resolve_tensor(&walk, &entries[i], err));
    if (data_bytes - walk.end >= INF_FRAME_DATA_ALIGNMENT)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "data segment has %" PRIu64 " bytes, the %ss in it end at %" PRIu64,
                               data_bytes, what, walk.end);
    return INF_OK;
}

enum inf_code inf_infer_request_resolve_inline(struct inf_infer_request *request,
                                               uint64_t data_bytes, struct inf_error *err)
{
    return resolve_all("input", request->inputs, request->input_count, data_bytes, err);
}

enum inf_code inf_infer_reply_resolve_inline(struct inf_infer_reply *reply, uint64_t data_bytes,
                                             struct inf_error *err)
{
    return resolve_all("output", reply->outputs, reply->output_count, data_bytes, err);
}
