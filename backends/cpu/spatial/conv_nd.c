// SPDX-License-Identifier: Apache-2.0
// Operator conv_nd: convolutions over one to three axes. The pixels under the windows of a strip of
// results are copied to rows of a matrix (im2col), which stays in the cache. It is multiplied with
// the packed filter if that is constant and has one group, otherwise by plain loops.
#include <string.h>

#include "backends/cpu/native/conv_packed.h"
#include "backends/cpu/native/work.h"
#include "backends/cpu/spatial/window_nd.h"

// Pixels of a strip if plain loops compute it.
#define PLAIN_STRIP_PIXELS 16

struct conv_nd {
    struct inf_conv_packed packed; // if `is_packed`
    struct inf_window_nd window;
    bool is_packed;
    bool in_place; // true: pixels of x are read in place of copied windows (is_pointwise())
    size_t pixels; // results of all images
    size_t depth;  // elements under a window
    size_t unit;   // strips begin at multiples of this
    size_t strips, workers;
    size_t patch_count;  // floats of scratch memory for the copies of one strip
    size_t scratch_step; // floats of scratch memory of each worker
};

struct conv_nd_task {
    const struct conv_nd *conv;
    const float *x, *filter, *bias; // the last two are read by plain loops only; bias may be NULL
    float *y, *scratch;
};

// Copies the elements of a row of x that lie under a row of the window at column `column`. Elements
// outside of x become 0; `x` is NULL if the whole row is outside.
static void copy_window_row(const struct inf_window_nd *window, const float *x, size_t column,
                            float *to)
{
    size_t channels = window->big_channels;
    for (size_t run = 0; run < window->row_runs; run++, to += window->run_taps * channels) {
        struct inf_window_nd_run found = {0};
        bool inside = x != NULL && inf_window_nd_find_run(window, column, run, &found);
        if (!inside)
            found.count = 0;
        size_t end = found.first + found.count;
        if (found.count < window->run_taps) {
            memset(to, 0, found.first * channels * sizeof(float));
            memset(to + end * channels, 0, (window->run_taps - end) * channels * sizeof(float));
        }
        if (inside)
            memcpy(to + found.first * channels, x + found.column * channels,
                   found.count * channels * sizeof(float));
    }
}

// Copies the pixels under the window of result `index`, which is counted over all images, to `to`.
static void copy_window(const struct inf_window_nd *window, const float *x, size_t index, float *to)
{
    const struct inf_window *axes = window->axes;
    size_t row_pixels = (size_t)axes[2].output;
    size_t pixel = index % window->small_pixels;
    struct inf_window_nd_row row = inf_window_nd_find_row(window, pixel / row_pixels);
    x += index / window->small_pixels * window->big_pixels * window->big_channels;
    for (int32_t a = 0; a < axes[0].kernel; a++)
        for (int32_t b = 0; b < axes[1].kernel; b++) {
            size_t big_row;
            bool inside = inf_window_nd_find_big_row(window, &row, a, b, &big_row);
            copy_window_row(
                window, inside ? x + big_row * (size_t)axes[2].input * window->big_channels : NULL,
                pixel % row_pixels, to);
            to += (size_t)axes[2].kernel * window->big_channels;
        }
}

// Computes one result from a copied window.
static void multiply_window(const struct conv_nd_task *task, const float *patch, float *restrict y)
{
    const struct inf_window_nd *window = &task->conv->window;
    size_t inputs = window->big_channels / window->groups; // of each group
    size_t outputs = window->small_channels;
    size_t each = outputs / window->groups;
    const float *w = task->filter;
    if (task->bias != NULL)
        memcpy(y, task->bias, outputs * sizeof(float));
    else
        memset(y, 0, outputs * sizeof(float));
    for (size_t tap = 0; tap < inf_window_nd_taps(window); tap++, patch += window->big_channels)
        for (size_t k = 0; k < inputs; k++, w += outputs) {
            // Groups of one output, as in depthwise convolutions, need no loop over outputs.
            for (size_t c = 0; c < outputs && each == 1; c++)
                y[c] += patch[c * inputs + k] * w[c];
            for (size_t g = 0; g < window->groups && each > 1; g++)
                for (size_t c = g * each; c < (g + 1) * each; c++)
                    y[c] += patch[g * inputs + k] * w[c];
        }
}

static void compute_strip(const void *context, size_t strip, size_t worker)
{
    const struct conv_nd_task *task = context;
    const struct conv_nd *conv = task->conv;
    size_t first = inf_native_strip_start(conv->pixels, conv->strips, strip, conv->unit);
    size_t end = inf_native_strip_start(conv->pixels, conv->strips, strip + 1, conv->unit);
    float *scratch = task->scratch + worker * conv->scratch_step;
    const float *patches = conv->in_place ? task->x + first * conv->depth : scratch;
    float *y = task->y + first * conv->window.small_channels;
    for (size_t i = first; i < end && !conv->in_place; i++)
        copy_window(&conv->window, task->x, i, scratch + (i - first) * conv->depth);
    if (conv->is_packed && first < end) {
        struct inf_conv_packed_run run = {
            .a = {patches},
            .count = end - first,
            .y = y,
            .scratch = inf_conv_packed_scratch_at(&conv->packed, scratch, conv->patch_count)};
        inf_conv_packed_compute(&conv->packed, &run, 0, conv->packed.panel_count);
        return;
    }
    for (size_t i = 0; i < end - first; i++)
        multiply_window(task, patches + i * conv->depth, y + i * conv->window.small_channels);
}

static void conv_nd_run(const struct inf_cpu_step *step)
{
    const struct conv_nd *conv = step->state;
    struct conv_nd_task task = {
        .conv = conv, .x = step->inputs[0], .y = step->output, .scratch = step->scratch};
    struct inf_cpu_tiles work = {compute_strip, &task, conv->strips};
    if (!conv->is_packed) {
        task.filter = step->inputs[1];
        task.bias = inf_cpu_has_input(step->node, 2) ? step->inputs[2] : NULL;
    }
    inf_cpu_team_run_tiles(step->team, &work, conv->workers);
}

// Returns true if the window of each result is the one pixel of x at the same position, so that x
// itself is the matrix of copied windows.
static bool is_pointwise(const struct inf_window_nd *window)
{
    bool moves = false;
    for (int i = 0; i < INF_WINDOW_ND_AXES; i++)
        moves |= window->axes[i].stride != 1 || window->axes[i].pad_before != 0;
    return !moves && inf_window_nd_taps(window) == 1 && window->big_pixels == window->small_pixels;
}

static enum inf_code describe_conv(struct conv_nd **out_conv, struct inf_cpu_step *step,
                                   struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct conv_nd), err));
    struct conv_nd *conv = step->state;
    const struct inf_window_nd *window = &conv->window;
    INF_TRY(inf_window_nd_init(&conv->window, step->graph, step->node, err));
    conv->pixels = window->batch * window->small_pixels;
    conv->depth = inf_window_nd_taps(window) * window->big_channels;
    conv->in_place = is_pointwise(window);
    conv->workers = inf_native_choose_workers(step, conv->pixels * conv->depth / window->groups *
                                                        window->small_channels);
    step->run = conv_nd_run;
    step->kernel = "conv_nd";
    *out_conv = conv;
    return INF_OK;
}

// Cuts the results into strips of about `wanted` pixels, each of which begins at a multiple of
// `unit`. Returns the largest number of pixels of a strip.
static size_t choose_strips(struct conv_nd *conv, size_t wanted, size_t unit)
{
    conv->unit = unit;
    conv->strips = inf_native_choose_strips(conv->pixels, wanted, conv->workers);
    size_t most = (conv->pixels + conv->strips - 1) / conv->strips + unit;
    if (!conv->in_place)
        conv->patch_count = (most * conv->depth + 15) / 16 * 16;
    return most;
}

static enum inf_code packed_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    struct inf_window_nd window;
    INF_TRY(inf_window_nd_init(&window, graph, node, err));
    if (window.groups > 1)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: conv_nd: groups are not packed");
    size_t filter = inf_shape_elements(inf_cpu_input_shape(graph, node, 1));
    INF_TRY(inf_cpu_need_const(graph, node, 1, filter, err));
    return inf_cpu_need_const(graph, node, 2, window.small_channels, err);
}

static enum inf_code packed_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct conv_nd *conv;
    INF_TRY(describe_conv(&conv, step, err));
    struct inf_conv_packed_matrix matrix = {.pixels = conv->pixels,
                                            .depth = conv->depth,
                                            .groups = 1,
                                            .columns = conv->window.small_channels,
                                            .bias = inf_cpu_const_f32(step->graph, step->node, 2)};
    INF_TRY(inf_conv_packed_init_matrix(&conv->packed, step, &matrix, err));
    conv->is_packed = true;
    size_t most = choose_strips(conv, inf_conv_packed_strip_pixels(&conv->packed),
                                inf_conv_packed_strip_unit(&conv->packed));
    conv->scratch_step = inf_native_need_worker_scratch(
        step, conv->workers, conv->patch_count + inf_conv_packed_scratch(&conv->packed, most));
    step->operand_count = 1; // the filter and the bias are packed
    return INF_OK;
}

static enum inf_code plain_supports(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err)
{
    struct inf_window_nd window;
    return inf_window_nd_init(&window, graph, node, err);
}

static enum inf_code plain_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct conv_nd *conv;
    INF_TRY(describe_conv(&conv, step, err));
    choose_strips(conv, PLAIN_STRIP_PIXELS, 1);
    conv->scratch_step = inf_native_need_worker_scratch(step, conv->workers, conv->patch_count);
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_conv_nd_kernels[] = {
    {INF_OP_CONV_ND, packed_supports, packed_create, .packs = INF_CPU_PACKS(1)},
    {INF_OP_CONV_ND, plain_supports, plain_create},
    {0},
};
