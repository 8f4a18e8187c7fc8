// SPDX-License-Identifier: Apache-2.0
// Histograms, the table of keys, and the bounds of the metrics of models and users.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/base/clock.h"
#include "daemon/observe/key_table.h"
#include "daemon/observe/metrics.h"
#include "tests/support/daemon/metrics_text.h"

// --- histograms ---

// Bounds in nanoseconds: 10^9 * 2^(i/4 - 22), rounded down, computed by Python's decimal module
// with 60 digits.
Test(histogram, has_the_bounds_of_schema_2)
{
    static const struct {
        uint32_t index;
        uint64_t bound;
    } rows[] = {{0, 238},         {1, 283},
                {2, 337},         {3, 400},
                {4, 476},         {88, 1000000000},
                {89, 1189207115}, {90, 1414213562},
                {91, 1681792830}, {92, 2000000000},
                {48, 976562},     {127, 861077929219},
                {87, 840896415},  {128, 1024000000000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        cr_expect_eq(inf_histogram_bound(rows[i].index), rows[i].bound, "bound %u: %llu",
                     rows[i].index, (unsigned long long)inf_histogram_bound(rows[i].index));
    cr_expect_leq(INF_HISTOGRAM_BUCKETS, 160);
}

Test(histogram, puts_a_bound_into_its_bucket_and_the_next_value_into_the_next_one)
{
    for (uint32_t i = 0; i < INF_HISTOGRAM_BOUNDS; i++) {
        cr_assert_eq(inf_histogram_bucket(inf_histogram_bound(i)), i, "bound %u", i);
        cr_assert_eq(inf_histogram_bucket(inf_histogram_bound(i) + 1), i + 1, "behind bound %u", i);
    }
    cr_expect_eq(inf_histogram_bucket(0), 0);
    cr_expect_eq(inf_histogram_bucket(1), 0);
    cr_expect_eq(inf_histogram_bucket(UINT64_MAX), INF_HISTOGRAM_BOUNDS);
}

// --- the table of keys ---

Test(key_table, gives_each_key_its_number_until_it_is_full)
{
    struct inf_key_table *table = NULL;
    bool replaced;
    cr_assert_eq(inf_key_table_create(&table, 2, NULL), INF_OK);
    uint32_t a = inf_key_table_obtain(table, "a", 1, 1, &replaced);
    uint32_t b = inf_key_table_obtain(table, "b", 1, 2, &replaced);
    cr_expect_neq(a, b);
    cr_expect_eq(inf_key_table_obtain(table, "a", 1, 3, &replaced), a);
    cr_expect_eq(inf_key_table_obtain(table, "c", 1, 4, &replaced), 2, "no room");
    cr_expect_not(replaced);
    size_t size;
    cr_expect_eq(memcmp(inf_key_table_key(table, b, &size), "b", 1), 0);
    inf_key_table_destroy(&table);
}

Test(key_table, replaces_the_key_that_was_unused_for_longest)
{
    struct inf_key_table *table = NULL;
    bool replaced;
    const uint64_t minute = 60 * (uint64_t)1000000000;
    cr_assert_eq(inf_key_table_create(&table, 2, NULL), INF_OK);
    uint32_t a = inf_key_table_obtain(table, "a", 1, 0, &replaced);
    inf_key_table_obtain(table, "b", 1, minute, &replaced);
    cr_expect_eq(inf_key_table_obtain(table, "c", 1, 9 * minute, &replaced), 2, "too early");
    cr_expect_eq(inf_key_table_obtain(table, "c", 1, 10 * minute, &replaced), a);
    cr_expect(replaced);
    cr_expect_eq(inf_key_table_obtain(table, "a", 1, 10 * minute, &replaced), 2, "a is gone");
    inf_key_table_destroy(&table);
}

// --- metrics of models and users ---

static char text[4 << 20];

// Prints the metrics for a reader into `text`, and returns it.
static const char *print_for(const struct inf_metrics *metrics, bool admin,
                             uint32_t uid) INF_ON_LOOP
{
    struct inf_exposition out;
    const struct inf_metrics_reader reader = {.admin = admin, .uid = uid};
    inf_exposition_begin(&out, INF_EXPOSITION_PROMETHEUS, text, sizeof text - 1);
    inf_metrics_print(metrics, &reader, &out);
    cr_assert_eq(inf_exposition_end(&out, NULL), INF_OK);
    text[out.size] = '\0';
    return text;
}

static uint32_t find_series(struct inf_metrics *metrics, const char *model,
                            uint64_t now_ns) INF_ON_LOOP
{
    const struct inf_metrics_labels labels = {model, "1", "cpu0"};
    return inf_metrics_series(metrics, &labels, NULL, now_ns);
}

static uint32_t count_lines(const char *lines, const char *start)
{
    uint32_t count = 0;
    for (; *lines != '\0'; lines = inf_metrics_text_next(lines))
        count += inf_metrics_text_begins(lines, start);
    return count;
}

// Returns the sum of all samples whose lines begin with `start`.
static double sum_lines(const char *lines, const char *start)
{
    double sum = 0;
    for (const char *next; *lines != '\0'; lines = next) {
        next = inf_metrics_text_next(lines);
        if (inf_metrics_text_begins(lines, start))
            sum += inf_metrics_text_value(next);
    }
    return sum;
}

Test(metrics, of_10000_models_are_bounded_and_none_is_lost)
{
    inf_role_enter_loop();
    struct inf_metrics *metrics = NULL;
    cr_assert_eq(inf_metrics_create(&metrics, NULL), INF_OK);
    for (uint32_t i = 0; i < 10000; i++) {
        char name[32];
        const uint64_t now_ns = (uint64_t)i * INF_NS_PER_S;
        snprintf(name, sizeof name, "model%u", i);
        const struct inf_metrics_answer answer = {.series = find_series(metrics, name, now_ns),
                                                  .uid = i,
                                                  .rows = 3,
                                                  .batch_rows = 4,
                                                  .recomputed = i % 10 == 0,
                                                  .duration_ns = 1000000,
                                                  .input_ns = 2000000,
                                                  .output_ns = 3000000,
                                                  .device_ns = 500000000};
        inf_metrics_count_answer(metrics, &answer, now_ns);
    }
    const char *lines = print_for(metrics, true, 0);
    uint32_t series = count_lines(lines, "inferd_inferences_total{");
    cr_expect_eq(series, INF_METRICS_SERIES_MAX + 1, "%u series", series);
    cr_expect_eq(count_lines(lines, "inferd_user_device_seconds_total{"),
                 INF_METRICS_USERS_MAX + 1);
    cr_expect_eq(sum_lines(lines, "inferd_inferences_total{"), 10000);
    cr_expect_eq(sum_lines(lines, "inferd_inference_rows_total{"), 30000);
    cr_expect_eq(sum_lines(lines, "inferd_inference_recomputed_total{"), 1000);
    cr_expect_eq(sum_lines(lines, "inferd_inference_duration_seconds_count{"), 10000);
    cr_expect_float_eq(sum_lines(lines, "inferd_inference_input_seconds_sum{"), 20, 1e-6);
    cr_expect_float_eq(sum_lines(lines, "inferd_inference_output_seconds_sum{"), 30, 1e-6);
    cr_expect_eq(sum_lines(lines, "inferd_user_inferences_total{"), 10000);
    cr_expect_eq(sum_lines(lines, "inferd_user_device_seconds_total{"), 5000);
    cr_expect_neq(strstr(lines,
                         "inferd_inferences_total{model=\"other\",version=\"other\","
                         "device=\"other\",outcome=\"ok\",reason=\"\"} "),
                  NULL);
    cr_expect_neq(strstr(lines, "{model=\"model9600\",version=\"1\",device=\"cpu0\""), NULL,
                  "a new model takes the place of one that was unused for 10 minutes");
    inf_metrics_destroy(&metrics);
}

Test(metrics, of_a_model_that_lost_its_series_are_not_found_by_an_old_handle)
{
    inf_role_enter_loop();
    struct inf_metrics *metrics = NULL;
    const struct inf_metrics_labels old = {"old", "1", "cpu0"};
    uint64_t handle = 0;
    const uint64_t later_ns = 700 * INF_NS_PER_S;
    cr_assert_eq(inf_metrics_create(&metrics, NULL), INF_OK);
    uint32_t series = inf_metrics_series(metrics, &old, &handle, 0);
    cr_expect_neq(handle, 0);
    cr_expect_eq(inf_metrics_series(metrics, &old, &handle, 1), series);
    for (int i = 0; i < INF_METRICS_SERIES_MAX - 1; i++) {
        char name[32];
        snprintf(name, sizeof name, "model%d", i);
        cr_expect_lt(find_series(metrics, name, later_ns), INF_METRICS_SERIES_MAX);
    }
    cr_expect_eq(find_series(metrics, "new", later_ns), series);
    cr_expect_eq(inf_metrics_series(metrics, &old, &handle, later_ns), INF_METRICS_OTHER);
    cr_expect_eq(handle, 0);
    inf_metrics_destroy(&metrics);
}

// User 0 counts an answer, loses its number to user 1000 and counts another one.
Test(metrics, of_a_user_that_lost_its_number_are_not_those_of_the_next_one)
{
    inf_role_enter_loop();
    struct inf_metrics *metrics = NULL;
    cr_assert_eq(inf_metrics_create(&metrics, NULL), INF_OK);
    const uint64_t late_ns = (uint64_t)11 * 60 * INF_NS_PER_S;
    const uint32_t series = find_series(metrics, "m", 0);
    struct inf_metrics_answer answer = {.series = series};
    // The last user of the table is still in use later, and user 0 is the oldest one.
    for (answer.uid = 0; answer.uid < INF_METRICS_USERS_MAX; answer.uid++)
        inf_metrics_count_answer(metrics, &answer, answer.uid == 0 ? 1 : late_ns);
    answer.uid = 0;
    inf_metrics_count_answer(metrics, &answer, 2);
    inf_metrics_count_answer(metrics, &answer, 3);
    answer.uid = 1000;
    inf_metrics_count_answer(metrics, &answer, late_ns);
    answer.uid = 0; // there is no room for it
    inf_metrics_count_answer(metrics, &answer, late_ns);
    inf_metrics_count_answer(metrics, &answer, late_ns);
    answer.uid = 1000;
    inf_metrics_count_answer(metrics, &answer, late_ns);
    const char *lines = print_for(metrics, true, 0);
    cr_expect_eq(sum_lines(lines, "inferd_user_inferences_total{uid=\"0\""), 0);
    cr_expect_eq(sum_lines(lines, "inferd_user_inferences_total{uid=\"1000\""), 2);
    cr_expect_eq(sum_lines(lines, "inferd_user_inferences_total{uid=\"other\""), 3 + 2);
    cr_expect_eq(sum_lines(lines, "inferd_user_inferences_total{uid=\"1\""), 1);
    inf_metrics_destroy(&metrics);
}

// User 0 was counted before all others, but also a minute ago.
Test(metrics, of_a_user_that_is_used_again_and_again_are_kept)
{
    inf_role_enter_loop();
    struct inf_metrics *metrics = NULL;
    cr_assert_eq(inf_metrics_create(&metrics, NULL), INF_OK);
    const uint64_t minute_ns = (uint64_t)60 * INF_NS_PER_S;
    struct inf_metrics_answer answer = {.series = find_series(metrics, "m", 0)};
    for (answer.uid = 1; answer.uid < INF_METRICS_USERS_MAX; answer.uid++)
        inf_metrics_count_answer(metrics, &answer, minute_ns);
    answer.uid = 0;
    for (uint64_t minute = 0; minute <= 15; minute++)
        inf_metrics_count_answer(metrics, &answer, minute * minute_ns);
    answer.uid = 1000;
    inf_metrics_count_answer(metrics, &answer, 16 * minute_ns);
    const char *lines = print_for(metrics, true, 0);
    cr_expect_eq(sum_lines(lines, "inferd_user_inferences_total{uid=\"0\""), 16);
    cr_expect_eq(sum_lines(lines, "inferd_user_inferences_total{uid=\"1000\""), 1);
    inf_metrics_destroy(&metrics);
}

Test(metrics, of_others_are_hidden_from_clients_that_are_no_admins)
{
    inf_role_enter_loop();
    struct inf_metrics *metrics = NULL;
    cr_assert_eq(inf_metrics_create(&metrics, NULL), INF_OK);
    const struct inf_metrics_failure failures[] = {
        {find_series(metrics, "mine", 1), 1000, INF_DEADLINE, INF_REASON_IN_QUEUE, 3},
        {find_series(metrics, "yours", 1), 2000, INF_EXHAUSTED, INF_REASON_QUEUE_FULL, 0},
        {INF_METRICS_UNKNOWN, 2000, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND, 0}};
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++)
        inf_metrics_count_failure(metrics, &failures[i], 1000000003);
    const char *lines = print_for(metrics, false, 1000);
    cr_expect_neq(strstr(lines,
                         "inferd_inferences_total{model=\"mine\",version=\"1\","
                         "device=\"cpu0\",outcome=\"deadline\",reason=\"IN_QUEUE\"} 1\n"),
                  NULL);
    cr_expect_eq(count_lines(lines, "inferd_inferences_total{"), 1);
    cr_expect_neq(strstr(lines,
                         "inferd_user_inferences_total{uid=\"1000\",outcome=\"deadline\"} "
                         "1\n"),
                  NULL);
    cr_expect_eq(count_lines(lines, "inferd_user_inferences_total{"), 1);
    lines = print_for(metrics, true, 1000);
    cr_expect_neq(strstr(lines,
                         "inferd_inferences_total{model=\"\",version=\"\",device=\"\","
                         "outcome=\"failed\",reason=\"MODEL_NOT_FOUND\"} 1\n"),
                  NULL);
    cr_expect_eq(count_lines(lines, "inferd_inferences_total{"), 3);
    // Only the first of the three failed requests had been accepted. It failed a second after it
    // was accepted.
    cr_expect_eq(sum_lines(lines, "inferd_inference_failure_seconds_count{"), 1);
    cr_expect_eq(sum_lines(lines, "inferd_inference_failure_seconds_sum{outcome=\"deadline\"}"), 1);
    inf_metrics_destroy(&metrics);
}

static double read_cpu_ns(void)
{
    struct timespec time;
    cr_assert_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

Test(metrics, of_the_most_models_with_the_longest_names_fit_an_answer)
{
    inf_role_enter_loop();
    struct inf_metrics *metrics = NULL;
    cr_assert_eq(inf_metrics_create(&metrics, NULL), INF_OK);
    for (uint32_t i = 0; i < INF_METRICS_SERIES_MAX; i++) {
        char name[65];
        uint64_t handle = 0;
        snprintf(name, sizeof name, "%064u", i);
        const struct inf_metrics_labels labels = {name, "12345678901234567890123", "vulkan0"};
        const struct inf_metrics_answer answer = {
            .series = inf_metrics_series(metrics, &labels, &handle, 1), .uid = i};
        inf_metrics_count_answer(metrics, &answer, 1);
    }
    double start_ns = read_cpu_ns();
    size_t size = strlen(print_for(metrics, true, 0));
    printf("%zu bytes in %.0f us\n", size, (read_cpu_ns() - start_ns) / 1000);
    cr_expect_leq(size, 3u << 20, "the service has 4 MiB for these and all other metrics");
    inf_metrics_destroy(&metrics);
}

// One record is a search of two keys, four histograms and some counters. The bound is ten times
// the budget of 100 ns, so that the test does not fail under a sanitizer.
Test(metrics, of_one_answer_are_recorded_in_less_than_a_microsecond)
{
    inf_role_enter_loop();
    enum {
        ANSWERS = 1000000
    };
    struct inf_metrics *metrics = NULL;
    cr_assert_eq(inf_metrics_create(&metrics, NULL), INF_OK);
    const struct inf_metrics_labels labels = {"mobilenet", "1", "cpu0"};
    uint64_t handle = 0;
    double start_ns = read_cpu_ns();
    for (uint64_t i = 0; i < ANSWERS; i++) {
        const struct inf_metrics_answer answer = {
            .series = inf_metrics_series(metrics, &labels, &handle, i),
            .uid = 1000,
            .rows = 1,
            .batch_rows = 1,
            .duration_ns = 1000 + i * 7919 % 5000000,
            .queue_ns = i % 1000,
            .compute_ns = 1000 + i * 104729 % 3000000,
        };
        inf_metrics_count_answer(metrics, &answer, i);
    }
    double each_ns = (read_cpu_ns() - start_ns) / ANSWERS;
    printf("%.1f ns for each answer\n", each_ns);
    cr_expect_lt(each_ns, 1000);
    inf_metrics_destroy(&metrics);
}
