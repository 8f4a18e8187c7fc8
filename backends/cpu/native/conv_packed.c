// SPDX-License-Identifier: Apache-2.0
// Convolutions as products of pixels and packed weights.
//
// The problem: a convolution is a matrix product if each pixel's window is written out as a row
// (im2col), but that copies every element of x once for each tap.
//
// The idea: a window of kernel_h x kernel_w pixels is kernel_h *segments*, and in NHWC each segment
// is contiguous in x: kernel_w * inputs elements. So the kernel gets one pointer for each segment,
// and pixel i reads at segment + i * stride * inputs. Nothing is copied, except at the edges
// (conv_window.c).
//
//     x, 3x3 window, stride 1:          operand of pixels p and p + 1:
//     row r-1  .. [a b c] d ..          segment 0:  p = a b c,  p + 1 = b c d
//     row r    .. [e f g] h ..          segment 1:  p = e f g,  p + 1 = f g h
//     row r+1  .. [i j k] l ..          segment 2:  p = i j k,  p + 1 = j k l
//
// A kernel call computes up to 12 pixels of one panel (core/pack.h) with all sums in registers.
// Pixels are taken in strips, so that their operands stay in the cache for all panels; a panel's
// weights stay in the cache for all calls of a strip. A product with a constant matrix is a
// convolution of 1x1 pixels.
#include "backends/cpu/native/conv_packed.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "backends/cpu/core/pack_narrow.h"
#include "backends/cpu/core/panel.h"
#include "backends/cpu/native/round_bf16.h"
#include "backends/cpu/native/work.h"
#include "backends/graph/shape/infer.h"

#define STRIP_PIXELS      ((size_t)48)
#define TILE_STRIP_PIXELS ((size_t)64) // a multiple of the pixels of a call, with tile registers
// Strips are longer if weights are expanded, because each strip expands them again.
#define EXPANDED_STRIP_PIXELS ((size_t)192)
// Packs of fewer bytes stay in fp32, so that they need not be expanded.
#define NARROW_WEIGHT_BYTES_MIN ((size_t)16 << 10)
// Limits for the choice of loops. Weights of more than FEW_WEIGHT_BYTES are evicted from the cache
// between steps and must be read from memory. Weights of more than CACHED_WEIGHT_BYTES do not stay
// in the cache during a step, so each strip of pixels reads them again. Strips are then made as
// long as CACHED_PIXEL_BYTES of operands allow.
#define FEW_WEIGHT_BYTES    ((size_t)32 << 10)
#define CACHED_WEIGHT_BYTES ((size_t)256 << 10)
#define CACHED_PIXEL_BYTES  ((size_t)256 << 10)
// Windows are copied (im2col) if the rows of the result have at most GATHERED_ROW_PIXELS pixels and
// the weights at least GATHERED_WEIGHT_BYTES_MIN bytes. Without copies, the kernel would read all
// weights again for each of these short rows.
#define GATHERED_ROW_PIXELS       ((size_t)8)
#define GATHERED_WEIGHT_BYTES_MIN ((size_t)1 << 20)

// --- checking which nodes packed convolutions can compute ---

bool inf_conv_packed_is_pointwise(const struct inf_graph *graph, const struct inf_node *node)
{
    struct inf_window h;
    struct inf_window w;
    inf_node_windows(graph, node, &h, &w);
    return h.kernel == 1 && w.kernel == 1 && h.stride == 1 && w.stride == 1 &&
           h.input == h.output && w.input == w.output && h.pad_before == 0 && w.pad_before == 0;
}

static struct inf_cpu_activation activation_of(const struct inf_node *node)
{
    const struct inf_attrs_conv2d *attrs = &node->attrs.conv2d;
    return (struct inf_cpu_activation){attrs->activation, attrs->activation_alpha,
                                       attrs->activation_min, attrs->activation_max};
}

// Check the ISA level last. The error then names the processor only if no change of the node would
// help.
static enum inf_code check_level(const char *op, struct inf_error *err)
{
    if (!inf_isa_best()->nn->fast)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: no kernel at level '%s' beats XNNPACK's",
                        op, inf_isa_best()->name);
    return INF_OK;
}

enum inf_code inf_conv_packed_check(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err)
{
    struct inf_window h;
    struct inf_window w;
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    const struct inf_shape *filter = inf_cpu_input_shape(graph, node, 1);
    size_t outputs = (size_t)filter->dims[3];
    inf_node_windows(graph, node, &h, &w);
    if (node->attrs.conv2d.groups != 1 || h.dilation != 1 || w.dilation != 1 ||
        h.kernel > INF_CONV_SEGMENTS_MAX || h.pad_before < 0 || w.pad_before < 0)
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: conv2d: windows of %" PRId32 "x%" PRId32 " are not built here",
                        h.kernel, w.kernel);
    INF_TRY(inf_cpu_need_const(graph, node, 1, inf_shape_elements(filter), err));
    INF_TRY(inf_cpu_need_const(graph, node, 2, outputs, err));
    struct inf_cpu_activation activation = activation_of(node);
    INF_TRY(inf_native_epilogue_check(graph, node, &activation, 3, outputs, err));
    return check_level("conv2d", err);
}

static struct inf_cpu_activation product_activation(const struct inf_node *node)
{
    const struct inf_attrs_matmul *attrs = &node->attrs.matmul;
    return (struct inf_cpu_activation){attrs->activation, attrs->activation_alpha,
                                       attrs->activation_min, attrs->activation_max};
}

// Sets *depth and *columns to the rows and columns of matrix b after its transposition, if the node
// transposes it.
static void describe_matrix(const struct inf_graph *graph, const struct inf_node *node,
                            size_t *depth, size_t *columns)
{
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    bool transposed = node->attrs.matmul.transpose_b;
    *depth = (size_t)b->dims[b->rank - (transposed ? 1 : 2)];
    *columns = (size_t)b->dims[b->rank - (transposed ? 2 : 1)];
}

enum inf_code inf_conv_packed_check_product(const struct inf_graph *graph,
                                            const struct inf_node *node, struct inf_error *err)
{
    const struct inf_shape *a = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    size_t depth;
    size_t columns;
    if (a->rank < 2 || b->rank < 2)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: matmul: ranks %d and %d are not built here",
                        (int)a->rank, (int)b->rank);
    describe_matrix(graph, node, &depth, &columns);
    // All matrices of a must be multiplied with the same matrix b.
    INF_TRY(inf_cpu_need_const(graph, node, 1, depth * columns, err));
    INF_TRY(inf_cpu_need_const(graph, node, 2, columns, err));
    bool vector = a->dims[a->rank - 1] == 1 || a->dims[a->rank - 2] == 1;
    if (node->attrs.matmul.transpose_a && !vector)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: matmul: a transposed is not built");
    struct inf_cpu_activation activation = product_activation(node);
    INF_TRY(inf_native_epilogue_check(graph, node, &activation, 3, columns, err));
    return check_level("matmul", err);
}

// --- packing the weights ---

// Makes all panels share one array of zeros as their biases. Each executable of a model has biases
// of its own, so zeros for every column would be in memory once for each shape class.
static enum inf_code share_zero_bias(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                     struct inf_error *err)
{
    size_t widest = 0;
    for (size_t p = 0; p < conv->panel_count; p++)
        widest = INF_MAX(widest, conv->panels[p].width);
    float *zeros;
    INF_TRY(inf_native_alloc_floats(&zeros, step, widest, err));
    for (size_t i = 0; i < widest; i++)
        zeros[i] = 0.0f;
    for (size_t p = 0; p < conv->panel_count; p++)
        conv->panels[p].part.bias = zeros;
    return INF_OK;
}

// Fills the arrays of biases and slopes with the values of one panel after the other. The values of
// each panel are padded to the width of the panel. Without a bias and without slopes, all panels
// share one array.
static enum inf_code fill_bias_and_slopes(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                          const float *bias, size_t width, struct inf_error *err)
{
    bool slopes = inf_native_epilogue_has_slopes(&conv->epilogue);
    if (bias == NULL && !slopes)
        return share_zero_bias(conv, step, err);
    float *at;
    INF_TRY(inf_native_alloc_floats(&at, step, width * (slopes ? 2 : 1), err));
    for (size_t p = 0; p < conv->panel_count; p++) {
        struct inf_conv_packed_panel *panel = &conv->panels[p];
        size_t columns = panel->part.columns;
        struct inf_native_epilogue part = conv->epilogue;
        panel->part.bias = at;
        for (size_t i = 0; i < panel->width; i++)
            *at++ = i < columns && bias != NULL ? bias[panel->first + i] : 0.0f;
        if (!slopes)
            continue;
        if (part.slopes != NULL)
            part.slopes += panel->first;
        panel->part.slopes = at;
        inf_native_epilogue_fill_slopes(&part, columns, panel->width, at);
        at += panel->width;
    }
    return INF_OK;
}

static bool in_bf16(const struct inf_cpu_step *step, const struct inf_node *node)
{
    return step->bf16 && !(step->pinned != NULL && step->pinned[node - step->graph->nodes]);
}

// Kernels for panels of whole vectors, and for those of half vectors.
struct kernels {
    const struct inf_nn_gemm *whole, *half;
};

static struct kernels choose_kernels(const struct inf_conv_packed *conv,
                                     const struct inf_cpu_step *step, bool bf16)
{
    const struct inf_nn *nn = step->isa->nn;
    bool few = conv->batch * conv->rows * conv->row_pixels <= INF_TILE_FEW_PIXELS;
    if (!bf16)
        return (struct kernels){nn->gemm, nn->gemm_half};
    if (nn->gemm_tile != NULL && conv->depth % 2 == 0 && inf_tile_depth(conv->depth / 2) > 0 &&
        !few)
        return (struct kernels){nn->gemm_tile, nn->gemm_tile_half};
    if (step->bf16_dot)
        return (struct kernels){nn->gemm_dot, nn->gemm_dot_half};
    return (struct kernels){nn->gemm_bf16, nn->gemm_bf16_half};
}

// Packs operand 1 of the node (the weights), which is stored as [columns][rows] if `transposed`.
// `bias` has one value for each output of a group. If it is NULL, all biases are 0.
static enum inf_code pack_weights(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                  const struct inf_node *node, bool transposed, const float *bias,
                                  struct inf_error *err)
{
    const struct inf_nn *nn = step->isa->nn;
    size_t width;
    const void *packed;
    bool bf16 = in_bf16(step, node);
    step->lowered_nodes += bf16;
    struct kernels kernels = choose_kernels(conv, step, bf16);
    conv->shares_prefetch = kernels.whole->shares_prefetch;
    conv->rows_max = kernels.whole->rows_max;
    conv->round = kernels.whole->round;
    conv->begin = kernels.whole->begin;
    conv->end = kernels.whole->end;
    conv->tile_depth = conv->begin != NULL ? inf_tile_depth(conv->depth / 2) : 0;
    conv->copy_step = conv->pointwise && conv->begin != NULL
                          ? inf_round_bf16_padded_step(conv->a_step)
                          : conv->a_step;
    conv->packed_depth = bf16 ? (conv->depth + 1) / 2 : conv->depth;
    size_t rows = conv->segments * conv->packed_depth; // rows of the packed matrix
    size_t columns = conv->groups * conv->outputs;
    size_t count = inf_cpu_panel_count(nn, conv->outputs, &width) * conv->groups;
    conv->panels = inf_arena_alloc(step->arena, count * sizeof(*conv->panels));
    if (conv->panels == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its panels", node->name);
    struct inf_cpu_matrix matrix = {.rows = conv->segments * conv->depth,
                                    .columns = columns,
                                    .transposed = transposed,
                                    .paired = bf16 ? conv->depth : 0,
                                    .group = conv->groups > 1 ? conv->outputs : 0};
    matrix.narrow =
        !bf16 && matrix.rows * matrix.columns * sizeof(float) >= NARROW_WEIGHT_BYTES_MIN;
    INF_TRY(inf_cpu_step_pack(step, node, 1, matrix, &packed, err));
    conv->element = inf_cpu_step_pack_element(step);
    conv->expand = nn->expand;
    const char *w = packed;
    for (size_t column = 0; column < columns;) {
        size_t first = column % conv->outputs;
        struct inf_cpu_panel cut = inf_cpu_panel_at(nn, first, conv->outputs);
        struct inf_conv_packed_panel *panel = &conv->panels[conv->panel_count++];
        const struct inf_nn_gemm *gemm = cut.gemm == nn->gemm ? kernels.whole : kernels.half;
        panel->gemm = gemm->gemm[cut.vectors - 1];
        panel->first = first;
        panel->width = cut.width;
        panel->weight_bytes = inf_cpu_narrow_panel_bytes(conv->element, rows, cut.width);
        panel->part = (struct inf_gemm_panel){.segments = conv->segments,
                                              .depth = conv->depth,
                                              .w = (const float *)w,
                                              .residual_step = conv->residual_channels,
                                              .min = conv->epilogue.min,
                                              .max = conv->epilogue.max,
                                              .y_step = conv->outputs,
                                              .columns = cut.columns,
                                              .tile_depth = conv->tile_depth};
        if (conv->residual_channels > first)
            panel->part.residual_columns = INF_MIN(conv->residual_channels - first, cut.columns);
        if (conv->element != INF_CPU_ELEMENT_F32)
            conv->expanded_count = INF_MAX(conv->expanded_count, rows * cut.width);
        w += panel->weight_bytes;
        column += cut.columns;
    }
    return fill_bias_and_slopes(conv, step, bias, width * conv->groups, err);
}

// --- creating a convolution ---

static void describe_conv(struct inf_conv_packed *conv, const struct inf_graph *graph,
                          const struct inf_node *node)
{
    const struct inf_shape *filter = inf_cpu_input_shape(graph, node, 1);
    inf_node_windows(graph, node, &conv->height, &conv->width);
    conv->inputs = (size_t)filter->dims[2];
    conv->outputs = (size_t)filter->dims[3];
    conv->segments = (size_t)filter->dims[0];
    conv->depth = (size_t)filter->dims[1] * conv->inputs;
    conv->batch = (size_t)inf_cpu_input_shape(graph, node, 0)->dims[0];
    conv->pointwise = inf_conv_packed_is_pointwise(graph, node);
    conv->a_step = (size_t)conv->width.stride * conv->inputs;
    conv->rows = (size_t)conv->height.output;
    conv->row_pixels = (size_t)conv->width.output;
    size_t weight_bytes = conv->segments * conv->depth * conv->outputs * sizeof(float);
    conv->gathers = !conv->has_depthwise && !conv->pointwise && conv->rows > 1 &&
                    conv->row_pixels <= GATHERED_ROW_PIXELS &&
                    weight_bytes >= GATHERED_WEIGHT_BYTES_MIN;
    if (conv->gathers) {
        conv->pointwise = true;
        conv->depth *= conv->segments;
        conv->segments = 1;
        conv->a_step = conv->depth;
    }
    conv->many_weights = weight_bytes > FEW_WEIGHT_BYTES;
}

enum inf_code inf_conv_packed_init(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                   const struct inf_cpu_chain *chain, struct inf_error *err)
{
    const struct inf_graph *graph = step->graph;
    const struct inf_node *node = &graph->nodes[chain->conv];
    *conv =
        (struct inf_conv_packed){.has_depthwise = chain->depthwise != INF_NODE_NONE, .groups = 1};
    if (conv->has_depthwise)
        INF_TRY(inf_native_depthwise_init(&conv->depthwise, step, &graph->nodes[chain->depthwise],
                                          err));
    describe_conv(conv, graph, node);
    conv->epilogue = inf_native_epilogue_of_chain(step, chain, &conv->residual_channels);
    return pack_weights(conv, step, node, false, inf_cpu_const_f32(graph, node, 2), err);
}

// Describes products with operand 1 of the step's node, and packs the operand.
static enum inf_code init_matrix(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                 const struct inf_conv_packed_matrix *matrix,
                                 const struct inf_native_epilogue *epilogue, struct inf_error *err)
{
    *conv = (struct inf_conv_packed){.pointwise = true,
                                     .batch = 1,
                                     .segments = 1,
                                     .rows = 1,
                                     .row_pixels = matrix->pixels,
                                     .inputs = matrix->depth,
                                     .outputs = matrix->columns,
                                     .groups = matrix->groups,
                                     .depth = matrix->depth,
                                     .a_step = matrix->depth,
                                     .epilogue = *epilogue};
    conv->many_weights =
        conv->depth * conv->groups * conv->outputs * sizeof(float) > FEW_WEIGHT_BYTES;
    return pack_weights(conv, step, step->node, matrix->transposed, matrix->bias, err);
}

enum inf_code inf_conv_packed_init_matrix(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                          const struct inf_conv_packed_matrix *matrix,
                                          struct inf_error *err)
{
    const struct inf_native_epilogue none = {.slope = NAN, .min = -INFINITY, .max = INFINITY};
    return init_matrix(conv, step, matrix, &none, err);
}

enum inf_code inf_conv_packed_init_product(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                           struct inf_error *err)
{
    const struct inf_graph *graph = step->graph;
    const struct inf_node *node = step->node;
    struct inf_cpu_activation activation = product_activation(node);
    struct inf_native_epilogue epilogue = inf_native_epilogue_of(step, node, &activation, 3);
    struct inf_conv_packed_matrix matrix = {.groups = 1,
                                            .transposed = node->attrs.matmul.transpose_b,
                                            .bias = inf_cpu_const_f32(graph, node, 2)};
    describe_matrix(graph, node, &matrix.depth, &matrix.columns);
    matrix.pixels = inf_shape_elements(inf_cpu_input_shape(graph, node, 0)) / matrix.depth;
    return init_matrix(conv, step, &matrix, &epilogue, err);
}

// --- strip sizes, and estimates of the multiply-adds ---

size_t inf_conv_packed_strip_pixels(const struct inf_conv_packed *conv)
{
    size_t pixel_bytes = conv->segments * conv->depth * sizeof(float);
    size_t least = conv->begin != NULL ? TILE_STRIP_PIXELS : STRIP_PIXELS;
    if (conv->expanded_count > 0)
        least = EXPANDED_STRIP_PIXELS;
    if (pixel_bytes * conv->outputs <= CACHED_WEIGHT_BYTES)
        return least;
    size_t unit = inf_conv_packed_strip_unit(conv);
    return INF_MAX(CACHED_PIXEL_BYTES / pixel_bytes / unit * unit, least);
}

size_t inf_conv_packed_strip_unit(const struct inf_conv_packed *conv)
{
    return conv->begin != NULL ? INF_TILE_ROWS : 1;
}

size_t inf_conv_packed_scratch(const struct inf_conv_packed *conv, size_t count)
{
    return conv->expanded_count > 0 ? (conv->expanded_count + 15) / 16 * 16
                                    : inf_round_bf16_scratch(conv, count);
}

float *inf_conv_packed_scratch_at(const struct inf_conv_packed *conv, float *scratch, size_t offset)
{
    return conv->expanded_count > 0 || conv->round != NULL ? scratch + offset : NULL;
}

size_t inf_conv_packed_row_macs(const struct inf_conv_packed *conv)
{
    const struct inf_window *height = &conv->depthwise.height;
    size_t macs = conv->segments * conv->depth * conv->outputs;
    if (conv->has_depthwise)
        macs += (size_t)(height->kernel * height->kernel) * conv->inputs;
    return macs * conv->row_pixels;
}

const struct inf_window *inf_conv_packed_height(const struct inf_conv_packed *conv)
{
    return conv->has_depthwise ? &conv->depthwise.height : &conv->height;
}

// --- computing pixels ---

// Returns the number of bytes between two addresses that the kernel prefetches. `calls` is the
// number of kernel calls for the panel. If the weights are so few that they stay in the cache, the
// calls for one panel do not follow each other: all panels are computed for some pixels, then all
// panels for the next pixels.
static size_t choose_prefetch_step(const struct inf_conv_packed *conv,
                                   const struct inf_conv_packed_panel *panel, size_t calls)
{
    if (!conv->shares_prefetch || !conv->many_weights)
        return INF_GEMM_PREFETCH_BYTES;
    return inf_gemm_prefetch_step(panel->width * sizeof(float), panel->weight_bytes, calls);
}

// Returns the address that the kernel prefetches during a call: a part of the next panel's weights,
// or its own weights if there is no next panel.
static const void *choose_prefetch(const struct inf_conv_packed *conv, size_t panel,
                                   size_t panel_end, size_t call, size_t step)
{
    const struct inf_conv_packed_panel *next = &conv->panels[panel + 1];
    size_t each = conv->segments * conv->packed_depth * step;
    if (panel + 1 >= panel_end || call * each >= next->weight_bytes)
        return conv->panels[panel].part.w;
    return (const char *)next->part.w + call * each;
}

// Applies the activation function of the epilogue to the columns that this call computed. Other
// columns are left alone, because other threads may be writing them.
static void map_columns(const struct inf_conv_packed *conv, const struct inf_conv_packed_run *run,
                        size_t panel_first, size_t panel_end)
{
    size_t first = conv->panels[panel_first].first;
    size_t end = panel_end < conv->panel_count ? conv->panels[panel_end].first : conv->outputs;
    float *y = run->y + first;
    if (end - first == conv->outputs) {
        conv->epilogue.map(run->count * conv->outputs, y, y);
        return;
    }
    for (size_t pixel = 0; pixel < run->count; pixel++, y += conv->outputs)
        conv->epilogue.map(end - first, y, y);
}

// Computes the pixels of a kernel call for one panel, whose weights are the floats at `w`.
static void call_kernel(const struct inf_conv_packed_panel *panel, const float *w,
                        const struct inf_gemm *gemm)
{
    struct inf_gemm_panel part = panel->part;
    part.w = w;
    panel->gemm[gemm->pixels - 1](&part, gemm);
}

void inf_conv_packed_compute(const struct inf_conv_packed *conv,
                             const struct inf_conv_packed_run *run, size_t panel_first,
                             size_t panel_end)
{
    size_t calls = (run->count + conv->rows_max - 1) / conv->rows_max;
    // Pixels are shared equally among the calls. With tile registers, all calls but the last one
    // get as many as the registers hold, because fewer take as long.
    size_t least = conv->begin != NULL ? conv->rows_max : run->count / calls;
    size_t larger = conv->begin != NULL ? 0 : run->count % calls;
    // Many weights are read from memory once, so all pixels are computed for each panel. Few
    // weights stay in the cache, so all panels are computed for each pixel and results are written
    // in order.
    bool expands = conv->expanded_count > 0;
    size_t step = conv->many_weights || expands ? 1 : panel_end - panel_first;
    const uint16_t *rounded[INF_CONV_SEGMENTS_MAX];
    if (conv->round != NULL)
        inf_round_bf16_run(conv, run, rounded);
    if (conv->begin != NULL)
        conv->begin(conv->tile_depth);
    for (size_t first = panel_first; first < panel_end; first += step) {
        struct inf_gemm gemm = {.a = run->a, .rounded = rounded, .a_step = conv->copy_step};
        size_t at = 0;
        if (expands)
            inf_cpu_narrow_expand_panel(
                conv->expand, conv->element, conv->segments * conv->packed_depth,
                conv->panels[first].width, conv->panels[first].part.w, run->scratch);
        for (size_t i = 0; i < calls; i++) {
            size_t pixels = INF_MIN(least + (i < larger), run->count - at);
            gemm.pixels = pixels;
            for (size_t p = first; p < first + step; p++) {
                const struct inf_conv_packed_panel *panel = &conv->panels[p];
                gemm.prefetch_step = choose_prefetch_step(conv, panel, calls);
                gemm.prefetch = choose_prefetch(conv, p, panel_end, i, gemm.prefetch_step);
                gemm.y = run->y + at * conv->outputs + panel->first;
                gemm.residual = panel->part.residual_columns > 0
                                    ? run->residual + at * conv->residual_channels + panel->first
                                    : NULL;
                if (expands)
                    call_kernel(panel, run->scratch, &gemm);
                else
                    panel->gemm[pixels - 1](&panel->part, &gemm);
            }
            gemm.a_first += pixels * conv->copy_step;
            at += pixels;
        }
    }
    if (conv->end != NULL)
        conv->end();
    if (conv->epilogue.map != NULL)
        map_columns(conv, run, panel_first, panel_end);
}

void inf_conv_packed_set_target(const struct inf_conv_packed *conv,
                                const struct inf_conv_packed_io *io, size_t row,
                                struct inf_conv_packed_run *run)
{
    run->y = io->y + row % io->y_rows * conv->row_pixels * conv->outputs;
    if (conv->residual_channels > 0)
        run->residual =
            io->residual + row % io->residual_rows * conv->row_pixels * conv->residual_channels;
}
