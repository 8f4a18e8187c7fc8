// SPDX-License-Identifier: Apache-2.0
// Tests of the placement of models with inferctl and a real daemon: the reasons that are reported,
// and changes of the placement.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "client/inferd.h"
#include "proto/core/span.h"
#include "tests/support/daemon/crowd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"
#include "tests/support/models/tfjs_writer.h"

#define RUN(run, socket, ...)                                                                      \
    inf_inferctl_run(run, socket, (const char *const[]){__VA_ARGS__, NULL})

// Runs inferctl, expects success, and parses the output as JSON.
static json_t *run_json(const char *socket, const char *const *arguments)
{
    struct inf_inferctl run;
    inf_inferctl_run(&run, socket, arguments);
    cr_assert_eq(run.code, 0, "%s: %s", arguments[0], run.err);
    json_t *answer = inf_inferctl_json(&run);
    inf_inferctl_free(&run);
    return answer;
}

#define ASK(socket, ...) run_json(socket, (const char *const[]){__VA_ARGS__, "--json", NULL})

static const char *read_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    cr_assert_not_null(value, "%s", key);
    return value;
}

static const json_t *find_candidate(const json_t *answer, const char *device)
{
    size_t i;
    const json_t *row;
    json_array_foreach(json_object_get(answer, "candidates"), i,
                       row) if (strcmp(read_text(row, "device"), device) == 0) return row;
    cr_assert_fail("there is no candidate %s", device);
    return NULL;
}

// Waits until the daemon has timed the candidate devices for the model, and returns the output of
// `inferctl explain`. With only one candidate the daemon times nothing, so the wait ends after a
// number of tries.
static json_t *explain_raced(const char *socket, const char *model)
{
    for (int tries = 0;; tries++) {
        json_t *answer = ASK(socket, "explain", model);
        if (strcmp(read_text(answer, "source"), "rule") != 0 || tries == 2000)
            return answer;
        json_decref(answer);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

Test(inferctl_place, explain_tells_how_a_race_went)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, (const char *const[]){"--race=always", NULL});
    json_t *answer = explain_raced(fixture.socket, "conv");
    cr_expect_str_eq(read_text(answer, "source"), "race");
    cr_expect_str_eq(read_text(answer, "policy"), "latency");
    cr_expect_str_eq(read_text(answer, "precision"), "fp32");
    cr_expect_gt(json_array_size(json_object_get(answer, "candidates")), 0u);
    const json_t *chosen = find_candidate(answer, read_text(answer, "device"));
    cr_expect_str_eq(read_text(chosen, "verdict"), "chosen");
    cr_expect_gt(json_number_value(json_object_get(chosen, "median_ms")), 0);
    cr_expect_gt(json_number_value(json_object_get(chosen, "prior_ms")), 0);
    cr_expect_geq(json_integer_value(json_object_get(chosen, "runs")), 5);
    json_decref(answer);
    answer = ASK(fixture.socket, "advise", "conv");
    cr_expect_str_eq(read_text(answer, "measured_device"), read_text(answer, "device"));
    cr_expect_eq(json_array_size(json_object_get(answer, "rules")), 4u);
    json_decref(answer);
    struct inf_inferctl run;
    RUN(&run, fixture.socket, "advise", "add");
    cr_expect(strstr(run.out, "ultra-lite: the CPU") != NULL, "%s", run.out);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "explain", "cnov");
    cr_expect_eq(run.code, 4, "%s", run.err);
    inf_inferctl_free(&run);
    inf_fixture_stop(&fixture);
}

// Writes the model y = x w, where x and y have the shape [1,64].
static void write_dense(const char *directory)
{
    static float weights[64 * 64];
    const int64_t row[] = {1, 64};
    const int64_t square[] = {64, 64};
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", row, 2);
    inf_tfjs_writer_floats(writer, "w", weights, square, 2);
    inf_tfjs_writer_node(writer, "y", "MatMul", "x,w");
    inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    inf_tfjs_writer_attr_bool(writer, "transpose_a", 0);
    inf_tfjs_writer_attr_bool(writer, "transpose_b", 0);
    inf_tfjs_writer_output(writer, "y", "y");
    inf_tfjs_writer_end(writer);
}

Test(inferctl_place, explain_counts_weights_that_are_packed)
{
    struct inf_fixture fixture;
    char directory[300];
    char file[320];
    inf_fixture_start(&fixture, NULL);
    snprintf(directory, sizeof directory, "%s/dense", fixture.directory);
    cr_assert_eq(mkdir(directory, 0700), 0);
    write_dense(directory);
    snprintf(file, sizeof file, "%s/model.json", directory);
    struct inf_inferctl run;
    RUN(&run, fixture.admin_socket, "load", "dense", file);
    cr_expect_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    json_t *answer = ASK(fixture.socket, "explain", "dense");
    cr_expect_eq(json_integer_value(json_object_get(answer, "const_bytes")), 64 * 64 * 4);
    json_decref(answer);
    inf_fixture_stop(&fixture);
}

Test(inferctl_place, a_model_moves_to_a_named_device_and_back)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    struct inf_inferctl run;
    RUN(&run, fixture.socket, "place", "add", "ref");
    cr_expect_eq(run.code, 5, "the data socket: %s", run.err);
    inf_inferctl_free(&run);
    json_t *answer = ASK(fixture.admin_socket, "place", "add", "ref");
    cr_expect_str_eq(read_text(answer, "device"), "ref");
    cr_expect_str_eq(read_text(answer, "source"), "pinned");
    json_decref(answer);
    answer = ASK(fixture.socket, "explain", "add");
    cr_expect_str_eq(read_text(find_candidate(answer, "ref"), "verdict"), "chosen");
    json_decref(answer);
    // Changing only the policy must not move the model to another device.
    answer = ASK(fixture.admin_socket, "place", "add", "-p", "memory");
    cr_expect_str_eq(read_text(answer, "device"), "ref");
    cr_expect_str_eq(read_text(answer, "policy"), "memory");
    json_decref(answer);
    answer = ASK(fixture.admin_socket, "place", "add", "auto", "--policy=stability");
    cr_expect_str_neq(read_text(answer, "source"), "pinned");
    json_decref(answer);
    RUN(&run, fixture.admin_socket, "place", "add", "moon");
    cr_expect(strstr(run.err, "wanted one of:") != NULL, "%s", run.err);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "place", "add", "-p", "beauty");
    cr_expect(strstr(run.err, "'beauty': wanted latency, throughput, stability or memory") != NULL,
              "%s", run.err);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "place", "add");
    cr_expect_eq(run.code, 2);
    inf_inferctl_free(&run);
    inf_fixture_stop(&fixture);
}

// --- placing a model in a precision below fp32 ---

// Writes the model y = x * 80000 * 1e-4 with shape [4]. The intermediate values exceed the range of
// half precision.
static void write_overflowing_model(const char *directory)
{
    cr_assert_eq(mkdir(directory, 0700), 0);
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (const int64_t[]){-1, 4}, 2);
    inf_tfjs_writer_floats(writer, "big", (const float[]){80000}, (const int64_t[]){1}, 1);
    inf_tfjs_writer_floats(writer, "small", (const float[]){1e-4f}, (const int64_t[]){1}, 1);
    inf_tfjs_writer_node(writer, "up", "Mul", "x,big");
    inf_tfjs_writer_node(writer, "y", "Mul", "up,small");
    inf_tfjs_writer_output(writer, "y", "y:0");
    inf_tfjs_writer_end(writer);
}

static void expect_right(const char *socket)
{
    struct inferd_error err;
    inferd_client *client;
    inferd_result *result;
    float x[] = {1, 0.5f, 0.25f, 0};
    const inferd_tensor input = {
        .name = "x", .dtype = INFERD_FP32, .rank = 2, .shape = {1, 4}, .data = x, .size = sizeof x};
    cr_assert_eq(inferd_connect(&client, socket, &err), 0, "%s", err.text);
    cr_assert_eq(
        inferd_infer(client,
                     &(inferd_request){.model = "overflow", .inputs = &input, .input_count = 1},
                     &result, &err),
        0, "%s", err.text);
    const float *y = inferd_result_output(result, 0)->data;
    for (int i = 0; i < 4; i++)
        cr_expect_float_eq(y[i], 8 * x[i], 1e-4);
    cr_expect_str_eq(inferd_result_precision(result), "fp32");
    inferd_result_free(result);
    inferd_close(client);
}

Test(inferctl_place, half_precision_is_refused_with_what_it_would_do)
{
    struct inf_fixture fixture;
    struct inf_inferctl run;
    char directory[128];
    inf_fixture_start(&fixture, NULL);
    const char *admin = fixture.admin_socket;
    snprintf(directory, sizeof directory, "%s/overflow", fixture.directory);
    write_overflowing_model(directory);
    RUN(&run, admin, "load", "overflow", directory);
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    RUN(&run, admin, "place", "overflow", "--precision=fp16");
    cr_expect_eq(run.code, 1);
    static const char *const wanted[] = {"no device computes in it", "ref: fp32 only",
                                         "weight 'big' reaches 80000",
                                         "unguarded it would overflow"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wanted); i++)
        cr_expect(strstr(run.err, wanted[i]) != NULL, "no '%s' in: %s", wanted[i], run.err);
    inf_inferctl_free(&run);
    expect_right(fixture.socket); // after the refusal, the old placement still serves requests
    json_decref(ASK(admin, "place", "overflow", "-P", "auto"));
    expect_right(fixture.socket);
    json_t *answer = ASK(fixture.socket, "explain", "overflow");
    cr_expect_str_eq(read_text(answer, "precision"), "fp32");
    // If a device supports bf16, the daemon times and checks that precision, and the reason reports
    // the result.
    const char *reason = read_text(answer, "precision_reason");
    cr_expect(strstr(reason, "weight 'big' reaches 80000") != NULL ||
                  strstr(reason, "less is tried in a race (") != NULL ||
                  strstr(reason, "bf16 on cpu: ") != NULL,
              "%s", reason);
    json_decref(answer);
    RUN(&run, admin, "place", "overflow", "-P", "fp8");
    cr_expect(strstr(run.err, "'fp8': wanted auto, fp32, fp16, bf16 or int8") != NULL, "%s",
              run.err);
    inf_inferctl_free(&run);
    inf_fixture_stop(&fixture);
}

// --- moving models while requests are served ---

// Given a drift_factor so small that each measured run counts as a slowdown, expect that the daemon
// times the candidate devices again.
Test(inferctl_place, devices_race_anew_for_a_model_that_drifts)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    struct inf_crowd crowd;
    json_t *answer = ASK(fixture.socket, "explain", "add");
    size_t rivals = json_array_size(json_object_get(answer, "candidates"));
    cr_expect_str_eq(read_text(answer, "source"), "rule");
    json_decref(answer);
    json_decref(ASK(fixture.admin_socket, "flags", "set", "race", "always"));
    json_decref(ASK(fixture.admin_socket, "flags", "set", "drift_after_ms", "0"));
    json_decref(ASK(fixture.admin_socket, "flags", "set", "drift_factor", "0.001"));
    inf_crowd_start(&crowd, fixture.socket, 0);
    // With only one candidate device, the daemon does not compare run times.
    const char *wanted = rivals > 1 ? "race" : "rule";
    bool raced = false;
    for (int i = 0; i < 400 && !raced; i++) {
        answer = ASK(fixture.socket, "explain", "add");
        raced = strcmp(read_text(answer, "source"), wanted) == 0;
        json_decref(answer);
        if (!raced)
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    cr_expect(raced);
    inf_crowd_stop(&crowd);
    inf_fixture_stop(&fixture);
}

static uint64_t model_bytes(inferd_client *client, const char *name)
{
    struct inferd_error err;
    inferd_model_row *rows;
    size_t count;
    uint64_t bytes = 0;
    cr_assert_eq(inferd_models(client, &rows, &count, &err), 0, "%s", err.text);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            bytes = rows[i].memory_bytes;
    free(rows);
    return bytes;
}

Test(inferctl_place, no_request_fails_while_a_model_moves)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    struct inf_crowd crowds[2];
    struct inferd_error err;
    inferd_client *admin;
    cr_assert_eq(inferd_connect(&admin, fixture.admin_socket, &err), 0, "%s", err.text);
    uint64_t before = model_bytes(admin, "add");
    for (int i = 0; i < 2; i++)
        inf_crowd_start(&crowds[i], fixture.socket, 0);
    static const char *const devices[] = {"ref", "auto"};
    for (int i = 0; i < 20; i++) {
        const inferd_place_request order = {.model = "add", .device = devices[i % 2]};
        cr_assert_eq(inferd_place(admin, &order, NULL, NULL, &err), 0, "%s", err.text);
        for (int k = 0; k < 2; k++)
            inf_crowd_await(&crowds[k], 1);
    }
    for (int i = 0; i < 2; i++)
        inf_crowd_stop(&crowds[i]);
    // The memory of the old executables must be freed. The loader's thread does that later.
    for (int i = 0; i < 200 && model_bytes(admin, "add") > before; i++)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    cr_expect_leq(model_bytes(admin, "add"), before);
    inferd_close(admin);
    inf_fixture_stop(&fixture);
}
