// SPDX-License-Identifier: Apache-2.0
// Metrics: the format of the text that a client wants, and the media type of the text. The text
// itself is the data of the reply, because it can be larger than the metadata of a frame.
#include "proto/wire/message_codec.h"

static enum inf_code decode_request(union inf_message *message, const void *wire,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__MetricsRequest *from = wire;
    INF_TRY(inf_check_text("format", from->format, INF_TEXT_LIMIT, err));
    message->metrics_request = (struct inf_metrics_request){.format = from->format};
    return INF_OK;
}

static enum inf_code encode_request(const union inf_message *message, void *wire,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__MetricsRequest *to = wire;
    to->format = inf_wire_text(message->metrics_request.format);
    return INF_OK;
}

const struct inf_message_codec inf_codec_metrics_request = {
    .descriptor = &inference__metrics_request__descriptor,
    .decode = decode_request,
    .encode = encode_request,
};

static enum inf_code decode_reply(union inf_message *message, const void *wire,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const Inference__MetricsResponse *from = wire;
    message->metrics_reply = (struct inf_metrics_reply){.media_type = from->media_type};
    return INF_OK;
}

static enum inf_code encode_reply(const union inf_message *message, void *wire,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__MetricsResponse *to = wire;
    to->media_type = inf_wire_text(message->metrics_reply.media_type);
    return INF_OK;
}

const struct inf_message_codec inf_codec_metrics_reply = {
    .descriptor = &inference__metrics_response__descriptor,
    .decode = decode_reply,
    .encode = encode_reply,
};
