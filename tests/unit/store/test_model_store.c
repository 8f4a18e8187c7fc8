// SPDX-License-Identifier: Apache-2.0
// Loading and unloading models through the store.
#include <stdatomic.h>

#include "backends/base/thread.h"
#include "tests/unit/store/store_case.h"

TestSuite(model_store, .init = start_test, .fini = end_test, .timeout = 60);

static void expect_not_found(struct inf_model_store *store, const char *name, const char *version,
                             enum inf_code code, enum inf_reason reason) INF_ON_LOOP
{
    struct inf_served *served = NULL;
    struct inf_error err = {0};
    cr_expect_eq(inf_model_store_find(store, NULL, name, version, &served, &err), code, "%s",
                 err.text);
    cr_expect_eq(err.reason, reason, "%s", err.text);
    cr_expect_null(served);
    cr_expect(strstr(err.text, root) == NULL, "%s", err.text);
}

Test(model_store, loaded_model_is_found_and_answers)
{
    inf_role_enter_loop();
    make_version("add", "1", KNOWN);
    make_version("add", "12", KNOWN);
    struct inf_model_store *store = make_store();
    cr_expect_eq(inf_model_store_pending(store), 0u);
    load_model(store, "add", 77);
    cr_expect_eq(inf_model_store_pending(store), 1u);
    expect_not_found(store, "add", "", INF_UNAVAILABLE, INF_REASON_LOADING);
    cr_expect_eq(row_of(store, "add").state, INF_MODEL_LOADING);

    static const char *const stages[] = {"read", "optimise", "compile", "warm-up"};
    uint32_t percent = 0;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(stages); i++) {
        struct inf_load_event event = next_event(store);
        cr_expect(!event.final);
        cr_expect_eq(event.token, 77u);
        cr_expect_str_eq(event.name, "add");
        cr_expect_str_eq(event.version, "12");
        cr_expect_str_eq(event.stage, stages[i]);
        cr_expect(event.percent >= percent && event.percent < 100);
        percent = event.percent;
    }
    struct inf_load_event end = next_event(store);
    cr_expect(end.final);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    cr_expect_eq(end.token, 77u);
    cr_expect_str_eq(end.version, "12");
    cr_expect_eq(inf_model_store_pending(store), 0u);

    struct inf_served *served = find_model(store, "add");
    cr_expect_str_eq(served->version, "12");
    cr_expect_str_eq(served->platform, "inferd_tfjs_graph_model");
    cr_expect_str_eq(inf_device_info(served->device)->name, "ref");
    cr_expect_eq(inf_model_graph(served->model)->input_count, 1u);
    atomic_fetch_add(&served->request_count, 5);
    struct inf_model_row row = row_of(store, "add");
    cr_expect_eq(row.state, INF_MODEL_READY);
    cr_expect_str_eq(row.version, "12");
    cr_expect_str_eq(row.device, "ref");
    cr_expect_str_eq(row.platform, "inferd_tfjs_graph_model");
    cr_expect_eq(row.requests, 5u);
    // The model has two floats of weights, so it takes at least this many bytes.
    cr_expect_geq(row.memory_bytes, 8u);
    cr_expect_str_eq(row.reason, "");
    inf_served_unref(&served);
    cr_expect_null(served);
    cr_expect_eq(inf_model_store_find(store, NULL, "add", "12", &served, NULL), INF_OK);
    inf_served_unref(&served);
    expect_not_found(store, "add", "1", INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND);
    expect_not_found(store, "sub", "", INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND);
    inf_model_store_destroy(&store);
    cr_expect_null(store);
}

Test(model_store, models_with_open_dimensions_are_loaded)
{
    inf_role_enter_loop();
    make_model("open", OPEN);
    make_model("any", ANY);
    struct inf_model_store *store = make_store();
    load_model(store, "open", 1);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    cr_expect_str_eq(end.version, "1");
    load_model(store, "any", 1);
    end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    cr_expect_eq(row_of(store, "any").state, INF_MODEL_READY);
    inf_model_store_destroy(&store);
}

Test(model_store, failed_load_keeps_its_reason)
{
    inf_role_enter_loop();
    make_model("broken", KNOWN);
    make_file("broken/model.json", "{\"modelTopology\": ", 18);
    struct inf_model_store *store = make_store();
    load_model(store, "broken", 3);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.token, 3u);
    cr_expect_neq(end.err.code, INF_OK);
    cr_expect_neq(end.err.text[0], '\0');
    expect_not_found(store, "broken", "", INF_PRECONDITION, INF_REASON_MODEL_FAILED);
    struct inf_model_row row = row_of(store, "broken");
    cr_expect_eq(row.state, INF_MODEL_FAILED);
    cr_expect(strncmp(row.reason, end.err.text, 200) == 0, "%s", row.reason);

    load_model(store, "absent", 4);
    end = next_end(store);
    cr_expect_eq(end.err.code, INF_NOT_FOUND);
    cr_expect_eq(end.err.reason, INF_REASON_MODEL_NOT_FOUND);
    cr_expect_eq(inf_model_store_unload(store, "absent", "", NULL), INF_NOT_FOUND);
    // A model that was not loaded is removed from the list, which is no unload.
    cr_expect_eq(inf_model_store_unload(store, "broken", "", NULL), INF_PRECONDITION);
    cr_expect_eq(inf_model_store_list(store, NULL, NULL, 0), 0u);
    cr_expect_eq(inf_model_store_counts(store).unloaded_admin, 0u);

    make_model("broken", KNOWN); // replaces the broken file by a valid model
    load_model(store, "broken", 5);
    end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    cr_expect_str_eq(row_of(store, "broken").reason, "");
    inf_model_store_destroy(&store);
}

Test(model_store, old_version_serves_until_the_new_one_is_warm)
{
    inf_role_enter_loop();
    make_version("m", "1", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    cr_assert_eq(next_end(store).err.code, INF_OK);
    struct inf_served *old = find_model(store, "m");

    make_version("m", "2", KNOWN);
    make_file("m/2/w.bin", "short", 5);
    load_model(store, "m", 0);
    struct inf_served *served = find_model(store, "m");
    cr_expect_eq(served, old);
    inf_served_unref(&served);
    struct inf_load_event end = next_end(store);
    cr_expect_neq(end.err.code, INF_OK);
    cr_expect_str_eq(end.version, "2");
    served = find_model(store, "m");
    cr_expect_eq(served, old);
    inf_served_unref(&served);
    struct inf_model_row row = row_of(store, "m");
    cr_expect_eq(row.state, INF_MODEL_READY);
    cr_expect_str_eq(row.version, "1");
    cr_expect_neq(row.reason[0], '\0');

    make_version("m", "2", KNOWN);
    load_model(store, "m", 0);
    end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    served = find_model(store, "m");
    cr_expect_str_eq(served->version, "2");
    cr_expect_neq(served, old);
    cr_expect_str_eq(old->version, "1"); // requests that hold the old version may finish on it
    cr_expect_eq(inf_model_graph(old->model)->output_count, 1u);
    inf_served_unref(&old);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(model_store, unloading_lets_requests_in_flight_finish)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    struct inf_error err = {0};
    cr_expect_eq(inf_model_store_unload(store, "m", "", &err), INF_NOT_FOUND);
    cr_expect_eq(err.reason, INF_REASON_MODEL_NOT_FOUND);
    load_model(store, "m", 0);
    cr_assert_eq(next_end(store).err.code, INF_OK);
    cr_expect_eq(inf_model_store_unload(store, "m", "2", &err), INF_NOT_FOUND);
    cr_expect_eq(err.reason, INF_REASON_VERSION_NOT_FOUND);
    struct inf_served *served = find_model(store, "m");
    cr_expect_eq(inf_model_store_unload(store, "m", "1", &err), INF_OK, "%s", err.text);
    expect_not_found(store, "m", "", INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND);
    cr_expect_eq(inf_model_store_list(store, NULL, NULL, 0), 0u);
    cr_expect_str_eq(inf_model_graph(served->model)->inputs[0].name, "x");
    inf_served_unref(&served);

    // Unloading cancels a running load. A load that is requested after the unload is carried out.
    load_model(store, "m", 8);
    cr_expect_eq(inf_model_store_unload(store, "m", "", &err), INF_OK, "%s", err.text);
    load_model(store, "m", 9);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.token, 8u);
    cr_expect_eq(end.err.code, INF_CANCELLED, "%s", end.err.text);
    cr_expect_eq(end.err.reason, INF_REASON_BY_ADMIN);
    end = next_end(store);
    cr_expect_eq(end.token, 9u);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    cr_expect_eq(row_of(store, "m").state, INF_MODEL_READY);
    cr_expect_eq(inf_model_store_pending(store), 0u);
    // The two unloads that succeeded count. The refused unloads do not.
    cr_expect_eq(inf_model_store_counts(store).unloaded_admin, 2u);
    cr_expect_eq(inf_model_store_counts(store).unloaded_idle, 0u);
    inf_model_store_destroy(&store);
}

Test(model_store, invalid_loads_are_refused_at_once)
{
    inf_role_enter_loop();
    struct inf_model_store *store = make_store();
    char endless[70], long_path[5000];
    memset(endless, 'n', sizeof endless);
    endless[65] = '\0';
    memset(long_path, '/', sizeof long_path);
    long_path[4999] = '\0';
    const struct {
        struct inf_load_request request;
        enum inf_code code;
        enum inf_reason reason;
    } cases[] = {
        {{.name = ""}, INF_INVALID, INF_REASON_BAD_PARAMETER},
        {{.name = ".."}, INF_INVALID, INF_REASON_BAD_PARAMETER},
        {{.name = "a/b"}, INF_INVALID, INF_REASON_BAD_PARAMETER},
        {{.name = "a b"}, INF_INVALID, INF_REASON_BAD_PARAMETER},
        {{.name = "%2e"}, INF_INVALID, INF_REASON_BAD_PARAMETER},
        {{.name = "\xc3\xa9"}, INF_INVALID, INF_REASON_BAD_PARAMETER},
        {{.name = endless}, INF_INVALID, INF_REASON_BAD_PARAMETER},
        {{.name = "m", .path = long_path}, INF_INVALID, INF_REASON_BAD_PARAMETER},
        {{.name = "m", .device = "cuda7"}, INF_NOT_FOUND, INF_REASON_NO_DEVICE},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_error err = {0};
        cr_expect_eq(inf_model_store_load(store, &cases[i].request, &err), cases[i].code, "%zu", i);
        cr_expect_eq(err.reason, cases[i].reason, "%zu: %s", i, err.text);
    }
    cr_expect_eq(inf_model_store_list(store, NULL, NULL, 0), 0u);
    cr_expect_eq(inf_model_store_pending(store), 0u);
    inf_model_store_destroy(&store);

    const struct inf_model_store_options options = {.devices = &devices, .default_device = "gpu"};
    cr_expect_eq(inf_model_store_create(&store, &options, NULL), INF_NOT_FOUND);
    cr_expect_null(store);
}

Test(model_store, store_without_a_repository_has_nothing)
{
    inf_role_enter_loop();
    struct inf_model_store *store = NULL;
    const struct inf_model_store_options options = {.devices = &devices, .default_device = "auto"};
    cr_assert_eq(inf_model_store_create(&store, &options, NULL), INF_OK);
    cr_expect_eq(inf_model_store_load_all(store, NULL), INF_OK);
    wait_until_settled(store);
    load_model(store, "m", 0);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_NOT_FOUND);
    cr_expect_eq(end.err.reason, INF_REASON_MODEL_NOT_FOUND);
    inf_model_store_destroy(&store);
}

Test(model_store, queued_loads_are_limited_and_may_be_abandoned)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    const struct inf_load_request request = {.name = "m"};
    struct inf_error err = {0};
    for (int i = 0; i < 256; i++)
        cr_assert_eq(inf_model_store_load(store, &request, &err), INF_OK, "%d: %s", i, err.text);
    cr_expect_eq(inf_model_store_load(store, &request, &err), INF_UNAVAILABLE);
    cr_expect_eq(err.reason, INF_REASON_LOADING);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(next_end(store).err.code, INF_OK);
    cr_expect_eq(inf_model_store_pending(store), 253u);
    // Destroy the store while some loads are queued, some running, and some finished but not
    // reported.
    inf_model_store_destroy(&store);
}

// Creates a store that keeps its journal of loads in `root`, and loads "m" as the scan of the
// repository (token 0) or as an admin does. Returns how that ended.
static struct inf_load_event load_with_journal(struct inf_model_store **store,
                                               uint64_t token) INF_ON_LOOP
{
    struct inf_error err = {0};
    const struct inf_model_store_options options = {
        .repository = root, .devices = &devices, .cache_directory = root};
    inf_role_leave();
    cr_assert_eq(inf_model_store_create(store, &options, &err), INF_OK, "%s", err.text);
    inf_role_enter_loop();
    load_model(*store, "m", token);
    return next_end(*store);
}

Test(model_store, a_model_whose_runs_did_not_end_twice_is_quarantined)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store;
    for (int i = 0; i < 2; i++) {
        struct inf_load_event end = load_with_journal(&store, 0);
        cr_assert_eq(end.err.code, INF_OK, "%d: %s", i, end.err.text);
        struct inf_served *served = find_model(store, "m");
        inf_loader_note_hang(served);
        inf_served_unref(&served);
        // A load that ends says nothing about runs.
        load_model(store, "m", 0);
        cr_expect_eq(next_end(store).err.code, INF_OK);
        inf_model_store_destroy(&store); // as if the process was given up
    }
    struct inf_load_event end = load_with_journal(&store, 0);
    cr_expect_eq(end.err.code, INF_PRECONDITION);
    cr_expect_not_null(strstr(end.err.text,
                              "quarantined: the daemon ended 2 times while it was "
                              "run"),
                       "%s", end.err.text);
    inf_model_store_destroy(&store);
    // An admin may try again, which lifts the quarantine.
    cr_expect_eq(load_with_journal(&store, 1).err.code, INF_OK);
    inf_model_store_destroy(&store);
    cr_expect_eq(load_with_journal(&store, 0).err.code, INF_OK);
    inf_model_store_destroy(&store);
    // So do other files.
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(load_with_journal(&store, 0).err.code, INF_OK);
        struct inf_served *served = find_model(store, "m");
        inf_loader_note_hang(served);
        inf_served_unref(&served);
        inf_model_store_destroy(&store);
    }
    cr_expect_eq(load_with_journal(&store, 0).err.code, INF_PRECONDITION);
    inf_model_store_destroy(&store);
    make_model("m", OPEN);
    cr_expect_eq(load_with_journal(&store, 0).err.code, INF_OK);
    inf_model_store_destroy(&store);
}

// --- references to a model that many threads take and drop ---

struct user {
    struct inf_served *served; // each thread holds a reference
    atomic_bool *stop;
};

static void use_references(void *context)
{
    struct user *user = context;
    while (!atomic_load(user->stop)) {
        struct inf_served *another = inf_served_ref(user->served);
        atomic_fetch_add(&another->request_count, 1);
        inf_served_unref(&another);
    }
    inf_served_unref(&user->served);
}

Test(model_store, references_may_be_dropped_on_any_thread)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    cr_assert_eq(next_end(store).err.code, INF_OK);
    enum {
        USERS = 4
    };
    atomic_bool stop = false;
    struct user users[USERS];
    struct inf_thread threads[USERS] = {0};
    for (int i = 0; i < USERS; i++) {
        users[i] = (struct user){find_model(store, "m"), &stop};
        cr_assert_eq(inf_thread_start(&threads[i], "user", use_references, &users[i], NULL),
                     INF_OK);
    }
    for (int i = 0; i < 20; i++) {
        load_model(store, "m", 0);
        cr_assert_eq(next_end(store).err.code, INF_OK);
        struct inf_served *served = find_model(store, "m");
        cr_expect_neq(served, users[0].served);
        inf_served_unref(&served);
    }
    cr_expect_eq(inf_model_store_unload(store, "m", "", NULL), INF_OK);
    atomic_store(&stop, true);
    for (int i = 0; i < USERS; i++)
        inf_thread_join(&threads[i]);
    inf_model_store_destroy(&store);
}
