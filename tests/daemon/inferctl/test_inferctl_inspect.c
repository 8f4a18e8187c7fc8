// SPDX-License-Identifier: Apache-2.0
// Tests of inspecting models with inferctl and a real daemon.
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"
#include "tests/support/models/tfjs_writer.h"

#define RUN(run, socket, ...)                                                                      \
    inf_inferctl_run(run, socket, (const char *const[]){__VA_ARGS__, NULL})

// Returns the object in `rows` that reports about the node called `name`.
static const json_t *find_node(const json_t *rows, const char *name)
{
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i, row) if (strcmp(json_string_value(json_object_get(row, "node")),
                                                name) == 0) return row;
    cr_assert_fail("there is no node %s", name);
    return NULL;
}

static void expect_text(const json_t *row, const char *key, const char *wanted)
{
    cr_expect_str_eq(json_string_value(json_object_get(row, key)), wanted, "%s", key);
}

static void load_model(const struct inf_fixture *fixture, const char *name, const char *directory)
{
    struct inf_inferctl run;
    RUN(&run, fixture->admin_socket, "load", name, directory);
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
}

// Writes the model y = ln(x - 2) + 1. For inputs from 0 to 1, the logarithm is NaN.
static void write_bad_model(const char *directory)
{
    cr_assert_eq(mkdir(directory, 0700), 0);
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (const int64_t[]){-1, 4}, 2);
    inf_tfjs_writer_floats(writer, "two", (const float[]){2, 2, 2, 2}, (const int64_t[]){4}, 1);
    inf_tfjs_writer_node(writer, "less", "Sub", "x,two");
    inf_tfjs_writer_node(writer, "log", "Log", "less");
    inf_tfjs_writer_node(writer, "y", "AddV2", "log,two");
    inf_tfjs_writer_output(writer, "y", "y:0");
    inf_tfjs_writer_end(writer);
}

Test(inferctl_inspect, profile_times_each_node_and_writes_a_trace)
{
    struct inf_fixture fixture;
    struct inf_inferctl run;
    char trace[128];
    json_error_t error;
    inf_fixture_start(&fixture, NULL);
    snprintf(trace, sizeof trace, "%s/trace.json", fixture.directory);
    RUN(&run, fixture.admin_socket, "profile", "conv", "--trace", trace, "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *rows = inf_inferctl_json(&run);
    double total_ms = 0;
    size_t i, steps = 0, events = 0;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        total_ms += json_number_value(json_object_get(row, "ms"));
        steps += json_number_value(json_object_get(row, "ms")) > 0;
        cr_expect(json_is_integer(json_object_get(row, "threads")));
    }
    cr_expect_gt(total_ms, 0);
    json_t *written = json_load_file(trace, 0, &error);
    cr_assert_not_null(written, "%s", error.text);
    json_array_foreach(json_object_get(written, "traceEvents"), i, row) events +=
        strcmp(json_string_value(json_object_get(row, "ph")), "X") == 0;
    cr_expect_geq(events, steps);
    json_decref(written);
    json_decref(rows);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "profile", "conv");
    cr_expect_eq(run.code, 5, "%s", run.err);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "profile", "conv", "-d", "moon");
    cr_expect_eq(run.code, 4, "%s", run.err);
    inf_inferctl_free(&run);
    inf_fixture_stop(&fixture);
}

Test(inferctl_inspect, debug_names_the_node_that_makes_nan)
{
    struct inf_fixture fixture;
    struct inf_inferctl run;
    char directory[128];
    inf_fixture_start(&fixture, NULL);
    snprintf(directory, sizeof directory, "%s/bad", fixture.directory);
    write_bad_model(directory);
    load_model(&fixture, "bad", directory);
    RUN(&run, fixture.admin_socket, "debug", "bad", "--json");
    cr_expect_eq(run.code, 1);
    cr_expect(strstr(run.err, "node 'log' (unary) makes numbers that are not finite: 4 NaN") !=
                  NULL,
              "%s", run.err);
    json_t *rows = inf_inferctl_json(&run);
    expect_text(find_node(rows, "less"), "verdict", "");
    expect_text(find_node(rows, "less"), "output", "FP32 [1,4]");
    expect_text(find_node(rows, "less"), "inputs", "FP32 [1,4], FP32 [4]");
    expect_text(find_node(rows, "log"), "verdict", "made here");
    expect_text(find_node(rows, "y"), "verdict", "came in");
    cr_expect_eq(json_integer_value(json_object_get(find_node(rows, "log"), "nan")), 4);
    cr_expect_lt(json_number_value(json_object_get(find_node(rows, "less"), "largest")), -1 + 1e-6);
    json_decref(rows);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "debug", "add");
    cr_expect_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    inf_fixture_stop(&fixture);
}

Test(inferctl_inspect, diff_compares_devices_node_by_node)
{
    struct inf_fixture fixture;
    struct inf_inferctl run;
    inf_fixture_start(&fixture, NULL);
    RUN(&run, fixture.admin_socket, "diff", "conv", "--json");
    cr_expect_eq(run.code, 0, "%s", run.err);
    json_t *rows = inf_inferctl_json(&run);
    cr_expect_gt(json_array_size(rows), 0u);
    expect_text(json_array_get(rows, 0), "verdict", "ok");
    json_decref(rows);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "diff", "conv", "-a", "moon");
    cr_expect_eq(run.code, 4, "%s", run.err);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "diff", "conv", "-e", "-1");
    cr_expect_eq(run.code, 2, "%s", run.err);
    inf_inferctl_free(&run);
    inf_fixture_stop(&fixture);
}
