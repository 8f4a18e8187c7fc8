// SPDX-License-Identifier: Apache-2.0
// Memory regions: registering, allocating and releasing them.
#include <inttypes.h>

#include "proto/wire/message_codec.h"

// A region must not have the id 0, because in a location 0 means the data segment.
static enum inf_code check_region_id(uint64_t region_id, struct inf_error *err)
{
    if (region_id == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "region_id is 0, which stands for the data segment");
    return INF_OK;
}

static enum inf_code check_size(const struct inf_region_message *region, struct inf_error *err)
{
    if (region->size == 0 || region->size > INF_LIMIT_REGION_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "region %" PRIu64 ": size is %" PRIu64
                               " bytes, wanted 1 to %" PRIu64,
                               region->region_id, region->size, INF_LIMIT_REGION_BYTES);
    return INF_OK;
}

static enum inf_code decode_register(union inf_message *message, const void *from,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__MemRegister *wire = from;
    message->region = (struct inf_region_message){
        .region_id = wire->region_id, .size = wire->size, .writable = wire->writable};
    INF_TRY(check_region_id(wire->region_id, err));
    return check_size(&message->region, err);
}

static enum inf_code encode_register(const union inf_message *message, void *to,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__MemRegister *wire = to;
    wire->region_id = message->region.region_id;
    wire->size = message->region.size;
    wire->writable = message->region.writable;
    return INF_OK;
}

const struct inf_message_codec inf_codec_region_register = {
    .descriptor = &inference__mem_register__descriptor,
    .decode = decode_register,
    .encode = encode_register,
};

static enum inf_code decode_alloc(union inf_message *message, const void *from,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__MemAlloc *wire = from;
    message->region = (struct inf_region_message){
        .region_id = wire->region_id, .size = wire->size, .writable = true};
    INF_TRY(check_region_id(wire->region_id, err));
    return check_size(&message->region, err);
}

static enum inf_code encode_alloc(const union inf_message *message, void *to,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__MemAlloc *wire = to;
    wire->region_id = message->region.region_id;
    wire->size = message->region.size;
    return INF_OK;
}

const struct inf_message_codec inf_codec_region_alloc = {
    .descriptor = &inference__mem_alloc__descriptor,
    .decode = decode_alloc,
    .encode = encode_alloc,
};

static enum inf_code decode_registered(union inf_message *message, const void *from,
                                       struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__MemRegistered *wire = from;
    message->region = (struct inf_region_message){.region_id = wire->region_id, .size = wire->size};
    return check_region_id(wire->region_id, err);
}

static enum inf_code encode_registered(const union inf_message *message, void *to,
                                       struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__MemRegistered *wire = to;
    wire->region_id = message->region.region_id;
    wire->size = message->region.size;
    return INF_OK;
}

const struct inf_message_codec inf_codec_region_registered = {
    .descriptor = &inference__mem_registered__descriptor,
    .decode = decode_registered,
    .encode = encode_registered,
};

static enum inf_code decode_unregister(union inf_message *message, const void *from,
                                       struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__MemUnregister *wire = from;
    message->region = (struct inf_region_message){.region_id = wire->region_id};
    return check_region_id(wire->region_id, err);
}

static enum inf_code encode_unregister(const union inf_message *message, void *to,
                                       struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__MemUnregister *wire = to;
    wire->region_id = message->region.region_id;
    return INF_OK;
}

const struct inf_message_codec inf_codec_region_unregister = {
    .descriptor = &inference__mem_unregister__descriptor,
    .decode = decode_unregister,
    .encode = encode_unregister,
};

static enum inf_code decode_released(union inf_message *message, const void *from,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__MemReleased *wire = from;
    message->region = (struct inf_region_message){.region_id = wire->region_id};
    return check_region_id(wire->region_id, err);
}

static enum inf_code encode_released(const union inf_message *message, void *to,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__MemReleased *wire = to;
    wire->region_id = message->region.region_id;
    return INF_OK;
}

const struct inf_message_codec inf_codec_region_released = {
    .descriptor = &inference__mem_released__descriptor,
    .decode = decode_released,
    .encode = encode_released,
};
