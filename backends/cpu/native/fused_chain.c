// SPDX-License-Identifier: Apache-2.0
// Steps that compute one fused chain (fusion.h). The result is cut into tiles, which threads share.
// A tile is a strip of pixels, or a strip of rows if windows are larger than a pixel or the chain
// begins with a depthwise convolution. The intermediate results of a tile stay in the cache of the
// core that computes the tile.
#include "backends/cpu/native/fused_chain.h"

#include "backends/cpu/native/conv_packed.h"
#include "backends/cpu/native/conv_rows.h"
#include "backends/cpu/native/work.h"
#include "backends/graph/shape/infer.h"

struct chain_step {
    struct inf_conv_packed conv;
    bool by_rows;
    size_t pixels; // number of pixels of all images together
    size_t strips; // strips of rows in each image, or strips of pixels in all images together
    // Number of groups into which the result columns are cut. More than 1 if there are too few
    // pixels for all threads.
    size_t panel_groups;
    size_t workers;
    size_t scratch_step; // floats of scratch memory of each worker
};

struct chain_task {
    const struct chain_step *chain_step;
    const float *x, *residual;
    float *y, *scratch;
};

// --- computing the tiles of the result ---

static void pixels_tile(const void *context, size_t tile, size_t worker)
{
    const struct chain_task *task = context;
    const struct chain_step *chain_step = task->chain_step;
    const struct inf_conv_packed *conv = &chain_step->conv;
    size_t group = tile % chain_step->panel_groups;
    size_t strip = tile / chain_step->panel_groups;
    size_t unit = inf_conv_packed_strip_unit(conv);
    size_t first = inf_native_strip_start(chain_step->pixels, chain_step->strips, strip, unit);
    size_t end = inf_native_strip_start(chain_step->pixels, chain_step->strips, strip + 1, unit);
    if (first == end)
        return;
    struct inf_conv_packed_run run = {.a = {task->x + first * conv->inputs},
                                      .count = end - first,
                                      .scratch = inf_conv_packed_scratch_at(
                                          conv, task->scratch, worker * chain_step->scratch_step),
                                      .y = task->y + first * conv->outputs};
    if (conv->residual_channels > 0)
        run.residual = task->residual + first * conv->residual_channels;
    inf_conv_packed_compute(conv, &run, conv->panel_count * group / chain_step->panel_groups,
                            conv->panel_count * (group + 1) / chain_step->panel_groups);
}

static void rows_tile(const void *context, size_t tile, size_t worker)
{
    const struct chain_task *task = context;
    const struct chain_step *chain_step = task->chain_step;
    const struct inf_conv_packed *conv = &chain_step->conv;
    const struct inf_native_depthwise *depthwise = &conv->depthwise;
    size_t image = tile / chain_step->strips;
    size_t strip = tile % chain_step->strips;
    // With one thread, compute as many rows as one depthwise call can. With several threads, equal
    // shares for all threads save more time.
    size_t unit = conv->has_depthwise && chain_step->workers == 1 ? depthwise->rows_max : 1;
    size_t first = inf_native_strip_start(conv->rows, chain_step->strips, strip, unit);
    size_t end = inf_native_strip_start(conv->rows, chain_step->strips, strip + 1, unit);
    const struct inf_window *h = inf_conv_packed_height(conv);
    const struct inf_window *w = conv->has_depthwise ? &depthwise->width : &conv->width;
    size_t pixels = conv->rows * conv->row_pixels;
    struct inf_conv_packed_io io = {
        .x = task->x + image * (size_t)(h->input * w->input) * conv->inputs,
        .residual = task->residual,
        .y = task->y + image * pixels * conv->outputs,
        .x_rows = (size_t)h->input,
        .residual_rows = conv->rows,
        .y_rows = conv->rows,
    };
    if (conv->residual_channels > 0)
        io.residual += image * pixels * conv->residual_channels;
    if (first < end)
        inf_conv_rows_compute(conv, &io, first, end,
                              task->scratch + worker * chain_step->scratch_step);
}

static void run_chain(const struct inf_cpu_step *step)
{
    const struct chain_step *chain_step = step->state;
    struct chain_task task = {chain_step, step->inputs[0],
                              chain_step->conv.residual_channels > 0 ? step->inputs[1] : NULL,
                              step->output, step->scratch};
    struct inf_cpu_tiles work = {.context = &task};
    if (chain_step->by_rows) {
        work.tile = rows_tile;
        work.tiles = chain_step->conv.batch * chain_step->strips;
    } else {
        work.tile = pixels_tile;
        work.tiles = chain_step->strips * chain_step->panel_groups;
    }
    inf_cpu_team_run_tiles(step->team, &work, chain_step->workers);
}

// --- creating the step of a chain or of a matrix product ---

// Chooses the size of strips and the number of threads.
static void choose_strips(struct chain_step *chain_step, struct inf_cpu_step *step)
{
    const struct inf_conv_packed *conv = &chain_step->conv;
    size_t strip_pixels = inf_conv_packed_strip_pixels(conv);
    chain_step->by_rows = conv->has_depthwise || conv->gathers || !conv->pointwise;
    chain_step->pixels = conv->batch * conv->rows * conv->row_pixels;
    chain_step->workers =
        inf_native_choose_workers(step, conv->batch * conv->rows * inf_conv_packed_row_macs(conv));
    chain_step->panel_groups = 1;
    if (chain_step->by_rows) {
        size_t wanted = (strip_pixels + conv->row_pixels - 1) / conv->row_pixels;
        chain_step->strips = inf_native_choose_strips(conv->rows, wanted, chain_step->workers);
        return;
    }
    chain_step->strips =
        inf_native_choose_strips(chain_step->pixels, strip_pixels, chain_step->workers);
    // If there are too few pixels for all threads, the threads share the columns instead.
    size_t few = 4 * INF_MIN(conv->rows_max, (size_t)INF_GEMM_ROWS_MAX) * chain_step->workers;
    if (chain_step->pixels < few && chain_step->workers > 1) {
        chain_step->strips = 1;
        chain_step->panel_groups = INF_MIN(conv->panel_count, chain_step->workers);
    }
}

static void need_scratch(struct chain_step *chain_step, struct inf_cpu_step *step)
{
    const struct inf_conv_packed *conv = &chain_step->conv;
    size_t rows = conv->rows / chain_step->strips + 1 + conv->depthwise.rows_max;
    size_t count = chain_step->by_rows
                       ? inf_conv_rows_scratch(conv, rows)
                       : inf_conv_packed_scratch(conv, chain_step->pixels / chain_step->strips +
                                                           inf_conv_packed_strip_unit(conv));
    if (count == 0)
        return;
    chain_step->scratch_step = inf_native_need_worker_scratch(step, chain_step->workers, count);
}

static const char *kernel_name(const struct chain_step *chain_step,
                               const struct inf_cpu_chain *chain)
{
    bool add = chain->add != INF_NODE_NONE;
    if (chain_step->conv.has_depthwise)
        return add ? "depthwise+1x1+add" : "depthwise+1x1";
    if (chain_step->by_rows)
        return add ? "conv+add" : "conv";
    return add ? "1x1+add" : "1x1";
}

enum inf_code inf_fused_chain_set_operands(struct inf_cpu_step *step,
                                           const struct inf_cpu_chain *chain, struct inf_error *err)
{
    return inf_cpu_step_set_operands(step, inf_cpu_chain_input(chain, step->graph), chain->residual,
                                     err);
}

enum inf_code inf_fused_chain_create(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                     struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct chain_step), err));
    struct chain_step *chain_step = step->state;
    INF_TRY(inf_conv_packed_init(&chain_step->conv, step, chain, err));
    chain_step->conv.depthwise.prefetches = true;
    choose_strips(chain_step, step);
    need_scratch(chain_step, step);
    step->run = run_chain;
    step->kernel = kernel_name(chain_step, chain);
    return inf_fused_chain_set_operands(step, chain, err);
}

struct inf_cpu_chain inf_fused_chain_of_node(uint32_t node)
{
    return (struct inf_cpu_chain){INF_NODE_NONE, node,           INF_NODE_NONE,
                                  INF_NODE_NONE, INF_VALUE_NONE, INF_NODE_NONE};
}

static enum inf_code conv_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_cpu_chain chain = inf_fused_chain_of_node(step->index);
    return inf_fused_chain_create(step, &chain, err);
}

static enum inf_code product_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct chain_step), err));
    struct chain_step *chain_step = step->state;
    INF_TRY(inf_conv_packed_init_product(&chain_step->conv, step, err));
    choose_strips(chain_step, step);
    need_scratch(chain_step, step);
    // The program passes operand 0 only, because the kernel reads the weights from the pack.
    step->operand_count = 1;
    step->run = run_chain;
    step->kernel = "dense";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_gemm_kernels[] = {
    {INF_OP_CONV2D, inf_conv_packed_check, conv_create, .packs = INF_CPU_PACKS(1)},
    {0},
};

const struct inf_cpu_kernel inf_cpu_dense_kernels[] = {
    {INF_OP_MATMUL, inf_conv_packed_check_product, product_create, .packs = INF_CPU_PACKS(1)},
    {0},
};
