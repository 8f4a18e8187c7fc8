// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/assembler.h"
#include "proto/wire/message.h"
#include "tests/support/wire_bytes.h"
#include "tests/support/wire_samples.h"

static union inf_message sent;
static union inf_message got;
static struct inf_scratch *scratch;
static struct wire_bytes bytes;

static void open_scratch(void)
{
    cr_assert_eq(inf_scratch_create(&scratch, NULL), INF_OK);
}

static void close_scratch(void)
{
    inf_scratch_destroy(&scratch);
    cr_assert_null(scratch);
    inf_scratch_destroy(&scratch);
}

TestSuite(message, .init = open_scratch, .fini = close_scratch);

static void encode(enum inf_message_kind kind)
{
    struct inf_error err;
    enum inf_code code = inf_message_encode(&sent, kind, bytes.data, INF_LIMIT_META_BYTES,
                                            &bytes.size, scratch, &err);
    cr_assert_eq(code, INF_OK, "kind %d: %s", kind, err.text);
}

static void decode(enum inf_message_kind kind)
{
    memset(&got, 0xee, sizeof got);
    struct inf_error err;
    enum inf_code code = inf_message_decode(&got, kind, wire_span(&bytes), scratch, &err);
    cr_assert_eq(code, INF_OK, "kind %d: %s", kind, err.text);
}

static void go_round(enum inf_message_kind kind)
{
    wire_sample(&sent, kind);
    encode(kind);
    decode(kind);
}

// Wants the encoder to have made exactly these bytes.
static void is_literally(const char *wanted, size_t size)
{
    cr_assert_eq(bytes.size, size);
    cr_assert_arr_eq(bytes.data, wanted, size);
}

#define SAME(member)      cr_assert_eq(got.member, sent.member)
#define SAME_TEXT(member) cr_assert_str_eq(got.member, sent.member)

static void same_entry(const struct inf_tensor_entry *a, const struct inf_tensor_entry *b)
{
    cr_assert_str_eq(a->name, b->name);
    cr_assert_eq(a->dtype, b->dtype);
    cr_assert(inf_shape_equal(&a->shape, &b->shape));
    cr_assert_eq(a->location.present, b->location.present);
    cr_assert_eq(a->location.region_id, b->location.region_id);
    cr_assert_eq(a->location.offset, b->location.offset);
    cr_assert_eq(a->location.length, b->location.length);
    cr_assert_eq(a->session_tensor == NULL, b->session_tensor == NULL);
    if (a->session_tensor != NULL)
        cr_assert_str_eq(a->session_tensor, b->session_tensor);
}

static void same_limits(const struct inf_limits_message *a, const struct inf_limits_message *b)
{
    cr_assert_eq(a->meta_bytes, b->meta_bytes);
    cr_assert_eq(a->data_bytes, b->data_bytes);
    cr_assert_eq(a->streams, b->streams);
    cr_assert_eq(a->regions, b->regions);
    cr_assert_eq(a->region_bytes, b->region_bytes);
    cr_assert_eq(a->frame_fds, b->frame_fds);
    cr_assert_eq(a->stream_bytes, b->stream_bytes);
}

// --- there and back ---

Test(message, hello_goes_round)
{
    go_round(INF_MESSAGE_HELLO);
    SAME(hello.major);
    SAME(hello.minor);
    SAME_TEXT(hello.client_name);
    SAME_TEXT(hello.client_version);
    same_limits(&got.hello.limits, &sent.hello.limits);
    cr_assert_eq(got.hello.feature_count, 2);
    SAME_TEXT(hello.features[0]);
    SAME_TEXT(hello.features[1]);
}

Test(message, hello_ack_goes_round)
{
    go_round(INF_MESSAGE_HELLO_ACK);
    SAME(hello_ack.major);
    SAME(hello_ack.minor);
    SAME_TEXT(hello_ack.server_name);
    SAME_TEXT(hello_ack.server_version);
    same_limits(&got.hello_ack.limits, &sent.hello_ack.limits);
    cr_assert_eq(got.hello_ack.feature_count, INF_HELLO_FEATURES);
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
    go_round(INF_MESSAGE_INFER_REQUEST);
    SAME_TEXT(infer_request.model_name);
    SAME_TEXT(infer_request.model_version);
    SAME_TEXT(infer_request.id);
    SAME_TEXT(infer_request.device);
    SAME(infer_request.timeout_ns);
    SAME(infer_request.priority);
    SAME(infer_request.session_id);
    SAME(infer_request.order_key);
    SAME_TEXT(infer_request.mode);
    SAME_TEXT(infer_request.against);
    SAME(infer_request.tolerance);
    cr_assert_eq(got.infer_request.input_count, 3);
    cr_assert_eq(got.infer_request.output_count, 3);
    for (int i = 0; i < 3; i++) {
        same_entry(&got.infer_request.inputs[i], &sent.infer_request.inputs[i]);
        same_entry(&got.infer_request.outputs[i], &sent.infer_request.outputs[i]);
    }
}

Test(message, infer_reply_goes_round)
{
    go_round(INF_MESSAGE_INFER_REPLY);
    SAME_TEXT(infer_reply.model_name);
    SAME_TEXT(infer_reply.model_version);
    SAME_TEXT(infer_reply.id);
    cr_assert_eq(got.infer_reply.output_count, 2);
    for (int i = 0; i < 2; i++)
        same_entry(&got.infer_reply.outputs[i], &sent.infer_reply.outputs[i]);
    SAME(infer_reply.timing.queue_ns);
    SAME(infer_reply.timing.input_ns);
    SAME(infer_reply.timing.compute_ns);
    SAME(infer_reply.timing.output_ns);
    SAME(infer_reply.batch_size);
    SAME_TEXT(infer_reply.device);
    SAME_TEXT(infer_reply.precision);
    SAME(infer_reply.credit_return);
}

Test(message, status_goes_round)
{
    go_round(INF_MESSAGE_STATUS);
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
        go_round((enum inf_message_kind)kind);
        SAME(region.region_id);
        SAME(region.size);
        SAME(region.writable);
    }
    go_round(INF_MESSAGE_REGION_ALLOC);
    SAME(region.region_id);
    SAME(region.size);
}

Test(message, goaway_goes_round)
{
    go_round(INF_MESSAGE_GOAWAY);
    SAME(goaway.last_stream);
    SAME_TEXT(goaway.reason);
    SAME(goaway.drain_ns);
}

Test(message, model_requests_go_round)
{
    static const enum inf_message_kind kinds[] = {
        INF_MESSAGE_MODEL_READY_REQUEST, INF_MESSAGE_MODEL_METADATA_REQUEST,
        INF_MESSAGE_MODEL_LOAD_REQUEST, INF_MESSAGE_MODEL_UNLOAD_REQUEST};
    for (size_t i = 0; i < 4; i++) {
        go_round(kinds[i]);
        SAME_TEXT(model.name);
        SAME_TEXT(model.version);
        SAME_TEXT(model.device);
        SAME_TEXT(model.path);
    }
}

Test(message, flags_go_round)
{
    static const enum inf_message_kind kinds[] = {INF_MESSAGE_LIVE_REPLY, INF_MESSAGE_READY_REPLY,
                                                  INF_MESSAGE_MODEL_READY_REPLY};
    for (size_t i = 0; i < 3; i++) {
        go_round(kinds[i]);
        cr_assert(got.flag.value);
        sent.flag.value = false;
        encode(kinds[i]);
        cr_assert_eq(bytes.size, 0);
        decode(kinds[i]);
        cr_assert_not(got.flag.value);
    }
}

Test(message, model_metadata_goes_round)
{
    go_round(INF_MESSAGE_MODEL_METADATA);
    SAME_TEXT(model_metadata.name);
    SAME_TEXT(model_metadata.version);
    SAME_TEXT(model_metadata.platform);
    cr_assert_eq(got.model_metadata.input_count, 2);
    cr_assert_eq(got.model_metadata.output_count, 1);
    same_entry(&got.model_metadata.inputs[0], &sent.model_metadata.inputs[0]);
    same_entry(&got.model_metadata.inputs[1], &sent.model_metadata.inputs[1]);
    same_entry(&got.model_metadata.outputs[0], &sent.model_metadata.outputs[0]);
}

Test(message, server_metadata_goes_round)
{
    go_round(INF_MESSAGE_SERVER_METADATA);
    SAME_TEXT(server_metadata.name);
    SAME_TEXT(server_metadata.version);
    cr_assert_eq(got.server_metadata.extension_count, 1);
    SAME_TEXT(server_metadata.extensions[0]);
}

Test(message, model_index_goes_round)
{
    go_round(INF_MESSAGE_MODEL_INDEX);
    cr_assert_eq(got.model_index.count, 2);
    for (int i = 0; i < 2; i++) {
        SAME_TEXT(model_index.entries[i].name);
        SAME_TEXT(model_index.entries[i].version);
        SAME_TEXT(model_index.entries[i].state);
        SAME_TEXT(model_index.entries[i].reason);
        SAME_TEXT(model_index.entries[i].device);
        SAME_TEXT(model_index.entries[i].platform);
        SAME(model_index.entries[i].memory_bytes);
        SAME(model_index.entries[i].requests);
        SAME(model_index.entries[i].macs);
    }
}

Test(message, device_index_goes_round)
{
    go_round(INF_MESSAGE_DEVICE_INDEX);
    cr_assert_eq(got.device_index.count, 3);
    for (int i = 0; i < 3; i++) {
        SAME_TEXT(device_index.entries[i].name);
        SAME_TEXT(device_index.entries[i].backend);
        SAME_TEXT(device_index.entries[i].kind);
        SAME_TEXT(device_index.entries[i].description);
        SAME_TEXT(device_index.entries[i].health);
        SAME(device_index.entries[i].priority);
        SAME(device_index.entries[i].slots);
        SAME(device_index.entries[i].threads);
        SAME(device_index.entries[i].queue_depth);
        SAME(device_index.entries[i].queue_limit);
        SAME(device_index.entries[i].requests);
        SAME(device_index.entries[i].busy_ns);
        SAME(device_index.entries[i].memory_bytes);
    }
}

Test(message, load_progress_goes_round)
{
    go_round(INF_MESSAGE_LOAD_PROGRESS);
    SAME_TEXT(load_progress.stage);
    SAME(load_progress.percent);
    cr_assert_eq(got.load_progress.node_count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_TEXT(load_progress.nodes[i].name);
        SAME_TEXT(load_progress.nodes[i].op);
        SAME_TEXT(load_progress.nodes[i].kernel);
        SAME_TEXT(load_progress.nodes[i].device);
        SAME_TEXT(load_progress.nodes[i].shape);
        SAME_TEXT(load_progress.nodes[i].inputs);
        SAME_TEXT(load_progress.nodes[i].verdict);
        SAME(load_progress.nodes[i].start_ns);
        SAME(load_progress.nodes[i].time_ns);
        SAME(load_progress.nodes[i].macs);
        SAME(load_progress.nodes[i].bytes);
        SAME(load_progress.nodes[i].nan_count);
        SAME(load_progress.nodes[i].inf_count);
        SAME(load_progress.nodes[i].least);
        SAME(load_progress.nodes[i].largest);
        SAME(load_progress.nodes[i].max_abs);
        SAME(load_progress.nodes[i].max_rel);
    }
}

Test(message, server_status_goes_round)
{
    go_round(INF_MESSAGE_SERVER_STATUS);
    SAME_TEXT(server_status.version);
    SAME_TEXT(server_status.state);
    SAME(server_status.uptime_ns);
    SAME(server_status.connections);
    SAME(server_status.requests_in_flight);
    SAME(server_status.regions);
    SAME(server_status.models_ready);
    SAME(server_status.connections_total);
    SAME(server_status.requests_accepted);
    SAME(server_status.requests_ok);
    SAME(server_status.requests_failed);
    SAME(server_status.region_bytes);
    SAME(server_status.resident_bytes);
    SAME(server_status.log_lines_dropped);
}

Test(message, memory_info_goes_round)
{
    go_round(INF_MESSAGE_MEMORY_INFO);
    SAME(memory_info.region_bytes);
    SAME(memory_info.resident_bytes);
    cr_assert_eq(got.memory_info.count, 2);
    for (int i = 0; i < 2; i++) {
        SAME_TEXT(memory_info.entries[i].name);
        SAME(memory_info.entries[i].num_tensors);
        SAME(memory_info.entries[i].num_data_buffers);
        SAME(memory_info.entries[i].num_bytes);
        SAME(memory_info.entries[i].constant_bytes);
        SAME(memory_info.entries[i].weight_bytes);
        SAME(memory_info.entries[i].buffer_bytes);
        SAME(memory_info.entries[i].budget_bytes);
        SAME(memory_info.entries[i].peak_bytes);
    }
    SAME(memory_info.session_bytes);
    SAME(memory_info.sessions);
}

Test(message, limits_and_credit_go_round)
{
    for (int kind = INF_MESSAGE_LIMITS_REQUEST; kind <= INF_MESSAGE_LIMITS_REPLY; kind++) {
        go_round((enum inf_message_kind)kind);
        cr_assert_eq(got.limit_list.count, 2);
        for (int i = 0; i < 2; i++) {
            SAME_TEXT(limit_list.entries[i].name);
            SAME(limit_list.entries[i].value);
            SAME(limit_list.entries[i].least);
            SAME(limit_list.entries[i].most);
        }
    }
    go_round(INF_MESSAGE_CREDIT);
    SAME(credit.requests);
    SAME(credit.bytes);
    go_round(INF_MESSAGE_DATA);
    SAME(data.total_bytes);
}

Test(message, sessions_of_a_model_go_round)
{
    go_round(INF_MESSAGE_SESSION_OPEN);
    sent.session.state_count = 0;
    sent.session.model_name = "silero_vad";
    sent.session.model_version = "2";
    uint8_t buffer[256];
    size_t size = 0;
    cr_assert_eq(inf_message_encode(&sent, INF_MESSAGE_SESSION_OPEN, buffer, sizeof buffer, &size,
                                    scratch, NULL),
                 INF_OK);
    cr_assert_eq(inf_message_decode(&got, INF_MESSAGE_SESSION_OPEN, (struct inf_span){buffer, size},
                                    scratch, NULL),
                 INF_OK);
    cr_assert_eq(got.session.state_count, 0);
    SAME_TEXT(session.model_name);
    SAME_TEXT(session.model_version);
}

Test(message, sessions_go_round)
{
    go_round(INF_MESSAGE_SESSION_OPEN);
    SAME(session.session_id);
    cr_assert_str_eq(got.session.model_name, "");
    cr_assert_eq(got.session.state_count, 3);
    for (int i = 0; i < 3; i++) {
        SAME_TEXT(session.states[i].output);
        SAME_TEXT(session.states[i].input);
        SAME(session.states[i].shaped);
        cr_assert(inf_shape_equal(&got.session.states[i].shape, &sent.session.states[i].shape));
    }
    go_round(INF_MESSAGE_SESSION_CLOSE);
    SAME(session.session_id);
}

Test(message, placement_goes_round)
{
    go_round(INF_MESSAGE_PLACEMENT_REQUEST);
    SAME_TEXT(placement_request.name);
    SAME_TEXT(placement_request.version);
    SAME_TEXT(placement_request.device);
    SAME_TEXT(placement_request.policy);
    SAME_TEXT(placement_request.precision);
    go_round(INF_MESSAGE_PLACEMENT_REPLY);
    SAME_TEXT(placement_reply.name);
    SAME_TEXT(placement_reply.version);
    SAME_TEXT(placement_reply.device);
    SAME_TEXT(placement_reply.backend);
    SAME_TEXT(placement_reply.precision);
    SAME_TEXT(placement_reply.precision_reason);
    SAME_TEXT(placement_reply.policy);
    SAME_TEXT(placement_reply.source);
    SAME_TEXT(placement_reply.reason);
    SAME_TEXT(placement_reply.rule_device);
    SAME_TEXT(placement_reply.rule_reason);
    SAME(placement_reply.macs);
    SAME(placement_reply.const_bytes);
    SAME(placement_reply.steps);
    SAME(placement_reply.interpreted);
    SAME(placement_reply.small_ops_webgl);
    SAME(placement_reply.small_ops_webgpu);
    SAME(placement_reply.shadow_checked);
    SAME(placement_reply.shadow_drifted);
    SAME(placement_reply.shadow_dropped);
    SAME(placement_reply.recomputed);
    SAME_TEXT(placement_reply.shadow_alarm);
    cr_assert_eq(got.placement_reply.candidate_count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_TEXT(placement_reply.candidates[i].device);
        SAME_TEXT(placement_reply.candidates[i].backend);
        SAME_TEXT(placement_reply.candidates[i].kind);
        SAME_TEXT(placement_reply.candidates[i].precision);
        SAME_TEXT(placement_reply.candidates[i].verdict);
        SAME_TEXT(placement_reply.candidates[i].reason);
        SAME(placement_reply.candidates[i].runs);
        SAME(placement_reply.candidates[i].prior_ns);
        SAME(placement_reply.candidates[i].first_ns);
        SAME(placement_reply.candidates[i].median_ns);
        SAME(placement_reply.candidates[i].memory_bytes);
        SAME(placement_reply.candidates[i].threads);
    }
    cr_assert_eq(got.placement_reply.declined_count, 1u);
    SAME_TEXT(placement_reply.declined[0].op);
    SAME(placement_reply.declined[0].nodes);
    SAME_TEXT(placement_reply.declined[0].device);
    SAME_TEXT(placement_reply.declined[0].reason);
}

Test(message, environment_goes_round)
{
    go_round(INF_MESSAGE_FLAG_SET);
    SAME_TEXT(flag_set.name);
    SAME_TEXT(flag_set.value);
    go_round(INF_MESSAGE_ENVIRONMENT);
    cr_assert_eq(got.environment.fact_count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_TEXT(environment.facts[i].name);
        SAME_TEXT(environment.facts[i].value);
    }
    cr_assert_eq(got.environment.flag_count, 1u);
    SAME_TEXT(environment.flags[0].name);
    SAME_TEXT(environment.flags[0].type);
    SAME_TEXT(environment.flags[0].value);
    SAME_TEXT(environment.flags[0].initial);
    SAME_TEXT(environment.flags[0].origin);
    SAME_TEXT(environment.flags[0].stability);
    SAME(environment.flags[0].live);
    SAME_TEXT(environment.flags[0].wanted);
    SAME_TEXT(environment.flags[0].help);
}

Test(message, empty_has_no_bytes_and_skips_what_comes)
{
    cr_assert_eq(inf_message_encode(NULL, INF_MESSAGE_EMPTY, NULL, 0, &bytes.size, scratch, NULL),
                 INF_OK);
    cr_assert_eq(bytes.size, 0);
    wire_text(&bytes, 1, "repository");
    wire_number(&bytes, 2, 1);
    cr_assert_eq(inf_message_decode(NULL, INF_MESSAGE_EMPTY, wire_span(&bytes), scratch, NULL),
                 INF_OK);
}

Test(message, of_nothing_is_all_defaults)
{
    // Kinds that name nothing obligatory.
    static const enum inf_message_kind kinds[] = {
        INF_MESSAGE_HELLO,           INF_MESSAGE_HELLO_ACK,     INF_MESSAGE_INFER_REPLY,
        INF_MESSAGE_STATUS,          INF_MESSAGE_GOAWAY,        INF_MESSAGE_MODEL_METADATA,
        INF_MESSAGE_SERVER_METADATA, INF_MESSAGE_MODEL_INDEX,   INF_MESSAGE_LOAD_PROGRESS,
        INF_MESSAGE_DEVICE_INDEX,    INF_MESSAGE_SERVER_STATUS, INF_MESSAGE_MEMORY_INFO,
        INF_MESSAGE_PLACEMENT_REPLY, INF_MESSAGE_ENVIRONMENT,
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        bytes.size = 0;
        decode(kinds[i]);
        sent = got;
        encode(kinds[i]);
        // An absent sub-message of zeros comes back as a present one, at most.
        cr_assert_leq(bytes.size, 3, "kind %d", kinds[i]);
    }
    bytes.size = 0;
    decode(INF_MESSAGE_INFER_REPLY);
    cr_assert_str_eq(got.infer_reply.device, "");
    cr_assert_eq(got.infer_reply.output_count, 0);
    cr_assert_eq(got.infer_reply.timing.compute_ns, 0);
}

// --- literal bytes ---

Test(message, decodes_a_request_written_by_hand)
{
    static struct wire_bytes tensor;
    static struct wire_bytes part;
    wire_text(&bytes, 1, "mnist");
    wire_text(&bytes, 3, "r1");
    wire_text(&part, 1, "key"); // parameters are allowed, and not used
    wire_block(&part, 2, "\x10\x05", 2);
    wire_message(&bytes, 4, &part);
    wire_text(&tensor, 1, "in");
    wire_text(&tensor, 2, "UINT8");
    wire_number(&tensor, 3, 1); // not packed
    wire_block(&tensor, 3, "\x1c\x90\x03", 3);
    wire_number(&tensor, 99, 7); // not known yet
    part.size = 0;
    wire_number(&part, 1, 128);
    wire_number(&part, 2, 11200);
    wire_message(&tensor, 100, &part);
    wire_message(&bytes, 5, &tensor);
    wire_number(&bytes, 100, 2000000000);
    wire_text(&bytes, 500, "not known yet");

    decode(INF_MESSAGE_INFER_REQUEST);
    const struct inf_infer_request *request = &got.infer_request;
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
    memset(&sent, 0, sizeof sent);
    sent.hello = (struct inf_hello){.major = 1, .client_name = "py"};
    encode(INF_MESSAGE_HELLO);
    is_literally("\x08\x01\x1a\x02py\x2a\x00", 8);

    memset(&sent, 0, sizeof sent);
    sent.infer_request.model_name = "add";
    sent.infer_request.input_count = 1;
    sent.infer_request.inputs[0] =
        (struct inf_tensor_entry){.name = "x", .dtype = INF_DTYPE_F32, .shape = INF_SHAPE(2)};
    encode(INF_MESSAGE_INFER_REQUEST);
    is_literally(
        "\x0a\x03"
        "add\x2a\x0c\x0a\x01x\x12\x04"
        "FP32\x1a\x01\x02",
        19);

    memset(&sent, 0, sizeof sent);
    sent.status = (struct inf_status){
        .code = INF_NOT_FOUND, .reason = INF_REASON_MODEL_NOT_FOUND, .message = "no"};
    encode(INF_MESSAGE_STATUS);
    is_literally("\x08\x05\x12\x02no\xa0\x06\x0d", 9);
}

// Feeds one frame, written in hex, of docs/PROTOCOL.md to an assembler and decodes its metadata.
static struct inf_frame decode_hex(struct inf_assembler *assembler, const char *hex,
                                   enum inf_message_kind kind)
{
    bytes.size = 0;
    for (const char *at = hex; *at != '\0'; at += 2 + (at[2] == ' '))
        wire_byte(&bytes, (uint8_t)strtoul((char[]){at[0], at[1], '\0'}, NULL, 16));
    size_t used;
    struct inf_frame frame;
    cr_assert_eq(inf_assembler_feed(assembler, wire_span(&bytes), &used, NULL), INF_OK);
    cr_assert_eq(used, bytes.size);
    cr_assert_eq(assembler->state, INF_ASSEMBLER_READY);
    inf_assembler_take(assembler, &frame);
    struct inf_error err;
    cr_assert_eq(inf_message_decode(&got, kind, frame.meta, scratch, &err), INF_OK, "%s", err.text);
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
    cr_assert_eq(got.hello.major, 1);
    cr_assert_str_eq(got.hello.client_name, "py");

    frame = decode_hex(&assembler,
                       "13 00 00 00 08 00 00 00 01 00 00 00 00 00 00 00 03 00 00 00 06 00 00 00 "
                       "0a 03 61 64 64 2a 0c 0a 01 78 12 04 46 50 33 32 1a 01 02 "
                       "00 00 80 3f 00 00 20 40",
                       INF_MESSAGE_INFER_REQUEST);
    cr_assert_eq(frame.header.type, INF_FRAME_REQUEST);
    cr_assert_eq(frame.header.method, INF_METHOD_MODEL_INFER);
    cr_assert_eq(inf_infer_request_resolve_inline(&got.infer_request, 8, NULL), INF_OK);
    cr_assert_str_eq(got.infer_request.inputs[0].name, "x");
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
    const struct inf_infer_reply *reply = &got.infer_reply;
    cr_assert_eq(frame.header.flags, INF_FRAME_FINAL);
    cr_assert_eq(inf_infer_reply_resolve_inline(&got.infer_reply, 8, NULL), INF_OK);
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

// --- the scratch ---

Test(message, decoded_texts_survive_encoding_with_the_same_scratch)
{
    go_round(INF_MESSAGE_INFER_REQUEST);
    static union inf_message reply;
    wire_sample(&reply, INF_MESSAGE_INFER_REPLY);
    reply.infer_reply.id = got.infer_request.id; // echoed
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(inf_message_encode(&reply, INF_MESSAGE_INFER_REPLY, bytes.data,
                                        sizeof bytes.data, &bytes.size, scratch, NULL),
                     INF_OK);
        cr_assert_str_eq(got.infer_request.id, "frame-17");
        cr_assert_str_eq(got.infer_request.inputs[1].name, "scale");
    }
}

Test(message, index_of_models_is_as_long_as_a_receiver_takes)
{
    // An entry has 9 fields and is one itself: 409 are at most 4096 fields.
    static struct inf_model_index_entry entries[410];
    for (size_t i = 0; i < 410; i++)
        entries[i] = (struct inf_model_index_entry){"n", "1", "READY", "r", "d", "p", 1, 2, i};
    sent.model_index.entries = entries;
    sent.model_index.count = 409;
    encode(INF_MESSAGE_MODEL_INDEX);
    decode(INF_MESSAGE_MODEL_INDEX);
    cr_assert_eq(got.model_index.count, 409);
    cr_assert_eq(got.model_index.entries[408].macs, 408);
    sent.model_index.count = 410;
    struct inf_error err;
    cr_assert_eq(inf_message_encode(&sent, INF_MESSAGE_MODEL_INDEX, bytes.data, sizeof bytes.data,
                                    &bytes.size, scratch, &err),
                 INF_EXHAUSTED);
    cr_assert_eq(err.reason, INF_REASON_FRAME_TOO_LARGE);
    cr_assert_str_eq(err.text, "410 entries of ModelIndex, a frame takes at most 409");
}

Test(message, encoding_stops_at_the_buffers_end)
{
    for (int kind = INF_MESSAGE_HELLO; kind < INF_MESSAGE_KIND_COUNT; kind++) {
        wire_sample(&sent, (enum inf_message_kind)kind);
        encode((enum inf_message_kind)kind);
        size_t size = bytes.size;
        bytes.data[size - 1] = 0xa5;
        struct inf_error err;
        cr_assert_eq(inf_message_encode(&sent, (enum inf_message_kind)kind, bytes.data, size - 1,
                                        &bytes.size, scratch, &err),
                     INF_EXHAUSTED);
        cr_assert_eq(err.reason, INF_REASON_FRAME_TOO_LARGE);
        cr_assert_eq(bytes.data[size - 1], 0xa5);
    }
}

// --- errors as statuses ---

Test(message, status_and_error_are_one_thing)
{
    struct inf_error err;
    inf_fail_reason(&err, INF_EXHAUSTED, INF_REASON_QUEUE_FULL, "queue of cpu is full");
    inf_status_from_error(&sent.status, &err);
    encode(INF_MESSAGE_STATUS);
    decode(INF_MESSAGE_STATUS);
    struct inf_error back;
    cr_assert_eq(inf_error_from_status(&back, &got.status), INF_EXHAUSTED);
    cr_assert_eq(back.code, INF_EXHAUSTED);
    cr_assert_eq(back.reason, INF_REASON_QUEUE_FULL);
    cr_assert_str_eq(back.text, "queue of cpu is full");
}

Test(message, status_of_a_stranger_is_internal)
{
    struct inf_error err;
    bytes.size = 0; // OK is no failure
    decode(INF_MESSAGE_STATUS);
    cr_assert_eq(inf_error_from_status(&err, &got.status), INF_INTERNAL);
    static const uint64_t codes[] = {2, 15, 16, 17, 1u << 31, UINT64_MAX};
    for (size_t i = 0; i < 6; i++) {
        bytes.size = 0;
        wire_number(&bytes, 1, codes[i]);
        wire_number(&bytes, 100, 4000000000);
        decode(INF_MESSAGE_STATUS);
        cr_assert_eq(inf_error_from_status(&err, &got.status), INF_INTERNAL);
        cr_assert_eq(err.reason, INF_REASON_NONE);
    }
}
