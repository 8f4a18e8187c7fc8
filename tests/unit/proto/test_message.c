// SPDX-License-Identifier: Apache-2.0
// Tests of encoding and decoding the messages of inference.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/assembler.h"
#include "proto/wire/message.h"
#include "tests/support/wire/wire_round.h"
#include "tests/support/wire/wire_samples.h"

TestSuite(message, .init = wire_round_open, .fini = wire_round_close);

// Expects that the encoded bytes of the message in `wire_round` are exactly `wanted`.
static void is_literally(const char *wanted, size_t size)
{
    cr_assert_eq(wire_round.bytes.size, size);
    cr_assert_arr_eq(wire_round.bytes.data, wanted, size);
}

// --- messages that are encoded and then decoded ---

Test(message, hello_goes_round)
{
    wire_round_go(INF_MESSAGE_HELLO);
    SAME(hello.major);
    SAME(hello.minor);
    SAME_TEXT(hello.client_name);
    SAME_TEXT(hello.client_version);
    wire_same_limits(&wire_round.got.hello.limits, &wire_round.sent.hello.limits);
    cr_assert_eq(wire_round.got.hello.feature_count, 2);
    SAME_TEXT(hello.features[0]);
    SAME_TEXT(hello.features[1]);
}

Test(message, hello_ack_goes_round)
{
    wire_round_go(INF_MESSAGE_HELLO_ACK);
    SAME(hello_ack.major);
    SAME(hello_ack.minor);
    SAME_TEXT(hello_ack.server_name);
    SAME_TEXT(hello_ack.server_version);
    wire_same_limits(&wire_round.got.hello_ack.limits, &wire_round.sent.hello_ack.limits);
    cr_assert_eq(wire_round.got.hello_ack.feature_count, INF_HELLO_FEATURES);
    SAME_TEXT(hello_ack.features[INF_HELLO_FEATURES - 1]);
    SAME(hello_ack.credit_requests);
    SAME(hello_ack.credit_bytes);
    SAME(hello_ack.epoch[0]);
    SAME(hello_ack.epoch[1]);
    SAME_TEXT(hello_ack.role);
    SAME_TEXT(hello_ack.clock);
}

Test(message, infer_request_goes_round)
{
    wire_round_go(INF_MESSAGE_INFER_REQUEST);
    SAME_TEXT(infer_request.model_name);
    SAME_TEXT(infer_request.model_version);
    SAME_TEXT(infer_request.id);
    SAME_TEXT(infer_request.device);
    SAME(infer_request.timeout_ns);
    SAME(infer_request.queue_timeout_ns);
    SAME(infer_request.priority);
    SAME(infer_request.session_id);
    SAME(infer_request.order_key);
    SAME_TEXT(infer_request.mode);
    SAME_TEXT(infer_request.against);
    SAME(infer_request.tolerance);
    SAME_TEXT(infer_request.traceparent);
    SAME_TEXT(infer_request.tracestate);
    cr_assert_eq(wire_round.got.infer_request.input_count, 3);
    cr_assert_eq(wire_round.got.infer_request.output_count, 3);
    for (int i = 0; i < 3; i++) {
        wire_same_entry(&wire_round.got.infer_request.inputs[i],
                        &wire_round.sent.infer_request.inputs[i]);
        wire_same_entry(&wire_round.got.infer_request.outputs[i],
                        &wire_round.sent.infer_request.outputs[i]);
    }
}

Test(message, infer_reply_goes_round)
{
    wire_round_go(INF_MESSAGE_INFER_REPLY);
    SAME_TEXT(infer_reply.model_name);
    SAME_TEXT(infer_reply.model_version);
    SAME_TEXT(infer_reply.id);
    cr_assert_eq(wire_round.got.infer_reply.output_count, 2);
    for (int i = 0; i < 2; i++)
        wire_same_entry(&wire_round.got.infer_reply.outputs[i],
                        &wire_round.sent.infer_reply.outputs[i]);
    SAME(infer_reply.timing.queue_ns);
    SAME(infer_reply.timing.input_ns);
    SAME(infer_reply.timing.compute_ns);
    SAME(infer_reply.timing.output_ns);
    SAME(infer_reply.timing.core_ns);
    SAME(infer_reply.timing.threads);
    SAME(infer_reply.batch_size);
    SAME_TEXT(infer_reply.device);
    SAME_TEXT(infer_reply.precision);
    SAME(infer_reply.credit_return);
    SAME(infer_reply.flags);
    SAME(infer_reply.padded_to);
}

Test(message, status_goes_round)
{
    wire_round_go(INF_MESSAGE_STATUS);
    SAME(status.code);
    SAME(status.reason);
    SAME_TEXT(status.message);
    SAME(status.retry_after_ms);
    SAME_TEXT(status.model);
    SAME_TEXT(status.version);
    SAME_TEXT(status.tensor);
    SAME_TEXT(status.expected);
    SAME_TEXT(status.actual);
    SAME_TEXT(status.phase);
}

Test(message, regions_go_round)
{
    for (int kind = INF_MESSAGE_REGION_REGISTER; kind <= INF_MESSAGE_REGION_RELEASED; kind++) {
        wire_round_go((enum inf_message_kind)kind);
        SAME(region.region_id);
        SAME(region.size);
        SAME(region.writable);
    }
    wire_round_go(INF_MESSAGE_REGION_ALLOC);
    SAME(region.region_id);
    SAME(region.size);
}

Test(message, goaway_goes_round)
{
    wire_round_go(INF_MESSAGE_GOAWAY);
    SAME(goaway.last_stream);
    SAME_TEXT(goaway.reason);
    SAME(goaway.drain_ns);
}

Test(message, empty_has_no_bytes_and_skips_what_comes)
{
    cr_assert_eq(inf_message_encode(NULL, INF_MESSAGE_EMPTY, NULL, 0, &wire_round.bytes.size,
                                    wire_round.scratch, NULL),
                 INF_OK);
    cr_assert_eq(wire_round.bytes.size, 0);
    wire_text(&wire_round.bytes, 1, "repository");
    wire_number(&wire_round.bytes, 2, 1);
    cr_assert_eq(inf_message_decode(NULL, INF_MESSAGE_EMPTY, wire_span(&wire_round.bytes),
                                    wire_round.scratch, NULL),
                 INF_OK);
}

Test(message, of_nothing_is_all_defaults)
{
    // The kinds of messages that have no required field.
    static const enum inf_message_kind kinds[] = {
        INF_MESSAGE_HELLO,           INF_MESSAGE_HELLO_ACK,     INF_MESSAGE_INFER_REPLY,
        INF_MESSAGE_STATUS,          INF_MESSAGE_GOAWAY,        INF_MESSAGE_MODEL_METADATA,
        INF_MESSAGE_SERVER_METADATA, INF_MESSAGE_MODEL_INDEX,   INF_MESSAGE_LOAD_PROGRESS,
        INF_MESSAGE_DEVICE_INDEX,    INF_MESSAGE_SERVER_STATUS, INF_MESSAGE_MEMORY_INFO,
        INF_MESSAGE_PLACEMENT_REPLY, INF_MESSAGE_ENVIRONMENT,
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        wire_round.bytes.size = 0;
        wire_round_decode(kinds[i]);
        wire_round.sent = wire_round.got;
        wire_round_encode(kinds[i]);
        // A sub-message that is absent may be decoded and encoded as a present one with zeros,
        // which needs at most 3 bytes.
        cr_assert_leq(wire_round.bytes.size, 3, "kind %d", kinds[i]);
    }
    wire_round.bytes.size = 0;
    wire_round_decode(INF_MESSAGE_INFER_REPLY);
    cr_assert_str_eq(wire_round.got.infer_reply.device, "");
    cr_assert_eq(wire_round.got.infer_reply.output_count, 0);
    cr_assert_eq(wire_round.got.infer_reply.timing.compute_ns, 0);
}

// --- messages compared with literal bytes ---

Test(message, decodes_a_request_written_by_hand)
{
    static struct wire_bytes tensor;
    static struct wire_bytes part;
    wire_text(&wire_round.bytes, 1, "mnist");
    wire_text(&wire_round.bytes, 3, "r1");
    wire_text(&part, 1, "key"); // parameters are allowed, and not used
    wire_block(&part, 2, "\x10\x05", 2);
    wire_message(&wire_round.bytes, 4, &part);
    wire_text(&tensor, 1, "in");
    wire_text(&tensor, 2, "UINT8");
    wire_number(&tensor, 3, 1); // one element of the repeated field `shape`, not packed
    wire_block(&tensor, 3, "\x1c\x90\x03", 3);
    wire_number(&tensor, 99, 7); // a field that this version does not know
    part.size = 0;
    wire_number(&part, 1, 128);
    wire_number(&part, 2, 11200);
    wire_message(&tensor, 100, &part);
    wire_message(&wire_round.bytes, 5, &tensor);
    wire_number(&wire_round.bytes, 100, 2000000000);
    wire_text(&wire_round.bytes, 500, "not known yet");

    wire_round_decode(INF_MESSAGE_INFER_REQUEST);
    const struct inf_infer_request *request = &wire_round.got.infer_request;
    cr_assert_str_eq(request->model_name, "mnist");
    cr_assert_str_eq(request->model_version, "");
    cr_assert_str_eq(request->id, "r1");
    cr_assert_str_eq(request->device, "");
    cr_assert_eq(request->timeout_ns, 2000000000);
    cr_assert_eq(request->input_count, 1);
    cr_assert_eq(request->output_count, 0);
    struct inf_shape shape = INF_SHAPE(1, 28, 400);
    cr_assert(inf_shape_equal(&request->inputs[0].shape, &shape));
    cr_assert_eq(request->inputs[0].dtype, INF_DTYPE_U8);
    cr_assert(request->inputs[0].location.present);
    cr_assert_eq(request->inputs[0].location.region_id, 0);
    cr_assert_eq(request->inputs[0].location.offset, 128);
    cr_assert_eq(request->inputs[0].location.length, 11200);
}

Test(message, encodes_literal_bytes)
{
    memset(&wire_round.sent, 0, sizeof wire_round.sent);
    wire_round.sent.hello = (struct inf_hello){.major = 1, .client_name = "py"};
    wire_round_encode(INF_MESSAGE_HELLO);
    is_literally("\x08\x01\x1a\x02py\x2a\x00", 8);

    memset(&wire_round.sent, 0, sizeof wire_round.sent);
    wire_round.sent.infer_request.model_name = "add";
    wire_round.sent.infer_request.input_count = 1;
    wire_round.sent.infer_request.inputs[0] =
        (struct inf_tensor_entry){.name = "x", .dtype = INF_DTYPE_F32, .shape = INF_SHAPE(2)};
    wire_round_encode(INF_MESSAGE_INFER_REQUEST);
    is_literally(
        "\x0a\x03"
        "add\x2a\x0c\x0a\x01x\x12\x04"
        "FP32\x1a\x01\x02",
        19);

    memset(&wire_round.sent, 0, sizeof wire_round.sent);
    wire_round.sent.status = (struct inf_status){
        .code = INF_NOT_FOUND, .reason = INF_REASON_MODEL_NOT_FOUND, .message = "no"};
    wire_round_encode(INF_MESSAGE_STATUS);
    is_literally("\x08\x05\x12\x02no\xa0\x06\x0d", 9);
}

// Passes one frame of docs/reference/protocol.md, written in hex, to an assembler and decodes its
// metadata.
static struct inf_frame decode_hex(struct inf_assembler *assembler, const char *hex,
                                   enum inf_message_kind kind)
{
    wire_round.bytes.size = 0;
    for (const char *at = hex; *at != '\0'; at += 2 + (at[2] == ' '))
        wire_byte(&wire_round.bytes, (uint8_t)strtoul((char[]){at[0], at[1], '\0'}, NULL, 16));
    size_t used;
    struct inf_frame frame;
    cr_assert_eq(inf_assembler_feed(assembler, wire_span(&wire_round.bytes), &used, NULL), INF_OK);
    cr_assert_eq(used, wire_round.bytes.size);
    cr_assert_eq(assembler->state, INF_ASSEMBLER_READY);
    inf_assembler_take(assembler, &frame);
    struct inf_error err;
    cr_assert_eq(inf_message_decode(&wire_round.got, kind, frame.meta, wire_round.scratch, &err),
                 INF_OK, "%s", err.text);
    return frame;
}

static void *memory_alloc(void *context, size_t size)
{
    (void)context;
    return malloc(size);
}

static void memory_free(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

Test(message, example_of_docs_protocol_is_right)
{
    struct inf_assembler assembler;
    inf_assembler_init(&assembler, &(struct inf_assembler_limits){65536, 1048576},
                       &(struct inf_assembler_memory){memory_alloc, memory_free, NULL});
    struct inf_frame frame = decode_hex(&assembler,
                                        "06 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 "
                                        "00 00 00 00 00 00 08 01 1a 02 70 79",
                                        INF_MESSAGE_HELLO);
    cr_assert_eq(frame.header.type, INF_FRAME_HELLO);
    cr_assert_eq(wire_round.got.hello.major, 1);
    cr_assert_str_eq(wire_round.got.hello.client_name, "py");

    frame = decode_hex(&assembler,
                       "13 00 00 00 08 00 00 00 01 00 00 00 00 00 00 00 03 00 00 00 06 00 00 00 "
                       "0a 03 61 64 64 2a 0c 0a 01 78 12 04 46 50 33 32 1a 01 02 "
                       "00 00 80 3f 00 00 20 40",
                       INF_MESSAGE_INFER_REQUEST);
    cr_assert_eq(frame.header.type, INF_FRAME_REQUEST);
    cr_assert_eq(frame.header.method, INF_METHOD_MODEL_INFER);
    cr_assert_eq(inf_infer_request_resolve_inline(&wire_round.got.infer_request, 8, NULL), INF_OK);
    cr_assert_str_eq(wire_round.got.infer_request.inputs[0].name, "x");
    float values[2];
    memcpy(values, frame.data, 8);
    cr_assert(values[0] == 1.0f && values[1] == 2.5f);
    free(frame.data);

    frame = decode_hex(&assembler,
                       "37 00 00 00 08 00 00 00 01 00 00 00 00 00 00 00 04 00 01 00 06 00 00 00 "
                       "0a 03 61 64 64 12 01 31 2a 11 0a 01 79 12 04 46 50 33 32 1a 01 02 "
                       "a2 06 02 10 08 a2 06 06 08 e8 07 18 a0 1f a8 06 01 b2 06 03 63 70 75 "
                       "ba 06 04 66 70 33 32 c0 06 01 00 00 00 40 00 00 60 40",
                       INF_MESSAGE_INFER_REPLY);
    const struct inf_infer_reply *reply = &wire_round.got.infer_reply;
    cr_assert_eq(frame.header.flags, INF_FRAME_FINAL);
    cr_assert_eq(inf_infer_reply_resolve_inline(&wire_round.got.infer_reply, 8, NULL), INF_OK);
    cr_assert_str_eq(reply->outputs[0].name, "y");
    cr_assert_eq(reply->timing.queue_ns, 1000);
    cr_assert_eq(reply->timing.compute_ns, 4000);
    cr_assert_eq(reply->batch_size, 1);
    cr_assert_str_eq(reply->device, "cpu");
    cr_assert_str_eq(reply->precision, "fp32");
    cr_assert_eq(reply->credit_return, 1);
    memcpy(values, frame.data, 8);
    cr_assert(values[0] == 2.0f && values[1] == 3.5f);
    free(frame.data);
    inf_assembler_fini(&assembler);
}

// --- the scratch memory into which messages are decoded ---

Test(message, decoded_texts_survive_encoding_with_the_same_scratch)
{
    wire_round_go(INF_MESSAGE_INFER_REQUEST);
    static union inf_message reply;
    wire_sample(&reply, INF_MESSAGE_INFER_REPLY);
    // The reply contains the id of the request.
    reply.infer_reply.id = wire_round.got.infer_request.id;
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(inf_message_encode(&reply, INF_MESSAGE_INFER_REPLY, wire_round.bytes.data,
                                        sizeof wire_round.bytes.data, &wire_round.bytes.size,
                                        wire_round.scratch, NULL),
                     INF_OK);
        cr_assert_str_eq(wire_round.got.infer_request.id, "frame-17");
        cr_assert_str_eq(wire_round.got.infer_request.inputs[1].name, "scale");
    }
}

Test(message, index_of_models_is_as_long_as_a_receiver_takes)
{
    // An entry has 10 fields and counts as one field itself, so at most 372 entries fit into 4096
    // fields.
    static struct inf_model_index_entry entries[373];
    for (size_t i = 0; i < 373; i++)
        entries[i] = (struct inf_model_index_entry){"n", "1", "READY", "r", "d", "p", "l", 1, 2, i};
    wire_round.sent.model_index.entries = entries;
    wire_round.sent.model_index.count = 372;
    wire_round_encode(INF_MESSAGE_MODEL_INDEX);
    wire_round_decode(INF_MESSAGE_MODEL_INDEX);
    cr_assert_eq(wire_round.got.model_index.count, 372);
    cr_assert_eq(wire_round.got.model_index.entries[371].macs, 371);
    wire_round.sent.model_index.count = 373;
    struct inf_error err;
    cr_assert_eq(inf_message_encode(&wire_round.sent, INF_MESSAGE_MODEL_INDEX,
                                    wire_round.bytes.data, sizeof wire_round.bytes.data,
                                    &wire_round.bytes.size, wire_round.scratch, &err),
                 INF_EXHAUSTED);
    cr_assert_eq(err.reason, INF_REASON_FRAME_TOO_LARGE);
    cr_assert_str_eq(err.text, "373 entries of ModelIndex, a frame takes at most 372");
}

Test(message, encoding_stops_at_the_buffers_end)
{
    for (int kind = INF_MESSAGE_HELLO; kind < INF_MESSAGE_KIND_COUNT; kind++) {
        wire_sample(&wire_round.sent, (enum inf_message_kind)kind);
        wire_round_encode((enum inf_message_kind)kind);
        size_t size = wire_round.bytes.size;
        wire_round.bytes.data[size - 1] = 0xa5;
        struct inf_error err;
        cr_assert_eq(inf_message_encode(&wire_round.sent, (enum inf_message_kind)kind,
                                        wire_round.bytes.data, size - 1, &wire_round.bytes.size,
                                        wire_round.scratch, &err),
                     INF_EXHAUSTED);
        cr_assert_eq(err.reason, INF_REASON_FRAME_TOO_LARGE);
        cr_assert_eq(wire_round.bytes.data[size - 1], 0xa5);
    }
}

// --- conversion of errors to Status messages ---

Test(message, status_and_error_are_one_thing)
{
    struct inf_error err;
    inf_fail_reason(&err, INF_EXHAUSTED, INF_REASON_QUEUE_FULL, "queue of cpu is full");
    inf_status_from_error(&wire_round.sent.status, &err);
    wire_round_encode(INF_MESSAGE_STATUS);
    wire_round_decode(INF_MESSAGE_STATUS);
    struct inf_error back;
    cr_assert_eq(inf_error_from_status(&back, &wire_round.got.status), INF_EXHAUSTED);
    cr_assert_eq(back.code, INF_EXHAUSTED);
    cr_assert_eq(back.reason, INF_REASON_QUEUE_FULL);
    cr_assert_str_eq(back.text, "queue of cpu is full");
}

Test(message, status_of_a_stranger_is_internal)
{
    struct inf_error err;
    wire_round.bytes.size = 0; // an empty Status has the code OK, which is no failure
    wire_round_decode(INF_MESSAGE_STATUS);
    cr_assert_eq(inf_error_from_status(&err, &wire_round.got.status), INF_INTERNAL);
    static const uint64_t codes[] = {2, 15, 16, 17, 1u << 31, UINT64_MAX};
    for (size_t i = 0; i < 6; i++) {
        wire_round.bytes.size = 0;
        wire_number(&wire_round.bytes, 1, codes[i]);
        wire_number(&wire_round.bytes, 100, 4000000000);
        wire_round_decode(INF_MESSAGE_STATUS);
        cr_assert_eq(inf_error_from_status(&err, &wire_round.got.status), INF_INTERNAL);
        cr_assert_eq(err.reason, INF_REASON_NONE);
    }
}
