// SPDX-License-Identifier: Apache-2.0
// Tests of the run options of a request: its precision and its mode. They use a whole daemon and
// devices that compute in less than fp32.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/inferd.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"
#include "tests/support/models/tfjs_writer.h"

static struct inf_fixture fixture;
static inferd_client *client, *admin;
static char log_path[64];

// Starts a daemon that logs to a file, and connects to both of its sockets.
static void start_daemon(const char *const *arguments)
{
    struct inferd_error err;
    strcpy(log_path, "/tmp/inf-run-options-XXXXXX");
    int log = mkstemp(log_path);
    cr_assert_geq(log, 0);
    close(log);
    inf_fixture_start_logged(&fixture, log_path, arguments);
    cr_assert_eq(inferd_connect(&client, fixture.socket, &err), 0, "%s", err.text);
    cr_assert_eq(inferd_connect(&admin, fixture.admin_socket, &err), 0, "%s", err.text);
}

static void stop_daemon(void)
{
    inferd_close(client);
    inferd_close(admin);
    inf_fixture_stop(&fixture);
    unlink(log_path);
}

TestSuite(run_options, .timeout = 200);

static char *read_log(void)
{
    static char text[1 << 18];
    FILE *file = fopen(log_path, "rb");
    cr_assert_not_null(file);
    size_t size = fread(text, 1, sizeof text - 1, file);
    text[size] = '\0';
    fclose(file);
    return text;
}

// Waits until a line of the log contains `wanted`, and returns the log.
static char *await_log(const char *wanted)
{
    for (int tries = 0; tries < 2000; tries++) {
        char *text = read_log();
        if (strstr(text, wanted) != NULL)
            return text;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_assert_fail("no '%s' in the log: %s", wanted, read_log());
    return NULL;
}

// Loads the model "square": y = ((x * x) * 1e-4) * w, with shape [4].
static void load_square(float w)
{
    char directory[128];
    struct inferd_error err;
    snprintf(directory, sizeof directory, "%s/square", fixture.directory);
    cr_assert_eq(mkdir(directory, 0700), 0);
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (const int64_t[]){4}, 1);
    inf_tfjs_writer_floats(writer, "small", (const float[]){1e-4f}, (const int64_t[]){1}, 1);
    inf_tfjs_writer_floats(writer, "w", &w, (const int64_t[]){1}, 1);
    inf_tfjs_writer_node(writer, "squared", "Mul", "x,x");
    inf_tfjs_writer_node(writer, "scaled", "Mul", "squared,small");
    inf_tfjs_writer_node(writer, "y", "Mul", "scaled,w");
    inf_tfjs_writer_output(writer, "y", "y:0");
    inf_tfjs_writer_end(writer);
    cr_assert_eq(inferd_load(admin, "square", directory, NULL, NULL, NULL, &err), 0, "%s",
                 err.text);
}

struct asked {
    const char *device, *precision, *mode;
};

// Flags in the last answer, such as whether it was computed again in fp32.
static unsigned last_flags;

// Runs "square" with x as the first element, and returns the first element of the answer.
// `precision` gets the precision of the run.
static float send_request(inferd_client *by, float x, struct asked asked, char precision[8])
{
    struct inferd_error err;
    inferd_result *result = NULL;
    float inputs[4] = {x, 0, 0, 0};
    const inferd_tensor input = {.name = "x",
                                 .dtype = INFERD_FP32,
                                 .rank = 1,
                                 .shape = {4},
                                 .data = inputs,
                                 .size = sizeof inputs};
    const inferd_request request = {.model = "square",
                                    .device = asked.device,
                                    .id = "the-one",
                                    .inputs = &input,
                                    .input_count = 1};
    cr_assert_eq(inferd_set_run_options(by, asked.precision, asked.mode, &err), 0, "%s", err.text);
    if (inferd_infer(by, &request, &result, &err) != 0) {
        snprintf(precision, 8, "%d", err.code);
        return NAN;
    }
    float y = ((const float *)inferd_result_output(result, 0)->data)[0];
    snprintf(precision, 8, "%s", inferd_result_precision(result));
    last_flags = inferd_result_flags(result);
    inferd_result_free(result);
    return y;
}

static inferd_checks read_status(void)
{
    struct inferd_error err;
    inferd_checks checks;
    cr_assert_eq(inferd_status_checks(client, &checks, &err), 0, "%s", err.text);
    return checks;
}

// --- requests that name a precision ---

Test(run_options, a_request_names_its_precision_and_the_answer_tells)
{
    char precision[8];
    start_daemon((const char *const[]){"--backends=half", NULL});
    load_square(1);
    cr_expect_float_eq(send_request(client, 3, (struct asked){0}, precision), 9e-4f, 1e-9);
    cr_expect_str_eq(precision, "fp32");
    float half = send_request(client, 3, (struct asked){.precision = "fp16"}, precision);
    cr_expect_float_eq(half, 9e-4f, 1e-6);
    cr_expect_neq(half, 9e-4f, "it was rounded");
    cr_expect_str_eq(precision, "fp16");
    send_request(client, 3, (struct asked){.precision = "bf16"}, precision);
    cr_expect_str_eq(precision, "bf16");
    cr_expect_float_eq(send_request(client, 3, (struct asked){.precision = "fp32"}, precision),
                       9e-4f, 1e-9);
    cr_expect_str_eq(precision, "fp32");
    // Setting another option must not change the option that was set before.
    cr_expect_float_eq(send_request(client, 3, (struct asked){0}, precision), 9e-4f, 1e-9);
    cr_expect_str_eq(precision, "fp32");
    stop_daemon();
}

Test(run_options, a_precision_that_is_not_offered_is_refused)
{
    char precision[8];
    start_daemon((const char *const[]){"--backends=half", NULL});
    load_square(1);
    send_request(client, 3, (struct asked){.precision = "int8"}, precision);
    cr_expect_eq(atoi(precision), INFERD_UNIMPLEMENTED);
    send_request(client, 3, (struct asked){.device = "ref", .precision = "fp16"}, precision);
    cr_expect_eq(atoi(precision), INFERD_UNIMPLEMENTED);
    send_request(client, 3, (struct asked){.precision = "fp8"}, precision);
    cr_expect_eq(atoi(precision), INFERD_INVALID_ARGUMENT);
    send_request(client, 3, (struct asked){.mode = "quick"}, precision);
    cr_expect_eq(atoi(precision), INFERD_INVALID_ARGUMENT);
    stop_daemon();
}

Test(run_options, verify_compares_every_precision)
{
    struct inf_inferctl run;
    start_daemon((const char *const[]){"--backends=half", NULL});
    load_square(1);
    inf_inferctl_run(&run, fixture.socket,
                     (const char *const[]){"verify", "square", "--json", NULL});
    cr_expect_eq(run.code, 0, "%s%s", run.out, run.err);
    json_t *rows = inf_inferctl_json(&run);
    static const char *const wanted[][2] = {
        {"half", "bf16"}, {"half", "fp16"}, {"half", "fp32"}, {"ref", "fp32"}};
    cr_assert_eq(json_array_size(rows), 4u, "%s", run.out);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(rows, i);
        cr_expect_str_eq(json_string_value(json_object_get(row, "device")), wanted[i][0]);
        cr_expect_str_eq(json_string_value(json_object_get(row, "asked")), wanted[i][1]);
        cr_expect_str_eq(json_string_value(json_object_get(row, "precision")), wanted[i][1]);
        cr_expect_eq(json_number_value(json_object_get(row, "max_abs")) > 0, i < 2);
        cr_expect_str_eq(json_string_value(json_object_get(row, "verdict")), "ok");
    }
    json_decref(rows);
    inf_inferctl_free(&run);
    stop_daemon();
}

// The square of 300 exceeds the range of fp16, so the daemon computes each such request again in
// fp32. The model itself is placed in fp32, so it is not demoted (moved to fp32 permanently).
Test(run_options, what_overflows_is_never_answered)
{
    char precision[8];
    start_daemon((const char *const[]){"--backends=half", NULL});
    load_square(1);
    cr_expect_float_eq(send_request(client, 300, (struct asked){.precision = "fp16"}, precision), 9,
                       1e-5);
    cr_expect_str_eq(precision, "fp32");
    cr_expect_float_eq(send_request(client, 3, (struct asked){.precision = "fp16"}, precision),
                       9e-4f, 1e-6);
    cr_expect_str_eq(precision, "fp16");
    cr_expect_eq(read_status().models_demoted, 0u);
    stop_daemon();
}

// Given a model that is placed in fp16 and then gets an input that overflows, expect an answer in
// fp32 and the demotion of the model.
Test(run_options, a_model_that_overflows_while_it_serves_is_demoted)
{
    char precision[8];
    struct inferd_error err;
    inferd_placement *placement = NULL;
    start_daemon((const char *const[]){"--backends=half", NULL});
    load_square(10000); // with this weight, y = x * x
    const inferd_place_request order = {.model = "square", .device = "half", .precision = "fp16"};
    cr_assert_eq(inferd_place(admin, &order, NULL, NULL, &err), 0, "%s", err.text);
    cr_expect_float_eq(send_request(client, 3, (struct asked){0}, precision), 9, 0.01);
    cr_expect_str_eq(precision, "fp16");
    cr_expect_eq(read_status().models_demoted, 0u);
    float again =
        // Call the function outside of the assertion macro, which would evaluate the call twice.
        send_request(client, 300, (struct asked){0}, precision);
    cr_expect_float_eq(again, 9e4f, 1);
    cr_expect_str_eq(precision, "fp32", "it was computed again");
    cr_expect_eq(last_flags, INFERD_RECOMPUTED);
    cr_expect_float_eq(send_request(client, 3, (struct asked){0}, precision), 9, 1e-5);
    cr_expect_str_eq(precision, "fp32", "from then on");
    cr_expect_eq(last_flags, 0u);
    cr_expect_eq(read_status().models_demoted, 1u);
    cr_assert_eq(inferd_explain(client, "square", NULL, &placement, &err), 0, "%s", err.text);
    cr_expect_str_eq(placement->precision, "fp32");
    cr_expect(strstr(placement->precision_reason, "gave values that are not finite") != NULL, "%s",
              placement->precision_reason);
    cr_expect_eq(placement->recomputed, 1u);
    inferd_placement_free(placement);
    await_log("model demoted name=square");
    stop_daemon();
}

// A model whose weight overflows in fp16. Expect that the daemon keeps the affected nodes in fp32,
// so that answers are right in every requested precision, and that it reports the reason.
Test(run_options, a_model_built_to_overflow_answers_right)
{
    static const char *const precisions[] = {"auto", "fp16"};
    char precision[8];
    struct inferd_error err;
    start_daemon((const char *const[]){"--backends=half", NULL});
    load_square(3e8f); // the value becomes an infinity in fp16
    for (size_t i = 0; i < 2; i++) {
        inferd_placement *placement = NULL;
        const inferd_place_request order = {
            .model = "square", .device = "half", .precision = precisions[i]};
        int code = inferd_place(admin, &order, NULL, NULL, &err);
        cr_assert_eq(inferd_explain(client, "square", NULL, &placement, &err), 0, "%s", err.text);
        cr_expect(code != 0 || i == 0 || placement->precision_reason[0] != '\0');
        inferd_placement_free(placement);
        cr_expect_float_eq(send_request(client, 1, (struct asked){0}, precision), 3e4f, 30);
        cr_expect_float_eq(send_request(client, 300, (struct asked){0}, precision), 2.7e9f, 1e3);
    }
    cr_expect_float_eq(send_request(client, 300, (struct asked){.precision = "fp16"}, precision),
                       2.7e9f, 1e3);
    stop_daemon();
}

// --- the daemon's lists of devices and backends ---

Test(run_options, backends_are_listed_with_why_they_are_left_out)
{
    static const struct {
        const char *name, *why;
        int devices;
    } wanted[] = {{"absent", "the driver is not there", 0},
                  {"half", "", 1},
                  {"wrong", "the settings name others", 0},
                  {"ref", "", 1}};
    struct inf_inferctl run;
    start_daemon((const char *const[]){"--backends=absent,half", NULL});
    inf_inferctl_run(&run, fixture.socket, (const char *const[]){"backends", "--json", NULL});
    cr_expect_eq(run.code, 0, "%s", run.err);
    json_t *rows = inf_inferctl_json(&run);
    size_t found = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        for (size_t k = 0; k < sizeof wanted / sizeof wanted[0]; k++) {
            if (strcmp(json_string_value(json_object_get(row, "name")), wanted[k].name) != 0)
                continue;
            found++;
            cr_expect_str_eq(json_string_value(json_object_get(row, "left_out")), wanted[k].why);
            cr_expect_eq(json_integer_value(json_object_get(row, "devices")), wanted[k].devices);
            cr_expect_gt(json_integer_value(json_object_get(row, "priority")), 0);
        }
    }
    cr_expect_eq(found, sizeof wanted / sizeof wanted[0], "%s", run.out);
    json_decref(rows);
    inf_inferctl_free(&run);
    stop_daemon();
}

// The static rule prefers the slow device, which reports itself as a CPU of higher priority. The
// timing comparison chooses the reference device `ref`.
Test(run_options, advise_says_where_the_rule_is_wrong)
{
    struct inf_inferctl run;
    json_t *told = NULL;
    start_daemon((const char *const[]){"--backends=slow", "--race=always", NULL});
    for (int tries = 0; tries < 3000; tries++) {
        inf_inferctl_run(&run, fixture.socket,
                         (const char *const[]){"advise", "add", "--json", NULL});
        cr_assert_eq(run.code, 0, "%s", run.err);
        told = inf_inferctl_json(&run);
        inf_inferctl_free(&run);
        if (strcmp(json_string_value(json_object_get(told, "source")), "race") == 0 ||
            tries == 2999)
            break;
        json_decref(told);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_expect_str_eq(json_string_value(json_object_get(told, "rule_device")), "slow");
    cr_expect_str_eq(json_string_value(json_object_get(told, "measured_device")), "ref");
    cr_expect_str_eq(json_string_value(json_object_get(told, "judgement")),
                     "the rule is wrong here");
    json_decref(told);
    stop_daemon();
}

// --- requests that name one of the modes debug and prod ---

Test(run_options, a_request_in_debug_mode_has_each_node_logged)
{
    char precision[8];
    start_daemon((const char *const[]){"--backends=half", "--log-level=info", NULL});
    load_square(1);
    send_request(client, 3, (struct asked){.mode = "debug"}, precision);
    cr_expect_eq(atoi(precision), INFERD_PERMISSION_DENIED, "it is for admins");
    cr_expect_float_eq(
        send_request(admin, 3, (struct asked){.device = "ref", .mode = "debug"}, precision), 9e-4f,
        1e-9);
    const char *log = await_log("request traced model=square");
    static const char *const wanted[] = {
        "node model=square name=\"squared\" op=binary device=ref kernel=\"",
        "output=\"FP32 [4]\" inputs=\"FP32 [4], FP32 [4]\" bytes=16",
        "largest=9 nan=0 inf=0 verdict=\"\"", "id=\"the-one\" device=ref precision=fp32 nodes=3"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        cr_expect(strstr(log, wanted[i]) != NULL, "no '%s' in: %s", wanted[i], log);
    stop_daemon();
}

Test(run_options, a_model_in_debug_mode_tells_where_numbers_stop_being_finite)
{
    char precision[8];
    struct inferd_error err;
    start_daemon((const char *const[]){"--backends=half", "--log-level=info", NULL});
    load_square(1);
    const inferd_place_request order = {.model = "square", .mode = "debug"};
    cr_assert_eq(inferd_place(admin, &order, NULL, NULL, &err), 0, "%s", err.text);
    send_request(client, 1e30f, (struct asked){0}, precision);
    const char *log = await_log("request traced model=square");
    cr_expect(strstr(log, "nan=0 inf=1 verdict=\"made here\"") != NULL, "%s", log);
    cr_expect(strstr(log, "nan=0 inf=1 verdict=\"came in\"") != NULL, "%s", log);
    cr_expect(strstr(log, "not_finite_from=\"squared\"") != NULL, "%s", log);
    stop_daemon();
}

Test(run_options, answers_in_prod_mode_are_not_checked_again)
{
    char precision[8];
    start_daemon((const char *const[]){"--backends=half", "--shadow_interval=1", NULL});
    load_square(1);
    for (int i = 0; i < 20; i++)
        cr_expect_float_eq(send_request(client, 3, (struct asked){.mode = "prod"}, precision),
                           9e-4f, 1e-9);
    inferd_checks now = read_status();
    cr_expect_eq(now.answers_checked + now.answers_unchecked, 0u);
    for (int tries = 0; tries < 500 && now.answers_checked == 0; tries++) {
        send_request(client, 3, (struct asked){0}, precision);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        now = read_status();
    }
    cr_expect_gt(now.answers_checked, 0u);
    cr_expect_eq(now.answers_drifted, 0u);
    // In prod mode, the daemon still refuses a request with a wrong shape.
    const inferd_tensor input = {.name = "x", .dtype = INFERD_FP32, .rank = 1, .shape = {2}};
    struct inferd_error err;
    inferd_result *result = NULL;
    cr_assert_eq(inferd_set_run_options(client, NULL, "prod", &err), 0);
    cr_expect_eq(
        inferd_infer(client,
                     &(inferd_request){.model = "square", .inputs = &input, .input_count = 1},
                     &result, &err),
        INFERD_INVALID_ARGUMENT);
    stop_daemon();
}
