// SPDX-License-Identifier: Apache-2.0
// Placement of models on devices: by rule, by timing race, by predicted times, and with devices
// that are slow, wrong or broken.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "backends/device/backend.h"
#include "backends/exec/trial_run.h"
#include "backends/place/race.h"
#include "backends/place/speed.h"
#include "backends/ref/ref.h"

#define BUDGET_NS 20000000u

// --- making devices with injected faults ---

// value index of the last output of the part of the graph (segment) that the faulty device compiled
// last
static uint32_t last_output;

static enum inf_code run_slowly(struct inf_program *program, const struct inf_run *run,
                                struct inf_ticket *ticket, struct inf_error *err)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return inf_ref_backend.run(program, run, ticket, err);
}

static enum inf_code compile_noting(struct inf_program **program, struct inf_device *device,
                                    const struct inf_segment *segment, uint32_t flags,
                                    struct inf_error *err)
{
    last_output = segment->graph->nodes[segment->nodes[segment->node_count - 1]].outputs[0];
    return inf_ref_backend.compile(program, device, segment, flags, err);
}

static enum inf_code run_wrongly(struct inf_program *program, const struct inf_run *run,
                                 struct inf_ticket *ticket, struct inf_error *err)
{
    INF_TRY(inf_ref_backend.run(program, run, ticket, err));
    ((float *)run->bindings[last_output].host)[2] += 0.01f;
    return INF_OK;
}

static enum inf_code refuse_to_compile(struct inf_program **program, struct inf_device *device,
                                       const struct inf_segment *segment, uint32_t flags,
                                       struct inf_error *err)
{
    (void)program;
    (void)device;
    (void)segment;
    (void)flags;
    return inf_fail(err, INF_UNAVAILABLE, "the driver says no");
}

enum fault {
    NONE,
    SLOW,
    WRONG,
    BROKEN,
    FAULTS
};

static struct inf_device *open_device(enum fault fault, enum inf_device_kind kind)
{
    static struct inf_backend backends[FAULTS];
    struct inf_backend *backend = &backends[fault];
    struct inf_device *device;
    *backend = inf_ref_backend;
    if (fault == SLOW)
        backend->run = run_slowly;
    if (fault == WRONG) {
        backend->compile = compile_noting;
        backend->run = run_wrongly;
    }
    if (fault == BROKEN)
        backend->compile = refuse_to_compile;
    cr_assert_eq(inf_device_open(&device, backend, 0, NULL, NULL), INF_OK);
    device->info.kind = kind;
    return device;
}

// Makes a model that computes y[4] = x[4] + x.
static struct inf_model *make_model(struct inf_device *host)
{
    struct inf_graph *graph;
    struct inf_model *model;
    struct inf_shape shape = INF_SHAPE(4);
    uint32_t x, node;
    const struct inf_pass_options passes = {.evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    cr_assert_eq(
        inf_graph_add_node(graph, INF_OP_BINARY, "sum", "", (uint32_t[]){x, x}, 2, 1, &node, NULL),
        INF_OK);
    cr_assert_eq(inf_graph_add_output(graph, "y", graph->nodes[node].outputs[0], NULL), INF_OK);
    cr_assert_eq(inf_model_create(&model, &graph, &host, 1, &passes, NULL), INF_OK);
    return model;
}

// Runs a timing race between devices, each with the fault in the list at its position. The last
// device provides the reference results. Frees everything except the race.
static enum inf_code race_of(struct inf_race *race, const enum fault *faults, uint32_t count,
                             struct inf_error *err)
{
    struct inf_device *devices[4];
    const struct inf_shape shape = INF_SHAPE(4);
    *race = (struct inf_race){.count = count};
    for (uint32_t i = 0; i < count; i++) {
        devices[i] = open_device(faults[i], INF_DEVICE_CPU);
        race->entries[i].device = devices[i];
    }
    struct inf_model *model = make_model(devices[count - 1]);
    enum inf_code code = inf_race_run(race, model, &shape, BUDGET_NS, err);
    cr_assert_eq(inf_model_memory(model).executables, code == INF_OK ? 1u : 0u);
    inf_model_unref(&model);
    for (uint32_t i = 0; i < count; i++)
        inf_device_unref(&devices[i]);
    return code;
}

// --- the timing race between devices ---

Test(race, is_won_by_the_quick_however_they_are_ordered)
{
    struct inf_race race;
    cr_assert_eq(race_of(&race, (enum fault[]){SLOW, NONE}, 2, NULL), INF_OK);
    cr_assert_eq(race.chosen, 1u);
    cr_assert_eq(race.entries[0].verdict, INF_RACE_SLOWER);
    cr_assert_geq(race.entries[0].median_ns, 5000000u);
    cr_assert_geq(race.entries[1].runs, INF_RACE_RUNS_MIN);
    cr_assert_eq(race_of(&race, (enum fault[]){NONE, SLOW}, 2, NULL), INF_OK);
    cr_assert_eq(race.chosen, 0u);
    cr_assert_eq(race.entries[0].verdict, INF_RACE_CHOSEN);
}

// --- numbers of threads ---

#define RUN_NS         10000000
#define THREADS_BUDGET (30 * (uint64_t)RUN_NS)

static bool second_thread_helps;
static bool disturbed;       // three of four runs with a second thread take much longer
static uint32_t shared_runs; // runs with a second thread
static bool waits_for_cores; // the device reports two threads, which get no processor time

// Stores the threads of the program as the size of its weights, which run_on_threads() reads.
static enum inf_code compile_for_threads(struct inf_program **program, struct inf_device *device,
                                         const struct inf_segment *segment, uint32_t flags,
                                         struct inf_error *err)
{
    INF_TRY(inf_ref_backend.compile(program, device, segment, flags, err));
    (*program)->weight_bytes = segment->threads;
    return INF_OK;
}

static enum inf_code run_on_threads(struct inf_program *program, const struct inf_run *run,
                                    struct inf_ticket *ticket, struct inf_error *err)
{
    long time_ns = RUN_NS;
    if (program->weight_bytes != 1) // the program uses all threads
        time_ns = second_thread_helps ? RUN_NS / 2 : RUN_NS / 25 * 26;
    if (program->weight_bytes != 1 && disturbed && shared_runs++ % 4 != 0)
        time_ns = RUN_NS / 2 * 3;
    nanosleep(&(struct timespec){.tv_nsec = time_ns}, NULL);
    if (program->weight_bytes != 1 && waits_for_cores && run->core_use != NULL)
        *run->core_use = (struct inf_core_use){.helper_ns = (uint64_t)time_ns, .threads = 2};
    return inf_ref_backend.run(program, run, ticket, err);
}

// Races one thread (`one_first`: as the first candidate) against all, which are two. Returns the
// threads of the winner.
static uint32_t race_threads(bool one_first)
{
    struct inf_backend backend = inf_ref_backend;
    struct inf_device *device;
    const struct inf_shape shape = INF_SHAPE(4);
    struct inf_race race = {.count = 2};
    backend.compile = compile_for_threads;
    backend.run = run_on_threads;
    cr_assert_eq(inf_device_open(&device, &backend, 0, NULL, NULL), INF_OK);
    device->info.threads = 2;
    device->info.fewer_threads = true;
    race.entries[0].device = race.entries[1].device = device;
    race.entries[one_first ? 0 : 1].options.threads = 1;
    struct inf_model *model = make_model(device);
    cr_assert_eq(inf_race_run(&race, model, &shape, THREADS_BUDGET, NULL), INF_OK);
    uint32_t threads = race.entries[race.chosen].options.threads;
    inf_model_unref(&model);
    inf_device_unref(&device);
    return threads;
}

// Races until `wanted` threads win, because a busy machine delays runs by more than candidates
// differ. A wrong rule fails every time.
static bool wins_with(uint32_t wanted, bool one_first)
{
    for (int i = 0; i < 5; i++)
        if (race_threads(one_first) == wanted)
            return true;
    return false;
}

Test(race, gives_a_model_a_second_thread_only_if_it_gains)
{
    for (int one_first = 0; one_first < 2; one_first++) {
        second_thread_helps = false;
        cr_expect(wins_with(1, one_first != 0));
        second_thread_helps = true;
        cr_expect(wins_with(0, one_first != 0), "0 stands for all threads");
    }
}

Test(race, chooses_threads_by_the_runs_that_nothing_disturbed)
{
    second_thread_helps = disturbed = true;
    cr_expect(wins_with(0, false), "0 stands for all threads");
    cr_expect(wins_with(0, true));
    disturbed = false;
}

Test(race, takes_no_thread_away_because_other_programs_had_the_cores)
{
    second_thread_helps = false;
    waits_for_cores = true;
    cr_expect_eq(race_threads(false), 0u, "0 stands for all threads");
    cr_expect_eq(race_threads(true), 0u);
    waits_for_cores = false;
}

Test(race, admits_no_wrong_answer_however_quick)
{
    struct inf_race race;
    cr_assert_eq(race_of(&race, (enum fault[]){WRONG, SLOW}, 2, NULL), INF_OK);
    cr_assert_eq(race.chosen, 1u);
    cr_assert_eq(race.entries[0].verdict, INF_RACE_WRONG);
    cr_assert_eq(race.entries[0].runs, 0u);
    cr_assert_str_eq(race.entries[0].why, "output 'y' differs from ref's at element 2");
}

Test(race, goes_on_without_devices_that_fail)
{
    struct inf_race race;
    struct inf_error err = {0};
    cr_assert_eq(race_of(&race, (enum fault[]){BROKEN, NONE}, 2, NULL), INF_OK);
    cr_assert_eq(race.chosen, 1u);
    cr_assert_eq(race.entries[0].verdict, INF_RACE_REFUSED);
    cr_assert(strstr(race.entries[0].why, "the driver says no") != NULL, "%s", race.entries[0].why);
    cr_assert_eq(race_of(&race, (enum fault[]){BROKEN, BROKEN}, 2, &err), INF_UNAVAILABLE);
    cr_assert_eq(err.reason, INF_REASON_NO_DEVICE);
    cr_assert(strstr(err.text, "the driver says no") != NULL, "%s", err.text);
}

Test(trial, tells_where_answers_part)
{
    static const struct {
        float got, wanted;
        bool near;
    } cases[] = {{1.0009f, 1, true},         {1.0011f, 1, false},
                 {1000.9f, 1000, true},      {1e-4f, 0, true},
                 {NAN, NAN, true},           {NAN, 1, false},
                 {INFINITY, INFINITY, true}, {1, INFINITY, false},
                 {INFINITY, 1, false},       {-INFINITY, INFINITY, false}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        const float got[2] = {0, cases[i].got}, wanted[2] = {0, cases[i].wanted};
        cr_expect_eq(inf_trial_run_find_difference(got, wanted, 8, INF_DTYPE_F32, 1e-3),
                     cases[i].near ? SIZE_MAX : 1, "case %zu", i);
    }
    const int32_t a[] = {1, 2, 3}, b[] = {1, 2, 4};
    cr_expect_eq(inf_trial_run_find_difference(a, b, 12, INF_DTYPE_I32, 1e-3), 2u);
    cr_expect_eq(inf_trial_run_find_difference(a, b, 8, INF_DTYPE_I32, 1e-3), SIZE_MAX);
}

// --- placing models by rule, without measuring ---

static const struct inf_device_info gpu = {.name = "gpu", .kind = INF_DEVICE_GPU},
                                    soft = {.name = "soft", .kind = INF_DEVICE_SOFTWARE},
                                    cpu = {.name = "cpu", .kind = INF_DEVICE_CPU},
                                    host = {.name = "ref", .kind = INF_DEVICE_HOST};

Test(prior, prefers_the_cpu_for_models_below_both_limits)
{
    const struct inf_device_info *const devices[] = {&gpu, &cpu, &host};
    static const struct {
        uint64_t macs, bytes;
        uint32_t first;
    } cases[] = {{59999999, 3145727, 1},
                 {60000000, 3145727, 0},
                 {59999999, 3145728, 0},
                 {0, 0, 1},
                 {300000000, 14000000, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct inf_prior prior = inf_prior_choose(
            devices, 3,
            &(struct inf_prior_input){.macs = cases[i].macs, .const_bytes = cases[i].bytes});
        cr_assert_eq(prior.count, 3u);
        cr_assert_eq(prior.order[0], cases[i].first, "case %zu", i);
        cr_assert_eq(prior.order[2], 2u);
    }
}

Test(prior, takes_software_only_where_there_is_nothing_else)
{
    const struct inf_device_info *const devices[] = {&soft, &cpu, &host};
    struct inf_prior prior = inf_prior_choose(devices, 3, &(struct inf_prior_input){0});
    cr_assert_eq(prior.count, 2u);
    cr_assert_eq(prior.order[0], 1u);
    prior = inf_prior_choose(devices, 1, &(struct inf_prior_input){0});
    cr_assert_eq(prior.count, 1u);
    cr_assert_eq(prior.order[0], 0u);
}

// --- predicting run times from measured speeds ---

Test(speed, predicts_from_arithmetic_memory_and_steps)
{
    const struct inf_speed speed = {
        .macs_per_s = 10e9, .bytes_per_s = 2e9, .submit_ns = 5000, .step_ns = 100};
    // 10 M multiply-adds take 1 ms, 1 MB takes 0.5 ms, and 30 steps take another 3 us.
    cr_expect_eq(inf_speed_predict_ns(&speed, &(struct inf_speed_work){10000000, 1000000, 30}),
                 1000000u + 5000u + 3000u);
    // Moving 8 MB takes 4 ms, which is longer than the multiply-adds take.
    cr_expect_eq(inf_speed_predict_ns(&speed, &(struct inf_speed_work){10000000, 8000000, 0}),
                 4000000u + 5000u);
    cr_expect_eq(inf_speed_predict_ns(&(struct inf_speed){0}, &(struct inf_speed_work){1, 1, 1}),
                 0u);
}

Test(speed, sees_what_a_run_costs_a_slow_device)
{
    struct inf_device *slow = open_device(SLOW, INF_DEVICE_HOST);
    struct inf_device *behind = open_device(NONE, INF_DEVICE_HOST);
    struct inf_device *broken = open_device(BROKEN, INF_DEVICE_HOST);
    struct inf_speed speed;
    cr_assert_eq(inf_speed_measure(&speed, slow, behind, NULL), INF_OK);
    cr_expect_geq(speed.submit_ns, 5000000u, "it sleeps 5 ms a run");
    cr_expect_gt(speed.macs_per_s, 0);
    cr_expect_gt(speed.bytes_per_s, 0);
    cr_expect_neq(inf_speed_measure(&speed, broken, behind, NULL), INF_OK);
    cr_expect_eq(speed.submit_ns, 0u);
    inf_device_unref(&slow);
    inf_device_unref(&behind);
    inf_device_unref(&broken);
}

// --- races that are decided by memory or by throughput ---

Test(race, wins_by_memory_or_by_runs_at_once_where_that_is_the_aim)
{
    struct inf_device *devices[2];
    for (int i = 0; i < 2; i++)
        devices[i] = open_device(i == 0 ? SLOW : NONE, INF_DEVICE_HOST);
    struct inf_model *model = make_model(devices[1]);
    struct inf_shape shape = INF_SHAPE(4);
    struct inf_race race = {.count = 2, .aim = INF_RACE_MEMORY};
    for (int i = 0; i < 2; i++)
        race.entries[i].device = devices[i];
    // Both devices take the same memory, so the first in the order before the race wins although it
    // is slower.
    cr_assert_eq(inf_race_run(&race, model, &shape, BUDGET_NS, NULL), INF_OK);
    cr_expect_eq(race.chosen, 0u);
    cr_expect_eq(race.entries[0].memory_bytes, race.entries[1].memory_bytes);
    race.aim = INF_RACE_LATENCY;
    for (int i = 0; i < 2; i++)
        race.entries[i] = (struct inf_race_entry){.device = devices[i]};
    cr_assert_eq(inf_race_run(&race, model, &shape, BUDGET_NS, NULL), INF_OK);
    cr_expect_eq(race.chosen, 1u);
    inf_model_unref(&model);
    inf_device_unref(&devices[0]);
    inf_device_unref(&devices[1]);
}
