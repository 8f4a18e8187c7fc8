// SPDX-License-Identifier: Apache-2.0
// Tests `inferctl selftest`. The daemons under test have correct devices, a device that returns
// wrong results, one that refuses to compile, and one that rounds its results.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"

#define RUN(run, socket, ...)                                                                      \
    inf_inferctl_run(run, socket, (const char *const[]){__VA_ARGS__, NULL})

static size_t count_models(const char *socket)
{
    inferd_client *client;
    struct inferd_error err;
    inferd_model_row *rows;
    size_t count;
    cr_assert_eq(inferd_connect(&client, socket, &err), 0, "%s", err.text);
    cr_assert_eq(inferd_models(client, &rows, &count, &err), 0, "%s", err.text);
    free(rows);
    inferd_close(client);
    return count;
}

// Runs `inferctl selftest --json` on all devices, or on `device`, and checks its exit code. Returns
// the printed rows as a JSON array, which the caller releases with json_decref().
static json_t *run_selftest(const struct inf_fixture *fixture, const char *device, int wanted_code)
{
    struct inf_inferctl run;
    if (device == NULL)
        RUN(&run, fixture->admin_socket, "selftest", "--json");
    else
        RUN(&run, fixture->admin_socket, "selftest", "--json", "-d", device);
    cr_assert_eq(run.code, wanted_code, "%d: %s", run.code, run.err);
    json_t *rows = inf_inferctl_json(&run);
    inf_inferctl_free(&run);
    return rows;
}

// Checks the row number `index`.
static void expect_row(const json_t *rows, size_t index, const char *device, const char *precision,
                       const char *verdict)
{
    const json_t *row = json_array_get(rows, index);
    cr_assert_not_null(row, "%zu rows", json_array_size(rows));
    cr_expect_str_eq(json_string_value(json_object_get(row, "device")), device);
    cr_expect_str_eq(json_string_value(json_object_get(row, "precision")), precision);
    cr_expect_str_eq(json_string_value(json_object_get(row, "verdict")), verdict);
}

Test(inferctl_selftest, names_the_device_that_computes_wrongly_and_leaves_no_model)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, (const char *const[]){"--backends=wrong,slow", NULL});
    size_t models = count_models(fixture.socket);
    json_t *rows = run_selftest(&fixture, NULL, 1);
    cr_expect_eq(json_array_size(rows), 3);
    expect_row(rows, 0, "wrong", "fp32", "DIFFERS");
    expect_row(rows, 1, "slow", "fp32", "ok");
    expect_row(rows, 2, "ref", "fp32", "ok");
    double apart = json_real_value(json_object_get(json_array_get(rows, 0), "max_abs"));
    cr_expect(apart > 0.009 && apart < 0.011, "%g", apart);
    json_decref(rows);
    rows = run_selftest(&fixture, "slow", 0);
    cr_expect_eq(json_array_size(rows), 2);
    expect_row(rows, 0, "slow", "fp32", "ok");
    json_decref(rows);
    cr_expect_eq(count_models(fixture.socket), models);
    inf_fixture_stop(&fixture);
}

Test(inferctl_selftest, tests_each_precision_and_prints_why_a_device_refuses)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, (const char *const[]){"--backends=half,refusing", NULL});
    json_t *rows = run_selftest(&fixture, NULL, 1);
    cr_expect_eq(json_array_size(rows), 5);
    expect_row(rows, 0, "half", "bf16", "ok");
    expect_row(rows, 1, "half", "fp16", "ok");
    expect_row(rows, 2, "half", "fp32", "ok");
    expect_row(rows, 3, "refusing", "fp32", "the driver says no");
    expect_row(rows, 4, "ref", "fp32", "ok");
    // In fp16 the device rounds, which the answer must show.
    cr_expect(json_real_value(json_object_get(json_array_get(rows, 1), "max_abs")) > 1e-4);
    json_decref(rows);
    inf_fixture_stop(&fixture);
}

Test(inferctl_selftest, needs_the_admin_socket_and_a_known_device)
{
    struct inf_fixture fixture;
    struct inf_inferctl run;
    inf_fixture_start(&fixture, (const char *const[]){"--backends=slow", NULL});
    RUN(&run, fixture.socket, "selftest");
    cr_expect_eq(run.code, 5, "%d: %s", run.code, run.err);
    cr_expect_neq(strstr(run.err, "use the admin socket"), NULL, "%s", run.err);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "selftest", "-d", "gpu");
    cr_expect_eq(run.code, 4, "%d: %s", run.code, run.err);
    inf_inferctl_free(&run);
    inf_fixture_stop(&fixture);
}
