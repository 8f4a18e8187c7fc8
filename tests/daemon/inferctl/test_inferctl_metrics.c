// SPDX-License-Identifier: Apache-2.0
// Tests of inferctl metrics with a real daemon: its formats, the file for node_exporter, and what
// Debian's promtool says about the text, if it is installed.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/daemon/inferctl.h"

static struct inf_fixture fixture;

static void start_fixture(void)
{
    inf_fixture_start(&fixture, NULL);
}

static void stop_fixture(void)
{
    inf_fixture_stop(&fixture);
}

TestSuite(inferctl_metrics, .init = start_fixture, .fini = stop_fixture, .timeout = 120);

#define RUN(run, socket, ...)                                                                      \
    inf_inferctl_run(run, socket, (const char *const[]){__VA_ARGS__, NULL})

// Sends requests for the model add, so that there are histograms.
static void add_some(int count)
{
    static const float zeros[24];
    union inf_message message;
    struct inf_raw raw;
    inf_raw_open(&raw, fixture.socket);
    for (int i = 0; i < count; i++) {
        inf_add_request(&message, 2);
        inf_raw_call(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                     (struct inf_span){(const uint8_t *)zeros, 96});
    }
    inf_raw_close(&raw);
}

Test(inferctl_metrics, prints_the_formats)
{
    struct inf_inferctl run;
    add_some(3);
    RUN(&run, fixture.socket, "metrics");
    cr_expect_eq(run.code, 0, "%s", run.err);
    cr_expect_neq(strstr(run.out, "\n# TYPE inferd_inference_duration_seconds histogram\n"), NULL);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "metrics", "--format", "openmetrics");
    cr_expect_neq(strstr(run.out, "\n# EOF\n"), NULL);
    inf_inferctl_free(&run);
    RUN(&run, fixture.socket, "metrics", "-f", "xml");
    cr_expect_eq(run.code, 1);
    cr_expect_neq(strstr(run.err, "wanted prometheus, openmetrics or json"), NULL, "%s", run.err);
    inf_inferctl_free(&run);
}

Test(inferctl_metrics, prints_json_with_all_buckets)
{
    struct inf_inferctl run;
    add_some(5);
    RUN(&run, fixture.admin_socket, "metrics", "--all", "-o", "json");
    cr_expect_eq(run.code, 0, "%s", run.err);
    json_t *metrics = inf_inferctl_json(&run);
    size_t i, k;
    json_t *metric, *bucket;
    json_int_t count = 0;
    json_array_foreach(metrics, i, metric)
    {
        const char *name = json_string_value(json_object_get(metric, "name"));
        if (strcmp(name, "inferd_inference_duration_seconds") != 0)
            continue;
        json_t *samples = json_object_get(metric, "samples");
        cr_assert_eq(json_array_size(samples), 1);
        json_array_foreach(json_object_get(json_array_get(samples, 0), "buckets"), k, bucket)
            count += json_integer_value(json_array_get(bucket, 1));
    }
    cr_expect_eq(count, 5);
    json_decref(metrics);
    inf_inferctl_free(&run);
}

static int count_files(const char *directory)
{
    int count = 0;
    DIR *open = opendir(directory);
    cr_assert_not_null(open);
    for (const struct dirent *entry; (entry = readdir(open)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(open);
    return count;
}

Test(inferctl_metrics, replaces_the_file_for_node_exporter)
{
    char directory[] = "/tmp/inferctl-metrics-XXXXXX";
    char path[64], command[256];
    struct inf_inferctl run;
    struct stat info;
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/inferd.prom", directory);
    add_some(2);
    for (int i = 0; i < 2; i++) {
        RUN(&run, fixture.admin_socket, "metrics", "--textfile", path);
        cr_expect_eq(run.code, 0, "%s", run.err);
        cr_expect_str_eq(run.out, "");
        inf_inferctl_free(&run);
    }
    cr_assert_eq(stat(path, &info), 0);
    cr_expect_eq(info.st_mode & 0777, 0644u);
    cr_expect_gt(info.st_size, 1000);
    cr_expect_eq(count_files(directory), 1, "a temporary file is left");
    snprintf(command, sizeof command,
             "! command -v promtool >/dev/null || promtool check metrics <%s", path);
    cr_expect_eq(system(command), 0, "promtool refuses the metrics"); // NOLINT(cert-env33-c)
    unlink(path);
    rmdir(directory);
    RUN(&run, fixture.admin_socket, "metrics", "--textfile", path);
    cr_expect_eq(run.code, 7, "%s", run.err);
    cr_expect_neq(strstr(run.err, "No such file or directory"), NULL, "%s", run.err);
    inf_inferctl_free(&run);
}
