// SPDX-License-Identifier: Apache-2.0
// simulate_plan [--ms MS] MODEL...
//
// Predicts how long a run of a model takes on 1, 2, 4, 8, 16 and 64 cores of the kind that this
// machine has, and compares the predictions for 1 and 2 threads with measurements.
//
// The idea: a plan for N threads is run on one thread, which times every tile. The record says
// which work is serial and how the rest is cut. Then the program computes when each of N threads
// would take which tile:
//
//     serial work      the time measured
//     tiles            the next tile goes to the thread that is free first, as in the team; a tile
//                      takes the time measured, times the contention
//     barrier          after the tiles of a kernel, as measured with two threads
//     wake-up          a helper joins this long after the first tiles of a region, or after the
//                      team had no work for longer than a helper spins
//     XNNPACK          its operators have no tiles of ours; their time is divided by the threads
//
// The contention is how much longer a run takes beside a second, independent run of the same model:
// shared caches, memory bandwidth and execution units. For more than two threads it is assumed to
// stay the same, so the figures for 4 and more say where the partition of the plan ends, not what a
// certain machine reaches.
//
// The columns at the end are shares of the time that 16 threads take: serial work, and imbalance,
// which is the time that threads wait for others at barriers and for wake-ups.
//
// The linker replaces functions of the cpu backend by the functions __wrap_* of this folder.
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/cpu/core/team.h"
#include "backends/cpu/program/device.h"
#include "tests/tools/bench/bench_subject.h"
#include "tests/tools/plan/plan_record.h"

#define THREADS_MAX 64u
#define RUNS        15u
#define COST_CALLS  200
// How long a helper spins for work before it leaves; the same as in backends/cpu/core/team.c.
#define SPIN_NS 50000.0

// --- what threads cost on this machine ---

struct costs {
    double wake_ns;    // from the request for a sleeping helper until it takes a tile
    double barrier_ns; // from the start of a job to its end, for two threads that only meet
};

static struct costs costs;

uint64_t __wrap_inf_cpu_device_measure_wake_ns(struct inf_cpu_device *device);

// The plans of all thread counts assume the wake-up of one helper, because this machine cannot wake
// as many threads as it has no cores for.
uint64_t __wrap_inf_cpu_device_measure_wake_ns(struct inf_cpu_device *device)
{
    (void)device;
    return (uint64_t)costs.wake_ns;
}

// Waits until two threads have a tile.
static void meet_thread(const void *context, size_t tile, size_t worker)
{
    atomic_uint *present = *(atomic_uint *const *)context;
    (void)tile;
    (void)worker;
    uint64_t end_ns = inf_clock_ns() + INF_NS_PER_MS;
    atomic_fetch_add(present, 1);
    while (atomic_load(present) < 2 && inf_clock_ns() < end_ns)
        ;
}

static int compare_numbers(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

#define COST_SAMPLES 31

struct cost_samples {
    struct inf_cpu_team *team;
    double wake_ns[COST_SAMPLES], barrier_ns[COST_SAMPLES];
    uint32_t count;
};

static void meet_once(struct inf_cpu_team *team)
{
    atomic_uint present = 0;
    atomic_uint *shared = &present;
    const struct inf_cpu_tiles meeting = {meet_thread, &shared, 2};
    inf_cpu_team_run_tiles(team, &meeting, 2);
}

static void measure_costs_in_region(void *context)
{
    struct cost_samples *samples = context;
    uint64_t start_ns = inf_clock_ns();
    meet_once(samples->team);
    uint64_t met_ns = inf_clock_ns();
    for (int i = 0; i < COST_CALLS; i++)
        meet_once(samples->team);
    samples->barrier_ns[samples->count] = (double)(inf_clock_ns() - met_ns) / COST_CALLS;
    samples->wake_ns[samples->count++] = (double)(met_ns - start_ns);
}

static enum inf_code measure_costs(struct inf_error *err)
{
    struct inf_cpu_core_set cores;
    struct inf_cpu_team team;
    const struct timespec pause = {.tv_nsec = 2000000};
    INF_TRY(inf_cpu_core_set_init(&cores, 1, 2, err));
    enum inf_code code = inf_cpu_team_init(&team, &cores, 2, err);
    struct cost_samples samples = {.team = &team};
    while (samples.count < COST_SAMPLES && code == INF_OK) {
        nanosleep(&pause, NULL);
        inf_cpu_team_run_region(&team, measure_costs_in_region, &samples);
    }
    qsort(samples.wake_ns, COST_SAMPLES, sizeof(double), compare_numbers);
    qsort(samples.barrier_ns, COST_SAMPLES, sizeof(double), compare_numbers);
    // Other programs make many samples longer, and none shorter.
    costs = (struct costs){samples.wake_ns[COST_SAMPLES / 4], samples.barrier_ns[0]};
    if (code == INF_OK)
        inf_cpu_team_fini(&team);
    inf_cpu_core_set_fini(&cores);
    return code;
}

// --- the simulation ---

struct prediction {
    double ns, serial_ns, idle_ns; // idle_ns: summed over the threads, outside of serial work
};

// Schedules the tiles of a job that begins at `now_ns`. free_ns[i] is the time at which thread i
// can take a tile; thread 0 leads. Returns the end of the job.
static double schedule_tiles(const struct plan_event *job, double *free_ns, uint32_t threads,
                             double contention)
{
    uint32_t most = INF_MIN(threads, job->workers);
    double end_ns = free_ns[0];
    for (uint32_t i = 1; i <= job->count; i++) {
        uint32_t first = 0;
        for (uint32_t k = 1; k < most; k++)
            if (free_ns[k] < free_ns[first])
                first = k;
        free_ns[first] += job[i].ns * (most > 1 ? contention : 1);
        end_ns = INF_MAX(end_ns, free_ns[first]);
    }
    return end_ns;
}

static struct prediction simulate_run(const struct plan_record *record, uint32_t threads,
                                      double contention)
{
    struct prediction result = {0};
    double free_ns[THREADS_MAX];
    double now_ns = 0, left_ns = 0; // left_ns: the time at which helpers without work leave
    for (uint32_t at = 0; at < record->count; at++) {
        const struct plan_event *event = &record->events[at];
        if (event->kind == PLAN_REGION) {
            left_ns = now_ns;
        } else if (event->kind == PLAN_SERIAL) {
            now_ns += event->ns;
            result.serial_ns += event->ns;
        } else if (event->kind == PLAN_SHARED) {
            now_ns += threads > 1 ? event->ns * contention / threads + costs.wake_ns : event->ns;
        } else if (threads == 1 || INF_MIN(event->workers, event->count) <= 1) {
            for (uint32_t i = 1; i <= event->count; i++)
                now_ns += event[i].ns;
            at += event->count;
        } else {
            double start_ns = now_ns, sum_ns = 0;
            free_ns[0] = now_ns;
            for (uint32_t k = 1; k < threads; k++)
                free_ns[k] = now_ns + (now_ns >= left_ns ? costs.wake_ns : 0);
            now_ns = schedule_tiles(event, free_ns, threads, contention) + costs.barrier_ns;
            for (uint32_t i = 1; i <= event->count; i++)
                sum_ns += event[i].ns * contention;
            result.idle_ns += (now_ns - start_ns) * threads - sum_ns;
            left_ns = now_ns + SPIN_NS;
            at += event->count;
        }
    }
    result.ns = now_ns;
    return result;
}

// --- measuring a model ---

struct subject {
    struct tool_engine engine;
    struct bench_subject bench;
};

static void close_subject(struct subject *subject)
{
    bench_subject_unload(&subject->bench);
    tool_engine_close(&subject->engine);
}

static enum inf_code open_subject(struct subject *subject, const char *model, uint32_t threads,
                                  struct inf_error *err)
{
    const struct bench_inputs inputs = {.dim = 224};
    const struct inf_device_options options = {.slots = 1, .threads = threads};
    memset(subject, 0, sizeof(*subject));
    INF_TRY(tool_engine_open_with(&subject->engine, "cpu", &options, err));
    enum inf_code code = bench_subject_load(&subject->bench, &subject->engine, model, &inputs, err);
    if (code != INF_OK)
        close_subject(subject);
    return code;
}

// Measures the median time of a run, over runs of `ms` in total and at least RUNS of them.
static enum inf_code measure_run(const struct subject *subject, double ms, double *out_ns,
                                 struct inf_error *err)
{
    enum {
        TIMES = 4096
    };
    static _Thread_local double times[TIMES];
    size_t count = 0;
    uint64_t begin_ns = inf_clock_ns();
    while (count < RUNS ||
           (count < TIMES && (double)(inf_clock_ns() - begin_ns) < ms * INF_NS_PER_MS)) {
        uint64_t start_ns = inf_clock_ns();
        INF_TRY(bench_subject_run(&subject->bench, false, err));
        times[count++] = (double)(inf_clock_ns() - start_ns);
    }
    qsort(times, count, sizeof(times[0]), compare_numbers);
    *out_ns = times[count / 2];
    return INF_OK;
}

// A thread that runs a model until `stop` is set. If a run fails, the thread sets `code` and `err`
// and ends.
struct rival {
    const struct subject *subject;
    atomic_bool stop;
    enum inf_code code;
    struct inf_error err;
};

static void *run_rival(void *context)
{
    struct rival *rival = context;
    while (!atomic_load(&rival->stop) && rival->code == INF_OK)
        rival->code = bench_subject_run(&rival->subject->bench, false, &rival->err);
    return NULL;
}

// Measures how many times as long a run takes beside another one of the same model.
static enum inf_code measure_contention(const struct subject *subject, const struct subject *other,
                                        double ms, double *out, struct inf_error *err)
{
    struct rival rival = {.subject = other};
    pthread_t thread;
    double alone_ns, beside_ns;
    INF_TRY(measure_run(subject, ms, &alone_ns, err));
    if (pthread_create(&thread, NULL, run_rival, &rival) != 0)
        return inf_fail(err, INF_EXHAUSTED, "cannot start a thread");
    enum inf_code code = measure_run(subject, ms, &beside_ns, err);
    atomic_store(&rival.stop, true);
    pthread_join(thread, NULL);
    INF_TRY(code);
    if (rival.code != INF_OK) {
        *err = rival.err;
        return rival.code;
    }
    *out = INF_MAX(beside_ns / alone_ns, 1.0);
    return INF_OK;
}

static int compare_predictions(const void *a, const void *b)
{
    const struct prediction *x = a, *y = b;
    return (x->ns > y->ns) - (x->ns < y->ns);
}

// Predicts the time of a run on as many cores as the plan of the subject has threads: the median of
// several recorded runs.
static enum inf_code predict_run(const struct subject *subject, uint32_t threads, double contention,
                                 struct prediction *out, struct inf_error *err)
{
    struct prediction found[RUNS];
    for (uint32_t run = 0; run < RUNS; run++) {
        INF_TRY(bench_subject_run(&subject->bench, false, err));
        plan_record_begin();
        enum inf_code code = bench_subject_run(&subject->bench, false, err);
        const struct plan_record record = plan_record_end();
        INF_TRY(code);
        if (record.full)
            return inf_fail(err, INF_EXHAUSTED, "the run has too many tiles");
        found[run] = simulate_run(&record, threads, contention);
    }
    qsort(found, RUNS, sizeof(found[0]), compare_predictions);
    *out = found[RUNS / 2];
    return INF_OK;
}

static enum inf_code measure_pair(const char *model, double ms, double measured_ns[2],
                                  double *contention, struct inf_error *err)
{
    struct subject one, other;
    INF_TRY(open_subject(&one, model, 1, err));
    enum inf_code code = open_subject(&other, model, 1, err);
    if (code == INF_OK) {
        code = measure_contention(&one, &other, ms, contention, err);
        if (code == INF_OK)
            code = measure_run(&one, ms, &measured_ns[0], err);
        close_subject(&other);
    }
    close_subject(&one);
    return code;
}

static enum inf_code simulate_model(const char *model, double ms, struct inf_error *err)
{
    static const uint32_t counts[] = {1, 2, 4, 8, 16, 64};
    double measured_ns[2], contention, serial = 0, idle = 0;
    INF_TRY(measure_pair(model, ms, measured_ns, &contention, err));
    for (size_t i = 0; i < INF_ARRAY_LENGTH(counts); i++) {
        struct prediction found = {0};
        struct subject subject;
        INF_TRY(open_subject(&subject, model, counts[i], err));
        if (i == 0)
            printf("| %s | %.2f ", subject.bench.name, contention);
        enum inf_code code = predict_run(&subject, counts[i], contention, &found, err);
        if (code == INF_OK && i == 1)
            code = measure_run(&subject, ms, &measured_ns[1], err);
        close_subject(&subject);
        INF_TRY(code);
        if (i < 2)
            printf("| %.3f, %.3f (%+.1f %%) ", measured_ns[i] / 1e6, found.ns / 1e6,
                   100 * (found.ns / measured_ns[i] - 1));
        else
            printf("| %.3f ", found.ns / 1e6);
        if (counts[i] == 16) {
            serial = 100 * found.serial_ns / found.ns;
            idle = 100 * found.idle_ns / (16 * found.ns);
        }
        fflush(stdout);
    }
    printf("| %.0f, %.0f %% |\n", serial, idle);
    return INF_OK;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"ms", required_argument, NULL, 'm'}, {0}};
    struct inf_error err = {0};
    double ms = 300;
    int option, status = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) == 'm')
        ms = strtod(optarg, NULL);
    if (option != -1 || !(ms > 0) || optind == argc) {
        fputs("usage: simulate_plan [--ms MS] MODEL...\n", stderr);
        return 2;
    }
    if (measure_costs(&err) != INF_OK) {
        fprintf(stderr, "simulate_plan: %s\n", err.text);
        return 2;
    }
    printf("wake-up %.1f us, barrier %.2f us\n", costs.wake_ns / 1e3, costs.barrier_ns / 1e3);
    puts(
        "| model | contention | 1 thread: measured, predicted ms | 2 threads | 4 | 8 | 16 | 64 | "
        "serial, imbalance at 16 |\n|---|---|---|---|---|---|---|---|---|");
    for (int i = optind; i < argc; i++)
        if (simulate_model(argv[i], ms, &err) != INF_OK) {
            fprintf(stderr, "simulate_plan: %s: %s\n", argv[i], err.text);
            status = 1;
        }
    return status;
}
