// SPDX-License-Identifier: Apache-2.0
// Operators conv2d_transpose and conv_nd_transpose.
//
// The product of a pixel of x with the whole filter gives one value for each tap and output
// channel: what the pixel adds to the pixels of y under its window. A strip of rows of y is
// computed from all pixels of x whose windows reach it:
//
//     y = bias;  for each x in reach: products = x * filter;  y[under each tap] += products[tap]
//
// Two strips share the pixels of x whose windows reach both, and each multiplies them again, so
// that no two threads add to the same element. There are only as many strips as threads.
//
// Windows that do not overlap and cover all of y are simpler: each element of y is one product plus
// the bias. For one row of the window, the products of the pixels of a row of x are neighbours in
// y, so that the kernel stores them there.
#include <math.h>
#include <string.h>

#include "backends/cpu/native/conv_packed.h"
#include "backends/cpu/native/work.h"
#include "backends/cpu/spatial/window_nd.h"

// Pixels of x are multiplied in groups. The products of a group are about this many floats, so that
// they stay in the cache.
#define PRODUCT_ELEMENTS ((size_t)32 << 10)
// The fewest pixels of x of a group: each group reads the whole filter.
#define GROUP_PIXELS_MIN 24u

struct transpose {
    struct inf_conv_packed packed; // if `is_packed`
    struct inf_window_nd window;
    bool is_packed;
    bool is_direct; // true: windows do not overlap and cover all of y
    struct inf_cpu_activation activation;
    struct inf_native_epilogue epilogue;
    size_t columns;      // number of products of a pixel: taps times output channels
    size_t group_pixels; // pixels of x that are multiplied at a time
    int outer;           // axis along which y is cut into strips
    size_t strips;       // of each image
    size_t workers;
    size_t product_count; // floats of scratch memory for the products of a group
    size_t scratch_step;  // floats of scratch memory of each worker
};

struct transpose_task {
    const struct transpose *op;
    const float *x, *filter, *bias; // `filter` is read by plain loops only; bias may be NULL
    float *y, *scratch;
};

// Pixels `first` to `end` (exclusive) of one image of y, and those of x whose windows reach them.
struct strip {
    size_t first, end;
    size_t x_first, x_end;
};

// Pixels `first` to `end` (exclusive) of row `row` of x.
struct row_part {
    size_t row, first, end;
};

static struct strip find_strip(const struct transpose *op, size_t index)
{
    const struct inf_window_nd *window = &op->window;
    const struct inf_window *axis = &window->axes[op->outer];
    struct strip strip = {.end = window->big_pixels, .x_end = window->small_pixels};
    if (op->strips == 1)
        return strip;
    size_t rows = (size_t)axis->input;
    int64_t first = (int64_t)inf_native_strip_start(rows, op->strips, index, 1);
    int64_t end = (int64_t)inf_native_strip_start(rows, op->strips, index + 1, 1);
    int64_t reach = (int64_t)(axis->kernel - 1) * axis->dilation;
    int64_t from = INF_MAX(first + axis->pad_before - reach, 0);
    int64_t to = end + axis->pad_before + axis->stride - 1;
    size_t x_row = window->small_pixels / (size_t)axis->output;
    strip.first = (size_t)first * (window->big_pixels / rows);
    strip.end = (size_t)end * (window->big_pixels / rows);
    strip.x_end = x_row * (size_t)INF_MIN(to / axis->stride, axis->output);
    strip.x_first = x_row * (size_t)((from + axis->stride - 1) / axis->stride);
    strip.x_first = INF_MIN(strip.x_first, strip.x_end);
    return strip;
}

// Multiplies one pixel of x with a filter that is not packed.
static void multiply_pixel(const struct transpose_task *task, const float *x, float *products)
{
    const struct inf_window_nd *window = &task->op->window;
    size_t inputs = window->small_channels;
    size_t each = inputs / window->groups; // channels of x of each group
    size_t outputs = window->big_channels / window->groups;
    for (size_t tap = 0; tap < inf_window_nd_taps(window); tap++)
        for (size_t c = 0; c < window->big_channels; c++) {
            size_t first = c / outputs * each;
            const float *w = task->filter + (tap * outputs + c % outputs) * inputs + first;
            float sum = 0;
            for (size_t k = 0; k < each; k++)
                sum += x[first + k] * w[k];
            *products++ = sum;
        }
}

// Adds the products of `count` neighbouring taps to the pixels of the image from `pixel` on, but
// only to those of the strip.
static void add_taps(const struct strip *strip, size_t pixel, size_t count, size_t channels,
                     const float *products, float *image)
{
    size_t first = INF_MAX(pixel, strip->first);
    size_t end = INF_MIN(pixel + count, strip->end);
    const float *from = products + (first - pixel) * channels;
    float *restrict to = image + first * channels;
    for (size_t i = 0; first < end && i < (end - first) * channels; i++)
        to[i] += from[i];
}

// Adds products of pixels of x to the elements of the strip under their windows. The pixels are
// those of *part, and `products` has their products, one pixel after the other.
static void add_row_products(const struct inf_window_nd *window, const struct strip *strip,
                             const struct row_part *part, const float *products, float *image)
{
    const struct inf_window *axes = window->axes;
    size_t channels = window->big_channels;
    size_t columns = inf_window_nd_taps(window) * channels;
    struct inf_window_nd_row row = inf_window_nd_find_row(window, part->row);
    size_t big_row;
    size_t step = window->run_taps * channels;
    for (int32_t a = 0; a < axes[0].kernel; a++)
        for (int32_t b = 0; b < axes[1].kernel; b++, products += step * window->row_runs) {
            if (!inf_window_nd_find_big_row(window, &row, a, b, &big_row))
                continue;
            size_t row_first = big_row * (size_t)axes[2].input;
            for (size_t run = 0; run < window->row_runs; run++)
                for (size_t column = part->first; column < part->end; column++) {
                    struct inf_window_nd_run found;
                    if (!inf_window_nd_find_run(window, column, run, &found))
                        continue;
                    const float *from = products + (column - part->first) * columns + run * step +
                                        found.first * channels;
                    add_taps(strip, row_first + found.column, found.count, channels, from, image);
                }
        }
}

// Adds the products of `count` pixels of x, from pixel `first` on, to the elements of the strip.
static void add_products(const struct inf_window_nd *window, const struct strip *strip,
                         size_t first, size_t count, const float *products, float *image)
{
    size_t row_pixels = (size_t)window->axes[INF_WINDOW_ND_AXES - 1].output;
    size_t columns = inf_window_nd_taps(window) * window->big_channels;
    for (size_t done = 0; done < count;) {
        size_t column = (first + done) % row_pixels;
        size_t some = INF_MIN(row_pixels - column, count - done);
        struct row_part part = {(first + done) / row_pixels, column, column + some};
        add_row_products(window, strip, &part, products + done * columns, image);
        done += some;
    }
}

static void fill_bias(const struct transpose_task *task, size_t count, float *y)
{
    size_t channels = task->op->window.big_channels;
    if (task->bias == NULL) {
        memset(y, 0, count * channels * sizeof(float));
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(y + i * channels, task->bias, channels * sizeof(float));
}

static void apply_activation(const struct transpose *op, const struct inf_simd *simd, size_t count,
                             float *y)
{
    const struct inf_native_epilogue *epilogue = &op->epilogue;
    if (!isnan(epilogue->slope))
        for (size_t i = 0; i < count; i++)
            y[i] = y[i] < 0 ? y[i] * epilogue->slope : y[i];
    if (op->activation.kind == INF_ACTIVATION_ELU)
        for (size_t i = 0; i < count; i++)
            y[i] = y[i] < 0 ? op->activation.alpha * expm1f(y[i]) : y[i];
    if (epilogue->min != -INFINITY || epilogue->max != INFINITY)
        simd->clamp(count, y, y, epilogue->min, epilogue->max);
    if (epilogue->map != NULL)
        epilogue->map(count, y, y);
}

// Stores the products of `count` pixels of x with the filter.
static void multiply_group(const struct transpose_task *task, const float *x, size_t count,
                           float *products)
{
    const struct transpose *op = task->op;
    if (op->is_packed) {
        struct inf_conv_packed_run run = {
            .a = {x},
            .count = count,
            .y = products,
            .scratch = inf_conv_packed_scratch_at(&op->packed, products, op->product_count)};
        inf_conv_packed_compute(&op->packed, &run, 0, op->packed.panel_count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        multiply_pixel(task, x + i * op->window.small_channels, products + i * op->columns);
}

static void compute_strip(const void *context, size_t tile, size_t worker)
{
    const struct transpose_task *task = context;
    const struct transpose *op = task->op;
    const struct inf_window_nd *window = &op->window;
    size_t image = tile / op->strips;
    struct strip strip = find_strip(op, tile % op->strips);
    const float *x = task->x + image * window->small_pixels * window->small_channels;
    float *y = task->y + image * window->big_pixels * window->big_channels;
    float *products = task->scratch + worker * op->scratch_step;
    fill_bias(task, strip.end - strip.first, y + strip.first * window->big_channels);
    for (size_t at = strip.x_first; at < strip.x_end; at += op->group_pixels) {
        size_t count = INF_MIN(op->group_pixels, strip.x_end - at);
        multiply_group(task, x + at * window->small_channels, count, products);
        add_products(window, &strip, at, count, products, y);
    }
}

// Computes one row of x, if windows do not overlap.
static void compute_row(const void *context, size_t tile, size_t worker)
{
    const struct transpose_task *task = context;
    const struct transpose *op = task->op;
    const struct inf_window_nd *window = &op->window;
    const struct inf_window *axes = window->axes;
    size_t row_pixels = (size_t)axes[2].output;
    size_t rows = window->small_pixels / row_pixels;
    size_t panels = op->packed.panel_count / op->packed.groups;
    struct inf_window_nd_row row = inf_window_nd_find_row(window, tile % rows);
    float *image = task->y + tile / rows * window->big_pixels * window->big_channels;
    struct inf_conv_packed_run run = {
        .a = {task->x + tile * row_pixels * window->small_channels},
        .count = row_pixels,
        .scratch =
            inf_conv_packed_scratch_at(&op->packed, task->scratch + worker * op->scratch_step, 0)};
    for (size_t group = 0; group < op->packed.groups; group++) {
        int32_t first = (int32_t)group / axes[1].kernel, second = (int32_t)group % axes[1].kernel;
        size_t big_row = 0;
        if (inf_window_nd_find_big_row(window, &row, first, second, &big_row)) {
            run.y = image + big_row * (size_t)axes[2].input * window->big_channels;
            inf_conv_packed_compute(&op->packed, &run, group * panels, (group + 1) * panels);
        }
    }
}

// A range of elements of y, for the activation.
struct finish_task {
    const struct transpose *op;
    const struct inf_simd *simd;
    float *y;
};

static void finish_part(const void *context, size_t first, size_t count)
{
    const struct finish_task *task = context;
    apply_activation(task->op, task->simd, count, task->y + first);
}

static void transpose_run(const struct inf_cpu_step *step)
{
    const struct transpose *op = step->state;
    const struct inf_window_nd *window = &op->window;
    struct transpose_task task = {
        .op = op, .x = step->inputs[0], .y = step->output, .scratch = step->scratch};
    uint32_t bias = op->is_packed ? 1 : 3; // packed_create() sets two operands
    if (!op->is_packed)
        task.filter = step->inputs[1];
    if (inf_cpu_has_input(step->node, 3) && !op->is_direct)
        task.bias = step->inputs[bias];
    struct inf_cpu_tiles work = {compute_strip, &task, window->batch * op->strips};
    if (op->is_direct)
        work = (struct inf_cpu_tiles){compute_row, &task,
                                      window->batch * window->small_pixels /
                                          (size_t)window->axes[2].output};
    inf_cpu_team_run_tiles(step->team, &work, op->workers);
    if (op->activation.kind == INF_ACTIVATION_NONE)
        return;
    struct finish_task finish = {op, step->isa->simd, step->output};
    inf_native_run_range(
        step, &(struct inf_native_range){finish_part, &finish,
                                         window->batch * window->big_pixels * window->big_channels,
                                         PRODUCT_ELEMENTS});
}

static struct inf_cpu_activation activation_of(const struct inf_node *node)
{
    const struct inf_attrs_conv2d_transpose *attrs = &node->attrs.conv2d_transpose;
    if (node->op != INF_OP_CONV2D_TRANSPOSE)
        return (struct inf_cpu_activation){.kind = INF_ACTIVATION_NONE};
    return (struct inf_cpu_activation){attrs->activation, attrs->activation_alpha,
                                       attrs->activation_min, attrs->activation_max};
}

// Chooses the axis along which y is cut: the first one that is longer than 1. There is one strip
// only if x is longer than 1 along an axis before it.
static void choose_strips(struct transpose *op)
{
    const struct inf_window_nd *window = &op->window;
    bool cut = true;
    while (op->outer < INF_WINDOW_ND_AXES - 1 && window->axes[op->outer].input == 1)
        cut &= window->axes[op->outer++].output == 1;
    size_t rows = cut ? (size_t)window->axes[op->outer].input : 1;
    size_t wanted = (op->workers + window->batch - 1) / window->batch;
    op->strips = INF_MIN(wanted, rows);
}

static enum inf_code describe_transpose(struct transpose **out_op, struct inf_cpu_step *step,
                                        struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct transpose), err));
    struct transpose *op = step->state;
    const struct inf_window_nd *window = &op->window;
    INF_TRY(inf_window_nd_init(&op->window, step->graph, step->node, err));
    op->activation = activation_of(step->node);
    op->epilogue = inf_native_epilogue_of(step, step->node, &op->activation, UINT32_MAX);
    op->columns = inf_window_nd_taps(window) * window->big_channels;
    op->workers =
        inf_native_choose_workers(step, window->batch * window->small_pixels *
                                            window->small_channels / window->groups * op->columns);
    choose_strips(op);
    op->group_pixels =
        INF_MIN(INF_MAX(PRODUCT_ELEMENTS / op->columns, GROUP_PIXELS_MIN), window->small_pixels);
    op->product_count = (op->group_pixels * op->columns + 15) / 16 * 16;
    step->run = transpose_run;
    *out_op = op;
    return INF_OK;
}

static enum inf_code plain_supports(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err)
{
    struct inf_window_nd window;
    INF_TRY(inf_window_nd_init(&window, graph, node, err));
    struct inf_cpu_activation activation = activation_of(node);
    return inf_cpu_activation_check(graph, node, &activation, UINT32_MAX, window.big_channels, err);
}

static enum inf_code plain_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct transpose *op;
    INF_TRY(describe_transpose(&op, step, err));
    op->scratch_step = inf_native_need_worker_scratch(step, op->workers, op->product_count);
    step->kernel = "conv_transpose";
    return INF_OK;
}

static enum inf_code packed_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    struct inf_window_nd window;
    INF_TRY(plain_supports(graph, node, err));
    INF_TRY(inf_window_nd_init(&window, graph, node, err));
    if (window.groups > 1)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: groups are not packed",
                        inf_op_info(node->op)->name);
    return inf_cpu_need_const(graph, node, 1,
                              inf_shape_elements(inf_cpu_input_shape(graph, node, 1)), err);
}

// Returns true if each element of y lies under exactly one window.
static bool is_direct(const struct inf_window_nd *window)
{
    for (int i = 0; i < INF_WINDOW_ND_AXES; i++) {
        const struct inf_window *axis = &window->axes[i];
        if (axis->stride != axis->kernel || axis->dilation != 1 || axis->pad_before != 0 ||
            axis->input != axis->output * axis->stride)
            return false;
    }
    return true;
}

// Packs the filter so that a row of the window is a group of columns. The bias is repeated for each
// tap of such a row.
static enum inf_code pack_direct(struct transpose *op, struct inf_cpu_step *step,
                                 struct inf_error *err)
{
    const struct inf_window_nd *window = &op->window;
    const float *bias = inf_cpu_const_f32(step->graph, step->node, 3);
    struct inf_conv_packed_matrix matrix = {.pixels = (size_t)window->axes[2].output,
                                            .depth = window->small_channels,
                                            .columns = window->run_taps * window->big_channels,
                                            .transposed = true};
    matrix.groups = op->columns / matrix.columns;
    float *repeated; // NULL: there is no bias
    INF_TRY(inf_native_alloc_floats(&repeated, step, bias != NULL ? matrix.columns : 0, err));
    for (size_t i = 0; i < matrix.columns && bias != NULL; i++)
        repeated[i] = bias[i % window->big_channels];
    matrix.bias = repeated;
    INF_TRY(inf_conv_packed_init_matrix(&op->packed, step, &matrix, err));
    op->is_direct = true;
    op->product_count = 0;
    op->scratch_step = inf_native_need_worker_scratch(
        step, op->workers, inf_conv_packed_scratch(&op->packed, matrix.pixels));
    step->operand_count = 1;
    return INF_OK;
}

static enum inf_code packed_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct transpose *op;
    INF_TRY(describe_transpose(&op, step, err));
    op->is_packed = true;
    step->kernel = "conv_transpose";
    bool constant =
        !inf_cpu_has_input(step->node, 3) || inf_graph_is_const(step->graph, step->node->inputs[3]);
    if (is_direct(&op->window) && constant)
        return pack_direct(op, step, err);
    // The filter is [taps][output channels][channels of x].
    struct inf_conv_packed_matrix matrix = {.pixels = op->group_pixels,
                                            .depth = op->window.small_channels,
                                            .groups = 1,
                                            .columns = op->columns,
                                            .transposed = true};
    INF_TRY(inf_conv_packed_init_matrix(&op->packed, step, &matrix, err));
    op->scratch_step = inf_native_need_worker_scratch(
        step, op->workers,
        op->product_count + inf_conv_packed_scratch(&op->packed, op->group_pixels));
    // The bias becomes operand 1, so that the filter is no operand that is kept for runs.
    uint32_t bias = inf_cpu_has_input(step->node, 3) ? step->node->inputs[3] : INF_VALUE_NONE;
    if (bias != INF_VALUE_NONE)
        step->inputs[1] = step->inputs[3]; // the address of a constant is not set again
    return inf_cpu_step_set_operands(step, step->node->inputs[0], bias, err);
}

const struct inf_cpu_kernel inf_cpu_conv_transpose_kernels[] = {
    {INF_OP_CONV2D_TRANSPOSE, packed_supports, packed_create, .packs = INF_CPU_PACKS(1)},
    {INF_OP_CONV_ND_TRANSPOSE, packed_supports, packed_create, .packs = INF_CPU_PACKS(1)},
    {INF_OP_CONV2D_TRANSPOSE, plain_supports, plain_create},
    {INF_OP_CONV_ND_TRANSPOSE, plain_supports, plain_create},
    {0},
};
