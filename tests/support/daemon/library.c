// SPDX-License-Identifier: Apache-2.0
// Calls of libinferd that several tests of the daemon use.
#include "tests/support/daemon/library.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

inferd_client *inf_library_connect(const char *path)
{
    struct inferd_error err;
    inferd_client *client = NULL;
    cr_assert_eq(inferd_connect(&client, path, &err), INFERD_OK, "%s", err.text);
    return client;
}

inferd_tensor inf_library_rows(const char *name, int64_t rows, float *elements)
{
    return (inferd_tensor){.name = name,
                           .dtype = INFERD_FP32,
                           .rank = 2,
                           .shape = {rows, 4},
                           .data = elements,
                           .size = (size_t)rows * 4 * sizeof(float)};
}

void inf_library_add(inferd_client *client, int64_t rows)
{
    size_t count = (size_t)rows * 4;
    float *a = malloc((count + 1) * sizeof *a);
    float *b = malloc((count + 1) * sizeof *b);
    for (size_t i = 0; i < count; i++) {
        a[i] = (float)(i % 1000);
        b[i] = (float)(2 * (i % 777));
    }
    inferd_tensor inputs[] = {inf_library_rows("a", rows, a), inf_library_rows("b", rows, b)};
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

inferd_request inf_library_slow(inferd_tensor *input, float *element)
{
    *input = (inferd_tensor){.name = "x",
                             .dtype = INFERD_FP32,
                             .rank = 2,
                             .shape = {1, 1},
                             .data = element,
                             .size = sizeof *element};
    return (inferd_request){.model = "slow", .device = "ref", .inputs = input, .input_count = 1};
}

void inf_library_check_failure(inferd_client *client, const inferd_request *request, int code,
                               const char *reason)
{
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_expect_eq(inferd_infer(client, request, &result, &err), code, "%s", err.text);
    cr_expect_str_eq(err.reason, reason, "%s: %s", err.reason, err.text);
    cr_expect_null(result);
}

inferd_session *inf_library_session(inferd_client *client, int rank)
{
    const inferd_session_state state = {.output = "y", .input = "b", .rank = rank, .shape = {1, 4}};
    inferd_session *session = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_session_open(client, &state, 1, &session, &err), INFERD_OK, "%s", err.text);
    return session;
}

void inf_library_step(inferd_client *client, inferd_session *session, float sum)
{
    float ones[4] = {1, 1, 1, 1};
    const inferd_tensor a = inf_library_rows("a", 1, ones);
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
