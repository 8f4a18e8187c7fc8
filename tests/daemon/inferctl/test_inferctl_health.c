// SPDX-License-Identifier: Apache-2.0
// Tests `inferctl health` with two real daemons: a healthy one, and one whose repository holds a
// broken model.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"

#define RUN(run, socket, ...)                                                                      \
    inf_inferctl_run(run, socket, (const char *const[]){__VA_ARGS__, NULL})

static void write_broken_model(const struct inf_fixture *fixture)
{
    char path[160];
    snprintf(path, sizeof path, "%s/broken.json", fixture->repository);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("{}", file);
    cr_assert_eq(fclose(file), 0);
}

Test(inferctl_health, reports_a_model_that_failed_and_nothing_else)
{
    struct inf_fixture fixture;
    struct inf_inferctl run;
    inf_fixture_start(&fixture, NULL);
    RUN(&run, fixture.socket, "health");
    cr_expect_eq(run.code, 0, "%s", run.err);
    cr_expect_eq(strncmp(run.out, "healthy: version ", 17), 0, "%s", run.out);
    cr_expect_neq(strstr(run.out, ", 4 of 4 models ready\n"), NULL, "%s", run.out);
    inf_inferctl_free(&run);

    write_broken_model(&fixture);
    RUN(&run, fixture.admin_socket, "load", "broken");
    cr_expect_neq(run.code, 0);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "health");
    cr_expect_eq(run.code, 1, "%s", run.err);
    cr_expect_eq(strncmp(run.out, "not healthy: model broken: ", 27), 0, "%s", run.out);
    cr_expect_eq(strchr(run.out, '\n'), run.out + strlen(run.out) - 1, "more than one line");
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "health", "--json");
    cr_expect_eq(run.code, 1);
    json_t *answer = inf_inferctl_json(&run);
    cr_expect(json_is_false(json_object_get(answer, "healthy")));
    cr_expect_eq(json_array_size(json_object_get(answer, "problems")), 1);
    json_decref(answer);
    inf_inferctl_free(&run);
    char socket[128];
    snprintf(socket, sizeof socket, "%s", fixture.socket);
    inf_fixture_stop(&fixture);
    RUN(&run, socket, "health");
    cr_expect_eq(run.code, 3, "no daemon");
    inf_inferctl_free(&run);
}
