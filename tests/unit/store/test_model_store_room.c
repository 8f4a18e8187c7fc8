// SPDX-License-Identifier: Apache-2.0
// The budget of memory of a model store: which models make room for a load, and which loads wait or
// are refused.
#include <sys/resource.h>

#include "backends/base/clock.h"
#include "tests/unit/store/store_case.h"

TestSuite(model_store_room, .init = start_test, .fini = end_test, .timeout = 60);

#define MIB ((uint64_t)1 << 20)

static struct inf_model_store *make_governed_store(struct inf_memory_budget *budget)
{
    struct inf_model_store *store = NULL;
    struct inf_error err = {0};
    const struct inf_model_store_options options = {
        .repository = root, .devices = &devices, .budget = budget};
    cr_assert_eq(inf_model_store_create(&store, &options, &err), INF_OK, "%s", err.text);
    return store;
}

static uint64_t size_of(const char *model, const char *file)
{
    char name[128];
    struct stat status;
    snprintf(name, sizeof name, "%s/1/%s", model, file);
    cr_assert_eq(stat(path_of(name), &status), 0);
    return (uint64_t)status.st_size;
}

// Adds a file to the directory of a model, so that the model's memory is estimated as `bytes`.
static void make_heavy(const char *model, uint64_t bytes)
{
    char name[128];
    bytes -= size_of(model, "model.json") + size_of(model, "w.bin");
    snprintf(name, sizeof name, "%s/1/ballast", model);
    FILE *file = fopen(path_of(name), "w");
    cr_assert_not_null(file);
    cr_assert_eq(ftruncate(fileno(file), (off_t)bytes), 0);
    fclose(file);
}

// Asks whether a model is ready. The store must know the model.
static bool is_ready(struct inf_model_store *store, const char *name,
                     const char *version) INF_ON_LOOP
{
    bool ready = false;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_store_is_ready(store, NULL, name, version, &ready, &err), INF_OK, "%s",
                 err.text);
    return ready;
}

Test(model_store_room, room_for_a_load_is_made_at_the_cost_of_idle_models)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 100 * MIB};
    for (int i = 0; i < 3; i++)
        make_version((const char *[]){"a", "b", "c"}[i], "1", KNOWN);
    struct inf_model_store *store = make_governed_store(&budget);
    load_model(store, "a", 1);
    (void)next_end(store);
    struct inf_served *held = find_model(store, "a");
    uint64_t small = budget.used[INF_MEMORY_MODELS] = row_of(store, "a").memory_bytes;
    cr_assert_gt(small, 0);
    cr_expect_eq(budget.used[INF_MEMORY_LOADING], 0, "the load is over");

    // A load that needs exactly what is left fits.
    make_heavy("b", 100 * MIB - small);
    load_model(store, "b", 2);
    cr_expect_str_eq(next_event(store).stage, "read");
    cr_expect_eq(budget.used[INF_MEMORY_LOADING], 100 * MIB - small);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    cr_expect_eq(budget.used[INF_MEMORY_LOADING], 0);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_READY);

    // The next one does not fit while "a" is held; b is idle and too small to help.
    make_heavy("c", 100 * MIB - small / 2);
    load_model(store, "c", 3);
    uint64_t start_ns = inf_clock_ns();
    bool released = false;
    struct inf_load_event event = {0};
    while (!event.final) {
        if (!inf_model_store_next_event(store, &event)) {
            struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
            (void)poll(&poller, 1, 10);
        }
        if (!released && inf_clock_ns() - start_ns > 200 * INF_NS_PER_MS) {
            struct inf_served *again = NULL;
            struct inf_error err = {0};
            cr_expect_eq(inf_model_store_find(store, NULL, "a", "", &again, &err), INF_UNAVAILABLE,
                         "a model that must go takes no new requests");
            cr_expect_eq(err.reason, INF_REASON_LOADING);
            cr_expect_not(is_ready(store, "a", ""));
            inf_served_unref(&held);
            released = true;
        }
    }
    cr_expect(released, "the load waited for the model in use");
    cr_expect_eq(event.err.code, INF_OK, "%s", event.err.text);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_IDLE);
    cr_expect_eq(row_of(store, "b").state, INF_MODEL_IDLE);
    cr_expect_eq(row_of(store, "c").state, INF_MODEL_READY);
    cr_expect_eq(inf_model_store_counts(store).unloaded_memory, 2);
    inf_model_store_destroy(&store);
}

static void run_in_repository(const char *command)
{
    char line[256];
    snprintf(line, sizeof line, "cd '%s' && %s", root, command);
    cr_assert_eq(system(line), 0, "%s", line);
}

// Begins to load "a", runs `command` in the repository while the load waits for the answer about
// its room, and returns how the load ends.
static struct inf_load_event load_and_change(struct inf_model_store *store, const char *command,
                                             uint64_t token) INF_ON_LOOP
{
    load_model(store, "a", token);
    struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
    cr_assert_eq(poll(&poller, 1, 20000), 1);
    run_in_repository(command);
    return next_end(store);
}

Test(model_store_room, files_that_change_during_a_load_are_not_served)
{
    static const struct {
        const char *before, *during, *name;
    } changes[] = {{"true", "touch -d 2001-02-03 a/1/w.bin", "'w.bin'"},
                   {"cp a/1/model.json a/1/.x", "mv a/1/.x a/1/model.json", "'model.json'"},
                   {"mkdir a/1/check", "rmdir a/1/check", "'check'"},
                   {"true", "touch -d 2001-02-03 a/1/labels", "'labels'"},
                   {"true", "touch -d 2001-02-03 a/model.conf", "'model.conf'"},
                   {"cp a/model.conf a/.x", "mv a/.x a/model.conf", "'model.conf'"},
                   {"mv a/model.conf a/.x", "mv a/.x a/model.conf", "'model.conf'"},
                   {"true", "rm a/model.conf", "'model.conf'"}};
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 100 * MIB};
    make_version("a", "1", KNOWN);
    make_file("a/1/labels", "k\nl\n", 4);
    make_file("a/model.conf", "labels_file = labels\n", 21);
    struct inf_model_store *store = make_governed_store(&budget);
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(changes); i++) {
        run_in_repository(changes[i].before);
        struct inf_load_event end = load_and_change(store, changes[i].during, i + 1);
        cr_expect_eq(end.err.code, INF_UNAVAILABLE, "%s: %s", changes[i].during, end.err.text);
        cr_expect_eq(end.err.reason, INF_REASON_LOADING);
        cr_expect_not_null(strstr(end.err.text, changes[i].name), "%s", end.err.text);
        struct inf_served *served = NULL;
        struct inf_error err = {0};
        cr_expect_neq(inf_model_store_find(store, NULL, "a", "", &served, &err), INF_OK);
    }
    load_model(store, "a", 9);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    inf_model_store_destroy(&store);
}

Test(model_store_room, files_that_a_load_does_not_read_may_change)
{
    static const char *const commands[] = {"echo more >> a/1/log", "rm a/1/log", "touch a/1/lock",
                                           "mkdir -p a/1/old/check && echo x > a/1/old/w.bin",
                                           "echo y > a/1/old/w.bin"};
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 100 * MIB};
    make_version("a", "1", KNOWN);
    make_file("a/1/log", "old", 3);
    struct inf_model_store *store = make_governed_store(&budget);
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(commands); i++) {
        struct inf_load_event end = load_and_change(store, commands[i], i + 1);
        cr_expect_eq(end.err.code, INF_OK, "%s: %s", commands[i], end.err.text);
    }
    inf_model_store_destroy(&store);
}

// While a model is loaded, its weights are in memory twice, of which a sixteenth of the limit is
// allowed for: 6.25 MiB here.
Test(model_store_room, idle_models_go_for_the_peak_of_a_load)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 100 * MIB,
                                       .used = {[INF_MEMORY_PROCESS] = 60 * MIB}};
    make_version("a", "1", KNOWN);
    make_version("b", "1", KNOWN);
    struct inf_model_store *store = make_governed_store(&budget);
    load_model(store, "a", 1);
    cr_expect_eq(next_end(store).err.code, INF_OK);
    make_heavy("b", 22 * MIB);
    load_model(store, "b", 2);
    cr_expect_eq(next_end(store).err.code, INF_OK);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_READY, "60 + 22 + 15.75 MiB and a fit");
    cr_expect_eq(inf_model_store_unload(store, "b", "", NULL), INF_OK);
    wait_until_settled(store);
    make_heavy("b", 24 * MIB);
    load_model(store, "b", 3);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "the peak alone refuses no load: %s", end.err.text);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_IDLE);
    cr_expect_eq(row_of(store, "b").state, INF_MODEL_READY);
    inf_model_store_destroy(&store);
}

Test(model_store_room, the_first_model_is_not_put_off_for_its_peak)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 50 * MIB,
                                       .used = {[INF_MEMORY_PROCESS] = 10 * MIB}};
    make_version("a", "1", KNOWN);
    make_version("b", "1", KNOWN);
    make_heavy("a", 30 * MIB);
    make_heavy("b", 30 * MIB);
    struct inf_model_store *store = make_governed_store(&budget);
    struct inf_error err = {0};
    cr_assert_eq(inf_model_store_load_all(store, &err), INF_OK, "%s", err.text);
    wait_until_settled(store);
    bool first = row_of(store, "a").state == INF_MODEL_READY;
    bool second = row_of(store, "b").state == INF_MODEL_READY;
    cr_expect_neq(first, second, "one is loaded, and the other one is put off");
    cr_expect_eq(inf_model_store_counts(store).loads_deferred, 1);
    inf_model_store_destroy(&store);
}

Test(model_store_room, a_load_that_never_fits_is_refused_with_the_numbers)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 50 * MIB,
                                       .used = {[INF_MEMORY_PROCESS] = 10 * MIB}};
    make_version("a", "1", KNOWN);
    make_heavy("a", 41 * MIB);
    struct inf_model_store *store = make_governed_store(&budget);
    load_model(store, "a", 1);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_EXHAUSTED);
    cr_expect_eq(end.err.reason, INF_REASON_HOST_OOM);
    cr_expect_not_null(strstr(end.err.text,
                              "model 'a' wants 41.0 MiB, memory_max is 50.0 MiB: "
                              "10.0 MiB are in use besides models"),
                       "%s", end.err.text);
    cr_expect_eq(inf_model_store_counts(store).loads_refused, 1);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_FAILED);
    // At the limit it fits.
    make_heavy("a", 40 * MIB);
    load_model(store, "a", 2);
    cr_expect_eq(next_end(store).err.code, INF_OK);
    inf_model_store_destroy(&store);
}

// Asks for a model until it is loaded.
static void find_when_loaded(struct inf_model_store *store, const char *name) INF_ON_LOOP
{
    struct inf_served *served = NULL;
    struct inf_error err = {0};
    uint64_t end_ns = inf_clock_ns() + 10000 * INF_NS_PER_MS;
    while (inf_model_store_find(store, NULL, name, "", &served, &err) != INF_OK) {
        cr_assert_lt(inf_clock_ns(), end_ns, "%s", err.text);
        wait_until_settled(store);
    }
    inf_served_unref(&served);
}

Test(model_store_room, a_load_without_a_client_unloads_nothing)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 50 * MIB};
    make_version("a", "1", KNOWN);
    make_version("b", "1", KNOWN);
    make_version("p", "1", KNOWN);
    make_heavy("b", 60 * MIB);
    make_heavy("p", 60 * MIB);
    make_file("p/model.conf", "pinned = yes\n", strlen("pinned = yes\n"));
    struct inf_model_store *store = make_governed_store(&budget);
    struct inf_error err = {0};
    cr_assert_eq(inf_model_store_load_all(store, &err), INF_OK, "%s", err.text);
    wait_until_settled(store);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_READY);
    cr_expect_eq(row_of(store, "b").state, INF_MODEL_IDLE);
    cr_expect_str_eq(row_of(store, "b").reason, "");
    cr_expect_eq(row_of(store, "p").state, INF_MODEL_FAILED, "a pinned model is not put off");
    cr_expect_eq(inf_model_store_counts(store).loads_deferred, 1);
    // A request for it starts a load, which is refused; then it is not tried again for a while.
    struct inf_served *served = NULL;
    cr_expect_eq(inf_model_store_find(store, NULL, "b", "", &served, &err), INF_UNAVAILABLE);
    wait_until_settled(store);
    cr_expect_eq(inf_model_store_find(store, NULL, "b", "", &served, &err), INF_PRECONDITION);
    cr_expect_not_null(strstr(err.text, "60.0 MiB"), "%s", err.text);
    cr_expect_eq(inf_model_store_pending(store), 0);
    cr_expect_eq(row_of(store, "b").state, INF_MODEL_IDLE);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_READY);
    // When there is memory, it loads.
    budget.limit_bytes = 500 * MIB;
    find_when_loaded(store, "b");
    inf_model_store_destroy(&store);
}

Test(model_store_room, an_idle_model_whose_load_fails_for_a_while_is_loaded_later)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 100 * MIB};
    make_version("a", "1", KNOWN);
    struct inf_model_store *store = make_governed_store(&budget);
    struct inf_served *served = NULL;
    struct inf_error err = {0};
    load_model(store, "a", 1);
    (void)next_end(store);
    cr_assert_gt(inf_model_store_relieve(store, inf_clock_ns()), 0);
    // The limit allows only descriptor 0, which is in use, so no file can be opened.
    struct rlimit before;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {1, before.rlim_max};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    cr_expect_eq(inf_model_store_find(store, NULL, "a", "", &served, &err), INF_UNAVAILABLE);
    wait_until_settled(store);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_IDLE);
    cr_expect_not_null(strstr(row_of(store, "a").reason, "Too many open files"), "%s",
                       row_of(store, "a").reason);
    find_when_loaded(store, "a");
    cr_expect_str_eq(row_of(store, "a").reason, "");
    // A file changes while the load waits for the answer about its room.
    cr_assert_gt(inf_model_store_relieve(store, inf_clock_ns()), 0);
    cr_expect_eq(inf_model_store_find(store, NULL, "a", "", &served, &err), INF_UNAVAILABLE);
    struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
    cr_assert_eq(poll(&poller, 1, 20000), 1);
    run_in_repository("touch -d 2001-02-03 a/1/w.bin");
    wait_until_settled(store);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_IDLE);
    cr_expect_not_null(strstr(row_of(store, "a").reason, "'w.bin' changed"), "%s",
                       row_of(store, "a").reason);
    find_when_loaded(store, "a");
    // Without its file the model cannot be loaded again, so that it is failed and not idle.
    cr_assert_gt(inf_model_store_relieve(store, inf_clock_ns()), 0);
    run_in_repository("rm a/1/w.bin");
    cr_expect_eq(inf_model_store_find(store, NULL, "a", "", &served, &err), INF_UNAVAILABLE);
    wait_until_settled(store);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_FAILED);
    inf_model_store_destroy(&store);
}

Test(model_store_room, a_load_that_waits_for_room_can_be_cancelled)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 50 * MIB};
    make_version("a", "1", KNOWN);
    make_version("b", "1", KNOWN);
    struct inf_model_store *store = make_governed_store(&budget);
    load_model(store, "a", 1);
    (void)next_end(store);
    struct inf_served *held = find_model(store, "a");
    make_heavy("b", 50 * MIB);
    load_model(store, "b", 2);
    uint64_t start_ns = inf_clock_ns();
    struct inf_load_event event = {0};
    bool cancelled = false;
    while (!event.final) {
        if (!inf_model_store_next_event(store, &event)) {
            struct pollfd poller = {.fd = inf_model_store_fd(store), .events = POLLIN};
            (void)poll(&poller, 1, 10);
        }
        if (!cancelled && inf_clock_ns() - start_ns > 100 * INF_NS_PER_MS) {
            struct inf_error err = {0};
            cr_assert_eq(inf_model_store_unload(store, "b", "", &err), INF_OK, "%s", err.text);
            cancelled = true;
        }
    }
    cr_expect_eq(event.err.code, INF_CANCELLED, "%s", event.err.text);
    cr_expect_eq(budget.used[INF_MEMORY_LOADING], 0);
    // The model that had to leave serves again.
    load_model(store, "a", 3);
    cr_expect_eq(next_end(store).err.code, INF_OK);
    inf_served_unref(&held);
    held = find_model(store, "a");
    inf_served_unref(&held);
    inf_model_store_destroy(&store);
}

Test(model_store_room, pressure_unloads_a_quarter_of_the_idle_models)
{
    inf_role_enter_loop();
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(names); i++)
        make_version(names[i], "1", KNOWN);
    make_file("a/model.conf", "pinned = yes\n", strlen("pinned = yes\n"));
    struct inf_model_store *store = make_store();
    struct inf_error err = {0};
    cr_assert_eq(inf_model_store_load_all(store, &err), INF_OK, "%s", err.text);
    wait_until_settled(store);
    struct inf_served *held = find_model(store, "b");
    uint64_t each = row_of(store, "a").memory_bytes;
    cr_expect_eq(inf_model_store_relieve(store, inf_clock_ns()), 2 * each);
    cr_expect_eq(inf_model_store_counts(store).unloaded_pressure, 2);
    for (int i = 0; i < 8; i++)
        (void)inf_model_store_relieve(store, inf_clock_ns());
    cr_expect_eq(inf_model_store_relieve(store, inf_clock_ns()), 0);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(names); i++)
        cr_expect_eq(row_of(store, names[i]).state, i < 2 ? INF_MODEL_READY : INF_MODEL_IDLE, "%s",
                     names[i]);
    inf_served_unref(&held);
    inf_model_store_destroy(&store);
}

Test(model_store_room, a_question_whether_a_model_is_ready_loads_nothing)
{
    inf_role_enter_loop();
    bool ready;
    struct inf_error err = {0};
    make_version("a", "1", KNOWN);
    make_version("bad", "1", KNOWN);
    make_file("bad/1/w.bin", "", 0);
    struct inf_model_store *store = make_store();
    load_model(store, "a", 1);
    cr_expect_not(is_ready(store, "a", ""), "it is being loaded");
    (void)next_end(store);
    cr_expect(is_ready(store, "a", "1"));
    load_model(store, "bad", 2);
    cr_assert_neq(next_end(store).err.code, INF_OK);
    cr_expect_not(is_ready(store, "bad", ""));
    cr_expect_eq(inf_model_store_is_ready(store, NULL, "absent", "", &ready, &err), INF_NOT_FOUND);
    cr_expect_eq(err.reason, INF_REASON_MODEL_NOT_FOUND);
    cr_expect_eq(inf_model_store_is_ready(store, NULL, "a", "2", &ready, NULL), INF_NOT_FOUND);
    cr_expect_eq(inf_model_store_is_ready(store, NULL, "a:no", "", &ready, NULL), INF_NOT_FOUND);

    cr_assert_gt(inf_model_store_relieve(store, inf_clock_ns()), 0);
    cr_expect(is_ready(store, "a", ""));
    cr_expect(is_ready(store, "a", "1"));
    cr_expect(is_ready(store, "a:any", ""), "its signatures are known when it is loaded");
    cr_expect_eq(inf_model_store_pending(store), 0);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_IDLE);
    struct inf_served *served = NULL;
    cr_expect_eq(inf_model_store_find(store, NULL, "a", "", &served, &err), INF_UNAVAILABLE);
    cr_expect_not(is_ready(store, "a", ""), "it is being loaded again");
    wait_until_settled(store);
    // The question does not count as the request that had the model loaded, so the model is kept.
    cr_expect(is_ready(store, "a", ""));
    cr_expect_eq(inf_model_store_relieve(store, inf_clock_ns()), 0);
    inf_model_store_destroy(&store);
}

Test(model_store_room, a_model_is_kept_for_the_request_that_had_it_loaded)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 100 * MIB};
    make_version("a", "1", KNOWN);
    make_version("b", "1", KNOWN);
    struct inf_model_store *store = make_governed_store(&budget);
    struct inf_served *served = NULL;
    struct inf_error err = {0};
    load_model(store, "a", 1);
    (void)next_end(store);
    cr_assert_gt(inf_model_store_relieve(store, inf_clock_ns()), 0);
    cr_expect_eq(inf_model_store_find(store, NULL, "a", "", &served, &err), INF_UNAVAILABLE);
    wait_until_settled(store);
    // The request that woke the model is on its way: neither pressure nor another load takes it.
    cr_expect_eq(inf_model_store_relieve(store, inf_clock_ns()), 0);
    make_heavy("b", 100 * MIB);
    load_model(store, "b", 2);
    usleep(150000);
    struct inf_load_event event;
    while (inf_model_store_next_event(store, &event))
        cr_expect(!event.final);
    served = find_model(store, "a");
    inf_served_unref(&served);
    cr_expect_eq(next_end(store).err.code, INF_OK);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_IDLE);
    inf_model_store_destroy(&store);
}

Test(model_store_room, room_that_is_granted_late_does_not_count_twice)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 100 * MIB};
    make_version("a", "1", KNOWN);
    make_heavy("a", 60 * MIB);
    struct inf_model_store *store = make_governed_store(&budget);
    load_model(store, "a", 1);
    // The loader asks several times before the loop answers the first question.
    usleep(200000);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    cr_expect_eq(budget.used[INF_MEMORY_LOADING], 0);
    inf_model_store_destroy(&store);
}

Test(model_store_room, clients_get_memory_at_the_cost_of_idle_models_only)
{
    inf_role_enter_loop();
    struct inf_memory_budget budget = {.limit_bytes = 100 * MIB};
    struct inf_error err = {0};
    make_version("a", "1", KNOWN);
    make_version("b", "1", KNOWN);
    struct inf_model_store *store = make_governed_store(&budget);
    load_model(store, "a", 1);
    (void)next_end(store);
    load_model(store, "b", 2);
    (void)next_end(store);
    uint64_t one = row_of(store, "a").memory_bytes;
    struct inf_served *held = find_model(store, "a");
    budget.used[INF_MEMORY_MODELS] = 2 * one;
    // What fits takes nothing from models, what never fits neither.
    cr_expect_eq(inf_model_store_claim_memory(store, 100 * MIB - 2 * one, "x", &err), INF_OK);
    cr_expect_eq(inf_model_store_claim_memory(store, 100 * MIB, "the region", &err), INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_HOST_OOM);
    cr_expect(strstr(err.text, "the region wants 100.0 MiB, ") != NULL, "%s", err.text);
    cr_expect(strstr(err.text, " of memory_max = 100.0 MiB are free: models ") != NULL, "%s",
              err.text);
    cr_expect_eq(row_of(store, "b").state, INF_MODEL_READY);
    usleep(30000); // models are not counted again for a while
    cr_expect_eq(inf_model_store_claim_memory(store, 100 * MIB - one, "x", &err), INF_OK, "%s",
                 err.text);
    cr_expect_eq(row_of(store, "b").state, INF_MODEL_IDLE);
    cr_expect_eq(row_of(store, "a").state, INF_MODEL_READY);
    cr_expect_eq(inf_model_store_counts(store).unloaded_memory, 1u);
    // Sessions hold all memory, and the only model is in use.
    budget.used[INF_MEMORY_SESSIONS] = 100 * MIB;
    cr_expect_eq(inf_model_store_claim_memory(store, 1, "the session", &err), INF_EXHAUSTED);
    cr_expect(strstr(err.text, "0.0 MiB of memory_max = 100.0 MiB are free") != NULL, "%s",
              err.text);
    cr_expect(strstr(err.text, "sessions 100.0 MiB") != NULL, "%s", err.text);
    budget.limit_bytes = 0;
    cr_expect_eq(inf_model_store_claim_memory(store, UINT64_MAX, "x", &err), INF_OK);
    inf_served_unref(&held);
    inf_model_store_destroy(&store);
    store = make_governed_store(NULL);
    cr_expect_eq(inf_model_store_claim_memory(store, UINT64_MAX, "x", &err), INF_OK);
    inf_model_store_destroy(&store);
}
