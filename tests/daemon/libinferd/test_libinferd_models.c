// SPDX-License-Identifier: Apache-2.0
// Tests of models with libinferd: their metadata, and loading, unloading and placing them.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/library.h"
#include "tests/support/models/tfjs_writer.h"

// Checks the daemon's report about the memory of each device: asserts the relations between its
// numbers. Returns the number of constants on all devices.
static unsigned check_memory(inferd_client *client)
{
    inferd_memory_row *rows = NULL;
    inferd_memory_total total = {0};
    struct inferd_error err;
    size_t count = 0;
    unsigned tensors = 0;
    cr_assert_eq(inferd_memory_info(client, &rows, &count, &total, &err), INFERD_OK, "%s",
                 err.text);
    cr_assert_geq(count, 1u);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(rows[i].num_bytes,
                     rows[i].constant_bytes + rows[i].weight_bytes + rows[i].buffer_bytes);
        cr_assert_geq(rows[i].peak_bytes, rows[i].num_bytes);
        cr_assert_eq(rows[i].num_tensors > 0, rows[i].constant_bytes > 0);
        tensors += rows[i].num_tensors;
    }
    cr_assert_gt(total.resident_bytes, 1u << 20);
    free(rows);
    return tensors;
}

Test(libinferd_models, counts_the_constants_of_models_until_they_are_gone)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    inferd_client *admin = inf_library_connect(fixture.admin_socket);
    // The model "conv" has two constants: a filter and a bias.
    cr_assert_geq(check_memory(client), 2u);
    inferd_model_row *models = NULL;
    size_t count = 0;
    cr_assert_eq(inferd_models(client, &models, &count, NULL), INFERD_OK);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(inferd_unload(admin, models[i].name, NULL, NULL), INFERD_OK, "%s",
                     models[i].name);
    free(models);
    // Wait, because a separate thread of the daemon frees the constants.
    unsigned left = 1;
    for (int i = 0; i < 500 && left > 0; i++) {
        left = check_memory(client);
        usleep(10000);
    }
    cr_assert_eq(left, 0u);
    inferd_close(admin);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// Writes a model with x FP32 [-1] and y INT32 [?,1], which has the indices at which x is not zero.
static void write_where(const struct inf_fixture *fixture, char directory[160])
{
    snprintf(directory, 160, "%s/where", fixture->directory);
    cr_assert_eq(mkdir(directory, 0700), 0);
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (const int64_t[]){-1}, 1);
    inf_tfjs_writer_node(writer, "y", "Where", "x");
    inf_tfjs_writer_output(writer, "y", "y");
    inf_tfjs_writer_end(writer);
}

// Sends `count` elements, of which every `step`th is not zero, and checks the indices in the
// answer.
static void check_where(inferd_client *client, int64_t count, int64_t step)
{
    float *x = calloc((size_t)count, sizeof *x);
    for (int64_t i = 0; i < count; i += step)
        x[i] = 1;
    inferd_tensor input = {.name = "x",
                           .dtype = INFERD_FP32,
                           .rank = 1,
                           .shape = {count},
                           .data = x,
                           .size = (size_t)count * sizeof *x};
    inferd_request request = {.model = "where", .inputs = &input, .input_count = 1};
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    const inferd_tensor *y = inferd_result_find(result, "y");
    cr_assert_eq(y->rank, 2);
    cr_assert_eq(y->shape[0], (count + step - 1) / step);
    cr_assert_eq(y->shape[1], 1);
    for (int64_t i = 0; i < y->shape[0]; i++)
        cr_assert_eq(((const int32_t *)y->data)[i], i * step, "%ld of %ld", (long)i, (long)count);
    inferd_result_free(result);
    free(x);
}

Test(libinferd_models, gets_outputs_whose_size_only_the_run_tells)
{
    struct inf_fixture fixture;
    char directory[160];
    struct inferd_error err;
    inf_fixture_start(&fixture, NULL);
    write_where(&fixture, directory);
    inferd_client *client = inf_library_connect(fixture.admin_socket);
    cr_assert_eq(inferd_load(client, "where", directory, NULL, NULL, NULL, &err), INFERD_OK, "%s",
                 err.text);
    // The sizes of the outputs cover outputs in the frame, in a region, in a region that is too
    // small at first, and small outputs again.
    static const struct {
        int64_t count, step;
    } cases[] = {{5, 2}, {1, 1}, {5, 1}, {100000, 1}, {400000, 1}, {400000, 100}, {7, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_where(client, cases[i].count, cases[i].step);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd_models, asks_and_orders)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.admin_socket);
    struct inferd_error err;
    inferd_model_info *info = NULL;
    cr_assert_eq(inferd_model_describe(client, "add", NULL, &info, &err), INFERD_OK, "%s",
                 err.text);
    cr_assert_str_eq(info->name, "add");
    cr_assert_eq(info->input_count, 2u);
    cr_assert_eq(info->outputs[0].rank, 2);
    cr_assert_eq(info->outputs[0].shape[0], -1);
    cr_assert_eq(info->outputs[0].shape[1], 4);
    inferd_model_info_free(info);
    inferd_model_row *models = NULL;
    size_t count = 0;
    cr_assert_eq(inferd_models(client, &models, &count, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq(count, 4u);
    free(models);
    inferd_device_row *devices = NULL;
    cr_assert_eq(inferd_devices(client, &devices, &count, &err), INFERD_OK, "%s", err.text);
    cr_assert_geq(count, 1u);
    free(devices);
    inferd_server_status status;
    cr_assert_eq(inferd_status(client, &status, &err), INFERD_OK, "%s", err.text);
    cr_assert_str_eq(status.state, "ready");
    cr_assert_eq(status.models_ready, 4u);
    bool ready = false;
    cr_assert_eq(inferd_model_ready(client, "add", NULL, &ready, &err), INFERD_OK);
    cr_assert(ready);
    cr_assert_eq(inferd_unload(client, "add", NULL, &err), INFERD_OK, "%s", err.text);
    cr_assert_neq(inferd_model_describe(client, "add", NULL, &info, &err), INFERD_OK);
    cr_assert_eq(inferd_load(client, "add", NULL, NULL, NULL, NULL, &err), INFERD_OK, "%s",
                 err.text);
    inf_library_add(client, 70000);
    inferd_close(client);
    client = inf_library_connect(fixture.socket);
    cr_assert_eq(inferd_unload(client, "add", NULL, &err), INFERD_PERMISSION_DENIED);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

static uint64_t count_accepted(inferd_client *client)
{
    inferd_server_status status;
    struct inferd_error err;
    cr_assert_eq(inferd_status(client, &status, &err), INFERD_OK);
    return status.requests_accepted;
}

static void check_refused(inferd_client *client, const inferd_request *request, const char *reason,
                          const char *const *words)
{
    struct inferd_error err;
    cr_assert_eq(inferd_check(client, request, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_str_eq(err.reason, reason, "%s", err.text);
    for (; *words != NULL; words++)
        cr_assert_not_null(strstr(err.text, *words), "'%s' has no '%s'", err.text, *words);
}

Test(libinferd_models, a_tensor_may_be_named_with_the_number_of_its_output)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    float ones[4] = {1, 1, 1, 1};
    inferd_tensor inputs[] = {inf_library_rows("a:0", 1, ones), inf_library_rows("b", 1, ones)};
    inferd_tensor wanted = {.name = "y:0"};
    inferd_request request = {
        .model = "add", .inputs = inputs, .input_count = 2, .outputs = &wanted, .output_count = 1};
    struct inferd_error err;
    // In the first iteration, the daemon looks up the names. In the second one, the library looks
    // them up, because it knows the model by then.
    for (int i = 0; i < 2; i++) {
        inferd_result *result = NULL;
        cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
        const inferd_tensor *y = inferd_result_find(result, "y:0");
        cr_assert_not_null(y);
        cr_expect_str_eq(y->name, "y");
        cr_expect_eq(y, inferd_result_find(result, "y"));
        cr_expect_null(inferd_result_find(result, "y:1"));
        cr_expect_eq(((const float *)y->data)[0], 2);
        inferd_result_free(result);
        cr_assert_eq(inferd_check(client, &request, &err), INFERD_OK, "%s", err.text);
    }
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd_models, tells_what_does_not_fit_a_model_before_it_is_sent)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    float ones[8] = {1, 1, 1, 1};
    inferd_tensor inputs[] = {inf_library_rows("a", 1, ones), inf_library_rows("b", 1, ones),
                              inf_library_rows("c", 1, ones)};
    inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2};
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_check(client, &request, &err), INFERD_OK, "%s", err.text);
    request.input_count = 1;
    check_refused(client, &request, "TENSOR_MISSING", (const char *[]){"'b'", "FP32 [?,4]", NULL});
    request.input_count = 3;
    check_refused(client, &request, "TENSOR_UNKNOWN", (const char *[]){"'c'", "add", NULL});
    request.input_count = 2;
    inputs[1].shape[1] = 5;
    inputs[1].size = 20;
    check_refused(client, &request, "SHAPE_MISMATCH",
                  (const char *[]){"'b'", "[1,5]", "[?,4]", NULL});
    inputs[1] = inf_library_rows("b", 1, ones);
    inputs[0].dtype = INFERD_INT32;
    check_refused(client, &request, "DTYPE_MISMATCH",
                  (const char *[]){"'a'", "INT32", "FP32", NULL});

    // The library refuses a request by itself only if it got the model's description less than a
    // second ago. On a slow machine more time may pass, so there are up to 100 tries, of which one
    // must be refused by the library.
    bool local = false;
    for (int i = 0; i < 100 && !local; i++) {
        inferd_model_info *info;
        uint64_t before = count_accepted(client);
        cr_assert_eq(inferd_model_describe(client, "add", NULL, &info, &err), INFERD_OK);
        inferd_model_info_free(info);
        cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_INVALID_ARGUMENT);
        cr_assert_str_eq(err.reason, "DTYPE_MISMATCH");
        // Two requests more than before mean that the daemon received only the request for the
        // description and the question of count_accepted(), so the library refused the inference
        // itself.
        local = count_accepted(client) == before + 2;
    }
    cr_assert(local, "each was sent");

    // After a restart of the daemon another model may have this name, so the library sends the
    // request, and the daemon refuses it.
    inf_fixture_restart(&fixture, NULL);
    cr_assert_eq(inferd_reconnect(client, 30000, &err), INFERD_OK, "%s", err.text);
    uint64_t before = count_accepted(client);
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_str_eq(err.reason, "DTYPE_MISMATCH");
    cr_assert_eq(count_accepted(client), before + 2);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// Unloads "add", keeps the loader thread busy, and queues a load of "add" after that. Returns when
// the daemon has received all three requests.
static void begin_loading_add(struct inf_raw *admin, const char *admin_socket)
{
    const union inf_message slow = {.model = {.name = "slow"}};
    const union inf_message add = {.model = {.name = "add"}};
    const struct inf_span none = {0};
    inf_raw_open(admin, admin_socket);
    inf_raw_request(admin, INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                    &add, none);
    for (int i = 0; i < 20; i++)
        inf_raw_request(admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                        &slow, none);
    inf_raw_request(admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST, &add,
                    none);
    uint64_t last = inf_raw_request(admin, INF_METHOD_SERVER_LIVE, INF_MESSAGE_EMPTY, &add, none);
    do {
        inf_raw_expect(admin, INF_FRAME_RESPONSE);
    } while (admin->frame.header.stream_id != last);
}

static void store_code(void *context, inferd_result *result, const struct inferd_error *err)
{
    inferd_result_free(result);
    *(int *)context = err->code;
}

// Runs "add" with ones as inputs. A timeout of 0 means no timeout.
static int infer_add(inferd_client *client, uint64_t timeout_ms, int *async_code,
                     struct inferd_error *err)
{
    float ones[4] = {1, 1, 1, 1};
    const inferd_tensor inputs[] = {inf_library_rows("a", 1, ones), inf_library_rows("b", 1, ones)};
    const inferd_request request = {
        .model = "add", .inputs = inputs, .input_count = 2, .timeout_ms = timeout_ms};
    inferd_result *result = NULL;
    if (async_code != NULL)
        return inferd_infer_async(client, &request, store_code, async_code, NULL, err);
    int code = inferd_infer(client, &request, &result, err);
    inferd_result_free(result);
    return code;
}

Test(libinferd_models, requests_and_questions_wait_for_a_model_that_is_loading, .timeout = 120)
{
    for (int way = 0; way < 4; way++) {
        struct inf_fixture fixture;
        struct inf_raw admin;
        struct inferd_error err = {.code = INFERD_OK};
        inferd_model_info *info = NULL;
        int code = -1;
        inf_fixture_start(&fixture, NULL);
        inferd_client *client = inf_library_connect(fixture.socket);
        begin_loading_add(&admin, fixture.admin_socket);
        if (way == 0) {
            code = inferd_model_describe(client, "add", NULL, &info, &err);
            inferd_model_info_free(info);
        } else if (way == 1) {
            code = infer_add(client, 60000, NULL, &err);
        } else if (way == 2) {
            cr_assert_eq(infer_add(client, 0, &code, &err), INFERD_OK, "%s", err.text);
            while (code == -1)
                cr_assert_eq(inferd_wait(client, &err), INFERD_OK, "%s", err.text);
        } else { // the deadline of 1 ms passes before the model is loaded
            code = infer_add(client, 1, NULL, &err) == INFERD_OK ? INFERD_INTERNAL : INFERD_OK;
        }
        cr_expect_eq(code, INFERD_OK, "way %d: %s %s", way, err.reason, err.text);
        inferd_statistics statistics;
        inferd_client_statistics(client, &statistics);
        cr_expect_eq(statistics.resent, 0u, "way %d: the daemon lets requests wait", way);
        inferd_close(client);
        inf_raw_close(&admin);
        inf_fixture_stop(&fixture);
    }
}
