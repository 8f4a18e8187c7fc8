// SPDX-License-Identifier: Apache-2.0
// Messages about limits: the limits that can be changed while the daemon runs, the CREDIT frame
// that such a change can cause, and the metadata of DATA frames.
#include <assert.h>

#include "proto/wire/message_codec.h"

static enum inf_code decode_list(struct inf_limit_list *list, size_t count,
                                 Inference__LiveLimit *const *wire, struct inf_error *err)
{
    if (count > INF_LIVE_LIMITS)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%zu limits, at most %d are allowed", count, INF_LIVE_LIMITS);
    list->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        INF_TRY(inf_check_text("limit", wire[i]->name, INF_TEXT_LIMIT, err));
        list->entries[i] = (struct inf_limit_entry){.name = wire[i]->name,
                                                    .value = wire[i]->value,
                                                    .min = wire[i]->min,
                                                    .max = wire[i]->max};
    }
    return INF_OK;
}

// Converts the list of limits to protobuf-c messages in scratch memory. Returns NULL and fills *err
// if the scratch is exhausted.
static Inference__LiveLimit **encode_list(const struct inf_limit_list *list,
                                          struct inf_scratch *scratch, struct inf_error *err)
{
    assert(list->count <= INF_LIVE_LIMITS);
    Inference__LiveLimit **wire =
        inf_wire_list(&inference__live_limit__descriptor, list->count, scratch, err);
    for (uint32_t i = 0; wire != NULL && i < list->count; i++) {
        wire[i]->name = inf_wire_text(list->entries[i].name);
        wire[i]->value = list->entries[i].value;
        wire[i]->min = list->entries[i].min;
        wire[i]->max = list->entries[i].max;
    }
    return wire;
}

static enum inf_code decode_request(union inf_message *message, const void *from,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ServerLimitsRequest *wire = from;
    return decode_list(&message->limit_list, wire->n_limits, wire->limits, err);
}

static enum inf_code encode_request(const union inf_message *message, void *to,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    Inference__ServerLimitsRequest *wire = to;
    wire->n_limits = message->limit_list.count;
    wire->limits = encode_list(&message->limit_list, scratch, err);
    return wire->limits != NULL ? INF_OK : INF_EXHAUSTED;
}

const struct inf_message_codec inf_codec_limits_request = {
    .descriptor = &inference__server_limits_request__descriptor,
    .decode = decode_request,
    .encode = encode_request,
};

static enum inf_code decode_reply(union inf_message *message, const void *from,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ServerLimitsResponse *wire = from;
    return decode_list(&message->limit_list, wire->n_limits, wire->limits, err);
}

static enum inf_code encode_reply(const union inf_message *message, void *to,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    Inference__ServerLimitsResponse *wire = to;
    wire->n_limits = message->limit_list.count;
    wire->limits = encode_list(&message->limit_list, scratch, err);
    return wire->limits != NULL ? INF_OK : INF_EXHAUSTED;
}

const struct inf_message_codec inf_codec_limits_reply = {
    .descriptor = &inference__server_limits_response__descriptor,
    .decode = decode_reply,
    .encode = encode_reply,
};

static enum inf_code decode_credit(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const Inference__Credit *wire = from;
    message->credit = (struct inf_credit){.requests = wire->requests, .bytes = wire->bytes};
    return INF_OK;
}

static enum inf_code encode_credit(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__Credit *wire = to;
    wire->requests = message->credit.requests;
    wire->bytes = message->credit.bytes;
    return INF_OK;
}

const struct inf_message_codec inf_codec_credit = {
    .descriptor = &inference__credit__descriptor,
    .decode = decode_credit,
    .encode = encode_credit,
};

static enum inf_code decode_data(union inf_message *message, const void *from,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    const Inference__Data *wire = from;
    message->data.total_bytes = wire->total_bytes;
    return INF_OK;
}

static enum inf_code encode_data(const union inf_message *message, void *to,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__Data *wire = to;
    wire->total_bytes = message->data.total_bytes;
    return INF_OK;
}

const struct inf_message_codec inf_codec_data = {
    .descriptor = &inference__data__descriptor,
    .decode = decode_data,
    .encode = encode_data,
};
