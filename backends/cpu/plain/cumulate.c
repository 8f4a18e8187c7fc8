// SPDX-License-Identifier: Apache-2.0
// Operator cumulate on FP32 and 32-bit integers. x is [outer, rows, columns]; the rows are summed
// or multiplied. The rows are read one after the other, so that the inner loop over columns reads
// and writes neighbours. Floats are summed in double, as ref does.
#include "backends/cpu/native/work.h"

// The most columns that one task computes.
#define TILE_COLUMNS ((size_t)64)

struct cumulate {
    size_t rows, columns, tiles; // tiles: tasks for the columns of one outer index
    size_t outer;
    bool is_float, product, exclusive, reverse;
};

struct cumulate_task {
    const struct cumulate *cumulate;
    const char *x;
    char *y;
};

// Computes `count` columns of one outer index. x and y point to the first of them.
static void cumulate_floats(const struct cumulate *op, const float *x, float *y, size_t count)
{
    double total[TILE_COLUMNS];
    for (size_t i = 0; i < count; i++)
        total[i] = op->product ? 1 : 0;
    for (size_t step = 0; step < op->rows; step++) {
        size_t at = (op->reverse ? op->rows - 1 - step : step) * op->columns;
        for (size_t i = 0; i < count; i++) {
            double before = total[i], value = (double)x[at + i];
            total[i] = op->product ? before * value : before + value;
            y[at + i] = (float)(op->exclusive ? before : total[i]);
        }
    }
}

static void cumulate_ints(const struct cumulate *op, const uint32_t *x, uint32_t *y, size_t count)
{
    uint32_t total[TILE_COLUMNS]; // wraps as two's complement does
    for (size_t i = 0; i < count; i++)
        total[i] = op->product ? 1 : 0;
    for (size_t step = 0; step < op->rows; step++) {
        size_t at = (op->reverse ? op->rows - 1 - step : step) * op->columns;
        for (size_t i = 0; i < count; i++) {
            uint32_t before = total[i], value = x[at + i];
            total[i] = op->product ? before * value : before + value;
            y[at + i] = op->exclusive ? before : total[i];
        }
    }
}

static void cumulate_tiles(const void *context, size_t first, size_t count)
{
    const struct cumulate_task *task = context;
    const struct cumulate *op = task->cumulate;
    for (size_t tile = first; tile < first + count; tile++) {
        size_t column = tile % op->tiles * TILE_COLUMNS;
        size_t at = (tile / op->tiles * op->rows * op->columns + column) * sizeof(float);
        size_t some = INF_MIN(op->columns - column, TILE_COLUMNS);
        if (op->is_float)
            cumulate_floats(op, (const float *)(const void *)(task->x + at),
                            (float *)(void *)(task->y + at), some);
        else
            cumulate_ints(op, (const uint32_t *)(const void *)(task->x + at),
                          (uint32_t *)(void *)(task->y + at), some);
    }
}

static void cumulate_run(const struct inf_cpu_step *step)
{
    const struct cumulate *op = step->state;
    struct cumulate_task task = {op, step->inputs[0], step->output};
    size_t each = op->rows * INF_MIN(op->columns, TILE_COLUMNS);
    inf_native_run_range(step,
                         &(struct inf_native_range){cumulate_tiles, &task, op->outer * op->tiles,
                                                    ((size_t)16 << 10) / each + 1});
}

static enum inf_code cumulate_supports(const struct inf_graph *graph, const struct inf_node *node,
                                       struct inf_error *err)
{
    enum inf_dtype dtype = graph->values[node->inputs[0]].dtype;
    if (dtype != INF_DTYPE_F32 && dtype != INF_DTYPE_I32 && dtype != INF_DTYPE_U32)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: cumulate of %s is not built",
                        inf_dtype_name(dtype));
    return INF_OK;
}

static enum inf_code cumulate_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_attrs_cumulate *attrs = &step->node->attrs.cumulate;
    const struct inf_value *x = &step->graph->values[step->node->inputs[0]];
    int32_t axis = attrs->axis < 0 ? attrs->axis + x->shape.rank : attrs->axis;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct cumulate), err));
    struct cumulate *op = step->state;
    *op = (struct cumulate){.rows = (size_t)x->shape.dims[axis],
                            .columns = inf_cpu_extent(&x->shape, axis + 1, x->shape.rank),
                            .outer = inf_cpu_extent(&x->shape, 0, axis),
                            .is_float = x->dtype == INF_DTYPE_F32,
                            .product = attrs->kind == INF_CUMULATE_PROD,
                            .exclusive = attrs->exclusive,
                            .reverse = attrs->reverse};
    op->tiles = (op->columns + TILE_COLUMNS - 1) / TILE_COLUMNS;
    step->run = cumulate_run;
    step->kernel = "cumulate";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_cumulate_kernels[] = {
    {INF_OP_CUMULATE, cumulate_supports, cumulate_create},
    {0},
};
