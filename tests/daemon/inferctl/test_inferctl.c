// SPDX-License-Identifier: Apache-2.0
// Tests of inferctl with a real daemon: its verbs, exit codes and output formats.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/npy/npy.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"

static const char *const verbs[] = {"status", "devices", "models", "load",
                                    "unload", "infer",   "verify", "bench"};
#define VERB_COUNT (sizeof verbs / sizeof verbs[0])

#define RUN(run, socket, ...)                                                                      \
    inf_inferctl_run(run, socket, (const char *const[]){__VA_ARGS__, NULL})

// Runs inferctl and checks its exit code and that its standard error contains `wanted`.
#define CHECK(code, wanted, socket, ...)                                                           \
    check_command(code, wanted, socket, (const char *const[]){__VA_ARGS__, NULL})

static void check_command(int code, const char *wanted, const char *socket,
                          const char *const *arguments)
{
    struct inf_inferctl run;
    inf_inferctl_run(&run, socket, arguments);
    cr_expect_eq(run.code, code, "%s: exit code %d, wanted %d: %s", arguments[0], run.code, code,
                 run.err);
    cr_expect(strstr(run.err, wanted) != NULL, "'%s' is not in: %s", wanted, run.err);
    cr_expect(code == 0 || strncmp(run.err, "inferctl: ", 10) == 0 || code == 2, "%s", run.err);
    inf_inferctl_free(&run);
}

static json_int_t read_integer(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_integer(value), "%s", key);
    return json_integer_value(value);
}

static double read_number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    cr_assert(json_is_number(value), "%s", key);
    return json_number_value(value);
}

static const char *read_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    cr_assert_not_null(value, "%s", key);
    return value;
}

// Returns the row of the array that has this name.
static const json_t *find_row(const json_t *rows, const char *name)
{
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row) if (strcmp(read_text(row, "name"), name) == 0) return row;
    cr_assert_fail("there is no row %s", name);
    return NULL;
}

// --- tests without a daemon ---

Test(inferctl, help_is_everywhere)
{
    struct inf_inferctl run;
    RUN(&run, NULL, "--help");
    cr_assert_eq(run.code, 0);
    cr_assert_str_empty(run.err);
    for (size_t i = 0; i < VERB_COUNT; i++)
        cr_expect(strstr(run.out, verbs[i]) != NULL, "%s", verbs[i]);
    inf_inferctl_free(&run);
    static const char *const spellings[] = {"--help", "-h", "--he"};
    for (size_t i = 0; i < VERB_COUNT * 3; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "usage: inferctl %s [OPTION ...]", verbs[i / 3]);
        RUN(&run, NULL, verbs[i / 3], spellings[i % 3]);
        cr_expect_eq(run.code, 0);
        cr_expect_str_empty(run.err);
        cr_expect_eq(strncmp(run.out, usage, strlen(usage)), 0, "%s", run.out);
        inf_inferctl_free(&run);
    }
    RUN(&run, NULL, "--version");
    cr_assert_eq(run.code, 0);
    cr_assert_eq(strncmp(run.out, "inferctl ", 9), 0);
    inf_inferctl_free(&run);
}

Test(inferctl, wrong_arguments_are_2)
{
    const char *no = "/nonexistent";
    struct inf_inferctl run;
    inf_inferctl_run(&run, no, (const char *const[]){NULL});
    cr_assert_eq(run.code, 2);
    cr_assert_str_empty(run.out);
    inf_inferctl_free(&run);
    CHECK(2, "there is no verb 'frobnicate'", no, "frobnicate");
    CHECK(2, "there is no verb 'modles'; is 'models' meant?", no, "modles");
    CHECK(2, "there is no verb ''", no, "");
    CHECK(2, "wanted table or json", no, "-o", "xml", "status");
    CHECK(2, "wanted table or json", no, "status", "-o", "");
    CHECK(2, "unrecognized option", no, "--frob", "status");
    CHECK(2, "unrecognized option", no, "status", "--frob");
    CHECK(2, "'x' is one argument too many", no, "status", "x");
    CHECK(2, "'c' is one argument too many", no, "load", "a", "b", "c");
    CHECK(2, "load wants MODEL [FILE]", no, "load");
    CHECK(2, "infer wants MODEL", no, "infer");
    CHECK(2, "goes with a MODEL", no, "models", "--version", "1");
    CHECK(2, "requires an argument", no, "infer", "m", "-i");
    static const char *const numbers[] = {
        "0", "-1", "+1", " 1", "1x", "", "x", "1.5", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        CHECK(2, "wanted a whole number from 1 to 1024", no, "bench", "m", "-c", numbers[i]);
        CHECK(2, "wanted a whole number from 1 to 10000000", no, "bench", "m", "-n", numbers[i]);
        CHECK(2, "wanted a whole number from 1 to 86400000", no, "infer", "m", "-t", numbers[i]);
        CHECK(2, "wanted LOW:HIGH", no, "infer", "m", "-r", numbers[i]);
    }
    CHECK(2, "wanted a whole number from 0 to 100", no, "infer", "m", "-k", "101");
}

Test(inferctl, no_daemon_is_3)
{
    static const char *const socket = "/tmp/inf-no-daemon-listens.sock";
    for (size_t i = 0; i < VERB_COUNT; i++) {
        bool takes_model = i >= 3;
        CHECK(3, "no daemon listens on '/tmp/inf-no-daemon-listens.sock'", socket, verbs[i],
              takes_model ? "m" : NULL);
    }
    CHECK(3, "no daemon listens on", NULL, "status", "--socket", socket);
    setenv("INFERD_SOCKET", socket, 1);
    CHECK(3, "/tmp/inf-no-daemon-listens.sock", NULL, "status");
    CHECK(3, "/tmp/inf-no-daemon-listens.sock", NULL, "load", "m");
    setenv("INFERD_SOCKET", "/nonexistent/other.sock", 1); // expect that the option overrides this
    CHECK(3, "/tmp/inf-no-daemon-listens.sock", socket, "status");
}

// --- tests with a running daemon ---

static struct inf_fixture fixture;

static void start_fixture(void)
{
    inf_fixture_start(&fixture, NULL);
}

static void stop_fixture(void)
{
    inf_fixture_stop(&fixture);
}

TestSuite(inferctl_daemon, .init = start_fixture, .fini = stop_fixture);

Test(inferctl_daemon, shows_its_status)
{
    struct inf_inferctl run;
    RUN(&run, fixture.socket, "status");
    cr_assert_eq(run.code, 0, "%s", run.err);
    cr_assert_str_empty(run.err);
    cr_assert(strstr(run.out, "state              ready\n") != NULL, "%s", run.out);
    cr_assert(strstr(run.out, "\nmodels_ready       ") != NULL, "%s", run.out);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "status", "-o", "json");
    json_t *json = inf_inferctl_json(&run);
    cr_assert_str_eq(read_text(json, "state"), "ready");
    cr_assert_geq(read_integer(json, "models_ready"), 3); // at least the models add, conv and slow
    cr_assert_gt(read_number(json, "uptime_s"), 0);
    cr_assert_gt(read_integer(json, "resident_bytes"), 1000000);
    json_decref(json);
    inf_inferctl_free(&run);
}

Test(inferctl_daemon, prints_json_wherever_it_is_asked_for)
{
    struct inf_inferctl run;
    const char *const arguments[][5] = {
        {"--json", "devices"}, {"-o", "json", "devices"}, {"--output=json", "devices"},
        {"devices", "--json"}, {"devices", "-ojson"},     {"devices", "--output", "json"}};
    for (size_t i = 0; i < sizeof arguments / sizeof arguments[0]; i++) {
        inf_inferctl_run(&run, fixture.socket, arguments[i]);
        cr_assert_eq(run.code, 0, "%s", run.err);
        json_t *rows = inf_inferctl_json(&run);
        const json_t *ref = find_row(rows, "ref");
        cr_assert_str_eq(read_text(ref, "health"), "ok");
        cr_assert_eq(read_integer(ref, "slots"), 1);
        json_decref(rows);
        inf_inferctl_free(&run);
    }
}

Test(inferctl_daemon, lists_and_describes_models)
{
    struct inf_inferctl run;
    RUN(&run, fixture.socket, "models", "--json");
    json_t *rows = inf_inferctl_json(&run);
    cr_assert_str_eq(read_text(find_row(rows, "conv"), "state"), "READY");
    json_decref(rows);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "models", "conv", "--json");
    rows = inf_inferctl_json(&run);
    cr_assert_eq(json_array_size(rows), 2u);
    const json_t *input = json_array_get(rows, 0);
    cr_assert_str_eq(read_text(input, "direction"), "input");
    cr_assert_str_eq(read_text(input, "name"), "x");
    cr_assert_str_eq(read_text(input, "dtype"), "FP32");
    const json_t *shape = json_object_get(input, "shape");
    cr_assert(json_is_null(json_array_get(shape, 0)));
    cr_assert_eq(json_integer_value(json_array_get(shape, 3)), 3);
    json_decref(rows);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "models", "conv", "-v", "1");
    cr_assert_str_eq(run.out,
                     "direction  name  dtype  shape\n"
                     "input      x     FP32   [?,8,8,3]\n"
                     "output     y     FP32   [?,2,2,4]\n",
                     "%s", run.out);
    inf_inferctl_free(&run);
    CHECK(4, "model 'cnov' is not loaded; is 'conv' meant?", fixture.socket, "models", "cnov");
    CHECK(4, "model 'zzzzz' is not loaded\n", fixture.socket, "models", "zzzzz");
    CHECK(4, "version", fixture.socket, "models", "conv", "-v", "2");
}

Test(inferctl_daemon, loads_and_unloads)
{
    char file[160];
    struct inf_inferctl run;
    snprintf(file, sizeof file, "%s/add/1/model.json", fixture.repository);
    RUN(&run, fixture.admin_socket, "load", "sum", file);
    cr_assert_eq(run.code, 0, "%s", run.err);
    cr_assert_str_empty(run.err, "progress where there is no terminal: %s", run.err);
    cr_assert_eq(strncmp(run.out, "sum is ready (", 14), 0, "%s", run.out);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "load", "sum", file, "-d", "ref", "-o", "json");
    json_t *json = inf_inferctl_json(&run);
    cr_assert_str_eq(read_text(json, "model"), "sum");
    cr_assert_str_eq(read_text(json, "state"), "READY");
    cr_assert_geq(read_number(json, "seconds"), 0);
    json_decref(json);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "models", "--json");
    json = inf_inferctl_json(&run);
    cr_assert_str_eq(read_text(find_row(json, "sum"), "device"), "ref");
    json_decref(json);
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "unload", "sum", "--json");
    json = inf_inferctl_json(&run);
    cr_assert_str_eq(read_text(json, "state"), "UNLOADED");
    json_decref(json);
    inf_inferctl_free(&run);
    CHECK(4, "model 'sum' is not loaded", fixture.admin_socket, "unload", "sum");
    RUN(&run, fixture.admin_socket, "unload", "add");
    cr_assert_str_eq(run.out, "add is unloaded\n");
    inf_inferctl_free(&run);
    RUN(&run, fixture.admin_socket, "load", "add"); // loads the model from the daemon's repository
    cr_assert_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
}

Test(inferctl_daemon, each_failure_has_its_exit_code)
{
    const char *admin = fixture.admin_socket;
    char note[128];
    snprintf(note, sizeof note, "%s/note.txt", fixture.directory);
    FILE *file = fopen(note, "w");
    fputs("not a model", file);
    fclose(file);
    // Exit code 1: the daemon refused the request.
    CHECK(1, "no format that is known", admin, "load", "m", note);
    CHECK(1, "is no model's name", admin, "load", "a\"b/c", note);
    CHECK(1, "input 'a' is missing", admin, "infer", "add");
    // Exit code 4: the file was not found.
    CHECK(4, "'/nonexistent/m.json': No such file", admin, "load", "m", "/nonexistent/m.json");
    CHECK(4, "unheard", admin, "load", "unheard");
    CHECK(4, "'nope'", admin, "load", "add", "-d", "nope");
    CHECK(4, "'nope'", admin, "bench", "add", "-d", "nope");
    CHECK(4, "is 'add' meant?", admin, "bench", "adn");
    CHECK(4, "is 'slow' meant?", admin, "infer", "slwo", "-i", "x");
    CHECK(4, "version", admin, "infer", "add", "-v", "77");
    // Exit code 5: the data socket does not accept requests that are only for admins.
    CHECK(5, "admin socket", fixture.socket, "load", "add");
    CHECK(5, "admin socket", fixture.socket, "unload", "add");
}

Test(inferctl, out_of_time_is_6_and_a_daemon_that_dies_3)
{
    inf_fixture_start(&fixture, NULL);
    char path[128];
    snprintf(path, sizeof path, "%s/x.npy", fixture.directory);
    cr_assert_eq(inf_npy_save(path, INF_DTYPE_F32, &INF_SHAPE(1, 1), (float[]){1}, NULL), INF_OK);
    CHECK(6, "the time given ran out", fixture.socket, "infer", "slow", "-i", path, "-d", "ref",
          "-t", "30");
    // Expect exit code 3 if the daemon is killed while a request is in flight.
    struct inf_inferctl run;
    inf_inferctl_start(&run, &(struct inf_inferctl_setting){.socket = fixture.socket},
                       (const char *const[]){"infer", "slow", "-i", path, "-d", "ref", NULL});
    struct inf_raw raw;
    inf_raw_open(&raw, fixture.socket);
    inf_raw_wait_for(&raw, 1, 0);
    inf_raw_close(&raw);
    kill(fixture.pid, SIGKILL);
    inf_inferctl_wait(&run);
    cr_expect_eq(run.code, 3, "%d: %s", run.code, run.err);
    cr_expect(strstr(run.err, "the daemon closed the connection") != NULL, "%s", run.err);
    inf_inferctl_free(&run);
    waitpid(fixture.pid, NULL, 0);
    inf_fixture_remove(&fixture);
}

Test(inferctl_daemon, tells_progress_on_terminals_only)
{
    struct inf_inferctl run;
    const struct inf_inferctl_setting setting = {.socket = fixture.admin_socket, .terminal = true};
    inf_inferctl_start(&run, &setting, (const char *const[]){"load", "conv", NULL});
    inf_inferctl_wait(&run);
    cr_assert_eq(run.code, 0, "%s", run.err);
    cr_assert(strstr(run.err, "\r\033[Kconv: ") != NULL, "%s", run.err);
    cr_assert(strstr(run.err, " %") != NULL, "%s", run.err);
    // At the end, inferctl must clear the progress line on the terminal.
    cr_assert_geq(strlen(run.err), 4u);
    cr_assert_str_eq(run.err + strlen(run.err) - 4, "\r\033[K");
    inf_inferctl_free(&run);
    inf_inferctl_start(&run, &setting, (const char *const[]){"bench", "conv", "-n", "50", NULL});
    inf_inferctl_wait(&run);
    cr_assert_eq(run.code, 0, "%s", run.err);
    cr_assert(strstr(run.err, "\r\033[Kconv: warm-up") != NULL, "%s", run.err);
    cr_assert_str_eq(run.err + strlen(run.err) - 4, "\r\033[K");
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "bench", "conv", "-n", "50");
    cr_assert_eq(run.code, 0, "%s", run.err);
    cr_assert_str_empty(run.err);
    inf_inferctl_free(&run);
}

Test(inferctl_daemon, bench_measures_so_many_requests)
{
    struct inf_inferctl run;
    static const char *const streams[] = {"1", "5", "100"};
    for (int i = 0; i < 3; i++) {
        RUN(&run, fixture.socket, "bench", "conv", "-n", "40", "-c", streams[i], "--json");
        cr_assert_eq(run.code, 0, "%s", run.err);
        json_t *json = inf_inferctl_json(&run);
        cr_assert_str_eq(read_text(json, "model"), "conv");
        cr_assert_eq(read_integer(json, "requests"), 40);
        cr_assert_eq(read_integer(json, "streams"), atoi(streams[i]));
        static const char *const rising[] = {"min_ms", "median_ms", "p95_ms", "p99_ms", "max_ms"};
        cr_assert_gt(read_number(json, "min_ms"), 0);
        for (int k = 1; k < 5; k++)
            cr_assert_leq(read_number(json, rising[k - 1]), read_number(json, rising[k]), "%s",
                          run.out);
        cr_assert_leq(read_number(json, "mean_ms"), read_number(json, "max_ms"));
        cr_assert_leq(read_number(json, "compute_median_ms"), read_number(json, "median_ms"));
        cr_assert_gt(read_number(json, "first_ms"), 0);
        // With one stream, requests follow each other, so the sum of their times cannot exceed the
        // elapsed time.
        if (i == 0)
            cr_assert_leq(read_number(json, "mean_ms") * read_number(json, "per_second"), 1000.5);
        json_decref(json);
        inf_inferctl_free(&run);
    }
    RUN(&run, fixture.socket, "bench", "conv", "-n", "40", "-c", "1,2", "--beside", "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *beside = inf_inferctl_json(&run);
    cr_assert_eq(json_array_size(beside), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *row = json_array_get(beside, i);
        cr_assert_gt(read_number(row, "socket_median_ms"), 0);
        cr_assert_gt(read_number(row, "added_median_ms"), 0);
        cr_assert_leq(read_number(row, "added_median_ms"), read_number(row, "max_ms"));
    }
    json_decref(beside);
    inf_inferctl_free(&run);
    CHECK(2, "--beside: not with", fixture.socket, "bench", "add", "-B", "-a");
    CHECK(2, "--connections: only with", fixture.socket, "bench", "add", "-C", "2");
    // Three benchmarks sent 40 requests each and 3 more to warm up. The last benchmark sent 80
    // requests and 3 more to warm up. The daemon must have counted all of them.
    RUN(&run, fixture.socket, "models", "--json");
    json_t *rows = inf_inferctl_json(&run);
    cr_assert_eq(read_integer(find_row(rows, "conv"), "requests"), 3 * 43 + 83);
    json_decref(rows);
    inf_inferctl_free(&run);
}

Test(inferctl_daemon, bench_times_the_engine_alone_beside_the_daemon)
{
    struct inf_inferctl run;
    char file[128];
    snprintf(file, sizeof file, "%s/conv", fixture.repository);
    RUN(&run, fixture.socket, "bench", "conv", "-n", "40", "--beside", "--direct", file, "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *json = inf_inferctl_json(&run);
    cr_assert_gt(read_number(json, "socket_median_ms"), 0);
    cr_assert_gt(read_number(json, "engine_median_ms"), 0);
    // The engine alone is faster than a request, because its inputs are not sent through a socket.
    cr_assert_lt(read_number(json, "engine_median_ms"), read_number(json, "median_ms"));
    json_decref(json);
    inf_inferctl_free(&run);
    CHECK(1, "No such file", fixture.socket, "bench", "conv", "-n", "5", "--direct", "/nowhere");
    CHECK(2, "--direct: not with", fixture.socket, "bench", "conv", "--direct", file, "-a");
}

Test(inferctl_daemon, bench_sends_at_a_rate_and_draws_what_came_of_it)
{
    struct inf_inferctl run;
    char plot[128];
    snprintf(plot, sizeof plot, "%s/plot.svg", fixture.directory);
    RUN(&run, fixture.socket, "bench", "add", "-n", "60", "--rate", "200,600", "--arrivals", "even",
        "--connections", "3", "--plot", plot, "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *rows = inf_inferctl_json(&run);
    cr_assert_eq(json_array_size(rows), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *row = json_array_get(rows, i);
        cr_expect_eq(read_integer(row, "requests"), 60);
        cr_expect_eq(read_integer(row, "rate"), i == 0 ? 200 : 600);
        cr_expect_eq(read_integer(row, "refused"), 0);
        // 60 requests at an even rate have 59 gaps between them. So the measured rate may exceed
        // the requested rate by a factor of 60/59 at most.
        cr_expect_leq(read_number(row, "per_second"), (i == 0 ? 200 : 600) * 60.0 / 59.0 + 0.1);
        cr_expect_gt(read_number(row, "min_ms"), 0);
        cr_expect_leq(read_number(row, "median_ms"), read_number(row, "p99_ms"));
    }
    json_decref(rows);
    inf_inferctl_free(&run);
    cr_assert_eq(access(plot, R_OK), 0);
    unlink(plot);
    // Given three numbers of streams (-c 1,2,4), expect a table with one row for each number.
    RUN(&run, fixture.socket, "bench", "add", "-n", "20", "-c", "1,2,4", "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    rows = inf_inferctl_json(&run);
    cr_assert_eq(json_array_size(rows), 3);
    cr_expect_eq(read_integer(json_array_get(rows, 2), "streams"), 4);
    json_decref(rows);
    inf_inferctl_free(&run);
    // Given numbers of streams (closed loops) and rates (open loops), expect one table and one
    // picture for both. Columns that belong to the other kind of loop are null.
    RUN(&run, fixture.socket, "bench", "add", "-n", "20", "-R", "400,800", "-c", "1,3", "-B", "-p",
        plot, "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    rows = inf_inferctl_json(&run);
    cr_assert_eq(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(rows, i);
        cr_expect_eq(json_is_null(json_object_get(row, "streams")), i >= 2);
        cr_expect_eq(json_is_null(json_object_get(row, "rate")), i < 2);
        cr_expect_eq(json_is_null(json_object_get(row, "refused")), i < 2);
        cr_expect_eq(json_is_null(json_object_get(row, "compute_median_ms")), i >= 2);
        cr_expect_gt(read_number(row, "median_ms"), 0);
        cr_expect_gt(read_number(row, "socket_median_ms"), 0);
    }
    cr_expect_eq(read_integer(json_array_get(rows, 1), "streams"), 3);
    cr_expect_eq(read_integer(json_array_get(rows, 2), "rate"), 400);
    json_decref(rows);
    inf_inferctl_free(&run);
    cr_assert_eq(unlink(plot), 0);
    CHECK(2, "wanted poisson or even", fixture.socket, "bench", "add", "-R", "5", "-A", "odd");
    CHECK(2, "wanted a whole number", fixture.socket, "bench", "add", "-R", "5,x");
    CHECK(2, "--all-backends: not with", fixture.socket, "bench", "add", "-a", "-R", "5");
}

Test(inferctl_daemon, bench_compares_all_backends)
{
    struct inf_inferctl run;
    char plot[128], line[256];
    size_t bars = 0;
    snprintf(plot, sizeof plot, "%s/bars.svg", fixture.directory);
    RUN(&run, fixture.socket, "bench", "conv", "-n", "5", "--all-backends", "--plot", plot,
        "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    json_t *rows = inf_inferctl_json(&run);
    inf_inferctl_free(&run);
    FILE *picture = fopen(plot, "r");
    cr_assert_not_null(picture);
    while (fgets(line, sizeof line, picture) != NULL)
        bars += strstr(line, "<rect x=") != NULL;
    fclose(picture);
    unlink(plot);
    cr_assert_eq(bars, json_array_size(rows));
    RUN(&run, fixture.socket, "devices", "--json");
    json_t *devices = inf_inferctl_json(&run);
    inf_inferctl_free(&run);
    cr_assert_eq(json_array_size(rows), json_array_size(devices));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        cr_assert_str_eq(read_text(row, "device"), read_text(json_array_get(devices, i), "name"));
        cr_assert_eq(read_integer(row, "requests"), 5);
        cr_assert_gt(read_number(row, "median_ms"), 0);
        cr_assert_gt(read_integer(row, "memory_bytes"), 0);
        cr_assert_str_empty(read_text(row, "failure"));
    }
    json_decref(rows);
    json_decref(devices);
}

Test(inferctl_daemon, verify_compares_every_device_with_ref)
{
    struct inf_inferctl run;
    RUN(&run, fixture.socket, "verify", "conv", "--json");
    cr_assert_eq(run.code, 0, "%s%s", run.out, run.err);
    json_t *rows = inf_inferctl_json(&run);
    cr_assert_geq(json_array_size(rows), 1u);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        bool full = strcmp(read_text(row, "asked"), "fp32") == 0;
        cr_assert_leq(read_number(row, "max_abs"), full ? 1e-4 : 0.03, "%s", run.out);
        cr_assert_float_eq(read_number(row, "cosine"), 1, full ? 1e-6 : 1e-3);
        cr_assert_str_eq(read_text(row, "verdict"), "ok");
    }
    // Verify again on the device `ref` only. The result has one row, which compares `ref` with
    // itself.
    inf_inferctl_free(&run);
    json_decref(rows);
    RUN(&run, fixture.socket, "verify", "conv", "-d", "ref", "-P", "fp32", "-e", "0", "--json");
    cr_assert_eq(run.code, 0, "%s", run.err);
    rows = inf_inferctl_json(&run);
    cr_assert_eq(json_array_size(rows), 1u);
    cr_assert_eq(read_number(json_array_get(rows, 0), "max_abs"), 0);
    inf_inferctl_free(&run);
    json_decref(rows);
    CHECK(4, "there is no device 'nope'", fixture.socket, "verify", "conv", "-d", "nope");
    CHECK(2, "wanted a number of 0 or more", fixture.socket, "verify", "conv", "-e", "-1");
    CHECK(4, "is 'conv' meant?", fixture.socket, "verify", "conf");
}

Test(inferctl_daemon, minds_where_its_output_goes)
{
    struct inf_inferctl run;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    inf_inferctl_start(&run,
                       &(struct inf_inferctl_setting){.socket = fixture.socket, .out_fd = full},
                       (const char *const[]){"models", NULL});
    inf_inferctl_wait(&run);
    cr_expect_eq(run.code, 7, "%d", run.code);
    cr_expect(strstr(run.err, "standard output: No space left on device") != NULL, "%s", run.err);
    inf_inferctl_free(&run);
    close(full);
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]); // close the reading end early, as in `inferctl models | true`
    inf_inferctl_start(&run,
                       &(struct inf_inferctl_setting){.socket = fixture.socket, .out_fd = ends[1]},
                       (const char *const[]){"models", NULL});
    inf_inferctl_wait(&run);
    cr_expect_eq(run.code, -SIGPIPE, "%d", run.code);
    cr_expect_str_empty(run.err);
    inf_inferctl_free(&run);
    close(ends[1]);
    // Expect that the daemon still answers after inferctl was killed by SIGPIPE.
    RUN(&run, fixture.socket, "status");
    cr_expect_eq(run.code, 0);
    inf_inferctl_free(&run);
}
