// SPDX-License-Identifier: Apache-2.0
// Loads that do not end: the time limit, an unload and SIGTERM cancel them, and nothing waits for
// their end.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/sanitized.h"

// Number of products in a model whose first run takes minutes on the reference device.
#define ENDLESS_PRODUCTS 20000

// Time in which a cancelled load must end. Sanitizers make the steps of a load slower.
#define END_MS_MAX (INF_TESTS_SANITIZED ? 20000 : 3000)

static struct inf_fixture fixture;
static struct inf_raw admin;

static void start_server(void)
{
    char model[128];
    char version[160];
    inf_fixture_start(&fixture, (const char *const[]){"--backends=ref", NULL});
    inf_raw_open(&admin, fixture.admin_socket);
    snprintf(model, sizeof model, "%s/endless", fixture.repository);
    snprintf(version, sizeof version, "%s/1", model);
    cr_assert_eq(mkdir(model, 0700), 0);
    cr_assert_eq(mkdir(version, 0700), 0);
    inf_fixture_write_products(version, ENDLESS_PRODUCTS);
}

TestSuite(serving_load_limit, .timeout = 200);

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void set_limit(const char *value)
{
    const union inf_message message = {.flag_set = {.name = "load_limit_ms", .value = value}};
    inf_raw_call(&admin, INF_METHOD_FLAG_SET, INF_MESSAGE_FLAG_SET, &message, (struct inf_span){0});
    cr_assert_eq(admin.frame.header.flags, INF_FRAME_FINAL);
}

// Starts to load the model, and waits until it is run for the first time.
static void begin_endless_load(void)
{
    const union inf_message message = {.model = {.name = "endless"}};
    inf_raw_request(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                    &message, (struct inf_span){0});
    do {
        cr_assert(inf_raw_next(&admin, 60000), "the load does not begin its first run");
        inf_raw_decode(&admin, INF_MESSAGE_LOAD_PROGRESS);
    } while (strcmp(admin.message.load_progress.stage, "warm-up") != 0);
}

Test(serving_load_limit, cancels_a_load_that_takes_too_long)
{
    start_server();
    // Set the limit now, so that it does not apply to the models of the fixture.
    set_limit("2000");
    uint64_t begin_ms = clock_ms();
    const union inf_message endless = {.model = {.name = "endless"}};
    inf_raw_request(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                    &endless, (struct inf_span){0});
    do {
        cr_assert(inf_raw_next(&admin, 60000), "the load does not end");
    } while ((admin.frame.header.flags & INF_FRAME_FINAL) == 0);
    uint64_t took_ms = clock_ms() - begin_ms;
    inf_raw_check_failure(&admin, INF_DEADLINE, INF_REASON_IN_EXEC);
    cr_expect_not_null(strstr(admin.message.status.message,
                              "model 'endless': the load took longer "
                              "than load_limit_ms allows"),
                       "%s", admin.message.status.message);
    cr_expect_geq(took_ms, 2000, "%lu ms", (unsigned long)took_ms);
    cr_expect_leq(took_ms, 2000 + END_MS_MAX, "%lu ms", (unsigned long)took_ms);
    // The changed limit applies to the next load.
    set_limit("600000");
    const union inf_message message = {.model = {.name = "add"}};
    inf_raw_request(&admin, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                    &message, (struct inf_span){0});
    do {
        cr_assert(inf_raw_next(&admin, 60000), "the load does not end");
    } while ((admin.frame.header.flags & INF_FRAME_FINAL) == 0);
    cr_expect_eq(admin.frame.header.flags, INF_FRAME_FINAL);
    inf_raw_close(&admin);
    inf_fixture_stop(&fixture);
}

Test(serving_load_limit, an_unload_cancels_the_load)
{
    struct inf_raw other;
    start_server();
    inf_raw_open(&other, fixture.admin_socket);
    begin_endless_load();
    uint64_t begin_ms = clock_ms();
    const union inf_message message = {.model = {.name = "endless"}};
    inf_raw_call(&other, INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                 &message, (struct inf_span){0});
    cr_assert_eq(other.frame.header.flags, INF_FRAME_FINAL);
    cr_assert(inf_raw_next(&admin, 60000), "the load does not end");
    uint64_t took_ms = clock_ms() - begin_ms;
    inf_raw_check_failure(&admin, INF_CANCELLED, INF_REASON_BY_ADMIN);
    cr_expect_leq(took_ms, END_MS_MAX, "%lu ms", (unsigned long)took_ms);
    inf_raw_close(&other);
    inf_raw_close(&admin);
    inf_fixture_stop(&fixture);
}

Test(serving_load_limit, sigterm_does_not_wait_for_the_load)
{
    start_server();
    begin_endless_load();
    uint64_t begin_ms = clock_ms();
    cr_assert_eq(kill(fixture.pid, SIGTERM), 0);
    cr_assert_eq(inf_fixture_wait(&fixture), 0);
    uint64_t took_ms = clock_ms() - begin_ms;
    cr_expect_leq(took_ms, END_MS_MAX, "%lu ms", (unsigned long)took_ms);
    inf_raw_close(&admin);
    inf_fixture_remove(&fixture);
}
