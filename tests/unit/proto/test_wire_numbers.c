// SPDX-License-Identifier: Apache-2.0
// Compares the field numbers and types of the Open Inference Protocol, copied from
// open_inference_grpc.proto (for the model repository, from Triton's grpc_service.proto), with the
// code generated from inferd.proto.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "proto/wire/inferd.pb-c.h"

static const char *type_name(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
        return "int32";
    case PROTOBUF_C_TYPE_INT64:
        return "int64";
    case PROTOBUF_C_TYPE_UINT32:
        return "uint32";
    case PROTOBUF_C_TYPE_UINT64:
        return "uint64";
    case PROTOBUF_C_TYPE_FLOAT:
        return "float";
    case PROTOBUF_C_TYPE_DOUBLE:
        return "double";
    case PROTOBUF_C_TYPE_BOOL:
        return "bool";
    case PROTOBUF_C_TYPE_STRING:
        return "string";
    case PROTOBUF_C_TYPE_BYTES:
        return "bytes";
    case PROTOBUF_C_TYPE_MESSAGE:
        return ((const ProtobufCMessageDescriptor *)field->descriptor)->short_name;
    default:
        return "?";
    }
}

// Writes the fields whose numbers are in [first, last] as text: "string name=1; repeated int64
// shape=3; ".
static void describe_fields(const ProtobufCMessageDescriptor *descriptor, uint32_t first,
                            uint32_t last, char *text, size_t room)
{
    size_t size = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->id < first || field->id > last)
            continue;
        bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
        bool oneof = (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
        size += (size_t)snprintf(text + size, room - size, "%s%s %s=%u; ",
                                 repeated ? "repeated "
                                 : oneof  ? "oneof "
                                          : "",
                                 type_name(field), field->name, field->id);
    }
}

struct row {
    const ProtobufCMessageDescriptor *descriptor;
    const char *name;
    const char *fields;
};

static void check_rows(const struct row *rows, size_t count, uint32_t first, uint32_t last)
{
    for (size_t i = 0; i < count; i++) {
        char text[2048];
        describe_fields(rows[i].descriptor, first, last, text, sizeof text);
        cr_expect_str_eq(text, rows[i].fields, "%s:\n%s\nwanted\n%s", rows[i].name, text,
                         rows[i].fields);
        cr_expect_str_eq(rows[i].descriptor->short_name, strrchr(rows[i].name, '.') + 1);
    }
}

#define PARAMETER                                                                                  \
    "oneof bool bool_param=1; oneof int64 int64_param=2; oneof string string_param=3; "

Test(wire_numbers, are_those_of_the_open_inference_protocol)
{
    static const struct row rows[] = {
        {&inference__server_live_request__descriptor, "inference.ServerLiveRequest", ""},
        {&inference__server_live_response__descriptor, "inference.ServerLiveResponse",
         "bool live=1; "},
        {&inference__server_ready_request__descriptor, "inference.ServerReadyRequest", ""},
        {&inference__server_ready_response__descriptor, "inference.ServerReadyResponse",
         "bool ready=1; "},
        {&inference__model_ready_request__descriptor, "inference.ModelReadyRequest",
         "string name=1; string version=2; "},
        {&inference__model_ready_response__descriptor, "inference.ModelReadyResponse",
         "bool ready=1; "},
        {&inference__server_metadata_request__descriptor, "inference.ServerMetadataRequest", ""},
        {&inference__server_metadata_response__descriptor, "inference.ServerMetadataResponse",
         "string name=1; string version=2; repeated string extensions=3; "},
        {&inference__model_metadata_request__descriptor, "inference.ModelMetadataRequest",
         "string name=1; string version=2; "},
        {&inference__model_metadata_response__descriptor, "inference.ModelMetadataResponse",
         "string name=1; repeated string versions=2; string platform=3; "
         "repeated TensorMetadata inputs=4; repeated TensorMetadata outputs=5; "
         "repeated PropertiesEntry properties=6; "},
        {&inference__model_metadata_response__tensor_metadata__descriptor,
         "inference.ModelMetadataResponse.TensorMetadata",
         "string name=1; string datatype=2; repeated int64 shape=3; "},
        {&inference__model_metadata_response__properties_entry__descriptor,
         "inference.ModelMetadataResponse.PropertiesEntry", "string key=1; string value=2; "},
        {&inference__infer_parameter__descriptor, "inference.InferParameter",
         PARAMETER "oneof double double_param=4; oneof uint64 uint64_param=5; "},
        {&inference__infer_tensor_contents__descriptor, "inference.InferTensorContents",
         "repeated bool bool_contents=1; repeated int32 int_contents=2; "
         "repeated int64 int64_contents=3; repeated uint32 uint_contents=4; "
         "repeated uint64 uint64_contents=5; repeated float fp32_contents=6; "
         "repeated double fp64_contents=7; repeated bytes bytes_contents=8; "},
        {&inference__model_infer_request__descriptor, "inference.ModelInferRequest",
         "string model_name=1; string model_version=2; string id=3; "
         "repeated ParametersEntry parameters=4; repeated InferInputTensor inputs=5; "
         "repeated InferRequestedOutputTensor outputs=6; repeated bytes raw_input_contents=7; "},
        {&inference__model_infer_request__infer_input_tensor__descriptor,
         "inference.ModelInferRequest.InferInputTensor",
         "string name=1; string datatype=2; repeated int64 shape=3; "
         "repeated ParametersEntry parameters=4; InferTensorContents contents=5; "},
        {&inference__model_infer_request__infer_requested_output_tensor__descriptor,
         "inference.ModelInferRequest.InferRequestedOutputTensor",
         "string name=1; repeated ParametersEntry parameters=2; "},
        {&inference__model_infer_request__parameters_entry__descriptor,
         "inference.ModelInferRequest.ParametersEntry", "string key=1; InferParameter value=2; "},
        {&inference__model_infer_response__descriptor, "inference.ModelInferResponse",
         "string model_name=1; string model_version=2; string id=3; "
         "repeated ParametersEntry parameters=4; repeated InferOutputTensor outputs=5; "
         "repeated bytes raw_output_contents=6; "},
        {&inference__model_infer_response__infer_output_tensor__descriptor,
         "inference.ModelInferResponse.InferOutputTensor",
         "string name=1; string datatype=2; repeated int64 shape=3; "
         "repeated ParametersEntry parameters=4; InferTensorContents contents=5; "},
        {&inference__repository_index_request__descriptor, "inference.RepositoryIndexRequest",
         "string repository_name=1; bool ready=2; "},
        {&inference__repository_index_response__descriptor, "inference.RepositoryIndexResponse",
         "repeated ModelIndex models=1; "},
        {&inference__repository_index_response__model_index__descriptor,
         "inference.RepositoryIndexResponse.ModelIndex",
         "string name=1; string version=2; string state=3; string reason=4; "},
        {&inference__model_repository_parameter__descriptor, "inference.ModelRepositoryParameter",
         PARAMETER "oneof bytes bytes_param=4; "},
        {&inference__repository_model_load_request__descriptor,
         "inference.RepositoryModelLoadRequest",
         "string repository_name=1; string model_name=2; repeated ParametersEntry parameters=3; "},
        {&inference__repository_model_load_response__descriptor,
         "inference.RepositoryModelLoadResponse", ""},
        {&inference__repository_model_unload_request__descriptor,
         "inference.RepositoryModelUnloadRequest",
         "string repository_name=1; string model_name=2; repeated ParametersEntry parameters=3; "},
        {&inference__repository_model_unload_response__descriptor,
         "inference.RepositoryModelUnloadResponse", ""},
    };
    check_rows(rows, sizeof rows / sizeof rows[0], 1, 99);
}

Test(wire_numbers, of_our_own_in_the_protocols_messages_stay)
{
    static const struct row rows[] = {
        {&inference__model_metadata_response__tensor_metadata__descriptor,
         "inference.ModelMetadataResponse.TensorMetadata", "bool unranked=100; "},
        {&inference__model_infer_request__descriptor, "inference.ModelInferRequest",
         "uint64 timeout_ns=100; string device=101; "
         "uint32 priority=102; uint64 queue_timeout_ns=103; uint64 session_id=110; uint64 "
         "order_key=111; "
         "string mode=120; string against=121; double tolerance=122; "
         "string precision=123; string traceparent=124; string tracestate=125; "},
        {&inference__model_infer_request__infer_input_tensor__descriptor,
         "inference.ModelInferRequest.InferInputTensor",
         "Location location=100; string session_tensor=101; "},
        {&inference__model_infer_request__infer_requested_output_tensor__descriptor,
         "inference.ModelInferRequest.InferRequestedOutputTensor",
         "Location location=100; string session_tensor=101; "},
        {&inference__model_infer_response__descriptor, "inference.ModelInferResponse",
         "Timing timing=100; uint32 batch_size=101; string device=102; string precision=103; "
         "uint32 credit_return=104; uint32 flags=105; uint32 padded_to=106; "},
        {&inference__model_infer_response__infer_output_tensor__descriptor,
         "inference.ModelInferResponse.InferOutputTensor", "Location location=100; "},
        {&inference__repository_index_response__model_index__descriptor,
         "inference.RepositoryIndexResponse.ModelIndex",
         "string device=100; string platform=101; uint64 memory_bytes=102; uint64 requests=103; "
         "uint64 macs=104; string labels=105; "},
        {&inference__repository_model_load_request__descriptor,
         "inference.RepositoryModelLoadRequest",
         "string device=100; string path=101; string file=102; bool save=103; "},
        {&inference__repository_model_unload_request__descriptor,
         "inference.RepositoryModelUnloadRequest", "string version=100; bool delete_files=101; "},
    };
    check_rows(rows, sizeof rows / sizeof rows[0], 100, UINT32_MAX);
}

Test(wire_numbers, of_the_connections_messages_stay)
{
    static const struct row rows[] = {
        {&inference__location__descriptor, "inference.Location",
         "uint64 offset=1; uint64 length=2; uint64 region_id=3; "},
        {&inference__timing__descriptor, "inference.Timing",
         "uint64 queue_ns=1; uint64 input_ns=2; uint64 compute_ns=3; uint64 output_ns=4; "
         "uint64 core_ns=5; uint32 threads=6; "},
        {&inference__limits__descriptor, "inference.Limits",
         "uint32 meta_bytes=1; uint32 data_bytes=2; uint32 streams=3; uint32 regions=4; "
         "uint64 region_bytes=5; uint32 frame_fds=6; uint64 stream_bytes=7; "},
        {&inference__hello__descriptor, "inference.Hello",
         "uint32 major=1; uint32 minor=2; string client_name=3; string client_version=4; "
         "Limits limits=5; repeated string features=6; "},
        {&inference__hello_ack__descriptor, "inference.HelloAck",
         "uint32 major=1; uint32 minor=2; string server_name=3; string server_version=4; "
         "Limits limits=5; repeated string features=6; uint32 credit_requests=7; "
         "uint64 epoch_high=8; uint64 epoch_low=9; string role=10; string clock=11; uint64 "
         "credit_bytes=240; "},
        {&inference__mem_register__descriptor, "inference.MemRegister",
         "uint64 region_id=1; uint64 size=2; bool writable=3; "},
        {&inference__mem_registered__descriptor, "inference.MemRegistered",
         "uint64 region_id=1; uint64 size=2; "},
        {&inference__live_limit__descriptor, "inference.LiveLimit",
         "string name=1; uint64 value=2; uint64 min=3; uint64 max=4; "},
        {&inference__server_limits_request__descriptor, "inference.ServerLimitsRequest",
         "repeated LiveLimit limits=1; "},
        {&inference__server_limits_response__descriptor, "inference.ServerLimitsResponse",
         "repeated LiveLimit limits=1; "},
        {&inference__credit__descriptor, "inference.Credit", "uint32 requests=1; uint64 bytes=2; "},
        {&inference__data__descriptor, "inference.Data", "uint64 total_bytes=1; "},
        {&inference__mem_alloc__descriptor, "inference.MemAlloc",
         "uint64 region_id=1; uint64 size=2; "},
        {&inference__mem_unregister__descriptor, "inference.MemUnregister", "uint64 region_id=1; "},
        {&inference__mem_released__descriptor, "inference.MemReleased", "uint64 region_id=1; "},
        {&inference__goaway__descriptor, "inference.Goaway",
         "uint64 last_stream=1; string reason=2; uint64 drain_ns=3; "},
        {&inference__memory_info_response__descriptor, "inference.MemoryInfoResponse",
         "repeated Device devices=1; uint64 region_bytes=2; uint64 resident_bytes=3; "
         "uint64 session_bytes=10; uint32 sessions=11; "},
        {&inference__session_open_request__descriptor, "inference.SessionOpenRequest",
         "uint64 session_id=1; repeated State states=2; string model_name=240; "
         "string model_version=241; uint64 fork_of=242; uint32 max_length=243; "},
        {&inference__session_rewind_request__descriptor, "inference.SessionRewindRequest",
         "uint64 session_id=1; uint64 length=2; bool release=3; "},
        {&inference__session_open_request__state__descriptor, "inference.SessionOpenRequest.State",
         "string output=1; string input=2; repeated int64 shape=3; bool shaped=4; "},
        {&inference__session_close_request__descriptor, "inference.SessionCloseRequest",
         "uint64 session_id=1; "},
        {&inference__memory_info_response__device__descriptor,
         "inference.MemoryInfoResponse.Device",
         "string name=1; uint32 num_tensors=2; uint32 num_data_buffers=3; uint64 num_bytes=4; "
         "uint64 constant_bytes=5; uint64 weight_bytes=6; uint64 buffer_bytes=7; "
         "uint64 budget_bytes=8; uint64 peak_bytes=9; "},
        {&inference__model_placement_request__descriptor, "inference.ModelPlacementRequest",
         "string name=1; string version=2; string device=3; string policy=4; "
         "string precision=5; string mode=220; uint32 persist=221; "},
        {&inference__model_placement_response__descriptor, "inference.ModelPlacementResponse",
         "string name=1; string version=2; string device=3; string backend=4; "
         "string precision=5; string policy=6; string source=7; string reason=8; "
         "string rule_device=9; string rule_reason=10; uint64 macs=11; uint64 const_bytes=12; "
         "uint32 steps=13; uint32 interpreted=14; uint32 small_ops_webgl=15; "
         "uint32 small_ops_webgpu=16; repeated Candidate candidates=17; "
         "repeated Declined declined=18; string precision_reason=19; "
         "repeated Setting settings=200; uint64 shadow_checked=220; uint64 shadow_drifted=221; "
         "uint64 shadow_dropped=222; string shadow_alarm=223; uint64 recomputed=224; "
         "string joined_steps=225; "},
        {&inference__model_placement_response__setting__descriptor,
         "inference.ModelPlacementResponse.Setting",
         "string name=1; string value=2; string origin=3; string default_value=220; string "
         "allowed=221; "},
        {&inference__model_placement_response__candidate__descriptor,
         "inference.ModelPlacementResponse.Candidate",
         "string device=1; string backend=2; string kind=3; string precision=4; "
         "string verdict=5; string reason=6; uint32 runs=7; uint64 prior_ns=8; "
         "uint64 first_ns=9; uint64 median_ns=10; uint64 memory_bytes=11; "
         "uint32 threads=220; "},
        {&inference__model_placement_response__declined__descriptor,
         "inference.ModelPlacementResponse.Declined",
         "string op=1; uint32 nodes=2; string device=3; string reason=4; "},
        {&inference__model_precompile_request__descriptor, "inference.ModelPrecompileRequest",
         "string name=1; string version=2; string device=3; string shapes=4; "},
        {&inference__environment_response__descriptor, "inference.EnvironmentResponse",
         "repeated Fact facts=1; repeated Flag flags=2; "},
        {&inference__environment_response__fact__descriptor, "inference.EnvironmentResponse.Fact",
         "string name=1; string value=2; "},
        {&inference__environment_response__flag__descriptor, "inference.EnvironmentResponse.Flag",
         "string name=1; string type=2; string value=3; string default_value=4; string origin=5; "
         "string stability=6; bool live=7; string allowed=8; string help=9; "},
        {&inference__metrics_request__descriptor, "inference.MetricsRequest", "string format=1; "},
        {&inference__metrics_response__descriptor, "inference.MetricsResponse",
         "string media_type=1; "},
        {&inference__request_list_response__descriptor, "inference.RequestListResponse",
         "repeated Request requests=1; uint32 left_out=2; "},
        {&inference__request_list_response__request__descriptor,
         "inference.RequestListResponse.Request",
         "uint64 client_id=1; uint64 stream_id=2; uint32 uid=3; int32 pid=4; string method=5; "
         "string model=6; string version=7; string device=8; string phase=9; uint64 age_ns=10; "
         "uint64 data_bytes=11; uint32 rows=12; string id=13; "},
        {&inference__client_list_response__descriptor, "inference.ClientListResponse",
         "repeated Client clients=1; uint32 left_out=2; "},
        {&inference__client_list_response__client__descriptor,
         "inference.ClientListResponse.Client",
         "uint64 client_id=1; uint32 uid=2; int32 pid=3; string name=4; string role=5; "
         "uint64 age_ns=6; uint64 requests=7; uint32 in_flight=8; uint64 data_bytes=9; "
         "uint64 unread_bytes=10; uint32 regions=11; uint64 region_bytes=12; uint32 sessions=13; "},
        {&inference__client_target__descriptor, "inference.ClientTarget",
         "uint64 client_id=1; uint64 stream_id=2; "},
        {&inference__report_request__descriptor, "inference.ReportRequest",
         "string topic=1; uint64 after=2; bool wait=3; "},
        {&inference__flag_set_request__descriptor, "inference.FlagSetRequest",
         "string name=1; string value=2; uint32 persist=100; "},
        {&inference__repository_reload_response__descriptor, "inference.RepositoryReloadResponse",
         "repeated ModelIndex models=1; uint32 left_out=2; string changed_settings=3; "
         "string restart_settings=4; string config_error=5; "},
        {&inference__load_progress__descriptor, "inference.LoadProgress",
         "string stage=1; uint32 percent=2; repeated NodeReport nodes=100; "},
        {&inference__node_report__descriptor, "inference.NodeReport",
         "string name=1; string op=2; string kernel=3; string device=4; string shape=5; "
         "string inputs=6; uint64 start_ns=7; uint64 time_ns=8; uint64 macs=9; uint64 bytes=10; "
         "uint64 nan_count=11; uint64 inf_count=12; double min=13; double max=14; "
         "double max_abs=15; double max_rel=16; string verdict=17; uint32 threads=18; "
         "double dot_share=19; "},
        {&inference__status__descriptor, "inference.Status",
         "int32 code=1; string message=2; uint32 reason=100; uint32 retry_after_ms=101; "
         "string model=102; string version=103; string tensor=104; string expected=105; "
         "string actual=106; string phase=107; "},
    };
    check_rows(rows, sizeof rows / sizeof rows[0], 1, UINT32_MAX);
}
