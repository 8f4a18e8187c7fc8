// SPDX-License-Identifier: Apache-2.0
#include "backends/place/race.h"

#include <stdio.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "backends/exec/trial.h"
#include "proto/core/span.h"

// A device that took so many times the best one's time drops out.
#define DROP_FACTOR 2u
// Plain loops are not worth a run that takes longer than the budget; this fast they are at least.
#define HOST_MACS_PER_S 200000000u

// A device while it races.
struct lane {
    struct inf_race_entry *entry;
    struct inf_executable *executable;
    struct inf_trial trial;
    uint64_t samples_ns[INF_RACE_RUNS_MOST];
    bool racing;
};

struct runner {
    struct inf_race *race;
    struct inf_model *model;
    const struct inf_shape *shapes;
    uint64_t budget_ns;
    struct lane lanes[INF_PLACE_DEVICES];
};

static const char *const verdict_names[] = {
    [INF_RACE_CHOSEN] = "chosen",   [INF_RACE_SLOWER] = "slower",     [INF_RACE_WRONG] = "wrong",
    [INF_RACE_REFUSED] = "refused", [INF_RACE_LEFT_OUT] = "left out",
};

const char *inf_race_verdict_name(enum inf_race_verdict verdict)
{
    return (size_t)verdict < INF_ARRAY_LENGTH(verdict_names) ? verdict_names[verdict] : "unknown";
}

// --- running ---

// Numbers of 0 to 1, as pictures are; whole numbers stay zero, since they may be indices. A linear
// congruential generator (Knuth, TAOCP 2, 3.3.4, line 26) is random enough.
static void fill_input(struct inf_blob *blob, enum inf_dtype dtype)
{
    uint64_t state = 1;
    if (dtype != INF_DTYPE_F32)
        return;
    float *values = blob->data;
    for (size_t i = 0; i < blob->size_bytes / sizeof *values; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (float)(state >> 40) / 16777216.f;
    }
}

// Memory for a run, with the same inputs for everybody.
static enum inf_code prepare(struct inf_trial *trial, const struct inf_graph *graph,
                             struct inf_error *err)
{
    INF_TRY(inf_trial_init(trial, graph, err));
    for (uint32_t i = 0; i < graph->input_count; i++)
        fill_input(trial->blobs[i], graph->values[graph->inputs[i].value].dtype);
    return INF_OK;
}

static void refuse(struct lane *lane, enum inf_race_verdict verdict, const char *why)
{
    lane->racing = false;
    lane->entry->verdict = verdict;
    snprintf(lane->entry->why, sizeof lane->entry->why, "%.159s", why);
}

// Compiles for the lane's device and runs once. Fails only where the model cannot race; a device that
// cannot run it drops out.
static enum inf_code start_lane(struct runner *runner, struct lane *lane,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_error why = {0};
    struct inf_device *device = lane->entry->device;
    uint64_t begin = inf_clock_ns();
    if (inf_model_acquire(runner->model, device, runner->shapes, &lane->executable, &why) !=
        INF_OK) {
        refuse(lane, INF_RACE_REFUSED, why.text);
        return INF_OK;
    }
    const struct inf_graph *graph = inf_executable_graph(lane->executable);
    struct inf_executable_memory memory;
    INF_TRY(inf_executable_memory(lane->executable, &memory, err));
    lane->entry->memory_bytes =
        memory.const_bytes + memory.weight_bytes + memory.shared_bytes + memory.buffer_bytes;
    if (inf_device_info(device)->kind == INF_DEVICE_HOST && lane != runner->lanes &&
        inf_graph_cost(graph).macs / HOST_MACS_PER_S * INF_NS_PER_S > runner->budget_ns) {
        refuse(lane, INF_RACE_LEFT_OUT, "plain loops would take longer than the race may");
        return INF_OK;
    }
    INF_TRY(prepare(&lane->trial, graph, err));
    if (inf_trial_run(&lane->trial, lane->executable, NULL, &why) != INF_OK) {
        refuse(lane, INF_RACE_REFUSED, why.text);
        return INF_OK;
    }
    lane->entry->first_ns = inf_clock_ns() - begin;
    lane->racing = true;
    return INF_OK;
}

// --- judging ---

static void judge_lane(struct lane *lane, const struct lane *judge, double tolerance)
{
    const struct inf_graph *graph = inf_executable_graph(lane->executable);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_port *port = &graph->outputs[i];
        const struct inf_blob *got = lane->trial.blobs[graph->input_count + i];
        const struct inf_blob *wanted = judge->trial.blobs[graph->input_count + i];
        size_t at = inf_trial_first_difference(got->data, wanted->data, wanted->size_bytes,
                                               graph->values[port->value].dtype, tolerance);
        if (at == SIZE_MAX)
            continue;
        char why[sizeof lane->entry->why];
        snprintf(why, sizeof why, "output '%.60s' differs from %s's at element %zu", port->name,
                 inf_device_info(judge->entry->device)->name, at);
        refuse(lane, INF_RACE_WRONG, why);
        return;
    }
}

static void judge(struct runner *runner)
{
    const struct lane *judge = NULL;
    double tolerance = runner->race->tolerance > 0 ? runner->race->tolerance : INF_RACE_TOLERANCE;
    for (uint32_t i = 0; i < runner->race->count; i++)
        if (runner->lanes[i].racing)
            judge = &runner->lanes[i];
    for (uint32_t i = 0; i < runner->race->count; i++)
        if (runner->lanes[i].racing && &runner->lanes[i] != judge)
            judge_lane(&runner->lanes[i], judge, tolerance);
}

// --- rounds ---

static int compare_ns(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static uint64_t least_ns(const struct lane *lane)
{
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < lane->entry->runs; i++)
        least = INF_MIN(least, lane->samples_ns[i]);
    return least;
}

// Drops those that are far behind after `round` runs each; returns how many go on.
static uint32_t drop_slow(struct runner *runner)
{
    uint64_t best = UINT64_MAX;
    uint32_t left = 0;
    for (uint32_t i = 0; i < runner->race->count; i++)
        if (runner->lanes[i].racing)
            best = INF_MIN(best, least_ns(&runner->lanes[i]));
    for (uint32_t i = 0; i < runner->race->count; i++) {
        struct lane *lane = &runner->lanes[i];
        if (lane->racing && runner->race->aim == INF_RACE_LATENCY &&
            least_ns(lane) / DROP_FACTOR > best)
            refuse(lane, INF_RACE_SLOWER, "");
        left += lane->racing;
    }
    return left;
}

// Everybody runs in turn, so that what disturbs the machine disturbs all.
static void run_rounds(struct runner *runner) INF_MAY_BLOCK
{
    uint64_t end_ns = inf_clock_ns() + runner->budget_ns;
    for (uint32_t round = 0; round < INF_RACE_RUNS_MOST; round++) {
        for (uint32_t i = 0; i < runner->race->count; i++) {
            struct lane *lane = &runner->lanes[i];
            struct inf_error why = {0};
            if (!lane->racing)
                continue;
            if (inf_trial_run(&lane->trial, lane->executable, &lane->samples_ns[round], &why) !=
                INF_OK)
                refuse(lane, INF_RACE_REFUSED, why.text);
            else
                lane->entry->runs++;
        }
        uint32_t left = drop_slow(runner);
        bool enough = round + 1 >= INF_RACE_RUNS_LEAST;
        if (inf_clock_ns() >= end_ns || (enough && left <= 1))
            return;
    }
}

// What is to be least, of a device that was timed.
static double score(const struct inf_race_entry *entry, enum inf_race_aim aim)
{
    if (aim == INF_RACE_MEMORY)
        return (double)entry->memory_bytes;
    double median_ns = (double)entry->median_ns;
    return aim == INF_RACE_THROUGHPUT ? median_ns / inf_device_info(entry->device)->slots
                                      : median_ns;
}

static enum inf_code choose(struct runner *runner, struct inf_error *err)
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
        // The order of the prior decides between equals.
        if (best == NULL ||
            score(lane->entry, race->aim) < score(best->entry, race->aim) * (1 - INF_RACE_TIE))
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

static enum inf_code run_race(struct runner *runner, struct inf_error *err) INF_MAY_BLOCK
{
    for (uint32_t i = 0; i < runner->race->count; i++) {
        runner->lanes[i].entry = &runner->race->entries[i];
        INF_TRY(start_lane(runner, &runner->lanes[i], err));
    }
    judge(runner);
    run_rounds(runner);
    return choose(runner, err);
}

enum inf_code inf_race_run(struct inf_race *race, struct inf_model *model,
                           const struct inf_shape *shapes, uint64_t budget_ns,
                           struct inf_error *err)
{
    inf_role_check_may_block();
    struct runner *runner = calloc(1, sizeof *runner);
    if (runner == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a race");
    *runner =
        (struct runner){.race = race, .model = model, .shapes = shapes, .budget_ns = budget_ns};
    uint64_t begin = inf_clock_ns();
    race->chosen = 0;
    enum inf_code code = run_race(runner, err);
    race->took_ns = inf_clock_ns() - begin;
    for (uint32_t i = 0; i < race->count; i++) {
        inf_trial_fini(&runner->lanes[i].trial);
        inf_model_release(model, &runner->lanes[i].executable);
        if (code != INF_OK || i != race->chosen)
            inf_model_drop(model, race->entries[i].device, shapes);
    }
    free(runner);
    return code;
}
