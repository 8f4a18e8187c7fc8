// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of 8-bit numbers with 8-bit results: qconv2d with one group for each
// channel. A strip of pixels is computed in one call. For each block of channels, the columns of x
// under the windows are interleaved in scratch memory (struct inf_q8_depthwise shows how), and then
// multiplied and summed.
#include "backends/cpu/native/work.h"
#include "backends/cpu/quantized/q8.h"
#include "backends/graph/shape/infer.h"

#include <string.h>

#define STRIP_PIXELS 32   // pixels of a row whose interleaved columns stay in the L1 cache
#define COLUMNS_MAX  4096 // largest number of columns in a window, times groups of four rows
#define FOUR         ((size_t)4)
#define MACS_EACH    4 // 8-bit multiply-adds that take as long as one float multiply-add
#define STRIP_MACS   ((size_t)100000)

// A block of channels that one call of the depthwise loop computes.
struct block {
    const struct inf_q8_depthwise *loops;
    struct inf_q8_window window;
    size_t first; // index of the first channel
};

struct depthwise {
    struct inf_window height, width;
    uint8_t flip; // 0 or 128: x ^ flip is the unsigned number
    size_t channels, batch;
    struct block *blocks;
    size_t block_count;
    uint8_t *padding;  // a row of x filled with its zero point
    size_t pixels_max; // most pixels in a strip
    size_t strips, workers;
    size_t scratch_step; // bytes of scratch memory of each worker, for interleaved columns
};

struct depthwise_task {
    const struct depthwise *depthwise;
    const uint8_t *x;
    uint8_t *y;
    uint8_t *scratch;
};

// --- checking which nodes this file can compute ---

// Returns how many columns of x the windows of `pixels` neighbouring pixels cover.
static size_t columns_of(const struct inf_window *width, size_t pixels)
{
    return (pixels - 1) * (size_t)width->stride +
           (size_t)(width->kernel - 1) * (size_t)width->dilation + 1;
}

static size_t fours_of(const struct inf_window *height)
{
    return ((size_t)height->kernel + FOUR - 1) / FOUR;
}

static enum inf_code depthwise_supports(const struct inf_graph *graph, const struct inf_node *node,
                                        struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *filter = inf_cpu_input_shape(graph, node, 1);
    struct inf_window height, width;
    inf_node_windows(graph, node, &height, &width);
    if (node->attrs.qconv2d.groups != x->dims[3] || filter->dims[3] != x->dims[3])
        return inf_fail(err, INF_UNSUPPORTED, "cpu: qconv2d: it is not depthwise");
    if (!inf_cpu_has_input(node, 5))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: qconv2d: depthwise sums are not built");
    if (columns_of(&width, 1) > COLUMNS_MAX / fours_of(&height))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: qconv2d: a window of more than %d columns",
                        COLUMNS_MAX);
    for (uint32_t i = 1; i < node->input_count; i++) {
        if (inf_cpu_has_input(node, i) && !inf_graph_is_const(graph, node->inputs[i]))
            return inf_fail(err, INF_UNSUPPORTED, "cpu: qconv2d: depthwise with a computed '%s'",
                            graph->values[node->inputs[i]].name);
    }
    return INF_OK;
}

// --- computing strips of pixels ---

struct strip {
    const struct block *block;
    const uint8_t *image;
    int64_t row, column; // position of the window's first tap in x
    size_t columns;
    uint8_t *interleaved;
};

// Interleaves columns `begin` to `end` (exclusive) of x for four rows of taps. `inside` is true if
// the columns lie inside x, and false if they are padding.
static void interleave_some(const struct depthwise *depthwise, const struct strip *strip,
                            size_t four, size_t begin, size_t end, bool inside)
{
    const struct block *block = strip->block;
    size_t width = block->loops->width;
    size_t fours = block->window.fours;
    size_t row_size = (size_t)depthwise->width.input * depthwise->channels;
    size_t first = block->first;
    if (inside)
        first += (size_t)(strip->column + (int64_t)begin) * depthwise->channels;
    struct inf_q8_columns columns = {.step = inside ? depthwise->channels : 0,
                                     .count = end - begin,
                                     .channels = block->window.channels,
                                     .flip = depthwise->flip,
                                     .y_step = fours * FOUR * width};
    for (size_t i = 0; i < FOUR; i++) {
        int64_t tap = (int64_t)(four * FOUR + i);
        int64_t row = strip->row + tap * depthwise->height.dilation;
        if (tap >= depthwise->height.kernel)
            break;
        bool there = inside && row >= 0 && row < depthwise->height.input;
        columns.rows[i] =
            (there ? strip->image + (size_t)row * row_size : depthwise->padding) + first;
    }
    if (end > begin)
        block->loops->interleave(&columns,
                                 strip->interleaved + (begin * fours + four) * FOUR * width);
}

static void interleave_strip(const struct depthwise *depthwise, const struct strip *strip)
{
    int64_t columns = (int64_t)strip->columns;
    int64_t begin = INF_MIN(INF_MAX(-strip->column, 0), columns);
    int64_t end = INF_MAX(INF_MIN(depthwise->width.input - strip->column, columns), begin);
    for (size_t four = 0; four < strip->block->window.fours; four++) {
        interleave_some(depthwise, strip, four, 0, (size_t)begin, false);
        interleave_some(depthwise, strip, four, (size_t)begin, (size_t)end, true);
        interleave_some(depthwise, strip, four, (size_t)end, strip->columns, false);
    }
}

static void compute_row(const struct depthwise *depthwise, const uint8_t *image, int64_t y_row,
                        uint8_t *y, uint8_t *scratch)
{
    const struct inf_window *w = &depthwise->width;
    struct strip strip = {.image = image,
                          .row = y_row * depthwise->height.stride - depthwise->height.pad_before,
                          .interleaved = scratch};
    for (size_t pixel = 0; pixel < (size_t)w->output; pixel += depthwise->pixels_max) {
        size_t pixels = INF_MIN((size_t)w->output - pixel, depthwise->pixels_max);
        strip.column = (int64_t)pixel * w->stride - w->pad_before;
        strip.columns = columns_of(w, pixels);
        for (size_t i = 0; i < depthwise->block_count; i++) {
            const struct block *block = &depthwise->blocks[i];
            strip.block = block;
            interleave_strip(depthwise, &strip);
            block->loops->run(&block->window, scratch, pixels,
                              y + pixel * depthwise->channels + block->first);
        }
    }
}

static void depthwise_tile(const void *context, size_t tile, size_t worker)
{
    const struct depthwise_task *task = context;
    const struct depthwise *depthwise = task->depthwise;
    size_t rows = (size_t)depthwise->height.output;
    size_t image = tile / depthwise->strips;
    size_t strip = tile % depthwise->strips;
    size_t end = inf_native_strip_start(rows, depthwise->strips, strip + 1, 1);
    size_t x_size =
        (size_t)(depthwise->height.input * depthwise->width.input) * depthwise->channels;
    size_t y_step = (size_t)depthwise->width.output * depthwise->channels;
    uint8_t *scratch = task->scratch + worker * depthwise->scratch_step;
    for (size_t i = inf_native_strip_start(rows, depthwise->strips, strip, 1); i < end; i++)
        compute_row(depthwise, task->x + image * x_size, (int64_t)i,
                    task->y + (image * rows + i) * y_step, scratch);
}

static void depthwise_run(const struct inf_cpu_step *step)
{
    const struct depthwise *depthwise = step->state;
    struct depthwise_task task = {depthwise, step->inputs[0], step->output,
                                  (uint8_t *)step->scratch};
    struct inf_cpu_tiles work = {depthwise_tile, &task, depthwise->batch * depthwise->strips};
    inf_cpu_team_run_tiles(step->team, &work, depthwise->workers);
}

// --- packing the weights ---

// Cuts the channels into blocks. If the last block would be too small, it starts earlier and
// overlaps the previous block. The channels in both blocks are computed twice, with the same
// result.
static void cut_channels(struct depthwise *depthwise, const struct inf_q8 *q8)
{
    size_t whole = q8->depthwise->width;
    size_t half = q8->depthwise_half->width;
    size_t at = 0;
    depthwise->block_count = 0;
    while (at < depthwise->channels) {
        size_t left = depthwise->channels - at;
        bool small = left <= half || depthwise->channels < whole;
        size_t width = small ? half : whole;
        struct block *block = &depthwise->blocks[depthwise->block_count++];
        block->loops = small ? q8->depthwise_half : q8->depthwise;
        block->window.channels = INF_MIN(width, depthwise->channels);
        block->first =
            left >= block->window.channels ? at : depthwise->channels - block->window.channels;
        at = block->first + block->window.channels;
    }
}

// Interleaves 32-bit numbers of a block, such as its biases, as if their four bytes were four rows.
static void interleave_numbers(const struct block *block, const void *numbers, void *y)
{
    uint8_t rows[4][256];
    struct inf_q8_columns columns = {.count = 1, .channels = block->loops->width};
    for (size_t i = 0; i < block->loops->width; i++) {
        for (size_t r = 0; r < FOUR; r++)
            rows[r][i] = ((const uint8_t *)numbers)[FOUR * i + r];
    }
    for (size_t r = 0; r < FOUR; r++)
        columns.rows[r] = rows[r];
    block->loops->interleave(&columns, y);
}

// Interleaves the weights of a block in the same way as x. `w` points to the first weight of the
// block.
static void interleave_weights(const struct depthwise *depthwise, const struct block *block,
                               const uint8_t *w, uint8_t w_flip, uint8_t *y)
{
    size_t kernel = block->window.kernel;
    struct inf_q8_columns columns = {
        .count = 1, .channels = block->window.channels, .flip = w_flip};
    for (size_t k = 0; k < kernel; k++) {
        for (size_t four = 0; four < block->window.fours; four++, y += FOUR * block->loops->width) {
            for (size_t r = 0; r < FOUR; r++) {
                size_t tap = four * FOUR + r;
                columns.rows[r] = tap < (size_t)depthwise->height.kernel
                                      ? w + (tap * kernel + k) * depthwise->channels
                                      : NULL;
            }
            block->loops->interleave(&columns, y);
        }
    }
}

// The 32-bit numbers of each block that are stored before its weights, in this order. Each entry
// takes 4 * width bytes.
enum {
    BIAS,
    SCALES,
    ZEROS,
    NUMBERS
};

static void pack_block(const struct depthwise *depthwise, struct block *block,
                       const struct inf_q8_params *params, const uint8_t *w, uint8_t *memory)
{
    size_t size = FOUR * block->loops->width;
    size_t taps = (size_t)(depthwise->height.kernel * depthwise->width.kernel);
    int32_t bias[256] = {0};
    int32_t zeros[256] = {0};
    float scales[256] = {0};
    for (size_t i = 0; i < block->window.channels; i++) {
        size_t channel = block->first + i;
        int32_t sum = 0;
        for (size_t t = 0; t < taps; t++)
            sum += (int8_t)(w[t * depthwise->channels + channel] ^ params->w_flip);
        bias[i] = inf_q8_adjusted_bias(params, channel, sum, taps);
        zeros[i] = inf_q8_w_zero(params, channel);
        scales[i] = inf_q8_scale(params, channel);
    }
    interleave_numbers(block, bias, memory + BIAS * size);
    interleave_numbers(block, scales, memory + SCALES * size);
    interleave_numbers(block, zeros, memory + ZEROS * size);
    block->window.kernel = (size_t)depthwise->width.kernel;
    block->window.fours = fours_of(&depthwise->height);
    block->window.tap_step = (size_t)depthwise->width.dilation;
    block->window.x_step = (size_t)depthwise->width.stride;
    block->window.y_step = depthwise->channels;
    interleave_weights(depthwise, block, w + block->first, params->w_flip, memory + NUMBERS * size);
    block->window.bias = (const int32_t *)(memory + BIAS * size);
    block->window.zeros =
        inf_q8_has_w_zeros(params) ? (const int32_t *)(memory + ZEROS * size) : NULL;
    block->window.w = (const int8_t *)(memory + NUMBERS * size);
    block->window.requant = (struct inf_q8_requant){(const float *)(memory + SCALES * size),
                                                    params->low, params->high, params->y_zero};
}

static enum inf_code pack_weights(struct depthwise *depthwise, struct inf_cpu_step *step,
                                  struct inf_error *err)
{
    const struct inf_q8 *q8 = step->isa->q8;
    struct inf_q8_params params = inf_q8_params_of(step);
    params.x_zero = inf_q8_x_zero_of(step);
    const uint8_t *w = step->graph->values[step->node->inputs[1]].data->data;
    enum inf_dtype y = step->graph->values[step->node->outputs[0]].dtype;
    uint8_t y_flip = y == INF_DTYPE_I8 ? 0x80 : 0;
    size_t each = NUMBERS + (size_t)depthwise->width.kernel * fours_of(&depthwise->height);
    size_t row_size = (size_t)depthwise->width.input * depthwise->channels;
    void *memory;
    void *padding;
    depthwise->blocks =
        inf_arena_alloc(step->arena, (depthwise->channels / q8->depthwise_half->width + 1) *
                                         sizeof(*depthwise->blocks));
    if (depthwise->blocks == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its blocks", step->node->name);
    cut_channels(depthwise, q8);
    INF_TRY(inf_q8_alloc(&memory, step, depthwise->block_count * each * FOUR * q8->depthwise->width,
                         err));
    INF_TRY(inf_q8_alloc(&padding, step, row_size, err));
    depthwise->flip = params.flip;
    depthwise->padding = memset(padding, params.x_zero ^ params.flip, row_size);
    for (size_t i = 0; i < depthwise->block_count; i++) {
        struct block *block = &depthwise->blocks[i];
        pack_block(depthwise, block, &params, w, memory);
        block->window.requant.zero += y_flip;
        block->window.y_flip = y_flip;
        memory = (uint8_t *)memory + each * FOUR * block->loops->width;
    }
    return INF_OK;
}

static enum inf_code depthwise_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct depthwise), err));
    struct depthwise *depthwise = step->state;
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, step->node, 0);
    inf_node_windows(step->graph, step->node, &depthwise->height, &depthwise->width);
    depthwise->batch = (size_t)x->dims[0];
    depthwise->channels = (size_t)x->dims[3];
    INF_TRY(pack_weights(depthwise, step, err));
    size_t rows = (size_t)depthwise->height.output;
    size_t taps = (size_t)(depthwise->height.kernel * depthwise->width.kernel);
    size_t row_macs = (size_t)depthwise->width.output * taps * depthwise->channels / MACS_EACH + 1;
    depthwise->workers = inf_native_choose_workers(step, depthwise->batch * rows * row_macs);
    depthwise->strips =
        inf_native_choose_strips(rows, STRIP_MACS / row_macs + 1, depthwise->workers);
    depthwise->pixels_max = INF_MIN((size_t)depthwise->width.output, STRIP_PIXELS);
    size_t fours = fours_of(&depthwise->height);
    while (columns_of(&depthwise->width, depthwise->pixels_max) > COLUMNS_MAX / fours)
        depthwise->pixels_max /= 2;
    depthwise->scratch_step = columns_of(&depthwise->width, depthwise->pixels_max) * fours * FOUR *
                              step->isa->q8->depthwise->width;
    step->scratch_count = inf_q8_scratch_count(depthwise->workers * depthwise->scratch_step);
    step->run = depthwise_run;
    step->kernel = "q8 depthwise";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_q8_depthwise_kernels[] = {
    {INF_OP_QCONV2D, depthwise_supports, depthwise_create},
    {0},
};
