// SPDX-License-Identifier: Apache-2.0
// Operator reduce on bools, integers and FP64, over axes that are neighbours: x is [outer, rows,
// columns], and the rows become one. Rows are combined in their order, so that sums of FP64 are
// those of ref. Sums and products of integers wrap.
#include <math.h>
#include <string.h>

#include "backends/cpu/native/work.h"

#define TILE_ELEMENTS ((size_t)16 << 10)

typedef void reduce_fn(size_t rows, size_t columns, const void *x, void *y);

// The loop of one function and one element type: y begins as the first row.
#define REDUCE(name, type, first, expression)                                                      \
    static void name##_##type(size_t rows, size_t columns, const void *from, void *to)             \
    {                                                                                              \
        const type *x = from;                                                                      \
        type *restrict y = to;                                                                     \
        for (size_t i = 0; i < columns; i++) {                                                     \
            type b = x[i];                                                                         \
            y[i] = (first);                                                                        \
        }                                                                                          \
        if (columns == 1) {                                                                        \
            type a = y[0];                                                                         \
            for (size_t row = 1; row < rows; row++) {                                              \
                type b = x[row];                                                                   \
                a = (expression);                                                                  \
            }                                                                                      \
            y[0] = a;                                                                              \
            return;                                                                                \
        }                                                                                          \
        for (size_t row = 1; row < rows; row++)                                                    \
            for (size_t i = 0; i < columns; i++) {                                                 \
                type a = y[i], b = x[row * columns + i];                                           \
                y[i] = (expression);                                                               \
            }                                                                                      \
    }

#define REDUCE_NUMBERS(type)                                                                       \
    REDUCE(sum, type, b, a + b)                                                                    \
    REDUCE(prod, type, b, a *b)

#define REDUCE_ORDERED(type)                                                                       \
    REDUCE(max, type, b, b > a ? b : a)                                                            \
    REDUCE(min, type, b, b < a ? b : a)

REDUCE_NUMBERS(uint32_t)
REDUCE_NUMBERS(uint64_t)
REDUCE_NUMBERS(double)
REDUCE_ORDERED(int32_t)
REDUCE_ORDERED(int64_t)
REDUCE_ORDERED(uint8_t)
REDUCE_ORDERED(int8_t)
REDUCE(any, uint8_t, b != 0, a | (b != 0))
REDUCE(all, uint8_t, b != 0, a &(b != 0))

static reduce_fn *find_loop(enum inf_reduce_kind kind, enum inf_dtype dtype)
{
    static reduce_fn *const loops[INF_REDUCE_COUNT][INF_DTYPE_COUNT] = {
        [INF_REDUCE_SUM] = {[INF_DTYPE_I32] = sum_uint32_t,
                            [INF_DTYPE_I64] = sum_uint64_t,
                            [INF_DTYPE_F64] = sum_double},
        [INF_REDUCE_MEAN] = {[INF_DTYPE_F64] = sum_double},
        [INF_REDUCE_PROD] = {[INF_DTYPE_I32] = prod_uint32_t,
                             [INF_DTYPE_I64] = prod_uint64_t,
                             [INF_DTYPE_F64] = prod_double},
        [INF_REDUCE_MAX] = {[INF_DTYPE_I32] = max_int32_t,
                            [INF_DTYPE_I64] = max_int64_t,
                            [INF_DTYPE_U8] = max_uint8_t,
                            [INF_DTYPE_I8] = max_int8_t},
        [INF_REDUCE_MIN] = {[INF_DTYPE_I32] = min_int32_t,
                            [INF_DTYPE_I64] = min_int64_t,
                            [INF_DTYPE_U8] = min_uint8_t,
                            [INF_DTYPE_I8] = min_int8_t},
        [INF_REDUCE_ANY] = {[INF_DTYPE_BOOL] = any_uint8_t},
        [INF_REDUCE_ALL] = {[INF_DTYPE_BOOL] = all_uint8_t},
    };
    return loops[kind][dtype];
}

struct reduce {
    size_t outer, rows, columns;
    size_t size; // bytes of an element
    reduce_fn *loop;
    bool mean;
};

struct reduce_task {
    const struct reduce *reduce;
    const char *x;
    char *y;
};

static void reduce_part(const void *context, size_t first, size_t count)
{
    const struct reduce_task *task = context;
    const struct reduce *op = task->reduce;
    for (size_t outer = first; outer < first + count; outer++) {
        char *y = task->y + outer * op->columns * op->size;
        op->loop(op->rows, op->columns, task->x + outer * op->rows * op->columns * op->size, y);
        for (size_t i = 0; op->mean && i < op->columns; i++)
            ((double *)(void *)y)[i] /= (double)op->rows;
    }
}

static void reduce_run(const struct inf_cpu_step *step)
{
    const struct reduce *op = step->state;
    struct reduce_task task = {op, step->inputs[0], step->output};
    inf_native_run_range(step,
                         &(struct inf_native_range){reduce_part, &task, op->outer,
                                                    TILE_ELEMENTS / (op->rows * op->columns) + 1});
}

// Sets the sizes of the merged axes. Returns false if the reduced axes are no neighbours; axes of
// size 1 are ignored.
static bool merge_axes(const struct inf_graph *graph, const struct inf_node *node,
                       struct reduce *op)
{
    const struct inf_ints *axes = &node->attrs.reduce.axes;
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    bool reduced[INF_LIMIT_RANK] = {false};
    op->outer = op->rows = op->columns = 1;
    for (int32_t i = 0; i < x->rank; i++)
        reduced[i] = axes->count == 0;
    for (int32_t i = 0; i < axes->count; i++)
        reduced[axes->values[i] < 0 ? axes->values[i] + x->rank : axes->values[i]] = true;
    int state = 0; // 0: before the reduced axes, 1: among them, 2: after them
    for (int32_t i = 0; i < x->rank; i++) {
        if (x->dims[i] == 1)
            continue;
        if (reduced[i] && state == 2)
            return false;
        state = reduced[i] ? 1 : state == 0 ? 0 : 2;
        *(state == 0 ? &op->outer : state == 1 ? &op->rows : &op->columns) *= (size_t)x->dims[i];
    }
    return true;
}

static enum inf_code reduce_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    enum inf_dtype dtype = graph->values[node->inputs[0]].dtype;
    struct reduce op;
    if (find_loop(node->attrs.reduce.kind, dtype) == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: reduce of this kind of %s is not built",
                        inf_dtype_name(dtype));
    if (!merge_axes(graph, node, &op))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: reduce of %s over axes apart is not built",
                        inf_dtype_name(dtype));
    return INF_OK;
}

static enum inf_code reduce_create(struct inf_cpu_step *step, struct inf_error *err)
{
    enum inf_dtype dtype = step->graph->values[step->node->inputs[0]].dtype;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct reduce), err));
    struct reduce *op = step->state;
    (void)merge_axes(step->graph, step->node, op);
    op->size = inf_dtype_size(dtype);
    op->loop = find_loop(step->node->attrs.reduce.kind, dtype);
    op->mean = step->node->attrs.reduce.kind == INF_REDUCE_MEAN;
    step->run = reduce_run;
    step->kernel = "plain_reduce";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_plain_reduce_kernels[] = {
    {INF_OP_REDUCE, reduce_supports, reduce_create},
    {0},
};
