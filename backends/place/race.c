// SPDX-License-Identifier: Apache-2.0
#include "backends/place/race.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "proto/core/span.h"

// A device that took so many times the best one's time drops out.
#define DROP_FACTOR 2u
// Plain loops are not worth a run that takes longer than the budget; this fast they are at least.
#define HOST_MACS_PER_S 200000000u

// A device while it races.
struct lane {
    struct inf_race_entry *entry;
    struct inf_executable *executable;
    struct inf_blob **outputs; // by output of the model
    uint64_t samples_ns[INF_RACE_RUNS_MOST];
    bool racing;
};

struct runner {
    struct inf_race *race;
    struct inf_model *model;
    const struct inf_shape *shapes;
    uint64_t budget_ns;
    uint32_t input_count, output_count;
    struct inf_blob **inputs;
    const void **input_pointers;
    void **output_pointers;
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

// --- what goes in and comes out ---

static enum inf_code no_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a race");
}

static void free_blobs(struct inf_blob **blobs, uint32_t count)
{
    for (uint32_t i = 0; blobs != NULL && i < count; i++)
        inf_blob_unref(&blobs[i]);
    free(blobs);
}

// Memory for every port, for shapes that the executable knows.
static enum inf_code create_blobs(struct inf_blob ***out_blobs, const struct inf_graph *graph,
                                  const struct inf_port *ports, uint32_t count,
                                  struct inf_error *err)
{
    *out_blobs = calloc((size_t)count + 1, sizeof **out_blobs);
    if (*out_blobs == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_value *value = &graph->values[ports[i].value];
        size_t size;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size))
            return inf_fail(err, INF_UNSUPPORTED, "tensor '%s': its size hangs on values",
                            ports[i].name);
        (*out_blobs)[i] = inf_blob_create(size);
        if ((*out_blobs)[i] == NULL)
            return no_memory(err);
    }
    return INF_OK;
}

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

static enum inf_code prepare(struct runner *runner, const struct inf_graph *graph,
                             struct inf_error *err)
{
    runner->input_count = graph->input_count;
    runner->output_count = graph->output_count;
    INF_TRY(create_blobs(&runner->inputs, graph, graph->inputs, graph->input_count, err));
    runner->input_pointers = calloc((size_t)graph->input_count + 1, sizeof(void *));
    runner->output_pointers = calloc((size_t)graph->output_count + 1, sizeof(void *));
    if (runner->input_pointers == NULL || runner->output_pointers == NULL)
        return no_memory(err);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        fill_input(runner->inputs[i], graph->values[graph->inputs[i].value].dtype);
        runner->input_pointers[i] = runner->inputs[i]->data;
    }
    return INF_OK;
}

// --- running ---

static enum inf_code run_lane(struct runner *runner, struct lane *lane, uint64_t *took_ns,
                              struct inf_error *err) INF_MAY_BLOCK
{
    for (uint32_t i = 0; i < runner->output_count; i++)
        runner->output_pointers[i] = lane->outputs[i]->data;
    const struct inf_execution execution = {.inputs = runner->input_pointers,
                                            .outputs = runner->output_pointers};
    uint64_t begin = inf_clock_ns();
    enum inf_code code = inf_executable_run(lane->executable, &execution, err);
    *took_ns = inf_clock_ns() - begin;
    return code;
}

static void refuse(struct lane *lane, enum inf_race_verdict verdict, const char *why)
{
    lane->racing = false;
    lane->entry->verdict = verdict;
    snprintf(lane->entry->why, sizeof lane->entry->why, "%.159s", why);
}

// Compiles for the lane's device and runs once. INF_UNSUPPORTED only where the model cannot race; a
// device that cannot run it drops out.
static enum inf_code start_lane(struct runner *runner, struct lane *lane,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_error why = {0};
    struct inf_device *device = lane->entry->device;
    uint64_t begin = inf_clock_ns(), took_ns;
    if (inf_model_acquire(runner->model, device, runner->shapes, &lane->executable, &why) !=
        INF_OK) {
        refuse(lane, INF_RACE_REFUSED, why.text);
        return INF_OK;
    }
    const struct inf_graph *graph = inf_executable_graph(lane->executable);
    if (runner->inputs == NULL)
        INF_TRY(prepare(runner, graph, err));
    INF_TRY(create_blobs(&lane->outputs, graph, graph->outputs, graph->output_count, err));
    if (inf_device_info(device)->kind == INF_DEVICE_HOST && lane != runner->lanes &&
        inf_graph_cost(graph).macs / HOST_MACS_PER_S * INF_NS_PER_S > runner->budget_ns) {
        refuse(lane, INF_RACE_LEFT_OUT, "plain loops would take longer than the race may");
        return INF_OK;
    }
    if (run_lane(runner, lane, &took_ns, &why) != INF_OK) {
        refuse(lane, INF_RACE_REFUSED, why.text);
        return INF_OK;
    }
    lane->entry->first_ns = inf_clock_ns() - begin;
    lane->racing = true;
    return INF_OK;
}

// --- judging ---

// The first element of `got` that is too far from `wanted`'s; SIZE_MAX where none is. Only floats can
// be apart; everything else is equal or wrong.
static size_t first_wrong(const struct inf_blob *got, const struct inf_blob *wanted,
                          enum inf_dtype dtype)
{
    const float *a = got->data, *b = wanted->data;
    if (dtype != INF_DTYPE_F32) {
        const unsigned char *x = got->data, *y = wanted->data;
        for (size_t i = 0; i < wanted->size_bytes; i++)
            if (x[i] != y[i])
                return i / inf_dtype_size(dtype);
        return SIZE_MAX;
    }
    for (size_t i = 0; i < wanted->size_bytes / sizeof *b; i++) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
            continue;
        double apart = fabs((double)a[i] - (double)b[i]);
        if (!(apart <= INF_RACE_TOLERANCE * fmax(1, fabs((double)b[i]))))
            return i;
    }
    return SIZE_MAX;
}

static void judge_lane(const struct runner *runner, struct lane *lane, const struct lane *judge)
{
    const struct inf_graph *graph = inf_executable_graph(lane->executable);
    for (uint32_t i = 0; i < runner->output_count; i++) {
        const struct inf_port *port = &graph->outputs[i];
        size_t at =
            first_wrong(lane->outputs[i], judge->outputs[i], graph->values[port->value].dtype);
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
    for (uint32_t i = 0; i < runner->race->count; i++)
        if (runner->lanes[i].racing)
            judge = &runner->lanes[i];
    for (uint32_t i = 0; i < runner->race->count; i++)
        if (runner->lanes[i].racing && &runner->lanes[i] != judge)
            judge_lane(runner, &runner->lanes[i], judge);
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
        if (lane->racing && least_ns(lane) / DROP_FACTOR > best)
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
            if (run_lane(runner, lane, &lane->samples_ns[round], &why) != INF_OK)
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
            (double)lane->entry->median_ns < (double)best->entry->median_ns * (1 - INF_RACE_TIE))
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
        return no_memory(err);
    *runner =
        (struct runner){.race = race, .model = model, .shapes = shapes, .budget_ns = budget_ns};
    uint64_t begin = inf_clock_ns();
    race->chosen = 0;
    enum inf_code code = run_race(runner, err);
    race->took_ns = inf_clock_ns() - begin;
    for (uint32_t i = 0; i < race->count; i++) {
        free_blobs(runner->lanes[i].outputs, runner->output_count);
        inf_model_release(model, &runner->lanes[i].executable);
        if (code != INF_OK || i != race->chosen)
            inf_model_drop(model, race->entries[i].device, shapes);
    }
    free_blobs(runner->inputs, runner->input_count);
    free(runner->input_pointers);
    free(runner->output_pointers);
    free(runner);
    return code;
}
