// SPDX-License-Identifier: Apache-2.0
// Tiles are strips of pixels (of rows where windows are larger than a pixel or a depthwise convolution
// comes before), so that what lies between the nodes of a chain stays in the caches of the core that
// made it.
#include "backends/cpu/native/fused_chain.h"

#include "backends/cpu/native/conv_packed.h"
#include "backends/cpu/native/conv_rows.h"
#include "backends/cpu/native/round_bf16.h"
#include "backends/cpu/native/work.h"
#include "backends/graph/shape/infer.h"

struct alone {
    struct inf_conv_packed conv;
    bool by_rows;
    size_t pixels;       // of all images
    size_t strips;       // of an image where they are rows, else of all pixels
    size_t panel_groups; // that threads take where pixels are few
    size_t workers;
    size_t scratch_step; // of each worker
};

struct alone_task {
    const struct alone *alone;
    const float *x, *residual;
    float *y, *scratch;
};

// --- computing ---

static void pixels_tile(const void *context, size_t tile, size_t worker)
{
    const struct alone_task *task = context;
    const struct alone *alone = task->alone;
    const struct inf_conv_packed *conv = &alone->conv;
    size_t group = tile % alone->panel_groups;
    size_t strip = tile / alone->panel_groups;
    size_t first = inf_native_strip_start(alone->pixels, alone->strips, strip, 1);
    size_t end = inf_native_strip_start(alone->pixels, alone->strips, strip + 1, 1);
    struct inf_conv_packed_run run = {
        .a = {task->x + first * conv->inputs},
        .count = end - first,
        .rounded = inf_round_bf16_target(conv, task->scratch, worker * alone->scratch_step),
        .y = task->y + first * conv->outputs};
    if (conv->residual_channels > 0)
        run.residual = task->residual + first * conv->residual_channels;
    inf_conv_packed_compute(conv, &run, conv->panel_count * group / alone->panel_groups,
                            conv->panel_count * (group + 1) / alone->panel_groups);
}

static void rows_tile(const void *context, size_t tile, size_t worker)
{
    const struct alone_task *task = context;
    const struct alone *alone = task->alone;
    const struct inf_conv_packed *conv = &alone->conv;
    const struct inf_native_depthwise *depthwise = &conv->depthwise;
    size_t image = tile / alone->strips;
    size_t strip = tile % alone->strips;
    // Threads that have as many rows are worth more than windows that take two at a time.
    size_t unit = conv->has_depthwise && alone->workers == 1 ? depthwise->rows_max : 1;
    size_t first = inf_native_strip_start(conv->rows, alone->strips, strip, unit);
    size_t end = inf_native_strip_start(conv->rows, alone->strips, strip + 1, unit);
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
        inf_conv_rows_compute(conv, &io, first, end, task->scratch + worker * alone->scratch_step);
}

static void alone_run(const struct inf_cpu_step *step)
{
    const struct alone *alone = step->state;
    struct alone_task task = {alone, step->inputs[0],
                              alone->conv.residual_channels > 0 ? step->inputs[1] : NULL,
                              step->output, step->scratch};
    struct inf_cpu_tiles work = {.context = &task};
    if (alone->by_rows) {
        work.tile = rows_tile;
        work.tiles = alone->conv.batch * alone->strips;
    } else {
        work.tile = pixels_tile;
        work.tiles = alone->strips * alone->panel_groups;
    }
    inf_cpu_team_run_tiles(step->team, &work, alone->workers);
}

// --- making ---

// Chooses strips and threads.
static void share(struct alone *alone, struct inf_cpu_step *step)
{
    const struct inf_conv_packed *conv = &alone->conv;
    size_t strip_pixels = inf_conv_packed_strip_pixels(conv);
    alone->by_rows = conv->has_depthwise || !conv->pointwise;
    alone->pixels = conv->batch * conv->rows * conv->row_pixels;
    alone->workers =
        inf_native_choose_workers(step, conv->batch * conv->rows * inf_conv_packed_row_macs(conv));
    alone->panel_groups = 1;
    if (alone->by_rows) {
        size_t wanted = (strip_pixels + conv->row_pixels - 1) / conv->row_pixels;
        alone->strips = inf_native_choose_strips(conv->rows, wanted, alone->workers);
        return;
    }
    alone->strips = inf_native_choose_strips(alone->pixels, strip_pixels, alone->workers);
    // Few pixels: threads share the columns.
    if (alone->pixels < 4 * conv->rows_max * alone->workers && alone->workers > 1) {
        alone->strips = 1;
        alone->panel_groups = INF_MIN(conv->panel_count, alone->workers);
    }
}

static void need_scratch(struct alone *alone, struct inf_cpu_step *step)
{
    const struct inf_conv_packed *conv = &alone->conv;
    size_t rows = conv->rows / alone->strips + 1 + conv->depthwise.rows_max;
    size_t count = alone->by_rows ? inf_conv_rows_scratch(conv, rows)
                                  : inf_round_bf16_scratch(conv, alone->pixels / alone->strips + 1);
    if (count == 0)
        return;
    alone->scratch_step = (count + 31) / 16 * 16; // workers share no cache line
    inf_native_need_scratch(step, alone->scratch_step * alone->workers);
}

static const char *name_of(const struct alone *alone, const struct inf_cpu_chain *chain)
{
    bool add = chain->add != INF_NODE_NONE;
    if (alone->conv.has_depthwise)
        return add ? "depthwise+1x1+add" : "depthwise+1x1";
    if (alone->by_rows)
        return add ? "conv+add" : "conv";
    return add ? "1x1+add" : "1x1";
}

enum inf_code inf_fused_chain_create(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                     struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct alone), err));
    struct alone *alone = step->state;
    INF_TRY(inf_conv_packed_init(&alone->conv, step, chain, err));
    alone->conv.depthwise.prefetches = true;
    share(alone, step);
    need_scratch(alone, step);
    uint32_t *operands = inf_arena_alloc(step->arena, 2 * sizeof(*operands));
    if (operands == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its operands", step->node->name);
    operands[0] = inf_cpu_chain_input(chain, step->graph);
    operands[1] = chain->residual;
    step->operands = operands;
    step->operand_count = chain->residual != INF_VALUE_NONE ? 2 : 1;
    step->run = alone_run;
    step->kernel = name_of(alone, chain);
    return INF_OK;
}

static enum inf_code conv_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct inf_cpu_chain chain = {INF_NODE_NONE, step->index,    INF_NODE_NONE,
                                  INF_NODE_NONE, INF_VALUE_NONE, INF_NODE_NONE};
    return inf_fused_chain_create(step, &chain, err);
}

static enum inf_code product_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct alone), err));
    struct alone *alone = step->state;
    INF_TRY(inf_conv_packed_init_product(&alone->conv, step, err));
    share(alone, step);
    need_scratch(alone, step);
    step->operand_count = 1; // what is packed is not read
    step->run = alone_run;
    step->kernel = "dense";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_gemm_kernels[] = {
    {INF_OP_CONV2D, inf_conv_packed_check, conv_create},
    {0},
};

const struct inf_cpu_kernel inf_cpu_dense_kernels[] = {
    {INF_OP_MATMUL, inf_conv_packed_check_product, product_create},
    {0},
};
