// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions with windows of 3x3 and 5x5. XNNPACK's kernels load every input 9 or 25
// times; these kernels load it once for a row of results.
#include "backends/cpu/native/depthwise.h"

#include <inttypes.h>
#include <string.h>

#include "backends/cpu/native/work.h"
#include "backends/graph/shape/infer.h"

// The approximate number of multiply-adds of one task.
#define TASK_MACS ((size_t)100000)

// Returns true if height and width have the same window parameters. A dilated window must have
// stride 1, because it is computed as a plain window over every `dilation`-th pixel.
static bool is_square(const struct inf_window *h, const struct inf_window *w)
{
    return h->kernel == w->kernel && h->stride == w->stride && h->dilation == w->dilation &&
           (h->dilation == 1 || h->stride == 1);
}

static struct inf_cpu_activation activation_of(const struct inf_node *node)
{
    const struct inf_attrs_depthwise_conv2d *attrs = &node->attrs.depthwise_conv2d;
    return (struct inf_cpu_activation){attrs->activation, attrs->activation_alpha,
                                       attrs->activation_min, attrs->activation_max};
}

enum inf_code inf_native_depthwise_check(const struct inf_graph *graph, const struct inf_node *node,
                                         struct inf_error *err)
{
    struct inf_window height;
    struct inf_window width;
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    const struct inf_shape *filter = inf_cpu_input_shape(graph, node, 1);
    size_t channels = (size_t)inf_cpu_input_shape(graph, node, 0)->dims[3];
    inf_node_windows(graph, node, &height, &width);
    if (!is_square(&height, &width) || inf_depthwise_form(height.kernel, height.stride) < 0)
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: depthwise_conv2d: windows of %" PRId32 "x%" PRId32 " by %" PRId32
                        ", dilated by %" PRId32 ", are not built here",
                        height.kernel, width.kernel, height.stride, height.dilation);
    if (filter->dims[3] != 1 || channels < inf_isa_best()->nn->depthwise_half->width)
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: depthwise_conv2d: %zu channels times %" PRId64 " are not built here",
                        channels, filter->dims[3]);
    INF_TRY(inf_cpu_need_const(graph, node, 1, inf_shape_elements(filter), err));
    INF_TRY(inf_cpu_need_const(graph, node, 2, channels, err));
    struct inf_cpu_activation activation = activation_of(node);
    return inf_native_epilogue_check(graph, node, &activation, 3, channels, err);
}

// Divides the channels between two kernels: whole vectors of channels go to `full`, the remaining
// channels to `half`.
static void share_channels(struct inf_native_depthwise *depthwise, const struct inf_nn *nn)
{
    size_t channels = depthwise->channels;
    size_t tail = channels % nn->depthwise->width;
    int form = inf_depthwise_form(depthwise->height.kernel, depthwise->height.stride);
    depthwise->full = nn->depthwise->form[form];
    depthwise->half = nn->depthwise_half->form[form];
    depthwise->full_channels = channels;
    if (channels < nn->depthwise->width)
        depthwise->full_channels = 0;
    else if (tail != 0 && tail <= nn->depthwise_half->width)
        depthwise->full_channels = channels - tail;
}

enum inf_code inf_native_depthwise_init(struct inf_native_depthwise *depthwise,
                                        struct inf_cpu_step *step, const struct inf_node *node,
                                        struct inf_error *err)
{
    const struct inf_graph *graph = step->graph;
    struct inf_cpu_activation activation = activation_of(node);
    float *packed;
    *depthwise = (struct inf_native_depthwise){0};
    inf_node_windows(graph, node, &depthwise->height, &depthwise->width);
    depthwise->channels = (size_t)inf_cpu_input_shape(graph, node, 0)->dims[3];
    depthwise->rows_max = inf_depthwise_rows(depthwise->height.kernel, depthwise->height.stride);
    depthwise->w = inf_cpu_const_f32(graph, node, 1);
    depthwise->bias = inf_cpu_const_f32(graph, node, 2);
    depthwise->epilogue = inf_native_epilogue_of(step, node, &activation, 3);
    share_channels(depthwise, step->isa->nn);
    if (depthwise->bias == NULL) {
        INF_TRY(inf_native_alloc_floats(&packed, step, depthwise->channels, err));
        memset(packed, 0, depthwise->channels * sizeof(float));
        depthwise->bias = packed;
    }
    if (!inf_native_epilogue_has_slopes(&depthwise->epilogue))
        return INF_OK;
    INF_TRY(inf_native_alloc_floats(&packed, step, depthwise->channels, err));
    inf_native_epilogue_fill_slopes(&depthwise->epilogue, depthwise->channels, depthwise->channels,
                                    packed);
    depthwise->slopes = packed;
    return INF_OK;
}

static void call_kernels(const struct inf_native_depthwise *depthwise, struct inf_depthwise *rows)
{
    rows->first = 0;
    rows->end = depthwise->full_channels;
    if (rows->end > 0)
        depthwise->full(rows);
    rows->first = depthwise->full_channels;
    rows->end = depthwise->channels;
    if (rows->first < rows->end)
        depthwise->half(rows);
}

// Returns how many of the numbers first, first + dilation, ... are below `count`.
static size_t count_every(size_t count, size_t first, size_t dilation)
{
    return first < count ? (count - first + dilation - 1) / dilation : 0;
}

// Calls the kernels once for each residue modulo the dilation, because every `dilation`-th window
// of a row, over every `dilation`-th pixel, is a plain window.
static void call_columns(const struct inf_native_depthwise *depthwise,
                         const struct inf_depthwise *whole)
{
    const struct inf_window *w = &depthwise->width;
    int64_t dilation = w->dilation;
    for (int64_t window = 0; window < dilation && window < w->output; window++) {
        struct inf_depthwise part = *whole;
        // the pixel of x at the left edge of the first window; negative in the padding
        int64_t pixel = window - w->pad_before;
        int64_t first = (pixel % dilation + dilation) % dilation;
        size_t offset = (size_t)window * depthwise->channels;
        part.pad = (ptrdiff_t)((first - pixel) / dilation);
        part.width = count_every((size_t)w->input, (size_t)first, (size_t)dilation);
        part.output_width = count_every((size_t)w->output, (size_t)window, (size_t)dilation);
        for (size_t i = 0; i < INF_DEPTHWISE_ROWS && part.width > 0; i++)
            if (part.rows[i] != NULL)
                part.rows[i] += (size_t)first * depthwise->channels;
        part.y[0] += offset;
        if (part.y[1] != NULL)
            part.y[1] += offset;
        call_kernels(depthwise, &part);
    }
}

void inf_native_depthwise_rows(const struct inf_native_depthwise *depthwise, const float *x,
                               size_t x_rows, size_t first, size_t end, float *y)
{
    const struct inf_window *h = &depthwise->height;
    size_t dilation = (size_t)h->dilation;
    size_t row_size = (size_t)depthwise->width.output * depthwise->channels;
    size_t input_size = (size_t)depthwise->width.input * depthwise->channels;
    struct inf_depthwise rows = {
        .channels = depthwise->channels,
        .step = depthwise->channels * dilation,
        .w = depthwise->w,
        .bias = depthwise->bias,
        .slopes = depthwise->slopes,
        .min = depthwise->epilogue.min,
        .max = depthwise->epilogue.max,
        .prefetches = depthwise->prefetches,
    };
    // A call computes up to rows_max rows of results. These rows lie `dilation` rows apart, so that
    // they read the same rows of x.
    size_t group = depthwise->rows_max * dilation;
    for (size_t i = 0; i < end - first; i++) {
        size_t row = first + i;
        if (i % group >= dilation)
            continue;
        int64_t input = (int64_t)row * h->stride - h->pad_before;
        for (int64_t k = 0; k < INF_DEPTHWISE_ROWS; k++) {
            int64_t at = input + k * h->dilation;
            rows.rows[k] = at >= 0 && at < h->input ? x + (size_t)at % x_rows * input_size : NULL;
        }
        rows.y[0] = y + i * row_size;
        rows.y[1] = depthwise->rows_max > 1 && row + dilation < end
                        ? rows.y[0] + dilation * row_size
                        : NULL;
        call_columns(depthwise, &rows);
    }
    if (depthwise->epilogue.map != NULL)
        depthwise->epilogue.map((end - first) * row_size, y, y);
}

// --- step for one depthwise node ---

struct depthwise_step {
    struct inf_native_depthwise depthwise;
    size_t batch, strips, workers; // strips: number of groups of rows into which an image is cut
};

struct depthwise_task {
    const struct depthwise_step *depthwise_step;
    const float *x;
    float *y;
};

static void compute_depthwise_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct depthwise_task *task = context;
    const struct inf_native_depthwise *depthwise = &task->depthwise_step->depthwise;
    size_t height = (size_t)depthwise->height.output;
    size_t strips = task->depthwise_step->strips;
    size_t image = tile / strips;
    size_t strip = tile % strips;
    size_t first = inf_native_strip_start(height, strips, strip, depthwise->rows_max);
    size_t end = inf_native_strip_start(height, strips, strip + 1, depthwise->rows_max);
    size_t input = (size_t)(depthwise->height.input * depthwise->width.input);
    size_t row = (size_t)depthwise->width.output * depthwise->channels;
    inf_native_depthwise_rows(depthwise, task->x + image * input * depthwise->channels,
                              (size_t)depthwise->height.input, first, end,
                              task->y + (image * height + first) * row);
}

static void run_depthwise(const struct inf_cpu_step *step)
{
    const struct depthwise_step *depthwise_step = step->state;
    struct depthwise_task task = {depthwise_step, step->inputs[0], step->output};
    struct inf_cpu_tiles work = {compute_depthwise_tile, &task,
                                 depthwise_step->batch * depthwise_step->strips};
    inf_cpu_team_run_tiles(step->team, &work, depthwise_step->workers);
}

static enum inf_code create_depthwise(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct depthwise_step), err));
    struct depthwise_step *depthwise_step = step->state;
    INF_TRY(inf_native_depthwise_init(&depthwise_step->depthwise, step, step->node, err));
    depthwise_step->depthwise.prefetches = true;
    const struct inf_window *h = &depthwise_step->depthwise.height;
    const struct inf_window *w = &depthwise_step->depthwise.width;
    size_t row_macs =
        (size_t)(w->output * h->kernel * w->kernel) * depthwise_step->depthwise.channels;
    size_t rows = (size_t)h->output;
    depthwise_step->batch = (size_t)inf_cpu_input_shape(step->graph, step->node, 0)->dims[0];
    depthwise_step->workers =
        inf_native_choose_workers(step, depthwise_step->batch * rows * row_macs * 2);
    depthwise_step->strips =
        inf_native_choose_strips(rows, TASK_MACS / row_macs + 1, depthwise_step->workers);
    step->run = run_depthwise;
    step->kernel = "depthwise";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_depthwise_kernels[] = {
    {INF_OP_DEPTHWISE_CONV2D, inf_native_depthwise_check, create_depthwise},
    {0},
};
