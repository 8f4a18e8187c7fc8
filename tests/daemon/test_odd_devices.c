// SPDX-License-Identifier: Apache-2.0
// A whole daemon on faulty devices: the daemon checks answers, reports wrong ones, and moves models
// to a device that computes correctly. No request fails meanwhile.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/inferd.h"
#include "tests/support/daemon/crowd.h"
#include "tests/support/daemon/fixture.h"

TestSuite(odd_devices, .timeout = 200);

// --- sending requests to the daemon ---

struct asker {
    inferd_client *client;
    // Name of the device that requests ask for; NULL: the device that the model is placed on.
    const char *device;
};

static void open_asker(struct asker *asker, const char *socket)
{
    struct inferd_error err;
    *asker = (struct asker){0};
    cr_assert_eq(inferd_connect(&asker->client, socket, &err), 0, "%s", err.text);
}

// Runs the model "add" on two constant inputs. Stores the answer in `sum` and the device that
// computed it in `device`.
static void send_request(const struct asker *asker, float sum[4], char device[32])
{
    static const float a[] = {1, 2, 3, 4}, b[] = {2, 4, 6, 8};
    const inferd_tensor inputs[] = {{.name = "a",
                                     .dtype = INFERD_FP32,
                                     .rank = 2,
                                     .shape = {1, 4},
                                     .data = (void *)a,
                                     .size = 16},
                                    {.name = "b",
                                     .dtype = INFERD_FP32,
                                     .rank = 2,
                                     .shape = {1, 4},
                                     .data = (void *)b,
                                     .size = 16}};
    const inferd_request request = {
        .model = "add", .device = asker->device, .inputs = inputs, .input_count = 2};
    struct inferd_error err;
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(asker->client, &request, &result, &err), 0, "%s", err.text);
    memcpy(sum, inferd_result_output(result, 0)->data, 16);
    snprintf(device, 32, "%s", inferd_result_device(result));
    inferd_result_free(result);
}

static inferd_placement *explain_model(const struct asker *asker)
{
    struct inferd_error err;
    inferd_placement *placement = NULL;
    cr_assert_eq(inferd_explain(asker->client, "add", NULL, &placement, &err), 0, "%s", err.text);
    return placement;
}

static void sleep_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

// --- the daemon checks answers and reports wrong ones ---

// Sends requests until the daemon has checked an answer of the model "add", and returns the model's
// placement.
static inferd_placement *ask_until_checked(const struct asker *asker)
{
    for (int tries = 0; tries < 4000; tries++) {
        float sum[4];
        char device[32];
        send_request(asker, sum, device);
        inferd_placement *placement = explain_model(asker);
        if (placement->shadow_checked > 0 &&
            (strcmp(placement->device, "wrong") != 0 || placement->shadow_drifted > 0))
            return placement;
        inferd_placement_free(placement);
        sleep_briefly();
    }
    cr_assert_fail("no answer was checked");
    return NULL;
}

Test(odd_devices, wrong_answers_raise_an_alarm_that_names_model_device_and_node)
{
    struct inf_fixture fixture;
    struct asker asker;
    inf_fixture_start(&fixture, (const char *const[]){"--backends=wrong", "--race=never",
                                                      "--shadow_interval=2", NULL});
    open_asker(&asker, fixture.socket);
    inferd_placement *placement = ask_until_checked(&asker);
    cr_expect_str_eq(placement->device, "wrong");
    cr_expect_geq(placement->shadow_checked, placement->shadow_drifted);
    cr_expect(strstr(placement->shadow_alarm, "wrong in fp32: output 'sum'") != NULL ||
                  strstr(placement->shadow_alarm, "wrong in fp32: output '") != NULL,
              "%s", placement->shadow_alarm);
    cr_expect(strstr(placement->shadow_alarm, "from element 2 on differs from ref's") != NULL, "%s",
              placement->shadow_alarm);
    cr_expect(strstr(placement->shadow_alarm, "first at node '") != NULL, "%s",
              placement->shadow_alarm);
    cr_expect(strstr(placement->shadow_alarm, "none when run again") == NULL, "%s",
              placement->shadow_alarm);
    inferd_placement_free(placement);
    inferd_close(asker.client);
    inf_fixture_stop(&fixture);
}

Test(odd_devices, right_answers_raise_none)
{
    struct inf_fixture fixture;
    struct asker asker;
    inf_fixture_start(&fixture, (const char *const[]){"--backends=slow", "--race=never",
                                                      "--shadow_interval=1", NULL});
    open_asker(&asker, fixture.socket);
    inferd_placement *placement = ask_until_checked(&asker);
    cr_expect_str_eq(placement->device, "slow");
    cr_expect_eq(placement->shadow_drifted, 0u);
    cr_expect_str_eq(placement->shadow_alarm, "");
    inferd_placement_free(placement);
    inferd_close(asker.client);
    inf_fixture_stop(&fixture);
}

Test(odd_devices, nothing_is_checked_unless_asked_for)
{
    struct inf_fixture fixture;
    struct asker asker;
    float sum[4];
    char device[32];
    inf_fixture_start(&fixture, (const char *const[]){"--backends=wrong", "--race=never", NULL});
    open_asker(&asker, fixture.socket);
    for (int i = 0; i < 20; i++)
        send_request(&asker, sum, device);
    inferd_placement *placement = explain_model(&asker);
    cr_expect_eq(placement->shadow_checked + placement->shadow_dropped, 0u);
    inferd_placement_free(placement);
    inferd_close(asker.client);
    inf_fixture_stop(&fixture);
}

// --- the daemon moves models to a device that computes correctly and fast ---

// By its static rule, the daemon starts on the slow device. Expect that it times the candidate
// devices while requests arrive, and moves the model to the faster one.
Test(odd_devices, a_slow_device_is_left_while_requests_are_served)
{
    struct inf_fixture fixture;
    struct asker asker;
    inf_fixture_start(&fixture,
                      (const char *const[]){"--backends=slow,absent", "--race=always", NULL});
    struct inf_crowd crowd;
    inf_crowd_start(&crowd, fixture.socket, 5);
    open_asker(&asker, fixture.socket);
    bool moved = false;
    for (int tries = 0; tries < 15000 && !moved; tries++) {
        inferd_placement *placement = explain_model(&asker);
        moved = strcmp(placement->device, "ref") == 0;
        cr_expect(!moved || strcmp(placement->source, "race") == 0, "%s", placement->source);
        inferd_placement_free(placement);
        sleep_briefly();
    }
    cr_expect(moved, "it is still on the slow device");
    char *metrics = NULL;
    cr_assert_eq(inferd_metrics(asker.client, NULL, &metrics, NULL, NULL), 0);
    const char *line = strstr(metrics, "\ninferd_model_races_total{outcome=\"moved\"} ");
    cr_assert_not_null(line);
    cr_expect_gt(atoi(strchr(line, '}') + 1), 0, "%.60s", line);
    free(metrics);
    inf_crowd_await(&crowd, 5);
    inf_crowd_stop(&crowd);
    inferd_close(asker.client);
    inf_fixture_stop(&fixture);
}

// Given one device that computes wrongly, one that compiles nothing, one that does not open and one
// that is slow, expect that `ref` is chosen, and that the daemon reports why it did not choose the
// others that opened.
Test(odd_devices, auto_ends_on_the_one_that_is_right_and_says_why)
{
    static const struct {
        const char *device, *verdict, *reason;
    } wanted[] = {{"wrong", "wrong", "differs from ref's at element 2"},
                  {"refusing", "refused", "the driver says no"},
                  {"slow", "slower", ""},
                  {"ref", "chosen", ""}};
    struct inf_fixture fixture;
    struct asker asker;
    float sum[4];
    char device[32];
    inf_fixture_start(&fixture, (const char *const[]){"--backends=wrong,refusing,absent,slow",
                                                      "--race=always", NULL});
    open_asker(&asker, fixture.socket);
    inferd_placement *placement = explain_model(&asker);
    for (int tries = 0; tries < 6000 && strcmp(placement->source, "race") != 0; tries++) {
        inferd_placement_free(placement);
        sleep_briefly();
        placement = explain_model(&asker);
    }
    cr_expect_str_eq(placement->device, "ref");
    cr_expect_str_eq(placement->source, "race");
    cr_expect(strstr(placement->reason, "the fastest of those whose answer was right") != NULL,
              "%s", placement->reason);
    cr_expect_eq(placement->candidate_count, sizeof wanted / sizeof wanted[0], "one did not open");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        for (size_t k = 0; k < placement->candidate_count; k++) {
            const inferd_candidate *candidate = &placement->candidates[k];
            if (strcmp(candidate->device, wanted[i].device) != 0)
                continue;
            cr_expect_str_eq(candidate->verdict, wanted[i].verdict, "%s", candidate->device);
            cr_expect(strstr(candidate->reason, wanted[i].reason) != NULL, "%s", candidate->reason);
        }
    inferd_placement_free(placement);
    send_request(&asker, sum, device);
    cr_expect_str_eq(device, "ref");
    cr_expect_eq(sum[0], 3.f);
    inferd_close(asker.client);
    inf_fixture_stop(&fixture);
}
