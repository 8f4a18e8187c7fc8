// SPDX-License-Identifier: Apache-2.0
// A model store with a repository of small models and the device ref, for unit tests.
#ifndef INF_TESTS_UNIT_STORE_STORE_CASE_H
#define INF_TESTS_UNIT_STORE_STORE_CASE_H

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/load/loader.h"
#include "daemon/store/store.h"

static char root[] = "/tmp/inferd-store-XXXXXX";
static struct inf_device_list devices;

// --- files of a model repository ---

static inline const char *path_of(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static inline void make_file(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(path_of(name), "w");
    cr_assert_not_null(file, "%s", name);
    cr_assert_eq(fwrite(data, 1, size, file), size);
    fclose(file);
}

// Writes a model of y = x + [1, 2] into `directory`. `dims` is the shape of the input as JSON.
static inline void make_model(const char *directory, const char *dims)
{
    static const char format[] =
        "{\"format\": \"graph-model\", \"modelTopology\": {\"node\": ["
        "{\"name\": \"x\", \"op\": \"Placeholder\", \"attr\": {\"dtype\": {\"type\": "
        "\"DT_FLOAT\"}, \"shape\": {\"shape\": %s}}},"
        "{\"name\": \"c\", \"op\": \"Const\", \"attr\": {\"dtype\": {\"type\": \"DT_FLOAT\"}, "
        "\"value\": {\"tensor\": {\"dtype\": \"DT_FLOAT\", \"tensorShape\": {\"dim\": "
        "[{\"size\": \"2\"}]}}}}},"
        "{\"name\": \"y\", \"op\": \"AddV2\", \"input\": [\"x\", \"c\"], \"attr\": {\"T\": "
        "{\"type\": \"DT_FLOAT\"}}}]}, "
        "\"weightsManifest\": [{\"paths\": [\"w.bin\"], \"weights\": [{\"name\": \"c\", "
        "\"shape\": [2], \"dtype\": \"float32\"}]}]}";
    static const float weights[] = {1, 2};
    char text[2048], name[192];
    int size = snprintf(text, sizeof text, format, dims);
    (void)mkdir(path_of(directory), 0755);
    snprintf(name, sizeof name, "%s/model.json", directory);
    make_file(name, text, (size_t)size);
    snprintf(name, sizeof name, "%s/w.bin", directory);
    make_file(name, weights, sizeof weights);
}

#define KNOWN "{\"dim\": [{\"size\": \"3\"}, {\"size\": \"2\"}]}"
#define OPEN  "{\"dim\": [{\"size\": \"-1\"}, {\"size\": \"2\"}]}"
#define ANY   "{\"unknownRank\": true}"

static inline void make_version(const char *model, const char *version, const char *dims)
{
    char directory[128];
    (void)mkdir(path_of(model), 0755);
    snprintf(directory, sizeof directory, "%s/%s", model, version);
    make_model(directory, dims);
}

static inline void start_test(void)
{
    struct inf_error err = {0};
    cr_assert_not_null(mkdtemp(root));
    const struct inf_device_options options = {.slots = 1, .threads = 1};
    cr_assert_eq(inf_device_list_open(&devices, "ref", &options, &err), INF_OK, "%s", err.text);
}

static inline void end_test(void)
{
    char command[64];
    inf_role_leave();
    inf_device_list_close(&devices);
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    cr_assert_eq(system(command), 0);
}

// --- creating a model store and waiting for its events ---

static inline struct inf_model_store *make_store(void)
{
    struct inf_model_store *store = NULL;
    struct inf_error err = {0};
    const struct inf_model_store_options options = {.repository = root, .devices = &devices};
    cr_assert_eq(inf_model_store_create(&store, &options, &err), INF_OK, "%s", err.text);
    return store;
}

static inline void load_model(struct inf_model_store *store, const char *name,
                              uint64_t token) INF_ON_LOOP
{
    struct inf_error err = {0};
    const struct inf_load_request request = {.name = name, .token = token};
    cr_assert_eq(inf_model_store_load(store, &request, &err), INF_OK, "%s", err.text);
}

// Submits a placement of the model "m" with these settings; "": the settings of the served model.
static inline enum inf_code place_model(struct inf_model_store *store, const char *device,
                                        const char *policy, const char *mode,
                                        uint64_t token) INF_ON_LOOP
{
    const struct inf_place_request place = {.name = "m",
                                            .version = "",
                                            .device = device,
                                            .policy = policy,
                                            .precision = "",
                                            .mode = mode,
                                            .token = token};
    return inf_model_store_place(store, &place, NULL);
}

// Waits for the next event.
static inline struct inf_load_event next_event(struct inf_model_store *store) INF_ON_LOOP
{
    struct inf_load_event event;
    while (!inf_model_store_next_event(store, &event)) {
        struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
        cr_assert_gt(poll(&poller, 1, 20000), 0, "no event came");
    }
    return event;
}

// Waits for the event that ends the next load.
static inline struct inf_load_event next_end(struct inf_model_store *store) INF_ON_LOOP
{
    struct inf_load_event event;
    do
        event = next_event(store);
    while (!event.final);
    return event;
}

static inline void wait_until_settled(struct inf_model_store *store) INF_ON_LOOP
{
    while (inf_model_store_pending(store) + inf_model_store_races(store) > 0) {
        struct inf_load_event event;
        while (inf_model_store_next_event(store, &event))
            free(event.report);
        struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
        if (inf_model_store_pending(store) + inf_model_store_races(store) > 0)
            cr_assert_gt(poll(&poller, 1, 20000), 0, "loads do not end");
    }
}

static inline struct inf_served *find_model(struct inf_model_store *store,
                                            const char *name) INF_ON_LOOP
{
    struct inf_served *served = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_store_find(store, NULL, name, "", &served, &err), INF_OK, "%s",
                 err.text);
    return served;
}

static inline struct inf_model_row row_of(struct inf_model_store *store,
                                          const char *name) INF_ON_LOOP
{
    struct inf_model_row rows[16];
    uint32_t count = inf_model_store_list(store, NULL, rows, 16);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i];
    cr_assert_fail("no row %s", name);
    return (struct inf_model_row){0};
}

#endif
