// SPDX-License-Identifier: Apache-2.0
// Questions about the daemon and orders to it, there and back.
#include <criterion/criterion.h>

#include "tests/support/wire_round.h"

TestSuite(message_control, .init = wire_round_open, .fini = wire_round_close);

Test(message_control, model_requests_go_round)
{
    static const enum inf_message_kind kinds[] = {
        INF_MESSAGE_MODEL_READY_REQUEST, INF_MESSAGE_MODEL_METADATA_REQUEST,
        INF_MESSAGE_MODEL_LOAD_REQUEST, INF_MESSAGE_MODEL_UNLOAD_REQUEST};
    for (size_t i = 0; i < 4; i++) {
        wire_round_go(kinds[i]);
        SAME_TEXT(model.name);
        SAME_TEXT(model.version);
        SAME_TEXT(model.device);
        SAME_TEXT(model.path);
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

Test(message_control, device_index_goes_round)
{
    wire_round_go(INF_MESSAGE_DEVICE_INDEX);
    cr_assert_eq(wire_round.got.device_index.count, 3);
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

Test(message_control, load_progress_goes_round)
{
    wire_round_go(INF_MESSAGE_LOAD_PROGRESS);
    SAME_TEXT(load_progress.stage);
    SAME(load_progress.percent);
    cr_assert_eq(wire_round.got.load_progress.node_count, 2u);
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

Test(message_control, server_status_goes_round)
{
    wire_round_go(INF_MESSAGE_SERVER_STATUS);
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

Test(message_control, memory_info_goes_round)
{
    wire_round_go(INF_MESSAGE_MEMORY_INFO);
    SAME(memory_info.region_bytes);
    SAME(memory_info.resident_bytes);
    cr_assert_eq(wire_round.got.memory_info.count, 2);
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

Test(message_control, limits_and_credit_go_round)
{
    for (int kind = INF_MESSAGE_LIMITS_REQUEST; kind <= INF_MESSAGE_LIMITS_REPLY; kind++) {
        wire_round_go((enum inf_message_kind)kind);
        cr_assert_eq(wire_round.got.limit_list.count, 2);
        for (int i = 0; i < 2; i++) {
            SAME_TEXT(limit_list.entries[i].name);
            SAME(limit_list.entries[i].value);
            SAME(limit_list.entries[i].least);
            SAME(limit_list.entries[i].most);
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
}

Test(message_control, placement_goes_round)
{
    wire_round_go(INF_MESSAGE_PLACEMENT_REQUEST);
    SAME_TEXT(placement_request.name);
    SAME_TEXT(placement_request.version);
    SAME_TEXT(placement_request.device);
    SAME_TEXT(placement_request.policy);
    SAME_TEXT(placement_request.precision);
    wire_round_go(INF_MESSAGE_PLACEMENT_REPLY);
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
    cr_assert_eq(wire_round.got.placement_reply.candidate_count, 2u);
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
    cr_assert_eq(wire_round.got.placement_reply.declined_count, 1u);
    SAME_TEXT(placement_reply.declined[0].op);
    SAME(placement_reply.declined[0].nodes);
    SAME_TEXT(placement_reply.declined[0].device);
    SAME_TEXT(placement_reply.declined[0].reason);
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
