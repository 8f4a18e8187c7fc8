// SPDX-License-Identifier: Apache-2.0
// Many clients that send requests at the same time, each on its own thread.
#include "tests/support/daemon/crowd.h"

#include <criterion/criterion.h>
#include <time.h>

#include "client/inferd.h"

static void sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

static void ask_once(struct inf_crowd *crowd, inferd_client *client, const inferd_request *request)
{
    struct inferd_error err;
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(client, request, &result, &err), 0, "%s", err.text);
    const float *sum = inferd_result_output(result, 0)->data;
    for (int i = 0; i < 4; i++)
        cr_assert_eq(sum[i], (float)(3 * (i + 1)));
    cr_assert_str_eq(inferd_result_precision(result), "fp32");
    cr_assert_str_not_empty(inferd_result_device(result));
    atomic_fetch_add(&crowd->answers, 1);
    inferd_result_free(result);
}

static void *ask_on(void *context)
{
    struct inf_crowd *crowd = context;
    struct inferd_error err;
    inferd_client *client;
    float a[] = {1, 2, 3, 4}, b[] = {2, 4, 6, 8};
    const inferd_tensor inputs[] = {
        {.name = "a", .dtype = INFERD_FP32, .rank = 2, .shape = {1, 4}, .data = a, .size = 16},
        {.name = "b", .dtype = INFERD_FP32, .rank = 2, .shape = {1, 4}, .data = b, .size = 16}};
    const inferd_request request = {.model = "add", .inputs = inputs, .input_count = 2};
    cr_assert_eq(inferd_connect(&client, crowd->socket, &err), 0, "%s", err.text);
    while (!atomic_load(&crowd->stop)) {
        ask_once(crowd, client, &request);
        sleep_ms(crowd->pause_ms);
    }
    inferd_close(client);
    return NULL;
}

void inf_crowd_start(struct inf_crowd *crowd, const char *socket, unsigned pause_ms)
{
    *crowd = (struct inf_crowd){.socket = socket, .pause_ms = pause_ms};
    cr_assert_eq(pthread_create(&crowd->thread, NULL, ask_on, crowd), 0);
}

void inf_crowd_await(struct inf_crowd *crowd, unsigned long count)
{
    unsigned long seen = atomic_load(&crowd->answers);
    for (int tries = 0; atomic_load(&crowd->answers) < seen + count; tries++) {
        cr_assert_lt(tries, 20000, "no answer comes");
        sleep_ms(1);
    }
}

void inf_crowd_stop(struct inf_crowd *crowd)
{
    atomic_store(&crowd->stop, true);
    cr_assert_eq(pthread_join(crowd->thread, NULL), 0);
}
