// SPDX-License-Identifier: Apache-2.0
// Steps that compute 3x3 convolutions at stride 1 by Winograd's algorithm, including an add and a
// prelu that are fused with the convolution. This file decides which nodes qualify, chooses the
// sizes of blocks, and prepares weights. run.c computes, error.c measures the error.
//
// For each result and input channel, F(m) needs (m + 2)^2 / m^2 multiply-adds instead of 9. But its
// transforms cost time, its weights are (m + 2)^2 / 9 times as large, and its rounding errors grow
// with m. Therefore no fixed rule chooses F(m): a form is used only if it wins the timing
// comparison of a node, and only if its error with the weights of the node is small.
#include "backends/cpu/winograd/conv.h"

#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/panel.h"
#include "backends/cpu/native/fused_chain.h"
#include "backends/cpu/native/work.h"
#include "backends/cpu/winograd/error.h"

// Of the simple binary fractions that were measured, these points had the smallest error. With such
// fractions the transforms of inputs are nearly exact. docs/measurements/cpu.md has the errors.
static const struct inf_winograd_form forms[INF_WINOGRAD_FORMS] = {
    {1, {1}},
    {2, {0.625, 1.5}},
    {3, {0.5, 1, 2}},
};

// The transformed inputs of a block have at most BLOCK_BYTES bytes, so that they stay in the L2
// cache (512 KiB to 2 MiB) together with the weights of a panel. But a block has at least
// BLOCK_TILES tiles, even if these need more memory, because each block reads all weights again.
// With 24 tiles and vectors of 8 floats, each vector of weights (32 bytes) is used for 24 vector
// multiply-adds. They take about 12 cycles, in which the L3 cache delivers more than 32 bytes.
#define BLOCK_BYTES ((size_t)256 << 10)
#define BLOCK_TILES 24
// The sums of a block and a group have at most this size in bytes, so that they stay in the L2
// cache too. But a group has at least one panel.
#define GROUP_BYTES ((size_t)128 << 10)
// A form may need at most this share of the multiply-adds of the direct convolution, because its
// transforms cost time.
#define PRODUCTS_MAX 0.7
// The least number of input channels and of output channels. With fewer channels, the transforms
// cost more time than the products save.
#define CHANNELS_MIN 8
// Larger weights that fit 8 bits (core/pack_narrow.h) are not transformed: they would take 7 to 28
// times the bytes of the model's file, because transformed weights are fp32. Weights that fit 16
// bits only are transformed: without that, networks of such layers take twice the time.
#define UNITS_BYTES_MAX ((size_t)256 << 10)

// --- checking which nodes qualify ---

static size_t count_tiles(const struct inf_window *window, size_t tile)
{
    return ((size_t)window->output + tile - 1) / tile;
}

// Returns the number of multiply-adds of the form's products, divided by the number of
// multiply-adds of the direct convolution.
static double products_share(const struct inf_window *h, const struct inf_window *w, size_t form)
{
    size_t tile = inf_winograd_tile(&forms[form]);
    size_t side = inf_winograd_side(&forms[form]);
    return (double)(side * side * count_tiles(h, tile) * count_tiles(w, tile)) /
           (9 * (double)h->output * (double)w->output);
}

static bool is_plain(const struct inf_window *window)
{
    return window->kernel == 3 && window->stride == 1 && window->dilation == 1 &&
           window->pad_before >= 0;
}

static enum inf_code check_form(const struct inf_graph *graph, const struct inf_node *node,
                                size_t form, struct inf_error *err)
{
    struct inf_window h;
    struct inf_window w;
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    const struct inf_shape *filter = inf_cpu_input_shape(graph, node, 1);
    size_t outputs = (size_t)filter->dims[3];
    inf_node_windows(graph, node, &h, &w);
    if (node->attrs.conv2d.groups != 1 || !is_plain(&h) || !is_plain(&w) ||
        filter->dims[2] < CHANNELS_MIN || outputs < CHANNELS_MIN)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: conv2d: Winograd's algorithm does not fit");
    if (products_share(&h, &w, form) > PRODUCTS_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: conv2d: too few whole tiles");
    // A form must need fewer multiply-adds than each smaller form, because its weights and its
    // error are larger.
    for (size_t smaller = 0; smaller < form; smaller++)
        if (products_share(&h, &w, smaller) <= products_share(&h, &w, form))
            return inf_fail(err, INF_UNSUPPORTED, "cpu: conv2d: a smaller tile is as good");
    INF_TRY(inf_cpu_need_const(graph, node, 1, inf_shape_elements(filter), err));
    INF_TRY(inf_cpu_need_const(graph, node, 2, outputs, err));
    const struct inf_blob *weights = graph->values[node->inputs[1]].data;
    if (weights->size_bytes > UNITS_BYTES_MAX &&
        inf_cpu_constant_element(weights, outputs) == INF_CPU_ELEMENT_UNITS)
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: conv2d: transformed weights take many times the bytes of these");
    const struct inf_attrs_conv2d *attrs = &node->attrs.conv2d;
    struct inf_cpu_activation activation = {attrs->activation, attrs->activation_alpha,
                                            attrs->activation_min, attrs->activation_max};
    return inf_native_epilogue_check(graph, node, &activation, 3, outputs, err);
}

// --- sizes ---

static size_t round_up(size_t count, size_t unit)
{
    return (count + unit - 1) / unit * unit;
}

// Returns the distance, in elements, between the starts of two matrices of `rows` rows. The
// distance is an odd number of cache lines. Otherwise, elements with the same index in all matrices
// would compete for a few sets of the cache.
static size_t matrix_step(size_t rows, size_t row_step)
{
    size_t step = rows * row_step;
    return step / INF_WINOGRAD_PAD % 2 == 1 ? step : step + INF_WINOGRAD_PAD;
}

static void fill_factors(struct inf_winograd_conv *conv)
{
    const struct inf_winograd_form *form = &forms[conv->form];
    double numbers[INF_WINOGRAD_PAIRS_MAX] = {0};
    inf_winograd_multiply_pairs(form, form->pairs, numbers);
    for (unsigned k = 0; k < form->pairs; k++)
        conv->factors.whole[k] = (float)numbers[k];
    for (unsigned i = 0; i < form->pairs; i++) {
        inf_winograd_multiply_pairs(form, i, numbers);
        double power = 1;
        for (unsigned k = 0; k + 1 < form->pairs; k++)
            conv->factors.rest[i][k] = (float)numbers[k];
        for (unsigned k = 0; k < inf_winograd_tile(form); k++, power *= form->points[i])
            conv->factors.powers[i][k] = (float)power;
    }
}

static void describe_conv(struct inf_winograd_conv *conv, const struct inf_cpu_step *step,
                          const struct inf_node *node, size_t form)
{
    const struct inf_shape *filter = inf_cpu_input_shape(step->graph, node, 1);
    inf_node_windows(step->graph, node, &conv->height, &conv->width);
    conv->form = form;
    conv->side = inf_winograd_side(&forms[form]);
    conv->tile = inf_winograd_tile(&forms[form]);
    conv->products = conv->side * conv->side;
    conv->batch = (size_t)inf_cpu_input_shape(step->graph, node, 0)->dims[0];
    conv->inputs = (size_t)filter->dims[2];
    conv->outputs = (size_t)filter->dims[3];
    conv->tiles_down = count_tiles(&conv->height, conv->tile);
    conv->tiles_across = count_tiles(&conv->width, conv->tile);
    conv->tiles = conv->batch * conv->tiles_down * conv->tiles_across;
    conv->rows_max = step->isa->nn->gemm->rows_max;
    conv->shares_prefetch = step->isa->nn->gemm->shares_prefetch;
    conv->loops = step->isa->nn->winograd;
    conv->v_step = round_up(conv->inputs, INF_WINOGRAD_PAD);
    conv->copy_count = conv->products * conv->inputs;
    fill_factors(conv);
}

// Chooses the number of threads and of tiles in a block.
static void choose_blocks(struct inf_winograd_conv *conv, struct inf_cpu_step *step)
{
    size_t least = round_up(BLOCK_TILES, conv->rows_max);
    size_t most = BLOCK_BYTES / (conv->products * conv->v_step * sizeof(float));
    most = INF_MAX(most / conv->rows_max * conv->rows_max, least);
    conv->workers = inf_native_choose_workers(step, conv->products * conv->tiles * conv->inputs *
                                                        conv->outputs);
    conv->by_blocks = conv->workers == 1 || conv->tiles >= least * conv->workers;
    conv->blocks = inf_native_choose_strips(conv->tiles, most, conv->by_blocks ? conv->workers : 1);
    // If there are several blocks, `block` is a multiple of the tiles of a kernel call; only the
    // last block can be smaller.
    conv->block = (conv->tiles + conv->blocks - 1) / conv->blocks;
    if (conv->blocks > 1)
        conv->block = round_up(conv->block, conv->rows_max);
    conv->blocks = (conv->tiles + conv->block - 1) / conv->block;
    conv->v_matrix = matrix_step(conv->block, conv->v_step);
}

// Cuts the panels of output channels into groups (GROUP_BYTES).
static enum inf_code choose_groups(struct inf_winograd_conv *conv, struct inf_cpu_step *step,
                                   struct inf_error *err)
{
    size_t most = GROUP_BYTES / (conv->products * conv->block * sizeof(float));
    size_t widest = 0;
    conv->groups = inf_arena_alloc(step->arena, conv->panel_count * sizeof(*conv->groups));
    if (conv->groups == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its groups", step->node->name);
    if (!conv->by_blocks)
        most = INF_MIN(most, (conv->outputs + conv->workers - 1) / conv->workers);
    for (size_t p = 0; p < conv->panel_count;) {
        struct inf_winograd_group *group = &conv->groups[conv->group_count++];
        *group = (struct inf_winograd_group){.first_panel = p, .first = conv->panels[p].first};
        size_t width = 0;
        do
            width += conv->panels[p++].width;
        while (p < conv->panel_count && width + conv->panels[p].width <= most);
        group->end_panel = p;
        group->columns =
            (p < conv->panel_count ? conv->panels[p].first : conv->outputs) - group->first;
        widest = INF_MAX(widest, width);
    }
    conv->sum_step = round_up(widest, INF_WINOGRAD_PAD);
    conv->sum_matrix = matrix_step(conv->block, conv->sum_step);
    return INF_OK;
}

static void need_scratch(struct inf_winograd_conv *conv, struct inf_cpu_step *step)
{
    size_t inputs = inf_winograd_inputs_count(conv);
    size_t sums = inf_winograd_sums_count(conv);
    size_t copy = round_up(conv->copy_count, INF_WINOGRAD_PAD);
    if (conv->by_blocks) {
        conv->worker_scratch = inputs + sums + copy;
        inf_native_need_scratch(step, conv->workers * conv->worker_scratch);
    } else {
        conv->worker_scratch = INF_MAX(sums, copy);
        inf_native_need_scratch(step, inputs + conv->workers * conv->worker_scratch);
    }
}

// --- weights and the epilogue ---

static enum inf_code pack_weights(struct inf_winograd_conv *conv, struct inf_cpu_step *step,
                                  const struct inf_node *node, struct inf_error *err)
{
    const struct inf_nn *nn = step->isa->nn;
    const void *packed;
    size_t rows = conv->products * conv->inputs;
    conv->panel_count = inf_cpu_panel_count(nn, conv->outputs, NULL);
    conv->panels = inf_arena_alloc(step->arena, conv->panel_count * sizeof(*conv->panels));
    if (conv->panels == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its panels", node->name);
    struct inf_cpu_matrix matrix = {
        .rows = rows, .columns = conv->outputs, .winograd = &forms[conv->form]};
    INF_TRY(inf_cpu_step_pack(step, node, 1, matrix, &packed, err));
    const float *w = packed;
    size_t first = 0;
    for (size_t p = 0; p < conv->panel_count; p++) {
        struct inf_cpu_panel cut = inf_cpu_panel_at(nn, first, conv->outputs);
        conv->panels[p] = (struct inf_winograd_panel){
            .gemm = cut.gemm->gemm[cut.vectors - 1], .w = w, .first = first, .width = cut.width};
        w += rows * cut.width;
        first += cut.columns;
    }
    return INF_OK;
}

static enum inf_code fill_bias_and_slopes(struct inf_winograd_conv *conv, struct inf_cpu_step *step,
                                          const float *bias, struct inf_error *err)
{
    size_t width = round_up(conv->outputs, INF_WINOGRAD_PAD);
    bool has_slopes = inf_native_epilogue_has_slopes(&conv->epilogue);
    float *at;
    INF_TRY(inf_native_alloc_floats(&at, step, 2 * INF_WINOGRAD_PAD + width * (has_slopes ? 2 : 1),
                                    err));
    conv->zeros = at;
    for (size_t i = 0; i < 2 * INF_WINOGRAD_PAD; i++)
        *at++ = 0;
    conv->bias = at;
    for (size_t i = 0; i < width; i++)
        *at++ = i < conv->outputs && bias != NULL ? bias[i] : 0;
    if (has_slopes) {
        inf_native_epilogue_fill_slopes(&conv->epilogue, conv->outputs, width, at);
        conv->slopes = at;
    }
    return INF_OK;
}

// --- steps ---

static void run_step(const struct inf_cpu_step *step)
{
    const struct inf_winograd_conv *conv = step->state;
    struct inf_winograd_task task = {.conv = conv,
                                     .x = step->inputs[0],
                                     .residual =
                                         conv->residual_channels > 0 ? step->inputs[1] : NULL,
                                     .y = step->output,
                                     .scratch = step->scratch};
    inf_winograd_run(step->team, &task);
}

static enum inf_code create_chain(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                  size_t form, struct inf_error *err)
{
    static const char *const names[INF_WINOGRAD_FORMS][2] = {
        {"winograd f2x2", "winograd f2x2+add"},
        {"winograd f4x4", "winograd f4x4+add"},
        {"winograd f6x6", "winograd f6x6+add"}};
    const struct inf_node *node = &step->graph->nodes[chain->conv];
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct inf_winograd_conv), err));
    struct inf_winograd_conv *conv = step->state;
    describe_conv(conv, step, node, form);
    INF_TRY(pack_weights(conv, step, node, err));
    conv->epilogue = inf_native_epilogue_of_chain(step, chain, &conv->residual_channels);
    INF_TRY(fill_bias_and_slopes(conv, step, inf_cpu_const_f32(step->graph, node, 2), err));
    INF_TRY(inf_winograd_error_check(conv, inf_cpu_const_f32(step->graph, node, 1), node, err));
    choose_blocks(conv, step);
    INF_TRY(choose_groups(conv, step, err));
    need_scratch(conv, step);
    step->run = run_step;
    step->kernel = names[form][chain->add != INF_NODE_NONE];
    return inf_fused_chain_set_operands(step, chain, err);
}

static enum inf_code create_node(struct inf_cpu_step *step, size_t form, struct inf_error *err)
{
    const struct inf_cpu_chain chain = inf_fused_chain_of_node(step->index);
    return create_chain(step, &chain, form, err);
}

#define FORM(tile)                                                                                 \
    static enum inf_code check_##tile(const struct inf_graph *graph, const struct inf_node *node,  \
                                      struct inf_error *err)                                       \
    {                                                                                              \
        return check_form(graph, node, (tile) / 2 - 1, err);                                       \
    }                                                                                              \
    static enum inf_code create_##tile(struct inf_cpu_step *step, struct inf_error *err)           \
    {                                                                                              \
        return create_node(step, (tile) / 2 - 1, err);                                             \
    }                                                                                              \
    static enum inf_code create_chain_##tile(                                                      \
        struct inf_cpu_step *step, const struct inf_cpu_chain *chain, struct inf_error *err)       \
    {                                                                                              \
        return create_chain(step, chain, (tile) / 2 - 1, err);                                     \
    }                                                                                              \
    const struct inf_cpu_kernel inf_cpu_winograd_##tile##_kernels[] = {                            \
        {INF_OP_CONV2D, check_##tile, create_##tile, create_chain_##tile, true},                   \
        {0},                                                                                       \
    };

FORM(2)
FORM(4)
FORM(6)
