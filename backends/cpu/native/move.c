// SPDX-License-Identifier: Apache-2.0
// Operators that copy bytes unchanged: concat, and reshape and similar operators.
#include <string.h>

#include "backends/cpu/native/work.h"

// The smallest number of bytes that one task moves.
#define TILE_BYTES ((size_t)64 << 10)

// --- reshape and other operators that copy the whole tensor ---

struct copy_task {
    const char *from;
    char *to;
};

static void copy_tile(const void *context, size_t first, size_t count)
{
    const struct copy_task *task = context;
    memcpy(task->to + first, task->from + first, count);
}

static size_t output_bytes(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_value *y = &graph->values[node->outputs[0]];
    return inf_shape_elements(&y->shape) * inf_dtype_size(y->dtype);
}

static void copy_run(const struct inf_cpu_step *step)
{
    struct copy_task task = {step->inputs[0], step->output};
    // If operand and result have the same address, which a plan may choose, there is nothing to
    // copy.
    if (step->inputs[0] == step->output)
        return;
    inf_native_run_range(step, &(struct inf_native_range){copy_tile, &task,
                                                          output_bytes(step->graph, step->node),
                                                          TILE_BYTES});
}

static enum inf_code copy_supports(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    (void)graph;
    (void)node;
    (void)err;
    return INF_OK;
}

static enum inf_code copy_create(struct inf_cpu_step *step, struct inf_error *err)
{
    (void)err;
    step->run = copy_run;
    step->kernel = "copy";
    return INF_OK;
}

// --- operator concat ---

struct concat {
    size_t outer;     // product of all dimensions before the concat axis
    size_t row_bytes; // bytes of y in one iteration of `outer`, from all operands together
    const size_t *part_bytes;
    uint32_t parts;
};

struct concat_task {
    const struct concat *concat;
    const void *const *from;
    char *to;
};

static enum inf_code concat_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    if (inf_cpu_output_shape(graph, node)->rank < 1)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: concat: scalars are not built");
    return INF_OK;
}

static void concat_tile(const void *context, size_t first, size_t count)
{
    const struct concat_task *task = context;
    const struct concat *concat = task->concat;
    char *to = task->to + first * concat->row_bytes;
    for (size_t row = first; row < first + count; row++) {
        for (uint32_t i = 0; i < concat->parts; i++) {
            size_t size = concat->part_bytes[i];
            if (size > 0) // the address of an empty part may be NULL
                memcpy(to, (const char *)task->from[i] + row * size, size);
            to += size;
        }
    }
}

static void concat_run(const struct inf_cpu_step *step)
{
    const struct concat *concat = step->state;
    struct concat_task task = {concat, step->inputs, step->output};
    size_t rows = TILE_BYTES / concat->row_bytes + 1;
    inf_native_run_range(step, &(struct inf_native_range){concat_tile, &task, concat->outer, rows});
}

static enum inf_code concat_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, node);
    size_t *part_bytes = inf_arena_alloc(step->arena, node->input_count * sizeof(*part_bytes));
    if (part_bytes == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its operands", node->name);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct concat), err));
    struct concat *concat = step->state;
    int32_t axis = node->attrs.concat.axis;
    axis = axis < 0 ? axis + y->rank : axis;
    concat->outer = inf_cpu_extent(y, 0, axis);
    concat->parts = node->input_count;
    concat->part_bytes = part_bytes;
    concat->row_bytes = output_bytes(step->graph, node) / concat->outer;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct inf_value *x = &step->graph->values[node->inputs[i]];
        part_bytes[i] = inf_shape_elements(&x->shape) * inf_dtype_size(x->dtype) / concat->outer;
    }
    step->run = concat_run;
    step->kernel = "concat";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_move_kernels[] = {
    {INF_OP_IDENTITY, copy_supports, copy_create},    {INF_OP_RESHAPE, copy_supports, copy_create},
    {INF_OP_EXPAND_DIMS, copy_supports, copy_create}, {INF_OP_SQUEEZE, copy_supports, copy_create},
    {INF_OP_CONCAT, concat_supports, concat_create},  {0},
};
