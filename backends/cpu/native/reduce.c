// SPDX-License-Identifier: Apache-2.0
// Sums, means, minima and maxima over neighbouring axes. x is treated as [batch, rows, channels],
// and the rows are reduced. For integers there are sums, minima and maxima, from which models
// compute masks and lengths. Sums of integers wrap around.
#include <math.h>
#include <string.h>

#include "backends/cpu/core/kernel.h"

// The number of channels in one task.
#define TILE_CHANNELS 64
// The approximate number of elements of x in one task.
#define TILE_ELEMENTS ((size_t)8192)

struct reduce {
    const struct inf_simd *simd;
    size_t batch, rows, channels;
    float divisor; // of sums: 1, or `rows` for means
    enum inf_reduce_kind kind;
    inf_element_binary_fn *combine; // for integers: adds a row to the result so far; NULL for f32
    size_t element_bytes;
};

struct reduce_task {
    const struct reduce *reduce;
    const float *x;
    float *y;
    size_t batches; // number of batch items in one tile
};

static uint32_t axes_mask(const struct inf_ints *axes, int32_t rank)
{
    if (axes->count == 0)
        return (1u << rank) - 1;
    uint32_t mask = 0;
    for (int32_t i = 0; i < axes->count; i++) {
        int64_t axis = axes->values[i] < 0 ? axes->values[i] + rank : axes->values[i];
        mask |= 1u << axis;
    }
    return mask;
}

// Describes the node as [batch, rows, channels]. Returns false if the reduced axes are not
// neighbours.
static bool reduce_describe(struct reduce *reduce, const struct inf_graph *graph,
                            const struct inf_node *node)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    uint32_t mask = axes_mask(&node->attrs.reduce.axes, x->rank);
    *reduce = (struct reduce){
        .batch = 1, .rows = 1, .channels = 1, .divisor = 1.0f, .kind = node->attrs.reduce.kind};
    for (int32_t axis = 0; axis < x->rank; axis++) {
        size_t dim = (size_t)x->dims[axis];
        bool reduced = (mask >> axis & 1) != 0;
        if (dim == 1)
            continue;
        if (reduced && reduce->channels > 1)
            return false;
        if (reduced)
            reduce->rows *= dim;
        else if (reduce->rows > 1)
            reduce->channels *= dim;
        else
            reduce->batch *= dim;
    }
    if (node->attrs.reduce.kind == INF_REDUCE_MEAN)
        reduce->divisor = (float)reduce->rows;
    return true;
}

// Returns the loop that combines rows of integers; NULL if there is none.
static inf_element_binary_fn *find_combine(const struct inf_element *loops,
                                           enum inf_reduce_kind kind, enum inf_dtype dtype)
{
    if (dtype != INF_DTYPE_I32 && dtype != INF_DTYPE_I64)
        return NULL;
    switch (kind) {
    case INF_REDUCE_SUM:
        return loops->binary[INF_ELEMENT_ADD][dtype];
    case INF_REDUCE_MAX:
        return loops->binary[INF_ELEMENT_MAX][dtype];
    case INF_REDUCE_MIN:
        return loops->binary[INF_ELEMENT_MIN][dtype];
    default:
        return NULL;
    }
}

static enum inf_code reduce_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    struct reduce reduce;
    enum inf_dtype dtype = graph->values[node->inputs[0]].dtype;
    if (find_combine(inf_isa_best()->element, node->attrs.reduce.kind, dtype) == NULL)
        INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (node->attrs.reduce.kind > INF_REDUCE_MIN)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: reduce: only sum, mean, max, min are built");
    if (!reduce_describe(&reduce, graph, node))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: reduce: axes apart are not built");
    return INF_OK;
}

// Reduces `rows` contiguous elements to one.
static float reduce_row(const struct reduce *reduce, const float *x)
{
    if (reduce->kind == INF_REDUCE_MAX)
        return reduce->simd->max(reduce->rows, x);
    if (reduce->kind == INF_REDUCE_MIN)
        return reduce->simd->min(reduce->rows, x);
    return reduce->simd->sum(reduce->rows, x) / reduce->divisor;
}

static void extreme_rows(const struct reduce *reduce, const float *x, float *y, size_t count)
{
    enum inf_simd_binary which = reduce->kind == INF_REDUCE_MAX ? INF_SIMD_MAX : INF_SIMD_MIN;
    memcpy(y, x, count * sizeof(*y));
    for (size_t row = 1; row < reduce->rows; row++)
        reduce->simd->binary[which][INF_SIMD_BOTH](count, y, x + row * reduce->channels, y,
                                                   -INFINITY, INFINITY);
}

static void reduce_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct reduce_task *task = context;
    const struct reduce *reduce = task->reduce;
    // The number of tiles for one batch item.
    size_t tiles = (reduce->channels + TILE_CHANNELS - 1) / TILE_CHANNELS;
    size_t first = tile % tiles * TILE_CHANNELS;
    size_t count = INF_MIN(TILE_CHANNELS, reduce->channels - first);
    size_t batch = tile / tiles * task->batches;
    size_t end = INF_MIN(batch + task->batches, reduce->batch);
    for (size_t i = batch; i < end; i++) {
        const float *x = task->x + i * reduce->rows * reduce->channels + first;
        float *y = task->y + i * reduce->channels + first;
        if (reduce->channels == 1)
            *y = reduce_row(reduce, x);
        else if (reduce->kind > INF_REDUCE_MEAN)
            extreme_rows(reduce, x, y, count);
        else
            reduce->simd->sum_rows(count, x, reduce->rows, reduce->channels, reduce->divisor, y);
    }
}

static void reduce_run(const struct inf_cpu_step *step)
{
    const struct reduce *reduce = step->state;
    size_t batches = TILE_ELEMENTS / (reduce->rows * reduce->channels) + 1;
    size_t tiles = (reduce->channels + TILE_CHANNELS - 1) / TILE_CHANNELS;
    struct reduce_task task = {reduce, step->inputs[0], step->output, batches};
    struct inf_cpu_tiles work = {reduce_tile, &task,
                                 (reduce->batch + batches - 1) / batches * tiles};
    inf_cpu_team_run_tiles(step->team, &work, SIZE_MAX);
}

static void integers_run(const struct inf_cpu_step *step)
{
    const struct reduce *reduce = step->state;
    size_t row_bytes = reduce->channels * reduce->element_bytes;
    const char *x = step->inputs[0];
    char *y = step->output;
    for (size_t i = 0; i < reduce->batch; i++, y += row_bytes) {
        memcpy(y, x, row_bytes);
        x += row_bytes;
        for (size_t row = 1; row < reduce->rows; row++, x += row_bytes)
            reduce->combine(reduce->channels, x, y, y);
    }
}

static enum inf_code reduce_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct reduce), err));
    struct reduce *reduce = step->state;
    if (!reduce_describe(reduce, step->graph, step->node))
        return inf_fail(err, INF_INTERNAL, "node '%s': axes apart", step->node->name);
    reduce->simd = step->isa->simd;
    enum inf_dtype dtype = step->graph->values[step->node->inputs[0]].dtype;
    reduce->combine = find_combine(step->isa->element, reduce->kind, dtype);
    reduce->element_bytes = inf_dtype_size(dtype);
    step->run = reduce->combine != NULL ? integers_run : reduce_run;
    step->kernel = reduce->combine != NULL ? "reduce_integers"
                   : reduce->channels == 1 ? "reduce_last"
                                           : "reduce_rows";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_reduce_kernels[] = {
    {INF_OP_REDUCE, reduce_supports, reduce_create},
    {0},
};
