// SPDX-License-Identifier: Apache-2.0
// Divides the time of runs between inferd's code and the Vulkan driver.
#include "tests/tools/bench/bench_host.h"

#include <stdlib.h>
#include <time.h>

#include "backends/base/clock.h"
#include "tests/support/device/vulkan_faults.h"

#define RUNS_MIN 20u
#define RUNS_MAX 10000u

// Columns of the table of times. Each is measured for every run, in us.
enum column {
    OURS,       // elapsed time outside of the driver's submits and waits
    SUBMITS,    // elapsed time in the driver's submits
    OURS_CPU,   // CPU time of the thread, outside of the driver's submits and waits
    SUBMIT_CPU, // CPU time in the driver's submits
    WAIT_CPU,   // CPU time in the driver's waits
    COLUMNS
};

static const char *const names[COLUMNS] = {"ours", "driver-submit", "ours-cpu", "driver-submit-cpu",
                                           "driver-wait-cpu"};

enum inf_code bench_host_prepare(struct vulkan_faults **out_faults, struct inf_error *err)
{
    *out_faults = vulkan_faults_install();
    if (*out_faults == NULL)
        return inf_fail(err, INF_UNAVAILABLE,
                        "VULKAN_FAULT_LAYER is not the folder of the layer that times the driver");
    return INF_OK;
}

static uint64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * INF_NS_PER_S + (uint64_t)now.tv_nsec;
}

static enum inf_code run_once(const struct bench_subject *subject, struct vulkan_faults *faults,
                              double *us, struct inf_error *err)
{
    faults->submit_ns = faults->submit_cpu_ns = faults->wait_ns = faults->wait_cpu_ns = 0;
    uint64_t begin_ns = inf_clock_ns(), begin_cpu_ns = thread_ns();
    INF_TRY(bench_subject_run(subject, false, err));
    uint64_t cpu_ns = thread_ns() - begin_cpu_ns, wall_ns = inf_clock_ns() - begin_ns;
    us[OURS] = (double)(wall_ns - faults->submit_ns - faults->wait_ns) / 1000;
    us[SUBMITS] = (double)faults->submit_ns / 1000;
    us[OURS_CPU] = (double)(cpu_ns - faults->submit_cpu_ns - faults->wait_cpu_ns) / 1000;
    us[SUBMIT_CPU] = (double)faults->submit_cpu_ns / 1000;
    us[WAIT_CPU] = (double)faults->wait_cpu_ns / 1000;
    return INF_OK;
}

static int compare_times(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

static void print_times(const struct bench_subject *subject, double (*times_us)[COLUMNS],
                        uint32_t runs, double *column)
{
    printf("inferd %s host us median (min):", subject->name);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        for (uint32_t k = 0; k < runs; k++)
            column[k] = times_us[k][i];
        qsort(column, runs, sizeof(*column), compare_times);
        printf(" %s %.1f (%.1f)", names[i], column[runs / 2], column[0]);
    }
    printf(" runs %u\n", runs);
}

enum inf_code bench_host(const struct bench_subject *subject, struct vulkan_faults *faults,
                         double ms, struct inf_error *err)
{
    double(*times_us)[COLUMNS] = malloc(RUNS_MAX * sizeof(*times_us));
    double *column = malloc(RUNS_MAX * sizeof(*column));
    enum inf_code code = times_us != NULL && column != NULL
                             ? INF_OK
                             : inf_fail(err, INF_EXHAUSTED, "no memory for times");
    uint32_t runs = 0;
    faults->timed = true;
    // Do not measure the first runs, because they record commands, upload weights, and learn how to
    // split the work into submissions.
    for (uint32_t i = 0; code == INF_OK && i < 5; i++)
        code = run_once(subject, faults, times_us[0], err);
    uint64_t begin_ns = inf_clock_ns();
    while (code == INF_OK && runs < RUNS_MAX &&
           (runs < RUNS_MIN || (double)(inf_clock_ns() - begin_ns) / INF_NS_PER_MS < ms))
        code = run_once(subject, faults, times_us[runs++], err);
    if (code == INF_OK)
        print_times(subject, times_us, runs, column);
    free(column);
    free(times_us);
    return code;
}
