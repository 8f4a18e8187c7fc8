// SPDX-License-Identifier: Apache-2.0
// Automatic placement on devices that are slow, wrong, refuse models, or compute in less than fp32,
// at the first start of the daemon and at the second. A race is a timing comparison of the devices.
#include <criterion/criterion.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/thread.h"
#include "backends/ref/ref.h"
#include "daemon/schedule/result_guard.h"
#include "daemon/store/store.h"
#include "tests/support/device/odd_devices.h"
#include "tests/support/models/tfjs_writer.h"

static char root[] = "/tmp/inferd-race-XXXXXX";
static struct inf_device_list devices;
static unsigned warnings;

static void count_warnings(void *context, enum inf_log_level level, const char *text)
{
    (void)context;
    (void)text;
    warnings += level == INF_LOG_WARNING;
}

static const struct inf_log sink = {.write = count_warnings, .level = INF_LOG_DEBUG};

static void start_test(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static void end_test(void)
{
    char command[128];
    inf_role_leave();
    inf_device_list_close(&devices);
    snprintf(command, sizeof command, "chmod -R u+w '%s'; rm -rf '%s'", root, root);
    cr_assert_eq(system(command), 0);
}

TestSuite(model_race, .init = start_test, .fini = end_test, .timeout = 120);

// --- making test models and opening test devices ---

static const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

// Writes a model of y = -x * x * factors[0] * factors[1] ..., for x of shape [4].
static void make_model(const char *name, const float *factors, int count)
{
    char node[16] = "square", factor[24];
    struct inf_tfjs_writer *writer;
    cr_assert_eq(mkdir(path_of(name), 0700), 0);
    writer = inf_tfjs_writer_begin(path_of(name));
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (const int64_t[]){4}, 1);
    inf_tfjs_writer_node(writer, "negated", "Neg", "x");
    inf_tfjs_writer_node(writer, "square", "Mul", "negated,x");
    for (int i = 0; i < count; i++) {
        char inputs[64], next[16];
        snprintf(factor, sizeof factor, "factor%d", i);
        snprintf(next, sizeof next, "node%d", i);
        snprintf(inputs, sizeof inputs, "%.15s,%.23s", node, factor);
        inf_tfjs_writer_floats(writer, factor, &factors[i], (const int64_t[]){1}, 1);
        inf_tfjs_writer_node(writer, next, "Mul", inputs);
        snprintf(node, sizeof node, "%.15s", next);
    }
    inf_tfjs_writer_output(writer, "y", node);
    inf_tfjs_writer_end(writer);
}

// Opens the devices that take part in races: the first device of each backend, if it can be opened,
// and the reference device `ref`.
static void open_devices(const struct inf_backend *const *backends, uint32_t count)
{
    inf_device_list_close(&devices);
    devices = (struct inf_device_list){0};
    for (uint32_t i = 0; i < count; i++)
        if (inf_device_open(&devices.devices[devices.count], backends[i], 0, NULL, NULL) == INF_OK)
            devices.count++;
    cr_assert_eq(
        inf_device_open(&devices.devices[devices.count++], &inf_ref_backend, 0, NULL, NULL),
        INF_OK);
}

#define OPEN(...)                                                                                  \
    open_devices((const struct inf_backend *const[]){__VA_ARGS__},                                 \
                 sizeof((const struct inf_backend *const[]){__VA_ARGS__}) /                        \
                     sizeof(struct inf_backend *))

// --- creating a model store and waiting for its races ---

static struct inf_model_store *make_store(void)
{
    struct inf_model_store *store = NULL;
    struct inf_error err = {0};
    const struct inf_model_store_options options = {.repository = root,
                                                    .devices = &devices,
                                                    .rules = {.races = INF_PLACE_RACES_ALWAYS},
                                                    .cache_directory = root,
                                                    .log = &sink};
    // Leave the loop's role, because a daemon also creates the store before its loop runs.
    inf_role_leave();
    cr_assert_eq(inf_model_store_create(&store, &options, &err), INF_OK, "%s", err.text);
    inf_role_enter_loop();
    return store;
}

// Waits until the store has no queued or running job. Returns the error of a load, if one failed.
static struct inf_error wait_until_settled(struct inf_model_store *store) INF_ON_LOOP
{
    struct inf_error failure = {.code = INF_OK};
    while (inf_model_store_pending(store) + inf_model_store_races(store) > 0) {
        struct inf_load_event event;
        while (inf_model_store_next_event(store, &event))
            if (event.final && event.err.code != INF_OK)
                failure = event.err;
        struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
        if (inf_model_store_pending(store) + inf_model_store_races(store) > 0)
            cr_assert_gt(poll(&poller, 1, 60000), 0, "nothing ends");
    }
    return failure;
}

static struct inf_served *find_model(struct inf_model_store *store, const char *name) INF_ON_LOOP
{
    struct inf_served *served = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_store_find(store, NULL, name, "", &served, &err), INF_OK, "%s",
                 err.text);
    inf_served_unref(&served);
    cr_assert_eq(inf_model_store_find(store, NULL, name, "", &served, &err), INF_OK);
    return served;
}

// Loads a model, and waits until it is served and `races` races have run. Returns a reference.
static struct inf_served *load_model(struct inf_model_store *store, const char *name,
                                     bool races) INF_ON_LOOP
{
    struct inf_error err = {0};
    const struct inf_load_request request = {.name = name};
    cr_assert_eq(inf_model_store_load(store, &request, &err), INF_OK, "%s", err.text);
    struct inf_load_event event = {.final = false};
    while (!event.final) {
        struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
        if (!inf_model_store_next_event(store, &event))
            cr_assert_gt(poll(&poller, 1, 60000), 0, "no event comes");
    }
    cr_assert_eq(event.err.code, INF_OK, "%s", event.err.text);
    if (races) {
        err = wait_until_settled(store);
        cr_assert_eq(err.code, INF_OK, "%s", err.text);
    }
    return find_model(store, name);
}

static struct inf_error place_model(struct inf_model_store *store, const char *device,
                                    const char *policy, const char *precision) INF_ON_LOOP
{
    struct inf_error err = {.code = INF_OK};
    const struct inf_place_request order = {.name = "m",
                                            .version = "",
                                            .device = device,
                                            .policy = policy,
                                            .precision = precision,
                                            .mode = ""};
    if (inf_model_store_place(store, &order, &err) != INF_OK)
        return err;
    return wait_until_settled(store);
}

// Runs a served model through the result guard. Writes the answer to `y` and returns its precision.
static enum inf_precision run_inference(struct inf_served *served, const float x[4], float y[4])
{
    const struct inf_shape shape = INF_SHAPE(4);
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    enum inf_precision precision;
    float input[4 + 16] = {x[0], x[1], x[2], x[3]};
    const struct inf_execution execution = {.inputs = (const void *[]){input},
                                            .outputs = (void *[]){y}};
    inf_role_leave(); // leave the loop's role, because a worker also runs the model without a role
    cr_assert_eq(inf_model_acquire(served->model, served->device, &shape, &executable, &err),
                 INF_OK, "%s", err.text);
    cr_assert_eq(inf_result_guard_run(served, served->device, executable, &execution, NULL,
                                      &precision, &err),
                 INF_OK, "%s", err.text);
    inf_model_release(served->model, &executable);
    inf_role_enter_loop();
    return precision;
}

static const struct inf_race_entry *entry_of(const struct inf_served *served, const char *device,
                                             enum inf_precision precision)
{
    const struct inf_race *race = &served->placement.race;
    for (uint32_t i = 0; i < race->count; i++)
        if (strcmp(inf_device_info(race->entries[i].device)->name, device) == 0 &&
            race->entries[i].options.precision == precision)
            return &race->entries[i];
    cr_assert_fail("no candidate %s", device);
    return NULL;
}

static void expect_on(const struct inf_served *served, const char *device,
                      enum inf_precision precision, enum inf_place_source source)
{
    cr_expect_str_eq(inf_device_info(served->device)->name, device, "%s", served->placement.reason);
    cr_expect_eq(served->placement.options.precision, precision, "%s", served->precision_reason);
    cr_expect_eq(served->placement.source, source, "%s", served->placement.reason);
}

// --- races between devices: the fastest one serves the model ---

Test(model_race, faulty_devices_lose_in_spite_of_their_priority_and_the_reason_is_recorded)
{
    OPEN(&inf_absent_backend, &inf_slow_backend, &inf_refusing_backend, &inf_wrong_backend);
    inf_role_enter_loop();
    cr_assert_eq(devices.count, 4u, "one does not even open");
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    expect_on(served, "ref", INF_PRECISION_FP32, INF_PLACE_RACE);
    cr_expect_eq(entry_of(served, "refusing", INF_PRECISION_FP32)->verdict, INF_RACE_REFUSED);
    cr_expect(strstr(entry_of(served, "refusing", INF_PRECISION_FP32)->why, "the driver says no") !=
              NULL);
    cr_expect_eq(entry_of(served, "wrong", INF_PRECISION_FP32)->verdict, INF_RACE_WRONG);
    cr_expect(strstr(entry_of(served, "wrong", INF_PRECISION_FP32)->why, "at element 2") != NULL);
    cr_expect_eq(entry_of(served, "slow", INF_PRECISION_FP32)->verdict, INF_RACE_SLOWER);
    cr_expect_geq(entry_of(served, "slow", INF_PRECISION_FP32)->median_ns, 5000000u);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
    // At the second start, expect that the saved result is used at once.
    store = make_store();
    served = load_model(store, "m", false);
    cr_expect_eq(inf_model_store_races(store), 0u);
    expect_on(served, "ref", INF_PRECISION_FP32, INF_PLACE_RECALL);
    cr_expect_eq(entry_of(served, "wrong", INF_PRECISION_FP32)->verdict, INF_RACE_WRONG);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// The prior (a speed prediction) prefers this device, but the device cannot compile any model.
// Expect that the store places the model on the next device at once.
Test(model_race, a_device_that_refuses_the_model_is_skipped_at_once)
{
    OPEN(&inf_refusing_backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", false);
    cr_expect_str_eq(inf_device_info(served->device)->name, "ref");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(model_race, serves_by_the_prior_until_the_daemon_is_idle)
{
    OPEN(&inf_slow_backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    struct inf_idle_gate *idle_gate = inf_model_store_idle_gate(store);
    inf_idle_gate_begin_request(idle_gate); // imitates a running request
    struct inf_served *served = load_model(store, "m", false);
    expect_on(served, "slow", INF_PRECISION_FP32, INF_PLACE_RULE);
    cr_expect(served->placement.race_due);
    cr_expect_eq(inf_model_store_races(store), 1u);
    float y[4];
    run_inference(served, (const float[]){1, 2, 3, 4}, y);
    cr_expect_eq(y[3], -16.f);
    inf_idle_gate_end_request(idle_gate);
    struct inf_error err = wait_until_settled(store);
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    struct inf_served *now = find_model(store, "m");
    expect_on(now, "ref", INF_PRECISION_FP32, INF_PLACE_RACE);
    // A request that still holds the old version of the model runs on the old version.
    run_inference(served, (const float[]){1, 2, 3, 4}, y);
    cr_expect_eq(y[2], -9.f);
    inf_served_unref(&served);
    inf_served_unref(&now);
    inf_model_store_destroy(&store);
}

// A thread that imitates a client with so frequent requests that no slow run fits between two of
// them.
struct asking {
    struct inf_idle_gate *idle_gate;
    atomic_bool enough;
};

static void ask_often(void *context)
{
    struct asking *asking = context;
    while (!atomic_load(&asking->enough)) {
        inf_idle_gate_begin_request(asking->idle_gate);
        inf_idle_gate_end_request(asking->idle_gate);
        nanosleep(&(struct timespec){.tv_nsec = 6 * INF_IDLE_GATE_QUIET_NS / 5}, NULL);
    }
}

Test(model_race, ends_although_every_run_is_interrupted)
{
    OPEN(&inf_slow_backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    struct asking asking = {.idle_gate = inf_model_store_idle_gate(store)};
    struct inf_thread thread;
    cr_assert_eq(inf_thread_start(&thread, "asking", ask_often, &asking, NULL), INF_OK);
    struct inf_served *served = load_model(store, "m", false);
    inf_served_unref(&served);
    wait_until_settled(store);
    served = find_model(store, "m");
    expect_on(served, "ref", INF_PRECISION_FP32, INF_PLACE_RACE);
    inf_served_unref(&served);
    atomic_store(&asking.enough, true);
    inf_role_leave();
    inf_thread_join(&thread);
    inf_role_enter_loop();
    inf_model_store_destroy(&store);
}

Test(model_race, ends_although_requests_are_always_in_flight)
{
    OPEN(&inf_slow_backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    inf_idle_gate_begin_request(inf_model_store_idle_gate(store));
    struct inf_served *served = load_model(store, "m", false);
    inf_served_unref(&served);
    inf_model_store_destroy(&store); // a race is still waiting at this time
    cr_expect_null(store);
}

// --- races between precisions on one device ---

// In fp32 the device takes 5 ms longer. Expect that the lower precision wins if its answer is
// close.
Test(model_race, a_lower_precision_wins_if_its_answer_is_close)
{
    OPEN(&inf_half_backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    // The reference device `ref`, which computes in fp32 only, is faster than device `half` in
    // fp32. Expect that `half` does not win in fp32.
    struct inf_served *served = load_model(store, "m", true);
    const struct inf_race_entry *half = entry_of(served, "half", INF_PRECISION_FP16);
    const struct inf_race_entry *brain = entry_of(served, "half", INF_PRECISION_BF16);
    cr_expect(half->verdict == INF_RACE_CHOSEN || half->verdict == INF_RACE_SLOWER, "%s",
              half->why);
    // The device rounds every result. The precision check rounds only operands of products, and the
    // model has no product, so it is the comparison with `ref` that finds 8 bits too few.
    cr_expect_eq(brain->verdict, INF_RACE_WRONG, "8 bits are too few: %s", brain->why);
    cr_expect_eq(entry_of(served, "half", INF_PRECISION_FP32)->verdict, INF_RACE_SLOWER);
    inf_served_unref(&served);
    // If the request names the precision, expect that exactly this one is used and reported.
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    expect_on(served, "half", INF_PRECISION_FP16, INF_PLACE_RULE);
    cr_expect(strstr(served->precision_reason, "it was named") != NULL, "%s",
              served->precision_reason);
    float y[4];
    cr_expect_eq(run_inference(served, (const float[]){1.0009765625f, 2, 3, 4}, y),
                 INF_PRECISION_FP16);
    cr_expect_eq(y[0], -1.001953125f);
    inf_served_unref(&served);
    // Given the policy `stability`, expect that no lower precision is used.
    err = place_model(store, "auto", "stability", "auto");
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    expect_on(served, "half", INF_PRECISION_FP32, INF_PLACE_RULE);
    cr_expect_eq(run_inference(served, (const float[]){1.0009765625f, 2, 3, 4}, y),
                 INF_PRECISION_FP32);
    cr_expect_eq(y[0], -1.0019540786743164f);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// An intermediate value overflows in fp16, although the final result is in the range of fp16.
// Expect a correct answer.
Test(model_race, a_model_that_overflows_answers_correctly_and_is_refused_if_fp16_is_named)
{
    OPEN(&inf_half_backend);
    inf_role_enter_loop();
    make_model("m", (const float[]){300, 300, 1e-4f}, 3);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    float y[4];
    run_inference(served, (const float[]){1, 0.5f, 2, 3}, y);
    cr_expect_float_eq(y[0], -9.f, 0.1);
    cr_expect_float_eq(y[3], -81.f, 1);
    const struct inf_race_entry *half = entry_of(served, "half", INF_PRECISION_FP16);
    cr_expect_neq(half->verdict, INF_RACE_WRONG, "what overflows is pinned: %s", half->why);
    inf_served_unref(&served);
    // If fp16 is named, expect a plan with mixed precisions, and a correct answer too.
    struct inf_error err = place_model(store, "half", "", "fp16");
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    cr_expect(strstr(served->precision_reason, "would stay fp32") != NULL, "%s",
              served->precision_reason);
    run_inference(served, (const float[]){1, 0.5f, 2, 3}, y);
    cr_expect_float_eq(y[0], -9.f, 0.1);
    cr_expect_float_eq(y[3], -81.f, 1);
    inf_served_unref(&served);
    // Given a device that does not offer fp16, expect an error, and that the model is served as
    // before.
    err = place_model(store, "ref", "", "fp16");
    cr_expect_eq(err.code, INF_PRECONDITION);
    cr_expect(strstr(err.text, "device 'ref' does not compute in it") != NULL, "%s", err.text);
    err = place_model(store, "auto", "", "int8");
    cr_expect_eq(err.code, INF_PRECONDITION);
    cr_expect(strstr(err.text, "no device computes in it") != NULL, "%s", err.text);
    served = find_model(store, "m");
    cr_expect_str_eq(inf_device_info(served->device)->name, "half");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(model_race, a_model_that_is_too_inexact_in_fp16_is_refused_with_its_error)
{
    OPEN(&inf_half_backend);
    inf_role_enter_loop();
    make_model("m", (const float[]){1e-8f, 1e8f}, 2); // 1e-8 becomes 0 in half precision
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    const struct inf_race_entry *half = entry_of(served, "half", INF_PRECISION_FP16);
    cr_expect_eq(half->verdict, INF_RACE_REFUSED);
    cr_expect(strstr(half->why, "would move by") != NULL, "%s", half->why);
    cr_expect_neq(served->placement.options.precision, INF_PRECISION_FP16);
    inf_served_unref(&served);
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_expect_eq(err.code, INF_PRECONDITION);
    cr_expect(strstr(err.text, "would move by") != NULL, "%s", err.text);
    inf_model_store_destroy(&store);
}

// --- the result guard, which repeats overflowed runs in fp32 ---

static void expect_guarded(const struct inf_backend *backend)
{
    OPEN(backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    inf_served_unref(&served);
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_assert_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    float y[4];
    cr_expect_eq(run_inference(served, (const float[]){1, 2, 3, 4}, y), INF_PRECISION_FP16);
    cr_expect_eq(atomic_load(&served->recomputed), 0u);
    // 300 squared overflows in fp16, and the precision check at load used only smaller inputs.
    // Expect that the result guard repeats the run in fp32.
    cr_expect_eq(run_inference(served, (const float[]){300, 2, 3, 4}, y), INF_PRECISION_FP32);
    cr_expect_eq(y[0], -90000.f);
    cr_expect_eq(atomic_load(&served->recomputed), 1u);
    // A NaN in the input makes the output NaN in fp32 too. Expect that this is not counted as a
    // failure of the lower precision.
    cr_expect_eq(run_inference(served, (const float[]){NAN, 2, 3, 4}, y), INF_PRECISION_FP32);
    cr_expect(isnan(y[0]));
    cr_expect_eq(atomic_load(&served->recomputed), 1u);
    inf_model_store_demote(store, served, "it overflowed");
    cr_expect_eq(run_inference(served, (const float[]){1.0009765625f, 2, 3, 4}, y),
                 INF_PRECISION_FP32);
    cr_expect_eq(y[0], -1.0019540786743164f);
    cr_expect_eq(served->placement.options.precision, INF_PRECISION_FP32);
    cr_expect_str_eq(served->precision_reason, "it overflowed");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(model_race, guard_repairs_answers_that_overflow)
{
    expect_guarded(&inf_half_backend);
}

// y = exp(-(x * x)): the output does not show the overflow inside, but the device reports it.
Test(model_race, guard_uses_the_overflow_report_of_the_device)
{
    OPEN(&inf_telling_backend);
    inf_role_enter_loop();
    make_model("m", (const float[]){0.1f}, 1);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    inf_served_unref(&served);
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_assert_eq(err.code, INF_OK, "%s", err.text);
    served = find_model(store, "m");
    float y[4];
    cr_expect_eq(run_inference(served, (const float[]){300, 0, 0, 0}, y), INF_PRECISION_FP32);
    cr_expect_float_eq(y[0], -9000.f, 1e-2);
    cr_expect_eq(atomic_load(&served->recomputed), 1u);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// y = -(x * x) / 10000 is nearly 0 for the inputs of the precision check, so every precision looks
// exact and the check proves nothing. Expect fp32.
Test(model_race, a_model_with_negligible_outputs_stays_in_fp32)
{
    OPEN(&inf_half_backend);
    inf_role_enter_loop();
    make_model("m", (const float[]){1e-4f}, 1);
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    inf_served_unref(&served);
    struct inf_error err = place_model(store, "auto", "", "fp16");
    cr_expect_eq(err.code, INF_PRECONDITION);
    cr_expect_not_null(strstr(err.text, "which tells nothing"), "%s", err.text);
    inf_model_store_destroy(&store);
}

// --- the tune database, which keeps results of races ---

static size_t read_file(char *text, size_t size)
{
    FILE *file = fopen(path_of("tune.db"), "rb");
    cr_assert_not_null(file);
    size_t got = fread(text, 1, size, file);
    fclose(file);
    return got;
}

static void write_file(const char *text, size_t size)
{
    FILE *file = fopen(path_of("tune.db"), "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(text, 1, size, file), size);
    fclose(file);
}

// Loads the model after a new start. Returns true if the saved result of the race was found.
static bool is_recalled(void) INF_ON_LOOP
{
    struct inf_model_store *store = make_store();
    struct inf_served *served = load_model(store, "m", true);
    bool recalled = served->placement.source == INF_PLACE_RECALL;
    cr_expect_str_eq(inf_device_info(served->device)->name, "ref", "never a wrong choice");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
    return recalled;
}

Test(model_race, a_damaged_or_foreign_database_is_replaced)
{
    static char whole[16384], damaged[16384];
    OPEN(&inf_wrong_backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    cr_expect(!is_recalled());
    cr_expect(is_recalled());
    size_t size = read_file(whole, sizeof whole);
    memcpy(damaged, whole, size); // then a digit of the saved results is changed
    damaged[size / 2] ^= 1;
    const struct {
        const char *what, *text;
        size_t size;
    } cases[] = {{"corrupted", damaged, size},
                 {"truncated", whole, size - 5},
                 {"empty", "", 0},
                 {"foreign", "SQLite format 3", 16},
                 {"of another version", "inferd-tune 1\n0 0 0\n", 20}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_file(cases[i].text, cases[i].size);
        warnings = 0;
        cr_expect(!is_recalled(), "%s", cases[i].what);
        // The last case is a file of another version, which is normal after an update. Expect a
        // warning in all other cases only.
        bool warns = i + 1 < sizeof cases / sizeof cases[0];
        cr_expect_eq(warnings > 0, warns, "%s", cases[i].what);
        cr_expect(is_recalled(), "%s: written again", cases[i].what);
    }
}

Test(model_race, a_database_that_cannot_be_written_costs_a_race_at_each_start)
{
    OPEN(&inf_wrong_backend);
    inf_role_enter_loop();
    make_model("m", NULL, 0);
    // Put a directory in place of the file, because not even root can write a directory as a file.
    cr_assert_eq(mkdir(path_of("tune.db"), 0500), 0);
    warnings = 0;
    cr_expect(!is_recalled());
    cr_expect_geq(warnings, 1u);
    cr_expect(!is_recalled());
}
