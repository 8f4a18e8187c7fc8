// SPDX-License-Identifier: Apache-2.0
// Tests of clients with a background thread of the library that several threads of the caller
// share.
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/library.h"

#define ASKERS       4
#define ASKED        100
#define CREDIT       4
#define WITHIN_S     60
#define SUM_ELEMENTS 4

static inferd_client *start_client(struct inf_fixture *fixture)
{
    struct inferd_error err;
    inf_fixture_start(fixture, NULL);
    inferd_client *client = inf_library_connect(fixture->socket);
    cr_assert_eq(inferd_start_thread(client, &err), INFERD_OK, "%s", err.text);
    return client;
}

// Requests for sums that a test has sent asynchronously, and what their callbacks observed.
struct sums {
    inferd_client *client;
    sem_t done;
    atomic_uint right, failed;
    atomic_int code; // error code of the last failed request
    pthread_t thread;
    atomic_bool elsewhere; // a callback ran on another thread than `thread`
    unsigned follow;       // number of blocking questions that callbacks still have to send
};

static void sums_init(struct sums *sums, inferd_client *client)
{
    *sums = (struct sums){.client = client};
    cr_assert_eq(sem_init(&sums->done, 0, 0), 0);
}

static void wait_for(struct sums *sums, unsigned count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WITHIN_S;
    for (unsigned i = 0; i < count; i++)
        cr_assert_eq(sem_timedwait(&sums->done, &until), 0, "after %u of %u", i, count);
}

static void on_sum(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct sums *sums = context;
    if (pthread_equal(pthread_self(), sums->thread))
        atomic_store(&sums->elsewhere, true);
    if (result == NULL) {
        atomic_store(&sums->code, err->code);
        atomic_fetch_add(&sums->failed, 1);
    } else if (((const float *)inferd_result_find(result, "y")->data)[0] == 3.0f) {
        atomic_fetch_add(&sums->right, 1);
    }
    inferd_result_free(result);
    inferd_server_status status;
    if (sums->follow > 0 && sums->follow-- > 0 &&
        inferd_status(sums->client, &status, NULL) == INFERD_OK)
        atomic_fetch_add(&sums->right, 1);
    sem_post(&sums->done);
}

static int send_sum(inferd_client *client, inferd_callback callback, void *context)
{
    float a[SUM_ELEMENTS] = {1, 1, 1, 1};
    float b[SUM_ELEMENTS] = {2, 2, 2, 2};
    const inferd_tensor inputs[] = {inf_library_rows("a", 1, a), inf_library_rows("b", 1, b)};
    const inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2};
    return inferd_infer_async(client, &request, callback, context, NULL, NULL);
}

Test(libinferd_thread, brings_answers_to_who_does_not_poll)
{
    struct inf_fixture fixture;
    struct sums sums;
    struct inferd_error err;
    inferd_client *client = start_client(&fixture);
    sums_init(&sums, client);
    sums.thread = pthread_self();
    sums.follow = 3;
    for (int i = 0; i < ASKED; i++) {
        while (send_sum(client, on_sum, &sums) != INFERD_OK)
            cr_assert_eq(inferd_wait_credit(client, 64, 30000, &err), INFERD_OK, "%s", err.text);
    }
    wait_for(&sums, ASKED);
    cr_assert_eq(atomic_load(&sums.failed), 0);
    cr_assert_eq(atomic_load(&sums.right), ASKED + 3);
    cr_assert_not(atomic_load(&sums.elsewhere));
    // The background thread polls the socket, so inferd_fd() gives the caller no descriptor to
    // poll.
    cr_assert_eq(inferd_fd(client), -1);
    cr_assert_eq(inferd_timeout(client), -1);
    cr_assert_eq(inferd_process(client, &err), INFERD_OK);
    cr_assert_eq(inferd_start_thread(client, &err), INFERD_FAILED_PRECONDITION);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

static void *send_requests(void *context)
{
    inferd_client *client = context;
    inferd_memory *memory = NULL;
    for (int i = 0; i < ASKED; i++) {
        inf_library_add(client, i % 10 == 0 ? 3000 : 2);
        cr_assert_eq(inferd_memory_alloc(client, 100000, &memory, NULL), INFERD_OK);
        ((char *)inferd_memory_data(memory))[99999] = 1;
        inferd_memory_free(memory);
    }
    return NULL;
}

Test(libinferd_thread, lets_threads_share_a_client)
{
    struct inf_fixture fixture;
    pthread_t threads[ASKERS];
    inferd_statistics statistics;
    inferd_client *client = start_client(&fixture);
    for (int i = 0; i < ASKERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, send_requests, client), 0);
    for (int i = 0; i < ASKERS; i++)
        pthread_join(threads[i], NULL);
    inferd_client_statistics(client, &statistics);
    cr_assert_eq(statistics.requests, ASKERS * ASKED);
    cr_assert_eq(statistics.succeeded, ASKERS * ASKED);
    cr_assert_eq(statistics.in_flight, 0);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(libinferd_thread, waits_for_credit_and_for_all_answers)
{
    struct inf_fixture fixture;
    struct sums sums;
    struct inferd_error err;
    inferd_client *client = start_client(&fixture);
    inferd_tensor input;
    float element = 1.0f;
    const inferd_request slow = inf_library_slow(&input, &element);
    sums_init(&sums, client);
    inferd_client *admin = inf_library_connect(fixture.admin_socket);
    cr_assert_eq(inferd_flag_set(admin, "requests_per_connection_max", "4", &err), INFERD_OK);
    inferd_close(admin);
    // The daemon sends the changed credit before this answer, so the client has the credit now.
    inf_library_add(client, 1);
    uint64_t streams[CREDIT];
    for (int i = 0; i < CREDIT; i++)
        cr_assert_eq(inferd_infer_async(client, &slow, on_sum, &sums, &streams[i], &err), INFERD_OK,
                     "%s", err.text);
    cr_assert_eq(inferd_wait_credit(client, 0, 10, &err), INFERD_RESOURCE_EXHAUSTED);
    cr_assert_str_eq(err.reason, "QUOTA_REQUESTS");
    for (int i = 0; i < CREDIT; i++)
        cr_assert_eq(inferd_cancel(client, streams[i], &err), INFERD_OK);
    cr_assert_eq(inferd_wait_credit(client, 0, 30000, &err), INFERD_OK, "%s", err.text);
    cr_assert_eq(send_sum(client, on_sum, &sums), INFERD_OK);
    // inferd_wait() must also wait until all callbacks have returned.
    cr_assert_eq(inferd_wait(client, &err), INFERD_OK);
    cr_assert_eq(atomic_load(&sums.right), 1);
    cr_assert_eq(atomic_load(&sums.failed), CREDIT);
    cr_assert_eq(atomic_load(&sums.code), INFERD_CANCELLED);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// --- closing clients that other threads use ---

static void *wait_long(void *context)
{
    inferd_tensor input;
    float element = 1.0f;
    const inferd_request slow = inf_library_slow(&input, &element);
    inferd_result *result = NULL;
    int code = inferd_infer(context, &slow, &result, NULL);
    return (void *)(intptr_t)code;
}

static void wait_until_in_flight(inferd_client *client, unsigned count)
{
    inferd_statistics statistics = {0};
    while (statistics.in_flight < count) {
        usleep(1000);
        inferd_client_statistics(client, &statistics);
    }
}

Test(libinferd_thread, ends_calls_of_others_when_one_closes_the_client)
{
    struct inf_fixture fixture;
    struct sums sums;
    pthread_t threads[ASKERS];
    inferd_client *client = start_client(&fixture);
    sums_init(&sums, client);
    for (int i = 0; i < ASKERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, wait_long, client), 0);
    wait_until_in_flight(client, ASKERS);
    inferd_tensor input;
    float element = 1.0f;
    const inferd_request slow = inf_library_slow(&input, &element);
    cr_assert_eq(inferd_infer_async(client, &slow, on_sum, &sums, NULL, NULL), INFERD_OK);
    inferd_close(client);
    for (int i = 0; i < ASKERS; i++) {
        void *code = NULL;
        pthread_join(threads[i], &code);
        cr_assert_eq((intptr_t)code, INFERD_CANCELLED);
    }
    cr_assert_eq(atomic_load(&sums.failed), 0); // the callback of the request is not called
    inf_fixture_stop(&fixture);
}

static void close_then_post(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct sums *sums = context;
    (void)err;
    inferd_result_free(result);
    inferd_close(sums->client);
    sem_post(&sums->done);
}

Test(libinferd_thread, may_be_closed_by_a_callback)
{
    struct inf_fixture fixture;
    struct sums sums;
    pthread_t thread;
    void *code = NULL;
    inferd_client *client = start_client(&fixture);
    sums_init(&sums, client);
    cr_assert_eq(pthread_create(&thread, NULL, wait_long, client), 0);
    wait_until_in_flight(client, 1);
    cr_assert_eq(send_sum(client, close_then_post, &sums), INFERD_OK);
    wait_for(&sums, 1);
    pthread_join(thread, &code);
    cr_assert_eq((intptr_t)code, INFERD_CANCELLED);
    inf_fixture_stop(&fixture); // all clients are closed by this time
}

static void *reconnect_client(void *context)
{
    struct inferd_error err;
    cr_assert_eq(inferd_reconnect(context, 30000, &err), INFERD_OK, "%s", err.text);
    return NULL;
}

Test(libinferd_thread, connects_anew_by_itself_and_when_told)
{
    struct inf_fixture fixture;
    struct sums sums;
    pthread_t thread;
    inferd_client *client = start_client(&fixture);
    sums_init(&sums, client);
    inf_library_add(client, 5000);
    inferd_set_retry(client, 60000);
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    cr_assert_eq(send_sum(client, on_sum, &sums), INFERD_OK); // no daemon is running at this point
    inf_fixture_remove(&fixture);
    inf_fixture_start(&fixture, NULL);
    inferd_close(client);

    client = inf_library_connect(fixture.socket);
    cr_assert_eq(inferd_start_thread(client, NULL), INFERD_OK);
    inferd_set_retry(client, 60000);
    for (int i = 0; i < 2; i++) {
        inf_fixture_restart(&fixture, NULL);
        cr_assert_eq(send_sum(client, on_sum, &sums), INFERD_OK);
    }
    wait_for(&sums, 2);
    cr_assert_eq(atomic_load(&sums.right), 2);
    inf_fixture_restart(&fixture, NULL);
    cr_assert_eq(pthread_create(&thread, NULL, reconnect_client, client), 0);
    pthread_join(thread, NULL);
    inf_library_add(client, 5000);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}
