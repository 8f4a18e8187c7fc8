// SPDX-License-Identifier: Apache-2.0
// The 24-byte header of a frame. Each frame type has a row in a table that describes the valid
// values of the other header fields, so that a header can be checked before any memory is allocated
// for the frame. Frames whose type is not in the table come from later versions. They are skipped,
// unless they are marked critical.
#include "proto/wire/frame.h"

#include <stdbool.h>
#include <stddef.h>

#include "proto/core/limits.h"

struct type_row {
    const char *name;
    bool on_stream; // the frame belongs to a stream, so the stream id must not be 0
    bool may_carry_fds;
};

static const struct type_row type_rows[] = {
    [INF_FRAME_HELLO] = {"HELLO", false, false},
    [INF_FRAME_HELLO_ACK] = {"HELLO_ACK", false, false},
    [INF_FRAME_REQUEST] = {"REQUEST", true, true},
    [INF_FRAME_RESPONSE] = {"RESPONSE", true, false},
    [INF_FRAME_CANCEL] = {"CANCEL", true, false},
    [INF_FRAME_MEM_REGISTER] = {"MEM_REGISTER", true, true},
    [INF_FRAME_MEM_REGISTERED] = {"MEM_REGISTERED", true, true},
    [INF_FRAME_MEM_UNREGISTER] = {"MEM_UNREGISTER", true, false},
    [INF_FRAME_MEM_RELEASED] = {"MEM_RELEASED", true, false},
    [INF_FRAME_PING] = {"PING", false, false},
    [INF_FRAME_PONG] = {"PONG", false, false},
    [INF_FRAME_GOAWAY] = {"GOAWAY", false, false},
    [INF_FRAME_ERROR] = {"ERROR", false, false},
    [INF_FRAME_MEM_ALLOC] = {"MEM_ALLOC", true, false},
    [INF_FRAME_CREDIT] = {"CREDIT", false, false},
    [INF_FRAME_DATA] = {"DATA", true, false},
};

static const struct {
    uint16_t method;
    const char *name;
} method_rows[] = {
    {INF_METHOD_SERVER_LIVE, "ServerLive"},
    {INF_METHOD_SERVER_READY, "ServerReady"},
    {INF_METHOD_MODEL_READY, "ModelReady"},
    {INF_METHOD_SERVER_METADATA, "ServerMetadata"},
    {INF_METHOD_MODEL_METADATA, "ModelMetadata"},
    {INF_METHOD_MODEL_INFER, "ModelInfer"},
    {INF_METHOD_REPOSITORY_INDEX, "RepositoryIndex"},
    {INF_METHOD_REPOSITORY_MODEL_LOAD, "RepositoryModelLoad"},
    {INF_METHOD_REPOSITORY_MODEL_UNLOAD, "RepositoryModelUnload"},
    {INF_METHOD_REPOSITORY_RELOAD, "RepositoryReload"},
    {INF_METHOD_DEVICE_LIST, "DeviceList"},
    {INF_METHOD_SERVER_STATUS, "ServerStatus"},
    {INF_METHOD_MEMORY_INFO, "MemoryInfo"},
    {INF_METHOD_METRICS, "Metrics"},
    {INF_METHOD_REQUEST_LIST, "RequestList"},
    {INF_METHOD_CLIENT_LIST, "ClientList"},
    {INF_METHOD_REQUEST_CANCEL, "RequestCancel"},
    {INF_METHOD_CLIENT_DISCONNECT, "ClientDisconnect"},
    {INF_METHOD_REPORT, "Report"},
    {INF_METHOD_SESSION_OPEN, "SessionOpen"},
    {INF_METHOD_SESSION_CLOSE, "SessionClose"},
    {INF_METHOD_SERVER_LIMITS, "ServerLimits"},
    {INF_METHOD_SESSION_REWIND, "SessionRewind"},

    {INF_METHOD_MODEL_PLACEMENT, "ModelPlacement"},
    {INF_METHOD_MODEL_PLACE, "ModelPlace"},
    {INF_METHOD_ENVIRONMENT, "Environment"},
    {INF_METHOD_FLAG_SET, "FlagSet"},
    {INF_METHOD_FLAG_PERSIST, "FlagPersist"},
    {INF_METHOD_MODEL_INSPECT, "ModelInspect"},
    {INF_METHOD_MODEL_PRECOMPILE, "ModelPrecompile"},
};

// Byte offsets of the fields in the 24-byte header.
enum {
    AT_META_BYTES = 0,
    AT_DATA_BYTES = 4,
    AT_STREAM_ID = 8,
    AT_TYPE = 16,
    AT_FD_COUNT = 17,
    AT_FLAGS = 18,
    AT_METHOD = 20,
    AT_RESERVED = 22,
};

static void write_little_endian(uint8_t *bytes, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t read_little_endian(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

void inf_frame_header_encode(const struct inf_frame_header *header,
                             uint8_t bytes[INF_FRAME_HEADER_BYTES])
{
    write_little_endian(bytes + AT_META_BYTES, header->meta_bytes, 4);
    write_little_endian(bytes + AT_DATA_BYTES, header->data_bytes, 4);
    write_little_endian(bytes + AT_STREAM_ID, header->stream_id, 8);
    write_little_endian(bytes + AT_TYPE, header->type, 1);
    write_little_endian(bytes + AT_FD_COUNT, header->fd_count, 1);
    write_little_endian(bytes + AT_FLAGS, header->flags, 2);
    write_little_endian(bytes + AT_METHOD, header->method, 2);
    write_little_endian(bytes + AT_RESERVED, 0, 2);
}

// Returns the table row that describes frames of this type, or NULL for an unknown type.
static const struct type_row *find_type(uint8_t type)
{
    if (type < INF_ARRAY_LENGTH(type_rows) && type_rows[type].name != NULL)
        return &type_rows[type];
    return NULL;
}

// Checks the fields of the header whose values depend on the type.
static enum inf_code check_type(const struct inf_frame_header *header, struct inf_error *err)
{
    const struct type_row *row = find_type(header->type);
    if (header->type == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "frame type 0 does not exist");
    if (row == NULL && (header->flags & INF_FRAME_CRITICAL) != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "frame type %u is not known here and is marked CRITICAL",
                               header->type);
    if (row == NULL)
        return INF_OK;
    if (row->on_stream && header->stream_id == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "%s frame: stream id is 0, wanted the stream's", row->name);
    if (!row->may_carry_fds && header->fd_count != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "%s frame: %u file descriptors declared, this type carries none",
                               row->name, header->fd_count);
    return INF_OK;
}

enum inf_code inf_frame_header_decode(struct inf_frame_header *header,
                                      const uint8_t bytes[INF_FRAME_HEADER_BYTES],
                                      struct inf_error *err)
{
    struct inf_frame_header decoded = {
        .meta_bytes = (uint32_t)read_little_endian(bytes + AT_META_BYTES, 4),
        .data_bytes = (uint32_t)read_little_endian(bytes + AT_DATA_BYTES, 4),
        .stream_id = read_little_endian(bytes + AT_STREAM_ID, 8),
        .type = bytes[AT_TYPE],
        .fd_count = bytes[AT_FD_COUNT],
        .flags = (uint16_t)read_little_endian(bytes + AT_FLAGS, 2),
        .method = (uint16_t)read_little_endian(bytes + AT_METHOD, 2),
    };
    unsigned reserved = (unsigned)read_little_endian(bytes + AT_RESERVED, 2);

    if (reserved != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "frame header: reserved field is 0x%04x, wanted 0", reserved);
    if ((decoded.flags & ~INF_FRAME_FLAGS_KNOWN) != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "frame header: flags are 0x%04x, known are 0x%04x only",
                               decoded.flags, INF_FRAME_FLAGS_KNOWN);
    if (decoded.fd_count > INF_LIMIT_FRAME_FDS)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "frame header: %u file descriptors declared, at most %u are allowed",
                               decoded.fd_count, INF_LIMIT_FRAME_FDS);
    INF_TRY(check_type(&decoded, err));
    *header = decoded;
    return INF_OK;
}

const char *inf_frame_type_name(uint8_t type)
{
    const struct type_row *row = find_type(type);
    return row != NULL ? row->name : "?";
}

const char *inf_method_name(uint16_t method)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(method_rows); i++)
        if (method_rows[i].method == method)
            return method_rows[i].name;
    return "?";
}
