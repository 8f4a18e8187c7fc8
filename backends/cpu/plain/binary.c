// SPDX-License-Identifier: Apache-2.0
// Operator binary on FP32 and FP64 for the functions that the vector loops do not have: divisions
// with a rule of their own in FP32, and arithmetic in FP64. Results are computed in double and
// rounded once, as ref does.
#include <math.h>

#include "backends/cpu/native/broadcast.h"
#include "backends/cpu/native/work.h"

#define TILE_ELEMENTS ((size_t)4 << 10)

typedef void row_fn(size_t count, const void *a, size_t a_step, const void *b, size_t b_step,
                    void *y);

static double floor_mod(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double pick_smaller(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : b < a ? b : a;
}

static double pick_larger(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : b > a ? b : a;
}

// The loop over a row for one function and one element type.
#define ROW(name, type, expression)                                                                \
    static void name##_##type(size_t count, const void *a_row, size_t a_step, const void *b_row,   \
                              size_t b_step, void *y_row)                                          \
    {                                                                                              \
        const type *from_a = a_row, *from_b = b_row;                                               \
        type *y = y_row;                                                                           \
        for (size_t i = 0; i < count; i++) {                                                       \
            double a = (double)from_a[i * a_step], b = (double)from_b[i * b_step];                 \
            y[i] = (type)(expression);                                                             \
        }                                                                                          \
    }

#define ROWS(name, expression)                                                                     \
    ROW(name, float, expression)                                                                   \
    ROW(name, double, expression)

ROWS(div_no_nan, b == 0 ? 0 : a / b)
ROWS(floor_div, floor(a / b))
ROWS(floor_mod, floor_mod(a, b))
ROWS(mod, fmod(a, b))
ROWS(atan2, atan2(a, b))
ROW(add, double, a + b)
ROW(sub, double, a - b)
ROW(mul, double, a *b)
ROW(div, double, a / b)
ROW(pow, double, pow(a, b))
ROW(min, double, pick_smaller(a, b))
ROW(max, double, pick_larger(a, b))
ROW(squared_difference, double, (a - b) * (a - b))

static row_fn *find_row(enum inf_binary_kind kind, enum inf_dtype dtype)
{
    static row_fn *const rows[INF_BINARY_COUNT][2] = {
        [INF_BINARY_DIV_NO_NAN] = {div_no_nan_float, div_no_nan_double},
        [INF_BINARY_FLOOR_DIV] = {floor_div_float, floor_div_double},
        [INF_BINARY_FLOOR_MOD] = {floor_mod_float, floor_mod_double},
        [INF_BINARY_MOD] = {mod_float, mod_double},
        [INF_BINARY_ATAN2] = {atan2_float, atan2_double},
        [INF_BINARY_ADD] = {NULL, add_double},
        [INF_BINARY_SUB] = {NULL, sub_double},
        [INF_BINARY_MUL] = {NULL, mul_double},
        [INF_BINARY_DIV] = {NULL, div_double},
        [INF_BINARY_POW] = {NULL, pow_double},
        [INF_BINARY_MIN] = {NULL, min_double},
        [INF_BINARY_MAX] = {NULL, max_double},
        [INF_BINARY_SQUARED_DIFFERENCE] = {NULL, squared_difference_double},
    };
    bool is_float = dtype == INF_DTYPE_F32 || dtype == INF_DTYPE_F64;
    return is_float ? rows[kind][dtype == INF_DTYPE_F64] : NULL;
}

struct binary {
    struct inf_native_broadcast broadcast;
    row_fn *row;
    size_t size; // bytes of an element
};

struct binary_task {
    const struct binary *binary;
    const char *a, *b;
    char *y;
};

static void binary_rows(const void *context, size_t first, size_t count)
{
    const struct binary_task *task = context;
    const struct inf_native_broadcast *broadcast = &task->binary->broadcast;
    size_t size = task->binary->size;
    struct inf_native_broadcast_walk walk;
    inf_native_broadcast_start(&walk, broadcast, first);
    for (size_t row = first; row < first + count;
         row++, inf_native_broadcast_next(&walk, broadcast))
        task->binary->row(broadcast->row, task->a + walk.at[0] * size, broadcast->row_step[0],
                          task->b + walk.at[1] * size, broadcast->row_step[1],
                          task->y + row * broadcast->row * size);
}

static void binary_run(const struct inf_cpu_step *step)
{
    const struct binary *binary = step->state;
    struct binary_task task = {binary, step->inputs[0], step->inputs[1], step->output};
    inf_native_run_range(step,
                         &(struct inf_native_range){binary_rows, &task, binary->broadcast.rows,
                                                    TILE_ELEMENTS / binary->broadcast.row + 1});
}

static enum inf_code binary_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    enum inf_dtype dtype = graph->values[node->inputs[0]].dtype;
    enum inf_binary_kind kind = node->attrs.binary.kind;
    if (find_row(kind, dtype) == NULL || node->attrs.binary.activation != INF_ACTIVATION_NONE)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: binary %s of %s is not built",
                        inf_binary_name(kind), inf_dtype_name(dtype));
    return INF_OK;
}

static enum inf_code binary_create(struct inf_cpu_step *step, struct inf_error *err)
{
    enum inf_dtype dtype = step->graph->values[step->node->inputs[0]].dtype;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct binary), err));
    struct binary *binary = step->state;
    inf_native_broadcast_init(&binary->broadcast, step->graph, step->node, 2);
    binary->row = find_row(step->node->attrs.binary.kind, dtype);
    binary->size = inf_dtype_size(dtype);
    step->run = binary_run;
    step->kernel = "plain_binary";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_plain_binary_kernels[] = {
    {INF_OP_BINARY, binary_supports, binary_create},
    {0},
};
