// SPDX-License-Identifier: Apache-2.0
// Automatic placement on devices that are slow, wrong, or refuse models, at the first start of the
// daemon and at the second.
#include <time.h>

#include "backends/base/thread.h"
#include "tests/unit/load/race_case.h"

TestSuite(model_race, .init = start_test, .fini = end_test, .timeout = 120);

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
        cr_expect_eq((unsigned)warnings > 0, warns, "%s", cases[i].what);
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
    cr_expect_geq((unsigned)warnings, 1u);
    cr_expect(!is_recalled());
}
