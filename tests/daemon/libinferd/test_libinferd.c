// SPDX-License-Identifier: Apache-2.0
// Tests of libinferd with a real daemon.
#include <criterion/criterion.h>
#include <string.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/library.h"

#define REGIONS_MOST 1000 // more memory regions than the daemon allows for one connection

Test(libinferd, moves_tensors_of_any_size)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    // Numbers of rows, each of 16 bytes. They cover tensors in the frame, tensors at the threshold
    // of shared memory, tensors larger than one frame, very large tensors, and small tensors again.
    static const int64_t rows[] = {1, 3, 1023, 1024, 1025, 30000, 65537, 300001, 300002, 5, 65537};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        inf_library_add(client, rows[i]);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd, uses_memory_in_place)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
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
    inferd_tensor inputs[] = {inf_library_rows("a", ROWS, elements),
                              inf_library_rows("b", ROWS, elements + ROWS * 4)};
    inferd_tensor output = inf_library_rows("y", ROWS, elements + ROWS * 8);
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

Test(libinferd, tells_what_the_daemon_finds_wrong)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    float elements[8] = {0};
    inferd_tensor inputs[] = {inf_library_rows("a", 2, elements),
                              inf_library_rows("b", 2, elements)};
    inferd_tensor wanted = {.name = "nothing"};
    inferd_request good = {.model = "add", .inputs = inputs, .input_count = 2};
    inferd_request bad = good;
    bad.model = "absent";
    inf_library_check_failure(client, &bad, INFERD_NOT_FOUND, "MODEL_NOT_FOUND");
    bad = good;
    bad.input_count = 1;
    inf_library_check_failure(client, &bad, INFERD_INVALID_ARGUMENT, "TENSOR_MISSING");
    bad = good;
    bad.outputs = &wanted;
    bad.output_count = 1;
    inf_library_check_failure(client, &bad, INFERD_INVALID_ARGUMENT, "TENSOR_UNKNOWN");
    bad = good;
    bad.device = "gpu7";
    inferd_result *result = NULL;
    cr_assert_neq(inferd_infer(client, &bad, &result, NULL), INFERD_OK);
    inputs[0].dtype = INFERD_INT32;
    inf_library_check_failure(client, &good, INFERD_INVALID_ARGUMENT, "DTYPE_MISMATCH");
    inputs[0] = inf_library_rows("a", 2, elements);
    inputs[0].rank = 1;
    inputs[0].shape[0] = 8;
    inf_library_check_failure(client, &good, INFERD_INVALID_ARGUMENT, "SHAPE_MISMATCH");
    inf_library_add(client, 2);
    inferd_close(client);
    inf_fixture_stop(&fixture);
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
    inferd_client *client = inf_library_connect(fixture.socket);
    inferd_tensor input;
    float element = 1.0f;
    inferd_request request = inf_library_slow(&input, &element);
    request.timeout_ms = 50;
    inf_library_check_failure(client, &request, INFERD_DEADLINE_EXCEEDED, "IN_EXEC");
    request.timeout_ms = 0;
    struct ending hopeless = {.code = -1};
    struct ending ending = {.code = -1};
    uint64_t stream = 0;
    cr_assert_eq(inferd_infer_async(client, &request, note_ending, &ending, &stream, NULL),
                 INFERD_OK);
    inferd_set_queue_timeout(client, 30);
    cr_assert_eq(inferd_infer_async(client, &request, note_ending, &hopeless, NULL, NULL),
                 INFERD_OK);
    inferd_set_queue_timeout(client, 0);
    while (hopeless.count == 0)
        cr_assert_eq(inferd_process(client, NULL), INFERD_OK);
    cr_assert_eq(hopeless.code, INFERD_DEADLINE_EXCEEDED);
    cr_assert_eq(ending.count, 0u);
    cr_assert_eq(inferd_cancel(client, stream, NULL), INFERD_OK);
    cr_assert_eq(inferd_wait(client, NULL), INFERD_OK);
    cr_assert_eq(ending.code, INFERD_CANCELLED);
    cr_assert_eq(ending.count, 1u);
    inf_library_add(client, 7);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd, hears_that_the_daemon_ends)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    inf_library_add(client, 3);
    inf_fixture_stop(&fixture);
    struct inferd_error err;
    inferd_server_status status;
    cr_assert_eq(inferd_status(client, &status, &err), INFERD_UNAVAILABLE);
    inferd_close(client);
    client = NULL;
    cr_assert_eq(inferd_connect(&client, fixture.socket, &err), INFERD_UNAVAILABLE);
}

Test(libinferd, takes_large_answers_at_once_in_pieces)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    inferd_statistics statistics;
    inf_library_add(client, 300001);
    inferd_client_statistics(client, &statistics);
    cr_assert_eq(statistics.resent, 0);
    cr_assert_gt(statistics.bytes_received, 300001 * 16);
    uint64_t received = statistics.bytes_received;
    inf_library_add(client, 300001); // this answer comes through shared memory
    inferd_client_statistics(client, &statistics);
    cr_assert_eq(statistics.resent, 0);
    cr_assert_lt(statistics.bytes_received - received, 10000);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd, sends_large_inputs_in_pieces_where_there_is_no_shared_memory)
{
    struct inf_fixture fixture;
    inferd_memory *blocks[REGIONS_MOST] = {NULL};
    inferd_statistics before, after;
    size_t count = 0;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    while (count < REGIONS_MOST &&
           inferd_memory_alloc(client, 1, &blocks[count], NULL) == INFERD_OK)
        count++;
    cr_assert_lt(count, REGIONS_MOST);
    inferd_client_statistics(client, &before);
    inf_library_add(client, 200001); // two inputs and an output of 3.2 MB each
    inf_library_add(client, 65536);  // two inputs and an output of 1 MiB each
    inf_library_add(client, 1);
    inferd_client_statistics(client, &after);
    cr_assert_gt(after.bytes_sent - before.bytes_sent, 2 * (200001 + 65536) * 16);
    cr_assert_eq(after.succeeded - before.succeeded, 3);
    while (count > 0)
        inferd_memory_free(blocks[--count]);
    inf_library_add(client, 200001); // the daemon accepts regions again, so shared memory is used
    inferd_client_statistics(client, &before);
    cr_assert_lt(before.bytes_sent - after.bytes_sent, 100000);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}
