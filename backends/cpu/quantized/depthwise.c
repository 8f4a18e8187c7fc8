// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of 8-bit numbers with 8-bit results: qconv2d with one group for each
// channel. A strip of pixels is computed in one call. For each block of channels, the columns of x
// under the windows are interleaved in scratch memory (struct inf_q8_depthwise shows how), and then
// multiplied and summed. Windows of two or three rows at stride 1 leave room in a group of four
// rows for one more: the columns are interleaved once for two rows of y. The second row of y has
// the same weights, each one row further down. A row is a byte of a 32-bit lane, and the last byte
// of each lane is 0, so that the same memory read from the byte before it on has these weights:
//
//     lanes of two channels   a0 a1 a2 0  b0 b1 b2 0
//     one byte before       0 a0 a1 a2 0  b0 b1 b2      lanes: 0 a0 a1 a2,  0 b0 b1 b2
#include "backends/cpu/native/work.h"
#include "backends/cpu/quantized/fold.h"
#include "backends/graph/shape/infer.h"

#include <assert.h>
#include <string.h>

#define STRIP_PIXELS    32   // pixels of a row whose interleaved columns stay in the L1 cache
#define COLUMNS_MAX     4096 // largest number of columns in a window, times groups of four rows
#define FOUR            ((size_t)4)
#define BLOCK_WIDTH_MAX 64 // most channels in a block, at any ISA level
#define MACS_EACH       4  // 8-bit multiply-adds that take as long as one float multiply-add
#define GAP             64 // zero bytes before weights; the last one is read as part of a lane
#define STRIP_MACS      ((size_t)100000)

// A block of channels that one call of the depthwise loop computes.
struct block {
    const struct inf_q8_depthwise *loops;
    struct inf_q8_window window;
    struct inf_q8_window below; // of the next row of y, on the same interleaved columns
    size_t first;               // index of the first channel
};

struct depthwise {
    struct inf_window height, width;
    uint8_t flip; // 0 or 128: x ^ flip is the unsigned number
    size_t channels, batch;
    size_t rows_max; // 2: four interleaved rows of x are used for two rows of y; otherwise 1
    struct block *blocks;
    size_t block_count;
    // One column of a block, filled with the zero point of x. It is read in place of each column
    // that lies outside of x.
    uint8_t padding[BLOCK_WIDTH_MAX];
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
    const uint8_t *end;  // the end of all images
    int64_t row, column; // position of the window's first tap in x
    size_t rows;         // rows of x under the windows, if these are not dilated
    size_t columns;
    uint8_t *interleaved;
};

// Returns at how many columns of a row `width` bytes may be read. Columns are `step` bytes apart.
static size_t count_readable(const uint8_t *row, const uint8_t *end, size_t width, size_t step)
{
    size_t left = (size_t)(end - row);
    return left < width ? 0 : (left - width) / step + 1;
}

// Interleaves columns `begin` to `end` (exclusive) of x for four rows of taps. `inside` is true if
// the columns lie inside x, and false if they are padding.
static void interleave_some(const struct depthwise *depthwise, const struct strip *strip,
                            size_t four, size_t begin, size_t end, bool inside)
{
    const struct block *block = strip->block;
    size_t width = block->loops->width;
    size_t fours = block->window.fours;
    size_t row_size = (size_t)depthwise->width.input * depthwise->channels;
    // Bytes from the start of a row of x to column `begin`.
    size_t column = inside ? (size_t)(strip->column + (int64_t)begin) * depthwise->channels : 0;
    struct inf_q8_columns columns = {.channels = block->window.channels,
                                     .flip = depthwise->flip,
                                     .y_step = fours * FOUR * width};
    size_t count = end - begin;
    size_t readable = count; // columns at which `width` bytes may be read
    for (size_t i = 0; i < FOUR; i++) {
        int64_t tap = (int64_t)(four * FOUR + i);
        int64_t row = strip->row + tap * depthwise->height.dilation;
        if (tap >= (int64_t)strip->rows)
            break;
        bool there = inside && row >= 0 && row < depthwise->height.input;
        columns.rows[i] = depthwise->padding;
        if (!there)
            continue;
        columns.rows[i] = strip->image + (size_t)row * row_size + column + block->first;
        columns.steps[i] = depthwise->channels;
        readable = INF_MIN(readable,
                           count_readable(columns.rows[i], strip->end, width, depthwise->channels));
    }
    uint8_t *y = strip->interleaved + (begin * fours + four) * FOUR * width;
    columns.readable = true;
    columns.count = readable;
    if (readable > 0)
        block->loops->interleave(&columns, y);
    if (readable == count)
        return;
    columns.readable = false;
    columns.count = count - readable;
    for (size_t i = 0; i < FOUR && columns.rows[i] != NULL; i++)
        columns.rows[i] += readable * columns.steps[i];
    block->loops->interleave(&columns, y + readable * columns.y_step);
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

// Computes one row of y, or two neighbouring ones if depthwise->rows_max is 2.
static void compute_rows(const struct depthwise *depthwise, const uint8_t *image,
                         const uint8_t *end, int64_t y_row, size_t rows, uint8_t *y,
                         uint8_t *scratch)
{
    const struct inf_window *w = &depthwise->width;
    struct strip strip = {.image = image,
                          .end = end,
                          .row = y_row * depthwise->height.stride - depthwise->height.pad_before,
                          .rows = (size_t)depthwise->height.kernel + rows - 1,
                          .interleaved = scratch};
    for (size_t pixel = 0; pixel < (size_t)w->output; pixel += depthwise->pixels_max) {
        size_t pixels = INF_MIN((size_t)w->output - pixel, depthwise->pixels_max);
        strip.column = (int64_t)pixel * w->stride - w->pad_before;
        strip.columns = columns_of(w, pixels);
        for (size_t i = 0; i < depthwise->block_count; i++) {
            const struct block *block = &depthwise->blocks[i];
            uint8_t *to = y + pixel * depthwise->channels + block->first;
            strip.block = block;
            interleave_strip(depthwise, &strip);
            block->loops->run(&block->window, scratch, pixels, to);
            if (rows > 1)
                block->loops->run(&block->below, scratch, pixels,
                                  to + (size_t)w->output * depthwise->channels);
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
    size_t unit = depthwise->rows_max;
    size_t end = inf_native_strip_start(rows, depthwise->strips, strip + 1, unit);
    size_t x_size =
        (size_t)(depthwise->height.input * depthwise->width.input) * depthwise->channels;
    size_t y_step = (size_t)depthwise->width.output * depthwise->channels;
    uint8_t *scratch = task->scratch + worker * depthwise->scratch_step;
    size_t count;
    for (size_t i = inf_native_strip_start(rows, depthwise->strips, strip, unit); i < end;
         i += count) {
        count = INF_MIN(unit, end - i);
        compute_rows(depthwise, task->x + image * x_size, task->x + depthwise->batch * x_size,
                     (int64_t)i, count, task->y + (image * rows + i) * y_step, scratch);
    }
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

// Returns the block that begins with channel `at`. The last block begins earlier if it would not be
// full, but not if there are fewer channels than a block has.
static struct block block_at(const struct depthwise *depthwise, const struct inf_q8 *q8, size_t at)
{
    size_t whole = q8->depthwise->width;
    size_t half = q8->depthwise_half->width;
    size_t left = depthwise->channels - at;
    bool small = left <= half || depthwise->channels < whole;
    struct block block = {.loops = small ? q8->depthwise_half : q8->depthwise};
    block.window.channels = INF_MIN(small ? half : whole, depthwise->channels);
    block.first = left >= block.window.channels ? at : depthwise->channels - block.window.channels;
    return block;
}

// Cuts the channels into blocks and returns their number. If `blocks` is not NULL, they are written
// there.
static size_t cut_channels(const struct depthwise *depthwise, const struct inf_q8 *q8,
                           struct block *blocks)
{
    size_t count = 0;
    for (size_t at = 0; at < depthwise->channels; count++) {
        struct block block = block_at(depthwise, q8, at);
        at = block.first + block.window.channels;
        if (blocks != NULL)
            blocks[count] = block;
    }
    return count;
}

// Interleaves 32-bit numbers of a block, such as its biases, as if their four bytes were four rows.
static void interleave_numbers(const struct block *block, const void *numbers, void *y)
{
    uint8_t rows[4][BLOCK_WIDTH_MAX];
    struct inf_q8_columns columns = {.count = 1, .channels = block->loops->width};
    for (size_t i = 0; i < block->loops->width; i++) {
        for (size_t r = 0; r < FOUR; r++)
            rows[r][i] = ((const uint8_t *)numbers)[FOUR * i + r];
    }
    for (size_t r = 0; r < FOUR; r++)
        columns.rows[r] = rows[r];
    block->loops->interleave(&columns, y);
}

// One group of four rows of taps of a block, with what is packed of each weight.
struct group {
    size_t tap, four; // tap along the width, and group of four rows
    uint8_t rows[FOUR][BLOCK_WIDTH_MAX];
    bool has_carry;
    // Of each channel: how its weights are folded (fold.h), and the packed bytes without a carry.
    uint8_t subtracted[BLOCK_WIDTH_MAX];
    int8_t least[BLOCK_WIDTH_MAX], most[BLOCK_WIDTH_MAX];
};

// Returns a group of the block, without rows.
static struct group begin_group(const struct block *block, const struct inf_q8_params *params)
{
    struct group group = {.tap = 0};
    for (size_t c = 0; c < block->window.channels; c++) {
        struct inf_q8_fold fold = inf_q8_fold_channel(params, block->first + c);
        group.subtracted[c] = fold.subtracted;
        group.least[c] = inf_q8_fold_least(&fold);
        group.most[c] = inf_q8_fold_most(&fold);
    }
    return group;
}

// Sets the rows of a group to the packed bytes of the weights; or, if `carry_factor` is not 0, to
// their carries (fold.h) times that factor.
static void fill_group(const struct depthwise *depthwise, const struct block *block,
                       const uint8_t *w, int32_t carry_factor, struct group *group)
{
    size_t kernel = (size_t)depthwise->height.kernel;
    for (size_t r = 0; r < FOUR; r++) {
        size_t row = group->four * FOUR + r;
        memset(group->rows[r], 0, block->window.channels);
        if (row >= kernel)
            continue;
        size_t tap = row * (size_t)depthwise->width.kernel + group->tap;
        for (size_t c = 0; c < block->window.channels; c++) {
            uint8_t byte = w[tap * depthwise->channels + block->first + c];
            int8_t packed = (int8_t)(byte - group->subtracted[c]);
            int32_t carry = inf_q8_fold_carry(packed, group->least[c], group->most[c]);
            group->has_carry |= carry != 0;
            group->rows[r][c] =
                carry_factor == 0 ? (uint8_t)packed : (uint8_t)(carry * carry_factor);
        }
    }
}

static void interleave_group(const struct block *block, const struct group *group, uint8_t *y)
{
    struct inf_q8_columns columns = {.count = 1, .channels = block->loops->width};
    for (size_t r = 0; r < FOUR; r++)
        columns.rows[r] = group->rows[r];
    block->loops->interleave(&columns, y);
}

// The 32-bit numbers of each block that are stored before its weights, in this order. Each entry
// takes 4 * width bytes.
enum {
    BIAS,
    SCALES,
    NUMBERS
};

// Where pack_block() writes. Each pointer moves behind what was written.
struct packing {
    uint8_t *numbers; // the numbers of blocks, and their weights
    uint8_t *blocks;  // the weights of carries
    struct inf_q8_carry *carries;
};

// Sets the weights of a window of the block: interleaves them in the same way as x, and lists their
// carries.
static void pack_window(const struct depthwise *depthwise, const struct block *block,
                        const struct inf_q8_params *params, const uint8_t *w,
                        struct inf_q8_window *window, struct packing *packing)
{
    size_t size = FOUR * block->loops->width;
    struct group group = begin_group(block, params);
    memset(packing->numbers, 0, GAP);
    packing->numbers += GAP;
    window->w = (const int8_t *)packing->numbers;
    window->carries = packing->carries;
    for (group.tap = 0; group.tap < window->kernel; group.tap++)
        for (group.four = 0; group.four < window->fours; group.four++) {
            group.has_carry = false;
            fill_group(depthwise, block, w, 0, &group);
            interleave_group(block, &group, packing->numbers);
            packing->numbers += size;
            if (!group.has_carry)
                continue;
            *packing->carries++ =
                (struct inf_q8_carry){group.tap, group.four, (const int8_t *)packing->blocks};
            fill_group(depthwise, block, w, INF_Q8_CARRY_TWICE, &group);
            interleave_group(block, &group, packing->blocks);
            fill_group(depthwise, block, w, INF_Q8_CARRY_ONCE, &group);
            interleave_group(block, &group, packing->blocks + size);
            packing->blocks += INF_Q8_CARRY_BLOCKS * size;
        }
    window->carry_count = (size_t)(packing->carries - window->carries);
}

// Sets the window of the next row of y: the same weights, one row further down.
static void shift_window(const struct inf_q8_window *window, struct inf_q8_window *below,
                         struct packing *packing)
{
    *below = *window;
    below->w--;
    below->carries = packing->carries;
    for (size_t i = 0; i < window->carry_count; i++) {
        *packing->carries = window->carries[i];
        packing->carries++->w--;
    }
}

static void pack_block(const struct depthwise *depthwise, struct block *block,
                       const struct inf_q8_params *params, const uint8_t *w,
                       struct packing *packing)
{
    size_t size = FOUR * block->loops->width;
    size_t taps = (size_t)(depthwise->height.kernel * depthwise->width.kernel);
    int32_t bias[BLOCK_WIDTH_MAX] = {0};
    float scales[BLOCK_WIDTH_MAX] = {0};
    for (size_t i = 0; i < block->window.channels; i++) {
        size_t channel = block->first + i;
        int32_t sum = 0;
        for (size_t t = 0; t < taps; t++)
            sum += (int8_t)(w[t * depthwise->channels + channel] ^ params->w_flip);
        bias[i] = inf_q8_adjusted_bias(params, channel, sum, taps);
        scales[i] = inf_q8_scale(params, channel);
    }
    interleave_numbers(block, bias, packing->numbers + BIAS * size);
    interleave_numbers(block, scales, packing->numbers + SCALES * size);
    block->window.kernel = (size_t)depthwise->width.kernel;
    block->window.fours = fours_of(&depthwise->height);
    block->window.tap_step = (size_t)depthwise->width.dilation;
    block->window.x_step = (size_t)depthwise->width.stride;
    block->window.y_step = depthwise->channels;
    block->window.bias = (const int32_t *)(packing->numbers + BIAS * size);
    block->window.requant =
        inf_q8_requant_of(params, (const float *)(packing->numbers + SCALES * size));
    packing->numbers += NUMBERS * size;
    pack_window(depthwise, block, params, w, &block->window, packing);
    if (depthwise->rows_max > 1)
        shift_window(&block->window, &block->below, packing);
}

// Returns the number of groups of four rows of taps, of all blocks, that have carries. Adds the
// bytes of their blocks of weights to *bytes.
static size_t count_carries(const struct depthwise *depthwise, const struct inf_q8_params *params,
                            const uint8_t *w, size_t *bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < depthwise->block_count; i++) {
        struct group group = begin_group(&depthwise->blocks[i], params);
        for (group.tap = 0; group.tap < (size_t)depthwise->width.kernel; group.tap++)
            for (group.four = 0; group.four < fours_of(&depthwise->height); group.four++) {
                group.has_carry = false;
                fill_group(depthwise, &depthwise->blocks[i], w, 0, &group);
                if (!group.has_carry)
                    continue;
                count++;
                *bytes += INF_Q8_CARRY_BLOCKS * FOUR * depthwise->blocks[i].loops->width;
            }
    }
    return count;
}

// Allocates the memory that the blocks are packed into.
static enum inf_code alloc_packing(const struct depthwise *depthwise, struct inf_cpu_step *step,
                                   const struct inf_q8_params *params, struct packing *packing,
                                   struct inf_error *err)
{
    const uint8_t *w = step->graph->values[step->node->inputs[1]].data->data;
    size_t each = NUMBERS + (size_t)depthwise->width.kernel * fours_of(&depthwise->height);
    size_t carry_bytes = GAP, number_bytes = 0;
    size_t carries = depthwise->rows_max * count_carries(depthwise, params, w, &carry_bytes);
    void *numbers, *blocks;
    for (size_t i = 0; i < depthwise->block_count; i++)
        number_bytes += each * FOUR * depthwise->blocks[i].loops->width + GAP;
    INF_TRY(inf_q8_alloc(&numbers, step, number_bytes, err));
    packing->numbers = numbers;
    packing->blocks = NULL;
    if (carries > 0) {
        INF_TRY(inf_q8_alloc(&blocks, step, carry_bytes, err));
        memset(blocks, 0, GAP);
        packing->blocks = (uint8_t *)blocks + GAP;
    }
    packing->carries = inf_arena_alloc(step->arena, (carries + 1) * sizeof *packing->carries);
    if (packing->carries == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its weights", step->node->name);
    return INF_OK;
}

static enum inf_code pack_weights(struct depthwise *depthwise, struct inf_cpu_step *step,
                                  struct inf_error *err)
{
    const struct inf_q8 *q8 = step->isa->q8;
    struct inf_q8_params params = inf_q8_params_of(step);
    params.x_zero = inf_q8_x_zero_of(step);
    const uint8_t *w = step->graph->values[step->node->inputs[1]].data->data;
    struct packing packing;
    depthwise->block_count = cut_channels(depthwise, q8, NULL);
    depthwise->blocks =
        inf_arena_alloc(step->arena, depthwise->block_count * sizeof(*depthwise->blocks));
    if (depthwise->blocks == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its blocks", step->node->name);
    cut_channels(depthwise, q8, depthwise->blocks);
    assert(q8->depthwise->width <= BLOCK_WIDTH_MAX);
    INF_TRY(alloc_packing(depthwise, step, &params, &packing, err));
    depthwise->flip = params.flip;
    memset(depthwise->padding, params.x_zero ^ params.flip, sizeof depthwise->padding);
    for (size_t i = 0; i < depthwise->block_count; i++)
        pack_block(depthwise, &depthwise->blocks[i], &params, w, &packing);
    return INF_OK;
}

// Returns true if the rows of x under the windows of two neighbouring rows of y are one group of
// four rows.
static bool shares_rows(const struct inf_window *height)
{
    return height->kernel < (int32_t)FOUR && height->stride == 1 && height->dilation == 1 &&
           height->kernel > 1;
}

static enum inf_code depthwise_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct depthwise), err));
    struct depthwise *depthwise = step->state;
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, step->node, 0);
    inf_node_windows(step->graph, step->node, &depthwise->height, &depthwise->width);
    depthwise->batch = (size_t)x->dims[0];
    depthwise->channels = (size_t)x->dims[3];
    depthwise->rows_max = shares_rows(&depthwise->height) ? 2 : 1;
    size_t fours = fours_of(&depthwise->height);
    depthwise->pixels_max = INF_MIN((size_t)depthwise->width.output, STRIP_PIXELS);
    while (columns_of(&depthwise->width, depthwise->pixels_max) > COLUMNS_MAX / fours)
        depthwise->pixels_max /= 2;
    INF_TRY(pack_weights(depthwise, step, err));
    size_t rows = (size_t)depthwise->height.output;
    size_t taps = (size_t)(depthwise->height.kernel * depthwise->width.kernel);
    size_t row_macs = (size_t)depthwise->width.output * taps * depthwise->channels / MACS_EACH + 1;
    depthwise->workers = inf_native_choose_workers(step, depthwise->batch * rows * row_macs);
    depthwise->strips =
        inf_native_choose_strips(rows, STRIP_MACS / row_macs + 1, depthwise->workers);
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
