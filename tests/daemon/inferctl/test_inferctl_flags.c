// SPDX-License-Identifier: Apache-2.0
// Tests of inferctl env and inferctl flags with a real daemon.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"

#define RUN(run, socket, ...)                                                                      \
    inf_inferctl_run(run, socket, (const char *const[]){__VA_ARGS__, NULL})

static json_t *run_json(const char *socket, const char *const *arguments)
{
    struct inf_inferctl run;
    inf_inferctl_run(&run, socket, arguments);
    cr_assert_eq(run.code, 0, "%s: %s", arguments[0], run.err);
    json_t *answer = inf_inferctl_json(&run);
    inf_inferctl_free(&run);
    return answer;
}

#define ASK(socket, ...) run_json(socket, (const char *const[]){__VA_ARGS__, "--json", NULL})

// Returns the text under `key` in the row whose `column` is `name`, or NULL if there is none.
static const char *find_value(const json_t *rows, const char *column, const char *name,
                              const char *key)
{
    size_t i;
    const json_t *row;
    json_array_foreach(rows, i,
                       row) if (strcmp(json_string_value(json_object_get(row, column)), name) ==
                                0) return json_string_value(json_object_get(row, key));
    return NULL;
}

static void expect_flag(const char *socket, const char *name, const char *value, const char *origin)
{
    json_t *flags = ASK(socket, "flags");
    cr_expect_str_eq(find_value(flags, "name", name, "value"), value, "%s", name);
    cr_expect_str_eq(find_value(flags, "name", name, "origin"), origin, "%s", name);
    json_decref(flags);
}

static void expect_refused(const char *socket, const char *name, const char *value,
                           const char *wanted)
{
    struct inf_inferctl run;
    RUN(&run, socket, "flags", "set", name, value);
    cr_expect_neq(run.code, 0, "%s = %s", name, value);
    cr_expect(strstr(run.err, wanted) != NULL, "no '%s' in: %s", wanted, run.err);
    inf_inferctl_free(&run);
}

Test(inferctl_flags, env_tells_what_the_machine_is)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    json_t *facts = ASK(fixture.socket, "env");
    char cores[16];
    snprintf(cores, sizeof cores, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    cr_expect_str_eq(find_value(facts, "fact", "cpu.cores_online", "value"), cores);
    cr_expect_geq(atoi(find_value(facts, "fact", "cpu.cores_usable", "value")), 1);
    cr_expect_gt(strtoull(find_value(facts, "fact", "memory.bytes", "value"), NULL, 10), 1u << 20);
    cr_expect_str_eq(find_value(facts, "fact", "device.ref.kind", "value"), "host");
    // The daemon has placed a model, so it has measured the speeds of the devices.
    cr_expect_gt(strtod(find_value(facts, "fact", "device.ref.gbytes_per_s", "value"), NULL), 0);
    json_decref(facts);
    inf_fixture_stop(&fixture);
}

Test(inferctl_flags, origins_are_told_and_later_ones_win)
{
    struct inf_fixture fixture;
    setenv("INFERD_FLAGS", "queue_requests_max=7,backends=cpu,ref,run_limit_ms=5000", 1);
    inf_fixture_start(&fixture, (const char *const[]){"--run-limit-ms=6000", NULL});
    unsetenv("INFERD_FLAGS");
    expect_flag(fixture.socket, "queue_requests_max", "7", "environment");
    expect_flag(fixture.socket, "backends", "cpu,ref", "environment");
    expect_flag(fixture.socket, "run_limit_ms", "6000", "argument");
    expect_flag(fixture.socket, "drift_factor", "1.25", "default");
    // The flag `socket` was not set; its value is derived from the fixture's runtime_dir.
    expect_flag(fixture.socket, "socket", fixture.socket, "derived");
    expect_flag(fixture.socket, "admin_socket", fixture.admin_socket, "derived");
    expect_flag(fixture.socket, "cache_dir", "", "derived");
    expect_flag(fixture.socket, "repository", fixture.repository, "argument");
    struct inf_inferctl run;
    RUN(&run, fixture.admin_socket, "flags", "set", "run-limit-ms", "7000");
    cr_expect_eq(run.code, 0, "%s", run.err);
    inf_inferctl_free(&run);
    expect_flag(fixture.socket, "run_limit_ms", "7000", "admin");
    inf_fixture_stop(&fixture);
}

Test(inferctl_flags, a_models_settings_are_told_too)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    json_decref(ASK(fixture.admin_socket, "place", "add", "--policy=memory"));
    json_t *rows = ASK(fixture.socket, "flags", "--model", "add");
    size_t i, found = 0;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), "policy") != 0)
            continue;
        found++;
        cr_expect_str_eq(json_string_value(json_object_get(row, "value")), "memory");
        cr_expect_str_eq(json_string_value(json_object_get(row, "default")), "latency");
        cr_expect_str_eq(json_string_value(json_object_get(row, "origin")), "admin");
        cr_expect_str_eq(json_string_value(json_object_get(row, "wanted")),
                         "latency, throughput, stability or memory");
    }
    cr_expect_eq(found, 1u);
    json_decref(rows);
    inf_fixture_stop(&fixture);
}

Test(inferctl_flags, what_is_unknown_or_wrong_is_refused)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    const char *admin = fixture.admin_socket;
    expect_refused(fixture.socket, "race", "never", "FlagSet is for admins");
    expect_refused(admin, "rase", "never", "did you mean 'race'?");
    expect_refused(admin, "help", "yes", "there is none");
    expect_refused(admin, "race", "sometimes", "wanted auto, always or never");
    expect_refused(admin, "race_tolerance", "x", "wanted a number from 0 to 1");
    expect_refused(admin, "race_tolerance", "1.5", "wanted a number from 0 to 1");
    expect_refused(admin, "drain_timeout_ms", "3600001", "wanted a number from 0 to 3600000");
    expect_refused(admin, "cpu_slots", "2", "is read at start");
    expect_refused(admin, "vulkan_loader", "/usr/lib/libvulkan.so.1", "is read at start");
    expect_refused(admin, "device", "moon", "wanted one of:");
    expect_flag(fixture.socket, "race", "never", "argument");
    expect_flag(fixture.socket, "device", "auto", "default");
    struct inf_inferctl run;
    RUN(&run, fixture.socket, "flags", "get", "race");
    cr_expect_eq(run.code, 2);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "flags", "set", "race");
    cr_expect_eq(run.code, 2);
    inf_inferctl_free(&run);
    inf_fixture_stop(&fixture);
}

static const char *source_of(const json_t *placement)
{
    return json_string_value(json_object_get(placement, "source"));
}

// Given a changed flag, expect that models loaded later use the new value.
Test(inferctl_flags, a_live_flag_changes_what_loads_do)
{
    struct inf_fixture fixture;
    inf_fixture_start(&fixture, NULL);
    const char *admin = fixture.admin_socket;
    static const char *const settings[][3] = {
        {"device", "ref", "pinned"}, {"device", "auto", "rule"}, {"race", "always", "race"}};
    for (int i = 0; i < 3; i++) {
        json_decref(ASK(admin, "flags", "set", settings[i][0], settings[i][1]));
        json_decref(ASK(admin, "load", "add"));
        json_t *placement = ASK(fixture.socket, "explain", "add");
        // Wait, because the daemon starts the timing comparison of candidate devices only while it
        // is idle.
        for (int tries = 0; tries < 2000 && strcmp(source_of(placement), settings[i][2]) != 0 &&
                            json_array_size(json_object_get(placement, "candidates")) > 1;
             tries++) {
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            json_decref(placement);
            placement = ASK(fixture.socket, "explain", "add");
        }
        const char *source = source_of(placement);
        // With only one candidate device, the daemon does not compare run times.
        size_t rivals = json_array_size(json_object_get(placement, "candidates"));
        if (i < 2 || rivals > 1)
            cr_expect_str_eq(source, settings[i][2], "%s = %s", settings[i][0], settings[i][1]);
        json_decref(placement);
    }
    inf_fixture_stop(&fixture);
}
