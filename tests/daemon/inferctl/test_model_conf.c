// SPDX-License-Identifier: Apache-2.0
// Tests of models that have their own settings, with a real daemon.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/inferd.h"
#include "proto/core/span.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"
#include "tests/support/models/onnx_writer.h"

#define RUN(run, socket, ...)                                                                      \
    inf_inferctl_run(run, socket, (const char *const[]){__VA_ARGS__, NULL})

static void write_file(const struct inf_fixture *fixture, const char *name, const void *data,
                       size_t size)
{
    char path[256], temporary[272];
    snprintf(path, sizeof path, "%s/%s", fixture->repository, name);
    snprintf(temporary, sizeof temporary, "%s~", path);
    FILE *file = fopen(temporary, "w");
    cr_assert_not_null(file, "%s", temporary);
    cr_assert_eq(fwrite(data, 1, size, file), size);
    cr_assert_eq(fclose(file), 0);
    cr_assert_eq(rename(temporary, path), 0);
}

static void write_conf(const struct inf_fixture *fixture, const char *model, const char *text)
{
    char name[96];
    snprintf(name, sizeof name, "%s/model.conf", model);
    write_file(fixture, name, text, strlen(text));
}

static inferd_client *connect_to(const char *socket)
{
    struct inferd_error err;
    inferd_client *client;
    cr_assert_eq(inferd_connect(&client, socket, &err), 0, "%s", err.text);
    return client;
}

static inferd_placement *explain_model(inferd_client *client, const char *model)
{
    struct inferd_error err;
    inferd_placement *placement;
    cr_assert_eq(inferd_explain(client, model, NULL, &placement, &err), 0, "%s", err.text);
    return placement;
}

static const inferd_setting *find_setting(const inferd_placement *placement, const char *name)
{
    for (size_t i = 0; i < placement->setting_count; i++)
        if (strcmp(placement->settings[i].name, name) == 0)
            return &placement->settings[i];
    cr_assert_fail("no setting %s", name);
    return NULL;
}

static void expect_setting(inferd_client *client, const char *model, const char *name,
                           const char *value, const char *origin)
{
    inferd_placement *placement = explain_model(client, model);
    cr_expect_str_eq(find_setting(placement, name)->value, value, "%s %s", model, name);
    cr_expect_str_eq(find_setting(placement, name)->origin, origin, "%s %s", model, name);
    inferd_placement_free(placement);
}

static void pause_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

// Makes the daemon read the repository again, and waits until a setting of a model has this value.
static void reload_until(const struct inf_fixture *fixture, inferd_client *client,
                         const char *model, const char *name, const char *value)
{
    bool same = false;
    cr_assert_eq(kill(fixture->pid, SIGHUP), 0);
    for (int i = 0; i < 3000 && !same; i++) {
        inferd_placement *placement = explain_model(client, model);
        same = strcmp(find_setting(placement, name)->value, value) == 0;
        inferd_placement_free(placement);
        if (!same)
            pause_briefly();
    }
    cr_assert(same, "%s: %s does not get %s", model, name, value);
}

// Returns the daemon's list entry for the model. Its reason is "" if the last load succeeded.
static inferd_model_row row_of(inferd_client *client, const char *model)
{
    struct inferd_error err;
    inferd_model_row *rows, found = {0};
    size_t count;
    cr_assert_eq(inferd_models(client, &rows, &count, &err), 0, "%s", err.text);
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, model) == 0)
            found = rows[i];
    free(rows);
    return found;
}

static void expect_sum(inferd_client *client, const char *device)
{
    struct inferd_error err;
    inferd_result *result;
    float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40};
    const inferd_tensor inputs[] = {
        {.name = "a", .dtype = INFERD_FP32, .rank = 2, .shape = {1, 4}, .data = a, .size = 16},
        {.name = "b", .dtype = INFERD_FP32, .rank = 2, .shape = {1, 4}, .data = b, .size = 16}};
    cr_assert_eq(inferd_infer(client,
                              &(inferd_request){.model = "add", .inputs = inputs, .input_count = 2},
                              &result, &err),
                 0, "%s", err.text);
    const float *sum = inferd_result_output(result, 0)->data;
    for (int i = 0; i < 4; i++)
        cr_expect_float_eq(sum[i], 11.0f * (float)(i + 1), 1e-6);
    if (device != NULL)
        cr_expect_str_eq(inferd_result_device(result), device);
    inferd_result_free(result);
}

Test(model_conf, a_rescan_follows_the_file_and_keeps_what_admins_said)
{
    struct inf_fixture fixture;
    struct inf_inferctl run;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    expect_setting(client, "add", "device", "auto", "default");
    expect_sum(client, NULL);
    write_conf(&fixture, "add", "device = ref\npolicy = memory\n");
    reload_until(&fixture, client, "add", "device", "ref");
    expect_setting(client, "add", "device", "ref", "model");
    expect_setting(client, "add", "policy", "memory", "model");
    expect_setting(client, "conv", "policy", "latency", "default");
    expect_sum(client, "ref");
    cr_expect_eq(row_of(client, "add").requests, 2u, "the model is the same to its users");

    RUN(&run, fixture.admin_socket, "place", "add", "-p", "stability");
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    expect_setting(client, "add", "policy", "stability", "admin");
    write_conf(&fixture, "add", "policy = throughput\nbatch_rows_max = 2\n");
    reload_until(&fixture, client, "add", "batch_rows_max", "2");
    expect_setting(client, "add", "policy", "stability", "admin");
    expect_setting(client, "add", "device", "auto", "default");
    expect_sum(client, NULL);
    RUN(&run, fixture.socket, "explain", "add");
    cr_expect(strstr(run.out, "settings:") != NULL && strstr(run.out, "stability") != NULL, "%s",
              run.out);
    inf_inferctl_free(&run);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(model_conf, what_is_wrong_is_refused_and_the_old_one_serves)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    static const struct {
        const char *text, *wanted;
    } cases[] = {
        {"\npolisy = latency\n", "model.conf:2: 'polisy' is no setting; did you mean 'policy'?"},
        {"batch_rows_max = many\n", "model.conf:1: batch_rows_max = many: wanted a number"},
        {"device = moon\n", "device 'moon': there is none, wanted one of:"},
        {"device = ref\ndevices_denied = ref\n", "device 'ref': it is named, and denied"},
        {"devices = moon\n", "devices 'moon'"},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        inferd_model_row row = {0};
        write_conf(&fixture, "add", cases[i].text);
        cr_assert_eq(kill(fixture.pid, SIGHUP), 0);
        for (int k = 0; k < 3000 && strstr(row.reason, cases[i].wanted) == NULL; k++) {
            if (k > 0)
                pause_briefly();
            row = row_of(client, "add");
        }
        cr_expect(strstr(row.reason, cases[i].wanted) != NULL, "no '%s' in: %s", cases[i].wanted,
                  row.reason);
        cr_expect_str_eq(row.state, "READY");
        expect_sum(client, NULL);
    }
    // If the daemon starts while a model has an invalid settings file, it does not serve that model
    // and reports the reason. It serves the other models.
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(model_conf, devices_that_are_denied_are_not_chosen)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    inferd_client *client = connect_to(fixture.socket);
    write_conf(&fixture, "add", "devices = ref, moon\n");
    reload_until(&fixture, client, "add", "devices", "ref, moon");
    expect_sum(client, "ref");
    inferd_placement *placement = explain_model(client, "add");
    cr_expect_str_neq(placement->source, "pinned");
    for (size_t i = 0; i < placement->candidate_count; i++)
        cr_expect_str_eq(placement->candidates[i].verdict,
                         strcmp(placement->candidates[i].device, "ref") == 0 ? "chosen"
                                                                             : "not asked");
    inferd_placement_free(placement);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(model_conf, the_daemon_leaves_out_devices_that_it_is_told_to)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, (const char *const[]){"--devices-denied=cpu", NULL});
    inferd_client *client = connect_to(fixture.socket);
    struct inferd_error err;
    inferd_device_row *rows;
    size_t count;
    cr_assert_eq(inferd_devices(client, &rows, &count, &err), 0, "%s", err.text);
    for (size_t i = 0; i < count; i++)
        cr_expect_str_neq(rows[i].name, "cpu");
    cr_expect_geq(count, 1u);
    free(rows);
    expect_sum(client, "ref");
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// Writes the model y = x + [1, 2], where x is FP32 with shape [?,2].
static void write_onnx(struct inf_pb_writer *model)
{
    inf_onnx_put_head(model, 13);
    inf_pb_open(model, 7);
    inf_onnx_put_port(model, 11, "x", 1, (const int64_t[]){-1, 2}, 2);
    inf_onnx_put_port(model, 12, "y", 1, (const int64_t[]){-1, 2}, 2);
    inf_onnx_put_floats(model, "c", (const int64_t[]){2}, 1, (const float[]){1, 2});
    inf_onnx_open_node(model, "Add", "x", "c", "y");
    inf_pb_close(model);
    inf_pb_close(model);
}

Test(model_conf, onnx_files_of_the_repository_are_served)
{
    struct inf_fixture fixture;
    struct inf_pb_writer model = {0};
    char path[256];
    inf_fixture_start(&fixture, NULL);
    write_onnx(&model);
    snprintf(path, sizeof path, "%s/plus", fixture.repository);
    cr_assert_eq(mkdir(path, 0700), 0);
    write_file(&fixture, "plus/any_name.onnx", model.data, model.size);
    write_file(&fixture, "single.onnx", model.data, model.size);
    write_file(&fixture, "single.conf", "policy = memory\n", 16);
    inf_pb_writer_fini(&model);
    cr_assert_eq(kill(fixture.pid, SIGHUP), 0);
    inferd_client *client = connect_to(fixture.socket);
    static const char *const names[] = {"plus", "single"};
    for (size_t i = 0; i < 2; i++) {
        inferd_model_row row = {0};
        for (int k = 0; k < 3000 && strcmp(row.state, "READY") != 0; k++) {
            if (k > 0)
                pause_briefly();
            row = row_of(client, names[i]);
        }
        cr_assert_str_eq(row.state, "READY", "%s: %s", names[i], row.reason);
        struct inferd_error err;
        inferd_result *result;
        float x[] = {5, 6};
        const inferd_tensor input = {
            .name = "x", .dtype = INFERD_FP32, .rank = 2, .shape = {1, 2}, .data = x, .size = 8};
        cr_assert_eq(
            inferd_infer(client,
                         &(inferd_request){.model = names[i], .inputs = &input, .input_count = 1},
                         &result, &err),
            0, "%s", err.text);
        const float *y = inferd_result_output(result, 0)->data;
        cr_expect_float_eq(y[0], 6, 1e-6);
        cr_expect_float_eq(y[1], 8, 1e-6);
        inferd_result_free(result);
    }
    expect_setting(client, "single", "policy", "memory", "model");
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// --- shapes that earlier requests had and that the daemon compiles again when it starts ---

static void infer_rows(inferd_client *client, int64_t rows)
{
    struct inferd_error err;
    inferd_result *result;
    float a[64] = {0}, b[64] = {0};
    const size_t size = (size_t)rows * 16;
    const inferd_tensor inputs[] = {
        {.name = "a", .dtype = INFERD_FP32, .rank = 2, .shape = {rows, 4}, .data = a, .size = size},
        {.name = "b",
         .dtype = INFERD_FP32,
         .rank = 2,
         .shape = {rows, 4},
         .data = b,
         .size = size}};
    cr_assert_eq(inferd_infer(client,
                              &(inferd_request){.model = "add", .inputs = inputs, .input_count = 2},
                              &result, &err),
                 0, "%s", err.text);
    inferd_result_free(result);
}

// Returns the memory of a model. It grows with the number of shapes for which the model is
// compiled, because each shape has an arena.
static uint64_t memory_of(inferd_client *client, const char *model)
{
    return row_of(client, model).memory_bytes;
}

// Disables batching, because the daemon would also compile the model for batches.
#define NO_BATCHES "--batch-rows-max=1"

Test(model_conf, shapes_that_were_served_are_compiled_at_the_next_start)
{
    struct inf_fixture fixture;
    char cache[128], option[160];
    inf_fixture_start(&fixture, NULL);
    snprintf(cache, sizeof cache, "%s/cache", fixture.directory);
    snprintf(option, sizeof option, "--cache-dir=%s", cache);
    cr_assert_eq(mkdir(cache, 0700), 0);
    const char *const arguments[] = {option, NO_BATCHES, "--device=ref", NULL};
    inf_fixture_restart(&fixture, arguments);
    inferd_client *client = connect_to(fixture.socket);
    uint64_t fresh = memory_of(client, "add");
    infer_rows(client, 7);
    uint64_t served = memory_of(client, "add");
    cr_assert_gt(served, fresh, "it was compiled for what came");
    inferd_close(client);

    inf_fixture_restart(&fixture, arguments);
    client = connect_to(fixture.socket);
    uint64_t ready = memory_of(client, "add");
    cr_expect_neq(ready, fresh);
    infer_rows(client, 7);
    cr_expect_eq(memory_of(client, "add"), ready, "nothing is compiled with the first request");
    inferd_close(client);

    write_conf(&fixture, "add", "remember_shapes = no\n");
    inf_fixture_restart(&fixture, arguments);
    client = connect_to(fixture.socket);
    cr_expect_eq(memory_of(client, "add"), fresh);
    inferd_close(client);

    // Given a shapes.db of another program, expect a warning and the same behaviour as at the first
    // start.
    char file[160];
    snprintf(file, sizeof file, "%s/shapes.db", cache);
    FILE *stream = fopen(file, "w");
    cr_assert_not_null(stream);
    fputs("inferd-shapes 1\n0000000000000001 9x9 0000000000000000\nrubbish", stream);
    fclose(stream);
    write_conf(&fixture, "add", "");
    inf_fixture_restart(&fixture, arguments);
    client = connect_to(fixture.socket);
    cr_expect_eq(memory_of(client, "add"), fresh);
    infer_rows(client, 7);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(model_conf, a_model_is_compiled_for_the_shapes_of_its_file)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, (const char *const[]){NO_BATCHES, "--device=ref", NULL});
    inferd_client *client = connect_to(fixture.socket);
    uint64_t fresh = memory_of(client, "add");
    write_conf(&fixture, "add",
               "warmup_shapes = a=1x4 b=1x4; a=5x4,b=5x4\nwarmup_shapes = a=9x4 b=9x4\n");
    reload_until(&fixture, client, "add", "warmup_shapes", "a=1x4 b=1x4; a=5x4,b=5x4; a=9x4 b=9x4");
    uint64_t ready = memory_of(client, "add");
    cr_expect_gt(ready, fresh);
    infer_rows(client, 1);
    infer_rows(client, 5);
    infer_rows(client, 9);
    cr_expect_eq(memory_of(client, "add"), ready, "nothing is compiled with requests");
    infer_rows(client, 6);
    cr_expect_gt(memory_of(client, "add"), ready, "shapes that were not named are compiled, too");

    write_conf(&fixture, "add", "warmup_shapes = a=1x5 b=1x5\n");
    cr_assert_eq(kill(fixture.pid, SIGHUP), 0);
    inferd_model_row row = {0};
    const char *wanted = "input 'a': shape is [1,5], wanted";
    for (int k = 0; k < 3000 && strstr(row.reason, wanted) == NULL; k++) {
        if (k > 0)
            pause_briefly();
        row = row_of(client, "add");
    }
    cr_expect(strstr(row.reason, wanted) != NULL, "%s", row.reason);
    infer_rows(client, 5);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

// Writes a model whose output y, INT64 [1,?], has the indices at which x, FP32 [?], is not 0.
static void write_picking_model(const struct inf_fixture *fixture)
{
    struct inf_pb_writer model = {0};
    inf_onnx_put_head(&model, 13);
    inf_pb_open(&model, 7);
    inf_onnx_put_port(&model, 11, "x", 1, (const int64_t[]){-1}, 1);
    inf_onnx_put_port(&model, 12, "y", 7, (const int64_t[]){1, -1}, 2);
    inf_onnx_open_node(&model, "NonZero", "x", NULL, "y");
    inf_pb_close(&model);
    inf_pb_close(&model);
    write_file(fixture, "picking.onnx", model.data, model.size);
    inf_pb_writer_fini(&model);
}

Test(model_conf, a_model_whose_sizes_hang_on_values_is_compiled_for_shapes_too)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, (const char *const[]){NO_BATCHES, "--device=ref", NULL});
    inferd_client *client = connect_to(fixture.socket);
    static const char settings[] = "warmup_shapes = x=5\n";
    write_file(&fixture, "picking.conf", settings, sizeof settings - 1);
    write_picking_model(&fixture);
    cr_assert_eq(kill(fixture.pid, SIGHUP), 0);
    inferd_model_row row = {0};
    for (int k = 0; k < 3000 && strcmp(row.state, "READY") != 0; k++) {
        if (k > 0)
            pause_briefly();
        row = row_of(client, "picking");
        cr_assert_str_neq(row.state, "FAILED", "%s", row.reason);
    }
    float x[] = {0, 3, 0, 0, 4};
    const inferd_tensor input = {
        .name = "x", .dtype = INFERD_FP32, .rank = 1, .shape = {5}, .data = x, .size = sizeof x};
    struct inferd_error err;
    inferd_result *result;
    cr_assert_eq(
        inferd_infer(client,
                     &(inferd_request){.model = "picking", .inputs = &input, .input_count = 1},
                     &result, &err),
        0, "%s", err.text);
    const inferd_tensor *y = inferd_result_output(result, 0);
    cr_assert_eq(y->shape[1], 2);
    cr_expect_eq(((const int64_t *)y->data)[0], 1);
    cr_expect_eq(((const int64_t *)y->data)[1], 4);
    inferd_result_free(result);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}

Test(model_conf, warm_compiles_without_running)
{
    struct inf_fixture fixture;
    struct inf_inferctl run;
    inf_fixture_start(&fixture, (const char *const[]){NO_BATCHES, "--device=ref", NULL});
    inferd_client *client = connect_to(fixture.socket);
    uint64_t fresh = memory_of(client, "add");
    RUN(&run, fixture.socket, "warm", "add", "--shape=a=3x4 b=3x4");
    cr_expect_eq(run.code, 5, "the data socket: %s", run.err);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "warm", "add", "--shape=a=3x4 b=3x4", "-s", "a=8x4 b=8x4");
    cr_expect_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    uint64_t ready = memory_of(client, "add");
    cr_expect_gt(ready, fresh);
    cr_expect_eq(row_of(client, "add").requests, 0u, "nothing ran");
    infer_rows(client, 3);
    infer_rows(client, 8);
    cr_expect_eq(memory_of(client, "add"), ready, "nothing is compiled with the first request");
    static const struct {
        const char *shape, *wanted;
    } cases[] = {{"a=3x5 b=3x5", "input 'a': shape is [3,5], wanted [?,4]"},
                 {"c=3x4", "input 'c': the model has no such input"},
                 {"a=3x", "wanted INPUT=1x3x224x224"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        RUN(&run, fixture.admin_socket, "warm", "add", "-s", cases[i].shape);
        cr_expect_eq(run.code, 1);
        cr_expect(strstr(run.err, cases[i].wanted) != NULL, "no '%s' in: %s", cases[i].wanted,
                  run.err);
        inf_inferctl_free(&run);
    }
    RUN(&run, fixture.admin_socket, "warm", "absent");
    cr_expect_eq(run.code, 4, "%s", run.err);
    inf_inferctl_free(&run);
    inferd_close(client);
    inf_fixture_stop(&fixture);
}
