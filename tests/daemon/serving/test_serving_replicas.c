// SPDX-License-Identifier: Apache-2.0
// A model with a replica: a request runs on the device where it finishes first.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "proto/core/span.h"
#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;

// Writes settings for the model `brief`: main device `own` and replica `other`. They apply from its
// next load on.
static void write_settings(const char *own, const char *other)
{
    char path[160];
    snprintf(path, sizeof path, "%s/brief/model.conf", fixture.repository);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file, "%s", path);
    fprintf(file, "device = %s\nreplica_devices = %s\n", own, other);
    cr_assert_eq(fclose(file), 0);
}

static void start_with(const char *own, const char *other)
{
    inf_fixture_start(&fixture, NULL);
    write_settings(own, other);
    inf_fixture_restart(&fixture, NULL);
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_replicas, .timeout = 300);

static void send_brief(const char *device)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.model_name = "brief";
    message.infer_request.device = device;
    inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                    inf_slow_data());
}

// Waits for `count` answers. Returns how many of them came from `device`.
static unsigned count_answers(unsigned count, const char *device)
{
    unsigned found = 0;
    for (unsigned i = 0; i < count; i++) {
        cr_assert(inf_raw_next(&raw, 60000));
        cr_assert_eq(raw.frame.header.flags, INF_FRAME_FINAL);
        inf_raw_decode(&raw, INF_MESSAGE_INFER_REPLY);
        found += strcmp(raw.message.infer_reply.device, device) == 0;
    }
    return found;
}

static double run_ms(const char *device)
{
    send_brief(device);
    send_brief(device);
    cr_assert_eq(count_answers(2, device), 2u);
    return (double)raw.message.infer_reply.timing.compute_ns / 1e6;
}

Test(serving_replicas, requests_run_on_the_device_that_finishes_first)
{
    start_with("cpu", "ref");
    double cpu_ms = run_ms("cpu"), ref_ms = run_ms("ref");
    const char *fast = cpu_ms <= ref_ms ? "cpu" : "ref", *slow = cpu_ms <= ref_ms ? "ref" : "cpu";
    double ratio = INF_MAX(cpu_ms, ref_ms) / INF_MIN(cpu_ms, ref_ms);
    if (ratio > 1.3) {
        send_brief("");
        cr_expect_eq(count_answers(1, fast), 1u, "both are idle: cpu %.1f ms, ref %.1f ms", cpu_ms,
                     ref_ms);
    }
    // Choose a number of requests that is large enough for the slower device to finish at least one
    // of them long before the faster device finishes all, even if run times differ from the
    // measured ones.
    unsigned count = (unsigned)INF_MIN(6 * ratio + 8, 600);
    for (unsigned i = 0; i < count; i++)
        send_brief("");
    unsigned slower = count_answers(count, slow);
    cr_expect_gt(slower, 0u, "%u at once, cpu %.1f ms, ref %.1f ms", count, cpu_ms, ref_ms);
    cr_expect_leq(slower, count / 2 + 1);
    stop_server();
}

Test(serving_replicas, a_request_that_names_its_device_stays_there)
{
    start_with("cpu", "ref");
    for (int i = 0; i < 8; i++)
        send_brief("cpu");
    cr_expect_eq(count_answers(8, "cpu"), 8u);
    stop_server();
}

Test(serving_replicas, an_unknown_device_fails_the_load)
{
    const union inf_message message = {.model = {.name = "brief"}};
    inf_fixture_start(&fixture, NULL);
    write_settings("cpu", "gpu7");
    inf_raw_open(&raw, fixture.admin_socket);
    inf_raw_request(&raw, INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST,
                    &message, (struct inf_span){0});
    do
        cr_assert(inf_raw_next(&raw, 20000));
    while ((raw.frame.header.flags & INF_FRAME_FINAL) == 0);
    inf_raw_check_failure(&raw, INF_NOT_FOUND, INF_REASON_NO_DEVICE);
    cr_expect_not_null(strstr(raw.message.status.message, "'gpu7': there is none, wanted one of:"),
                       "%s", raw.message.status.message);
    stop_server();
}
