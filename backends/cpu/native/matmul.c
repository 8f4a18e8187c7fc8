// SPDX-License-Identifier: Apache-2.0
// Products of two matrices a and b that are both computed at run time. Each tile of work packs some
// columns of b and multiplies all rows of a with these columns.
//
// If a has few rows and b is stored transposed, packing b would take longer than the product. In a
// decoding step, the query is such an a and the keys are such a b. The columns of b are contiguous
// then, so each result is computed as the dot product of a row of a and a column of b.
#include <math.h>
#include <string.h>

#include "backends/cpu/core/activation.h"
#include "backends/cpu/core/panel.h"
#include "backends/cpu/kernels/nn.h"
#include "backends/cpu/native/epilogue.h"
#include "backends/cpu/native/work.h"

#define LINE          16 // floats in a cache line
#define PREFETCH_ROWS 16 // how many rows of b are prefetched while it is packed
#define DOT_ROWS      4  // most rows of a that are multiplied without packing b
// The approximate number of elements of b in one tile that is not packed.
#define DOT_ELEMENTS ((size_t)16384)

struct matmul {
    const struct inf_nn_gemm *nn;
    const struct inf_simd *simd; // if not NULL, b is not packed
    size_t rows, depth, columns; // matrix dimensions m, k, n
    size_t batch;                // number of products
    size_t panels, panel_width;  // parts of the columns, which are tiles of work
    bool transpose_b;
    int32_t rank; // number of leading dimensions
    // The leading dimensions of the operands. A step is the number of matrices between neighbours
    // along a dimension; 0 if the operand is repeated along it.
    size_t dims[INF_LIMIT_RANK], a_steps[INF_LIMIT_RANK], b_steps[INF_LIMIT_RANK];
    struct inf_native_epilogue epilogue;
    bool has_bias;
    size_t workers;
    size_t scratch_step; // floats of scratch memory of each worker: panel, bias, slopes
};

struct matmul_task {
    const struct matmul *matmul;
    const float *a, *b, *bias;
    float *y, *scratch;
};

static struct inf_cpu_activation activation_of(const struct inf_node *node)
{
    const struct inf_attrs_matmul *attrs = &node->attrs.matmul;
    return (struct inf_cpu_activation){attrs->activation, attrs->activation_alpha,
                                       attrs->activation_min, attrs->activation_max};
}

static enum inf_code matmul_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    const struct inf_shape *a = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    INF_TRY(inf_cpu_need_f32(graph, node, 1, err));
    if (a->rank < 2 || b->rank < 2 || node->attrs.matmul.transpose_a)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: matmul: a transposed is not built");
    size_t columns = (size_t)b->dims[b->rank - (node->attrs.matmul.transpose_b ? 2 : 1)];
    if (inf_cpu_has_input(node, 2) &&
        inf_shape_elements(inf_cpu_input_shape(graph, node, 2)) != columns)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: matmul: this bias is not built");
    struct inf_cpu_activation activation = activation_of(node);
    return inf_native_epilogue_check(graph, node, &activation, 3, columns, err);
}

// Packs the columns of b from `first` on into a panel. The panel is padded with zeros to its width.
static void pack_panel(const struct matmul *matmul, const float *b, size_t first, size_t width,
                       float *to)
{
    size_t columns = INF_MIN(width, matmul->columns - first);
    if (columns < width)
        memset(to, 0, matmul->depth * width * sizeof(float));
    const float *from_row = b + first;
    for (size_t k = 0; k < matmul->depth && !matmul->transpose_b; k++) {
        // Prefetch explicitly, because the rows are too far apart for the hardware prefetcher.
        for (size_t line = 0; line < columns; line += LINE)
            __builtin_prefetch(from_row + PREFETCH_ROWS * matmul->columns + line);
        memcpy(to + k * width, from_row, columns * sizeof(float));
        from_row += matmul->columns;
    }
    if (matmul->transpose_b)
        inf_cpu_panel_transpose(matmul->depth, columns, b + first * matmul->depth, matmul->depth,
                                to, width);
}

// Sets *a and *b to the matrices of product number `product`.
static void find_matrices(const struct matmul_task *task, size_t product, const float **a,
                          const float **b)
{
    const struct matmul *matmul = task->matmul;
    *a = task->a;
    *b = task->b;
    for (int32_t axis = matmul->rank - 1; axis >= 0; axis--) {
        size_t index = product % matmul->dims[axis];
        product /= matmul->dims[axis];
        *a += index * matmul->a_steps[axis] * matmul->rows * matmul->depth;
        *b += index * matmul->b_steps[axis] * matmul->depth * matmul->columns;
    }
}

static void dot_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct matmul_task *task = context;
    const struct matmul *matmul = task->matmul;
    size_t product = tile / matmul->panels;
    size_t first = tile % matmul->panels * matmul->panel_width;
    size_t columns = INF_MIN(matmul->panel_width, matmul->columns - first);
    const float *a;
    const float *b;
    find_matrices(task, product, &a, &b);
    float *y = task->y + product * matmul->rows * matmul->columns + first;
    for (size_t row = 0; row < matmul->rows; row++)
        matmul->simd->dots(matmul->depth, a + row * matmul->depth, columns,
                           b + first * matmul->depth, y + row * matmul->columns);
}

static void matmul_tile(const void *context, size_t tile, size_t worker)
{
    const struct matmul_task *task = context;
    const struct matmul *matmul = task->matmul;
    size_t product = tile / matmul->panels;
    size_t first = tile % matmul->panels * matmul->panel_width;
    size_t columns = INF_MIN(matmul->panel_width, matmul->columns - first);
    // If few columns are left, the last panel is only one vector wide.
    size_t width = columns <= matmul->nn->width ? matmul->nn->width : matmul->panel_width;
    const float *a;
    const float *b;
    find_matrices(task, product, &a, &b);
    float *w = task->scratch + worker * matmul->scratch_step;
    float *bias = w + matmul->depth * width;
    float *slopes = bias + width;
    pack_panel(matmul, b, first, width, w);
    memset(bias, 0, width * sizeof(float));
    if (task->bias != NULL)
        memcpy(bias, task->bias + first, columns * sizeof(float));
    struct inf_gemm_panel panel = {.segments = 1,
                                   .depth = matmul->depth,
                                   .w = w,
                                   .bias = bias,
                                   .min = matmul->epilogue.min,
                                   .max = matmul->epilogue.max,
                                   .y_step = matmul->columns,
                                   .columns = columns};
    if (inf_native_epilogue_has_slopes(&matmul->epilogue)) {
        struct inf_native_epilogue part = matmul->epilogue;
        if (part.slopes != NULL)
            part.slopes += first;
        inf_native_epilogue_fill_slopes(&part, columns, width, slopes);
        panel.slopes = slopes;
    }
    for (size_t row = 0; row < matmul->rows; row += matmul->nn->rows_max) {
        size_t some = INF_MIN(matmul->rows - row, matmul->nn->rows_max);
        const float *segment[1] = {a + row * matmul->depth};
        float *y = task->y + (product * matmul->rows + row) * matmul->columns + first;
        struct inf_gemm gemm = {.a = segment, .a_step = matmul->depth, .prefetch = w, .y = y};
        matmul->nn->gemm[width / matmul->nn->width - 1][some - 1](&panel, &gemm);
        for (size_t i = 0; i < some && matmul->epilogue.map != NULL; i++)
            matmul->epilogue.map(columns, y + i * matmul->columns, y + i * matmul->columns);
    }
}

static void matmul_run(const struct inf_cpu_step *step)
{
    const struct matmul *matmul = step->state;
    struct matmul_task task = {matmul,          step->inputs[0],
                               step->inputs[1], matmul->has_bias ? step->inputs[2] : NULL,
                               step->output,    step->scratch};
    struct inf_cpu_tiles work = {matmul->simd != NULL ? dot_tile : matmul_tile, &task,
                                 matmul->batch * matmul->panels};
    inf_cpu_team_run_tiles(step->team, &work, matmul->workers);
}

// Sets the leading (batch) dimensions of the product, to which those of a and b are broadcast.
static void describe_batch(struct matmul *matmul, const struct inf_shape *a,
                           const struct inf_shape *b, const struct inf_shape *y)
{
    size_t a_step = 1;
    size_t b_step = 1;
    matmul->rank = y->rank - 2;
    matmul->batch = 1;
    for (int32_t axis = matmul->rank - 1; axis >= 0; axis--) {
        int32_t a_axis = axis - (y->rank - a->rank);
        int32_t b_axis = axis - (y->rank - b->rank);
        size_t a_dim = a_axis < 0 ? 1 : (size_t)a->dims[a_axis];
        size_t b_dim = b_axis < 0 ? 1 : (size_t)b->dims[b_axis];
        matmul->dims[axis] = (size_t)y->dims[axis];
        matmul->a_steps[axis] = a_dim == 1 ? 0 : a_step;
        matmul->b_steps[axis] = b_dim == 1 ? 0 : b_step;
        a_step *= a_dim;
        b_step *= b_dim;
        matmul->batch *= matmul->dims[axis];
    }
}

// If all matrices of a are contiguous and multiplied with the same b, treats them as one matrix, so
// that b is packed only once.
static void join_batch(struct matmul *matmul)
{
    for (int32_t axis = 0; axis < matmul->rank; axis++)
        if (matmul->dims[axis] > 1 && (matmul->b_steps[axis] != 0 || matmul->a_steps[axis] == 0))
            return;
    matmul->rows *= matmul->batch;
    matmul->batch = 1;
    matmul->rank = 0;
}

// Returns true if the product is computed without packing b.
static bool is_dot(const struct matmul *matmul)
{
    const struct inf_native_epilogue *epilogue = &matmul->epilogue;
    bool plain = !matmul->has_bias && epilogue->map == NULL && epilogue->min == -INFINITY &&
                 epilogue->max == INFINITY && !inf_native_epilogue_has_slopes(epilogue);
    return plain && matmul->transpose_b && matmul->rows <= DOT_ROWS;
}

static enum inf_code matmul_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_shape *a = inf_cpu_input_shape(step->graph, node, 0);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct matmul), err));
    struct matmul *matmul = step->state;
    struct inf_cpu_activation activation = activation_of(node);
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, node);
    matmul->nn = step->isa->nn->gemm;
    matmul->rows = (size_t)a->dims[a->rank - 2];
    matmul->depth = (size_t)a->dims[a->rank - 1];
    matmul->columns = (size_t)y->dims[y->rank - 1];
    matmul->transpose_b = node->attrs.matmul.transpose_b;
    matmul->has_bias = inf_cpu_has_input(node, 2);
    matmul->epilogue = inf_native_epilogue_of(step, node, &activation, 3);
    matmul->panel_width = matmul->nn->width * (matmul->columns > matmul->nn->width ? 2 : 1);
    describe_batch(matmul, a, inf_cpu_input_shape(step->graph, node, 1), y);
    join_batch(matmul);
    if (is_dot(matmul)) {
        matmul->simd = step->isa->simd;
        matmul->panel_width = DOT_ELEMENTS / matmul->depth + 1;
    }
    matmul->panels = (matmul->columns + matmul->panel_width - 1) / matmul->panel_width;
    matmul->workers = inf_native_choose_workers(step, matmul->batch * matmul->rows * matmul->depth *
                                                          matmul->columns);
    step->run = matmul_run;
    step->kernel = matmul->simd != NULL ? "matmul_dot" : "matmul";
    if (matmul->simd != NULL)
        return INF_OK;
    matmul->scratch_step = inf_native_need_worker_scratch(
        step, matmul->workers, (matmul->depth + 2) * matmul->panel_width);
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_product_kernels[] = {
    {INF_OP_MATMUL, matmul_supports, matmul_create},
    {0},
};
