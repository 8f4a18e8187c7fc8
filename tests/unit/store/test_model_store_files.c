// SPDX-License-Identifier: Apache-2.0
// Where the models of a store come from: its repository, paths, and directories that admins send.
#include <fcntl.h>

#include "tests/unit/store/store_case.h"

TestSuite(model_store_files, .init = start_test, .fini = end_test, .timeout = 60);

Test(model_store_files, the_repository_is_loaded_and_read_again)
{
    inf_role_enter_loop();
    make_version("same", "1", KNOWN);
    make_version("newer", "1", KNOWN);
    make_version("gone", "1", KNOWN);
    make_model("bad", KNOWN);
    make_file("bad/w.bin", "", 0);
    make_file("models.json", "[]", 2); // a JSON file in the repository that is no model
    struct inf_model_store *store = make_store();
    struct inf_error err = {0};
    cr_assert_eq(inf_model_store_load_all(store, &err), INF_OK, "%s", err.text);
    cr_expect_eq(inf_model_store_pending(store), 1u);
    wait_until_settled(store);
    cr_assert_eq(inf_model_store_list(store, NULL, NULL, 0), 4u);
    struct inf_model_row rows[2];
    cr_expect_eq(inf_model_store_list(store, NULL, rows, 2), 4u);
    cr_expect_str_eq(rows[0].name, "bad");
    cr_expect_eq(rows[0].state, INF_MODEL_FAILED);
    cr_expect_str_eq(rows[1].name, "gone");
    cr_expect_eq(rows[1].state, INF_MODEL_READY);
    struct inf_served *same = find_model(store, "same"), *newer = find_model(store, "newer");

    make_version("newer", "3", KNOWN);
    make_model("bad", KNOWN);
    char from[1024];
    snprintf(from, sizeof from, "%s", path_of("gone"));
    cr_assert_eq(rename(from, path_of(".gone")), 0);
    cr_assert_eq(inf_model_store_load_all(store, &err), INF_OK, "%s", err.text);
    wait_until_settled(store);
    struct inf_served *same_now = find_model(store, "same"),
                      *newer_now = find_model(store, "newer");
    cr_expect_eq(same_now, same, "a file that did not change was loaded again");
    cr_expect_neq(newer_now, newer);
    cr_expect_str_eq(newer_now->version, "3");
    cr_expect_eq(row_of(store, "bad").state, INF_MODEL_READY);
    cr_expect_eq(row_of(store, "gone").state, INF_MODEL_READY);
    inf_served_unref(&same);
    inf_served_unref(&same_now);
    inf_served_unref(&newer);
    inf_served_unref(&newer_now);
    inf_model_store_destroy(&store);
}

Test(model_store_files, models_are_loaded_by_path_too)
{
    inf_role_enter_loop();
    make_version("here", "4", KNOWN);
    struct inf_model_store *store = make_store();
    char path[1100];
    snprintf(path, sizeof path, "%s", path_of("here/4/model.json"));
    const struct inf_load_request request = {
        .name = "alias", .path = path, .device = "ref", .token = 1};
    cr_assert_eq(inf_model_store_load(store, &request, NULL), INF_OK);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    cr_expect_str_eq(end.name, "alias");
    const struct inf_load_request relative = {.name = "alias", .path = "here"};
    cr_assert_eq(inf_model_store_load(store, &relative, NULL), INF_OK);
    cr_expect_eq(next_end(store).err.code, INF_INVALID);
    inf_model_store_destroy(&store);
}

Test(model_store_files, a_deletion_leaves_a_model_that_was_loaded_from_a_path_meanwhile)
{
    inf_role_enter_loop();
    char repository[1100], path[1100];
    snprintf(repository, sizeof repository, "%s", path_of("repository"));
    cr_assert_eq(mkdir(repository, 0755), 0);
    make_model("outside", KNOWN);
    snprintf(path, sizeof path, "%s", path_of("outside"));
    struct inf_model_store *store = NULL;
    struct inf_error err = {0};
    const struct inf_model_store_options options = {.repository = repository, .devices = &devices};
    cr_assert_eq(inf_model_store_create(&store, &options, &err), INF_OK, "%s", err.text);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct inf_load_request save = {
        .name = "m", .directory_fd = &fd, .saves = true, .token = 1};
    cr_assert_eq(inf_model_store_load(store, &save, &err), INF_OK, "%s", err.text);
    cr_assert_eq(next_end(store).err.code, INF_OK);
    const struct inf_load_request load = {.name = "m", .path = path, .token = 2};
    cr_assert_eq(inf_model_store_load(store, &load, &err), INF_OK, "%s", err.text);
    cr_assert_eq(inf_model_store_delete(store, "m", "1", 3, &err), INF_OK, "%s", err.text);
    for (int i = 0; i < 2; i++) {
        struct inf_load_event end = next_end(store);
        cr_expect_eq(end.err.code, INF_OK, "%s", end.err.text);
    }
    cr_expect_neq(access(path_of("repository/m"), F_OK), 0, "the files are deleted");
    struct inf_served *served = find_model(store, "m");
    inf_served_unref(&served);
    close(fd);
    inf_model_store_destroy(&store);
}

Test(model_store_files, a_load_by_path_that_fails_leaves_no_row)
{
    inf_role_enter_loop();
    struct inf_model_store *store = make_store();
    char path[1100];
    snprintf(path, sizeof path, "%s", path_of("nowhere.onnx"));
    const struct inf_load_request request = {.name = "alias", .path = path};
    cr_assert_eq(inf_model_store_load(store, &request, NULL), INF_OK);
    cr_expect_eq(next_end(store).err.code, INF_NOT_FOUND);
    cr_expect_eq(inf_model_store_list(store, NULL, NULL, 0), 0u);
    // So does a load of a model that the repository does not have.
    load_model(store, "absent", 1);
    cr_expect_eq(next_end(store).err.code, INF_NOT_FOUND);
    cr_expect_eq(inf_model_store_list(store, NULL, NULL, 0), 0u);
    // A model of the repository that failed to load stays in the list with the reason, whatever is
    // loaded by path under its name.
    make_model("alias", KNOWN);
    make_file("alias/model.json", "{", 1);
    load_model(store, "alias", 2);
    cr_expect_neq(next_end(store).err.code, INF_OK);
    cr_assert_eq(inf_model_store_load(store, &request, NULL), INF_OK);
    cr_expect_eq(next_end(store).err.code, INF_NOT_FOUND);
    cr_expect_eq(row_of(store, "alias").state, INF_MODEL_FAILED);
    inf_model_store_destroy(&store);
}

Test(model_store_files, the_end_of_a_scan_is_an_event_because_less_is_pending)
{
    inf_role_enter_loop();
    struct inf_model_store *store = make_store();
    cr_assert_eq(inf_model_store_load_all(store, NULL), INF_OK);
    cr_expect(inf_model_store_reads_repository(store));
    cr_expect_eq(inf_model_store_pending(store), 1u);
    (void)next_end(store);
    cr_expect(!inf_model_store_reads_repository(store));
    // No load is pending, because the repository is empty.
    cr_expect_eq(inf_model_store_pending(store), 0u);
    inf_model_store_destroy(&store);
}

static void expect_row(const struct inf_scan_report *report, uint32_t index, const char *name,
                       enum inf_scan_outcome outcome)
{
    cr_assert_lt(index, report->count);
    cr_expect_str_eq(report->rows[index].name, name);
    cr_expect_eq(report->rows[index].outcome, outcome, "%s: %s", name,
                 inf_scan_outcome_name(report->rows[index].outcome));
}

Test(model_store_files, a_reload_says_what_becomes_of_each_model)
{
    inf_role_enter_loop();
    static const char wrong[] = "no_such_setting = 1\n", older[] = "versions = 1\n";
    make_version("changed", "1", KNOWN);
    make_version("gone", "1", KNOWN);
    make_version("older", "1", KNOWN);
    make_file("older/model.conf", older, sizeof older - 1);
    make_version("older", "2", KNOWN);
    make_version("same", "1", KNOWN);
    make_version("spoilt", "1", KNOWN);
    struct inf_model_store *store = make_store();
    struct inf_error err = {0};
    cr_assert_eq(inf_model_store_load_all(store, &err), INF_OK, "%s", err.text);
    cr_expect_null(next_end(store).report, "the first scan has nothing to compare with");
    wait_until_settled(store);
    char path[1100], from[1100];
    snprintf(path, sizeof path, "%s", path_of("same/1/model.json"));
    const struct inf_load_request outside = {.name = "outside", .path = path, .token = 1};
    cr_assert_eq(inf_model_store_load(store, &outside, &err), INF_OK, "%s", err.text);
    wait_until_settled(store);

    make_version("changed", "1", OPEN);
    make_version("new", "1", KNOWN);
    make_file("spoilt/model.conf", wrong, sizeof wrong - 1);
    snprintf(from, sizeof from, "%s", path_of("gone"));
    cr_assert_eq(rename(from, path_of(".gone")), 0);
    cr_assert_eq(inf_model_store_reload(store, 7, &err), INF_OK, "%s", err.text);
    struct inf_load_event end = next_end(store);
    cr_expect_eq(end.token, 7u);
    cr_assert_not_null(end.report);
    cr_assert_eq(end.report->count, 6u, "the model that was loaded by path is not listed");
    expect_row(end.report, 0, "spoilt", INF_SCAN_REFUSED);
    cr_expect_not_null(strstr(end.report->rows[0].reason, "no_such_setting"), "%s",
                       end.report->rows[0].reason);
    expect_row(end.report, 1, "changed", INF_SCAN_LOADING);
    expect_row(end.report, 2, "new", INF_SCAN_LOADING);
    expect_row(end.report, 3, "gone", INF_SCAN_REMOVED);
    cr_expect_str_eq(end.report->rows[3].reason, "it is served until it is unloaded");
    expect_row(end.report, 4, "older", INF_SCAN_UNCHANGED);
    expect_row(end.report, 5, "same", INF_SCAN_UNCHANGED);
    free(end.report);
    wait_until_settled(store);
    cr_expect_eq(row_of(store, "new").state, INF_MODEL_READY);
    cr_expect_str_eq(row_of(store, "older").version, "1");
    inf_model_store_destroy(&store);
}

// Runs a shell command in the directory of the repository.
static void run_in_repository(const char *command)
{
    char line[256];
    snprintf(line, sizeof line, "cd '%s' && { %s; }", root, command);
    cr_assert_eq(system(line), 0, "%s", line);
}

// Runs `command` in the repository, has the store compare the files of "m", and returns true if the
// model was loaded again.
static bool loads_again(struct inf_model_store *store, const char *command) INF_ON_LOOP
{
    struct inf_served *before = find_model(store, "m");
    run_in_repository(command);
    inf_model_store_refresh(store, "m", true);
    wait_until_settled(store);
    struct inf_served *after = find_model(store, "m");
    bool reloaded = after != before;
    inf_served_unref(&before);
    inf_served_unref(&after);
    return reloaded;
}

Test(model_store_files, only_files_that_the_load_has_read_make_it_load_again)
{
    static const struct {
        const char *command;
        bool reloads;
    } changes[] = {
        {"echo line >> m/1/log", false},
        {"echo line >> m/1/log", false},
        {"rm m/1/log", false},
        {"mkdir m/1/old && cp m/1/w.bin m/1/old", false},
        {"echo x > m/1/model.plan", false},
        {"touch -d 2001-02-03 m/1/w.bin", true},
        {"echo line >> m/1/log", false},
        {"cp m/1/model.json m/1/.x && mv m/1/.x m/1/model.json", true},
        {"echo 'labels_file = names' > m/model.conf && printf 'k\\nl\\n' > m/1/names", true},
        {"echo more >> m/1/log", false},
        {"touch -d 2001-02-03 m/1/names", true},
        {"echo 'warmup = no' > m/model.conf", true},
        {"touch -d 2001-02-03 m/1/w.bin m/1/names", false},
        {"echo line >> m/1/log", false},
        {"touch m/1/w.bin", true},
        {"cp -r m/1 m/2", true},
        {"echo line >> m/2/log; touch m/1/w.bin", false},
        {"rm -r m/2", true},
        {"mkdir m/1/check", false}, // a broken check: the old state stays
    };
    inf_role_enter_loop();
    make_version("m", "1", KNOWN);
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(changes); i++)
        cr_expect_eq(loads_again(store, changes[i].command), changes[i].reloads, "%u: %s", i,
                     changes[i].command);
    cr_expect_neq(row_of(store, "m").reason[0], '\0', "the load with the check has failed");
    inf_model_store_destroy(&store);
}

Test(model_store_files, a_file_beside_other_models_is_loaded_again_if_its_weights_change)
{
    inf_role_enter_loop();
    make_model("m", KNOWN);
    run_in_repository("mv m/model.json m.json && mv m/w.bin w.bin && rmdir m");
    struct inf_model_store *store = make_store();
    load_model(store, "m", 0);
    wait_until_settled(store);
    cr_expect_not(loads_again(store, "echo line >> log"));
    cr_expect(loads_again(store, "touch -d 2001-02-03 w.bin"));
    cr_expect_not(loads_again(store, "echo line >> log"));
    // The same file in a directory of its own may have a check.
    cr_expect(loads_again(store, "mkdir m && mv m.json w.bin m"));
    cr_expect_not(loads_again(store, "echo line >> m/log"));
    inf_model_store_destroy(&store);
}

Test(model_store_files, an_idle_model_stays_idle_while_its_files_are_the_same)
{
    static const char *const changes[] = {"touch -d 2001-02-03 m/w.bin",
                                          "echo 'slow_ms = 7' > m/model.conf"};
    inf_role_enter_loop();
    make_model("m", KNOWN);
    make_file("m/model.conf", "idle_unload_ms = 1\n", 19);
    struct inf_model_store *store = make_store();
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(changes); i++) {
        load_model(store, "m", 0);
        wait_until_settled(store);
        cr_assert_eq(place_model(store, "", "memory", "", 0), INF_OK);
        wait_until_settled(store);
        (void)inf_model_store_unload_idle(store, UINT64_MAX / 2);
        cr_expect_eq(row_of(store, "m").state, INF_MODEL_IDLE);
        for (int round = 0; round < 2; round++) {
            run_in_repository("echo line >> m/log");
            inf_model_store_refresh(store, "m", true);
            wait_until_settled(store);
            cr_expect_eq(row_of(store, "m").state, INF_MODEL_IDLE);
        }
        run_in_repository(changes[i]);
        inf_model_store_refresh(store, "m", true);
        wait_until_settled(store);
        cr_expect_eq(row_of(store, "m").state, INF_MODEL_READY);
        struct inf_served *served = find_model(store, "m");
        cr_expect_str_eq(served->config.policy, "memory", "what an admin has set stays");
        inf_served_unref(&served);
    }
    inf_model_store_destroy(&store);
}
