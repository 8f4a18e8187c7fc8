// SPDX-License-Identifier: Apache-2.0
// A convolution is a product of pixels and weights: a pixel's operand is its window, `segments` rows
// of neighbouring numbers. Tiles are strips of pixels (of rows where windows are larger than a pixel
// or a depthwise convolution comes before), so that what lies between the nodes of a chain stays in
// the caches of the core that made it. A product with a constant matrix is a convolution of pixels too.
#include "backends/cpu/own_conv.h"

#include <inttypes.h>
#include <string.h>

#include "backends/cpu/own_depthwise.h"

#define STRIP_PIXELS 48 // of a good strip: more only need more cache
// Weights that do not lie near whatever is done come from afar for each strip: then strips are long, but
// their pixels must stay near.
#define FEW_WEIGHT_BYTES  ((size_t)32 << 10)
#define NEAR_WEIGHT_BYTES ((size_t)256 << 10)
#define NEAR_PIXEL_BYTES  ((size_t)256 << 10)
#define SEGMENTS_MAX      16

// Columns of the result that are computed together.
struct panel {
    inf_gemm_fn *const *gemm; // by pixels - 1
    struct inf_gemm_panel part;
    size_t first, width; // columns
    size_t weight_bytes;
};

struct conv {
    struct inf_own_depthwise depthwise;
    bool has_depthwise, by_rows;
    struct inf_window height, width;
    size_t batch, inputs, outputs; // channels of the product
    size_t segments, depth;
    size_t rows, row_pixels; // of results in an image; of all images are one row where !by_rows
    size_t rows_max;         // pixels of one call
    struct panel *panels;
    size_t panel_count, panel_groups;
    bool many_weights; // more than stay near while other things are done
    struct inf_own_end end;
    size_t residual_channels; // 0: nothing is added
    size_t strips, workers;
    size_t scratch_step; // of each worker
};

struct conv_task {
    const struct conv *conv;
    const float *x, *residual;
    float *y, *scratch;
};

// Pixels that lie in a row, and where their operands are.
struct run {
    const float *a[SEGMENTS_MAX];
    size_t a_step;
    size_t first, count; // pixels of y, from the first of all images
};

// --- what is accepted ---

bool inf_own_conv_is_pointwise(const struct inf_graph *graph, const struct inf_node *node)
{
    struct inf_window h;
    struct inf_window w;
    inf_node_windows(graph, node, &h, &w);
    return h.kernel == 1 && w.kernel == 1 && h.stride == 1 && w.stride == 1 &&
           h.input == h.output && w.input == w.output && h.pad_before == 0 && w.pad_before == 0;
}

static struct inf_xnn_activation activation_of(const struct inf_node *node)
{
    const struct inf_attrs_conv2d *attrs = &node->attrs.conv2d;
    return (struct inf_xnn_activation){attrs->activation, attrs->activation_alpha,
                                       attrs->activation_min, attrs->activation_max};
}

enum inf_code inf_own_conv_check(const struct inf_graph *graph, const struct inf_node *node,
                                 struct inf_error *err)
{
    struct inf_window h;
    struct inf_window w;
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    const struct inf_shape *filter = inf_cpu_input_shape(graph, node, 1);
    size_t outputs = (size_t)filter->dims[3];
    inf_node_windows(graph, node, &h, &w);
    if (!inf_nn_best()->fast || node->attrs.conv2d.groups != 1 || h.dilation != 1 ||
        w.dilation != 1 || h.kernel > SEGMENTS_MAX || h.pad_before < 0 || w.pad_before < 0)
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: conv2d: windows of %" PRId32 "x%" PRId32 " are not built here",
                        h.kernel, w.kernel);
    INF_TRY(inf_cpu_need_const(graph, node, 1, inf_shape_elements(filter), err));
    INF_TRY(inf_cpu_need_const(graph, node, 2, outputs, err));
    struct inf_xnn_activation activation = activation_of(node);
    return inf_own_end_check(graph, node, &activation, 3, outputs, err);
}

// --- packing ---

// Bias and slopes of all panels, filled up: one behind the other.
static enum inf_code spread_ends(struct conv *conv, struct inf_cpu_step *step, const float *bias,
                                 size_t width, struct inf_error *err)
{
    bool slopes = inf_own_end_has_slopes(&conv->end);
    float *at;
    INF_TRY(inf_own_alloc(&at, step, width * (slopes ? 2 : 1), err));
    for (size_t p = 0; p < conv->panel_count; p++) {
        struct panel *panel = &conv->panels[p];
        size_t columns = panel->part.columns;
        struct inf_own_end part = conv->end;
        panel->part.bias = at;
        for (size_t i = 0; i < panel->width; i++)
            *at++ = i < columns && bias != NULL ? bias[panel->first + i] : 0.0f;
        if (!slopes)
            continue;
        if (part.slopes != NULL)
            part.slopes += panel->first;
        panel->part.slopes = at;
        inf_own_end_slopes(&part, columns, panel->width, at);
        at += panel->width;
    }
    return INF_OK;
}

// Packs operand 1 of the node, which `transposed` says is [outputs][rows], with operand 2 as bias.
static enum inf_code pack(struct conv *conv, struct inf_cpu_step *step, const struct inf_node *node,
                          bool transposed, struct inf_error *err)
{
    const struct inf_nn *nn = inf_nn_best();
    size_t rows = conv->segments * conv->depth;
    size_t width;
    const float *w;
    size_t count = inf_cpu_panel_count(nn, conv->outputs, &width);
    conv->panels = inf_arena_alloc(step->arena, count * sizeof(*conv->panels));
    if (conv->panels == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its panels", node->name);
    struct inf_cpu_matrix matrix = {
        .rows = rows, .columns = conv->outputs, .transposed = transposed};
    INF_TRY(inf_cpu_step_pack(step, node, 1, matrix, &w, err));
    for (size_t first = 0; first < conv->outputs;) {
        struct inf_cpu_panel cut = inf_cpu_panel_at(nn, first, conv->outputs);
        struct panel *panel = &conv->panels[conv->panel_count++];
        panel->gemm = cut.gemm->gemm[cut.vectors - 1];
        panel->first = first;
        panel->width = cut.width;
        panel->weight_bytes = rows * cut.width * sizeof(float);
        panel->part = (struct inf_gemm_panel){.segments = conv->segments,
                                              .depth = conv->depth,
                                              .w = w,
                                              .residual_step = conv->residual_channels,
                                              .min = conv->end.min,
                                              .max = conv->end.max,
                                              .y_step = conv->outputs,
                                              .columns = cut.columns};
        if (conv->residual_channels > first)
            panel->part.residual_columns = INF_MIN(conv->residual_channels - first, cut.columns);
        w += rows * cut.width;
        first += cut.columns;
    }
    return spread_ends(conv, step, inf_cpu_const_f32(step->graph, node, 2), width, err);
}

// --- computing ---

// Maps what the panels computed, and nothing else: others may be at work beside them.
static void map_columns(const struct conv_task *task, const struct run *run, size_t panel_first,
                        size_t panel_end)
{
    const struct conv *conv = task->conv;
    size_t first = conv->panels[panel_first].first;
    size_t end = panel_end < conv->panel_count ? conv->panels[panel_end].first : conv->outputs;
    float *y = task->y + run->first * conv->outputs + first;
    if (end - first == conv->outputs) {
        conv->end.map(run->count * conv->outputs, y, y);
        return;
    }
    for (size_t pixel = 0; pixel < run->count; pixel++, y += conv->outputs)
        conv->end.map(end - first, y, y);
}

// What the kernel brings nearer on the way: a part of the next panel's weights, or what it reads anyway.
static const void *weights_ahead(const struct conv *conv, size_t panel, size_t panel_end,
                                 size_t call)
{
    const struct panel *next = &conv->panels[panel + 1];
    size_t each = conv->segments * conv->depth * INF_GEMM_AHEAD_BYTES;
    if (panel + 1 >= panel_end || (call + 1) * each > next->weight_bytes)
        return conv->panels[panel].part.w;
    return (const char *)next->part.w + call * each;
}

static void multiply(const struct conv_task *task, const struct run *run, size_t panel_first,
                     size_t panel_end)
{
    const struct conv *conv = task->conv;
    size_t calls = (run->count + conv->rows_max - 1) / conv->rows_max;
    size_t least = run->count / calls;
    size_t larger = run->count % calls;
    // Many weights come from afar once; few stay where they are, and then results are written in order.
    size_t step = conv->many_weights ? 1 : panel_end - panel_first;
    for (size_t first = panel_first; first < panel_end; first += step) {
        struct inf_gemm gemm = {.a = run->a, .a_step = run->a_step};
        size_t at = run->first;
        for (size_t i = 0; i < calls; i++) {
            size_t pixels = least + (i < larger);
            for (size_t p = first; p < first + step; p++) {
                const struct panel *panel = &conv->panels[p];
                gemm.ahead = weights_ahead(conv, p, panel_end, i);
                gemm.y = task->y + at * conv->outputs + panel->first;
                gemm.residual = panel->part.residual_columns > 0
                                    ? task->residual + at * conv->residual_channels + panel->first
                                    : NULL;
                panel->gemm[pixels - 1](&panel->part, &gemm);
            }
            gemm.a_first += pixels * run->a_step;
            at += pixels;
        }
    }
    if (conv->end.map != NULL)
        map_columns(task, run, panel_first, panel_end);
}

static void pixels_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct conv_task *task = context;
    const struct conv *conv = task->conv;
    size_t group = tile % conv->panel_groups;
    size_t strip = tile / conv->panel_groups;
    size_t first = inf_own_cut(conv->row_pixels, conv->strips, strip, 1);
    size_t end = inf_own_cut(conv->row_pixels, conv->strips, strip + 1, 1);
    struct run run = {{task->x + first * conv->inputs}, conv->inputs, first, end - first};
    multiply(task, &run, conv->panel_count * group / conv->panel_groups,
             conv->panel_count * (group + 1) / conv->panel_groups);
}

static void depthwise_tile(const void *context, size_t tile, size_t worker)
{
    const struct conv_task *task = context;
    const struct conv *conv = task->conv;
    const struct inf_own_depthwise *depthwise = &conv->depthwise;
    size_t image = tile / conv->strips;
    size_t strip = tile % conv->strips;
    size_t first = inf_own_cut(conv->rows, conv->strips, strip, depthwise->rows_max);
    size_t end = inf_own_cut(conv->rows, conv->strips, strip + 1, depthwise->rows_max);
    size_t input = (size_t)(depthwise->height.input * depthwise->width.input) * conv->inputs;
    float *between = task->scratch + worker * conv->scratch_step;
    if (first == end)
        return;
    inf_own_depthwise_rows(depthwise, task->x + image * input, first, end, between);
    struct run run = {{between},
                      conv->inputs,
                      (image * conv->rows + first) * conv->row_pixels,
                      (end - first) * conv->row_pixels};
    multiply(task, &run, 0, conv->panel_count);
}

// A row of x with what pads it, in scratch.
static const float *padded_row(const struct conv *conv, const float *row, float *to)
{
    size_t before = (size_t)conv->width.pad_before * conv->inputs;
    size_t size = (size_t)conv->width.input * conv->inputs;
    size_t after = (size_t)conv->width.pad_after * conv->inputs;
    memset(to, 0, before * sizeof(float));
    memcpy(to + before, row, size * sizeof(float));
    memset(to + before + size, 0, after * sizeof(float));
    return to;
}

static void rows_tile(const void *context, size_t tile, size_t worker)
{
    const struct conv_task *task = context;
    const struct conv *conv = task->conv;
    const struct inf_window *h = &conv->height;
    size_t image = tile / conv->strips;
    size_t strip = tile % conv->strips;
    size_t end = inf_own_cut(conv->rows, conv->strips, strip + 1, 1);
    size_t row_size = (size_t)conv->width.input * conv->inputs;
    size_t padded_size =
        row_size + (size_t)(conv->width.pad_before + conv->width.pad_after) * conv->inputs;
    const float *x = task->x + image * (size_t)h->input * row_size;
    bool pads = padded_size > row_size;
    int64_t padded = INT64_MIN; // rows of x below it are in scratch
    struct run run = {.a_step = (size_t)conv->width.stride * conv->inputs,
                      .count = conv->row_pixels};
    for (size_t row = inf_own_cut(conv->rows, conv->strips, strip, 1); row < end; row++) {
        for (int32_t k = 0; k < h->kernel; k++) {
            int64_t input = (int64_t)row * h->stride - h->pad_before + k;
            run.a[k] = NULL;
            if (input < 0 || input >= h->input)
                continue;
            run.a[k] = x + (size_t)input * row_size;
            if (!pads)
                continue;
            float *to = task->scratch + worker * conv->scratch_step +
                        (size_t)(input % h->kernel) * padded_size;
            run.a[k] = input < padded ? to : padded_row(conv, run.a[k], to);
            padded = INF_MAX(padded, input + 1);
        }
        run.first = (image * conv->rows + row) * conv->row_pixels;
        multiply(task, &run, 0, conv->panel_count);
    }
}

static void conv_run(const struct inf_cpu_step *step)
{
    const struct conv *conv = step->state;
    struct conv_task task = {conv, step->inputs[0],
                             conv->residual_channels > 0 ? step->inputs[1] : NULL, step->output,
                             step->scratch};
    struct inf_own_work work = {.context = &task, .tiles = conv->batch * conv->strips};
    if (conv->has_depthwise) {
        work.tile = depthwise_tile;
    } else if (conv->by_rows) {
        work.tile = rows_tile;
    } else {
        work.tile = pixels_tile;
        work.tiles = conv->strips * conv->panel_groups;
    }
    inf_own_work(step->pool, &work, conv->workers);
}

// --- making ---

static void describe(struct conv *conv, const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_shape *filter = inf_cpu_input_shape(graph, node, 1);
    inf_node_windows(graph, node, &conv->height, &conv->width);
    conv->inputs = (size_t)filter->dims[2];
    conv->outputs = (size_t)filter->dims[3];
    conv->segments = (size_t)filter->dims[0];
    conv->depth = (size_t)filter->dims[1] * conv->inputs;
    conv->batch = (size_t)inf_cpu_input_shape(graph, node, 0)->dims[0];
    conv->by_rows = conv->has_depthwise || !inf_own_conv_is_pointwise(graph, node);
    conv->rows = (size_t)conv->height.output;
    conv->row_pixels = (size_t)conv->width.output;
    if (!conv->by_rows) {
        conv->row_pixels *= conv->rows * conv->batch;
        conv->rows = 1;
        conv->batch = 1;
    }
    conv->rows_max = inf_nn_best()->gemm->rows_max;
}

// Pixels of a good strip.
static size_t strip_pixels(const struct conv *conv)
{
    size_t pixel_bytes = conv->segments * conv->depth * sizeof(float);
    if (pixel_bytes * conv->outputs <= NEAR_WEIGHT_BYTES)
        return STRIP_PIXELS;
    return INF_MAX(NEAR_PIXEL_BYTES / pixel_bytes, (size_t)STRIP_PIXELS);
}

// Chooses strips and threads.
static void share(struct conv *conv, const struct inf_cpu_step *step)
{
    size_t pixel_macs = conv->segments * conv->depth * conv->outputs;
    size_t pixels = conv->batch * conv->rows * conv->row_pixels;
    conv->workers = inf_own_workers(step, pixels * pixel_macs);
    conv->panel_groups = 1;
    conv->many_weights = pixel_macs * sizeof(float) > FEW_WEIGHT_BYTES;
    if (conv->by_rows) {
        size_t wanted = (strip_pixels(conv) + conv->row_pixels - 1) / conv->row_pixels;
        conv->strips = inf_own_strips(conv->rows, wanted, conv->workers);
        return;
    }
    conv->strips = inf_own_strips(conv->row_pixels, strip_pixels(conv), conv->workers);
    // Few pixels: threads share the columns.
    if (conv->row_pixels < 4 * conv->rows_max * conv->workers && conv->workers > 1) {
        conv->strips = 1;
        conv->panel_groups = INF_MIN(conv->panel_count, conv->workers);
    }
}

static void need_scratch(struct conv *conv, struct inf_cpu_step *step)
{
    if (conv->has_depthwise) {
        size_t rows = conv->rows / conv->strips + 1 + conv->depthwise.rows_max;
        conv->scratch_step = rows * conv->row_pixels * conv->inputs;
    } else if (conv->by_rows && (conv->width.pad_before > 0 || conv->width.pad_after > 0)) {
        size_t pixels =
            (size_t)(conv->width.input + conv->width.pad_before + conv->width.pad_after);
        conv->scratch_step = conv->segments * pixels * conv->inputs;
    }
    if (conv->scratch_step == 0)
        return;
    conv->scratch_step = (conv->scratch_step + 31) / 16 * 16; // workers share no cache line
    inf_own_scratch(step, conv->scratch_step * conv->workers);
}

// What comes after the product.
static void describe_end(struct conv *conv, const struct inf_graph *graph,
                         const struct inf_cpu_chain *chain)
{
    const struct inf_node *node = &graph->nodes[chain->conv];
    struct inf_xnn_activation activation = activation_of(node);
    if (chain->add != INF_NODE_NONE) {
        const struct inf_shape *added = &graph->values[chain->residual].shape;
        const struct inf_attrs_binary *attrs = &graph->nodes[chain->add].attrs.binary;
        conv->residual_channels = (size_t)added->dims[added->rank - 1];
        activation = (struct inf_xnn_activation){
            .kind = attrs->activation, .min = attrs->activation_min, .max = attrs->activation_max};
    }
    conv->end = inf_own_end_of(graph, node, &activation, 3);
    if (chain->prelu != INF_NODE_NONE)
        conv->end.slopes = inf_cpu_const_f32(graph, &graph->nodes[chain->prelu], 1);
}

static const char *name_of(const struct conv *conv, const struct inf_cpu_chain *chain)
{
    bool add = chain->add != INF_NODE_NONE;
    if (conv->has_depthwise)
        return add ? "depthwise+1x1+add" : "depthwise+1x1";
    if (conv->by_rows)
        return add ? "conv+add" : "conv";
    return add ? "1x1+add" : "1x1";
}

enum inf_code inf_own_chain_create(struct inf_cpu_step *step, const struct inf_cpu_chain *chain,
                                   struct inf_error *err)
{
    const struct inf_graph *graph = step->graph;
    const struct inf_node *node = &graph->nodes[chain->conv];
    const struct inf_node *first = node;
    INF_TRY(inf_cpu_state(step, sizeof(struct conv), err));
    struct conv *conv = step->state;
    if (chain->depthwise != INF_NODE_NONE) {
        first = &graph->nodes[chain->depthwise];
        conv->has_depthwise = true;
        INF_TRY(inf_own_depthwise_init(&conv->depthwise, step, first, err));
    }
    describe(conv, graph, node);
    describe_end(conv, graph, chain);
    INF_TRY(pack(conv, step, node, false, err));
    share(conv, step);
    need_scratch(conv, step);
    uint32_t *operands = inf_arena_alloc(step->arena, 2 * sizeof(*operands));
    if (operands == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its operands", node->name);
    operands[0] = first->inputs[0];
    operands[1] = chain->residual;
    step->operands = operands;
    step->operand_count = chain->residual != INF_VALUE_NONE ? 2 : 1;
    step->run = conv_run;
    step->kernel = name_of(conv, chain);
    return INF_OK;
}

static enum inf_code conv_create(struct inf_cpu_step *step, struct inf_error *err)
{
    struct inf_cpu_chain chain = {INF_NODE_NONE, step->index,    INF_NODE_NONE,
                                  INF_NODE_NONE, INF_VALUE_NONE, INF_NODE_NONE};
    return inf_own_chain_create(step, &chain, err);
}

const struct inf_cpu_kernel inf_cpu_gemm_kernels[] = {
    {INF_OP_CONV2D, inf_own_conv_check, conv_create},
    {0},
};

// --- products with a constant ---

static struct inf_xnn_activation dense_activation(const struct inf_node *node)
{
    const struct inf_attrs_matmul *attrs = &node->attrs.matmul;
    return (struct inf_xnn_activation){attrs->activation, attrs->activation_alpha,
                                       attrs->activation_min, attrs->activation_max};
}

// Inner size and columns of b.
static void describe_matrix(const struct inf_graph *graph, const struct inf_node *node,
                            size_t *depth, size_t *columns)
{
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    bool transposed = node->attrs.matmul.transpose_b;
    *depth = (size_t)b->dims[b->rank - (transposed ? 1 : 2)];
    *columns = (size_t)b->dims[b->rank - (transposed ? 2 : 1)];
}

static enum inf_code dense_check(const struct inf_graph *graph, const struct inf_node *node,
                                 struct inf_error *err)
{
    const struct inf_shape *a = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *b = inf_cpu_input_shape(graph, node, 1);
    size_t depth;
    size_t columns;
    if (!inf_nn_best()->fast || a->rank < 2 || b->rank < 2)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: matmul: ranks %d and %d are not built here",
                        (int)a->rank, (int)b->rank);
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    describe_matrix(graph, node, &depth, &columns);
    // One matrix for all of a's: so there must be no more in b.
    INF_TRY(inf_cpu_need_const(graph, node, 1, depth * columns, err));
    INF_TRY(inf_cpu_need_const(graph, node, 2, columns, err));
    bool vector = a->dims[a->rank - 1] == 1 || a->dims[a->rank - 2] == 1;
    if (node->attrs.matmul.transpose_a && !vector)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: matmul: a transposed is not built");
    struct inf_xnn_activation activation = dense_activation(node);
    return inf_own_end_check(graph, node, &activation, 3, columns, err);
}

static enum inf_code dense_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    INF_TRY(inf_cpu_state(step, sizeof(struct conv), err));
    struct conv *conv = step->state;
    struct inf_xnn_activation activation = dense_activation(node);
    describe_matrix(step->graph, node, &conv->inputs, &conv->outputs);
    conv->batch = conv->rows = conv->segments = 1;
    conv->depth = conv->inputs;
    conv->row_pixels = inf_shape_elements(inf_cpu_input_shape(step->graph, node, 0)) / conv->depth;
    conv->rows_max = inf_nn_best()->gemm->rows_max;
    conv->end = inf_own_end_of(step->graph, node, &activation, 3);
    INF_TRY(pack(conv, step, node, node->attrs.matmul.transpose_b, err));
    share(conv, step);
    step->operand_count = 1; // what is packed is not read
    step->run = conv_run;
    step->kernel = "dense";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_dense_kernels[] = {
    {INF_OP_MATMUL, dense_check, dense_create},
    {0},
};
