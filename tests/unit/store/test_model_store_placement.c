// SPDX-License-Identifier: Apache-2.0
// Placing models through the store, and changing the settings of served models, also while other
// placements and loads are in progress.
#include <stdatomic.h>

#include "daemon/store/state.h"
#include "tests/unit/store/store_case.h"

TestSuite(model_store_placement, .init = start_test, .fini = end_test, .timeout = 60);

// Loads the model m with a store that saves results of races in `root` and may run races as `races`
// says. Expects that the model is placed on this device.
static void expect_placed(enum inf_place_races races, const char *device,
                          enum inf_place_source source)
{
    struct inf_model_store *store = NULL;
    struct inf_served *served = NULL;
    const struct inf_model_store_options options = {.repository = root,
                                                    .devices = &devices,
                                                    .default_device = device,
                                                    .rules = {.races = races},
                                                    .cache_directory = root};
    inf_role_leave(); // create the store without a role, as a daemon does before its loop runs
    cr_assert_eq(inf_model_store_create(&store, &options, NULL), INF_OK);
    inf_role_enter_loop();
    load_model(store, "m", 1);
    cr_assert_eq(next_end(store).err.code, INF_OK);
    wait_until_settled(store);
    cr_assert_eq(inf_model_store_find(store, NULL, "m", "", &served, NULL), INF_OK);
    cr_expect_eq(served->placement.source, source, "%s: %s",
                 inf_place_source_name(served->placement.source), served->placement.reason);
    cr_expect_eq(served->placement.race.entries[served->placement.race.chosen].device,
                 served->device);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

Test(model_store_placement, places_models_by_rule_race_memory_or_name)
{
    // Add a second device to race with.
    struct inf_device_list more = {0};
    cr_assert_eq(inf_device_list_open(&more, "ref", NULL, NULL), INF_OK);
    devices.devices[devices.count++] = inf_device_ref(more.devices[0]);
    inf_device_list_close(&more);
    make_model("m", KNOWN);
    // With RACES_AUTO no race runs, because both devices are `ref`, which only provides the
    // reference result of a race.
    expect_placed(INF_PLACE_RACES_AUTO, "", INF_PLACE_RULE);
    expect_placed(INF_PLACE_RACES_ALWAYS, "ref", INF_PLACE_PINNED);
    expect_placed(INF_PLACE_RACES_NEVER, "", INF_PLACE_RULE);
    expect_placed(INF_PLACE_RACES_ALWAYS, "auto", INF_PLACE_RACE);
    expect_placed(INF_PLACE_RACES_ALWAYS, "auto", INF_PLACE_RECALL);
}

static void set_requests_max(const char *conf)
{
    make_file("m/model.conf", conf, strlen(conf));
}

static void expect_requests_max(struct inf_model_store *store, uint32_t most) INF_ON_LOOP
{
    struct inf_served *served = find_model(store, "m");
    cr_expect_eq(served->quota->most[INF_MODEL_QUOTA_REQUESTS], most);
    cr_expect_eq(served->config.requests_max, most);
    inf_served_unref(&served);
}

Test(model_store_placement, settings_go_with_a_file_that_came_after_the_load)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    expect_requests_max(store, 0);
    struct inf_served *before = find_model(store, "m");
    set_requests_max("requests_max = 7\n");
    inf_model_store_refresh(store, "m", true);
    wait_until_settled(store);
    expect_requests_max(store, 7);
    cr_assert_eq(unlink(path_of("m/model.conf")), 0);
    inf_model_store_refresh(store, "m", true);
    wait_until_settled(store);
    expect_requests_max(store, 0);
    struct inf_served *after = find_model(store, "m");
    cr_expect_eq(after, before, "the model was loaded again");
    inf_served_unref(&before);
    inf_served_unref(&after);
    inf_model_store_destroy(&store);
}

Test(model_store_placement, a_placement_keeps_settings_that_changed_while_it_waited)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    set_requests_max("requests_max = 7\n");
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    expect_requests_max(store, 7);
    // The placement is submitted before the store knows the new settings, and ends after that.
    set_requests_max("requests_max = 70\n");
    inf_model_store_refresh(store, "m", true);
    cr_assert_eq(place_model(store, "ref", "", "", 0), INF_OK);
    struct inf_served *before = find_model(store, "m");
    wait_until_settled(store);
    struct inf_served *after = find_model(store, "m");
    cr_expect_neq(after, before);
    expect_requests_max(store, 70);
    inf_served_unref(&before);
    inf_served_unref(&after);
    inf_model_store_destroy(&store);
}

// A race that places a model may have begun when an admin places it.
Test(model_store_placement, placements_that_overlap_succeed)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    struct inf_served *before = find_model(store, "m");
    atomic_store(&before->request_count, 5);
    cr_assert_eq(place_model(store, "ref", "", "", 1), INF_OK);
    cr_assert_eq(place_model(store, "ref", "", "", 2), INF_OK);
    struct inf_load_event event = next_end(store);
    cr_expect_eq(event.token, 1u);
    cr_expect_eq(event.err.code, INF_OK, "%s", event.err.text);
    struct inf_served *first = find_model(store, "m");
    atomic_fetch_add(&first->request_count, 2);
    event = next_end(store);
    cr_expect_eq(event.token, 2u);
    cr_expect_eq(event.err.code, INF_OK, "%s", event.err.text);
    struct inf_served *second = find_model(store, "m");
    cr_expect_neq(first, before);
    cr_expect_neq(second, first);
    uint64_t requests = atomic_load(&second->request_count);
    cr_expect_eq(requests, 7u, "%llu requests counted", (unsigned long long)requests);
    inf_served_unref(&before);
    inf_served_unref(&first);
    inf_served_unref(&second);
    inf_model_store_destroy(&store);
}

// All placements are submitted before the first one ends, so none of them has the settings of
// another one.
Test(model_store_placement, placements_that_overlap_all_hold)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    cr_assert_eq(place_model(store, "", "memory", "", 1), INF_OK);
    cr_assert_eq(place_model(store, "", "", "debug", 2), INF_OK);
    cr_assert_eq(place_model(store, "", "stability", "", 3), INF_OK);
    // The model has this policy when the placement is submitted, but not when it ends.
    cr_assert_eq(place_model(store, "", "latency", "", 4), INF_OK);
    static const struct {
        const char *policy, *mode;
    } wanted[] = {
        {"memory", "normal"}, {"memory", "debug"}, {"stability", "debug"}, {"latency", "debug"}};
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(wanted); i++) {
        struct inf_load_event event = next_end(store);
        cr_expect_eq(event.token, i + 1);
        cr_expect_eq(event.err.code, INF_OK, "%s", event.err.text);
        struct inf_served *served = find_model(store, "m");
        cr_expect_str_eq(served->config.policy, wanted[i].policy);
        cr_expect_str_eq(served->config.mode, wanted[i].mode);
        inf_served_unref(&served);
    }
    cr_expect_eq(inf_model_store_pending(store), 0u);
    inf_model_store_destroy(&store);
}

// Requests may have disturbed the races of the kernels of the model that was served before.
Test(model_store_placement, a_load_starts_the_races_of_kernels_without_a_delay)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    struct inf_model_entry *entry = inf_model_table_find(&store->table, "m", "");
    cr_assert_not_null(entry);
    entry->kernels_retry.gave_up = 5;
    entry->kernels_retry.after_ns = UINT64_MAX;
    cr_assert_eq(place_model(store, "", "memory", "", 1), INF_OK);
    wait_until_settled(store);
    cr_expect_eq(entry->kernels_retry.gave_up, 5u, "a placement is no load");
    cr_expect_eq(entry->kernels_retry.after_ns, UINT64_MAX);
    load_model(store, "m", 0);
    wait_until_settled(store);
    cr_expect_eq(entry->kernels_retry.gave_up, 0u);
    cr_expect_eq(entry->kernels_retry.after_ns, 0u);
    inf_model_store_destroy(&store);
}

// When the load of changed files is submitted, the model still has the settings before the
// placement.
Test(model_store_placement, a_load_of_changed_files_keeps_a_placement_that_overlaps)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    cr_assert_eq(place_model(store, "", "memory", "", 1), INF_OK);
    struct inf_served *before = find_model(store, "m");
    make_model("m", OPEN);
    inf_model_store_refresh(store, "m", true);
    wait_until_settled(store);
    struct inf_served *served = find_model(store, "m");
    cr_expect_neq(served->load_number, before->load_number, "the new files are served");
    cr_expect_str_eq(served->config.policy, "memory");
    inf_served_unref(&before);
    inf_served_unref(&served);
    inf_model_store_destroy(&store);
}

// The store places a model with token 0 after a race. The race may have ended when an admin's
// placement had been submitted, and had not ended.
Test(model_store_placement, a_placement_after_a_race_does_not_undo_that_of_an_admin)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    cr_assert_eq(place_model(store, "ref", "", "", 1), INF_OK);
    cr_assert_eq(place_model(store, "ref", "", "", 0), INF_OK);
    cr_expect_eq(next_end(store).err.code, INF_OK);
    struct inf_served *first = find_model(store, "m");
    cr_expect_eq(next_end(store).err.code, INF_CANCELLED);
    struct inf_served *second = find_model(store, "m");
    cr_expect_eq(second, first);
    inf_served_unref(&first);
    inf_served_unref(&second);
    inf_model_store_destroy(&store);
}

Test(model_store_placement, a_placement_of_files_that_were_loaded_again_fails)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    load_model(store, "m", 1);
    cr_assert_eq(place_model(store, "ref", "", "", 2), INF_OK);
    cr_expect_eq(next_end(store).err.code, INF_OK);
    struct inf_served *loaded = find_model(store, "m");
    struct inf_load_event event = next_end(store);
    cr_expect_eq(event.token, 2u);
    cr_expect_eq(event.err.code, INF_CANCELLED);
    cr_expect_not_null(strstr(event.err.text, "loaded again"), "%s", event.err.text);
    struct inf_served *served = find_model(store, "m");
    cr_expect_eq(served, loaded);
    inf_served_unref(&served);
    inf_served_unref(&loaded);
    inf_model_store_destroy(&store);
}
