// SPDX-License-Identifier: Apache-2.0
// One message of each kind with every field set, for tests of encoding and decoding.
#include "tests/support/wire/wire_samples.h"

#include <string.h>

static const struct inf_limits_message limits = {65536,      1048576, 1024,    256,
                                                 4ull << 30, 16,      64 << 20};

static void sample_request(struct inf_infer_request *request)
{
    request->model_name = "blazeface";
    request->model_version = "3";
    request->id = "frame-17";
    request->device = "cpu";
    request->timeout_ns = 5000000000;
    request->queue_timeout_ns = 40000000;
    request->priority = INF_WIRE_PRIORITY_LOW;
    request->session_id = UINT64_MAX;
    request->order_key = UINT64_MAX - 1;
    request->mode = "diff";
    request->against = "ref";
    request->tolerance = 0.125;
    request->precision = "fp16";
    request->traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    request->tracestate = "congo=t61rcWkgMzE";
    request->input_count = 3;
    request->inputs[0] = (struct inf_tensor_entry){
        .name = "images:0", .dtype = INF_DTYPE_F32, .shape = INF_SHAPE(1, 3, 5, 7)};
    request->inputs[1] = (struct inf_tensor_entry){
        .name = "scale",
        .dtype = INF_DTYPE_I64,
        .location = {.present = true, .region_id = 4, .offset = 4096, .length = 8}};
    request->inputs[2] = (struct inf_tensor_entry){.name = "h", .session_tensor = "hidden"};
    request->output_count = 3;
    request->outputs[2] = (struct inf_tensor_entry){.name = "hn", .session_tensor = "hidden"};
    request->outputs[0] = (struct inf_tensor_entry){
        .name = "boxes",
        .location = {.present = true, .region_id = 1ull << 63, .offset = 1, .length = 1ull << 40}};
    request->outputs[1] = (struct inf_tensor_entry){.name = "scores"};
}

static void sample_reply(struct inf_infer_reply *reply)
{
    reply->model_name = "blazeface";
    reply->model_version = "3";
    reply->id = "frame-17";
    reply->output_count = 2;
    reply->outputs[0] = (struct inf_tensor_entry){
        .name = "boxes",
        .dtype = INF_DTYPE_U8,
        .shape = INF_SHAPE(1, 1, 1, 1, 1, 1, 2, 2147483647),
        .location = {.present = true, .offset = 64, .length = 4294967294}};
    reply->outputs[1] = (struct inf_tensor_entry){
        .name = "none", .dtype = INF_DTYPE_BOOL, .shape = INF_SHAPE(0, 4)};
    reply->timing = (struct inf_timing){1, 2, UINT64_MAX, 4, 5, UINT32_MAX};
    reply->batch_size = 3;
    reply->device = "vulkan0";
    reply->precision = "fp16";
    reply->credit_return = UINT32_MAX;
    reply->flags = INF_INFER_SPLIT | INF_INFER_MOVED;
    reply->padded_to = 4;
}

static void sample_metadata(struct inf_model_metadata *metadata)
{
    metadata->name = "blazeface";
    metadata->version = "3";
    metadata->platform = "tensorflow_tfjs";
    metadata->input_count = 2;
    metadata->inputs[0] = (struct inf_tensor_entry){
        .name = "images:0", .dtype = INF_DTYPE_F32, .shape = INF_SHAPE(INF_DIM_UNKNOWN, 128)};
    metadata->inputs[1] = (struct inf_tensor_entry){
        .name = "any", .dtype = INF_DTYPE_U8, .shape = {.rank = INF_RANK_UNKNOWN}};
    metadata->output_count = 1;
    metadata->outputs[0] = (struct inf_tensor_entry){.name = "score", .dtype = INF_DTYPE_F64};
}

static void sample_hello(struct inf_hello *hello)
{
    hello->major = 1;
    hello->minor = 7;
    hello->client_name = "inferctl";
    hello->client_version = "0.1.0";
    hello->limits = limits;
    hello->feature_count = 2;
    hello->features[0] = "inferd.memfd";
    hello->features[1] = "";
}

static void sample_hello_ack(struct inf_hello_ack *ack)
{
    ack->major = 1;
    ack->server_name = "inferd";
    ack->server_version = "0.1.0";
    ack->limits = limits;
    ack->feature_count = INF_HELLO_FEATURES;
    for (int i = 0; i < INF_HELLO_FEATURES; i++)
        ack->features[i] = "inferd.cancel";
    ack->credit_requests = 64;
    ack->credit_bytes = 5ull << 32;
    ack->epoch[0] = 0x0123456789abcdef;
    ack->epoch[1] = UINT64_MAX;
    ack->role = "admin";
    ack->clock = "CLOCK_MONOTONIC";
}

static void sample_status(struct inf_status *status)
{
    *status = (struct inf_status){
        .code = INF_UNAVAILABLE,
        .reason = INF_REASON_LOADING,
        .message = "model 'x' is loading",
        .retry_after_ms = 250,
        .model = "x",
        .version = "1",
        .tensor = "in",
        .expected = "[1,2]",
        .actual = "[1,3]",
        .phase = "load",
    };
}

static void sample_models(struct inf_model_index *index)
{
    static const struct inf_model_index_entry entries[] = {
        {"a", "1", "READY", "", "cpu", "onnx_onnxv1", "stable, canary", 1, 2, 3},
        {"b", "12", "UNAVAILABLE", "no such file", "", "", "", UINT64_MAX, 0, 0},
    };
    index->count = 2;
    index->entries = (struct inf_model_index_entry *)entries;
}

static void sample_reload(struct inf_reload_reply *reply)
{
    static struct inf_model_index_entry entries[] = {
        {.name = "a", .state = "refused", .reason = "it is in quarantine"},
        {.name = "b", .state = "unchanged", .reason = ""}};
    *reply = (struct inf_reload_reply){.models = {.count = 2, .entries = entries},
                                       .left_out = 3,
                                       .changed = "slow_ms",
                                       .need_restart = "cpu_slots,device",
                                       .config_error = "inferd.conf:2"};
}

static void sample_devices(struct inf_device_index *index)
{
    static const struct inf_device_entry entries[] = {
        {"cpu", "cpu", "cpu", "2 cores", "ok", "fp32,bf16", -200, 1, 2, 3, 4, 5, 6, 7},
        {"ref", "ref", "host", "", "lost", "fp32", INT32_MAX, 0, 0, 0, 0, 0, 0, 0},
        {"", "", "", "", "", "", 0, 0, 0, 0, 0, 0, 0, 0},
    };
    index->count = 3;
    index->entries = (struct inf_device_entry *)entries;
}

static void sample_placement(struct inf_placement_reply *reply)
{
    static const struct inf_candidate_entry candidates[] = {
        {"cpu", "cpu", "cpu", "fp32", "chosen", "", 5, 4, 1, 2, 3, UINT64_MAX},
        {"ref", "ref", "host", "fp32", "slower", "why not", 0, 0, 0, 0, 0, 0},
    };
    static const struct inf_declined_entry declined[] = {{"nms", 2, "ref", "not built"}};
    static const struct inf_setting_entry settings[] = {
        {"device", "cpu", "model", "auto", "a name"}, {"policy", "", "default", "", ""}};
    *reply = (struct inf_placement_reply){
        .name = "blazeface",
        .version = "3",
        .device = "cpu",
        .backend = "cpu",
        .precision = "fp32",
        .precision_reason = "it was wanted",
        .policy = "latency",
        .source = "race",
        .reason = "the fastest",
        .rule_device = "vulkan0",
        .rule_reason = "not tiny",
        .macs = 1,
        .const_bytes = UINT64_MAX,
        .steps = 2,
        .interpreted = 3,
        .small_ops_webgl = 4,
        .small_ops_webgpu = 5,
        .shadow_checked = 6,
        .shadow_drifted = 7,
        .shadow_dropped = 8,
        .shadow_alarm = "it differs",
        .joined_steps = "up to 4",
        .recomputed = 9,
        .candidate_count = 2,
        .declined_count = 1,
        .candidates = (struct inf_candidate_entry *)candidates,
        .declined = (struct inf_declined_entry *)declined,
        .setting_count = 2,
        .settings = (struct inf_setting_entry *)settings,
    };
}

static void sample_progress(struct inf_load_progress *progress)
{
    static const struct inf_node_entry nodes[] = {
        {"conv1", "conv2d", "1x1", "cpu", "FP32 [1,2]", "FP32 [1]", "first", 1, 2, 3, 4, 5, 6, 7,
         -1.5, 2.5, 0.5, 0.25},
        {"", "", "", "", "", "", "", 0, 0, 0, 0, 0, UINT64_MAX, 0, 0, 0, 0, 0}};
    *progress = (struct inf_load_progress){"warm-up", 100, 2, (struct inf_node_entry *)nodes};
}

static void sample_environment(struct inf_environment_reply *reply)
{
    static const struct inf_fact_entry facts[] = {{"cpu.isa", "avx2"}, {"", ""}};
    static const struct inf_flag_entry flags[] = {
        {"race", "enum", "never", "auto", "file", "public", true, "auto or never", "whether"}};
    *reply = (struct inf_environment_reply){.fact_count = 2,
                                            .flag_count = 1,
                                            .facts = (struct inf_fact_entry *)facts,
                                            .flags = (struct inf_flag_entry *)flags};
}

static void sample_requests(struct inf_request_list *list)
{
    static const struct inf_request_entry entries[] = {
        {1, 2, 1000, 4711, "ModelInfer", "blazeface", "3", "cpu", "queue", "frame-17", 5, 6, 7},
        {UINT64_MAX, UINT64_MAX, UINT32_MAX, INT32_MIN, "", "", "", "", "", "", UINT64_MAX,
         UINT64_MAX, UINT32_MAX}};
    *list = (struct inf_request_list){
        .count = 2, .left_out = 9, .entries = (struct inf_request_entry *)entries};
}

static void sample_clients(struct inf_client_list *list)
{
    static const struct inf_client_entry entries[] = {
        {1, 1000, 4711, "camera", "client", 2, 3, 4, 5, 6, 7, 8, 9},
        {UINT64_MAX, UINT32_MAX, -1, "", "", UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
         UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    *list = (struct inf_client_list){
        .count = 2, .left_out = 9, .entries = (struct inf_client_entry *)entries};
}

static void sample_memory(struct inf_memory_info *info)
{
    static const struct inf_memory_entry entries[] = {
        {"cpu", 1, 2, 3, 4, 5, 6, 7, 8},
        {"", UINT32_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, 0, UINT64_MAX},
    };
    *info = (struct inf_memory_info){
        .count = 2,
        .entries = (struct inf_memory_entry *)entries,
        .region_bytes = 9,
        .resident_bytes = 10,
        .session_bytes = UINT64_MAX,
        .sessions = 12,
    };
}

static void sample_session(struct inf_session_message *session, enum inf_message_kind kind)
{
    session->session_id = 1ull << 63;
    if (kind == INF_MESSAGE_SESSION_REWIND) {
        session->length = 1ull << 40;
        session->release = true;
    }
    if (kind != INF_MESSAGE_SESSION_OPEN)
        return;
    session->state_count = 3;
    session->states[0] = (struct inf_session_state){.output = "stateN", .input = "state"};
    session->states[1] = (struct inf_session_state){
        .output = "hn", .input = "h", .shaped = true, .shape = INF_SHAPE(2, 1, 128)};
    session->states[2] = (struct inf_session_state){.output = "sum", .input = "s", .shaped = true};
}

static void sample_server(struct inf_server_status *status)
{
    *status = (struct inf_server_status){
        .version = "0.1.0",
        .state = "draining",
        .uptime_ns = 1,
        .connections = 2,
        .requests_in_flight = 3,
        .regions = 4,
        .models_ready = 5,
        .connections_total = 6,
        .requests_accepted = 7,
        .requests_ok = 8,
        .requests_failed = 9,
        .region_bytes = 10,
        .resident_bytes = 11,
        .log_lines_dropped = 12,
        .answers_checked = 13,
        .answers_drifted = 14,
        .answers_unchecked = UINT64_MAX,
        .models_demoted = 16,
    };
}

static void sample_server_metadata(struct inf_server_metadata *metadata)
{
    metadata->name = "inferd";
    metadata->version = "0.1.0";
    metadata->extension_count = 1;
    metadata->extensions[0] = "model_repository";
}

static void sample_region(struct inf_region_message *region, enum inf_message_kind kind)
{
    region->region_id = 0x8000000000000001;
    if (kind != INF_MESSAGE_REGION_UNREGISTER && kind != INF_MESSAGE_REGION_RELEASED)
        region->size = 1u << 20;
    region->writable = kind == INF_MESSAGE_REGION_REGISTER || kind == INF_MESSAGE_REGION_ALLOC;
}

static void sample_model(struct inf_model_request *model, enum inf_message_kind kind)
{
    bool load = kind == INF_MESSAGE_MODEL_LOAD_REQUEST;
    *model = (struct inf_model_request){
        .name = "resnet-50_v1.5",
        .version = load ? "" : "stable",
        .device = load ? "cpu" : "",
        .path = load ? "/srv/models/resnet" : "",
        .file = load ? "model.onnx" : "",
        .save = load,
        .delete_files = kind == INF_MESSAGE_MODEL_UNLOAD_REQUEST,
    };
}

static void sample_limits(struct inf_limit_list *list)
{
    list->count = 2;
    list->entries[0] = (struct inf_limit_entry){"connections_max", 5, 1, UINT64_MAX};
    list->entries[1] = (struct inf_limit_entry){"queue_bytes_max", UINT64_MAX, 0, 0};
}

void wire_sample(union inf_message *message, enum inf_message_kind kind)
{
    memset(message, 0, sizeof *message);
    switch (kind) {
    case INF_MESSAGE_EMPTY:
    case INF_MESSAGE_KIND_COUNT:
        break;
    case INF_MESSAGE_HELLO:
        sample_hello(&message->hello);
        break;
    case INF_MESSAGE_HELLO_ACK:
        sample_hello_ack(&message->hello_ack);
        break;
    case INF_MESSAGE_INFER_REQUEST:
        sample_request(&message->infer_request);
        break;
    case INF_MESSAGE_INFER_REPLY:
        sample_reply(&message->infer_reply);
        break;
    case INF_MESSAGE_STATUS:
        sample_status(&message->status);
        break;
    case INF_MESSAGE_REGION_REGISTER:
    case INF_MESSAGE_REGION_REGISTERED:
    case INF_MESSAGE_REGION_UNREGISTER:
    case INF_MESSAGE_REGION_RELEASED:
    case INF_MESSAGE_REGION_ALLOC:
        sample_region(&message->region, kind);
        break;
    case INF_MESSAGE_GOAWAY:
        message->goaway = (struct inf_goaway){99, "draining", 5000000000};
        break;
    case INF_MESSAGE_MODEL_READY_REQUEST:
    case INF_MESSAGE_MODEL_METADATA_REQUEST:
    case INF_MESSAGE_MODEL_LOAD_REQUEST:
    case INF_MESSAGE_MODEL_UNLOAD_REQUEST:
        sample_model(&message->model, kind);
        break;
    case INF_MESSAGE_LIVE_REPLY:
    case INF_MESSAGE_READY_REPLY:
    case INF_MESSAGE_MODEL_READY_REPLY:
        message->flag.value = true;
        break;
    case INF_MESSAGE_MODEL_METADATA:
        sample_metadata(&message->model_metadata);
        break;
    case INF_MESSAGE_SERVER_METADATA:
        sample_server_metadata(&message->server_metadata);
        break;
    case INF_MESSAGE_MODEL_INDEX:
        sample_models(&message->model_index);
        break;
    case INF_MESSAGE_LOAD_PROGRESS:
        sample_progress(&message->load_progress);
        break;
    case INF_MESSAGE_RELOAD_REPLY:
        sample_reload(&message->reload_reply);
        break;
    case INF_MESSAGE_DEVICE_INDEX:
        sample_devices(&message->device_index);
        break;
    case INF_MESSAGE_SERVER_STATUS:
        sample_server(&message->server_status);
        break;
    case INF_MESSAGE_MEMORY_INFO:
        sample_memory(&message->memory_info);
        break;
    case INF_MESSAGE_SESSION_OPEN:
    case INF_MESSAGE_SESSION_CLOSE:
    case INF_MESSAGE_SESSION_REWIND:
        sample_session(&message->session, kind);
        break;
    case INF_MESSAGE_LIMITS_REQUEST:
    case INF_MESSAGE_LIMITS_REPLY:
        sample_limits(&message->limit_list);
        break;
    case INF_MESSAGE_CREDIT:
        message->credit = (struct inf_credit){.requests = UINT32_MAX, .bytes = UINT64_MAX};
        break;
    case INF_MESSAGE_DATA:
        message->data.total_bytes = 1ull << 40;
        break;
    case INF_MESSAGE_PLACEMENT_REQUEST:
        message->placement_request =
            (struct inf_placement_request){"blazeface", "3", "vulkan0", "stability", "fp32"};
        break;
    case INF_MESSAGE_PRECOMPILE:
        message->precompile =
            (struct inf_precompile_message){"blazeface", "3", "vulkan0", "x=1x2; x=3x4"};
        break;
    case INF_MESSAGE_PLACEMENT_REPLY:
        sample_placement(&message->placement_reply);
        break;
    case INF_MESSAGE_METRICS_REQUEST:
        message->metrics_request = (struct inf_metrics_request){"openmetrics"};
        break;
    case INF_MESSAGE_METRICS_REPLY:
        message->metrics_reply = (struct inf_metrics_reply){.media_type = "application/json"};
        break;
    case INF_MESSAGE_REQUEST_LIST:
        sample_requests(&message->request_list);
        break;
    case INF_MESSAGE_CLIENT_LIST:
        sample_clients(&message->client_list);
        break;
    case INF_MESSAGE_CLIENT_TARGET:
        message->client_target = (struct inf_client_target){UINT64_MAX, 1ull << 40};
        break;
    case INF_MESSAGE_REPORT_REQUEST:
        message->report_request = (struct inf_report_request){"slow", UINT64_MAX, true};
        break;
    case INF_MESSAGE_FLAG_SET:
        message->flag_set = (struct inf_flag_set_request){"race", "never"};
        break;
    case INF_MESSAGE_ENVIRONMENT:
        sample_environment(&message->environment);
        break;
    }
}
