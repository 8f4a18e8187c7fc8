// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers: qconv2d except depthwise, and qmatmul with constant weights.
//
// The problem: a result is sum((x - x_zero) * (w - w_zero)) * scale, but instructions such as VNNI
// multiply unsigned with signed bytes without subtracting zero points.
//
// The idea: expand the product,
//
//     sum(x * w)  -  x_zero * sum(w)  -  w_zero * sum(x)  +  depth * x_zero * w_zero
//     in VNNI        once, in the bias    once a pixel       once, in the bias
//
// Padding is x_zero, not 0. INT8 operands become unsigned, and UINT8 weights become signed, by
// flipping the top bit; the zero points are shifted accordingly. Sums are exact modulo 2^32 at
// every ISA level, so all levels give the same bits.
//
// The operand of a pixel is its window. For 1x1 windows of unsigned numbers, the bytes of x are
// read in place. Otherwise the windows of a strip of pixels are copied to scratch memory.
#include "backends/cpu/native/work.h"
#include "backends/cpu/quantized/q8.h"
#include "backends/graph/shape/infer.h"

#include <string.h>

#define STRIP_PIXELS 48 // pixels of a good strip; a longer strip needs more cache and is not faster
// The number of 8-bit multiply-adds that take as long as one float multiply-add.
#define MACS_EACH 4

// A panel: columns of the result that one kernel call computes.
struct panel {
    inf_q8_gemm_fn *const *gemm; // by number of pixels - 1
    struct inf_q8_panel part;
    size_t first; // index of the first column of y
};

struct product {
    struct inf_q8_params terms;
    const struct inf_q8_gemms *gemms;
    struct inf_window height, width;
    size_t channels;                // channels in a pixel of x
    size_t groups, inputs, outputs; // `inputs` and `outputs` are channels of one group
    size_t depth, quads;            // bytes in a window of a group, and groups of four of them
    size_t pixels;                  // number of pixels of y
    bool direct;                    // true: pixels are read in place
    bool has_zeros;                 // true: at least one zero point of the weights is not 0
    struct panel *panels;           // ordered by group
    size_t panel_count;             // number of panels in a group
    size_t panel_parts;             // number of parts of a group's panels; threads share the parts
    size_t strips, workers;
    char *scratch; // for each worker: windows, then their sums
    size_t scratch_step, strip_pixels;
};

struct product_task {
    const struct product *product;
    const uint8_t *x;
    char *y;
};

// --- packing the weights ---

struct packing {
    const uint8_t *w; // weights in the layout of the graph
    // w_step: bytes between the weights of one window; w_column: bytes between output columns
    size_t w_step, w_column;
    int32_t *terms; // where biases, zero points and scales are written next
    int8_t *at;     // where weights are written next
};

// Packs the weights of one column into lane `lane` of a panel of `width` lanes. Returns the sum of
// these weights.
static int32_t pack_column(const struct product *product, const struct packing *packing,
                           size_t column, size_t lane, size_t width)
{
    int32_t sum = 0;
    const uint8_t *from = packing->w + column * packing->w_column;
    for (size_t k = 0; k < product->depth; k++) {
        int8_t weight = (int8_t)(from[k * packing->w_step] ^ product->terms.w_flip);
        packing->at[(k / 4 * width + lane) * 4 + k % 4] = weight;
        sum = (int32_t)((uint32_t)sum + (uint32_t)weight);
    }
    return sum;
}

// Packs the next panel of group `group`. The panel has `vectors` vectors of columns, starting at
// column *first.
static void pack_panel(const struct product *product, struct panel *panel, struct packing *packing,
                       size_t vectors, size_t group, size_t *first)
{
    const struct inf_q8_gemms *gemms = product->gemms;
    const struct inf_q8_params *terms = &product->terms;
    size_t width = vectors * gemms->width;
    size_t columns = INF_MIN(width, product->outputs - *first);
    int32_t *bias = packing->terms;
    int32_t *zeros = bias + width;
    float *scales = (float *)(zeros + width);
    memset(bias, 0, 3 * width * sizeof(*bias));
    memset(packing->at, 0, 4 * product->quads * width);
    panel->gemm = gemms->gemm[vectors - 1];
    panel->first = group * product->outputs + *first;
    for (size_t i = 0; i < columns; i++) {
        size_t channel = panel->first + i;
        int32_t sum = pack_column(product, packing, channel, i, width);
        bias[i] = inf_q8_adjusted_bias(terms, channel, sum, product->depth);
        zeros[i] = inf_q8_w_zero(terms, channel);
        scales[i] = inf_q8_scale(terms, channel);
    }
    panel->part = (struct inf_q8_panel){
        .segments = 1,
        .quads = product->quads,
        .w = packing->at,
        .bias = bias,
        .zeros = product->has_zeros ? zeros : NULL,
        .requant = {terms->scales != NULL ? scales : NULL, terms->low, terms->high, terms->y_zero},
        .y_step = product->groups * product->outputs,
        .columns = columns};
    packing->terms += 3 * width;
    packing->at += 4 * product->quads * width;
    *first += columns;
}

static enum inf_code pack_weights(struct product *product, struct inf_cpu_step *step,
                                  struct packing *packing, struct inf_error *err)
{
    size_t width = product->gemms->width;
    // The number of SIMD vectors that cover the outputs of one group of the convolution.
    size_t vectors = (product->outputs + width - 1) / width;
    size_t columns = product->groups * vectors * width;
    void *terms;
    void *weights;
    product->panel_count = (vectors + 1) / 2;
    product->panels = inf_arena_alloc(step->arena, product->groups * product->panel_count *
                                                       sizeof(*product->panels));
    if (product->panels == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its panels", step->node->name);
    INF_TRY(inf_q8_alloc(&terms, step, 3 * columns * sizeof(int32_t), err));
    INF_TRY(inf_q8_alloc(&weights, step, 4 * product->quads * columns, err));
    packing->terms = terms;
    packing->at = weights;
    struct panel *panel = product->panels;
    for (size_t group = 0; group < product->groups; group++) {
        size_t first = 0;
        for (size_t left = vectors; left > 0; left -= INF_MIN(left, 2u))
            pack_panel(product, panel++, packing, INF_MIN(left, 2u), group, &first);
    }
    return INF_OK;
}

// --- copying windows ---

// Copies `count` bytes of x and converts them to unsigned.
static void copy_bytes(uint8_t *to, const uint8_t *from, size_t count, uint8_t flip)
{
    if (flip == 0) {
        memcpy(to, from, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        to[i] = from[i] ^ flip;
}

// Copies one row of taps of a window to scratch memory. The first tap is at column `column` of the
// row `row` of x. If `row` is NULL, the row is padding and is filled with the zero point.
static void gather_row(const struct product *product, const uint8_t *row, int64_t column,
                       uint8_t *to)
{
    const struct inf_window *w = &product->width;
    int64_t last = column + (int64_t)(w->kernel - 1) * w->dilation;
    bool whole = product->groups == 1 && w->dilation == 1;
    if (row != NULL && whole && column >= 0 && last < w->input) {
        copy_bytes(to, row + (size_t)column * product->channels,
                   (size_t)w->kernel * product->inputs, product->terms.flip);
        return;
    }
    for (int32_t k = 0; k < w->kernel; k++, column += w->dilation, to += product->inputs) {
        if (row != NULL && column >= 0 && column < w->input)
            copy_bytes(to, row + (size_t)column * product->channels, product->inputs,
                       product->terms.flip);
        else
            memset(to, product->terms.x_zero, product->inputs);
    }
}

static void gather_window(const struct product *product, const uint8_t *x, size_t group,
                          size_t pixel, uint8_t *to)
{
    const struct inf_window *h = &product->height;
    const struct inf_window *w = &product->width;
    size_t columns = (size_t)w->output;
    size_t rows = (size_t)h->output;
    size_t row_size = (size_t)w->input * product->channels;
    int64_t column = (int64_t)(pixel % columns) * w->stride - w->pad_before;
    int64_t row = (int64_t)(pixel / columns % rows) * h->stride - h->pad_before;
    x += pixel / columns / rows * (size_t)h->input * row_size + group * product->inputs;
    for (int32_t k = 0; k < h->kernel; k++, row += h->dilation) {
        bool inside = row >= 0 && row < h->input;
        gather_row(product, inside ? x + (size_t)row * row_size : NULL, column, to);
        to += (size_t)w->kernel * product->inputs;
    }
}

static int32_t sum_bytes(const uint8_t *bytes, size_t count)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += bytes[i];
    return (int32_t)sum;
}

// --- computing ---

struct strip {
    const uint8_t *a; // windows of the strip, one after the other
    size_t a_step;
    const int32_t *sums;
    size_t first, count; // first pixel, and number of pixels
};

static void multiply_strip(const struct product_task *task, const struct strip *strip,
                           const struct panel *panels, size_t panel_count)
{
    const struct product *product = task->product;
    const struct inf_q8_params *terms = &product->terms;
    size_t rows_max = product->gemms->rows_max;
    size_t calls = (strip->count + rows_max - 1) / rows_max;
    size_t pixel = 0;
    for (size_t i = 0; i < calls; i++) {
        size_t pixels = strip->count / calls + (i < strip->count % calls);
        const uint8_t *a[1] = {strip->a + pixel * strip->a_step};
        size_t y = (strip->first + pixel) * product->groups * product->outputs;
        struct inf_q8_gemm gemm = {.a = a,
                                   .a_step = strip->a_step,
                                   .sums = strip->sums != NULL ? strip->sums + pixel : NULL};
        for (size_t p = 0; p < panel_count; p++) {
            gemm.y = task->y + (y + panels[p].first) * terms->y_size;
            panels[p].gemm[pixels - 1](&panels[p].part, &gemm);
        }
        pixel += pixels;
    }
}

static void prepare_strip(const struct product_task *task, struct strip *strip, size_t group,
                          char *scratch)
{
    const struct product *product = task->product;
    uint8_t *windows = (uint8_t *)scratch;
    int32_t *sums = (int32_t *)(scratch + product->strip_pixels * 4 * product->quads);
    strip->a = task->x + strip->first * product->channels;
    strip->a_step = product->channels;
    if (!product->direct) {
        strip->a = windows;
        strip->a_step = 4 * product->quads;
        for (size_t i = 0; i < strip->count; i++)
            gather_window(product, task->x, group, strip->first + i, windows + i * strip->a_step);
    }
    if (!product->has_zeros)
        return;
    for (size_t i = 0; i < strip->count; i++)
        sums[i] = sum_bytes(strip->a + i * strip->a_step, product->depth);
    strip->sums = sums;
}

static void product_tile(const void *context, size_t tile, size_t worker)
{
    const struct product_task *task = context;
    const struct product *product = task->product;
    size_t part = tile % product->panel_parts;
    size_t index = tile / product->panel_parts;
    struct strip strip = {.first =
                              inf_native_strip_start(product->pixels, product->strips, index, 1)};
    strip.count =
        inf_native_strip_start(product->pixels, product->strips, index + 1, 1) - strip.first;
    size_t begin = product->panel_count * part / product->panel_parts;
    size_t end = product->panel_count * (part + 1) / product->panel_parts;
    for (size_t group = 0; group < product->groups; group++) {
        prepare_strip(task, &strip, group, product->scratch + worker * product->scratch_step);
        multiply_strip(task, &strip, product->panels + group * product->panel_count + begin,
                       end - begin);
    }
}

static void product_run(const struct inf_cpu_step *step)
{
    const struct product *product = step->state;
    struct product_task task = {product, step->inputs[0], step->output};
    struct inf_cpu_tiles work = {product_tile, &task, product->strips * product->panel_parts};
    inf_cpu_team_run_tiles(step->team, &work, product->workers);
}

// --- creating a step ---

// Chooses the size of strips and the number of threads.
static void choose_strips(struct product *product, struct inf_cpu_step *step)
{
    size_t macs = product->groups * product->depth * product->outputs / MACS_EACH + 1;
    product->workers = inf_native_choose_workers(step, product->pixels * macs);
    product->strips = inf_native_choose_strips(product->pixels, STRIP_PIXELS, product->workers);
    product->panel_parts = 1;
    // If there are too few pixels for all threads, the threads share the columns instead.
    size_t few = 4 * product->gemms->rows_max * product->workers;
    if (product->pixels < few && product->workers > 1) {
        product->strips = 1;
        product->panel_parts = INF_MIN(product->panel_count, product->workers);
    }
    product->strip_pixels = product->pixels / product->strips + 1;
}

static enum inf_code product_make(struct product *product, struct inf_cpu_step *step,
                                  struct packing *packing, struct inf_error *err)
{
    product->gemms = step->isa->q8->gemm;
    product->quads = (product->depth + 3) / 4;
    product->has_zeros = inf_q8_has_w_zeros(&product->terms);
    INF_TRY(pack_weights(product, step, packing, err));
    choose_strips(product, step);
    step->run = product_run;
    if (product->direct && !product->has_zeros)
        return INF_OK;
    void *scratch;
    product->scratch_step = (product->strip_pixels * 4 * (product->quads + 1) + 127) / 64 * 64;
    INF_TRY(inf_q8_alloc(&scratch, step, product->workers * product->scratch_step, err));
    product->scratch = scratch;
    return INF_OK;
}

// Returns true if the kernel can read 1x1 pixels in place, without copying. The pixels must be
// unsigned, and their size must be a multiple of four bytes, because the kernel reads four bytes at
// a time and nothing beyond the last pixel may be read.
static bool is_direct(const struct product *product)
{
    return product->groups == 1 && product->terms.flip == 0 && product->depth % 4 == 0;
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
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct product), err));
    struct product *product = step->state;
    inf_node_windows(step->graph, node, &product->height, &product->width);
    product->terms = inf_q8_params_of(step->graph, node);
    product->channels = (size_t)x->dims[3];
    product->groups = (size_t)node->attrs.qconv2d.groups;
    product->inputs = (size_t)filter->dims[2];
    product->outputs = (size_t)filter->dims[3] / product->groups;
    product->depth = (size_t)(filter->dims[0] * filter->dims[1]) * product->inputs;
    product->pixels = (size_t)(x->dims[0] * product->height.output * product->width.output);
    product->direct =
        is_direct(product) && is_pointwise(&product->height) && is_pointwise(&product->width);
    struct packing packing = {.w = step->graph->values[node->inputs[1]].data->data,
                              .w_step = (size_t)filter->dims[3],
                              .w_column = 1};
    step->kernel = product->direct ? "q8 1x1" : "q8 conv";
    return product_make(product, step, &packing, err);
}

static enum inf_code matmul_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    if (inf_shape_elements(b) != (size_t)(b->dims[b->rank - 1] * b->dims[b->rank - 2]))
        return inf_fail(err, INF_UNSUPPORTED, "cpu: qmatmul: more than one matrix b is not built");
    return inf_q8_params_check(graph, node, err);
}

// Creates the step for a qmatmul: the rows of matrix a become the pixels of an image that is one
// pixel high.
static enum inf_code matmul_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_shape *a = inf_cpu_input_shape(step->graph, node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, node);
    bool transposed = node->attrs.qmatmul.transpose_b;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct product), err));
    struct product *product = step->state;
    product->terms = inf_q8_params_of(step->graph, node);
    product->depth = (size_t)a->dims[a->rank - 1];
    product->channels = product->depth;
    product->inputs = product->depth;
    product->groups = 1;
    product->outputs = (size_t)y->dims[y->rank - 1];
    product->pixels = inf_shape_elements(y) / product->outputs;
    product->direct = is_direct(product);
    product->height =
        (struct inf_window){.input = 1, .output = 1, .kernel = 1, .stride = 1, .dilation = 1};
    product->width = product->height;
    product->width.input = product->width.output = (int64_t)product->pixels;
    struct packing packing = {.w = step->graph->values[node->inputs[1]].data->data,
                              .w_step = transposed ? 1 : product->outputs,
                              .w_column = transposed ? product->depth : 1};
    step->kernel = "q8 matmul";
    return product_make(product, step, &packing, err);
}

const struct inf_cpu_kernel inf_cpu_q8_product_kernels[] = {
    {INF_OP_QCONV2D, inf_q8_params_check, conv_create},
    {INF_OP_QMATMUL, matmul_supports, matmul_create},
    {0},
};
