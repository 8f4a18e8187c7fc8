// SPDX-License-Identifier: Apache-2.0
// Finds which sizes of a graph's inputs contain the length of the history. Outputs that append rows
// to an input are found by their nodes. For the other inputs, such as a mask over all tokens, sizes
// are tried: first all open sizes are those of the new tokens, and then one or two of them are
// those of all tokens, until the shapes go together.
#include <string.h>

#include "backends/graph/history/append.h"
#include "backends/graph/history/sample.h"

// The history and the new tokens of a trial. Both numbers are unlikely to occur in a model.
#define TRIAL_LENGTH 37
#define TRIAL_ROWS   3
#define TRIALS_MAX   64 // most trials for one graph, so that a file with many inputs loads in time

// Returns the input that is `value`; input_count if none is.
static uint32_t find_input(const struct inf_graph *graph, uint32_t value)
{
    uint32_t input = 0;
    while (input < graph->input_count && graph->inputs[input].value != value)
        input++;
    return input;
}

// Records the inputs to which an output appends rows.
static void find_appended(const struct inf_graph *graph, struct inf_history *history)
{
    for (uint32_t i = 0; i < graph->output_count; i++) {
        struct inf_history_append append;
        if (!inf_history_find_append(graph, graph->outputs[i].value, &append))
            continue;
        uint32_t input = find_input(graph, append.input);
        if (input == graph->input_count || history->outputs[input] != INF_HISTORY_NONE ||
            history->caches[input] != INF_HISTORY_NONE)
            continue;
        if (append.grows) {
            history->outputs[input] = (uint8_t)i;
            history->axes[input] = (uint8_t)append.axis;
            history->checks_positions |= append.positions != INF_VALUE_NONE;
            history->grows = true;
        }
        if (append.overwrites) {
            history->caches[input] = (uint8_t)i;
            history->cache_axes[input] = (uint8_t)append.axis;
            history->cache_rings[input] = append.ring;
            history->cache_zeros[input] = append.kept != INF_VALUE_NONE;
            history->has_caches = true;
        }
    }
    // A run either appends rows to all inputs or writes over all.
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (history->outputs[i] != INF_HISTORY_NONE && history->caches[i] == INF_HISTORY_NONE)
            history->has_caches = false;
}

// The open sizes of the inputs that each request gives, without the first axis, which is the batch.
struct open_size {
    uint8_t input, axis;
};

static uint32_t list_open_sizes(const struct inf_graph *graph, const struct inf_history *history,
                                struct open_size *sizes, uint32_t capacity)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_shape *shape = &graph->values[graph->inputs[i].value].shape;
        for (int32_t axis = 1; axis < shape->rank; axis++)
            if (history->outputs[i] == INF_HISTORY_NONE && shape->dims[axis] == INF_DIM_UNKNOWN &&
                count < capacity)
                sizes[count++] = (struct open_size){(uint8_t)i, (uint8_t)axis};
    }
    return count;
}

// A search for the sizes that contain the length.
struct search {
    const struct inf_graph *graph;
    const struct inf_evaluator *evaluator;
    struct inf_history *history; // trials set its `axes`
    int64_t rows;                // new rows in each output that appends
    bool fits;                   // the last trial gave the graph consistent shapes
};

// Tries the axes of search->history. Sets search->fits to whether the graph has consistent shapes
// for them, with search->rows new rows in each output that appends.
//
// INF_EXHAUSTED  no memory, which says nothing about the graph.
static enum inf_code try_axes(struct search *search, struct inf_error *err)
{
    const struct inf_graph *graph = search->graph;
    const struct inf_history *history = search->history;
    const int64_t rows = search->rows;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct inf_graph *sample = NULL;
    struct inf_error why = {0};
    search->fits = false;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        shapes[i] = graph->values[graph->inputs[i].value].shape;
        if (shapes[i].rank < 0)
            return INF_OK;
        for (int32_t axis = 0; axis < shapes[i].rank; axis++) {
            if (shapes[i].dims[axis] != INF_DIM_UNKNOWN)
                continue;
            bool state = history->outputs[i] != INF_HISTORY_NONE;
            shapes[i].dims[axis] = axis == 0 ? 1 : rows;
            if (history->axes[i] == axis)
                shapes[i].dims[axis] = state ? TRIAL_LENGTH : TRIAL_LENGTH + rows;
        }
    }
    enum inf_code code = inf_history_sample(graph, search->evaluator, shapes, &sample, &why);
    if (code == INF_EXHAUSTED) {
        if (err != NULL)
            *err = why;
        return code;
    }
    bool good = code == INF_OK;
    for (uint32_t i = 0; good && i < graph->input_count; i++) {
        if (history->outputs[i] == INF_HISTORY_NONE)
            continue;
        uint32_t output = sample->outputs[history->outputs[i]].value;
        good = sample->values[output].shape.dims[history->axes[i]] == TRIAL_LENGTH + rows;
    }
    inf_graph_destroy(&sample);
    search->fits = good;
    return INF_OK;
}

// Tries to let two open sizes contain the length, or one if `a` and `b` are the same size.
static enum inf_code try_sizes(struct search *search, const struct open_size *a,
                               const struct open_size *b, struct inf_error *err)
{
    uint8_t *axes = search->history->axes;
    axes[a->input] = a->axis;
    axes[b->input] = b->axis;
    enum inf_code code = try_axes(search, err);
    if (!search->fits)
        axes[a->input] = axes[b->input] = INF_HISTORY_NONE;
    return code;
}

// Tries to let no, one or two of the open sizes contain the length, in this order: if a mask alone
// fits, the mask and the queries may fit too. Ends with the first trial that fits.
static enum inf_code find_given(struct search *search, struct inf_error *err)
{
    struct open_size sizes[2 * INF_LIMIT_TENSORS];
    uint32_t trials = 0;
    uint32_t count =
        list_open_sizes(search->graph, search->history, sizes, INF_ARRAY_LENGTH(sizes));
    INF_TRY(try_axes(search, err));
    for (uint32_t i = 0; i < count && trials < TRIALS_MAX && !search->fits; i++, trials++)
        INF_TRY(try_sizes(search, &sizes[i], &sizes[i], err));
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i && trials < TRIALS_MAX && !search->fits; k++) {
            if (sizes[k].input == sizes[i].input)
                continue;
            trials++;
            INF_TRY(try_sizes(search, &sizes[i], &sizes[k], err));
        }
    return INF_OK;
}

enum inf_code inf_history_find(const struct inf_graph *graph, const struct inf_evaluator *evaluator,
                               struct inf_history *history, bool *out_found, struct inf_error *err)
{
    *out_found = false;
    memset(history->axes, INF_HISTORY_NONE, sizeof history->axes);
    memset(history->outputs, INF_HISTORY_NONE, sizeof history->outputs);
    memset(history->caches, INF_HISTORY_NONE, sizeof history->caches);
    history->checks_positions = history->grows = history->has_caches = false;
    if (graph->input_count >= INF_LIMIT_TENSORS || graph->output_count > INF_LIMIT_TENSORS ||
        graph->subgraph_count > 0 || evaluator->run == NULL)
        return INF_OK;
    find_appended(graph, history);
    if (!history->grows) {
        *out_found = history->has_caches;
        return INF_OK;
    }
    struct search search = {
        .graph = graph, .evaluator = evaluator, .history = history, .rows = TRIAL_ROWS};
    INF_TRY(find_given(&search, err));
    if (!search.fits) {
        search.rows = 1; // a model may take one token at a time only
        INF_TRY(find_given(&search, err));
    }
    *out_found = search.fits;
    return INF_OK;
}

bool inf_history_overwrites(const struct inf_history_request *request)
{
    const struct inf_history *history = request->history;
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++)
        if (history->outputs[i] != INF_HISTORY_NONE)
            return history->has_caches && request->shapes[i].dims[history->axes[i]] != 0;
    return history->has_caches;
}
