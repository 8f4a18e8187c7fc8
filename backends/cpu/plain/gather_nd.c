// SPDX-License-Identifier: Apache-2.0
// Operators gather_nd and scatter_nd: copy, or combine, the slices of a tensor that rows of indices
// select.
//
// A client may be able to write to the indices during a run. They are therefore read once, before
// any slice is copied: check_indices() turns each row into the number of a slice and keeps it in
// the scratch memory of the step, from which all threads read.
#include <inttypes.h>
#include <string.h>

#include "backends/cpu/native/work.h"

// The smallest number of bytes that one task moves.
#define TILE_BYTES ((size_t)64 << 10)

// The slice number of an index row whose update is dropped.
#define DROPPED UINT64_MAX

// Combines `count` updates with as many elements of y: adds them, for example.
typedef void combine_fn(void *y, const void *updates, size_t count);

struct slices {
    size_t batch, rows;             // rows of indices: `rows` for each of `batch` parts of x
    size_t depth;                   // indices of a row
    size_t size;                    // elements of a slice
    size_t element;                 // bytes of an element
    size_t x_size;                  // elements of x
    int64_t bounds[INF_LIMIT_RANK]; // of the indices of a row
    bool wide;                      // true: indices are i64; false: i32
    bool from_end;                  // true: negative indices count from the end
    bool drop;                      // true: updates with an index out of range are dropped
    combine_fn *combine;            // NULL: updates replace the elements of y
};

struct slices_task {
    const struct slices *slices;
    const uint64_t *numbers;
    const char *x; // of scatter_nd: the updates
    char *y;
};

// Finds the number of the slice that row `row` of the indices selects.
//
// INF_INVALID  an index is out of range.
static enum inf_code find_slice(const struct inf_cpu_step *step, size_t row, uint64_t *out_number,
                                struct inf_error *err)
{
    const struct slices *slices = step->state;
    uint64_t number = row / slices->rows;
    for (size_t i = 0; i < slices->depth; i++) {
        size_t at = row * slices->depth + i;
        int64_t bound = slices->bounds[i];
        int64_t index = inf_cpu_read_index(step, 1, slices->wide, at);
        int64_t place = slices->from_end && index < 0 ? index + bound : index;
        if ((place < 0 || place >= bound) && slices->drop) {
            *out_number = DROPPED;
            return INF_OK;
        }
        if (place < 0 || place >= bound)
            return inf_fail(err, INF_INVALID,
                            "index %" PRId64 " (element %zu of the indices) is outside [0, %" PRId64
                            ")",
                            index, at, bound);
        number = number * (uint64_t)bound + (uint64_t)place;
    }
    *out_number = number;
    return INF_OK;
}

static enum inf_code check_indices(const struct inf_cpu_step *step, struct inf_error *err)
{
    const struct slices *slices = step->state;
    uint64_t *numbers = (uint64_t *)(void *)step->scratch;
    for (size_t i = 0; i < slices->batch * slices->rows; i++)
        INF_TRY(find_slice(step, i, &numbers[i], err));
    return INF_OK;
}

// Creates the state of a step: describes the slices of x that the rows of indices select. The first
// `shared` axes of x and of the indices are the same.
static enum inf_code describe_slices(struct inf_cpu_step *step, int32_t shared,
                                     struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_value *x = &step->graph->values[node->inputs[0]];
    const struct inf_value *indices = &step->graph->values[node->inputs[1]];
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct slices), err));
    struct slices *slices = step->state;
    int32_t last = indices->shape.rank - 1;
    int32_t depth = (int32_t)indices->shape.dims[last];
    slices->batch = inf_cpu_extent(&x->shape, 0, shared);
    slices->rows = inf_cpu_extent(&indices->shape, shared, last);
    slices->depth = (size_t)depth;
    slices->size = inf_cpu_extent(&x->shape, shared + depth, x->shape.rank);
    slices->element = inf_dtype_size(x->dtype);
    slices->x_size = inf_shape_elements(&x->shape);
    for (int32_t i = 0; i < depth; i++)
        slices->bounds[i] = x->shape.dims[shared + i];
    slices->wide = indices->dtype == INF_DTYPE_I64;
    inf_native_need_scratch(step,
                            slices->batch * slices->rows * (sizeof(uint64_t) / sizeof(float)));
    step->prepare = check_indices;
    return INF_OK;
}

// --- gather_nd ---

static void gather_part(const void *context, size_t first, size_t count)
{
    const struct slices_task *task = context;
    size_t bytes = task->slices->size * task->slices->element;
    for (size_t i = first; i < first + count; i++)
        memcpy(task->y + i * bytes, task->x + task->numbers[i] * bytes, bytes);
}

static void gather_run(const struct inf_cpu_step *step)
{
    const struct slices *slices = step->state;
    struct slices_task task = {slices, (const uint64_t *)(const void *)step->scratch,
                               step->inputs[0], step->output};
    inf_native_run_range(
        step, &(struct inf_native_range){gather_part, &task, slices->batch * slices->rows,
                                         TILE_BYTES / (slices->size * slices->element) + 1});
}

static enum inf_code gather_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    (void)graph, (void)node, (void)err;
    return INF_OK;
}

static enum inf_code gather_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(describe_slices(step, step->node->attrs.gather_nd.batch_dims, err));
    ((struct slices *)step->state)->from_end = step->node->attrs.gather_nd.from_end;
    step->run = gather_run;
    step->kernel = "gather_nd";
    return INF_OK;
}

// --- scatter_nd ---

// Defines a function that combines updates with elements of `type`, for a kind of scatter_nd.
#define COMBINE(name, type, result)                                                                \
    static void name(void *y, const void *updates, size_t count)                                   \
    {                                                                                              \
        type *to = y;                                                                              \
        const type *from = updates;                                                                \
        for (size_t i = 0; i < count; i++) {                                                       \
            type old = to[i], update = from[i];                                                    \
            to[i] = result;                                                                        \
        }                                                                                          \
    }

// As in `ref`, an update that is NaN replaces the smaller or larger element.
COMBINE(add_f32, float, old + update)
COMBINE(multiply_f32, float, old *update)
COMBINE(lower_f32, float, update < old || update != update ? update : old)
COMBINE(raise_f32, float, update > old || update != update ? update : old)
// Sums and products of integers wrap around.
COMBINE(add_i32, uint32_t, old + update)
COMBINE(multiply_i32, uint32_t, old *update)
COMBINE(lower_i32, int32_t, update < old ? update : old)
COMBINE(raise_i32, int32_t, update > old ? update : old)
COMBINE(add_i64, uint64_t, old + update)
COMBINE(multiply_i64, uint64_t, old *update)
COMBINE(lower_i64, int64_t, update < old ? update : old)
COMBINE(raise_i64, int64_t, update > old ? update : old)

static combine_fn *const combine_functions[INF_SCATTER_COUNT][3] = {
    [INF_SCATTER_ADD] = {add_f32, add_i32, add_i64},
    [INF_SCATTER_MUL] = {multiply_f32, multiply_i32, multiply_i64},
    [INF_SCATTER_MIN] = {lower_f32, lower_i32, lower_i64},
    [INF_SCATTER_MAX] = {raise_f32, raise_i32, raise_i64},
};

// Returns the function of a kind; NULL if updates of this kind replace elements, or if there is
// none for this type.
static combine_fn *find_combine(enum inf_scatter_kind kind, enum inf_dtype dtype)
{
    switch (dtype) {
    case INF_DTYPE_F32:
        return combine_functions[kind][0];
    case INF_DTYPE_I32:
        return combine_functions[kind][1];
    case INF_DTYPE_I64:
        return combine_functions[kind][2];
    default:
        return NULL;
    }
}

static void copy_part(const void *context, size_t first, size_t count)
{
    const struct slices_task *task = context;
    size_t element = task->slices->element;
    memcpy(task->y + first * element, task->x + first * element, count * element);
}

// Writes elements `first` to `first + count` of every update to its slice. Threads share the
// elements of a slice, not the updates, because several updates may go to one slice, in the order
// of the indices.
static void scatter_part(const void *context, size_t first, size_t count)
{
    const struct slices_task *task = context;
    const struct slices *slices = task->slices;
    size_t element = slices->element;
    for (size_t row = 0; row < slices->rows; row++) {
        if (task->numbers[row] == DROPPED)
            continue;
        char *y = task->y + (task->numbers[row] * slices->size + first) * element;
        const char *update = task->x + (row * slices->size + first) * element;
        if (slices->combine != NULL)
            slices->combine(y, update, count);
        else
            memcpy(y, update, count * element);
    }
}

static void scatter_run(const struct inf_cpu_step *step)
{
    const struct slices *slices = step->state;
    const uint64_t *numbers = (const uint64_t *)(const void *)step->scratch;
    struct slices_task copy = {slices, numbers, step->inputs[0], step->output};
    struct slices_task scatter = {slices, numbers, step->inputs[2], step->output};
    inf_native_run_range(step, &(struct inf_native_range){copy_part, &copy, slices->x_size,
                                                          TILE_BYTES / slices->element});
    inf_native_run_range(
        step, &(struct inf_native_range){scatter_part, &scatter, slices->size,
                                         TILE_BYTES / (slices->rows * slices->element) + 16});
}

static enum inf_code scatter_supports(const struct inf_graph *graph, const struct inf_node *node,
                                      struct inf_error *err)
{
    enum inf_scatter_kind kind = node->attrs.scatter_nd.kind;
    enum inf_dtype dtype = graph->values[node->inputs[0]].dtype;
    if (kind != INF_SCATTER_NONE && find_combine(kind, dtype) == NULL)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: scatter_nd: this kind is not built for %s",
                        inf_dtype_name(dtype));
    return INF_OK;
}

static enum inf_code scatter_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_attrs_scatter_nd *attrs = &step->node->attrs.scatter_nd;
    INF_TRY(describe_slices(step, 0, err));
    struct slices *slices = step->state;
    slices->from_end = attrs->from_end;
    slices->drop = attrs->drop;
    slices->combine = find_combine(attrs->kind, step->graph->values[step->node->inputs[0]].dtype);
    step->run = scatter_run;
    step->kernel = "scatter_nd";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_gather_nd_kernels[] = {
    {INF_OP_GATHER_ND, gather_supports, gather_create},
    {INF_OP_SCATTER_ND, scatter_supports, scatter_create},
    {0},
};
