// SPDX-License-Identifier: Apache-2.0
// Element-wise kernels for f32: binary operators with broadcasting, clamping, and functions such as
// tanh and sigmoid. XNNPACK is not used, because it runs a binary operator without broadcasting on
// one thread, clamps NaN, has no tanh, and returns NaN for the sigmoid of 1e30.
#include "backends/cpu/native/eltwise.h"
#include "backends/cpu/core/activation.h"
#include "backends/cpu/native/broadcast.h"
#include "backends/cpu/native/work.h"
#include "backends/cpu/xnnpack/unary_operator.h"

// Elements of one tile: 16 KiB of each operand, so that all operands stay in the L1 cache.
#define TILE_ELEMENTS 4096

// --- functions of one input ---

struct map {
    inf_simd_map_fn *function; // NULL: the step clamps x to [min, max]
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
    inf_native_run_range(step, &(struct inf_native_range){map_tile, &task, count, TILE_ELEMENTS});
}

void inf_native_map_in_place(const struct inf_cpu_step *step, inf_simd_map_fn *function,
                             size_t count, float *values)
{
    struct map map = {.function = function};
    struct map_task task = {.map = &map, .x = values, .y = values};
    inf_native_run_range(step, &(struct inf_native_range){map_tile, &task, count, TILE_ELEMENTS});
}

inf_simd_map_fn *inf_native_map_find(const struct inf_simd *simd, enum inf_unary_kind kind)
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
    case INF_UNARY_SIN:
        return simd->sin;
    case INF_UNARY_COS:
        return simd->cos;
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
        if (inf_native_map_find(inf_isa_best()->simd, node->attrs.unary.kind) != NULL)
            return INF_OK;
        return inf_fail(err, INF_UNSUPPORTED, "cpu: unary %s is not built",
                        inf_unary_name(node->attrs.unary.kind));
    }
}

static enum inf_code map_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct map), err));
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
        map->function = inf_native_map_find(step->isa->simd, node->attrs.unary.kind);
        step->kernel = inf_unary_name(node->attrs.unary.kind);
    }
    return INF_OK;
}

// --- functions of two inputs ---

struct binary {
    inf_simd_binary_fn *inner;
    float min, max;
    struct inf_native_broadcast broadcast;
};

struct binary_task {
    const struct binary *binary;
    const float *a, *b;
    float *y;
    struct inf_native_broadcast_tiles tiles;
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
    case INF_BINARY_POW:
        return INF_SIMD_POW;
    default:
        return INF_SIMD_BINARY_COUNT;
    }
}

static void binary_describe(struct binary *binary, const struct inf_cpu_step *step)
{
    const struct inf_native_broadcast *broadcast = &binary->broadcast;
    inf_native_broadcast_init(&binary->broadcast, step->graph, step->node, 2);
    enum inf_simd_form form = INF_SIMD_BOTH;
    if (broadcast->row > 1 && broadcast->row_step[0] == 0)
        form = INF_SIMD_A_SCALAR;
    else if (broadcast->row > 1 && broadcast->row_step[1] == 0)
        form = INF_SIMD_B_SCALAR;
    binary->inner = step->isa->simd->binary[binary_function(step->node->attrs.binary.kind)][form];
}

static void binary_tile(const void *context, size_t number, size_t worker)
{
    (void)worker;
    const struct binary_task *task = context;
    const struct binary *binary = task->binary;
    const struct inf_native_broadcast *broadcast = &binary->broadcast;
    struct inf_native_broadcast_tile tile =
        inf_native_broadcast_tile(broadcast, &task->tiles, number);
    struct inf_native_broadcast_walk walk;
    inf_native_broadcast_start(&walk, broadcast, tile.row);
    for (size_t row = tile.row; row < tile.end;
         row++, inf_native_broadcast_next(&walk, broadcast)) {
        binary->inner(tile.columns, task->a + walk.at[0] + tile.column * broadcast->row_step[0],
                      task->b + walk.at[1] + tile.column * broadcast->row_step[1],
                      task->y + row * broadcast->row + tile.column, binary->min, binary->max);
    }
}

static void binary_run(const struct inf_cpu_step *step)
{
    const struct binary *binary = step->state;
    struct binary_task task = {binary, step->inputs[0], step->inputs[1], step->output,
                               inf_native_broadcast_cut(&binary->broadcast, TILE_ELEMENTS)};
    struct inf_cpu_tiles work = {binary_tile, &task, task.tiles.count};
    inf_cpu_team_run_tiles(step->team, &work, SIZE_MAX);
}

static struct inf_cpu_activation binary_activation(const struct inf_node *node)
{
    const struct inf_attrs_binary *attrs = &node->attrs.binary;
    return (struct inf_cpu_activation){
        .kind = attrs->activation, .min = attrs->activation_min, .max = attrs->activation_max};
}

static enum inf_code binary_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (binary_function(node->attrs.binary.kind) == INF_SIMD_BINARY_COUNT)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: binary %s is not built",
                        inf_binary_name(node->attrs.binary.kind));
    struct inf_cpu_activation activation = binary_activation(node);
    return inf_cpu_activation_check(graph, node, &activation, UINT32_MAX, 0, err);
}

static enum inf_code binary_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct binary), err));
    struct binary *binary = step->state;
    struct inf_cpu_activation activation = binary_activation(step->node);
    step->run = binary_run;
    step->kernel = "binary";
    inf_cpu_activation_bounds(&activation, &binary->min, &binary->max);
    binary_describe(binary, step);
    return inf_xnn_add_post_op(step, &activation, NULL, 0, err);
}

const struct inf_cpu_kernel inf_cpu_eltwise_kernels[] = {
    {INF_OP_UNARY, map_supports, map_create},
    {INF_OP_CLIP, map_supports, map_create},
    {INF_OP_BINARY, binary_supports, binary_create},
    {0},
};
