// SPDX-License-Identifier: Apache-2.0
// Builds the batch ladder of a model, that is, the list of row counts that are worth batching, by
// running the model. The rows have pseudo-random values that depend only on the position of the
// row, so that the same row can be run alone and in a batch and the results can be compared.
#include "daemon/load/trial/batch_trial.h"

#include <inttypes.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/trial_run.h"

// The run time of a row count is that of the fastest of up to RUNS_MAX runs. No run starts later
// than RUNS_MS milliseconds after the first one.
#define RUNS_MAX 5
#define RUNS_MS  50u
// If a run with one row takes longer than this, no batches are measured, because the runs would
// delay the load too much.
#define SINGLE_MS_MAX 150u
// Allowed difference between a value computed in a batch and the same value computed alone. The two
// differ slightly because kernels may add numbers in another order.
#define TOLERANCE 1e-3

// On a device that computes in host memory, batches are not tried for a model that multiplies at
// least MACS_LARGE times in a run and each weight at least MACS_PER_WEIGHT times: it reads weights
// from the cache already, and a run is so long that waking threads costs nothing. A trial of
// ResNet-50 takes longer than the rest of its load.
#define MACS_LARGE      1e9
#define MACS_PER_WEIGHT 32.0

// The model whose batch ladder is measured, and the time at which the measurement began.
struct measured {
    struct inf_served *served;
    const atomic_bool *cancelled; // ends the trial
    uint64_t begin_ns;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
};

// Returns true if a tensor is a list of rows that can be joined and divided: the first dimension of
// its shape is open (its size is left to the request), all others are fixed, and its elements have
// one size, which strings have not.
static bool is_row_list(const struct inf_value *value)
{
    const struct inf_shape *shape = &value->shape;
    if (value->dtype == INF_DTYPE_BYTES || shape->rank < 1 || shape->dims[0] != INF_DIM_UNKNOWN)
        return false;
    for (int32_t d = 1; d < shape->rank; d++)
        if (shape->dims[d] == INF_DIM_UNKNOWN)
            return false;
    return true;
}

static bool may_batch(const struct inf_graph *graph)
{
    bool open = graph->input_count >= 1 && graph->input_count <= INF_LIMIT_TENSORS &&
                graph->output_count >= 1 && graph->output_count <= INF_LIMIT_TENSORS;
    for (uint32_t i = 0; open && i < graph->input_count; i++)
        open = is_row_list(&graph->values[graph->inputs[i].value]);
    for (uint32_t i = 0; open && i < graph->output_count; i++)
        open = is_row_list(&graph->values[graph->outputs[i].value]);
    return open;
}

// Returns true if the arithmetic of the model is why a run takes long, so that no batch pays.
static bool is_bound_by_arithmetic(const struct inf_served *served)
{
    double macs = (double)served->profile.planned_macs;
    double weights =
        (double)inf_graph_cost(inf_model_graph(served->model)).const_bytes / sizeof(float);
    return inf_device_info(served->device)->host_memory && macs >= MACS_LARGE &&
           macs >= MACS_PER_WEIGHT * weights;
}

// --- filling inputs with rows of test values ---

// Returns a pseudo-random number for one element of one row of an input. The number depends only on
// its arguments, so a row has the same values in every batch.
static uint32_t make_noise(uint32_t input, uint32_t row, size_t element)
{
    uint64_t hash = ((uint64_t)input << 56) ^ ((uint64_t)row << 40) ^ element;
    hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
}

// Fills a row with values that most models accept: floats between -1 and 1, and 0 or 1 for
// integers.
static void fill_row(uint8_t *row, size_t size_bytes, enum inf_dtype dtype, uint32_t input,
                     uint32_t index)
{
    size_t element_bytes = inf_dtype_size(dtype);
    memset(row, 0, size_bytes);
    for (size_t i = 0; i < size_bytes / element_bytes; i++) {
        uint32_t value = make_noise(input, index, i);
        if (dtype == INF_DTYPE_F32)
            ((float *)row)[i] = (float)value / 2147483648.0f - 1.0f;
        else if (dtype == INF_DTYPE_F64)
            ((double *)row)[i] = (double)value / 2147483648.0 - 1.0;
        else if (dtype == INF_DTYPE_F16 || dtype == INF_DTYPE_BF16)
            ((uint16_t *)row)[i] =
                (value & 1) != 0 ? 0x3f00 : 0x3400; // fp16: 1.75 or 0.25; bf16: 0.5 or 2^-23
        else
            row[i * element_bytes] = value & 1;
    }
}

// Returns the bytes of one row of a value (an edge of the graph) that has `rows` rows.
static size_t row_bytes(const struct inf_graph *graph, const struct inf_port *port, uint32_t rows)
{
    const struct inf_value *value = &graph->values[port->value];
    return inf_shape_elements(&value->shape) / rows * inf_dtype_size(value->dtype);
}

// Fills all inputs of a trial run: row i of the batch gets the test values of row `first` + i.
static void fill_rows(const struct inf_trial_run *trial, const struct inf_graph *graph,
                      uint32_t rows, uint32_t first)
{
    for (uint32_t i = 0; i < graph->input_count; i++) {
        size_t size = row_bytes(graph, &graph->inputs[i], rows);
        enum inf_dtype dtype = graph->values[graph->inputs[i].value].dtype;
        for (uint32_t k = 0; k < rows; k++)
            fill_row((uint8_t *)trial->pointers[i] + k * size, size, dtype, i, first + k);
    }
}

// --- measuring one row count (a rung of the batch ladder) ---

// One measured row count: an executable for `rows` rows, and the memory to run it.
struct rung {
    uint32_t rows;
    struct inf_executable *executable;
    struct inf_trial_run trial;
    uint64_t bytes; // size of all inputs and outputs of one run
};

// Returns true if every output has as many rows as the inputs.
static bool has_batch_rows(const struct inf_graph *graph, uint32_t rows)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_shape *shape = &graph->values[graph->outputs[i].value].shape;
        if (!inf_shape_known(shape) || shape->rank < 1 || shape->dims[0] != rows)
            return false;
    }
    return true;
}

static uint64_t count_bytes(const struct inf_graph *graph, uint32_t rows)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < graph->input_count; i++)
        bytes += row_bytes(graph, &graph->inputs[i], rows) * rows;
    for (uint32_t i = 0; i < graph->output_count; i++)
        bytes += row_bytes(graph, &graph->outputs[i], rows) * rows;
    return bytes;
}

static void release_rung(struct measured *measured, struct rung *rung)
{
    inf_trial_run_fini(&rung->trial);
    inf_model_release(measured->served->model, &rung->executable);
}

static bool acquire_rung(struct measured *measured, struct rung *rung, uint32_t rows)
{
    struct inf_served *served = measured->served;
    const struct inf_graph *whole = inf_model_graph(served->model);
    for (uint32_t i = 0; i < whole->input_count; i++) {
        measured->shapes[i] = whole->values[whole->inputs[i].value].shape;
        measured->shapes[i].dims[0] = rows;
    }
    *rung = (struct rung){.rows = rows};
    if (inf_model_acquire(served->model, served->device, measured->shapes, &rung->executable,
                          NULL) != INF_OK)
        return false;
    const struct inf_graph *graph = inf_executable_graph(rung->executable);
    // An interpreted model allocates memory in every run and gains nothing from more rows, so do
    // not measure it.
    if (inf_executable_interpreted_nodes(rung->executable) == 0 && has_batch_rows(graph, rows) &&
        inf_trial_run_init(&rung->trial, graph, NULL) == INF_OK) {
        rung->bytes = count_bytes(graph, rows);
        return true;
    }
    release_rung(measured, rung);
    return false;
}

// Runs the model a few times and stores the shortest run time in *best_ns. Returns false if a run
// fails.
static bool time_run(const struct measured *measured, const struct rung *rung, uint64_t *best_ns)
{
    uint64_t all_ns = 0;
    *best_ns = UINT64_MAX;
    for (int i = 0; i < RUNS_MAX && all_ns < RUNS_MS * INF_NS_PER_MS; i++) {
        uint64_t took_ns;
        if (inf_trial_run_execute_cancellable(&rung->trial, rung->executable, measured->cancelled,
                                              &took_ns, NULL) != INF_OK)
            return false;
        *best_ns = INF_MIN(*best_ns, took_ns);
        all_ns += took_ns;
    }
    *best_ns = INF_MAX(*best_ns, 1);
    return true;
}

// Runs the model with row `row` alone. Returns true if the result is the same as that of this row
// in the last batch.
static bool is_same_alone(const struct rung *rung, const struct rung *single, uint32_t row)
{
    const struct inf_graph *graph = inf_executable_graph(single->executable);
    fill_rows(&single->trial, graph, 1, row);
    if (inf_trial_run_execute(&single->trial, single->executable, NULL, NULL) != INF_OK)
        return false;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        size_t size = row_bytes(graph, &graph->outputs[i], 1);
        const uint8_t *whole = rung->trial.pointers[graph->input_count + i];
        if (inf_trial_run_find_difference(
                whole + row * size, single->trial.pointers[graph->input_count + i], size,
                graph->values[graph->outputs[i].value].dtype, TOLERANCE) != SIZE_MAX)
            return false;
    }
    return true;
}

// --- building the batch ladder ---

static void add_rung(struct inf_batch_ladder *ladder, const struct rung *rung, uint64_t run_ns)
{
    ladder->rungs[ladder->count++] = (struct inf_batch_rung){.rows = rung->rows, .run_ns = run_ns};
    ladder->bytes = rung->bytes;
}

// Measures runs with this number of rows, and adds the row count to the ladder if the time per row
// shrinks enough and no row has another result than alone. Returns false if it is not added.
static bool try_rung(struct measured *measured, const struct rung *single, uint32_t rows)
{
    struct inf_batch_ladder *ladder = &measured->served->ladder;
    struct rung rung;
    uint64_t run_ns = 0;
    if (single->bytes * rows > INF_BATCH_BYTES_MAX || !acquire_rung(measured, &rung, rows))
        return false;
    fill_rows(&rung.trial, inf_executable_graph(rung.executable), rows, 0);
    bool pays = time_run(measured, &rung, &run_ns) && inf_batch_ladder_pays(ladder, rows, run_ns) &&
                is_same_alone(&rung, single, 0) && is_same_alone(&rung, single, rows - 1);
    if (pays)
        add_rung(ladder, &rung, run_ns);
    release_rung(measured, &rung);
    if (!pays)
        inf_model_drop(measured->served->model, measured->served->device, measured->shapes);
    return pays;
}

static void log_ladder(const struct inf_served *served, const struct inf_log *log)
{
    const struct inf_batch_rung *last = &served->ladder.rungs[served->ladder.count - 1];
    inf_log(log, INF_LOG_INFO,
            "model runs in batches name=%s rows=%u row_us=%" PRIu64 " row_alone_us=%" PRIu64,
            served->name, last->rows, last->run_ns / last->rows / 1000,
            served->ladder.rungs[0].run_ns / 1000);
}

bool inf_batch_trial_compile(struct inf_served *served)
{
    struct measured measured = {.served = served};
    for (uint32_t i = 0; i < served->ladder.count; i++) {
        struct rung rung;
        if (!may_batch(inf_model_graph(served->model)) ||
            !acquire_rung(&measured, &rung, served->ladder.rungs[i].rows)) {
            served->ladder.count = 0;
            return false;
        }
        release_rung(&measured, &rung);
    }
    return true;
}

void inf_batch_trial_run(struct inf_served *served, uint32_t rows_max, const atomic_bool *cancelled,
                         const struct inf_log *log)
{
    struct measured measured = {
        .served = served, .cancelled = cancelled, .begin_ns = inf_clock_ns()};
    struct inf_batch_ladder *ladder = &served->ladder;
    struct rung single;
    uint64_t run_ns;
    ladder->count = 0;
    if (rows_max < 2 || !may_batch(inf_model_graph(served->model)) ||
        is_bound_by_arithmetic(served) || !acquire_rung(&measured, &single, 1))
        return;
    fill_rows(&single.trial, inf_executable_graph(single.executable), 1, 0);
    if (time_run(&measured, &single, &run_ns) && run_ns < SINGLE_MS_MAX * INF_NS_PER_MS) {
        add_rung(ladder, &single, run_ns);
        for (uint32_t rows = 2; rows <= INF_MIN(rows_max, INF_BATCH_ROWS_MAX); rows *= 2)
            if (inf_clock_ns() - measured.begin_ns > INF_BATCH_TRIAL_MS * INF_NS_PER_MS ||
                !try_rung(&measured, &single, rows))
                break;
    }
    release_rung(&measured, &single);
    if (ladder->count < 2)
        ladder->count = 0;
    else
        log_ladder(served, log);
}
