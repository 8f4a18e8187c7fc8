// SPDX-License-Identifier: Apache-2.0
// A timing comparison (race) of candidates on a model's own shapes, by successive halving. A
// candidate is a device with a precision and a number of threads.
//
// Every candidate runs once, which compiles and warms up. Its outputs are compared with those of
// the reference candidate, and candidates with wrong outputs drop out. Then rounds of 2, 4, 8 ...
// timed runs follow. After each round the slower half is dropped, except candidates within
// INF_RACE_KEEP of the best one. The race ends when one candidate is left or the budget is used:
//
//   candidates   A B C D E F     2 runs each
//                A B C           4 runs each       D E F were slower
//                A B             8 runs each       B is within INF_RACE_KEEP of A
//
// So most of the time is spent on candidates that are close, and a slow device costs a few runs
// only. The candidate with the lowest median wins. Medians closer than INF_RACE_TIE count as equal,
// and then the order before the race decides, so that noise does not change the choice from start
// to start. More threads must gain INF_RACE_THREADS_GAIN.
//
// With an idle gate, a run waits until no request is served (quiet_run.h).
#include "backends/place/race.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "backends/exec/trial_run.h"
#include "backends/place/quiet_run.h"
#include "proto/core/span.h"

// A candidate whose time exceeds the best time by this factor drops out at once.
#define DROP_FACTOR 2u
// Until each candidate had INF_RACE_RUNS_MIN runs, the budget is this many times as large, because
// fewer runs of a slow model decide by chance.
#define BUDGET_FACTOR 5u
// Assumed minimum speed of plain loops. The reference device is not timed if a run at this speed
// would exceed the budget.
#define HOST_MACS_PER_S 200000000u

// The state of one candidate (a device with a precision and a number of threads) during a race.
struct lane {
    struct inf_race_entry *entry;
    struct inf_executable *executable;
    struct inf_trial_run trial;
    bool interrupted; // other programs interrupted the last run
    uint64_t samples_ns[INF_RACE_RUNS_MAX];
    bool racing;
};

struct runner {
    struct inf_race *race;
    struct inf_model *model;
    const struct inf_shape *shapes;
    uint64_t budget_ns;
    struct inf_quiet_runs runs;
    struct lane lanes[INF_RACE_ENTRIES];
};

static const char *const verdict_names[] = {
    [INF_RACE_CHOSEN] = "chosen",   [INF_RACE_SLOWER] = "slower",     [INF_RACE_WRONG] = "wrong",
    [INF_RACE_REFUSED] = "refused", [INF_RACE_LEFT_OUT] = "left out",
};

const char *inf_race_verdict_name(enum inf_race_verdict verdict)
{
    return (size_t)verdict < INF_ARRAY_LENGTH(verdict_names) ? verdict_names[verdict] : "unknown";
}

// --- running candidates while no request is served ---

static void refuse_entry(struct lane *lane, enum inf_race_verdict verdict, const char *why)
{
    lane->racing = false;
    lane->entry->verdict = verdict;
    snprintf(lane->entry->why, sizeof lane->entry->why, "%.159s", why);
}

// Times one undisturbed run. If the run itself fails, *failed is set and *why holds the error.
static enum inf_code run_undisturbed(struct runner *runner, struct lane *lane, uint64_t *took_ns,
                                     bool *failed, struct inf_error *why,
                                     struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_quiet_result result;
    const struct inf_execution execution = inf_trial_run_execution(&lane->trial);
    INF_TRY(inf_quiet_runs_execute(&runner->runs, lane->executable, &execution, &result, err));
    *failed = result.code != INF_OK;
    *took_ns = result.took_ns;
    lane->interrupted = result.interrupted;
    if (*failed)
        *why = result.why;
    return INF_OK;
}

// Returns the reason why timing a compiled candidate would be useless: it computes everything in
// fp32 although a lower precision was requested, or it is too slow. NULL if there is none.
static const char *find_futility(const struct runner *runner, const struct lane *lane)
{
    const struct inf_graph *graph = inf_executable_graph(lane->executable);
    if (lane->entry->options.precision > INF_PRECISION_FP32 &&
        inf_executable_precision(lane->executable) == INF_PRECISION_FP32)
        return "nothing of it would be computed in less than fp32 there";
    if (inf_device_info(lane->entry->device)->kind == INF_DEVICE_HOST && lane != runner->lanes &&
        inf_graph_cost(graph).macs / HOST_MACS_PER_S * INF_NS_PER_S > runner->budget_ns)
        return "plain loops would take longer than the race may";
    return NULL;
}

// Compiles the candidate and runs it once. A candidate that cannot run the model drops out. The
// function fails only if the whole race must end.
static enum inf_code start_lane(struct runner *runner, struct lane *lane,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_error why = {0};
    struct inf_race_entry *entry = lane->entry;
    if (entry->barred) {
        entry->verdict = INF_RACE_REFUSED;
        return INF_OK;
    }
    INF_TRY(inf_quiet_runs_wait(&runner->runs, err));
    uint64_t begin = inf_clock_ns(), run_ns = 0;
    if (inf_model_acquire_with(runner->model, entry->device, &entry->options, runner->shapes,
                               &lane->executable, &why) != INF_OK) {
        refuse_entry(lane, INF_RACE_REFUSED, why.text);
        return INF_OK;
    }
    uint64_t compile_ns = inf_clock_ns() - begin;
    INF_TRY(inf_quiet_runs_pause(&runner->runs, compile_ns, err));
    struct inf_executable_memory memory;
    INF_TRY(inf_executable_memory(lane->executable, &memory, err));
    entry->memory_bytes =
        memory.const_bytes + memory.weight_bytes + memory.shared_bytes + memory.buffer_bytes;
    const char *futile = find_futility(runner, lane);
    if (futile != NULL) {
        refuse_entry(lane, INF_RACE_LEFT_OUT, futile);
        return INF_OK;
    }
    const struct inf_graph *graph = inf_executable_graph(lane->executable);
    INF_TRY(inf_trial_run_init(&lane->trial, graph, err));
    inf_trial_run_fill_inputs(&lane->trial, graph);
    bool failed = false;
    INF_TRY(run_undisturbed(runner, lane, &run_ns, &failed, &why, err));
    if (failed) {
        refuse_entry(lane, INF_RACE_REFUSED, why.text);
        return INF_OK;
    }
    entry->first_ns = compile_ns + run_ns;
    lane->racing = true;
    return INF_OK;
}

// --- comparing the results of candidates with the reference ---

static void judge_lane(struct lane *lane, const struct lane *judge, double tolerance)
{
    const struct inf_graph *graph = inf_executable_graph(lane->executable);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_port *port = &graph->outputs[i];
        const struct inf_blob *got = lane->trial.blobs[graph->input_count + i];
        const struct inf_blob *wanted = judge->trial.blobs[graph->input_count + i];
        size_t at = inf_trial_run_find_difference(got->data, wanted->data, wanted->size_bytes,
                                                  graph->values[port->value].dtype, tolerance);
        if (at == SIZE_MAX)
            continue;
        char why[sizeof lane->entry->why];
        snprintf(why, sizeof why, "output '%.60s' differs from %s's at element %zu", port->name,
                 inf_device_info(judge->entry->device)->name, at);
        refuse_entry(lane, INF_RACE_WRONG, why);
        return;
    }
}

static void check_answers(struct runner *runner)
{
    const struct lane *judge = NULL;
    double tolerance = runner->race->tolerance > 0 ? runner->race->tolerance : INF_RACE_TOLERANCE;
    for (uint32_t i = 0; i < runner->race->count; i++)
        if (runner->lanes[i].racing &&
            runner->lanes[i].entry->options.precision <= INF_PRECISION_FP32)
            judge = &runner->lanes[i];
    for (uint32_t i = 0; i < runner->race->count && judge != NULL; i++) {
        struct lane *lane = &runner->lanes[i];
        if (lane->racing && lane != judge)
            judge_lane(lane, judge,
                       lane->entry->tolerance > 0 ? lane->entry->tolerance : tolerance);
    }
}

// --- rounds of timed runs, and the choice of the winner ---

static int compare_ns(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

// Returns the least time of a candidate so far, of the runs that were not interrupted if there are
// any.
static uint64_t least_ns(const struct lane *lane)
{
    uint64_t least = UINT64_MAX;
    if (lane->entry->least_ns > 0)
        return lane->entry->least_ns;
    for (uint32_t i = 0; i < lane->entry->runs; i++)
        least = INF_MIN(least, lane->samples_ns[i]);
    return least;
}

// Returns how many of the `started` candidates may continue after each of them had `rounds` timed
// runs. The number is halved, rounded up, after 2, 4, 8 ... runs.
static uint32_t places_after(uint32_t rounds, uint32_t started)
{
    uint32_t places = started;
    for (uint32_t cut = 2; cut <= rounds; cut *= 2)
        places = (places + 1) / 2;
    return INF_MAX(places, 1u);
}

// Returns how many candidates that are still in the race have a shorter fastest run than this one.
static uint32_t count_quicker(const struct runner *runner, const struct lane *lane)
{
    uint32_t quicker = 0;
    for (uint32_t i = 0; i < runner->race->count; i++)
        quicker += runner->lanes[i].racing && least_ns(&runner->lanes[i]) < least_ns(lane);
    return quicker;
}

// Returns whether a candidate drops out. It drops out if its fastest run took more than DROP_FACTOR
// times `best_ns`. It also drops out if `places` or more candidates are faster and its fastest run
// took more than INF_RACE_KEEP times `best_ns`.
static bool is_too_slow(const struct runner *runner, const struct lane *lane, uint32_t places,
                        uint64_t best_ns)
{
    uint64_t least = least_ns(lane);
    if (least / DROP_FACTOR > best_ns)
        return true;
    return (double)least > INF_RACE_KEEP * (double)best_ns && count_quicker(runner, lane) >= places;
}

// Drops the slow candidates after each candidate had `rounds` timed runs. Returns how many
// candidates remain.
static uint32_t drop_slow(struct runner *runner, uint32_t rounds, uint32_t started)
{
    uint64_t best = UINT64_MAX;
    uint32_t left = 0, places = places_after(rounds, started);
    bool drops[INF_RACE_ENTRIES] = {false};
    for (uint32_t i = 0; i < runner->race->count; i++)
        if (runner->lanes[i].racing)
            best = INF_MIN(best, least_ns(&runner->lanes[i]));
    for (uint32_t i = 0; i < runner->race->count; i++)
        // A candidate whose runs were all interrupted is not known to be slow.
        drops[i] = runner->lanes[i].racing && runner->race->aim == INF_RACE_LATENCY &&
                   runner->lanes[i].entry->least_ns > 0 &&
                   is_too_slow(runner, &runner->lanes[i], places, best);
    for (uint32_t i = 0; i < runner->race->count; i++) {
        if (drops[i])
            refuse_entry(&runner->lanes[i], INF_RACE_SLOWER, "");
        left += runner->lanes[i].racing;
    }
    return left;
}

// Updates the least time of a candidate, unless other programs interrupted the run.
static void note_least(struct lane *lane, uint64_t took_ns)
{
    if (lane->interrupted)
        return;
    if (lane->entry->least_ns == 0 || took_ns < lane->entry->least_ns)
        lane->entry->least_ns = took_ns;
}

// Times one run of each candidate in the race, and adds up the times.
static enum inf_code run_round(struct runner *runner, uint32_t round, uint64_t *spent_ns,
                               struct inf_error *err) INF_MAY_BLOCK
{
    for (uint32_t i = 0; i < runner->race->count; i++) {
        struct lane *lane = &runner->lanes[i];
        struct inf_error why = {0};
        bool failed = false;
        if (!lane->racing)
            continue;
        INF_TRY(run_undisturbed(runner, lane, &lane->samples_ns[round], &failed, &why, err));
        if (failed) {
            refuse_entry(lane, INF_RACE_REFUSED, why.text);
            continue;
        }
        lane->entry->runs++;
        note_least(lane, lane->samples_ns[round]);
        *spent_ns += lane->samples_ns[round];
    }
    return INF_OK;
}

// The candidates run in turn, so that a disturbance of the machine affects all of them.
static enum inf_code run_rounds(struct runner *runner, struct inf_error *err) INF_MAY_BLOCK
{
    uint64_t spent_ns = 0;
    uint32_t started = 0;
    for (uint32_t i = 0; i < runner->race->count; i++)
        started += runner->lanes[i].racing;
    for (uint32_t round = 0; round < INF_RACE_RUNS_MAX; round++) {
        uint64_t factor = round < INF_RACE_RUNS_MIN ? BUDGET_FACTOR : 1;
        if (spent_ns >= runner->budget_ns * factor)
            break;
        INF_TRY(run_round(runner, round, &spent_ns, err));
        uint32_t left = drop_slow(runner, round + 1, started);
        if (round + 1 >= INF_RACE_RUNS_MIN && left <= 1)
            break;
    }
    return INF_OK;
}

// Returns the number that decides the race for a timed candidate; the smallest number wins.
// Depending on `aim`, it is the median time, the median per concurrent run, or the memory in bytes.
static double score_entry(const struct inf_race_entry *entry, enum inf_race_goal aim)
{
    if (aim == INF_RACE_MEMORY)
        return (double)entry->memory_bytes;
    double median_ns = (double)entry->median_ns;
    return aim == INF_RACE_THROUGHPUT ? median_ns / inf_device_info(entry->device)->slots
                                      : median_ns;
}

static uint32_t count_threads(const struct inf_race_entry *entry)
{
    return entry->options.threads > 0 ? entry->options.threads
                                      : inf_device_info(entry->device)->threads;
}

// Returns true if `entry`, which differs from `best` in the number of threads only, should win over
// it. More threads must gain INF_RACE_THREADS_GAIN, and fewer threads may lose it.
static bool has_better_threads(const struct inf_race_entry *entry,
                               const struct inf_race_entry *best)
{
    double needed = 1 - INF_RACE_THREADS_GAIN;
    if (entry->least_ns == 0 || best->least_ns == 0)
        return count_threads(entry) > count_threads(best);
    if (count_threads(entry) < count_threads(best))
        needed = 1 / needed;
    return (double)entry->least_ns < (double)best->least_ns * needed;
}

// Returns true if `entry` should win over `best`, which is earlier in the list. A later candidate
// must be better by more than INF_RACE_TIE, so equal candidates keep their order.
static bool is_better(const struct inf_race_entry *entry, const struct inf_race_entry *best,
                      enum inf_race_goal aim)
{
    if (entry->device == best->device && entry->options.precision == best->options.precision &&
        count_threads(entry) != count_threads(best) && aim != INF_RACE_MEMORY)
        return has_better_threads(entry, best);
    return score_entry(entry, aim) < score_entry(best, aim) * (1 - INF_RACE_TIE);
}

static enum inf_code choose_winner(struct runner *runner, struct inf_error *err)
{
    struct inf_race *race = runner->race;
    struct lane *best = NULL;
    for (uint32_t i = 0; i < race->count; i++) {
        struct lane *lane = &runner->lanes[i];
        if (lane->entry->runs > 0) {
            qsort(lane->samples_ns, lane->entry->runs, sizeof(uint64_t), compare_ns);
            lane->entry->median_ns = lane->samples_ns[lane->entry->runs / 2];
        }
        if (!lane->racing)
            continue;
        lane->entry->verdict = INF_RACE_SLOWER;
        if (best == NULL || is_better(lane->entry, best->entry, race->aim))
            best = lane;
    }
    if (best == NULL)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "no device can run the model: %s",
                               race->entries[race->count - 1].why);
    best->entry->verdict = INF_RACE_CHOSEN;
    race->chosen = (uint32_t)(best->entry - race->entries);
    return INF_OK;
}

// Drops the candidates that ran only to provide the reference result and must not be chosen.
static void dismiss_judges(struct runner *runner)
{
    for (uint32_t i = 0; i < runner->race->count; i++)
        if (runner->lanes[i].racing && runner->lanes[i].entry->judges)
            refuse_entry(&runner->lanes[i], INF_RACE_LEFT_OUT,
                         "it only judged: another precision was named");
}

static enum inf_code run_race(struct runner *runner, struct inf_error *err) INF_MAY_BLOCK
{
    for (uint32_t i = 0; i < runner->race->count; i++) {
        runner->lanes[i].entry = &runner->race->entries[i];
        INF_TRY(start_lane(runner, &runner->lanes[i], err));
    }
    check_answers(runner);
    dismiss_judges(runner);
    INF_TRY(run_rounds(runner, err));
    return choose_winner(runner, err);
}

enum inf_code inf_race_run(struct inf_race *race, struct inf_model *model,
                           const struct inf_shape *shapes, uint64_t budget_ns,
                           struct inf_error *err)
{
    inf_role_check_may_block();
    struct runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a race");
    *runner = (struct runner){.race = race,
                              .model = model,
                              .shapes = shapes,
                              .budget_ns = budget_ns,
                              .runs = {.idle_gate = race->idle_gate}};
    uint64_t begin = inf_clock_ns();
    race->chosen = 0;
    enum inf_code code = run_race(runner, err);
    race->took_ns = inf_clock_ns() - begin;
    for (uint32_t i = 0; i < race->count; i++) {
        inf_trial_run_fini(&runner->lanes[i].trial);
        inf_model_release(model, &runner->lanes[i].executable);
        if (code != INF_OK || i != race->chosen)
            inf_model_drop_with(model, race->entries[i].device, &race->entries[i].options, shapes);
    }
    free(runner);
    return code;
}
