// SPDX-License-Identifier: Apache-2.0
// Tests of libinferd with a daemon that refuses shared memory, because another client of the same
// user holds all regions that a user may have.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/library.h"

#define ROWS  10000
#define BYTES ((size_t)ROWS * 16)

static struct inf_fixture fixture;
static inferd_client *holder, *client;

static void start_fixture(void)
{
    inferd_memory *memory;
    inf_fixture_start(&fixture, (const char *const[]){"--regions-per-uid-max=2", NULL});
    holder = inf_library_connect(fixture.socket);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(inferd_memory_alloc(holder, 1, &memory, NULL), INFERD_OK);
    inf_library_add(holder, 1); // after this answer, the daemon has registered the regions
    client = inf_library_connect(fixture.socket);
}

static void stop_fixture(void)
{
    inferd_close(client);
    inferd_close(holder);
    inf_fixture_stop(&fixture);
}

TestSuite(libinferd_fallback, .init = start_fixture, .fini = stop_fixture, .timeout = 120);

static inferd_statistics read_statistics(void)
{
    inferd_statistics now;
    inferd_client_statistics(client, &now);
    return now;
}

Test(libinferd_fallback, large_tensors_go_through_the_socket_and_are_counted)
{
    inf_library_add(client, 3);
    cr_expect_eq(read_statistics().without_shared_memory, 0u);
    // Send tensors of 16 KiB, which need shared memory. The daemon refuses the regions, and the
    // library sends the request again without them.
    inf_library_add(client, 1024);
    cr_expect_eq(read_statistics().without_shared_memory, 1u);
    cr_expect_eq(read_statistics().resent, 1u);
    // After the refusal, the library does not try shared memory for a short time. Tensors that are
    // larger than one frame are sent in several frames.
    static const int64_t rows[] = {1024, 65537, 200001, 1025};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        inf_library_add(client, rows[i]);
    cr_expect_eq(read_statistics().without_shared_memory, 5u);
    cr_expect_eq(read_statistics().resent, 1u);
    cr_expect_eq(read_statistics().failed, 0u);
    cr_expect_gt(read_statistics().bytes_sent, (uint64_t)2 * (65537 + 200001) * 16);
}

// Allocates shared memory of the client for a, b and y, fills a and b, and describes the three
// tensors.
static float *make_tensors(inferd_memory **memory, inferd_tensor inputs[2], inferd_tensor *output)
{
    struct inferd_error err;
    cr_assert_eq(inferd_memory_alloc(client, 3 * BYTES, memory, &err), INFERD_OK, "%s", err.text);
    float *elements = inferd_memory_data(*memory);
    for (int i = 0; i < ROWS * 4; i++) {
        elements[i] = (float)i;
        elements[ROWS * 4 + i] = 1.0f;
    }
    inputs[0] = inf_library_rows("a", ROWS, elements);
    inputs[1] = inf_library_rows("b", ROWS, elements + ROWS * 4);
    *output = inf_library_rows("y", ROWS, elements + ROWS * 8);
    inputs[0].memory = inputs[1].memory = output->memory = *memory;
    return elements + ROWS * 8;
}

Test(libinferd_fallback, memory_of_the_callers_works_all_the_same)
{
    struct inferd_error err;
    inferd_memory *memory;
    inferd_tensor inputs[2], output;
    float *y = make_tensors(&memory, inputs, &output);
    inferd_request request = {
        .model = "add", .inputs = inputs, .input_count = 2, .outputs = &output, .output_count = 1};
    // In the first iteration, the refusal arrives after the request was sent. In the second one,
    // the library knows about the refusal before it sends the request.
    for (uint32_t i = 1; i <= 2; i++) {
        inferd_result *result = NULL;
        memset(y, 0, BYTES);
        cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
        const inferd_tensor *got = inferd_result_output(result, 0);
        cr_expect_eq(got->data, (void *)y);
        cr_expect_eq(got->memory, memory);
        cr_expect_eq(got->size, BYTES);
        for (int k = 0; k < ROWS * 4; k++)
            cr_assert_eq(y[k], (float)k + 1.0f);
        inferd_result_free(result);
        cr_expect_eq(read_statistics().without_shared_memory, i);
        cr_expect_eq(read_statistics().resent, 1u);
    }
    // The daemon must not write beyond the memory that the output has.
    y[2 * 4] = -1;
    output.size = 2 * 16;
    inf_library_check_failure(client, &request, INFERD_OUT_OF_RANGE, "OUTPUT_TOO_SMALL");
    cr_expect_eq(y[2 * 4], -1.0f);
    inferd_memory_free(memory);
    inf_library_add(client, 2);
}

static void count_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    int *counts = context;
    counts[result != NULL ? 0 : 1]++;
    cr_expect_not_null(result, "%s", err->text);
    inferd_result_free(result);
}

Test(libinferd_fallback, requests_under_way_when_it_is_refused_are_all_answered)
{
    enum {
        COUNT = 20
    };
    int counts[2] = {0, 0};
    float *zeros = calloc(1, BYTES);
    inferd_tensor inputs[] = {inf_library_rows("a", ROWS, zeros),
                              inf_library_rows("b", ROWS, zeros)};
    inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2};
    for (int i = 0; i < COUNT; i++)
        cr_assert_eq(inferd_infer_async(client, &request, count_answer, counts, NULL, NULL),
                     INFERD_OK);
    cr_assert_eq(inferd_wait(client, NULL), INFERD_OK);
    cr_expect_eq(counts[0], COUNT);
    cr_expect_eq(read_statistics().without_shared_memory, (uint32_t)COUNT);
    free(zeros);
}

// Given a request with an order key whose memory is refused, expect a failure. The request cannot
// be sent again, because later requests may have run already.
Test(libinferd_fallback, a_request_with_an_order_fails_once_and_says_why)
{
    inferd_memory *memory;
    inferd_tensor inputs[2], output;
    make_tensors(&memory, inputs, &output);
    inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2, .order_key = 3};
    struct inferd_error err;
    inferd_result *result = NULL;
    cr_expect_eq(inferd_infer(client, &request, &result, &err), INFERD_RESOURCE_EXHAUSTED);
    cr_expect_not_null(strstr(err.text, "refused the shared memory"), "%s", err.text);
    cr_expect_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    inferd_result_free(result);
    inferd_memory_free(memory);
}

Test(libinferd_fallback, memory_is_shared_again_once_the_daemon_allows_it)
{
    inf_library_add(client, 1024);
    cr_expect_eq(read_statistics().without_shared_memory, 1u);
    inferd_close(holder);
    holder = NULL;
    uint32_t before = 1;
    for (int tries = 0; tries < 200; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        inf_library_add(client, 1024);
        if (read_statistics().without_shared_memory == before)
            return;
        before = read_statistics().without_shared_memory;
    }
    cr_assert_fail("it still goes through the socket");
}
