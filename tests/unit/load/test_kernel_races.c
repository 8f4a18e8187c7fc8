// SPDX-License-Identifier: Apache-2.0
// Races of kernels after a model serves: one model after the other, and what their outcomes do. The
// device of these tests, ref, has no races, so the outcomes are made up.
#include "backends/base/clock.h"
#include "backends/device/backend.h"
#include "daemon/load/race/background_kernels.h"
#include "daemon/store/kernel_races.h"
#include "tests/unit/store/store_case.h"

TestSuite(kernel_races, .init = start_test, .fini = end_test, .timeout = 60);

static struct inf_model_store *make_store_of(const char *const *names, size_t count) INF_ON_LOOP
{
    for (size_t i = 0; i < count; i++)
        make_model(names[i], KNOWN);
    struct inf_model_store *store = make_store();
    for (size_t i = 0; i < count; i++) {
        load_model(store, names[i], 0);
        cr_assert_eq(next_end(store).err.code, INF_OK);
    }
    return store;
}

static struct inf_model_entry *entry_of(struct inf_model_store *store, const char *name) INF_ON_LOOP
{
    struct inf_model_entry *entry = inf_model_table_find(&store->table, name, "");
    cr_assert_not_null(entry);
    return entry;
}

// Ends a race of the kernels of `served` with this outcome.
static void finish_race(struct inf_model_store *store, struct inf_model_entry *entry,
                        struct inf_served *served, bool changed, bool disturbed) INF_ON_LOOP
{
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_RACE);
    cr_assert_not_null(job);
    job->base = inf_served_ref(served);
    job->race.kernels = true;
    job->race.kernels_changed = changed;
    job->race.disturbed = disturbed;
    store->kernels_race = true;
    inf_store_finish_kernel_race(store, entry, job);
    inf_load_job_destroy(&job);
}

static const char *const one[] = {"m"};

Test(kernel_races, places_the_model_again_if_kernels_changed)
{
    inf_role_enter_loop();
    struct inf_model_store *store = make_store_of(one, 1);
    struct inf_served *old = find_model(store, "m");
    atomic_store(&old->request_count, 5);
    finish_race(store, entry_of(store, "m"), old, true, false);
    cr_expect_eq(inf_model_store_pending(store), 1u);
    struct inf_served *served = find_model(store, "m");
    cr_expect_eq(served, old, "the old executables serve until the new ones are ready");
    inf_served_unref(&served);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    served = find_model(store, "m");
    cr_expect_neq(served, old);
    cr_expect_eq(atomic_load(&served->request_count), 5u);
    cr_expect_not(served->kernels_due);
    inf_served_unref(&served);
    inf_served_unref(&old);
    inf_model_store_destroy(&store);
}

Test(kernel_races, leaves_a_model_whose_kernels_are_the_best)
{
    inf_role_enter_loop();
    struct inf_model_store *store = make_store_of(one, 1);
    struct inf_served *served = find_model(store, "m");
    finish_race(store, entry_of(store, "m"), served, false, false);
    cr_expect_eq(inf_model_store_pending(store), 0u);
    cr_expect_eq(inf_model_store_races(store), 0u);
    cr_expect_not(served->kernels_due);
    // The model was loaded again or unloaded meanwhile.
    load_model(store, "m", 0);
    cr_assert_eq(next_end(store).err.code, INF_OK);
    finish_race(store, entry_of(store, "m"), served, true, false);
    cr_expect_eq(inf_model_store_pending(store), 0u);
    finish_race(store, NULL, served, true, false);
    cr_expect_eq(inf_model_store_pending(store), 0u);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(kernel_races, are_tried_again_later_if_requests_disturbed_them)
{
    inf_role_enter_loop();
    struct inf_model_store *store = make_store_of(one, 1);
    struct inf_served *served = find_model(store, "m");
    finish_race(store, entry_of(store, "m"), served, true, true);
    cr_expect_eq(inf_model_store_pending(store), 0u, "a part of the winners is not taken up");
    cr_expect(served->kernels_due);
    uint64_t now_ns = inf_clock_ns();
    cr_expect_gt(inf_store_start_kernel_race(store, now_ns), now_ns);
    cr_expect_eq(inf_model_store_races(store), 0u);
    now_ns += INF_STORE_KERNELS_RETRY_NS;
    cr_expect_gt(inf_store_start_kernel_race(store, now_ns), now_ns);
    cr_expect_eq(inf_model_store_races(store), 1u);
    cr_expect_not(served->kernels_due);
    wait_until_settled(store);
    cr_expect_eq(inf_store_start_kernel_race(store, now_ns), UINT64_MAX);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// Returns how long no race begins after one that requests disturbed, in units of the first delay.
static uint64_t disturb_race(struct inf_model_store *store, struct inf_served *served) INF_ON_LOOP
{
    uint64_t now_ns = inf_clock_ns();
    finish_race(store, entry_of(store, "m"), served, true, true);
    uint64_t next_ns = inf_store_start_kernel_race(store, now_ns);
    cr_expect_geq(next_ns, now_ns);
    return (next_ns - now_ns) / INF_STORE_KERNELS_RETRY_NS;
}

Test(kernel_races, come_ever_later_on_a_machine_that_is_never_idle)
{
    inf_role_enter_loop();
    struct inf_model_store *store = make_store_of(one, 1);
    struct inf_served *served = find_model(store, "m");
    for (uint32_t i = 0; i <= INF_RETRY_DOUBLINGS; i++)
        cr_expect_eq(disturb_race(store, served), UINT64_C(1) << i, "attempt %u", i);
    cr_expect_eq(disturb_race(store, served), UINT64_C(1) << INF_RETRY_DOUBLINGS);
    finish_race(store, entry_of(store, "m"), served, false, false);
    cr_expect_eq(disturb_race(store, served), 1u, "a race that ended begins the count again");
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(kernel_races, of_a_model_that_is_always_disturbed_delay_no_other_model)
{
    static const char *const three[] = {"a", "b", "c"};
    inf_role_enter_loop();
    struct inf_model_store *store = make_store_of(three, 3);
    struct inf_served *served[3];
    for (size_t i = 0; i < 3; i++)
        served[i] = find_model(store, three[i]);
    for (uint32_t i = 0; i < INF_RETRY_DOUBLINGS; i++)
        finish_race(store, entry_of(store, "a"), served[0], false, true);
    finish_race(store, entry_of(store, "b"), served[1], false, true);
    // The end of a race of what an entry served before says nothing about what it serves.
    finish_race(store, entry_of(store, "a"), served[2], false, false);
    uint64_t now_ns = inf_clock_ns(), next_ns = inf_store_start_kernel_race(store, now_ns);
    cr_expect_leq(next_ns, now_ns + INF_STORE_KERNELS_RETRY_NS, "the next attempt is that of b");
    cr_expect_eq(inf_model_store_races(store), 0u);
    served[2]->kernels_due = true;
    (void)inf_store_start_kernel_race(store, now_ns);
    cr_expect_not(served[2]->kernels_due, "c races at once");
    wait_until_settled(store);
    cr_expect(served[0]->kernels_due && served[1]->kernels_due);
    // The end of a race of another model does not bring the next attempt of a forward.
    finish_race(store, entry_of(store, "c"), served[2], false, false);
    (void)inf_store_start_kernel_race(store, now_ns + INF_STORE_KERNELS_RETRY_NS);
    cr_expect_not(served[1]->kernels_due, "the wait of b is over");
    cr_expect(served[0]->kernels_due);
    wait_until_settled(store);
    finish_race(store, entry_of(store, "b"), served[1], false, true);
    (void)inf_store_start_kernel_race(store, now_ns + 3 * INF_STORE_KERNELS_RETRY_NS);
    wait_until_settled(store);
    cr_expect(served[0]->kernels_due, "a waits longer");
    for (size_t i = 0; i < 3; i++)
        inf_served_unref(&served[i]);
    inf_model_store_destroy(&store);
}

Test(kernel_races, run_one_after_the_other)
{
    static const char *const three[] = {"a", "b", "c"};
    inf_role_enter_loop();
    struct inf_model_store *store = make_store_of(three, 3);
    struct inf_served *served[3];
    for (size_t i = 0; i < 3; i++) {
        served[i] = find_model(store, three[i]);
        served[i]->kernels_due = true;
    }
    uint64_t now_ns = inf_clock_ns();
    cr_expect_neq(inf_store_start_kernel_race(store, now_ns), UINT64_MAX);
    cr_expect_neq(inf_store_start_kernel_race(store, now_ns), UINT64_MAX);
    cr_expect_eq(inf_model_store_races(store), 1u);
    // The end of each race starts the next one.
    wait_until_settled(store);
    for (size_t i = 0; i < 3; i++) {
        cr_expect_not(served[i]->kernels_due, "%s", three[i]);
        inf_served_unref(&served[i]);
    }
    cr_expect_eq(inf_store_start_kernel_race(store, inf_clock_ns()), UINT64_MAX);
    inf_model_store_destroy(&store);
}

// --- the outcome of a race ---

static struct inf_kernel_choices choices;

static bool report_choices(struct inf_device *device, struct inf_kernel_choices *out_choices)
{
    (void)device;
    *out_choices = choices;
    return true;
}

// Races the kernels of a model that has none left to race. Returns whether its kernels changed.
static bool race_nothing(uint64_t overturned_before_load)
{
    static struct inf_idle_gate idle_gate;
    static struct inf_served served;
    struct inf_backend backend = {.kernel_choices = report_choices};
    struct inf_device device = {.backend = &backend};
    const struct inf_device_list list = {.devices = {&device}, .count = 1};
    const struct inf_load_options options = {.devices = &list, .idle_gate = &idle_gate};
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_RACE);
    cr_assert_not_null(job);
    served.kernels_overturned = overturned_before_load;
    job->base = &served;
    cr_expect_eq(inf_background_kernels_run(job, &options, NULL), INF_OK);
    bool changed = job->race.kernels_changed;
    job->base = NULL;
    inf_load_job_destroy(&job);
    return changed;
}

// The winners may come from an earlier race that requests disturbed, or from one of another model.
Test(kernel_races, count_the_winners_of_other_races_since_the_load)
{
    choices.overturned = 3;
    cr_expect_not(race_nothing(3));
    cr_expect(race_nothing(2));
}
