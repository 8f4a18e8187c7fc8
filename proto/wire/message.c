// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes metadata with a table of codecs, one for each kind of message. Decoding has
// three steps: the prescan, the unpacking by protobuf-c, and the checks of the codec.
#include "proto/wire/message.h"

#include "proto/wire/message_codec.h"
#include "proto/wire/prescan.h"

static enum inf_code decode_empty(union inf_message *message, const void *wire,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)message;
    (void)wire;
    (void)scratch;
    (void)err;
    return INF_OK;
}

static enum inf_code encode_empty(const union inf_message *message, void *wire,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)message;
    (void)wire;
    (void)scratch;
    (void)err;
    return INF_OK;
}

// The codec of messages without fields. Any protobuf descriptor without fields will do. Fields that
// the bytes contain nevertheless are skipped, because they are unknown.
static const struct inf_message_codec codec_empty = {
    .descriptor = &inference__server_live_request__descriptor,
    .decode = decode_empty,
    .encode = encode_empty,
};

static const struct inf_message_codec *const codecs[INF_MESSAGE_KIND_COUNT] = {
    [INF_MESSAGE_EMPTY] = &codec_empty,
    [INF_MESSAGE_HELLO] = &inf_codec_hello,
    [INF_MESSAGE_HELLO_ACK] = &inf_codec_hello_ack,
    [INF_MESSAGE_INFER_REQUEST] = &inf_codec_infer_request,
    [INF_MESSAGE_INFER_REPLY] = &inf_codec_infer_reply,
    [INF_MESSAGE_STATUS] = &inf_codec_status,
    [INF_MESSAGE_REGION_REGISTER] = &inf_codec_region_register,
    [INF_MESSAGE_REGION_REGISTERED] = &inf_codec_region_registered,
    [INF_MESSAGE_REGION_UNREGISTER] = &inf_codec_region_unregister,
    [INF_MESSAGE_REGION_RELEASED] = &inf_codec_region_released,
    [INF_MESSAGE_GOAWAY] = &inf_codec_goaway,
    [INF_MESSAGE_MODEL_READY_REQUEST] = &inf_codec_model_ready_request,
    [INF_MESSAGE_MODEL_METADATA_REQUEST] = &inf_codec_model_metadata_request,
    [INF_MESSAGE_MODEL_LOAD_REQUEST] = &inf_codec_model_load_request,
    [INF_MESSAGE_MODEL_UNLOAD_REQUEST] = &inf_codec_model_unload_request,
    [INF_MESSAGE_LIVE_REPLY] = &inf_codec_live_reply,
    [INF_MESSAGE_READY_REPLY] = &inf_codec_ready_reply,
    [INF_MESSAGE_MODEL_READY_REPLY] = &inf_codec_model_ready_reply,
    [INF_MESSAGE_MODEL_METADATA] = &inf_codec_model_metadata,
    [INF_MESSAGE_SERVER_METADATA] = &inf_codec_server_metadata,
    [INF_MESSAGE_MODEL_INDEX] = &inf_codec_model_index,
    [INF_MESSAGE_LOAD_PROGRESS] = &inf_codec_load_progress,
    [INF_MESSAGE_RELOAD_REPLY] = &inf_codec_reload_reply,
    [INF_MESSAGE_DEVICE_INDEX] = &inf_codec_device_index,
    [INF_MESSAGE_SERVER_STATUS] = &inf_codec_server_status,
    [INF_MESSAGE_MEMORY_INFO] = &inf_codec_memory_info,
    [INF_MESSAGE_SESSION_OPEN] = &inf_codec_session_open,
    [INF_MESSAGE_SESSION_CLOSE] = &inf_codec_session_close,
    [INF_MESSAGE_SESSION_REWIND] = &inf_codec_session_rewind,
    [INF_MESSAGE_REGION_ALLOC] = &inf_codec_region_alloc,
    [INF_MESSAGE_LIMITS_REQUEST] = &inf_codec_limits_request,
    [INF_MESSAGE_LIMITS_REPLY] = &inf_codec_limits_reply,
    [INF_MESSAGE_CREDIT] = &inf_codec_credit,
    [INF_MESSAGE_DATA] = &inf_codec_data,

    [INF_MESSAGE_PLACEMENT_REQUEST] = &inf_codec_placement_request,
    [INF_MESSAGE_PLACEMENT_REPLY] = &inf_codec_placement_reply,
    [INF_MESSAGE_FLAG_SET] = &inf_codec_flag_set,
    [INF_MESSAGE_ENVIRONMENT] = &inf_codec_environment,
    [INF_MESSAGE_PRECOMPILE] = &inf_codec_precompile,
    [INF_MESSAGE_METRICS_REQUEST] = &inf_codec_metrics_request,
    [INF_MESSAGE_METRICS_REPLY] = &inf_codec_metrics_reply,
    [INF_MESSAGE_REQUEST_LIST] = &inf_codec_request_list,
    [INF_MESSAGE_CLIENT_LIST] = &inf_codec_client_list,
    [INF_MESSAGE_CLIENT_TARGET] = &inf_codec_client_target,
    [INF_MESSAGE_REPORT_REQUEST] = &inf_codec_report_request,
};

enum inf_code inf_message_decode(union inf_message *message, enum inf_message_kind kind,
                                 struct inf_span meta, struct inf_scratch *scratch,
                                 struct inf_error *err)
{
    const struct inf_message_codec *codec = codecs[kind];
    INF_TRY(inf_prescan(codec->descriptor, meta, err));
    inf_scratch_begin_decode(scratch);
    const ProtobufCMessage *wire =
        protobuf_c_message_unpack(codec->descriptor, &scratch->allocator, meta.size, meta.data);
    if (wire == NULL && scratch->exhausted)
        return inf_scratch_fail(err);
    if (wire == NULL)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "metadata: %zu bytes are no valid %s", meta.size,
                               codec->descriptor->short_name);
    return codec->decode(message, wire, scratch, err);
}

static enum inf_code pack_message(const ProtobufCMessage *wire, uint8_t *buffer, size_t capacity,
                                  size_t *out_size, struct inf_error *err)
{
    size_t size = protobuf_c_message_get_packed_size(wire);
    if (size > capacity)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                               "%s of %zu bytes, there is room for %zu",
                               wire->descriptor->short_name, size, capacity);
    *out_size = protobuf_c_message_pack(wire, buffer);
    return INF_OK;
}

enum inf_code inf_message_encode(const union inf_message *message, enum inf_message_kind kind,
                                 uint8_t *buffer, size_t capacity, size_t *out_size,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_message_codec *codec = codecs[kind];
    inf_scratch_begin_encode(scratch);
    ProtobufCMessage *wire = inf_wire_new(codec->descriptor, scratch, err);
    enum inf_code code = INF_EXHAUSTED;
    if (wire != NULL)
        code = codec->encode(message, wire, scratch, err);
    if (code == INF_OK)
        code = pack_message(wire, buffer, capacity, out_size, err);
    inf_scratch_end_encode(scratch);
    return code;
}
