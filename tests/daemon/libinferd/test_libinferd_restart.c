// SPDX-License-Identifier: Apache-2.0
// Tests of libinferd while daemons are replaced.
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/library.h"

// A thread that sends requests through a client of its own, each one as soon as the last is
// answered.
struct asker {
    char socket[96];
    atomic_bool connected, stop;
    unsigned answered;
    inferd_statistics statistics;
    struct inferd_error err;
};

static bool ask_once(inferd_client *client, struct asker *asker, float number)
{
    float a[4] = {number, 0, 0, 0};
    float b[4] = {1, 0, 0, 0};
    const inferd_tensor inputs[] = {inf_library_rows("a", 1, a), inf_library_rows("b", 1, b)};
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
    int code = inferd_connect(&client, asker->socket, &asker->err);
    atomic_store(&asker->connected, true);
    if (code != INFERD_OK)
        return NULL;
    inferd_set_retry(client, 60000);
    while (!atomic_load(&asker->stop) && ask_once(client, asker, (float)(asker->answered % 1000)))
        asker->answered++;
    inferd_client_statistics(client, &asker->statistics);
    inferd_close(client);
    return NULL;
}

#define REPLACED 3

// Runs `work(worker)` in a thread, and replaces the daemon by a new one several times after the
// thread has set `connected`. Then sets `stop`, which ends the thread.
static void replace_daemons(struct inf_fixture *fixture, void *(*work)(void *), void *worker,
                            const atomic_bool *connected, atomic_bool *stop)
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, work, worker), 0);
    while (!atomic_load(connected))
        usleep(1000);
    for (int i = 0; i < REPLACED; i++) {
        usleep(50000);
        inf_fixture_restart(fixture, NULL);
    }
    usleep(50000);
    atomic_store(stop, true);
    pthread_join(thread, NULL);
}

Test(libinferd_restart, loses_no_request_and_sends_none_twice_while_daemons_are_replaced,
     .timeout = 120)
{
    struct inf_fixture fixture;
    struct asker asker = {.err = {.code = INFERD_OK}};
    inf_fixture_start(&fixture, NULL);
    snprintf(asker.socket, sizeof asker.socket, "%s", fixture.socket);
    replace_daemons(&fixture, ask_on, &asker, &asker.connected, &asker.stop);
    cr_assert_eq(asker.err.code, INFERD_OK, "after %u: %s %s", asker.answered, asker.err.reason,
                 asker.err.text);
    cr_assert_gt(asker.answered, 3);
    cr_assert_geq(asker.statistics.reconnects, REPLACED);
    cr_assert_eq(asker.statistics.succeeded, asker.answered);
    // Each request was answered once. A request counts as failed only after the library had sent it
    // again.
    cr_assert_eq(asker.statistics.requests, asker.statistics.succeeded + asker.statistics.failed);
    cr_assert_leq(asker.statistics.failed, asker.statistics.resent);
    inf_fixture_stop(&fixture);
}

Test(libinferd_restart, connects_anew_with_its_memory_and_without_its_sessions)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    struct inferd_error err;
    inferd_memory *memory = NULL;
    uint64_t epochs[2][2];
    cr_assert_eq(inferd_memory_alloc(client, 64, &memory, &err), INFERD_OK);
    inferd_session *session = inf_library_session(client, 2);
    inf_library_step(client, session, 1);
    inferd_epoch(client, epochs[0]);
    inf_fixture_restart(&fixture, NULL);

    // Without inferd_set_retry(), expect that requests are not sent again.
    float ones[4] = {1, 1, 1, 1};
    inferd_tensor inputs[] = {inf_library_rows("a", 1, ones), inf_library_rows("b", 1, ones)};
    inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2};
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_UNAVAILABLE);
    cr_assert_eq(inferd_reconnect(client, 30000, &err), INFERD_OK, "%s", err.text);
    inferd_epoch(client, epochs[1]);
    cr_assert(epochs[0][0] != epochs[1][0] || epochs[0][1] != epochs[1][1]);

    inferd_tensor y = inf_library_rows("y", 1, inferd_memory_data(memory));
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

    // Without a daemon, expect UNAVAILABLE when the time limit has passed.
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

// --- an application's event loop while daemons are replaced ---

#define ASYNC_WINDOW 8
#define ASYNC_ROWS   5000 // rows of every fourth request, whose inputs go through shared memory

struct looper {
    char socket[96];
    atomic_bool connected, stop;
    unsigned sent, in_flight, answered;
    inferd_statistics statistics;
    struct inferd_error err; // the first error that occurred
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
    // In an answer, the first element is the number of the request, and the last element shows that
    // the whole tensor arrived.
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
    const inferd_tensor inputs[] = {inf_library_rows("a", rows, a), inf_library_rows("b", rows, b)};
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
    int code = inferd_connect(&client, looper->socket, &looper->err);
    atomic_store(&looper->connected, true);
    if (code != INFERD_OK)
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

Test(libinferd_restart, sends_asynchronous_requests_again_while_daemons_are_replaced,
     .timeout = 120)
{
    struct inf_fixture fixture;
    struct looper looper = {.err = {.code = INFERD_OK}};
    inf_fixture_start(&fixture, NULL);
    snprintf(looper.socket, sizeof looper.socket, "%s", fixture.socket);
    replace_daemons(&fixture, loop_on, &looper, &looper.connected, &looper.stop);
    cr_assert_eq(looper.err.code, INFERD_OK, "after %u: %s %s", looper.answered, looper.err.reason,
                 looper.err.text);
    cr_assert_eq(looper.answered, looper.sent);
    cr_assert_eq(looper.in_flight, 0);
    cr_assert_gt(looper.answered, 3);
    cr_assert_geq(looper.statistics.reconnects, REPLACED);
    cr_assert_eq(looper.statistics.requests, looper.sent);
    cr_assert_eq(looper.statistics.succeeded, looper.sent);
    inf_fixture_stop(&fixture);
}

Test(libinferd_restart, ends_what_waits_for_a_daemon_by_time_by_cancel_and_by_closing)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = inf_library_connect(fixture.socket);
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    struct inferd_error err;
    // Wait until the client has noticed that the daemon closed the connection.
    while (inferd_process(client, &err) == INFERD_OK)
        usleep(1000);
    inferd_set_retry(client, 60000);
    float ones[4] = {1, 1, 1, 1};
    const inferd_tensor inputs[] = {inf_library_rows("a", 1, ones), inf_library_rows("b", 1, ones)};
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
    cr_assert_eq(closed.in_flight, 1); // closing the client does not call the callback
    inf_fixture_remove(&fixture);
}
