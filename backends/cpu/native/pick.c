// SPDX-License-Identifier: Apache-2.0
// Operator arg (the index of the minimum or maximum) and operator topk (the k best elements of a
// line).
#include <string.h>

#include "backends/cpu/native/work.h"

static int32_t axis_of(int64_t axis, const struct inf_shape *shape)
{
    return (int32_t)(axis < 0 ? axis + shape->rank : axis);
}

// --- operator arg: x is [outer, rows, columns], y [outer, columns] ---

struct arg {
    size_t (*line)(size_t count, const void *x);
    void (*rows)(size_t count, const void *x, size_t rows, size_t stride, int32_t *index);
    size_t outer, row_count, columns;
    // `size` is the bytes of an element, `lines` the number of lines (outer indices) in one task.
    size_t size, lines;
    bool wide; // true: y has 64-bit indices
};

struct arg_task {
    const struct arg *arg;
    const char *x;
    void *y;
};

static void store_index(const struct arg_task *task, size_t at, int64_t index)
{
    if (task->arg->wide)
        ((int64_t *)task->y)[at] = index;
    else
        ((int32_t *)task->y)[at] = (int32_t)index;
}

static void arg_lines(const struct arg_task *task, size_t first, size_t end)
{
    const struct arg *arg = task->arg;
    for (size_t i = first; i < end; i++)
        store_index(task, i,
                    (int64_t)arg->line(arg->row_count, task->x + i * arg->row_count * arg->size));
}

static void arg_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct arg_task *task = context;
    const struct arg *arg = task->arg;
    int32_t index[INF_PICK_COLUMNS];
    if (arg->columns == 1) {
        arg_lines(task, tile * arg->lines, INF_MIN((tile + 1) * arg->lines, arg->outer));
        return;
    }
    // The number of tiles that the columns of one outer index are cut into.
    size_t across = (arg->columns + INF_PICK_COLUMNS - 1) / INF_PICK_COLUMNS;
    size_t outer = tile / across;
    size_t column = tile % across * INF_PICK_COLUMNS;
    size_t columns = INF_MIN(arg->columns - column, (size_t)INF_PICK_COLUMNS);
    arg->rows(columns, task->x + (outer * arg->row_count * arg->columns + column) * arg->size,
              arg->row_count, arg->columns, index);
    for (size_t i = 0; i < columns; i++)
        store_index(task, outer * arg->columns + column + i, index[i]);
}

static void arg_run(const struct inf_cpu_step *step)
{
    const struct arg *arg = step->state;
    struct arg_task task = {arg, step->inputs[0], step->output};
    size_t tiles = (arg->outer + arg->lines - 1) / arg->lines;
    if (arg->columns > 1)
        tiles = arg->outer * ((arg->columns + INF_PICK_COLUMNS - 1) / INF_PICK_COLUMNS);
    struct inf_cpu_tiles work = {arg_tile, &task, tiles};
    inf_cpu_team_run_tiles(step->team, &work, SIZE_MAX);
}

static enum inf_code arg_supports(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err)
{
    const struct inf_value *x = &graph->values[node->inputs[0]];
    if (inf_isa_best()->pick->line[INF_PICK_MAX][x->dtype] == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: arg of %s is not built",
                        inf_dtype_name(x->dtype));
    if (x->shape.dims[axis_of(node->attrs.arg.axis, &x->shape)] > INT32_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: arg: too large");
    return INF_OK;
}

static enum inf_code arg_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_attrs_arg *attrs = &step->node->attrs.arg;
    const struct inf_value *x = &step->graph->values[step->node->inputs[0]];
    int32_t axis = axis_of(attrs->axis, &x->shape);
    enum inf_pick_extreme extreme = attrs->kind == INF_ARG_MAX ? INF_PICK_MAX : INF_PICK_MIN;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct arg), err));
    struct arg *arg = step->state;
    *arg = (struct arg){
        .line = step->isa->pick->line[extreme][x->dtype],
        .rows = step->isa->pick->rows[extreme][x->dtype],
        .outer = inf_cpu_extent(&x->shape, 0, axis),
        .row_count = (size_t)x->shape.dims[axis],
        .columns = inf_cpu_extent(&x->shape, axis + 1, x->shape.rank),
        .size = inf_dtype_size(x->dtype),
        .wide = step->graph->values[step->node->outputs[0]].dtype == INF_DTYPE_I64,
    };
    arg->lines = ((size_t)16 << 10) / arg->row_count + 1;
    step->run = arg_run;
    step->kernel = "arg";
    return INF_OK;
}

// --- operator topk: x is [outer, count, columns], y [outer, k, columns] ---

// The number of keys that are computed and compared in one pass.
#define KEYS 256

// Largest number of columns of a block: as many as share a cache line, if elements have 4 bytes.
#define BLOCK_COLUMNS ((size_t)16)
// Largest number of bytes of a block with several columns, so that it stays in the cache.
#define BLOCK_BYTES ((size_t)256 << 10)

// The elements of a line are those of one column. If there are several columns, a block of them is
// transposed first, so that their lines are contiguous.
struct topk {
    const struct inf_pick *loops;
    void (*keys)(size_t count, const void *x, uint32_t *keys);
    size_t outer, count, columns, k;
    size_t block;        // columns of a block; 1 if there is one column
    size_t blocks;       // blocks of each outer index
    size_t size;         // size of an element in bytes
    size_t workers;      // number of workers; each has a heap of k entries, and memory for a block
    size_t scratch_step; // floats of scratch memory of each worker
};

struct topk_task {
    const struct topk *topk;
    const char *x;
    char *values;
    int32_t *indices;
    float *scratch;
};

// Combines a key and an index to one integer. A larger key gives a larger entry, and of two equal
// keys the smaller index gives the larger one, so that the largest entry comes first in the result.
static uint64_t make_entry(uint32_t key, size_t index)
{
    return (uint64_t)key << 32 | (UINT32_MAX - (uint32_t)index);
}

// Puts `value` at position `hole` of a min-heap of `count` entries, or at a position below it, so
// that the heap stays ordered.
static void sift_down(uint64_t *heap, size_t hole, size_t count, uint64_t value)
{
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child >= count)
            break;
        if (child + 1 < count && heap[child + 1] < heap[child])
            child++;
        if (value <= heap[child])
            break;
        heap[hole] = heap[child];
        hole = child;
    }
    heap[hole] = value;
}

// Collects the k largest entries of a line in the min-heap.
static void collect_best(const struct topk *topk, const char *x, uint64_t *heap)
{
    uint32_t keys[KEYS];
    size_t held = 0;
    for (size_t first = 0; first < topk->count; first += KEYS) {
        size_t some = INF_MIN(topk->count - first, (size_t)KEYS);
        topk->keys(some, x + first * topk->size, keys);
        if (held == topk->k && topk->loops->largest_key(some, keys) <= heap[0] >> 32)
            continue;
        for (size_t i = 0; i < some; i++) {
            uint64_t next = make_entry(keys[i], first + i);
            if (held == topk->k && next > heap[0])
                sift_down(heap, 0, held, next);
            if (held < topk->k) {
                heap[held++] = next;
                for (size_t at = held / 2; held == topk->k && at-- > 0;)
                    sift_down(heap, at, held, heap[at]);
            }
        }
    }
}

// Stores the k best elements of the contiguous line `x`, which is column `column` of outer index
// `outer`.
static void pick_line(const struct topk_task *task, const char *x, size_t outer, size_t column,
                      uint64_t *heap)
{
    const struct topk *topk = task->topk;
    collect_best(topk, x, heap);
    for (size_t left = topk->k; left-- > 0;) {
        uint64_t worst = heap[0];
        size_t at = UINT32_MAX - (uint32_t)worst;
        size_t place = (outer * topk->k + left) * topk->columns + column;
        task->indices[place] = (int32_t)at;
        memcpy(task->values + place * topk->size, x + at * topk->size, topk->size);
        sift_down(heap, 0, left, heap[left]);
    }
}

// Transposes a block: copies `columns` neighbouring columns, from `x` on, so that the elements of
// each column are contiguous in `to`, one column after the other.
static void transpose_block(const struct topk *topk, const char *x, size_t columns, char *to)
{
    for (size_t i = 0; i < topk->count; i++, x += topk->columns * topk->size)
        for (size_t c = 0; c < columns; c++)
            memcpy(to + (c * topk->count + i) * topk->size, x + c * topk->size, topk->size);
}

static void topk_tile(const void *context, size_t tile, size_t worker)
{
    const struct topk_task *task = context;
    const struct topk *topk = task->topk;
    size_t outer = tile / topk->blocks, first = tile % topk->blocks * topk->block;
    size_t columns = INF_MIN(topk->block, topk->columns - first);
    uint64_t *heap = (uint64_t *)(void *)(task->scratch + worker * topk->scratch_step);
    char *lines = (char *)(heap + topk->k);
    const char *x = task->x + (outer * topk->count * topk->columns + first) * topk->size;
    if (topk->columns > 1)
        transpose_block(topk, x, columns, lines);
    for (size_t c = 0; c < columns; c++)
        pick_line(task, topk->columns > 1 ? lines + c * topk->count * topk->size : x, outer,
                  first + c, heap);
}

static void topk_run(const struct inf_cpu_step *step)
{
    const struct topk *topk = step->state;
    struct topk_task task = {topk, step->inputs[0], step->outputs[0], step->outputs[1],
                             step->scratch};
    struct inf_cpu_tiles work = {topk_tile, &task, topk->outer * topk->blocks};
    inf_cpu_team_run_tiles(step->team, &work, topk->workers);
}

static enum inf_code topk_supports(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    const struct inf_value *x = &graph->values[node->inputs[0]];
    int32_t axis = axis_of(node->attrs.topk.axis, &x->shape);
    if (inf_isa_best()->pick->keys[INF_PICK_MAX][x->dtype] == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: topk of %s is not built",
                        inf_dtype_name(x->dtype));
    if (x->shape.dims[axis] > INT32_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: topk: too large");
    return INF_OK;
}

static enum inf_code topk_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_attrs_topk *attrs = &step->node->attrs.topk;
    const struct inf_value *x = &step->graph->values[step->node->inputs[0]];
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, step->node);
    int32_t axis = axis_of(attrs->axis, &x->shape);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct topk), err));
    struct topk *topk = step->state;
    *topk = (struct topk){
        .loops = step->isa->pick,
        .keys = step->isa->pick->keys[attrs->smallest ? INF_PICK_MIN : INF_PICK_MAX][x->dtype],
        .outer = inf_cpu_extent(&x->shape, 0, axis),
        .count = (size_t)x->shape.dims[axis],
        .columns = inf_cpu_extent(&x->shape, axis + 1, x->shape.rank),
        .k = (size_t)y->dims[axis],
        .size = inf_dtype_size(x->dtype),
    };
    topk->block = INF_MAX(INF_MIN(BLOCK_BYTES / (topk->count * topk->size), BLOCK_COLUMNS), 1u);
    topk->block = INF_MIN(topk->block, topk->columns);
    topk->blocks = (topk->columns + topk->block - 1) / topk->block;
    // Estimate that an element takes about as long as four multiply-adds.
    topk->workers = inf_native_choose_workers(step, topk->outer * topk->count * topk->columns * 4);
    size_t lines = topk->columns > 1 ? topk->block * topk->count * topk->size : 0;
    topk->scratch_step = inf_native_need_worker_scratch(
        step, topk->workers,
        (topk->k * sizeof(uint64_t) + lines + sizeof(float) - 1) / sizeof(float));
    step->run = topk_run;
    step->kernel = "topk";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_pick_kernels[] = {
    {INF_OP_ARG, arg_supports, arg_create},
    {INF_OP_TOPK, topk_supports, topk_create},
    {0},
};
