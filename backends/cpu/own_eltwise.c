// SPDX-License-Identifier: Apache-2.0
// Element-wise kernels of our own: binary with broadcasting, clamping, tanh, sigmoid. XNNPACK
// runs a binary operator on one thread where nothing is broadcast, clamps what is not a number away,
// has no tanh, and its sigmoid of 1e30 is not a number.
#include "backends/cpu/own.h"
#include "backends/cpu/xnn.h"

// Elements that one task computes: 16 KiB of each operand, so that all stay in the first cache.
#define TILE_ELEMENTS 4096

// --- one input ---

struct map {
    inf_simd_map_fn *function; // NULL: clamp
    void (*clamp)(size_t count, const float *x, float *y, float min, float max);
    float min, max;
};

struct map_task {
    const struct map *map;
    const float *x;
    float *y;
};

static void map_tile(const void *context, size_t first, size_t count)
{
    const struct map_task *task = context;
    const struct map *map = task->map;
    if (map->function != NULL)
        map->function(count, task->x + first, task->y + first);
    else
        map->clamp(count, task->x + first, task->y + first, map->min, map->max);
}

static void map_run(const struct inf_cpu_step *step)
{
    struct map_task task = {.map = step->state, .x = step->inputs[0], .y = step->output};
    size_t count = inf_shape_elements(inf_cpu_output_shape(step->graph, step->node));
    inf_own_split(step, &(struct inf_own_split){map_tile, &task, count, TILE_ELEMENTS});
}

void inf_own_map(const struct inf_cpu_step *step, inf_simd_map_fn *function, size_t count,
                 float *values)
{
    struct map map = {.function = function};
    struct map_task task = {.map = &map, .x = values, .y = values};
    inf_own_split(step, &(struct inf_own_split){map_tile, &task, count, TILE_ELEMENTS});
}

// The loop of a function without parameters; NULL where there is none.
static inf_simd_map_fn *map_function(const struct inf_simd *simd, enum inf_unary_kind kind)
{
    switch (kind) {
    case INF_UNARY_TANH:
        return simd->tanh;
    case INF_UNARY_SIGMOID:
        return simd->sigmoid;
    case INF_UNARY_EXP:
        return simd->exp;
    case INF_UNARY_LOG:
        return simd->log;
    case INF_UNARY_ERF:
        return simd->erf;
    case INF_UNARY_SILU:
        return simd->silu;
    case INF_UNARY_GELU:
        return simd->gelu;
    case INF_UNARY_GELU_TANH:
        return simd->gelu_tanh;
    case INF_UNARY_RSQRT:
        return simd->rsqrt;
    case INF_UNARY_RECIPROCAL:
        return simd->reciprocal;
    default:
        return NULL;
    }
}

static enum inf_code map_supports(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (node->op == INF_OP_CLIP)
        return INF_OK;
    switch (node->attrs.unary.kind) {
    case INF_UNARY_RELU:
    case INF_UNARY_RELU6:
        return INF_OK;
    default:
        if (map_function(inf_isa_best()->simd, node->attrs.unary.kind) != NULL)
            return INF_OK;
        return inf_fail(err, INF_UNSUPPORTED, "cpu: unary %s is not built",
                        inf_unary_name(node->attrs.unary.kind));
    }
}

static enum inf_code map_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    INF_TRY(inf_cpu_state(step, sizeof(struct map), err));
    struct map *map = step->state;
    step->run = map_run;
    step->kernel = "clamp";
    map->clamp = step->isa->simd->clamp;
    map->max = __builtin_inff();
    if (node->op == INF_OP_CLIP) {
        map->min = node->attrs.clip.min;
        map->max = node->attrs.clip.max;
    } else if (node->attrs.unary.kind == INF_UNARY_RELU6) {
        map->max = 6.0f;
    } else if (node->attrs.unary.kind != INF_UNARY_RELU) {
        map->function = map_function(step->isa->simd, node->attrs.unary.kind);
        step->kernel = inf_unary_name(node->attrs.unary.kind);
    }
    return INF_OK;
}

// --- two inputs ---

// The loops of a broadcast: axes that both operands walk alike are one axis.
struct binary {
    inf_simd_binary_fn *inner;
    float min, max;
    size_t row;                    // elements of the innermost axis
    size_t row_step_a, row_step_b; // 0 where the operand is a scalar along it, else 1
    int32_t rank;                  // of the axes around it
    size_t rows;                   // their product
    size_t dims[INF_LIMIT_RANK];
    size_t step_a[INF_LIMIT_RANK], step_b[INF_LIMIT_RANK]; // elements; 0 where it stretches
};

struct binary_task {
    const struct binary *binary;
    const float *a, *b;
    float *y;
    size_t rows, columns; // of a tile
};

static enum inf_simd_binary binary_function(enum inf_binary_kind kind)
{
    switch (kind) {
    case INF_BINARY_ADD:
        return INF_SIMD_ADD;
    case INF_BINARY_SUB:
        return INF_SIMD_SUB;
    case INF_BINARY_MUL:
        return INF_SIMD_MUL;
    case INF_BINARY_DIV:
        return INF_SIMD_DIV;
    case INF_BINARY_MIN:
        return INF_SIMD_MIN;
    case INF_BINARY_MAX:
        return INF_SIMD_MAX;
    case INF_BINARY_SQUARED_DIFFERENCE:
        return INF_SIMD_SQUARED_DIFFERENCE;
    default:
        return INF_SIMD_BINARY_COUNT;
    }
}

// Dimension `axis` of y in an operand, aligned at the last one.
static size_t operand_dim(const struct inf_shape *operand, const struct inf_shape *y, int32_t axis)
{
    int32_t own = axis - (y->rank - operand->rank);
    return own < 0 ? 1 : (size_t)operand->dims[own];
}

// Fills dims and steps with the axes of y from the innermost (index 0) outwards, merged.
static void binary_axes(struct binary *binary, const struct inf_shape *a, const struct inf_shape *b,
                        const struct inf_shape *y)
{
    size_t step_a = 1;
    size_t step_b = 1;
    int32_t rank = 0;
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        size_t dim = (size_t)y->dims[axis];
        size_t dim_a = operand_dim(a, y, axis);
        size_t dim_b = operand_dim(b, y, axis);
        if (dim == 1)
            continue;
        size_t next_a = dim_a == 1 ? 0 : step_a;
        size_t next_b = dim_b == 1 ? 0 : step_b;
        bool same = rank > 0 && (next_a == 0) == (binary->step_a[rank - 1] == 0) &&
                    (next_b == 0) == (binary->step_b[rank - 1] == 0);
        if (same) {
            binary->dims[rank - 1] *= dim;
        } else {
            binary->dims[rank] = dim;
            binary->step_a[rank] = next_a;
            binary->step_b[rank++] = next_b;
        }
        step_a *= dim_a;
        step_b *= dim_b;
    }
    binary->rank = rank;
}

static void binary_describe(struct binary *binary, const struct inf_cpu_step *step)
{
    const struct inf_graph *graph = step->graph;
    const struct inf_node *node = step->node;
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    binary_axes(binary, inf_cpu_input_shape(graph, node, 0), inf_cpu_input_shape(graph, node, 1),
                y);
    binary->row = 1;
    if (binary->rank > 0) {
        binary->row = binary->dims[0];
        binary->row_step_a = binary->step_a[0];
        binary->row_step_b = binary->step_b[0];
        binary->rank--;
        for (int32_t i = 0; i < binary->rank; i++) {
            binary->dims[i] = binary->dims[i + 1];
            binary->step_a[i] = binary->step_a[i + 1];
            binary->step_b[i] = binary->step_b[i + 1];
        }
    }
    binary->rows = inf_shape_elements(y) / binary->row;
    enum inf_simd_form form = INF_SIMD_BOTH;
    if (binary->row > 1 && binary->row_step_a == 0)
        form = INF_SIMD_A_SCALAR;
    else if (binary->row > 1 && binary->row_step_b == 0)
        form = INF_SIMD_B_SCALAR;
    binary->inner = step->isa->simd->binary[binary_function(node->attrs.binary.kind)][form];
}

static void binary_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct binary_task *task = context;
    const struct binary *binary = task->binary;
    size_t across = (binary->row + task->columns - 1) / task->columns; // tiles
    size_t column = tile % across * task->columns;
    size_t columns = INF_MIN(task->columns, binary->row - column);
    size_t row = tile / across * task->rows;
    size_t end = INF_MIN(row + task->rows, binary->rows);
    for (size_t i = row; i < end; i++) {
        size_t rest = i;
        size_t a = column * binary->row_step_a;
        size_t b = column * binary->row_step_b;
        for (int32_t axis = 0; axis < binary->rank; axis++) {
            size_t index = rest % binary->dims[axis];
            rest /= binary->dims[axis];
            a += index * binary->step_a[axis];
            b += index * binary->step_b[axis];
        }
        binary->inner(columns, task->a + a, task->b + b, task->y + i * binary->row + column,
                      binary->min, binary->max);
    }
}

static void binary_run(const struct inf_cpu_step *step)
{
    const struct binary *binary = step->state;
    size_t columns = INF_MIN(binary->row, (size_t)TILE_ELEMENTS);
    size_t rows = INF_MIN(binary->rows, TILE_ELEMENTS / columns);
    struct binary_task task = {binary, step->inputs[0], step->inputs[1], step->output,
                               rows,   columns};
    struct inf_own_work work = {binary_tile, &task,
                                (binary->rows + rows - 1) / rows *
                                    ((binary->row + columns - 1) / columns)};
    inf_cpu_team_work(step->team, &work, SIZE_MAX);
}

static struct inf_xnn_activation binary_activation(const struct inf_node *node)
{
    const struct inf_attrs_binary *attrs = &node->attrs.binary;
    return (struct inf_xnn_activation){
        .kind = attrs->activation, .min = attrs->activation_min, .max = attrs->activation_max};
}

static enum inf_code binary_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (binary_function(node->attrs.binary.kind) == INF_SIMD_BINARY_COUNT)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: binary %s is not built",
                        inf_binary_name(node->attrs.binary.kind));
    struct inf_xnn_activation activation = binary_activation(node);
    return inf_xnn_activation_check(graph, node, &activation, UINT32_MAX, 0, err);
}

static enum inf_code binary_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_state(step, sizeof(struct binary), err));
    struct binary *binary = step->state;
    struct inf_xnn_activation activation = binary_activation(step->node);
    step->run = binary_run;
    step->kernel = "binary";
    inf_xnn_activation_bounds(&activation, &binary->min, &binary->max);
    binary_describe(binary, step);
    return inf_xnn_activation_after(step, &activation, NULL, 0, err);
}

const struct inf_cpu_kernel inf_cpu_eltwise_kernels[] = {
    {INF_OP_UNARY, map_supports, map_create},
    {INF_OP_CLIP, map_supports, map_create},
    {INF_OP_BINARY, binary_supports, binary_create},
    {0},
};
