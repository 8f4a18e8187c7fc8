// SPDX-License-Identifier: Apache-2.0
// A client that is connected to a fake daemon, for unit tests of libinferd.
#include "tests/support/daemon/client_case.h"

#include <criterion/criterion.h>

inferd_client *client_case_connect(struct fake_daemon *daemon)
{
    struct inferd_error err;
    inferd_client *client = NULL;
    int code = inferd_connect(&client, fake_daemon_path(daemon), &err);
    cr_assert_eq(code, INFERD_OK, "%s", err.text);
    return client;
}

inferd_tensor client_case_tensor(int32_t *count)
{
    return (inferd_tensor){.name = "n",
                           .dtype = INFERD_INT32,
                           .rank = 1,
                           .shape = {1},
                           .data = count,
                           .size = sizeof *count};
}

int client_case_ask(inferd_client *client, uint64_t timeout_ms, struct inferd_error *err)
{
    int32_t count = 7;
    inferd_tensor in = client_case_tensor(&count);
    inferd_request request = {
        .model = "grow", .inputs = &in, .input_count = 1, .timeout_ms = timeout_ms};
    inferd_result *result = NULL;
    int code = inferd_infer(client, &request, &result, err);
    cr_assert_eq(code == INFERD_OK, result != NULL);
    inferd_result_free(result);
    return code;
}

void client_case_count(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct client_answers *answers = context;
    answers->ok += result != NULL;
    answers->failed += result == NULL;
    answers->last = *err;
    inferd_result_free(result);
}

uint64_t client_case_start(inferd_client *client, struct client_answers *answers)
{
    int32_t count = 7;
    inferd_tensor in = client_case_tensor(&count);
    inferd_request request = {.model = "grow", .inputs = &in, .input_count = 1};
    uint64_t stream = 0;
    struct inferd_error err;
    int code = inferd_infer_async(client, &request, client_case_count, answers, &stream, &err);
    cr_assert_eq(code, INFERD_OK, "%s", err.text);
    return stream;
}
