// SPDX-License-Identifier: Apache-2.0
// libinferd and a real daemon.
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/inferd.h"
#include "tests/support/fixture.h"
#include "tests/support/tfjs_writer.h"

static inferd_client *connect_to(const char *path)
{
    struct inferd_error err;
    inferd_client *client = NULL;
    cr_assert_eq(inferd_connect(&client, path, &err), INFERD_OK, "%s", err.text);
    return client;
}

static inferd_tensor rows_tensor(const char *name, int64_t rows, float *elements)
{
    return (inferd_tensor){.name = name,
                           .dtype = INFERD_FP32,
                           .rank = 2,
                           .shape = {rows, 4},
                           .data = elements,
                           .size = (size_t)rows * 4 * sizeof(float)};
}

// Adds two tensors of `rows` rows. Sums of small whole numbers are exact.
static void check_add(inferd_client *client, int64_t rows)
{
    size_t count = (size_t)rows * 4;
    float *a = malloc((count + 1) * sizeof *a);
    float *b = malloc((count + 1) * sizeof *b);
    for (size_t i = 0; i < count; i++) {
        a[i] = (float)(i % 1000);
        b[i] = (float)(2 * (i % 777));
    }
    inferd_tensor inputs[] = {rows_tensor("a", rows, a), rows_tensor("b", rows, b)};
    inferd_request request = {
        .model = "add", .inputs = inputs, .input_count = 2, .id = "x", .timeout_ms = 30000};
    inferd_result *result = NULL;
    struct inferd_error err;
    int code = inferd_infer(client, &request, &result, &err);
    cr_assert_eq(code, INFERD_OK, "%ld rows: %s: %s", (long)rows, err.reason, err.text);
    const inferd_tensor *y = inferd_result_find(result, "y");
    cr_assert_not_null(y);
    cr_assert_eq(y->dtype, INFERD_FP32);
    cr_assert_eq(y->shape[0], rows);
    cr_assert_eq(y->size, count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        if (((const float *)y->data)[i] != a[i] + b[i])
            cr_assert_fail("%ld rows: element %zu", (long)rows, i);
    cr_assert_str_eq(inferd_result_id(result), "x");
    cr_assert_str_eq(inferd_result_precision(result), "fp32");
    cr_assert_gt(strlen(inferd_result_device(result)), 0u);
    inferd_result_free(result);
    free(a);
    free(b);
}

Test(libinferd, moves_tensors_of_any_size)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    // 16 bytes a row: inline, the threshold of regions, beyond a frame, far beyond, small again.
    static const int64_t rows[] = {1, 3, 1023, 1024, 1025, 30000, 65537, 300001, 300002, 5, 65537};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_add(client, rows[i]);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd, uses_memory_in_place)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    struct inferd_error err;
    inferd_memory *memory = NULL;
    enum {
        ROWS = 10000,
        BYTES = ROWS * 16
    };
    cr_assert_eq(inferd_memory_alloc(client, 3 * BYTES, &memory, &err), INFERD_OK, "%s", err.text);
    float *elements = inferd_memory_data(memory);
    for (int i = 0; i < ROWS * 4; i++) {
        elements[i] = (float)i;
        elements[ROWS * 4 + i] = 1.0f;
    }
    inferd_tensor inputs[] = {rows_tensor("a", ROWS, elements),
                              rows_tensor("b", ROWS, elements + ROWS * 4)};
    inferd_tensor output = rows_tensor("y", ROWS, elements + ROWS * 8);
    inputs[0].memory = inputs[1].memory = output.memory = memory;
    inferd_request request = {
        .model = "add", .inputs = inputs, .input_count = 2, .outputs = &output, .output_count = 1};
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq(inferd_result_output(result, 0)->data, (void *)(elements + ROWS * 8));
    cr_assert_eq(elements[ROWS * 8], 1.0f);
    cr_assert_eq(elements[ROWS * 12 - 1], (float)(ROWS * 4));
    inferd_result_free(result);
    inferd_memory_free(memory);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

static void check_failure(inferd_client *client, const inferd_request *request, int code,
                          const char *reason)
{
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_expect_eq(inferd_infer(client, request, &result, &err), code, "%s", err.text);
    cr_expect_str_eq(err.reason, reason, "%s: %s", err.reason, err.text);
    cr_expect_null(result);
}

// Asserts what must hold of every row, and returns the constants of all of them.
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

Test(libinferd, counts_the_constants_of_models_until_they_are_gone)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    inferd_client *admin = connect_to(fixture.admin_socket);
    // "conv" has a filter and a bias.
    cr_assert_geq(check_memory(client), 2u);
    inferd_model_row *models = NULL;
    size_t count = 0;
    cr_assert_eq(inferd_models(client, &models, &count, NULL), INFERD_OK);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(inferd_unload(admin, models[i].name, NULL, NULL), INFERD_OK, "%s",
                     models[i].name);
    free(models);
    // They are freed by a thread of its own.
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

Test(libinferd, tells_what_the_daemon_finds_wrong)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    float elements[8] = {0};
    inferd_tensor inputs[] = {rows_tensor("a", 2, elements), rows_tensor("b", 2, elements)};
    inferd_tensor wanted = {.name = "nothing"};
    inferd_request good = {.model = "add", .inputs = inputs, .input_count = 2};
    inferd_request bad = good;
    bad.model = "absent";
    check_failure(client, &bad, INFERD_NOT_FOUND, "MODEL_NOT_FOUND");
    bad = good;
    bad.input_count = 1;
    check_failure(client, &bad, INFERD_INVALID_ARGUMENT, "TENSOR_MISSING");
    bad = good;
    bad.outputs = &wanted;
    bad.output_count = 1;
    check_failure(client, &bad, INFERD_INVALID_ARGUMENT, "TENSOR_UNKNOWN");
    bad = good;
    bad.device = "gpu7";
    inferd_result *result = NULL;
    cr_assert_neq(inferd_infer(client, &bad, &result, NULL), INFERD_OK);
    inputs[0].dtype = INFERD_INT32;
    check_failure(client, &good, INFERD_INVALID_ARGUMENT, "DTYPE_MISMATCH");
    inputs[0] = rows_tensor("a", 2, elements);
    inputs[0].rank = 1;
    inputs[0].shape[0] = 8;
    check_failure(client, &good, INFERD_INVALID_ARGUMENT, "SHAPE_MISMATCH");
    check_add(client, 2);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// The model "slow" on the device ref takes a second or more.
static inferd_request slow_request(inferd_tensor *input, float *element)
{
    *input = (inferd_tensor){.name = "x",
                             .dtype = INFERD_FP32,
                             .rank = 2,
                             .shape = {1, 1},
                             .data = element,
                             .size = sizeof *element};
    return (inferd_request){.model = "slow", .device = "ref", .inputs = input, .input_count = 1};
}

struct ending {
    int code;
    unsigned count;
};

static void note_ending(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct ending *ending = context;
    ending->code = err->code;
    ending->count++;
    inferd_result_free(result);
}

Test(libinferd, gives_up_by_time_and_by_cancel)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    inferd_tensor input;
    float element = 1.0f;
    inferd_request request = slow_request(&input, &element);
    request.timeout_ms = 50;
    check_failure(client, &request, INFERD_DEADLINE_EXCEEDED, "IN_EXEC");
    request.timeout_ms = 0;
    struct ending ending = {.code = -1};
    uint64_t stream = 0;
    cr_assert_eq(inferd_infer_async(client, &request, note_ending, &ending, &stream, NULL),
                 INFERD_OK);
    cr_assert_eq(inferd_cancel(client, stream, NULL), INFERD_OK);
    cr_assert_eq(inferd_wait(client, NULL), INFERD_OK);
    cr_assert_eq(ending.code, INFERD_CANCELLED);
    cr_assert_eq(ending.count, 1u);
    check_add(client, 7);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// x FP32 [-1]; y INT32 [?,1]: where x is not zero.
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

// Asks where the first `count` elements, every `step`th of which is not zero, are not zero.
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

Test(libinferd, gets_outputs_whose_size_only_the_run_tells)
{
    struct inf_fixture fixture;
    char directory[160];
    struct inferd_error err;
    inf_fixture_start(&fixture, NULL);
    write_where(&fixture, directory);
    inferd_client *client = connect_to(fixture.admin_socket);
    cr_assert_eq(inferd_load(client, "where", directory, NULL, NULL, NULL, &err), INFERD_OK, "%s",
                 err.text);
    // Inline, in a region, more than the library knows of, less again.
    static const struct {
        int64_t count, step;
    } cases[] = {{5, 2}, {1, 1}, {5, 1}, {100000, 1}, {400000, 1}, {400000, 100}, {7, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_where(client, cases[i].count, cases[i].step);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd, asks_and_orders)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.admin_socket);
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
    check_add(client, 70000);
    inferd_close(client);
    client = connect_to(fixture.socket);
    cr_assert_eq(inferd_unload(client, "add", NULL, &err), INFERD_PERMISSION_DENIED);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd, hears_that_the_daemon_ends)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    check_add(client, 3);
    inf_fixture_stop(&fixture);
    struct inferd_error err;
    inferd_server_status status;
    cr_assert_eq(inferd_status(client, &status, &err), INFERD_UNAVAILABLE);
    inferd_close(client);
    client = NULL;
    cr_assert_eq(inferd_connect(&client, fixture.socket, &err), INFERD_UNAVAILABLE);
}

// --- sessions ---

static inferd_session *open_session(inferd_client *client, int rank)
{
    const inferd_session_state state = {.output = "y", .input = "b", .rank = rank, .shape = {1, 4}};
    inferd_session *session = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_session_open(client, &state, 1, &session, &err), INFERD_OK, "%s", err.text);
    return session;
}

// Adds ones to what the session has, and checks that it is `sum` then.
static void step(inferd_client *client, inferd_session *session, float sum)
{
    float ones[4] = {1, 1, 1, 1};
    const inferd_tensor a = rows_tensor("a", 1, ones);
    const inferd_tensor y = {.name = "y"};
    const inferd_request request = {.model = "add",
                                    .inputs = &a,
                                    .input_count = 1,
                                    .outputs = &y,
                                    .output_count = 1,
                                    .session = session};
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    const inferd_tensor *got = inferd_result_find(result, "y");
    cr_assert_eq(((const float *)got->data)[3], sum);
    inferd_result_free(result);
}

Test(libinferd, keeps_tensors_in_sessions)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    struct inferd_error err;
    inferd_session *first = open_session(client, 2);
    inferd_session *second = open_session(client, 2);
    for (int i = 1; i <= 5; i++)
        step(client, first, (float)i);
    step(client, second, 1);

    inferd_memory_row *rows = NULL;
    inferd_memory_total total;
    size_t count = 0;
    cr_assert_eq(inferd_memory_info(client, &rows, &count, &total, &err), INFERD_OK);
    free(rows);
    cr_assert_eq(total.sessions, 2);
    cr_assert_geq(total.session_bytes, 64);

    // By name: kept, and then both inputs of another.
    float ones[4] = {1, 1, 1, 1};
    inferd_tensor inputs[] = {rows_tensor("a", 1, ones), rows_tensor("b", 1, ones)};
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
    step(client, first, 6);
    inferd_close(client); // and with it the first one
    inf_fixture_stop(&fixture);
}

Test(libinferd, says_what_is_wrong_with_sessions)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    struct inferd_error err;
    inferd_session *session = NULL;
    inferd_session_state state = {.output = "y", .rank = -1};
    cr_assert_eq(inferd_session_open(client, &state, 1, &session, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_null(session);
    session = open_session(client, -1);
    float ones[4] = {1, 1, 1, 1};
    const inferd_tensor a = rows_tensor("a", 1, ones);
    const inferd_request request = {
        .model = "add", .inputs = &a, .input_count = 1, .session = session};
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_str_eq(err.reason, "TENSOR_MISSING", "%s", err.text);
    inferd_client *other = connect_to(fixture.socket);
    cr_assert_eq(inferd_infer(other, &request, &result, &err), INFERD_INVALID_ARGUMENT);
    inferd_close(other);
    inferd_session_close(session);
    inferd_session_close(NULL);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// --- daemons that come and go ---

// A client that asks without a pause, in a thread of its own.
struct asker {
    char socket[96];
    atomic_bool stop;
    unsigned answered;
    inferd_statistics statistics;
    struct inferd_error err;
};

static bool ask_once(inferd_client *client, struct asker *asker, float number)
{
    float a[4] = {number, 0, 0, 0};
    float b[4] = {1, 0, 0, 0};
    const inferd_tensor inputs[] = {rows_tensor("a", 1, a), rows_tensor("b", 1, b)};
    const inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2};
    inferd_result *result = NULL;
    if (inferd_infer(client, &request, &result, &asker->err) != INFERD_OK)
        return false;
    bool right = *(const float *)inferd_result_find(result, "y")->data == number + 1;
    inferd_result_free(result);
    return right;
}

static void *ask_on(void *context)
{
    struct asker *asker = context;
    inferd_client *client = NULL;
    if (inferd_connect(&client, asker->socket, &asker->err) != INFERD_OK)
        return NULL;
    inferd_set_retry(client, 60000);
    while (!atomic_load(&asker->stop) && ask_once(client, asker, (float)(asker->answered % 1000)))
        asker->answered++;
    inferd_client_statistics(client, &asker->statistics);
    inferd_close(client);
    return NULL;
}

Test(libinferd, loses_no_request_and_sends_none_twice_while_daemons_are_replaced, .timeout = 120)
{
    struct inf_fixture fixture;
    struct asker asker = {.err = {.code = INFERD_OK}};
    pthread_t thread;
    inf_fixture_start(&fixture, NULL);
    snprintf(asker.socket, sizeof asker.socket, "%s", fixture.socket);
    cr_assert_eq(pthread_create(&thread, NULL, ask_on, &asker), 0);
    for (int i = 0; i < 3; i++) {
        usleep(50000);
        inf_fixture_restart(&fixture, NULL);
    }
    usleep(50000);
    atomic_store(&asker.stop, true);
    pthread_join(thread, NULL);
    cr_assert_eq(asker.err.code, INFERD_OK, "after %u: %s %s", asker.answered, asker.err.reason,
                 asker.err.text);
    cr_assert_gt(asker.answered, 3);
    cr_assert_geq(asker.statistics.reconnects, 3);
    cr_assert_eq(asker.statistics.succeeded, asker.answered);
    // Each answer is one request's, and each that was sent beyond those had been refused.
    cr_assert_eq(asker.statistics.requests, asker.statistics.succeeded + asker.statistics.failed);
    cr_assert_leq(asker.statistics.failed, asker.statistics.sent_again);
    inf_fixture_stop(&fixture);
}

Test(libinferd, connects_anew_with_its_memory_and_without_its_sessions)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    struct inferd_error err;
    inferd_memory *memory = NULL;
    uint64_t epochs[2][2];
    cr_assert_eq(inferd_memory_alloc(client, 64, &memory, &err), INFERD_OK);
    inferd_session *session = open_session(client, 2);
    step(client, session, 1);
    inferd_epoch(client, epochs[0]);
    inf_fixture_restart(&fixture, NULL);

    // Nothing is sent again that nobody asked to be.
    float ones[4] = {1, 1, 1, 1};
    inferd_tensor inputs[] = {rows_tensor("a", 1, ones), rows_tensor("b", 1, ones)};
    inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2};
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_UNAVAILABLE);
    cr_assert_eq(inferd_reconnect(client, 30000, &err), INFERD_OK, "%s", err.text);
    inferd_epoch(client, epochs[1]);
    cr_assert(epochs[0][0] != epochs[1][0] || epochs[0][1] != epochs[1][1]);

    inferd_tensor y = rows_tensor("y", 1, inferd_memory_data(memory));
    y.memory = memory;
    request.outputs = &y;
    request.output_count = 1;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq(((const float *)inferd_memory_data(memory))[3], 2.0f);
    inferd_result_free(result);
    request.session = session;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_ABORTED);
    cr_assert_str_eq(err.reason, "SESSION_LOST");
    inferd_session_close(session);
    inferd_memory_free(memory);

    // Without a daemon it says so when the time is over.
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    cr_assert_eq(inferd_reconnect(client, 100, &err), INFERD_UNAVAILABLE);
    inferd_set_retry(client, 100);
    request.session = NULL;
    request.output_count = 0;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_UNAVAILABLE);
    inferd_close(client);
    inf_fixture_remove(&fixture);
}

// --- an event loop of one's own, while daemons come and go ---

#define ASYNC_WINDOW 8
#define ASYNC_ROWS   5000 // of every fourth request: its inputs go through shared memory

struct looper {
    char socket[96];
    atomic_bool stop;
    unsigned sent, in_flight, answered;
    inferd_statistics statistics;
    struct inferd_error err; // the first that came
};

static void on_sum(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct looper *looper = context;
    looper->in_flight--;
    if (result == NULL && looper->err.code == INFERD_OK)
        looper->err = *err;
    if (result == NULL)
        return;
    const inferd_tensor *y = inferd_result_find(result, "y");
    const float *sums = y->data;
    // The first element numbers the request, the last tells that all of it arrived.
    if (sums[y->size / sizeof(float) - 1] == sums[0] + 1)
        looper->answered++;
    inferd_result_free(result);
}

static void send_sum(inferd_client *client, struct looper *looper)
{
    static float a[ASYNC_ROWS * 4];
    static float b[ASYNC_ROWS * 4];
    int64_t rows = looper->sent % 4 == 0 ? ASYNC_ROWS : 1;
    float number = (float)(looper->sent % 1000);
    a[0] = number;
    b[0] = 0;
    a[rows * 4 - 1] = number;
    b[rows * 4 - 1] = 1;
    const inferd_tensor inputs[] = {rows_tensor("a", rows, a), rows_tensor("b", rows, b)};
    const inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2};
    struct inferd_error err;
    if (inferd_infer_async(client, &request, on_sum, looper, NULL, &err) == INFERD_OK) {
        looper->sent++;
        looper->in_flight++;
    } else if (looper->err.code == INFERD_OK) {
        looper->err = err;
    }
}

static void *loop_on(void *context)
{
    struct looper *looper = context;
    inferd_client *client = NULL;
    if (inferd_connect(&client, looper->socket, &looper->err) != INFERD_OK)
        return NULL;
    inferd_set_retry(client, 60000);
    while (!atomic_load(&looper->stop) && looper->err.code == INFERD_OK) {
        while (looper->in_flight < ASYNC_WINDOW && looper->err.code == INFERD_OK)
            send_sum(client, looper);
        int timeout = inferd_timeout(client);
        struct pollfd waited = {.fd = inferd_fd(client), .events = inferd_events(client)};
        (void)poll(&waited, 1, timeout < 0 || timeout > 100 ? 100 : timeout);
        (void)inferd_process(client, NULL);
    }
    struct inferd_error err;
    (void)inferd_wait(client, &err);
    inferd_client_statistics(client, &looper->statistics);
    inferd_close(client);
    return NULL;
}

Test(libinferd, sends_asynchronous_requests_again_while_daemons_are_replaced, .timeout = 120)
{
    struct inf_fixture fixture;
    struct looper looper = {.err = {.code = INFERD_OK}};
    pthread_t thread;
    inf_fixture_start(&fixture, NULL);
    snprintf(looper.socket, sizeof looper.socket, "%s", fixture.socket);
    cr_assert_eq(pthread_create(&thread, NULL, loop_on, &looper), 0);
    for (int i = 0; i < 3; i++) {
        usleep(50000);
        inf_fixture_restart(&fixture, NULL);
    }
    usleep(50000);
    atomic_store(&looper.stop, true);
    pthread_join(thread, NULL);
    cr_assert_eq(looper.err.code, INFERD_OK, "after %u: %s %s", looper.answered, looper.err.reason,
                 looper.err.text);
    cr_assert_eq(looper.answered, looper.sent);
    cr_assert_eq(looper.in_flight, 0);
    cr_assert_gt(looper.answered, 3);
    cr_assert_geq(looper.statistics.reconnects, 3);
    cr_assert_eq(looper.statistics.requests, looper.sent);
    cr_assert_eq(looper.statistics.succeeded, looper.sent);
    inf_fixture_stop(&fixture);
}

Test(libinferd, ends_what_waits_for_a_daemon_by_time_by_cancel_and_by_closing)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    struct inferd_error err;
    while (inferd_process(client, &err) == INFERD_OK) // until it has read of the end
        usleep(1000);
    inferd_set_retry(client, 60000);
    float ones[4] = {1, 1, 1, 1};
    const inferd_tensor inputs[] = {rows_tensor("a", 1, ones), rows_tensor("b", 1, ones)};
    inferd_request request = {
        .model = "add", .inputs = inputs, .input_count = 2, .timeout_ms = 100};
    struct looper late = {0};
    struct looper dropped = {0};
    struct looper closed = {0};
    uint64_t stream = 0;
    late.in_flight = dropped.in_flight = closed.in_flight = 1;
    cr_assert_eq(inferd_infer_async(client, &request, on_sum, &late, NULL, &err), INFERD_OK);
    request.timeout_ms = 0;
    cr_assert_eq(inferd_infer_async(client, &request, on_sum, &dropped, &stream, &err), INFERD_OK);
    cr_assert_eq(inferd_cancel(client, stream, &err), INFERD_OK);
    cr_assert_eq(inferd_cancel(client, stream, &err), INFERD_NOT_FOUND);
    cr_assert_eq(inferd_wait(client, &err), INFERD_UNAVAILABLE);
    cr_assert_eq(late.in_flight + dropped.in_flight, 0);
    cr_assert_eq(late.err.code, INFERD_UNAVAILABLE);
    cr_assert_eq(dropped.err.code, INFERD_CANCELLED);
    cr_assert_eq(inferd_infer_async(client, &request, on_sum, &closed, NULL, &err), INFERD_OK);
    cr_assert_geq(inferd_timeout(client), 0);
    inferd_close(client);
    cr_assert_eq(closed.in_flight, 1); // callbacks of a closed client are not called
    inf_fixture_remove(&fixture);
}

// --- what the library knows of models ---

static uint64_t accepted(inferd_client *client)
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

Test(libinferd, tells_what_does_not_fit_a_model_before_it_is_sent)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    float ones[8] = {1, 1, 1, 1};
    inferd_tensor inputs[] = {rows_tensor("a", 1, ones), rows_tensor("b", 1, ones),
                              rows_tensor("c", 1, ones)};
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
    inputs[1] = rows_tensor("b", 1, ones);
    inputs[0].dtype = INFERD_INT32;
    check_refused(client, &request, "DTYPE_MISMATCH",
                  (const char *[]){"'a'", "INT32", "FP32", NULL});

    // What is known is believed for a second, which may pass here: once it has to be seen.
    bool local = false;
    for (int i = 0; i < 100 && !local; i++) {
        inferd_model_info *info;
        uint64_t before = accepted(client);
        cr_assert_eq(inferd_model_describe(client, "add", NULL, &info, &err), INFERD_OK);
        inferd_model_info_free(info);
        cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_INVALID_ARGUMENT);
        cr_assert_str_eq(err.reason, "DTYPE_MISMATCH");
        local = accepted(client) == before + 2; // the description, and this question
    }
    cr_assert(local, "each was sent");

    // Another start of the daemon may have another model: it is the daemon that refuses.
    inf_fixture_restart(&fixture, NULL);
    cr_assert_eq(inferd_reconnect(client, 30000, &err), INFERD_OK, "%s", err.text);
    uint64_t before = accepted(client);
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_str_eq(err.reason, "DTYPE_MISMATCH");
    cr_assert_eq(accepted(client), before + 2);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd, takes_large_answers_at_once_in_pieces)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    inferd_statistics statistics;
    check_add(client, 300001);
    inferd_client_statistics(client, &statistics);
    cr_assert_eq(statistics.sent_again, 0);
    cr_assert_gt(statistics.bytes_received, 300001 * 16);
    uint64_t received = statistics.bytes_received;
    check_add(client, 300001); // there is room in shared memory now
    inferd_client_statistics(client, &statistics);
    cr_assert_eq(statistics.sent_again, 0);
    cr_assert_lt(statistics.bytes_received - received, 10000);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}
