// SPDX-License-Identifier: Apache-2.0
// Operators that copy elements at regular distances in x: transpose, slice, split, tile, broadcast,
// reverse, and those that move blocks. Each operator becomes nested loops.
#include <assert.h>
#include <string.h>

#include "backends/cpu/kernels/map/transpose.h"
#include "backends/cpu/native/work.h"
#include "backends/graph/shape/infer.h"

#define AXES_MAX   (2 * INF_LIMIT_RANK)
#define SQUARE     ((size_t)16)       // columns that a transposition copies at a time
#define TASK_BYTES ((size_t)32 << 10) // bytes that one task writes, approximately
// Rows that a transposition copies at a time: the side of its largest tile. Rows of y are often
// 4 KiB apart, and a cache of 8 or 12 ways keeps only as many of such lines: more would be worse.
#define FEW_ROWS ((size_t)16)
// Rows of y this far apart are in different pages or nearly so.
#define FAR_BYTES ((size_t)1024)
// Rows of y this close are in the same cache line or in neighbouring ones.
#define CLOSE_BYTES ((size_t)64)

// Nested loops that write one result. The last loop of the list is the innermost. The step of a
// loop is the distance in bytes between its elements in x. The elements of the result are
// contiguous.
struct strided {
    size_t element;
    int32_t rank;
    size_t dims[AXES_MAX];
    ptrdiff_t steps[AXES_MAX];
    ptrdiff_t start;
    int32_t across; // the axis that is contiguous in x; -1 if there is none or it is the innermost
    size_t outer;   // iterations of all loops except the innermost one and `across`
    size_t row_bytes; // bytes that the innermost loop copies
    size_t part_rows; // with `across`: iterations of `across` that are copied at a time
    size_t y_steps[AXES_MAX];
};

struct strided_set {
    struct strided *parts; // the nested loops of each output of the node
    uint32_t count;
};

struct strided_task {
    const struct strided *strided;
    const char *x;
    char *y;
};

// --- building the nested loops, and copying with them ---

// Adds a loop around the loops that were added before; the innermost loop is added first.
static void add_axis(struct strided *strided, size_t dim, ptrdiff_t step)
{
    int32_t last = strided->rank - 1;
    if (dim == 1)
        return;
    // If the new loop continues the loop inside it, merge the two.
    if (last >= 0 && step == strided->steps[last] * (ptrdiff_t)strided->dims[last]) {
        strided->dims[last] *= dim;
        return;
    }
    strided->dims[strided->rank] = dim;
    strided->steps[strided->rank++] = step;
}

// Returns the number of rows of a matrix that are transposed at a time. Large matrices are divided
// between threads. A cache line of y with few columns has those of several matrices, so few rows of
// all matrices are copied before the next rows.
static size_t choose_part_rows(const struct strided *strided)
{
    bool far = strided->y_steps[strided->across] >= FAR_BYTES;
    if (far && strided->dims[strided->rank - 1] < SQUARE)
        return FEW_ROWS;
    return (TASK_BYTES / strided->row_bytes / SQUARE + 1) * SQUARE;
}

// Ends the list of loops: moves the innermost loop to the end, and derives the other members of
// `strided` from the loops.
static void close_axes(struct strided *strided)
{
    if (strided->rank == 0) {
        strided->dims[strided->rank] = 1;
        strided->steps[strided->rank++] = (ptrdiff_t)strided->element;
    }
    int32_t last = strided->rank - 1;
    for (int32_t i = 0; i < last - i; i++) {
        size_t dim = strided->dims[i];
        ptrdiff_t step = strided->steps[i];
        strided->dims[i] = strided->dims[last - i];
        strided->steps[i] = strided->steps[last - i];
        strided->dims[last - i] = dim;
        strided->steps[last - i] = step;
    }
    size_t y_step = strided->element;
    strided->across = -1;
    strided->outer = 1;
    for (int32_t axis = last; axis >= 0; axis--) {
        strided->y_steps[axis] = y_step;
        y_step *= strided->dims[axis];
        if (axis != last && strided->steps[axis] == (ptrdiff_t)strided->element &&
            strided->steps[last] != (ptrdiff_t)strided->element && strided->across < 0)
            strided->across = axis;
    }
    for (int32_t axis = 0; axis < last; axis++)
        strided->outer *= axis == strided->across ? 1 : strided->dims[axis];
    strided->row_bytes = strided->dims[last] * strided->element;
    if (strided->across >= 0)
        strided->part_rows = choose_part_rows(strided);
}

// An iteration of the outer loops: the number of each loop's iteration, and the addresses.
struct place {
    const char *x;
    char *y;
    size_t at[AXES_MAX];
};

// Moves the place from iteration 0 to iteration `index` of the outer loops.
static void locate_loop(const struct strided *strided, size_t index, struct place *place)
{
    for (int32_t axis = strided->rank - 2; axis >= 0; axis--) {
        if (axis == strided->across)
            continue;
        place->at[axis] = index % strided->dims[axis];
        index /= strided->dims[axis];
        place->x += (ptrdiff_t)place->at[axis] * strided->steps[axis];
        place->y += place->at[axis] * strided->y_steps[axis];
    }
}

// Moves the place to the next iteration. Divides nothing, because rows may be as short as two
// elements.
static void advance_loop(const struct strided *strided, struct place *place)
{
    for (int32_t axis = strided->rank - 2; axis >= 0; axis--) {
        if (axis == strided->across)
            continue;
        place->x += strided->steps[axis];
        place->y += strided->y_steps[axis];
        if (++place->at[axis] < strided->dims[axis])
            return;
        place->at[axis] = 0;
        place->x -= (ptrdiff_t)strided->dims[axis] * strided->steps[axis];
        place->y -= strided->dims[axis] * strided->y_steps[axis];
    }
}

static inline void copy_elements(size_t element, size_t count, const char *x, ptrdiff_t x_step,
                                 char *y, size_t y_step)
{
    for (size_t i = 0; i < count; i++)
        memcpy(y + i * y_step, x + (ptrdiff_t)i * x_step, element);
}

// Copies `count` elements. They are `x_step` bytes apart in x and `y_step` bytes apart in y. The
// switch passes constant element sizes, so that the compiler emits plain loads and stores.
static void copy_strided(size_t element, size_t count, const char *x, ptrdiff_t x_step, char *y,
                         size_t y_step)
{
    switch (element) {
    case 1:
        copy_elements(1, count, x, x_step, y, y_step);
        break;
    case 2:
        copy_elements(2, count, x, x_step, y, y_step);
        break;
    case 4:
        copy_elements(4, count, x, x_step, y, y_step);
        break;
    default:
        copy_elements(8, count, x, x_step, y, y_step);
        break;
    }
}

static void copy_row(const struct strided *strided, const char *x, char *y)
{
    int32_t last = strided->rank - 1;
    // The compiler copies rows of a known size with plain loads and stores.
    if (strided->steps[last] == (ptrdiff_t)strided->element && strided->row_bytes == 8)
        memcpy(y, x, 8);
    else if (strided->steps[last] == (ptrdiff_t)strided->element && strided->row_bytes == 16)
        memcpy(y, x, 16);
    else if (strided->steps[last] == (ptrdiff_t)strided->element)
        memcpy(y, x, strided->row_bytes);
    else
        copy_strided(strided->element, strided->dims[last], x, strided->steps[last], y,
                     strided->element);
}

// Transposes rows `begin` to `stop` of a matrix, a few rows and columns after the other, so that
// each cache line of x and y is used completely before it is evicted.
static void transpose_plane(const struct strided *strided, const char *x, char *y, size_t begin,
                            size_t stop)
{
    ptrdiff_t x_step = strided->steps[strided->rank - 1];
    size_t columns = strided->dims[strided->rank - 1], element = strided->element;
    size_t y_step = strided->y_steps[strided->across];
    // Rows that are close to each other in y, such as pixels of three channels, share cache lines.
    size_t rows = y_step <= CLOSE_BYTES ? stop - begin : FEW_ROWS;
    for (size_t c = 0; c < columns; c += SQUARE) {
        size_t some_columns = INF_MIN(columns - c, SQUARE);
        for (size_t r = begin; r < stop; r += rows)
            inf_transpose(element, INF_MIN(stop - r, rows), some_columns,
                          x + (ptrdiff_t)c * x_step + r * element, x_step,
                          y + r * y_step + c * element, y_step);
    }
}

// Transposes `count` parts of matrices from number `first` on. Part 0 of each matrix comes first,
// then part 1 of each, and so on.
static void transpose_parts(const struct strided_task *task, size_t first, size_t count)
{
    const struct strided *strided = task->strided;
    size_t rows = strided->dims[strided->across];
    for (size_t end = first + count; first < end;) {
        size_t begin = first / strided->outer * strided->part_rows;
        size_t some = INF_MIN(end - first, strided->outer - first % strided->outer);
        struct place place = {.x = task->x + strided->start, .y = task->y};
        locate_loop(strided, first % strided->outer, &place);
        for (size_t i = 0; i < some; i++, advance_loop(strided, &place))
            transpose_plane(strided, place.x, place.y, begin,
                            INF_MIN(begin + strided->part_rows, rows));
        first += some;
    }
}

static void strided_tile(const void *context, size_t first, size_t count)
{
    const struct strided_task *task = context;
    const struct strided *strided = task->strided;
    struct place place = {.x = task->x + strided->start, .y = task->y};
    if (strided->across >= 0) {
        transpose_parts(task, first, count);
        return;
    }
    locate_loop(strided, first, &place);
    for (size_t i = 0; i < count; i++, advance_loop(strided, &place))
        copy_row(strided, place.x, place.y);
}

static void strided_run(const struct inf_cpu_step *step)
{
    const struct strided_set *set = step->state;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct strided *strided = &set->parts[i];
        struct strided_task task = {strided, step->inputs[0], step->outputs[i]};
        size_t items = strided->outer, bytes = strided->row_bytes;
        if (strided->across >= 0) {
            size_t rows = strided->dims[strided->across];
            items *= (rows + strided->part_rows - 1) / strided->part_rows;
            bytes *= INF_MIN(strided->part_rows, rows);
        }
        inf_native_run_range(step, &(struct inf_native_range){strided_tile, &task, items,
                                                              TASK_BYTES / (bytes + 1) + 1});
    }
}

// --- describing each operator as nested loops ---

// Writes the distance in bytes between neighbours along each axis of x to `steps`.
static void steps_of(const struct inf_shape *x, size_t element, ptrdiff_t *steps)
{
    ptrdiff_t step = (ptrdiff_t)element;
    for (int32_t axis = x->rank - 1; axis >= 0; axis--) {
        steps[axis] = step;
        step *= (ptrdiff_t)x->dims[axis];
    }
}

static void describe_transpose(struct strided *strided, const struct inf_graph *graph,
                               const struct inf_node *node, const ptrdiff_t *steps)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_ints *perm = &node->attrs.transpose.perm;
    for (int32_t axis = x->rank - 1; axis >= 0; axis--) {
        int64_t from = perm->count > 0 ? perm->values[axis] : x->rank - 1 - axis;
        from = from < 0 ? from + x->rank : from;
        add_axis(strided, (size_t)x->dims[from], steps[from]);
    }
}

static bool describe_slice(struct strided *strided, const struct inf_graph *graph,
                           const struct inf_node *node, const ptrdiff_t *steps)
{
    struct inf_slice_plan plan;
    if (!inf_node_slice_plan(graph, node, &plan))
        return false;
    for (int32_t axis = plan.rank - 1; axis >= 0; axis--) {
        strided->start += (ptrdiff_t)plan.begin[axis] * steps[axis];
        add_axis(strided, (size_t)plan.count[axis], (ptrdiff_t)plan.stride[axis] * steps[axis]);
    }
    return true;
}

static void describe_broadcast(struct strided *strided, const struct inf_graph *graph,
                               const struct inf_node *node, const ptrdiff_t *steps)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        int32_t own = axis - (y->rank - x->rank);
        bool stretched = own < 0 || x->dims[own] == 1;
        add_axis(strided, (size_t)y->dims[axis], stretched ? 0 : steps[own]);
    }
}

static void describe_tile(struct strided *strided, const struct inf_graph *graph,
                          const struct inf_node *node, const ptrdiff_t *steps)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        add_axis(strided, (size_t)x->dims[axis], steps[axis]);
        add_axis(strided, (size_t)(y->dims[axis] / x->dims[axis]), 0);
    }
}

static void describe_reverse(struct strided *strided, const struct inf_graph *graph,
                             const struct inf_node *node, const ptrdiff_t *steps)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_ints *axes = &node->attrs.reverse.axes;
    for (int32_t axis = x->rank - 1; axis >= 0; axis--) {
        bool turned = false;
        for (int32_t i = 0; i < axes->count; i++)
            turned |= axes->values[i] == axis || axes->values[i] + x->rank == axis;
        if (turned)
            strided->start += (ptrdiff_t)(x->dims[axis] - 1) * steps[axis];
        add_axis(strided, (size_t)x->dims[axis], turned ? -steps[axis] : steps[axis]);
    }
}

// Describes space_to_depth, y [n,h/b,w/b,(b,b,c)] of x [n,h,w,c], and depth_to_space, y
// [n,(h,b),(w,b),c] of x [n,h,w,(b,b,c)]. The parentheses are axes that are one axis of the tensor.
static void describe_depth(struct strided *strided, const struct inf_graph *graph,
                           const struct inf_node *node, const ptrdiff_t *steps)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    if (node->op == INF_OP_SPACE_TO_DEPTH) {
        size_t block = (size_t)node->attrs.space_to_depth.block;
        add_axis(strided, (size_t)x->dims[3], steps[3]);
        add_axis(strided, block, steps[2]);
        add_axis(strided, block, steps[1]);
        add_axis(strided, (size_t)y->dims[2], steps[2] * (ptrdiff_t)block);
        add_axis(strided, (size_t)y->dims[1], steps[1] * (ptrdiff_t)block);
    } else {
        size_t block = (size_t)node->attrs.depth_to_space.block;
        ptrdiff_t pixel = (ptrdiff_t)y->dims[3] * steps[3];
        add_axis(strided, (size_t)y->dims[3], steps[3]);
        add_axis(strided, block, pixel);
        add_axis(strided, (size_t)x->dims[2], steps[2]);
        add_axis(strided, block, pixel * (ptrdiff_t)block);
        add_axis(strided, (size_t)x->dims[1], steps[1]);
    }
    add_axis(strided, (size_t)x->dims[0], steps[0]);
}

// Reads the blocks of space_to_batch and batch_to_space. Returns false unless they are constant,
// and nothing is padded or cropped: only then are the loops rectangular.
static bool read_blocks(const struct inf_graph *graph, const struct inf_node *node,
                        int64_t blocks[INF_LIMIT_RANK], uint32_t *count)
{
    int64_t edges[2 * INF_LIMIT_RANK];
    uint32_t edge_count;
    if (!inf_graph_const_ints(graph, node->inputs[1], blocks, INF_LIMIT_RANK, count) ||
        !inf_graph_const_ints(graph, node->inputs[2], edges, 2 * INF_LIMIT_RANK, &edge_count))
        return false;
    for (uint32_t i = 0; i < edge_count; i++)
        if (edges[i] != 0)
            return false;
    return true;
}

// Describes space_to_batch, y [(b...,n),spatial/b...,rest] of x [n,spatial...,rest], and
// batch_to_space, which is the way back.
static void describe_batch(struct strided *strided, const struct inf_graph *graph,
                           const struct inf_node *node, const ptrdiff_t *steps)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    int64_t blocks[INF_LIMIT_RANK];
    uint32_t count = 0;
    bool known = read_blocks(graph, node, blocks, &count), back = node->op == INF_OP_BATCH_TO_SPACE;
    assert(known && "strided_supports() checked it");
    (void)known;
    for (int32_t axis = x->rank - 1; axis > (int32_t)count; axis--)
        add_axis(strided, (size_t)x->dims[axis], steps[axis]);
    int64_t pictures = back ? y->dims[0] : x->dims[0];
    ptrdiff_t phase = (ptrdiff_t)pictures * steps[0]; // between neighbours within a block
    for (int32_t axis = (int32_t)count; axis >= 1; axis--) {
        int64_t block = blocks[axis - 1];
        if (back)
            add_axis(strided, (size_t)block, phase);
        phase *= (ptrdiff_t)block;
        add_axis(strided, (size_t)(back ? x->dims[axis] : y->dims[axis]),
                 back ? steps[axis] : steps[axis] * (ptrdiff_t)block);
    }
    add_axis(strided, (size_t)pictures, steps[0]);
    for (int32_t axis = (int32_t)count; !back && axis >= 1; axis--)
        add_axis(strided, (size_t)blocks[axis - 1], steps[axis]);
}

// Describes the loops for output `index` of a split, whose slice begins at index *at along the
// split axis. Moves *at to the next slice.
static void describe_split(struct strided *strided, const struct inf_graph *graph,
                           const struct inf_node *node, uint32_t index, int64_t *at,
                           const ptrdiff_t *steps)
{
    const struct inf_shape *y = &graph->values[node->outputs[index]].shape;
    int32_t axis = node->attrs.split.axis;
    axis = axis < 0 ? axis + y->rank : axis;
    strided->start = (ptrdiff_t)*at * steps[axis];
    *at += y->dims[axis];
    for (int32_t i = y->rank - 1; i >= 0; i--)
        add_axis(strided, (size_t)y->dims[i], steps[i]);
}

// Fills set->parts with the nested loops of each output of the node. Returns false if the node is a
// slice whose bounds are not constant.
static bool describe_parts(struct strided_set *set, const struct inf_graph *graph,
                           const struct inf_node *node)
{
    ptrdiff_t steps[INF_LIMIT_RANK];
    const struct inf_value *x = &graph->values[node->inputs[0]];
    size_t element = inf_dtype_size(x->dtype);
    steps_of(&x->shape, element, steps);
    int64_t at = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        struct strided *strided = &set->parts[i];
        *strided = (struct strided){.element = element};
        if (node->op == INF_OP_TRANSPOSE)
            describe_transpose(strided, graph, node, steps);
        else if (node->op == INF_OP_SPLIT)
            describe_split(strided, graph, node, i, &at, steps);
        else if (node->op == INF_OP_BROADCAST)
            describe_broadcast(strided, graph, node, steps);
        else if (node->op == INF_OP_TILE)
            describe_tile(strided, graph, node, steps);
        else if (node->op == INF_OP_REVERSE)
            describe_reverse(strided, graph, node, steps);
        else if (node->op == INF_OP_SPACE_TO_DEPTH || node->op == INF_OP_DEPTH_TO_SPACE)
            describe_depth(strided, graph, node, steps);
        else if (node->op == INF_OP_SPACE_TO_BATCH || node->op == INF_OP_BATCH_TO_SPACE)
            describe_batch(strided, graph, node, steps);
        else if (!describe_slice(strided, graph, node, steps))
            return false;
        close_axes(strided);
    }
    return true;
}

static enum inf_code strided_supports(const struct inf_graph *graph, const struct inf_node *node,
                                      struct inf_error *err)
{
    struct inf_slice_plan plan;
    if (node->op == INF_OP_SLICE && !inf_node_slice_plan(graph, node, &plan))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: slice: its bounds are no constants");
    int64_t blocks[INF_LIMIT_RANK];
    uint32_t count;
    if ((node->op == INF_OP_SPACE_TO_BATCH || node->op == INF_OP_BATCH_TO_SPACE) &&
        !read_blocks(graph, node, blocks, &count))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: has edges, or blocks that are no constants",
                        inf_op_info(node->op)->name);
    if (inf_dtype_size(graph->values[node->inputs[0]].dtype) > 8)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: %s is not built",
                        inf_op_info(node->op)->name,
                        inf_dtype_name(graph->values[node->inputs[0]].dtype));
    return INF_OK;
}

static enum inf_code strided_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct strided_set), err));
    struct strided_set *set = step->state;
    set->count = node->output_count;
    set->parts = inf_arena_alloc(step->arena, set->count * sizeof(*set->parts));
    if (set->parts == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its loops", node->name);
    if (!describe_parts(set, step->graph, node))
        return inf_fail(err, INF_INTERNAL, "node '%s': bounds are no constants", node->name);
    step->run = strided_run;
    step->kernel = set->parts[0].across >= 0 ? "transpose" : "rows";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_strided_kernels[] = {
    {INF_OP_TRANSPOSE, strided_supports, strided_create},
    {INF_OP_SLICE, strided_supports, strided_create},
    {INF_OP_SPLIT, strided_supports, strided_create},
    {INF_OP_BROADCAST, strided_supports, strided_create},
    {INF_OP_TILE, strided_supports, strided_create},
    {INF_OP_REVERSE, strided_supports, strided_create},
    {INF_OP_SPACE_TO_DEPTH, strided_supports, strided_create},
    {INF_OP_DEPTH_TO_SPACE, strided_supports, strided_create},
    {INF_OP_SPACE_TO_BATCH, strided_supports, strided_create},
    {INF_OP_BATCH_TO_SPACE, strided_supports, strided_create},
    {0},
};
