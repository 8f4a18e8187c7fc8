// SPDX-License-Identifier: Apache-2.0
// Tests of a client without a daemon, after an invalid greeting, and with invalid requests.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/daemon/client_case.h"

// --- connecting to a daemon ---

Test(client_connect, says_that_no_daemon_listens)
{
    struct inferd_error err;
    inferd_client *client = (inferd_client *)&err;
    cr_assert_eq(inferd_connect(&client, "/nonexistent/inferd.sock", &err), INFERD_UNAVAILABLE);
    cr_assert_str_eq(err.text, "no daemon listens on '/nonexistent/inferd.sock'");
    cr_assert_null(client);
    cr_assert_eq(inferd_connect(&client, "/dev/null", NULL), INFERD_UNAVAILABLE);
    char path[200];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    cr_assert_eq(inferd_connect(&client, path, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_eq(inferd_connect(&client, "", &err), INFERD_INVALID_ARGUMENT);
    cr_assert_eq(inferd_connect(NULL, path, &err), INFERD_INVALID_ARGUMENT);
}

Test(client_connect, takes_the_path_from_the_environment)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    setenv("INFERD_SOCKET", fake_daemon_path(daemon), 1);
    inferd_client *client = NULL;
    cr_assert_eq(inferd_connect(&client, NULL, NULL), INFERD_OK);
    inferd_close(client);
    inferd_close(NULL);
    fake_daemon_stop(daemon);
}

enum greeting {
    HANG_UP,
    BE_HTTP,
    BE_NEWER,
    REFUSE,
    ANSWER_FIRST,
    HALF_AN_ACK
};

static void greet_wrongly(struct fake_daemon *daemon, void *context)
{
    struct fake_frame frame;
    if (*(enum greeting *)context != HANG_UP)
        fake_read(daemon, &frame);
    struct inf_hello_ack ack = {.major = 2, .minor = 5, .credit_requests = 1};
    struct inf_status status = {.code = INF_EXHAUSTED,
                                .reason = INF_REASON_QUOTA_REQUESTS,
                                .message = "1024 connections are open, the limit"};
    switch (*(enum greeting *)context) {
    case HANG_UP:
        return;
    case BE_HTTP:
        fake_send_bytes(daemon, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", 48);
        break;
    case BE_NEWER:
        fake_send(daemon, (struct inf_frame_header){.type = INF_FRAME_HELLO_ACK},
                  &(union inf_message){.hello_ack = ack}, INF_MESSAGE_HELLO_ACK, NULL, 0);
        break;
    case REFUSE:
        fake_send(daemon,
                  (struct inf_frame_header){.type = INF_FRAME_ERROR, .flags = INF_FRAME_FLAG_ERROR},
                  &(union inf_message){.status = status}, INF_MESSAGE_STATUS, NULL, 0);
        return;
    case ANSWER_FIRST:
        fake_send(daemon, (struct inf_frame_header){.type = INF_FRAME_PING}, NULL,
                  INF_MESSAGE_EMPTY, NULL, 0);
        break;
    case HALF_AN_ACK:
        fake_send_bytes(daemon, "\x20\0\0\0\0\0\0\0\0\0", 10);
        return;
    }
    while (fake_read(daemon, &frame))
        ;
}

static void check_greeting(enum greeting greeting, int code, const char *reason, const char *text)
{
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.script = greet_wrongly, .context = &greeting});
    struct inferd_error err;
    inferd_client *client = NULL;
    cr_expect_eq(inferd_connect(&client, fake_daemon_path(daemon), &err), code, "%s", err.text);
    cr_expect_str_eq(err.reason, reason);
    cr_expect(strstr(err.text, text) != NULL, "'%s' is not in '%s'", text, err.text);
    cr_expect(strstr(err.text, fake_daemon_path(daemon)) != NULL, "%s", err.text);
    cr_assert_null(client);
    fake_daemon_stop(daemon);
}

Test(client_connect, explains_a_greeting_that_fails)
{
    check_greeting(HANG_UP, INFERD_UNAVAILABLE, "DISCONNECT", "closed the connection");
    check_greeting(BE_HTTP, INFERD_INVALID_ARGUMENT, "BAD_FRAME", "frame");
    check_greeting(BE_NEWER, INFERD_FAILED_PRECONDITION, "FEATURE",
                   "the daemon speaks protocol 2.5, this library 1.0");
    check_greeting(REFUSE, INFERD_RESOURCE_EXHAUSTED, "QUOTA_REQUESTS", "1024 connections");
    check_greeting(ANSWER_FIRST, INFERD_INTERNAL, "BAD_FRAME", "PING before HELLO_ACK");
    check_greeting(HALF_AN_ACK, INFERD_UNAVAILABLE, "DISCONNECT", "closed the connection");
}

// --- requests that the library refuses as invalid ---

static void check_refused_here(inferd_client *client, const inferd_request *request, int code,
                               const char *reason, const char *text)
{
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_expect_eq(inferd_infer(client, request, &result, &err), code, "%s", err.text);
    cr_expect_str_eq(err.reason, reason, "%s: %s", err.reason, err.text);
    cr_expect(strstr(err.text, text) != NULL, "'%s' is not in '%s'", text, err.text);
    cr_expect_null(result);
}

Test(client_request, is_checked_before_it_is_sent)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    inferd_client *client = client_case_connect(daemon);
    int32_t count = 1;
    const int invalid = INFERD_INVALID_ARGUMENT;
    inferd_tensor in = client_case_tensor(&count);
    inferd_request request = {.model = "grow", .inputs = &in, .input_count = 1};
    inferd_request bad = request;
    bad.model = "../etc";
    check_refused_here(client, &bad, invalid, "BAD_PARAMETER", "'../etc' is no model's name");
    bad.model = NULL;
    check_refused_here(client, &bad, invalid, "BAD_PARAMETER", "no model's name");
    bad = request;
    bad.version = "123456789012345678901234";
    check_refused_here(client, &bad, invalid, "BAD_PARAMETER", "version");
    bad = request;
    bad.input_count = 65;
    check_refused_here(client, &bad, invalid, "BAD_PARAMETER", "64");
    bad = request;
    bad.inputs = NULL;
    check_refused_here(client, &bad, invalid, "BAD_PARAMETER", "inputs");
    in.name = "";
    check_refused_here(client, &request, invalid, "BAD_PARAMETER", "input 0 has no name");
    in = client_case_tensor(&count);
    in.size = 5;
    check_refused_here(client, &request, invalid, "SIZE_MISMATCH",
                       "input 'n': 5 bytes were given; INT32 [1] has 4");
    in = client_case_tensor(&count);
    in.rank = 9;
    check_refused_here(client, &request, invalid, "BAD_PARAMETER", "rank 9");
    in.rank = -1;
    check_refused_here(client, &request, invalid, "BAD_PARAMETER", "rank -1");
    in = client_case_tensor(&count);
    in.dtype = (inferd_dtype)99;
    check_refused_here(client, &request, invalid, "BAD_PARAMETER", "NONE [1]");
    in = client_case_tensor(&count);
    in.shape[0] = -1;
    check_refused_here(client, &request, invalid, "BAD_PARAMETER", "INT32 [?]");
    in = client_case_tensor(&count);
    in.rank = 3;
    in.shape[0] = in.shape[1] = in.shape[2] = INT64_MAX;
    check_refused_here(client, &request, invalid, "BAD_PARAMETER", "no tensor can be");
    in = client_case_tensor(NULL);
    check_refused_here(client, &request, invalid, "BAD_PARAMETER", "input 'n' has no data");
    cr_assert_eq(fake_daemon_counts(daemon)->requests, 0u);
    cr_assert_eq(client_case_ask(client, 0, NULL), INFERD_OK, "the client goes on");
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client_request, is_checked_against_the_memory_it_names)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){.connections = 1});
    inferd_client *client = client_case_connect(daemon);
    inferd_memory *memory = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_memory_alloc(client, 0, &memory, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_eq(inferd_memory_alloc(client, SIZE_MAX, &memory, &err), INFERD_INVALID_ARGUMENT);
    cr_assert_eq(inferd_memory_alloc(client, 100, &memory, &err), INFERD_OK);
    uint8_t *data = inferd_memory_data(memory);
    inferd_tensor in = {.name = "in", .dtype = INFERD_UINT8, .rank = 1, .memory = memory};
    inferd_request request = {.model = "echo", .inputs = &in, .input_count = 1};
    in.data = data;
    in.size = in.shape[0] = 101;
    check_refused_here(client, &request, INFERD_INVALID_ARGUMENT, "REGION_BOUNDS", "101 bytes");
    in.data = data - 64;
    in.size = in.shape[0] = 64;
    check_refused_here(client, &request, INFERD_INVALID_ARGUMENT, "REGION_BOUNDS", "64 bytes");
    in.data = data + 8;
    check_refused_here(client, &request, INFERD_INVALID_ARGUMENT, "BAD_PARAMETER",
                       "multiple of 64");
    in.data = data;
    inferd_tensor out = {.name = "out", .data = data, .size = 64};
    request.outputs = &out;
    request.output_count = 1;
    check_refused_here(client, &request, INFERD_INVALID_ARGUMENT, "BAD_PARAMETER",
                       "output 'out' has data but no memory");
    cr_assert_eq(fake_daemon_counts(daemon)->requests, 0u);
    inferd_memory_free(memory);
    inferd_memory_free(NULL);
    inferd_close(client);
    fake_daemon_stop(daemon);
}
