// SPDX-License-Identifier: Apache-2.0
// Inference through a running daemon, and how bad requests are answered.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/daemon/fixture.h"
#include "tests/support/models/tfjs_writer.h"

static struct inf_fixture fixture;
static struct inf_raw raw;

static void start_server(void)
{
    inf_fixture_start(&fixture, NULL);
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_infer, .init = start_server, .fini = stop_server, .timeout = 120);

// Two rows of input a, padding to 64 bytes, and two rows of input b.
static const float ab[32] = {1, 2, 3, 4, 5, 6, 7, 8, [16] = 10, 20, 30, 40, 50, 60, 70, 80};
#define AB_BYTES (24 * sizeof(float))

static struct inf_span ab_data(void)
{
    return (struct inf_span){(const uint8_t *)ab, AB_BYTES};
}

// Sends a request for the model `add` with the data `ab`. Expects this error, and that the error
// names the wrong tensor.
static void check_refused(const union inf_message *message, enum inf_code code,
                          enum inf_reason reason, const char *tensor)
{
    inf_raw_call(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, message, ab_data());
    cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL | INF_FRAME_FLAG_ERROR,
                 "accepted, wanted %s", inf_reason_name(reason));
    inf_raw_check_failure(&raw, code, reason);
    cr_assert_str_eq(raw.message.status.tensor, tensor, "%s", raw.message.status.message);
}

// Checks that the connection still works after a refused request.
static void check_still_serves(void)
{
    union inf_message message;
    inf_add_request(&message, 2);
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, ab_data());
    inf_raw_expect_infer(&raw, stream);
}

Test(serving_infer, adds_and_reports_times)
{
    union inf_message message;
    inf_add_request(&message, 2);
    message.infer_request.id = "my id";
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, ab_data());
    inf_raw_expect_infer(&raw, stream);
    const struct inf_infer_reply *reply = &raw.message.infer_reply;
    cr_assert_str_eq(reply->model_name, "add");
    cr_assert_str_eq(reply->model_version, "1");
    cr_assert_str_eq(reply->id, "my id");
    cr_assert_str_eq(reply->precision, "fp32");
    cr_assert_gt(strlen(reply->device), 0);
    // batch_size is 1 if the request ran without batching, and 2 if its two rows ran as a batch.
    cr_assert(reply->batch_size == 1 || reply->batch_size == 2);
    cr_assert_eq(reply->credit_return, 1);
    cr_assert_gt(reply->timing.queue_ns, 0);
    cr_assert_gt(reply->timing.compute_ns, 0);
    cr_assert_lt(reply->timing.compute_ns, 1000000000);
    cr_assert_eq(reply->output_count, 1);
    cr_assert_str_eq(reply->outputs[0].name, "y");
    cr_assert_eq(reply->outputs[0].dtype, INF_DTYPE_F32);
    cr_assert(inf_shape_equal(&reply->outputs[0].shape, &INF_SHAPE(2, 4)));
    cr_assert_eq(reply->outputs[0].location.length, 8 * sizeof(float));
    const float *y = (const float *)(raw.frame.data + reply->outputs[0].location.offset);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(y[i], 11.0f * (float)(i + 1));
}

Test(serving_infer, takes_inputs_in_any_order_and_a_pinned_device)
{
    union inf_message message;
    inf_add_request(&message, 2);
    struct inf_infer_request *request = &message.infer_request;
    struct inf_tensor_entry first = request->inputs[0];
    request->inputs[0] = request->inputs[1];
    request->inputs[1] = first;
    request->device = "ref";
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, ab_data());
    inf_raw_expect_infer(&raw, stream);
    cr_assert_str_eq(raw.message.infer_reply.device, "ref");
    const float *y = (const float *)raw.frame.data;
    cr_assert_eq(y[7], 88.0f);
}

Test(serving_infer, computes_a_convolution)
{
    // Set one pixel of x at a time. The comment at the top of tfjs_writer says which y the model
    // computes for it.
    static float x[8 * 8 * 3];
    for (int i = 0; i < 8 * 8 * 3; i++)
        x[i] = (float)(i % 7) - 3.0f;
    union inf_message message = {
        .infer_request = {.model_name = "conv",
                          .input_count = 1,
                          .inputs = {{.name = "x",
                                      .dtype = INF_DTYPE_F32,
                                      .shape = INF_SHAPE(1, 8, 8, 3),
                                      .location = {.present = true, .length = sizeof x}}}}};
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){(const uint8_t *)x, sizeof x});
    inf_raw_expect_infer(&raw, stream);
    cr_assert(inf_shape_equal(&raw.message.infer_reply.outputs[0].shape, &INF_SHAPE(1, 2, 2, 4)));
    const float *y = (const float *)raw.frame.data;
    const float bias[] = {0, 0.5f, -1, 2};
    for (int p = 0; p < 2; p++)
        for (int q = 0; q < 2; q++)
            for (int k = 0; k < 4; k++) {
                float wanted = 0;
                for (int i = 2 * p; i < 2 * p + 2; i++)
                    for (int j = 2 * q; j < 2 * q + 2; j++) {
                        float one = (float)(k + 1) * x[(2 * i * 8 + 2 * j) * 3 + k % 3] + bias[k];
                        wanted = one > wanted ? one : wanted;
                    }
                cr_assert_float_eq(y[(p * 2 + q) * 4 + k], wanted, 1e-5);
            }
}

Test(serving_infer, takes_names_with_and_without_the_number_of_the_first_output)
{
    union inf_message message;
    struct inf_infer_request *request = &message.infer_request;

    inf_add_request(&message, 2);
    request->inputs[1].name = "b:0";
    request->output_count = 1;
    request->outputs[0] = (struct inf_tensor_entry){.name = "y:0"};
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, ab_data());
    inf_raw_expect_infer(&raw, stream);
    cr_assert_str_eq(raw.message.infer_reply.outputs[0].name, "y");

    inf_add_request(&message, 2);
    request->inputs[1].name = "b:1";
    check_refused(&message, INF_INVALID, INF_REASON_TENSOR_UNKNOWN, "b:1");

    // The request names the same tensor twice, once under each of its two names.
    inf_add_request(&message, 2);
    request->inputs[1].name = "a:0";
    check_refused(&message, INF_INVALID, INF_REASON_BAD_PARAMETER, "a:0");

    inf_add_request(&message, 2);
    request->output_count = 2;
    request->outputs[0] = (struct inf_tensor_entry){.name = "y"};
    request->outputs[1] = (struct inf_tensor_entry){.name = "y:0"};
    check_refused(&message, INF_INVALID, INF_REASON_BAD_PARAMETER, "y:0");
}

Test(serving_infer, refuses_what_does_not_fit_the_model)
{
    union inf_message message;
    struct inf_infer_request *request = &message.infer_request;

    inf_add_request(&message, 2);
    request->inputs[0].dtype = INF_DTYPE_I32;
    check_refused(&message, INF_INVALID, INF_REASON_DTYPE_MISMATCH, "a");
    cr_assert_str_eq(raw.message.status.expected, "FP32");
    cr_assert_str_eq(raw.message.status.actual, "INT32");
    cr_assert_str_eq(raw.message.status.model, "add");

    inf_add_request(&message, 2);
    request->inputs[1].shape = INF_SHAPE(4, 2);
    check_refused(&message, INF_INVALID, INF_REASON_SHAPE_MISMATCH, "b");
    cr_assert_str_eq(raw.message.status.expected, "[?,4]");
    cr_assert_str_eq(raw.message.status.actual, "[4,2]");

    inf_add_request(&message, 2);
    request->inputs[1].shape = INF_SHAPE(2, 2, 2);
    check_refused(&message, INF_INVALID, INF_REASON_SHAPE_MISMATCH, "b");

    inf_add_request(&message, 2);
    request->inputs[1].name = "bb";
    check_refused(&message, INF_INVALID, INF_REASON_TENSOR_UNKNOWN, "bb");

    inf_add_request(&message, 2);
    request->inputs[1].name = "a";
    check_refused(&message, INF_INVALID, INF_REASON_BAD_PARAMETER, "");

    inf_add_request(&message, 2);
    request->input_count = 1;
    request->inputs[0].shape = INF_SHAPE(6, 4);
    request->inputs[0].location.length = AB_BYTES;
    check_refused(&message, INF_INVALID, INF_REASON_TENSOR_MISSING, "b");
    cr_assert_str_eq(raw.message.status.expected, "FP32 [?,4]");

    inf_add_request(&message, 2);
    request->output_count = 1;
    request->outputs[0] = (struct inf_tensor_entry){.name = "z"};
    check_refused(&message, INF_INVALID, INF_REASON_TENSOR_UNKNOWN, "z");

    inf_add_request(&message, 2);
    request->output_count = 2;
    request->outputs[0] = request->outputs[1] = (struct inf_tensor_entry){.name = "y"};
    check_refused(&message, INF_INVALID, INF_REASON_BAD_PARAMETER, "");
    check_still_serves();
}

Test(serving_infer, refuses_locations_that_do_not_fit_the_data)
{
    union inf_message message;
    struct inf_infer_request *request = &message.infer_request;

    inf_add_request(&message, 2);
    request->inputs[0].location.length = 28;
    check_refused(&message, INF_INVALID, INF_REASON_SIZE_MISMATCH, "");

    inf_add_request(&message, 2);
    request->inputs[1].location.offset = 128;
    check_refused(&message, INF_RANGE, INF_REASON_REGION_BOUNDS, "");

    inf_add_request(&message, 2);
    request->inputs[1].location.offset = UINT64_MAX - 31;
    check_refused(&message, INF_RANGE, INF_REASON_REGION_BOUNDS, "");

    inf_add_request(&message, 2);
    request->inputs[1].location.offset = 32;
    check_refused(&message, INF_INVALID, INF_REASON_BAD_PARAMETER, "");

    inf_add_request(&message, 1);
    request->input_count = 1;
    check_refused(&message, INF_INVALID, INF_REASON_SIZE_MISMATCH, "");
    check_still_serves();
}

Test(serving_infer, refuses_unknown_models_versions_devices_methods)
{
    union inf_message message;
    inf_add_request(&message, 2);
    message.infer_request.model_name = "absent";
    check_refused(&message, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND, "");
    cr_assert_str_eq(raw.message.status.model, "absent");

    inf_add_request(&message, 2);
    message.infer_request.model_name = "../../etc/passwd";
    inf_raw_call(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message, ab_data());
    cr_assert_neq(raw.frame.header.flags & INF_FRAME_FLAG_ERROR, 0);

    inf_add_request(&message, 2);
    message.infer_request.model_version = "99";
    check_refused(&message, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND, "");

    inf_add_request(&message, 2);
    message.infer_request.device = "abacus";
    check_refused(&message, INF_NOT_FOUND, INF_REASON_NO_DEVICE, "");

    inf_add_request(&message, 2);
    inf_raw_call(&raw, 999, INF_MESSAGE_INFER_REQUEST, &message, ab_data());
    inf_raw_check_failure(&raw, INF_UNSUPPORTED, INF_REASON_METHOD);
    check_still_serves();
}

Test(serving_infer, answers_empty_tensors)
{
    union inf_message message;
    inf_add_request(&message, 0);
    uint64_t stream = inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                      &message, (struct inf_span){0});
    inf_raw_expect_infer(&raw, stream);
    cr_assert(inf_shape_equal(&raw.message.infer_reply.outputs[0].shape, &INF_SHAPE(0, 4)));
    cr_assert_eq(raw.frame.header.data_bytes, 0);
}

Test(serving_infer, refuses_a_reply_too_large_for_a_frame)
{
    // This client accepts at most 64 bytes of data per frame, and five rows take 80 bytes.
    struct inf_raw small;
    union inf_message hello = {.hello = {.major = INF_PROTOCOL_MAJOR,
                                         .client_name = "small",
                                         .limits = {.data_bytes = 64}}};
    inf_raw_connect(&small, fixture.socket);
    inf_raw_send(&small, (struct inf_frame_header){.type = INF_FRAME_HELLO}, INF_MESSAGE_HELLO,
                 &hello, (struct inf_span){0}, -1);
    inf_raw_expect(&small, INF_FRAME_HELLO_ACK);
    inf_raw_decode(&small, INF_MESSAGE_HELLO_ACK);
    cr_assert_eq(small.message.hello_ack.limits.data_bytes, 64);

    static const float rows[64];
    union inf_message message;
    inf_add_request(&message, 5);
    message.infer_request.inputs[1].location.offset = 128;
    inf_raw_call(&small, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                 (struct inf_span){(const uint8_t *)rows, 128 + 80});
    inf_raw_check_failure(&small, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE);
    inf_raw_close(&small);
}

// Loads a model with x FP32 [-1]; y INT32 [k,1] = the indices of positive x; z FP32 [-1] = x + x.
// The size of y is known only after the run.
static void load_where(void)
{
    char path[160];
    const int64_t any[] = {-1};
    const float zero[] = {0};
    struct inf_raw admin;
    snprintf(path, sizeof path, "%s/where", fixture.repository);
    cr_assert_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/where/1", fixture.repository);
    cr_assert_eq(mkdir(path, 0700), 0);
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(path);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", any, 1);
    inf_tfjs_writer_floats(writer, "zero", zero, NULL, 0);
    inf_tfjs_writer_node(writer, "above", "Greater", "x,zero");
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_node(writer, "y", "Where", "above");
    inf_tfjs_writer_node(writer, "z", "AddV2", "x,x");
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_output(writer, "y", "y");
    inf_tfjs_writer_output(writer, "z", "z");
    inf_tfjs_writer_end(writer);
    const union inf_message message = {.model = {.name = "where"}};
    inf_raw_open(&admin, fixture.admin_socket);
    inf_raw_call(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST, &message,
                 (struct inf_span){0});
    if ((admin.frame.header.flags & INF_FRAME_FLAG_ERROR) != 0) {
        inf_raw_decode(&admin, INF_MESSAGE_STATUS);
        cr_assert_fail("not loaded: %s", admin.message.status.message);
    }
    inf_raw_close(&admin);
}

static void where_request(union inf_message *message, int64_t count)
{
    message->infer_request = (struct inf_infer_request){
        .model_name = "where",
        .input_count = 1,
        .inputs = {{.name = "x",
                    .dtype = INF_DTYPE_F32,
                    .shape = INF_SHAPE(count),
                    .location = {.present = true, .length = (uint64_t)count * sizeof(float)}}}};
}

Test(serving_infer, answers_with_outputs_whose_size_depends_on_values)
{
    static const float x[] = {1, -1, 2, 0, 3};
    static const int32_t wanted[] = {0, 2, 4};
    union inf_message message;
    struct inf_infer_request *request = &message.infer_request;
    const struct inf_span data = {(const uint8_t *)x, sizeof x};
    load_where();
    for (int64_t count = 5; count >= 0; count--) {
        where_request(&message, count);
        uint64_t stream =
            inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                            (struct inf_span){data.data, (size_t)count * sizeof(float)});
        inf_raw_expect_infer(&raw, stream);
        const struct inf_tensor_entry *outputs = raw.message.infer_reply.outputs;
        int64_t found = count == 5 ? 3 : count >= 3 ? 2 : count >= 1 ? 1 : 0;
        cr_assert_eq(raw.message.infer_reply.output_count, 2);
        cr_assert_eq(outputs[0].dtype, INF_DTYPE_I32);
        cr_assert(inf_shape_equal(&outputs[0].shape, &INF_SHAPE(found, 1)));
        cr_assert(inf_shape_equal(&outputs[1].shape, &INF_SHAPE(count)));
        const int32_t *y = (const int32_t *)(raw.frame.data + outputs[0].location.offset);
        for (int64_t i = 0; i < found; i++)
            cr_assert_eq(y[i], wanted[i]);
        const float *z = (const float *)(raw.frame.data + outputs[1].location.offset);
        for (int64_t i = 0; i < count; i++)
            cr_assert_eq(z[i], x[i] + x[i]);
    }
    // Write the output into a region, first one that is large enough, then one that is too small.
    inf_raw_register(&raw, 1, inf_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 4096,
                     true);
    where_request(&message, 5);
    request->output_count = 1;
    request->outputs[0] = (struct inf_tensor_entry){
        .name = "y", .location = {.present = true, .region_id = 1, .length = 12}};
    uint64_t stream =
        inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message, data);
    inf_raw_expect_infer(&raw, stream);
    cr_assert_eq(raw.message.infer_reply.outputs[0].location.length, 12);
    cr_assert_eq(raw.frame.header.data_bytes, 0);
    request->outputs[0].location.length = 11;
    inf_raw_call(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message, data);
    inf_raw_check_failure(&raw, INF_RANGE, INF_REASON_OUTPUT_TOO_SMALL);
    cr_assert_str_eq(raw.message.status.expected, "12");
}

Test(serving_infer, answers_each_of_many_streams_once)
{
    enum {
        COUNT = 500
    };
    bool seen[COUNT + 1] = {false};
    union inf_message message;
    inf_add_request(&message, 2);
    uint64_t before = raw.last_stream;
    for (int i = 0; i < COUNT; i++)
        inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                        ab_data());
    for (int i = 0; i < COUNT; i++) {
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
        uint64_t index = raw.frame.header.stream_id - before;
        cr_assert(index >= 1 && index <= COUNT);
        cr_assert_not(seen[index], "stream %d is answered twice", (int)index);
        seen[index] = true;
    }
    cr_assert_not(inf_raw_next(&raw, 100), "a reply too many");
    struct inf_server_status status = inf_raw_server_status(&raw);
    cr_assert_eq(status.requests_accepted, status.requests_ok + status.requests_failed + 1);
    cr_assert_eq(status.requests_in_flight, 1);
}
