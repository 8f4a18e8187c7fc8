// SPDX-License-Identifier: Apache-2.0
// A model store with small models and odd devices, which take part in races, for the tests of
// automatic placement. A race is a timing comparison of the devices.
#ifndef INF_TESTS_UNIT_LOAD_RACE_CASE_H
#define INF_TESTS_UNIT_LOAD_RACE_CASE_H

#include <criterion/criterion.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/ref/ref.h"
#include "daemon/schedule/result_guard.h"
#include "daemon/store/store.h"
#include "tests/support/device/odd_devices.h"
#include "tests/support/models/tfjs_writer.h"

static char root[] = "/tmp/inferd-race-XXXXXX";
static struct inf_device_list devices;
static atomic_uint warnings; // the loader and the thread of races log

static inline void count_warnings(void *context, enum inf_log_level level, const char *text)
{
    (void)context;
    (void)text;
    warnings += level == INF_LOG_WARNING;
}

static const struct inf_log sink = {.write = count_warnings, .level = INF_LOG_DEBUG};

static inline void start_test(void)
{
    cr_assert_not_null(mkdtemp(root));
}

static inline void end_test(void)
{
    char command[128];
    inf_role_leave();
    inf_device_list_close(&devices);
    snprintf(command, sizeof command, "chmod -R u+w '%s'; rm -rf '%s'", root, root);
    cr_assert_eq(system(command), 0);
}

// --- making test models and opening test devices ---

static inline const char *path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

// Writes a model of y = -x * x * factors[0] * factors[1] ..., for x of shape [4].
static inline void make_model(const char *name, const float *factors, int count)
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
static inline void open_devices(const struct inf_backend *const *backends, uint32_t count)
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

static inline struct inf_model_store *make_store(void)
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
static inline struct inf_error wait_until_settled(struct inf_model_store *store) INF_ON_LOOP
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

static inline struct inf_served *find_model(struct inf_model_store *store,
                                            const char *name) INF_ON_LOOP
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
static inline struct inf_served *load_model(struct inf_model_store *store, const char *name,
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

static inline struct inf_error place_model(struct inf_model_store *store, const char *device,
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
static inline enum inf_precision run_inference(struct inf_served *served, const float x[4],
                                               float y[4])
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

static inline const struct inf_race_entry *
entry_of(const struct inf_served *served, const char *device, enum inf_precision precision)
{
    const struct inf_race *race = &served->placement.race;
    for (uint32_t i = 0; i < race->count; i++)
        if (strcmp(inf_device_info(race->entries[i].device)->name, device) == 0 &&
            race->entries[i].options.precision == precision)
            return &race->entries[i];
    cr_assert_fail("no candidate %s", device);
    return NULL;
}

static inline void expect_on(const struct inf_served *served, const char *device,
                             enum inf_precision precision, enum inf_place_source source)
{
    cr_expect_str_eq(inf_device_info(served->device)->name, device, "%s", served->placement.reason);
    cr_expect_eq(served->placement.options.precision, precision, "%s", served->precision_reason);
    cr_expect_eq(served->placement.source, source, "%s", served->placement.reason);
}

#endif
