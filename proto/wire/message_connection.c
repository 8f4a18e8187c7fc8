// SPDX-License-Identifier: Apache-2.0
// Messages about the connection itself: HELLO, HELLO_ACK and GOAWAY.
#include "proto/wire/message_codec.h"

static void decode_limits(struct inf_limits_message *limits, const Inference__Limits *wire)
{
    *limits = (struct inf_limits_message){0};
    if (wire == NULL)
        return;
    *limits = (struct inf_limits_message){
        .meta_bytes = wire->meta_bytes,
        .data_bytes = wire->data_bytes,
        .streams = wire->streams,
        .regions = wire->regions,
        .region_bytes = wire->region_bytes,
        .frame_fds = wire->frame_fds,
        .stream_bytes = wire->stream_bytes,
    };
}

static Inference__Limits *encode_limits(const struct inf_limits_message *limits,
                                        struct inf_scratch *scratch, struct inf_error *err)
{
    Inference__Limits *wire = inf_wire_new(&inference__limits__descriptor, scratch, err);
    if (wire == NULL)
        return NULL;
    wire->meta_bytes = limits->meta_bytes;
    wire->data_bytes = limits->data_bytes;
    wire->streams = limits->streams;
    wire->regions = limits->regions;
    wire->region_bytes = limits->region_bytes;
    wire->frame_fds = limits->frame_fds;
    wire->stream_bytes = limits->stream_bytes;
    return wire;
}

static enum inf_code decode_hello(union inf_message *message, const void *from,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__Hello *wire = from;
    struct inf_hello *hello = &message->hello;
    hello->major = wire->major;
    hello->minor = wire->minor;
    hello->client_name = wire->client_name;
    hello->client_version = wire->client_version;
    decode_limits(&hello->limits, wire->limits);
    INF_TRY(inf_check_text("client_name", wire->client_name, INF_TEXT_LIMIT, err));
    INF_TRY(inf_check_text("client_version", wire->client_version, INF_TEXT_LIMIT, err));
    return inf_decode_texts(hello->features, &hello->feature_count,
                            &(struct inf_wire_texts){"features", wire->n_features, wire->features},
                            err);
}

static enum inf_code encode_hello(const union inf_message *message, void *to,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_hello *hello = &message->hello;
    Inference__Hello *wire = to;
    wire->major = hello->major;
    wire->minor = hello->minor;
    wire->client_name = inf_wire_text(hello->client_name);
    wire->client_version = inf_wire_text(hello->client_version);
    wire->limits = encode_limits(&hello->limits, scratch, err);
    wire->n_features = hello->feature_count;
    wire->features = inf_encode_texts(hello->features, hello->feature_count, scratch, err);
    return wire->limits != NULL && wire->features != NULL ? INF_OK : INF_EXHAUSTED;
}

const struct inf_message_codec inf_codec_hello = {
    .descriptor = &inference__hello__descriptor,
    .decode = decode_hello,
    .encode = encode_hello,
};

static enum inf_code decode_hello_ack(union inf_message *message, const void *from,
                                      struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__HelloAck *wire = from;
    struct inf_hello_ack *ack = &message->hello_ack;
    ack->major = wire->major;
    ack->minor = wire->minor;
    ack->server_name = wire->server_name;
    ack->server_version = wire->server_version;
    decode_limits(&ack->limits, wire->limits);
    ack->credit_requests = wire->credit_requests;
    ack->credit_bytes = wire->credit_bytes;
    ack->epoch[0] = wire->epoch_high;
    ack->epoch[1] = wire->epoch_low;
    ack->role = wire->role;
    ack->clock = wire->clock;
    return inf_decode_texts(ack->features, &ack->feature_count,
                            &(struct inf_wire_texts){"features", wire->n_features, wire->features},
                            err);
}

static enum inf_code encode_hello_ack(const union inf_message *message, void *to,
                                      struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_hello_ack *ack = &message->hello_ack;
    Inference__HelloAck *wire = to;
    wire->major = ack->major;
    wire->minor = ack->minor;
    wire->server_name = inf_wire_text(ack->server_name);
    wire->server_version = inf_wire_text(ack->server_version);
    wire->limits = encode_limits(&ack->limits, scratch, err);
    wire->n_features = ack->feature_count;
    wire->features = inf_encode_texts(ack->features, ack->feature_count, scratch, err);
    wire->credit_requests = ack->credit_requests;
    wire->credit_bytes = ack->credit_bytes;
    wire->epoch_high = ack->epoch[0];
    wire->epoch_low = ack->epoch[1];
    wire->role = inf_wire_text(ack->role);
    wire->clock = inf_wire_text(ack->clock);
    return wire->limits != NULL && wire->features != NULL ? INF_OK : INF_EXHAUSTED;
}

const struct inf_message_codec inf_codec_hello_ack = {
    .descriptor = &inference__hello_ack__descriptor,
    .decode = decode_hello_ack,
    .encode = encode_hello_ack,
};

static enum inf_code decode_goaway(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const Inference__Goaway *wire = from;
    message->goaway = (struct inf_goaway){
        .last_stream = wire->last_stream, .reason = wire->reason, .drain_ns = wire->drain_ns};
    return INF_OK;
}

static enum inf_code encode_goaway(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__Goaway *wire = to;
    wire->last_stream = message->goaway.last_stream;
    wire->reason = inf_wire_text(message->goaway.reason);
    wire->drain_ns = message->goaway.drain_ns;
    return INF_OK;
}

const struct inf_message_codec inf_codec_goaway = {
    .descriptor = &inference__goaway__descriptor,
    .decode = decode_goaway,
    .encode = encode_goaway,
};
