// SPDX-License-Identifier: Apache-2.0
// Computes convolutions by Winograd's algorithm (backends/base/winograd.h).
//
// The tiles of results are cut into blocks, so small that the transformed inputs of a block stay in
// the L2 cache. For each block:
//
//     x   --transform-->  side * side matrices v [tiles of the block][inputs]
//     for each group of output channels:
//         v * weights     --panel kernels-->  side * side matrices of sums [tiles][columns]
//         sums            --transform, bias, residual, activation-->  y
//
// The products use the same kernels as conv_packed.c, with a tile in place of a pixel. A group has
// so few columns that its sums stay in the cache too. Threads compute different blocks. If there
// are fewer blocks than threads, all threads compute the same block: they first share its tiles, to
// transform the inputs, and then its groups. The order of operations for a result does not depend
// on the number of threads.
#include <math.h>
#include <string.h>

#include "backends/cpu/core/team.h"
#include "backends/cpu/winograd/conv.h"

size_t inf_winograd_inputs_count(const struct inf_winograd_conv *conv)
{
    return conv->products * conv->v_matrix;
}

size_t inf_winograd_sums_count(const struct inf_winograd_conv *conv)
{
    return conv->products * conv->sum_matrix;
}

// The position of a tile: its image, and the row and pixel of its first result.
struct place {
    size_t image, row, pixel;
};

static struct place place_of(const struct inf_winograd_conv *conv, size_t tile)
{
    size_t line = tile / conv->tiles_across;
    return (struct place){line / conv->tiles_down, line % conv->tiles_down * conv->tile,
                          tile % conv->tiles_across * conv->tile};
}

// --- inputs ---

// Copies the inputs of a tile that lies partly outside of the image. Inputs outside of the image
// become 0 in the copy.
static void copy_tile(const struct inf_winograd_conv *conv, const float *image, int64_t top,
                      int64_t left, float *to)
{
    int64_t side = (int64_t)conv->side;
    int64_t before = INF_MAX(-left, 0);
    int64_t end = INF_MIN(conv->width.input - left, side);
    size_t count = end > before ? (size_t)(end - before) * conv->inputs : 0;
    memset(to, 0, conv->copy_count * sizeof(float));
    for (int64_t row = INF_MAX(-top, 0); row < side && top + row < conv->height.input; row++)
        if (count > 0)
            memcpy(to + (size_t)(row * side + before) * conv->inputs,
                   image + (size_t)((top + row) * conv->width.input + left + before) * conv->inputs,
                   count * sizeof(float));
}

static void transform_inputs(const struct inf_winograd_task *task, size_t tile, float *v,
                             float *copy)
{
    const struct inf_winograd_conv *conv = task->conv;
    struct place place = place_of(conv, tile);
    int64_t top = (int64_t)place.row - conv->height.pad_before;
    int64_t left = (int64_t)place.pixel - conv->width.pad_before;
    size_t row_step = (size_t)conv->width.input * conv->inputs;
    const float *image = task->x + place.image * (size_t)conv->height.input * row_step;
    struct inf_winograd_in in = {.row_step = row_step,
                                 .pixel_step = conv->inputs,
                                 .channels = conv->inputs,
                                 .v = v,
                                 .matrix_step = conv->v_matrix};
    int64_t side = (int64_t)conv->side;
    if (top >= 0 && left >= 0 && top + side <= conv->height.input &&
        left + side <= conv->width.input) {
        in.x = image + (size_t)top * row_step + (size_t)left * conv->inputs;
    } else {
        copy_tile(conv, image, top, left, copy);
        in.x = copy;
        in.row_step = conv->side * conv->inputs;
    }
    conv->loops->in[conv->form](&conv->factors, &in);
}

// --- products ---

// Returns the address that kernel call `call` prefetches: a part of the weights at `w`, which are
// multiplied next. They are the weights of the next panel, or those of the first panel for the next
// product.
static const void *choose_prefetch(const struct inf_winograd_conv *conv,
                                   const struct inf_winograd_panel *panel, const float *w,
                                   size_t call, size_t step)
{
    size_t bytes = conv->inputs * panel->width * sizeof(float);
    size_t each = conv->inputs * step;
    return (const char *)w + (call * each < bytes ? call * each : 0);
}

// Multiplies the `count` tiles of a block with the weights of one panel and one product. `w` are
// these weights; `next` are weights to prefetch.
static void multiply_panel(const struct inf_winograd_conv *conv,
                           const struct inf_winograd_panel *panel, const float *w,
                           const float *next, const float *v, float *sums, size_t count)
{
    const struct inf_gemm_panel part = {.segments = 1,
                                        .depth = conv->inputs,
                                        .w = w,
                                        .bias = conv->zeros,
                                        .min = -INFINITY,
                                        .max = INFINITY,
                                        .y_step = conv->sum_step,
                                        .columns = panel->width};
    struct inf_gemm gemm = {.a = &v, .a_step = conv->v_step, .y = sums};
    size_t calls = (count + conv->rows_max - 1) / conv->rows_max;
    size_t row_bytes = panel->width * sizeof(float);
    gemm.prefetch_step = conv->shares_prefetch
                             ? inf_gemm_prefetch_step(row_bytes, conv->inputs * row_bytes, calls)
                             : INF_GEMM_PREFETCH_BYTES;
    for (size_t call = 0; call < calls; call++) {
        size_t tiles = count / calls + (call < count % calls);
        gemm.prefetch = choose_prefetch(conv, panel, next, call, gemm.prefetch_step);
        panel->gemm[tiles - 1](&part, &gemm);
        gemm.a_first += tiles * conv->v_step;
        gemm.y += tiles * conv->sum_step;
    }
}

static void multiply_group(const struct inf_winograd_conv *conv,
                           const struct inf_winograd_group *group, const float *v, float *sums,
                           size_t count)
{
    for (size_t product = 0; product < conv->products; product++)
        for (size_t p = group->first_panel; p < group->end_panel; p++) {
            const struct inf_winograd_panel *panel = &conv->panels[p];
            const float *w = panel->w + product * conv->inputs * panel->width;
            bool last = p + 1 == group->end_panel;
            const struct inf_winograd_panel *then =
                &conv->panels[last ? group->first_panel : p + 1];
            size_t of = last && product + 1 < conv->products ? product + 1 : product;
            multiply_panel(conv, panel, w, then->w + of * conv->inputs * then->width,
                           v + product * conv->v_matrix,
                           sums + product * conv->sum_matrix + panel->first - group->first, count);
        }
}

// --- results ---

// Applies the activation function of the epilogue to the columns of a group in one tile.
static void map_tile(const struct inf_winograd_conv *conv, const struct inf_winograd_out *out)
{
    for (size_t row = 0; row < out->rows; row++)
        for (size_t pixel = 0; pixel < out->pixels; pixel++) {
            float *y = out->y + row * out->row_step + pixel * out->pixel_step;
            conv->epilogue.map(out->columns, y, y);
        }
}

static void transform_sums(const struct inf_winograd_task *task,
                           const struct inf_winograd_group *group, size_t tile, const float *sums)
{
    const struct inf_winograd_conv *conv = task->conv;
    struct place place = place_of(conv, tile);
    size_t rows = (size_t)conv->height.output;
    size_t pixels = (size_t)conv->width.output;
    size_t at = (place.image * rows + place.row) * pixels + place.pixel;
    struct inf_winograd_out out = {.sums = sums,
                                   .matrix_step = conv->sum_matrix,
                                   .columns = group->columns,
                                   .bias = conv->bias + group->first,
                                   .min = conv->epilogue.min,
                                   .max = conv->epilogue.max,
                                   .y = task->y + at * conv->outputs + group->first,
                                   .row_step = pixels * conv->outputs,
                                   .pixel_step = conv->outputs,
                                   .rows = INF_MIN(conv->tile, rows - place.row),
                                   .pixels = INF_MIN(conv->tile, pixels - place.pixel)};
    if (conv->slopes != NULL)
        out.slopes = conv->slopes + group->first;
    if (conv->residual_channels > group->first) {
        out.residual = task->residual + at * conv->residual_channels + group->first;
        out.residual_step = conv->residual_channels;
        out.residual_row_step = pixels * conv->residual_channels;
        out.residual_columns = conv->residual_channels - group->first;
    }
    conv->loops->out[conv->form](&conv->factors, &out);
    if (conv->epilogue.map != NULL)
        map_tile(conv, &out);
}

static void compute_group(const struct inf_winograd_task *task,
                          const struct inf_winograd_group *group, size_t first, size_t count,
                          const float *v, float *sums)
{
    const struct inf_winograd_conv *conv = task->conv;
    multiply_group(conv, group, v, sums, count);
    for (size_t i = 0; i < count; i++)
        transform_sums(task, group, first + i, sums + i * conv->sum_step);
}

// --- threads ---

// Returns the index of the first tile of a block. For block conv->blocks, which does not exist,
// returns the number of tiles.
static size_t block_start(const struct inf_winograd_conv *conv, size_t block)
{
    return INF_MIN(block * conv->block, conv->tiles);
}

static void compute_block(const void *context, size_t block, size_t worker)
{
    const struct inf_winograd_task *task = context;
    const struct inf_winograd_conv *conv = task->conv;
    float *v = task->scratch + worker * conv->worker_scratch;
    float *sums = v + inf_winograd_inputs_count(conv);
    float *copy = sums + inf_winograd_sums_count(conv);
    size_t first = block_start(conv, block);
    size_t count = block_start(conv, block + 1) - first;
    for (size_t i = 0; i < count; i++)
        transform_inputs(task, first + i, v + i * conv->v_step, copy);
    for (size_t g = 0; g < conv->group_count; g++)
        compute_group(task, &conv->groups[g], first, count, v, sums);
}

// Returns the scratch memory of the thread with the number `worker`. Used only while all threads
// compute the same block: then the scratch memory of the step begins with the transformed inputs of
// this block, which all threads read, and the memory of each thread follows.
static float *shared_scratch(const struct inf_winograd_task *task, size_t worker)
{
    return task->scratch + inf_winograd_inputs_count(task->conv) +
           worker * task->conv->worker_scratch;
}

static void transform_shared(const void *context, size_t tile, size_t worker)
{
    const struct inf_winograd_task *task = context;
    transform_inputs(task, block_start(task->conv, task->block) + tile,
                     task->scratch + tile * task->conv->v_step, shared_scratch(task, worker));
}

static void compute_shared(const void *context, size_t group, size_t worker)
{
    const struct inf_winograd_task *task = context;
    const struct inf_winograd_conv *conv = task->conv;
    size_t first = block_start(conv, task->block);
    compute_group(task, &conv->groups[group], first, block_start(conv, task->block + 1) - first,
                  task->scratch, shared_scratch(task, worker));
}

void inf_winograd_run(struct inf_cpu_team *team, struct inf_winograd_task *task)
{
    const struct inf_winograd_conv *conv = task->conv;
    if (conv->by_blocks) {
        const struct inf_cpu_tiles work = {compute_block, task, conv->blocks};
        inf_cpu_team_run_tiles(team, &work, conv->workers);
        return;
    }
    for (task->block = 0; task->block < conv->blocks; task->block++) {
        const struct inf_cpu_tiles inputs = {transform_shared, task,
                                             block_start(conv, task->block + 1) -
                                                 block_start(conv, task->block)};
        const struct inf_cpu_tiles groups = {compute_shared, task, conv->group_count};
        inf_cpu_team_run_tiles(team, &inputs, conv->workers);
        inf_cpu_team_run_tiles(team, &groups, conv->workers);
    }
}
