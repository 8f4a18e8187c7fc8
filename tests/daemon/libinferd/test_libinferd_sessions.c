// SPDX-License-Identifier: Apache-2.0
// Tests of sessions with libinferd.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/library.h"
#include "tests/support/models/onnx_writer.h"

Test(libinferd_sessions, keeps_tensors_in_sessions)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    struct inferd_error err;
    inferd_session *first = inf_library_session(client, 2);
    inferd_session *second = inf_library_session(client, 2);
    for (int i = 1; i <= 5; i++)
        inf_library_step(client, first, (float)i);
    inf_library_step(client, second, 1);

    inferd_memory_row *rows = NULL;
    inferd_memory_total total;
    size_t count = 0;
    cr_assert_eq(inferd_memory_info(client, &rows, &count, &total, &err), INFERD_OK);
    free(rows);
    cr_assert_eq(total.sessions, 2);
    cr_assert_geq(total.session_bytes, 64);

    // The first request keeps its output in the session under a name. The second request uses that
    // tensor for both of its inputs.
    float ones[4] = {1, 1, 1, 1};
    inferd_tensor inputs[] = {inf_library_rows("a", 1, ones), inf_library_rows("b", 1, ones)};
    inferd_tensor output = {.name = "y", .session_tensor = "two"};
    inferd_request request = {.model = "add",
                              .inputs = inputs,
                              .input_count = 2,
                              .outputs = &output,
                              .output_count = 1,
                              .session = second};
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq(inferd_result_output_count(result), 0);
    inferd_result_free(result);
    inputs[0] = (inferd_tensor){.name = "a", .session_tensor = "two"};
    inputs[1] = (inferd_tensor){.name = "b", .session_tensor = "two"};
    output.session_tensor = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq(*(const float *)inferd_result_find(result, "y")->data, 4.0f);
    inferd_result_free(result);
    request.session = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_INVALID_ARGUMENT);

    inferd_session_close(second);
    inf_library_step(client, first, 6);
    inferd_close(client); // closes the first session, too
    inf_fixture_stop(&fixture);
}

Test(libinferd_sessions, are_opened_with_options)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    struct inferd_error err;
    const inferd_session_state state = {.output = "y", .input = "b", .rank = 2, .shape = {1, 4}};
    inferd_session *session = NULL;
    inferd_session_options options = {.states = &state, .count = 1, .max_length = 100};
    cr_assert_eq(inferd_session_open_with(client, &options, &session, &err), INFERD_OK, "%s",
                 err.text);
    // The sum in the session grows by 1 and by 2.
    inf_library_step(client, session, 1);
    inf_library_step(client, session, 2);
    inferd_session_close(session);
    options.max_length = (1 << 20) + 1;
    cr_assert_eq(inferd_session_open_with(client, &options, &session, &err),
                 INFERD_INVALID_ARGUMENT);
    cr_assert_null(session);
    options = (inferd_session_options){.model = "no/name"};
    cr_assert_eq(inferd_session_open_with(client, &options, &session, &err),
                 INFERD_INVALID_ARGUMENT);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd_sessions, says_what_is_wrong_with_sessions)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    struct inferd_error err;
    inferd_session *session = NULL;
    inferd_session_state state = {.output = "y", .rank = -1};
    cr_assert_eq(inferd_session_open(client, &state, 1, &session, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_null(session);
    session = inf_library_session(client, -1);
    float ones[4] = {1, 1, 1, 1};
    const inferd_tensor a = inf_library_rows("a", 1, ones);
    const inferd_request request = {
        .model = "add", .inputs = &a, .input_count = 1, .session = session};
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_str_eq(err.reason, "TENSOR_MISSING", "%s", err.text);
    inferd_client *other = inf_library_connect(fixture.socket);
    cr_assert_eq(inferd_infer(other, &request, &result, &err), INFERD_INVALID_ARGUMENT);
    inferd_close(other);
    inferd_session_close(session);
    inferd_session_close(NULL);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// --- histories ---

// Loads a model that appends the row x to its history. With the query 0, y is the mean of all rows.
static void load_decoder(const struct inf_fixture *fixture)
{
    const int64_t rows[] = {1, -1, 1};
    struct inf_pb_writer writer = {0};
    struct inferd_error err;
    char path[160];
    inf_onnx_put_head(&writer, 17);
    inf_pb_open(&writer, 7);
    inf_onnx_open_node(&writer, "Concat", "past", "x", "present");
    inf_onnx_put_attr_int(&writer, "axis", 1);
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "Transpose", "present", NULL, "keys");
    INF_ONNX_INTS(&writer, "perm", 0, 2, 1);
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "MatMul", "query", "keys", "scores");
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "Softmax", "scores", NULL, "weights");
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "MatMul", "weights", "present", "y");
    inf_pb_close(&writer);
    for (int i = 0; i < 3; i++)
        inf_onnx_put_port(&writer, 11, (const char *[]){"query", "x", "past"}[i], 1, rows, 3);
    inf_onnx_put_port(&writer, 12, "y", 1, rows, 3);
    inf_onnx_put_port(&writer, 12, "present", 1, rows, 3);
    inf_pb_close(&writer);
    snprintf(path, sizeof path, "%s/decoder.onnx", fixture->directory);
    FILE *file = fopen(path, "we");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(writer.data, 1, writer.size, file), writer.size);
    cr_assert_eq(fclose(file), 0);
    inf_pb_writer_fini(&writer);
    inferd_client *admin = inf_library_connect(fixture->admin_socket);
    cr_assert_eq(inferd_load(admin, "decoder", path, NULL, NULL, NULL, &err), INFERD_OK, "%s",
                 err.text);
    inferd_close(admin);
}

// Appends a row to the session's history, and checks the mean of all rows.
static void append_row(inferd_client *client, inferd_session *session, float row, float mean)
{
    float zero = 0;
    inferd_tensor inputs[] = {{.name = "query", .data = &zero}, {.name = "x", .data = &row}};
    for (int i = 0; i < 2; i++) {
        inputs[i].dtype = INFERD_FP32;
        inputs[i].rank = 3;
        inputs[i].shape[0] = inputs[i].shape[1] = inputs[i].shape[2] = 1;
        inputs[i].size = sizeof row;
    }
    const inferd_request request = {
        .model = "decoder", .inputs = inputs, .input_count = 2, .session = session};
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    cr_assert_float_eq(*(const float *)inferd_result_find(result, "y")->data, mean, 1e-5f);
    inferd_result_free(result);
}

static uint64_t charged_bytes(inferd_client *client)
{
    inferd_memory_row *rows = NULL;
    inferd_memory_total total;
    size_t count = 0;
    cr_assert_eq(inferd_memory_info(client, &rows, &count, &total, NULL), INFERD_OK);
    free(rows);
    return total.session_bytes;
}

Test(libinferd_sessions, fork_and_forget_rows_of_their_history)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    load_decoder(&fixture);
    inferd_client *client = inf_library_connect(fixture.socket);
    struct inferd_error err;
    const inferd_session_state state = {.output = "present", .input = "past", .rank = -1};
    inferd_session *session = NULL, *fork = NULL;
    cr_assert_eq(inferd_session_open(client, &state, 1, &session, &err), INFERD_OK, "%s", err.text);
    append_row(client, session, 1, 1);
    append_row(client, session, 3, 2);
    cr_assert_eq(inferd_session_fork(session, &fork, &err), INFERD_OK, "%s", err.text);
    append_row(client, fork, 8, 4);
    append_row(client, session, 5, 3);
    cr_assert_eq(inferd_session_rewind(session, 1, &err), INFERD_OK, "%s", err.text);
    append_row(client, session, 7, 4);
    cr_assert_eq(inferd_session_rewind(session, 3, &err), INFERD_INVALID_ARGUMENT);
    append_row(client, fork, 8, 5);
    uint64_t charged = charged_bytes(client);
    cr_assert_eq(inferd_session_rewind(fork, 0, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq(charged_bytes(client), charged);
    cr_assert_eq(inferd_session_truncate(fork, 0, &err), INFERD_OK, "%s", err.text);
    cr_assert_lt(charged_bytes(client), charged);
    append_row(client, fork, 9, 9);
    inferd_session_close(fork);
    append_row(client, session, 4, 4);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd_sessions, without_a_history_cannot_be_rewound)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    struct inferd_error err;
    inferd_session *fork = NULL, *session = inf_library_session(client, 2);
    inf_library_step(client, session, 1);
    cr_assert_eq(inferd_session_fork(session, &fork, &err), INFERD_OK, "%s", err.text);
    inf_library_step(client, session, 2);
    inf_library_step(client, fork, 2);
    cr_assert_eq(inferd_session_rewind(session, 0, &err), INFERD_FAILED_PRECONDITION, "%s",
                 err.text);
    cr_assert_eq(inferd_session_truncate(session, 0, &err), INFERD_FAILED_PRECONDITION, "%s",
                 err.text);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}
