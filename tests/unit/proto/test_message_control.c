// SPDX-License-Identifier: Apache-2.0
// Tests of encoding and decoding the messages about models and the daemon.
#include <criterion/criterion.h>

#include "tests/support/wire/wire_round.h"

static const struct wire_field model_request_fields[] = {
    WIRE_TEXT(inf_model_request, name),          WIRE_TEXT(inf_model_request, version),
    WIRE_TEXT(inf_model_request, device),        WIRE_TEXT(inf_model_request, path),
    WIRE_TEXT(inf_model_request, file),          WIRE_VALUE(inf_model_request, save),
    WIRE_VALUE(inf_model_request, delete_files),
};

static const struct wire_field model_index_fields[] = {
    WIRE_TEXT(inf_model_index_entry, name),          WIRE_TEXT(inf_model_index_entry, version),
    WIRE_TEXT(inf_model_index_entry, state),         WIRE_TEXT(inf_model_index_entry, reason),
    WIRE_TEXT(inf_model_index_entry, device),        WIRE_TEXT(inf_model_index_entry, platform),
    WIRE_VALUE(inf_model_index_entry, memory_bytes), WIRE_VALUE(inf_model_index_entry, requests),
    WIRE_VALUE(inf_model_index_entry, macs),
};

static const struct wire_field device_fields[] = {
    WIRE_TEXT(inf_device_entry, name),          WIRE_TEXT(inf_device_entry, backend),
    WIRE_TEXT(inf_device_entry, kind),          WIRE_TEXT(inf_device_entry, description),
    WIRE_TEXT(inf_device_entry, health),        WIRE_VALUE(inf_device_entry, priority),
    WIRE_VALUE(inf_device_entry, slots),        WIRE_VALUE(inf_device_entry, threads),
    WIRE_VALUE(inf_device_entry, queue_depth),  WIRE_VALUE(inf_device_entry, queue_limit),
    WIRE_VALUE(inf_device_entry, requests),     WIRE_VALUE(inf_device_entry, busy_ns),
    WIRE_VALUE(inf_device_entry, memory_bytes),
};

static const struct wire_field request_entry_fields[] = {
    WIRE_VALUE(inf_request_entry, client_id), WIRE_VALUE(inf_request_entry, stream_id),
    WIRE_VALUE(inf_request_entry, uid),       WIRE_VALUE(inf_request_entry, pid),
    WIRE_TEXT(inf_request_entry, method),     WIRE_TEXT(inf_request_entry, model),
    WIRE_TEXT(inf_request_entry, version),    WIRE_TEXT(inf_request_entry, device),
    WIRE_TEXT(inf_request_entry, phase),      WIRE_TEXT(inf_request_entry, id),
    WIRE_VALUE(inf_request_entry, age_ns),    WIRE_VALUE(inf_request_entry, data_bytes),
    WIRE_VALUE(inf_request_entry, rows),
};

static const struct wire_field client_entry_fields[] = {
    WIRE_VALUE(inf_client_entry, client_id),    WIRE_VALUE(inf_client_entry, uid),
    WIRE_VALUE(inf_client_entry, pid),          WIRE_TEXT(inf_client_entry, name),
    WIRE_TEXT(inf_client_entry, role),          WIRE_VALUE(inf_client_entry, age_ns),
    WIRE_VALUE(inf_client_entry, requests),     WIRE_VALUE(inf_client_entry, data_bytes),
    WIRE_VALUE(inf_client_entry, unread_bytes), WIRE_VALUE(inf_client_entry, region_bytes),
    WIRE_VALUE(inf_client_entry, in_flight),    WIRE_VALUE(inf_client_entry, regions),
    WIRE_VALUE(inf_client_entry, sessions),
};

static const struct wire_field node_fields[] = {
    WIRE_TEXT(inf_node_entry, name),       WIRE_TEXT(inf_node_entry, op),
    WIRE_TEXT(inf_node_entry, kernel),     WIRE_TEXT(inf_node_entry, device),
    WIRE_TEXT(inf_node_entry, shape),      WIRE_TEXT(inf_node_entry, inputs),
    WIRE_TEXT(inf_node_entry, verdict),    WIRE_VALUE(inf_node_entry, start_ns),
    WIRE_VALUE(inf_node_entry, time_ns),   WIRE_VALUE(inf_node_entry, macs),
    WIRE_VALUE(inf_node_entry, bytes),     WIRE_VALUE(inf_node_entry, nan_count),
    WIRE_VALUE(inf_node_entry, inf_count), WIRE_VALUE(inf_node_entry, min),
    WIRE_VALUE(inf_node_entry, max),       WIRE_VALUE(inf_node_entry, max_abs),
    WIRE_VALUE(inf_node_entry, max_rel),   WIRE_VALUE(inf_node_entry, threads),
    WIRE_VALUE(inf_node_entry, dot_share),
};

static const struct wire_field server_status_fields[] = {
    WIRE_TEXT(inf_server_status, version),
    WIRE_TEXT(inf_server_status, state),
    WIRE_VALUE(inf_server_status, uptime_ns),
    WIRE_VALUE(inf_server_status, connections),
    WIRE_VALUE(inf_server_status, requests_in_flight),
    WIRE_VALUE(inf_server_status, regions),
    WIRE_VALUE(inf_server_status, models_ready),
    WIRE_VALUE(inf_server_status, connections_total),
    WIRE_VALUE(inf_server_status, requests_accepted),
    WIRE_VALUE(inf_server_status, requests_ok),
    WIRE_VALUE(inf_server_status, requests_failed),
    WIRE_VALUE(inf_server_status, region_bytes),
    WIRE_VALUE(inf_server_status, resident_bytes),
    WIRE_VALUE(inf_server_status, log_lines_dropped),
};

static const struct wire_field memory_fields[] = {
    WIRE_TEXT(inf_memory_entry, name),
    WIRE_VALUE(inf_memory_entry, num_tensors),
    WIRE_VALUE(inf_memory_entry, num_data_buffers),
    WIRE_VALUE(inf_memory_entry, num_bytes),
    WIRE_VALUE(inf_memory_entry, constant_bytes),
    WIRE_VALUE(inf_memory_entry, weight_bytes),
    WIRE_VALUE(inf_memory_entry, buffer_bytes),
    WIRE_VALUE(inf_memory_entry, budget_bytes),
    WIRE_VALUE(inf_memory_entry, peak_bytes),
};

static const struct wire_field limit_fields[] = {
    WIRE_TEXT(inf_limit_entry, name),
    WIRE_VALUE(inf_limit_entry, value),
    WIRE_VALUE(inf_limit_entry, min),
    WIRE_VALUE(inf_limit_entry, max),
};

static const struct wire_field placement_request_fields[] = {
    WIRE_TEXT(inf_placement_request, name),      WIRE_TEXT(inf_placement_request, version),
    WIRE_TEXT(inf_placement_request, device),    WIRE_TEXT(inf_placement_request, policy),
    WIRE_TEXT(inf_placement_request, precision),
};

static const struct wire_field placement_reply_fields[] = {
    WIRE_TEXT(inf_placement_reply, name),
    WIRE_TEXT(inf_placement_reply, version),
    WIRE_TEXT(inf_placement_reply, device),
    WIRE_TEXT(inf_placement_reply, backend),
    WIRE_TEXT(inf_placement_reply, precision),
    WIRE_TEXT(inf_placement_reply, precision_reason),
    WIRE_TEXT(inf_placement_reply, policy),
    WIRE_TEXT(inf_placement_reply, source),
    WIRE_TEXT(inf_placement_reply, reason),
    WIRE_TEXT(inf_placement_reply, rule_device),
    WIRE_TEXT(inf_placement_reply, rule_reason),
    WIRE_VALUE(inf_placement_reply, macs),
    WIRE_VALUE(inf_placement_reply, const_bytes),
    WIRE_VALUE(inf_placement_reply, steps),
    WIRE_VALUE(inf_placement_reply, interpreted),
    WIRE_VALUE(inf_placement_reply, small_ops_webgl),
    WIRE_VALUE(inf_placement_reply, small_ops_webgpu),
    WIRE_VALUE(inf_placement_reply, shadow_checked),
    WIRE_VALUE(inf_placement_reply, shadow_drifted),
    WIRE_VALUE(inf_placement_reply, shadow_dropped),
    WIRE_VALUE(inf_placement_reply, recomputed),
    WIRE_TEXT(inf_placement_reply, shadow_alarm),
    WIRE_TEXT(inf_placement_reply, joined_steps),
};

static const struct wire_field candidate_fields[] = {
    WIRE_TEXT(inf_candidate_entry, device),        WIRE_TEXT(inf_candidate_entry, backend),
    WIRE_TEXT(inf_candidate_entry, kind),          WIRE_TEXT(inf_candidate_entry, precision),
    WIRE_TEXT(inf_candidate_entry, verdict),       WIRE_TEXT(inf_candidate_entry, reason),
    WIRE_VALUE(inf_candidate_entry, runs),         WIRE_VALUE(inf_candidate_entry, prior_ns),
    WIRE_VALUE(inf_candidate_entry, first_ns),     WIRE_VALUE(inf_candidate_entry, median_ns),
    WIRE_VALUE(inf_candidate_entry, memory_bytes), WIRE_VALUE(inf_candidate_entry, threads),
};

static const struct wire_field declined_fields[] = {
    WIRE_TEXT(inf_declined_entry, op),
    WIRE_VALUE(inf_declined_entry, nodes),
    WIRE_TEXT(inf_declined_entry, device),
    WIRE_TEXT(inf_declined_entry, reason),
};

static const struct wire_field flag_fields[] = {
    WIRE_TEXT(inf_flag_entry, name),   WIRE_TEXT(inf_flag_entry, type),
    WIRE_TEXT(inf_flag_entry, value),  WIRE_TEXT(inf_flag_entry, default_value),
    WIRE_TEXT(inf_flag_entry, origin), WIRE_TEXT(inf_flag_entry, stability),
    WIRE_VALUE(inf_flag_entry, live),  WIRE_TEXT(inf_flag_entry, allowed),
    WIRE_TEXT(inf_flag_entry, help),
};

TestSuite(message_control, .init = wire_round_open, .fini = wire_round_close);

Test(message_control, model_requests_go_round)
{
    static const enum inf_message_kind kinds[] = {
        INF_MESSAGE_MODEL_READY_REQUEST, INF_MESSAGE_MODEL_METADATA_REQUEST,
        INF_MESSAGE_MODEL_LOAD_REQUEST, INF_MESSAGE_MODEL_UNLOAD_REQUEST};
    for (size_t i = 0; i < 4; i++) {
        wire_round_go(kinds[i]);
        SAME_FIELDS(model, model_request_fields);
    }
}

Test(message_control, flags_go_round)
{
    static const enum inf_message_kind kinds[] = {INF_MESSAGE_LIVE_REPLY, INF_MESSAGE_READY_REPLY,
                                                  INF_MESSAGE_MODEL_READY_REPLY};
    for (size_t i = 0; i < 3; i++) {
        wire_round_go(kinds[i]);
        cr_assert(wire_round.got.flag.value);
        wire_round.sent.flag.value = false;
        wire_round_encode(kinds[i]);
        cr_assert_eq(wire_round.bytes.size, 0);
        wire_round_decode(kinds[i]);
        cr_assert_not(wire_round.got.flag.value);
    }
}

Test(message_control, model_metadata_goes_round)
{
    wire_round_go(INF_MESSAGE_MODEL_METADATA);
    SAME_TEXT(model_metadata.name);
    SAME_TEXT(model_metadata.version);
    SAME_TEXT(model_metadata.platform);
    cr_assert_eq(wire_round.got.model_metadata.input_count, 2);
    cr_assert_eq(wire_round.got.model_metadata.output_count, 1);
    wire_same_entry(&wire_round.got.model_metadata.inputs[0],
                    &wire_round.sent.model_metadata.inputs[0]);
    wire_same_entry(&wire_round.got.model_metadata.inputs[1],
                    &wire_round.sent.model_metadata.inputs[1]);
    wire_same_entry(&wire_round.got.model_metadata.outputs[0],
                    &wire_round.sent.model_metadata.outputs[0]);
}

Test(message_control, server_metadata_goes_round)
{
    wire_round_go(INF_MESSAGE_SERVER_METADATA);
    SAME_TEXT(server_metadata.name);
    SAME_TEXT(server_metadata.version);
    cr_assert_eq(wire_round.got.server_metadata.extension_count, 1);
    SAME_TEXT(server_metadata.extensions[0]);
}

Test(message_control, model_index_goes_round)
{
    wire_round_go(INF_MESSAGE_MODEL_INDEX);
    cr_assert_eq(wire_round.got.model_index.count, 2);
    for (int i = 0; i < 2; i++) {
        SAME_FIELDS(model_index.entries[i], model_index_fields);
    }
}

Test(message_control, device_index_goes_round)
{
    wire_round_go(INF_MESSAGE_DEVICE_INDEX);
    cr_assert_eq(wire_round.got.device_index.count, 3);
    for (int i = 0; i < 3; i++) {
        SAME_FIELDS(device_index.entries[i], device_fields);
    }
}

Test(message_control, load_progress_goes_round)
{
    wire_round_go(INF_MESSAGE_LOAD_PROGRESS);
    SAME_TEXT(load_progress.stage);
    SAME(load_progress.percent);
    cr_assert_eq(wire_round.got.load_progress.node_count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_FIELDS(load_progress.nodes[i], node_fields);
    }
}

Test(message_control, reload_reply_goes_round)
{
    wire_round_go(INF_MESSAGE_RELOAD_REPLY);
    SAME_TEXT(reload_reply.changed);
    SAME_TEXT(reload_reply.need_restart);
    SAME_TEXT(reload_reply.config_error);
    SAME(reload_reply.left_out);
    cr_assert_eq(wire_round.got.reload_reply.models.count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_TEXT(reload_reply.models.entries[i].name);
        SAME_TEXT(reload_reply.models.entries[i].state);
        SAME_TEXT(reload_reply.models.entries[i].reason);
    }
}

Test(message_control, server_status_goes_round)
{
    wire_round_go(INF_MESSAGE_SERVER_STATUS);
    SAME_FIELDS(server_status, server_status_fields);
}

Test(message_control, memory_info_goes_round)
{
    wire_round_go(INF_MESSAGE_MEMORY_INFO);
    SAME(memory_info.region_bytes);
    SAME(memory_info.resident_bytes);
    cr_assert_eq(wire_round.got.memory_info.count, 2);
    for (int i = 0; i < 2; i++) {
        SAME_FIELDS(memory_info.entries[i], memory_fields);
    }
    SAME(memory_info.session_bytes);
    SAME(memory_info.sessions);
}

Test(message_control, limits_and_credit_go_round)
{
    for (int kind = INF_MESSAGE_LIMITS_REQUEST; kind <= INF_MESSAGE_LIMITS_REPLY; kind++) {
        wire_round_go((enum inf_message_kind)kind);
        cr_assert_eq(wire_round.got.limit_list.count, 2);
        for (int i = 0; i < 2; i++) {
            SAME_FIELDS(limit_list.entries[i], limit_fields);
        }
    }
    wire_round_go(INF_MESSAGE_CREDIT);
    SAME(credit.requests);
    SAME(credit.bytes);
    wire_round_go(INF_MESSAGE_DATA);
    SAME(data.total_bytes);
}

Test(message_control, sessions_of_a_model_go_round)
{
    wire_round_go(INF_MESSAGE_SESSION_OPEN);
    wire_round.sent.session.state_count = 0;
    wire_round.sent.session.model_name = "silero_vad";
    wire_round.sent.session.model_version = "2";
    uint8_t buffer[256];
    size_t size = 0;
    cr_assert_eq(inf_message_encode(&wire_round.sent, INF_MESSAGE_SESSION_OPEN, buffer,
                                    sizeof buffer, &size, wire_round.scratch, NULL),
                 INF_OK);
    cr_assert_eq(inf_message_decode(&wire_round.got, INF_MESSAGE_SESSION_OPEN,
                                    (struct inf_span){buffer, size}, wire_round.scratch, NULL),
                 INF_OK);
    cr_assert_eq(wire_round.got.session.state_count, 0);
    SAME_TEXT(session.model_name);
    SAME_TEXT(session.model_version);
}

Test(message_control, sessions_go_round)
{
    wire_round_go(INF_MESSAGE_SESSION_OPEN);
    SAME(session.session_id);
    cr_assert_str_eq(wire_round.got.session.model_name, "");
    cr_assert_eq(wire_round.got.session.state_count, 3);
    for (int i = 0; i < 3; i++) {
        SAME_TEXT(session.states[i].output);
        SAME_TEXT(session.states[i].input);
        SAME(session.states[i].shaped);
        cr_assert(inf_shape_equal(&wire_round.got.session.states[i].shape,
                                  &wire_round.sent.session.states[i].shape));
    }
    wire_round_go(INF_MESSAGE_SESSION_CLOSE);
    SAME(session.session_id);
    wire_round_go(INF_MESSAGE_SESSION_REWIND);
    SAME(session.session_id);
    cr_assert_eq(wire_round.got.session.length, 1ull << 40);
    cr_assert(wire_round.got.session.release);
}

Test(message_control, placement_goes_round)
{
    wire_round_go(INF_MESSAGE_PLACEMENT_REQUEST);
    SAME_FIELDS(placement_request, placement_request_fields);
    wire_round_go(INF_MESSAGE_PLACEMENT_REPLY);
    SAME_FIELDS(placement_reply, placement_reply_fields);
    cr_assert_eq(wire_round.got.placement_reply.candidate_count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_FIELDS(placement_reply.candidates[i], candidate_fields);
    }
    cr_assert_eq(wire_round.got.placement_reply.declined_count, 1u);
    SAME_FIELDS(placement_reply.declined[0], declined_fields);
}

Test(message_control, metrics_go_round)
{
    wire_round_go(INF_MESSAGE_METRICS_REQUEST);
    SAME_TEXT(metrics_request.format);
    wire_round_go(INF_MESSAGE_METRICS_REPLY);
    SAME_TEXT(metrics_reply.media_type);
}

Test(message_control, lists_of_requests_and_clients_go_round)
{
    wire_round_go(INF_MESSAGE_REQUEST_LIST);
    SAME(request_list.left_out);
    cr_assert_eq(wire_round.got.request_list.count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_FIELDS(request_list.entries[i], request_entry_fields);
    }
    wire_round_go(INF_MESSAGE_CLIENT_LIST);
    SAME(client_list.left_out);
    cr_assert_eq(wire_round.got.client_list.count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_FIELDS(client_list.entries[i], client_entry_fields);
    }
    wire_round_go(INF_MESSAGE_CLIENT_TARGET);
    SAME(client_target.client_id);
    SAME(client_target.stream_id);
    wire_round_go(INF_MESSAGE_REPORT_REQUEST);
    SAME_TEXT(report_request.topic);
    SAME(report_request.after);
    SAME(report_request.wait);
}

// Fills `text`, which has room for `size` + 1 bytes, with `size` characters. Returns `text`.
static char *fill_text(char *text, size_t size)
{
    memset(text, 'x', size);
    text[size] = '\0';
    return text;
}

Test(message_control, the_longest_lists_of_requests_and_clients_fit_a_frame)
{
    static struct inf_request_entry requests[INF_ACTIVITY_ROWS];
    static struct inf_client_entry clients[INF_ACTIVITY_ROWS];
    static uint8_t bytes[INF_LIMIT_META_BYTES];
    char name[INF_LIMIT_MODEL_NAME + 1], text[68], method[25], device[32];
    fill_text(name, INF_LIMIT_MODEL_NAME);
    fill_text(text, 67);
    fill_text(method, 24);
    fill_text(device, 31);
    for (uint32_t i = 0; i < INF_ACTIVITY_ROWS; i++) {
        requests[i] = (struct inf_request_entry){
            UINT64_MAX, UINT64_MAX, UINT32_MAX, -1,         method,     name,      name,
            device,     "session",  text,       UINT64_MAX, UINT64_MAX, UINT32_MAX};
        clients[i] = (struct inf_client_entry){
            UINT64_MAX, UINT32_MAX, -1,         text,       "client",   UINT64_MAX, UINT64_MAX,
            UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    }
    struct inf_scratch *scratch;
    size_t size;
    cr_assert_eq(inf_scratch_create(&scratch, NULL), INF_OK);
    union inf_message message = {.request_list = {INF_ACTIVITY_ROWS, UINT32_MAX, requests}};
    cr_assert_eq(inf_message_encode(&message, INF_MESSAGE_REQUEST_LIST, bytes, sizeof bytes, &size,
                                    scratch, NULL),
                 INF_OK);
    struct inf_span meta = {bytes, size};
    cr_assert_eq(inf_message_decode(&message, INF_MESSAGE_REQUEST_LIST, meta, scratch, NULL),
                 INF_OK);
    cr_assert_str_eq(message.request_list.entries[INF_ACTIVITY_ROWS - 1].id, text);
    message.client_list = (struct inf_client_list){INF_ACTIVITY_ROWS, UINT32_MAX, clients};
    cr_assert_eq(inf_message_encode(&message, INF_MESSAGE_CLIENT_LIST, bytes, sizeof bytes, &size,
                                    scratch, NULL),
                 INF_OK);
    meta.size = size;
    cr_assert_eq(inf_message_decode(&message, INF_MESSAGE_CLIENT_LIST, meta, scratch, NULL),
                 INF_OK);
    inf_scratch_destroy(&scratch);
}

Test(message_control, environment_goes_round)
{
    wire_round_go(INF_MESSAGE_FLAG_SET);
    SAME_TEXT(flag_set.name);
    SAME_TEXT(flag_set.value);
    wire_round_go(INF_MESSAGE_ENVIRONMENT);
    cr_assert_eq(wire_round.got.environment.fact_count, 2u);
    for (int i = 0; i < 2; i++) {
        SAME_TEXT(environment.facts[i].name);
        SAME_TEXT(environment.facts[i].value);
    }
    cr_assert_eq(wire_round.got.environment.flag_count, 1u);
    SAME_FIELDS(environment.flags[0], flag_fields);
}
