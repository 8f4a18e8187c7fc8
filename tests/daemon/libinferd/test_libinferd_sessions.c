// SPDX-License-Identifier: Apache-2.0
// Tests of sessions with libinferd.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/library.h"

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
