// SPDX-License-Identifier: Apache-2.0
// The texts of metrics: literal texts of small examples, and the rules of the formats for the whole
// table of metrics.
#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/observe/exposition.h"

static char text[1 << 20];

static struct inf_exposition begin_text(enum inf_exposition_format format)
{
    struct inf_exposition out;
    inf_exposition_begin(&out, format, text, sizeof text - 1);
    return out;
}

static const char *end_text(struct inf_exposition *out)
{
    struct inf_error err = {0};
    cr_assert_eq(inf_exposition_end(out, &err), INF_OK, "%s", err.text);
    text[out->size] = '\0';
    return text;
}

static void print_example(struct inf_exposition *out)
{
    inf_exposition_metric(out, INF_METRIC_BUILD);
    inf_exposition_sample(out, (const char *const[]){"0.1 \"a\\b\"\n"}, 1);
    inf_exposition_metric(out, INF_METRIC_DEVICE_BUSY);
    inf_exposition_sample(out, (const char *const[]){"cpu0"}, 1500000000);
    inf_exposition_sample(out, (const char *const[]){"ref"}, 7);
}

Test(exposition, writes_the_prometheus_text_format)
{
    struct inf_exposition out = begin_text(INF_EXPOSITION_PROMETHEUS);
    print_example(&out);
    cr_expect_str_eq(end_text(&out),
                     "# HELP inferd_build_info The version of the daemon.\n"
                     "# TYPE inferd_build_info gauge\n"
                     "inferd_build_info{version=\"0.1 \\\"a\\\\b\\\"\\n\"} 1\n"
                     "# HELP inferd_device_busy_seconds_total Device time of all inferences that "
                     "ran on the device.\n"
                     "# TYPE inferd_device_busy_seconds_total counter\n"
                     "inferd_device_busy_seconds_total{device=\"cpu0\"} 1.5\n"
                     "inferd_device_busy_seconds_total{device=\"ref\"} 0.000000007\n");
}

Test(exposition, writes_openmetrics)
{
    struct inf_exposition out = begin_text(INF_EXPOSITION_OPENMETRICS);
    print_example(&out);
    cr_expect_str_eq(end_text(&out),
                     "# HELP inferd_build The version of the daemon.\n"
                     "# TYPE inferd_build info\n"
                     "inferd_build_info{version=\"0.1 \\\"a\\\\b\\\"\\n\"} 1\n"
                     "# HELP inferd_device_busy_seconds Device time of all inferences that ran on "
                     "the device.\n"
                     "# TYPE inferd_device_busy_seconds counter\n"
                     "# UNIT inferd_device_busy_seconds seconds\n"
                     "inferd_device_busy_seconds_total{device=\"cpu0\"} 1.5\n"
                     "inferd_device_busy_seconds_total{device=\"ref\"} 0.000000007\n"
                     "# EOF\n");
}

Test(exposition, writes_json)
{
    struct inf_exposition out = begin_text(INF_EXPOSITION_JSON);
    struct inf_histogram histogram = {.counts = {[0] = 2, [88] = 1}, .sum = 1000000200};
    inf_exposition_metric(&out, INF_METRIC_READY);
    inf_exposition_sample(&out, NULL, 1);
    inf_exposition_metric(&out, INF_METRIC_DURATION);
    inf_exposition_histogram(&out, (const char *const[]){"m", "1", "cpu0"}, &histogram);
    cr_expect_str_eq(
        end_text(&out),
        "[\n{\"name\":\"inferd_ready\",\"type\":\"gauge\",\"unit\":\"\",\"help\":\"1 if the daemon "
        "accepts requests, 0 if it drains.\",\"samples\":[\n {\"labels\":{},\"value\":1}]},\n"
        "{\"name\":\"inferd_inference_duration_seconds\",\"type\":\"histogram\","
        "\"unit\":\"seconds\",\"help\":\"Time of a successful inference, from its arrival until "
        "its outputs were written.\",\"samples\":[\n {\"labels\":{\"model\":\"m\","
        "\"version\":\"1\",\"device\":\"cpu0\"},\"schema\":2,\"buckets\":[[-88,2],[0,1]],"
        "\"sum\":1.0000002,\"count\":3}]}\n]\n");
}

// Checks that the text contains `lines` in one piece.
static void expect_lines(const char *lines)
{
    cr_expect_neq(strstr(text, lines), NULL, "%s is not in:\n%s", lines, text);
}

Test(exposition, makes_buckets_cumulative)
{
    struct inf_exposition out = begin_text(INF_EXPOSITION_PROMETHEUS);
    struct inf_histogram histogram = {0};
    inf_histogram_record(&histogram, 1);             // below all bounds
    inf_histogram_record(&histogram, 1000000000);    // 1 s, exactly a bound
    inf_histogram_record(&histogram, 1000000001);    // 1 ns above a bound
    inf_histogram_record(&histogram, 3000000000000); // 50 minutes, beyond all bounds
    inf_exposition_metric(&out, INF_METRIC_DURATION);
    inf_exposition_histogram(&out, (const char *const[]){"m", "1", "cpu0"}, &histogram);
    end_text(&out);
#define BUCKET "inferd_inference_duration_seconds_bucket{model=\"m\",version=\"1\",device=\"cpu0\","
    expect_lines(BUCKET "le=\"7.62939453125e-06\"} 1\n" BUCKET "le=\"1.52587890625e-05\"} 1\n");
    expect_lines(BUCKET "le=\"0.5\"} 1\n" BUCKET "le=\"1.0\"} 2\n" BUCKET "le=\"2.0\"} 3\n");
    expect_lines(BUCKET "le=\"128.0\"} 3\n" BUCKET "le=\"+Inf\"} 4\n");
    expect_lines("_sum{model=\"m\",version=\"1\",device=\"cpu0\"} 3002.000000002\n");
    expect_lines("_count{model=\"m\",version=\"1\",device=\"cpu0\"} 4\n");
}

Test(exposition, reports_a_text_that_is_too_long)
{
    struct inf_exposition out;
    struct inf_error err = {0};
    inf_exposition_begin(&out, INF_EXPOSITION_PROMETHEUS, text, 100);
    print_example(&out);
    cr_expect_eq(inf_exposition_end(&out, &err), INF_EXHAUSTED);
    cr_expect_leq(out.size, 100);
}

Test(exposition, refuses_unknown_formats)
{
    enum inf_exposition_format format;
    struct inf_error err = {0};
    cr_expect_eq(inf_exposition_parse_format("", &format, &err), INF_OK);
    cr_expect_eq(format, INF_EXPOSITION_PROMETHEUS);
    cr_expect_eq(inf_exposition_parse_format("xml", &format, &err), INF_INVALID);
    cr_expect_str_eq(err.text, "format 'xml', wanted prometheus, openmetrics or json");
}

// --- the rules of the formats, for every metric of the table ---

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name);
    return length > strlen(ending) && strcmp(name + length - strlen(ending), ending) == 0;
}

// Returns whether `name` is [a-z_][a-z0-9_]* up to `length`.
static bool is_name(const char *name, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!islower((unsigned char)name[i]) && name[i] != '_' &&
            !(i > 0 && isdigit((unsigned char)name[i])))
            return false;
    return length > 0;
}

Test(exposition, has_a_table_that_keeps_the_rules_of_prometheus)
{
    for (int i = 0; i < INF_METRIC_COUNT; i++) {
        const struct inf_metric *metric = &inf_metric_table[i];
        char base[128];
        cr_expect(is_name(metric->name, strlen(metric->name)), "%s", metric->name);
        cr_expect_eq(strncmp(metric->name, "inferd_", 7), 0, "%s", metric->name);
        cr_expect_eq(ends_with(metric->name, "_total"), metric->type == INF_METRIC_COUNTER, "%s",
                     metric->name);
        cr_expect_eq(ends_with(metric->name, "_info"), metric->type == INF_METRIC_INFO, "%s",
                     metric->name);
        snprintf(base, sizeof base, "%s", metric->name);
        if (metric->type == INF_METRIC_COUNTER)
            base[strlen(base) - strlen("_total")] = '\0';
        cr_expect(metric->unit[0] == '\0' || ends_with(base, metric->unit),
                  "%s does not end with its unit, %s", base, metric->unit);
        cr_expect_eq(strpbrk(metric->help, "\"\\\n"), NULL, "%s", metric->help);
        cr_expect(ends_with(metric->help, "."), "%s", metric->help);
        uint32_t labels = 0;
        for (const char *label = metric->labels; *label != '\0'; labels++) {
            size_t length = strcspn(label, ",");
            cr_expect(is_name(label, length), "%s: %s", metric->name, metric->labels);
            cr_expect_neq(strncmp(label, "le", length), 0, "%s", metric->name);
            label += length;
            label += *label == ',';
        }
        cr_expect_leq(labels, INF_METRIC_LABELS_MAX);
        for (int other = 0; other < i; other++)
            cr_expect_str_neq(inf_metric_table[other].name, metric->name);
    }
}
