// SPDX-License-Identifier: Apache-2.0
// Operator gather: copies the slices of a tensor that a list of indices selects.
//
// A client may be able to write to the indices during a run. They are therefore read once, before
// the slices are copied: check_indices() checks each index and keeps it in the scratch memory of
// the step, from which all threads read.
#include <inttypes.h>
#include <string.h>

#include "backends/cpu/native/work.h"

// The smallest number of bytes that one task moves.
#define TILE_BYTES ((size_t)64 << 10)

// The sizes of the axes after merging: x is [batch, outer, bound, slice], the indices are [batch,
// picked], and y is [batch, outer, picked, slice].
struct gather {
    size_t batch, outer, bound, picked;
    size_t slice_bytes;
    bool wide; // true: indices are i64; false: i32
};

struct gather_task {
    const struct gather *gather;
    const uint32_t *indices;
    const char *x;
    char *y;
};

static int32_t axis_of(const struct inf_node *node, const struct inf_shape *x)
{
    int32_t axis = node->attrs.gather.axis;
    return axis < 0 ? axis + x->rank : axis;
}

static enum inf_code gather_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    int64_t bound = x->dims[axis_of(node, x)];
    if (bound > (int64_t)UINT32_MAX)
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: gather: %" PRId64 " slices are too many, wanted at most %" PRIu32,
                        bound, UINT32_MAX);
    return INF_OK;
}

static enum inf_code check_indices(const struct inf_cpu_step *step, struct inf_error *err)
{
    const struct gather *gather = step->state;
    uint32_t *checked = (uint32_t *)(void *)step->scratch;
    for (size_t i = 0; i < gather->batch * gather->picked; i++) {
        int64_t index = inf_cpu_read_index(step, 1, gather->wide, i);
        if (index < 0 || (uint64_t)index >= gather->bound)
            return inf_fail(err, INF_INVALID,
                            "index %" PRId64 " (element %zu of the indices) is outside [0, %zu)",
                            index, i, gather->bound);
        checked[i] = (uint32_t)index;
    }
    return INF_OK;
}

// Copies a slice. A slice of one element is copied with a constant size, so that the compiler does
// not call memcpy().
static void copy_slice(char *to, const char *from, size_t bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, bytes);
}

static void gather_part(const void *context, size_t first, size_t count)
{
    const struct gather_task *task = context;
    const struct gather *gather = task->gather;
    size_t bytes = gather->slice_bytes;
    for (size_t slice = first; slice < first + count; slice++) {
        size_t row = slice / gather->picked;
        size_t batch = row / gather->outer;
        uint32_t index = task->indices[batch * gather->picked + slice % gather->picked];
        copy_slice(task->y + slice * bytes, task->x + (row * gather->bound + index) * bytes, bytes);
    }
}

static void gather_run(const struct inf_cpu_step *step)
{
    const struct gather *gather = step->state;
    struct gather_task task = {gather, (const uint32_t *)(const void *)step->scratch,
                               step->inputs[0], step->output};
    size_t slices = gather->batch * gather->outer * gather->picked;
    inf_native_run_range(step, &(struct inf_native_range){gather_part, &task, slices,
                                                          TILE_BYTES / gather->slice_bytes + 1});
}

static enum inf_code gather_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_value *x = &step->graph->values[node->inputs[0]];
    const struct inf_value *indices = &step->graph->values[node->inputs[1]];
    int32_t shared = node->attrs.gather.batch_dims;
    int32_t axis = axis_of(node, &x->shape);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct gather), err));
    struct gather *gather = step->state;
    gather->batch = inf_cpu_extent(&x->shape, 0, shared);
    gather->outer = inf_cpu_extent(&x->shape, shared, axis);
    gather->bound = (size_t)x->shape.dims[axis];
    gather->slice_bytes =
        inf_cpu_extent(&x->shape, axis + 1, x->shape.rank) * inf_dtype_size(x->dtype);
    gather->picked = inf_cpu_extent(&indices->shape, shared, indices->shape.rank);
    gather->wide = indices->dtype == INF_DTYPE_I64;
    inf_native_need_scratch(step, gather->batch * gather->picked);
    step->prepare = check_indices;
    step->run = gather_run;
    step->kernel = "gather";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_gather_kernels[] = {
    {INF_OP_GATHER, gather_supports, gather_create},
    {0},
};
