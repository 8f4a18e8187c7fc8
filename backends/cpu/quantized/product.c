// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers: qconv2d except depthwise, and qmatmul.
//
// The problem: a result is sum((x - x_zero) * (w - w_zero)) * scale, but instructions such as VNNI
// multiply unsigned with signed bytes without subtracting zero points.
//
// The idea: expand the product,
//
//     sum(x * w)  -  x_zero * sum(w)  -  w_zero * sum(x)  +  depth * x_zero * w_zero
//     in VNNI        once, in the bias    once a pixel       once, in the bias
//
// Usually the zero points of the weights are subtracted when the weights are packed (fold.h), and
// w_zero is 0.
//
// Constant weights are packed once, for all steps that multiply with them (pack.h). If x_zero is
// the result of another node, as in models with dynamic quantisation, each run only updates the
// bias of every column. If the weights, their zero points, the bias or the scales are results of
// other nodes, each run packs them again.
//
// Padding is x_zero, not 0. INT8 operands become unsigned, and UINT8 weights become signed, by
// flipping the top bit; the zero points are shifted accordingly. Sums are exact modulo 2^32 at
// every ISA level, so all levels give the same bits.
//
// This file packs the weights and makes the step; product_strips.c multiplies.
#include "backends/cpu/quantized/product.h"

#include <assert.h>
#include <string.h>

#include "backends/cpu/core/pack.h"
#include "backends/cpu/native/work.h"
#include "backends/cpu/quantized/fold.h"
#include "backends/graph/shape/infer.h"
#include "proto/core/span.h"

// Pixels of a good strip; a longer strip needs more cache and is not faster. With tile registers a
// strip is a multiple of the pixels of a call.
#define STRIP_PIXELS      48
#define TILE_STRIP_PIXELS 128
// Threads share the columns instead of the pixels if there are fewer pixels than so many kernel
// calls of each thread compute.
#define FEW_CALLS 4
// The number of 8-bit multiply-adds that take as long as one float multiply-add.
#define MACS_EACH 4
// Zero points are subtracted from the weights only if the blocks of their carries take at most
// the bytes of the weights divided by this. Each block is memory, and each run multiplies with it.
#define CARRY_DIVISOR 1

// --- packing the weights ---

// Addresses of the panel that fill_panel() sets up next.
struct packing {
    uint32_t *terms; // count_terms() numbers for each column of the panel
    const int8_t *w; // packed weights of the panel
    // Where the carries of folded weights are listed, and their weights. NULL: there are none.
    struct inf_q8_carry *carries;
    int8_t *blocks;
};

// Lists the carries of the panel at packing->w, which has `width` columns, and adds them to the
// sums of its columns. Returns their number.
static size_t list_carries(const struct inf_q8_product *product, struct packing *packing,
                           size_t width, uint32_t *sums)
{
    if (packing->carries == NULL)
        return 0;
    struct inf_q8_fold fold = inf_q8_fold_channel(&product->terms, 0);
    size_t count = inf_q8_carries_list(&fold, packing->w, product->quads, width, packing->carries,
                                       packing->blocks, sums);
    packing->carries += count;
    packing->blocks += count * INF_Q8_CARRY_BLOCKS * INF_CPU_QUAD * width;
    return count;
}

// Returns how many 32-bit numbers panels store for each column besides its weights. The numbers of
// one kind lie together, with one for each column of the panel: the biases; the scales, unless the
// kernels read the constant; the zero points of the weights, if kernels subtract these; and base
// and slope of the biases, if each run computes the biases because x_zero is computed.
static size_t count_terms(const struct inf_q8_product *product)
{
    return 1 + (product->copies_scales ? 1 : 0) + (product->has_zeros ? 1 : 0) +
           (product->shifts ? 2 : 0);
}

// Where the numbers of a panel are. NULL: the panel does not store them.
struct terms {
    int32_t *bias, *zeros;
    float *scales;
    uint32_t *base, *slope;
};

// Divides the numbers of a panel of `width` columns.
static struct terms divide_terms(const struct inf_q8_product *product, uint32_t *numbers,
                                 size_t width)
{
    struct terms terms = {.bias = (int32_t *)numbers};
    numbers += width;
    if (product->copies_scales) {
        terms.scales = (float *)numbers;
        numbers += width;
    }
    if (product->has_zeros) {
        terms.zeros = (int32_t *)numbers;
        numbers += width;
    }
    if (product->shifts) {
        terms.base = numbers;
        terms.slope = numbers + width;
    }
    return terms;
}

// Computes the biases of a panel of `width` columns: base - x_zero * slope, modulo 2^32.
static void compute_biases(int32_t *bias, const uint32_t *base, const uint32_t *slope, size_t width,
                           int32_t x_zero)
{
    for (size_t i = 0; i < width; i++)
        bias[i] = (int32_t)(base[i] - (uint32_t)x_zero * slope[i]);
}

// Sets up the panel that begins at column *first of group `group`. Its weights are packed already.
// Advances *packing and *first to the next panel.
static void fill_panel(const struct inf_q8_product *product, struct inf_q8_product_panel *panel,
                       struct packing *packing, size_t group, size_t *first)
{
    const struct inf_q8_gemms *gemms = product->gemms;
    const struct inf_q8_params *terms = &product->terms;
    size_t vectors = inf_cpu_bytes_panel_vectors(gemms, *first, product->outputs);
    size_t width = vectors * gemms->width;
    size_t columns = INF_MIN(width, product->outputs - *first);
    // Base and slope, if they are needed only here.
    uint32_t once[2 * INF_Q8_PANEL_COLUMNS_MAX];
    assert(width <= INF_Q8_PANEL_COLUMNS_MAX);
    size_t terms_count = count_terms(product) * width;
    struct terms own = divide_terms(product, packing->terms, width);
    uint32_t *base = product->shifts ? own.base : once;
    uint32_t *slope = base + width;
    memset(once, 0, sizeof once);
    memset(packing->terms, 0, terms_count * sizeof(*packing->terms));
    *panel = (struct inf_q8_product_panel){.gemm = gemms->gemm[vectors - 1],
                                           .first = group * product->outputs + *first,
                                           .bias = own.bias,
                                           .base = own.base,
                                           .slope = own.slope,
                                           .width = width};
    inf_cpu_bytes_sum_columns(packing->w, product->quads, width, slope);
    size_t carries = list_carries(product, packing, width, slope);
    for (size_t i = 0; i < columns; i++) {
        size_t channel = panel->first + i;
        base[i] = terms->bias != NULL ? (uint32_t)terms->bias[channel] : 0;
        if (own.zeros != NULL) {
            own.zeros[i] = inf_q8_w_zero(terms, channel);
            slope[i] -= (uint32_t)product->depth * (uint32_t)own.zeros[i];
        }
        if (own.scales != NULL)
            own.scales[i] = inf_q8_scale(terms, channel);
    }
    compute_biases(own.bias, base, slope, width, terms->x_zero);
    const float *scales = NULL;
    if (terms->scales != NULL)
        scales = own.scales != NULL ? own.scales : terms->scales + panel->first;
    panel->part = (struct inf_q8_panel){.segments = 1,
                                        .quads = product->quads,
                                        .w = packing->w,
                                        .bias = own.bias,
                                        .zeros = own.zeros,
                                        .carries = carries > 0 ? packing->carries - carries : NULL,
                                        .carry_count = carries,
                                        .requant = inf_q8_requant_of(terms, scales),
                                        .y_step = product->windows.groups * product->outputs,
                                        .columns = columns,
                                        .tile_depth = product->tile_depth};
    packing->terms += terms_count;
    packing->w += INF_CPU_QUAD * product->quads * width;
    *first += columns;
}

// Returns the layout that the weights have before packing.
static struct inf_cpu_bytes matrix_of(const struct inf_q8_product *product)
{
    return (struct inf_cpu_bytes){.rows = product->depth,
                                  .columns = product->windows.groups * product->outputs,
                                  .transposed = product->transposed,
                                  .group = product->outputs,
                                  .zero = product->terms.w_flip};
}

// Updates the biases of all panels for the zero point of x in product->terms.
static void set_biases(const struct inf_q8_product *product)
{
    for (size_t p = 0; p < product->windows.groups * product->panel_count; p++) {
        const struct inf_q8_product_panel *panel = &product->panels[p];
        compute_biases(panel->bias, panel->base, panel->slope, panel->width, product->terms.x_zero);
    }
}

// Sets up all panels for the packed weights of `packing` and the parameters in product->terms.
// The members that count_terms() depends on must be set.
static void fill_panels(struct inf_q8_product *product, struct packing packing)
{
    struct inf_q8_product_panel *panel = product->panels;
    packing.terms = product->terms_memory;
    for (size_t group = 0; group < product->windows.groups; group++)
        for (size_t first = 0; first < product->outputs;)
            fill_panel(product, panel++, &packing, group, &first);
}

static enum inf_code alloc_panels(struct inf_q8_product *product, struct inf_cpu_step *step,
                                  struct inf_error *err)
{
    size_t width = product->gemms->width;
    product->vectors = (product->outputs + width - 1) / width;
    product->panel_count = (product->vectors + 1) / 2;
    product->panels = inf_arena_alloc(step->arena, product->windows.groups * product->panel_count *
                                                       sizeof(*product->panels));
    if (product->panels == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its panels", step->node->name);
    return INF_OK;
}

// Allocates memory for the numbers of all panels. The members that count_terms() depends on must be
// set.
static enum inf_code alloc_terms(struct inf_q8_product *product, struct inf_cpu_step *step,
                                 struct inf_error *err)
{
    size_t columns = product->windows.groups * product->vectors * product->gemms->width;
    void *terms;
    INF_TRY(inf_q8_alloc(&terms, step, count_terms(product) * columns * sizeof(uint32_t), err));
    product->terms_memory = terms;
    return INF_OK;
}

// --- running ---

static void product_run(const struct inf_cpu_step *step)
{
    const struct inf_q8_product *product = step->state;
    inf_q8_product_run(product, step, step->inputs[0], step->output);
}

// Runs a product with constant weights and a computed zero point of x.
static void shifted_run(const struct inf_cpu_step *step)
{
    struct inf_q8_product *product = step->state;
    product->terms.x_zero = inf_q8_x_zero_of(step);
    set_biases(product);
    product_run(step);
}

// Runs a product whose weights, or numbers that are packed with the weights, are computed.
static void packing_run(const struct inf_cpu_step *step)
{
    struct inf_q8_product *product = step->state;
    const uint8_t *w = step->inputs[1];
    product->terms = inf_q8_params_of(step);
    product->terms.x_zero = inf_q8_x_zero_of(step);
    product->has_zeros = inf_q8_has_w_zeros(&product->terms); // weights are not folded
    const uint8_t *x = step->inputs[0];
    char *y = step->output;
    struct inf_cpu_bytes matrix = matrix_of(product);
    for (size_t i = 0; i < product->matrices; i++) {
        inf_cpu_bytes_pack(product->gemms, &matrix, w + i * product->depth * product->outputs,
                           product->w_memory);
        fill_panels(product, (struct packing){.w = product->w_memory});
        inf_q8_product_run(product, step, x, y);
        x += product->pixels * product->windows.channels;
        y += product->pixels * product->outputs * product->terms.y_size;
    }
}

// --- creating a step ---

// Chooses the size of strips and the number of threads.
static void choose_strips(struct inf_q8_product *product, struct inf_cpu_step *step)
{
    size_t macs = product->windows.groups * product->depth * product->outputs / MACS_EACH + 1;
    product->workers = inf_native_choose_workers(step, product->pixels * macs);
    size_t wanted = product->gemms->begin != NULL ? TILE_STRIP_PIXELS : STRIP_PIXELS;
    product->strips = inf_native_choose_strips(product->pixels, wanted, product->workers);
    product->panel_parts = 1;
    // If there are too few pixels for all threads, the threads share the columns instead.
    size_t few = FEW_CALLS * step->isa->q8->gemm->rows_max * product->workers;
    if (product->pixels < few && product->workers > 1) {
        product->strips = 1;
        product->panel_parts = INF_MIN(product->panel_count, product->workers);
    }
    product->strip_pixels = product->pixels / product->strips + inf_q8_product_strip_unit(product);
}

// Returns true if operand `input` of the node is present and computed.
static bool is_computed(const struct inf_cpu_step *step, uint32_t input)
{
    return inf_cpu_has_input(step->node, input) &&
           !inf_graph_is_const(step->graph, step->node->inputs[input]);
}

// Allocates memory for the weights that each run packs, and sets step->run.
static enum inf_code prepare_packing(struct inf_q8_product *product, struct inf_cpu_step *step,
                                     struct inf_error *err)
{
    struct inf_cpu_bytes matrix = matrix_of(product);
    void *memory;
    INF_TRY(inf_q8_alloc(&memory, step, inf_cpu_bytes_packed_size(product->gemms, &matrix), err));
    product->w_memory = memory;
    product->has_zeros = true;
    product->copies_scales = true;
    step->run = packing_run;
    return alloc_terms(product, step, err);
}

// The carries of all panels of a product.
struct carries {
    size_t count, block_bytes; // groups of four rows that have carries, and their blocks
    size_t weight_bytes;       // all packed weights
};

// Counts the carries of the folded weights at `w`.
static struct carries count_carries(const struct inf_q8_product *product, const int8_t *w)
{
    struct inf_q8_fold fold = inf_q8_fold_channel(&product->terms, 0);
    struct carries carries = {0};
    for (size_t group = 0; group < product->windows.groups; group++)
        for (size_t first = 0; first < product->outputs;) {
            size_t width = product->gemms->width *
                           inf_cpu_bytes_panel_vectors(product->gemms, first, product->outputs);
            size_t panel = inf_q8_carries_count(&fold, w, product->quads, width);
            carries.count += panel;
            carries.block_bytes += panel * INF_Q8_CARRY_BLOCKS * INF_CPU_QUAD * width;
            carries.weight_bytes += INF_CPU_QUAD * product->quads * width;
            w += INF_CPU_QUAD * product->quads * width;
            first += width;
        }
    return carries;
}

// Allocates memory for the carries.
static enum inf_code alloc_carries(struct packing *packing, struct inf_cpu_step *step,
                                   const struct carries *carries, struct inf_error *err)
{
    void *blocks;
    INF_TRY(inf_q8_alloc(&blocks, step, carries->block_bytes, err));
    packing->blocks = blocks;
    packing->carries = inf_arena_alloc(step->arena, carries->count * sizeof *packing->carries);
    if (packing->carries == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its carries", step->node->name);
    return INF_OK;
}

// Sets step->run, and packs now what does not change from run to run.
static enum inf_code choose_run(struct inf_q8_product *product, struct inf_cpu_step *step,
                                struct inf_error *err)
{
    bool packs = product->matrices > 1;
    for (uint32_t i = 1; i < step->node->input_count; i++)
        packs = packs || (i != 3 && is_computed(step, i));
    if (packs)
        return prepare_packing(product, step, err);
    product->shifts = is_computed(step, 3);
    step->run = product->shifts ? shifted_run : product_run;
    product->terms = inf_q8_params_of(step);
    product->terms.x_zero = product->shifts ? 0 : inf_q8_x_zero_of(step);
    struct inf_cpu_matrix matrix = {.rows = product->depth,
                                    .columns = product->windows.groups * product->outputs,
                                    .transposed = product->transposed,
                                    .group = product->outputs,
                                    .bytes = true,
                                    .zero = product->terms.w_flip};
    const void *w;
    struct packing packing = {0};
    if (inf_q8_fold_pays(&product->terms)) {
        struct inf_cpu_matrix folded = matrix;
        folded.zero = inf_q8_fold_channel(&product->terms, 0).subtracted;
        INF_TRY(inf_cpu_step_pack(step, step->node, 1, folded, &w, err));
        struct carries carries = count_carries(product, w);
        product->folded = carries.block_bytes <= carries.weight_bytes / CARRY_DIVISOR;
        if (!product->folded)
            inf_cpu_step_drop_pack(step);
        else if (carries.count > 0)
            INF_TRY(alloc_carries(&packing, step, &carries, err));
    }
    if (!product->folded)
        INF_TRY(inf_cpu_step_pack(step, step->node, 1, matrix, &w, err));
    packing.w = w;
    product->has_zeros = !product->folded && inf_q8_has_w_zeros(&product->terms);
    // For the missing columns of the last vector, kernels read the slack behind the constant.
    _Static_assert(INF_Q8_PANEL_COLUMNS_MAX / INF_Q8_VECTORS_MAX * sizeof(float) <=
                       INF_BLOB_SLACK_BYTES,
                   "kernels read more scales than the slack of a constant has");
    product->copies_scales = product->terms.scale_count <= 1;
    INF_TRY(alloc_terms(product, step, err));
    fill_panels(product, packing);
    return INF_OK;
}

// Chooses the kernels: those with tile registers if they are faster.
static void choose_gemms(struct inf_q8_product *product, const struct inf_cpu_step *step)
{
    const struct inf_q8 *q8 = step->isa->q8;
    product->gemms = q8->gemm;
    if (q8->gemm_tile == NULL || product->pixels <= INF_TILE_FEW_PIXELS)
        return;
    product->tile_depth = inf_tile_depth(product->quads);
    if (product->tile_depth > 0)
        product->gemms = q8->gemm_tile;
}

static enum inf_code product_make(struct inf_q8_product *product, struct inf_cpu_step *step,
                                  struct inf_error *err)
{
    product->quads = (product->depth + 3) / 4;
    choose_gemms(product, step);
    INF_TRY(alloc_panels(product, step, err));
    INF_TRY(choose_run(product, step, err));
    choose_strips(product, step);
    bool widens = product->gemms->widen != NULL;
    product->operand_size = (widens ? 2 : 1) * INF_CPU_QUAD * product->quads;
    bool reads_x = product->direct && !widens && product->terms.flip == 0;
    if (reads_x && !product->has_zeros && product->gemms->begin == NULL)
        return INF_OK;
    product->scratch_step = inf_q8_product_scratch_size(product);
    step->scratch_count = inf_q8_scratch_count(product->workers * product->scratch_step);
    return INF_OK;
}

// Returns true if the operand of a pixel of y is a pixel of x, provided that windows are 1x1. The
// size of a pixel must be a multiple of four bytes, because kernels read four bytes at a time and
// must not read beyond the last pixel.
static bool is_direct(const struct inf_q8_product *product)
{
    return product->windows.groups == 1 && product->depth % INF_CPU_QUAD == 0;
}

static bool is_pointwise(const struct inf_window *window)
{
    return window->kernel == 1 && window->stride == 1 && window->input == window->output &&
           window->pad_before == 0;
}

static enum inf_code conv_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, node, 0);
    const struct inf_shape *filter = inf_cpu_input_shape(step->graph, node, 1);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct inf_q8_product), err));
    struct inf_q8_product *product = step->state;
    inf_node_windows(step->graph, node, &product->windows.height, &product->windows.width);
    product->windows.channels = (size_t)x->dims[3];
    product->windows.groups = (size_t)node->attrs.qconv2d.groups;
    product->windows.inputs = (size_t)filter->dims[2];
    product->outputs = (size_t)filter->dims[3] / product->windows.groups;
    product->depth = (size_t)(filter->dims[0] * filter->dims[1]) * product->windows.inputs;
    product->pixels =
        (size_t)(x->dims[0] * product->windows.height.output * product->windows.width.output);
    product->direct = is_direct(product) && is_pointwise(&product->windows.height) &&
                      is_pointwise(&product->windows.width);
    product->windows.images = (size_t)x->dims[0];
    product->matrices = 1;
    step->kernel = product->direct ? "q8 1x1" : "q8 conv";
    return product_make(product, step, err);
}

static enum inf_code conv_supports(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    (void)graph;
    (void)node;
    (void)err;
    return INF_OK;
}

// Returns the number of matrices in an operand of qmatmul.
static size_t count_matrices(const struct inf_shape *shape)
{
    return inf_shape_elements(shape) /
           (size_t)(shape->dims[shape->rank - 1] * shape->dims[shape->rank - 2]);
}

static enum inf_code matmul_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    const struct inf_shape *a = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    if (count_matrices(b) == 1)
        return INF_OK;
    bool same = a->rank == b->rank;
    for (int32_t i = 0; same && i < a->rank - 2; i++)
        same = a->dims[i] == b->dims[i];
    if (!same)
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: qmatmul: several matrices b are not built if a is broadcast");
    return INF_OK;
}

// Creates the step for a qmatmul: the rows of matrix a become the pixels of an image that is one
// pixel high.
static enum inf_code matmul_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_shape *a = inf_cpu_input_shape(step->graph, node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, node);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct inf_q8_product), err));
    struct inf_q8_product *product = step->state;
    product->depth = (size_t)a->dims[a->rank - 1];
    product->windows.channels = product->depth;
    product->windows.inputs = product->depth;
    product->windows.groups = 1;
    product->windows.images = 1;
    product->outputs = (size_t)y->dims[y->rank - 1];
    product->matrices = count_matrices(inf_cpu_input_shape(step->graph, node, 1));
    product->pixels = inf_shape_elements(y) / product->outputs / product->matrices;
    product->direct = is_direct(product);
    product->windows.height =
        (struct inf_window){.input = 1, .output = 1, .kernel = 1, .stride = 1, .dilation = 1};
    product->windows.width = product->windows.height;
    product->windows.width.input = product->windows.width.output = (int64_t)product->pixels;
    product->transposed = node->attrs.qmatmul.transpose_b;
    step->kernel = "q8 matmul";
    return product_make(product, step, err);
}

const struct inf_cpu_kernel inf_cpu_q8_product_kernels[] = {
    {INF_OP_QCONV2D, conv_supports, conv_create, .packs = INF_CPU_PACKS(1)},
    {INF_OP_QMATMUL, matmul_supports, matmul_create, .packs = INF_CPU_PACKS(1)},
    {0},
};
