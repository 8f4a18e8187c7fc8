// SPDX-License-Identifier: Apache-2.0
// Folds multiplications and additions by one constant per channel into the weights of the
// convolution behind them. Exporters write such nodes for learned scales that follow an activation:
//
//     conv(x * scale)  = conv'(x), whose filter is multiplied by the scale of each input channel
//     conv(x + offset) = conv(x) + the sums of filter * offset
//
// Padding is 0, and stays 0 if it is scaled. With an offset it would not stay 0, so an offset is
// not folded if a window covers padding. A scale before such an offset is folded:
//
//     x * scale + offset = (x + offset / scale) * scale
//
// The rounding errors of both forms are of the same size, because the scale multiplies the error of
// the sum on the right.
#include <math.h>
#include <stdlib.h>

#include "backends/graph/pass/linear.h"
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"
#include "backends/graph/shape/infer.h"

// Larger filters are not scaled: with them, the text detector of PP-OCR took 1.36 times its weights
// and buffers in memory instead of 0.99.
#define SCALED_BYTES_MAX ((size_t)64 << 10)

// A convolution, and the node that computes its operand.
struct pair {
    struct inf_linear linear; // the convolution
    uint32_t before;          // the multiplication or addition
    uint32_t x;               // its operand that is not constant
    const float *numbers;     // its constant operand
    size_t stride;            // of `numbers`: 1, or 0 if there is one number for all channels
    size_t inputs, outputs;   // channels in the filter, which is [kh,kw,inputs,outputs]
};

// Returns true if no window of the convolution covers padding.
static bool has_no_padding(const struct inf_graph *graph, const struct inf_node *node)
{
    struct inf_window h, w;
    inf_node_windows(graph, node, &h, &w);
    return h.pad_before == 0 && h.pad_after == 0 && w.pad_before == 0 && w.pad_after == 0;
}

// Returns true if the node computes `kind` without an activation, and its result is FP32.
static bool is_plain_binary(const struct inf_graph *graph, const struct inf_node *node,
                            enum inf_binary_kind kind)
{
    return node->op == INF_OP_BINARY && node->attrs.binary.kind == kind &&
           node->attrs.binary.activation == INF_ACTIVATION_NONE &&
           graph->values[node->outputs[0]].dtype == INF_DTYPE_F32;
}

// Returns true if the node is a depthwise convolution, or a convolution of one group, whose shapes
// are known and whose filter is a constant.
static bool is_convolution(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->op != INF_OP_CONV2D && node->op != INF_OP_DEPTHWISE_CONV2D)
        return false;
    if (node->op == INF_OP_CONV2D && node->attrs.conv2d.groups != 1)
        return false;
    const struct inf_value *filter = &graph->values[node->inputs[1]];
    return inf_graph_is_const(graph, node->inputs[1]) && filter->dtype == INF_DTYPE_F32 &&
           inf_shape_known(&graph->values[node->inputs[0]].shape);
}

// Reads operand `from` of the multiplication or addition as x, and the other one as constant.
static bool read_operands(const struct inf_graph *graph, struct pair *pair, uint32_t from)
{
    const struct inf_node *node = &graph->nodes[pair->before];
    struct inf_linear channels = {.channels = pair->inputs, .rank = 4};
    const struct inf_shape *y = &graph->values[node->outputs[0]].shape;
    pair->x = node->inputs[from];
    pair->numbers = inf_linear_per_channel(graph, &channels, node->inputs[1 - from], &pair->stride);
    return pair->numbers != NULL && inf_shape_equal(&graph->values[pair->x].shape, y);
}

// Fills *pair with the convolution `index` and the multiplication or addition before it. Returns
// false if there is none that can be folded.
static bool find_pair(const struct inf_rewrite *rewrite, uint32_t index, struct pair *pair)
{
    struct inf_graph *graph = rewrite->graph;
    const struct inf_node *conv = &graph->nodes[index];
    if (!is_convolution(graph, conv) || !inf_linear_view(graph, index, &pair->linear))
        return false;
    const struct inf_shape *filter = &graph->values[conv->inputs[1]].shape;
    uint32_t bias = conv->input_count > 2 ? conv->inputs[2] : INF_VALUE_NONE;
    pair->inputs = (size_t)filter->dims[2];
    pair->outputs = (size_t)filter->dims[3];
    pair->before = inf_rewrite_sole_producer(rewrite, conv->inputs[0]);
    if (pair->before == INF_NODE_NONE || rewrite->removed[pair->before] ||
        (bias != INF_VALUE_NONE && !inf_graph_is_const(graph, bias)))
        return false;
    const struct inf_node *before = &graph->nodes[pair->before];
    return (is_plain_binary(graph, before, INF_BINARY_ADD) ||
            is_plain_binary(graph, before, INF_BINARY_MUL)) &&
           (read_operands(graph, pair, 0) || read_operands(graph, pair, 1));
}

// Makes the convolution's filter that of x * scale. *done is false if a weight would not be finite,
// or if the filter is large.
static enum inf_code scale_inputs(struct inf_rewrite *rewrite, const struct pair *pair, bool *done)
{
    const struct inf_graph *graph = rewrite->graph;
    const struct inf_node *conv = &graph->nodes[pair->linear.node];
    *done = graph->values[conv->inputs[1]].data->size_bytes <= SCALED_BYTES_MAX;
    if (!*done)
        return INF_OK;
    double *scale = calloc(pair->inputs, sizeof *scale);
    if (scale == NULL)
        return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the weights of node '%s'", conv->name);
    for (size_t i = 0; i < pair->inputs; i++)
        scale[i] = pair->numbers[i * pair->stride];
    struct inf_linear by_input = pair->linear;
    by_input.channels = pair->inputs;
    by_input.inner = pair->outputs;
    enum inf_code code = inf_linear_scale_filter(rewrite, &by_input, scale, done);
    free(scale);
    return code;
}

// Adds the sums of filter * offset to the convolution's bias. *done is false if a bias would not be
// finite.
static enum inf_code add_offsets(struct inf_rewrite *rewrite, const struct pair *pair, bool *done)
{
    const struct inf_graph *graph = rewrite->graph;
    const struct inf_node *conv = &graph->nodes[pair->linear.node];
    const struct inf_value *filter = &graph->values[conv->inputs[1]];
    const float *weights = filter->data->data;
    // A depthwise filter is [kh,kw,channels,multiplier]; channel and multiplier give the output.
    bool depthwise = conv->op == INF_OP_DEPTHWISE_CONV2D;
    double *offsets = calloc(pair->linear.channels, sizeof *offsets);
    if (offsets == NULL)
        return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the bias of node '%s'", conv->name);
    for (size_t i = 0; i < inf_shape_elements(&filter->shape); i++) {
        size_t input = i / pair->outputs % pair->inputs;
        size_t output = depthwise ? i % (pair->inputs * pair->outputs) : i % pair->outputs;
        offsets[output] += (double)weights[i] * (double)pair->numbers[input * pair->stride];
    }
    enum inf_code code = inf_linear_apply(rewrite, &pair->linear, NULL, offsets, done);
    free(offsets);
    return code;
}

// Finds the multiplication before the addition of *pair. Fills *scale as find_pair() does, and
// returns false if there is none, or if an offset divided by a scale is not finite.
static bool find_scale(const struct inf_rewrite *rewrite, const struct pair *pair,
                       struct pair *scale)
{
    const struct inf_graph *graph = rewrite->graph;
    *scale = *pair;
    scale->before = inf_rewrite_sole_producer(rewrite, pair->x);
    if (scale->before == INF_NODE_NONE || rewrite->removed[scale->before] ||
        !is_plain_binary(graph, &graph->nodes[scale->before], INF_BINARY_MUL) ||
        !(read_operands(graph, scale, 0) || read_operands(graph, scale, 1)))
        return false;
    for (size_t i = 0; i < pair->inputs; i++)
        if (!isfinite(pair->numbers[i * pair->stride] / scale->numbers[i * scale->stride]))
            return false;
    return true;
}

// Folds a scale before the offset of *pair, which stays: x * scale + offset becomes x + offset /
// scale. *done is false if there is no scale that can be folded.
static enum inf_code fold_scale_before_offset(struct inf_rewrite *rewrite, const struct pair *pair,
                                              bool *done)
{
    struct pair scale;
    const struct inf_node *add = &rewrite->graph->nodes[pair->before];
    uint32_t from = add->inputs[0] == pair->x ? 0 : 1;
    *done = find_scale(rewrite, pair, &scale);
    if (*done)
        INF_TRY(scale_inputs(rewrite, &scale, done));
    if (!*done)
        return INF_OK;
    struct inf_blob *offsets = inf_blob_create(pair->inputs * sizeof(float));
    if (offsets == NULL)
        return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the offsets of node '%s'", add->name);
    for (size_t i = 0; i < pair->inputs; i++)
        ((float *)offsets->data)[i] =
            pair->numbers[i * pair->stride] / scale.numbers[i * scale.stride];
    uint32_t value;
    INF_TRY(inf_rewrite_add_const(rewrite, add->name, INF_DTYPE_F32,
                                  &INF_SHAPE((int64_t)pair->inputs), offsets, &value));
    INF_TRY(inf_rewrite_set_input(rewrite, pair->before, 1 - from, value));
    INF_TRY(inf_rewrite_set_input(rewrite, pair->before, from, scale.x));
    inf_rewrite_remove(rewrite, scale.before);
    return INF_OK;
}

// Folds the scale or offset before the convolution of *pair. *done is false if that is not
// possible.
static enum inf_code fold_pair(struct inf_rewrite *rewrite, const struct pair *pair, bool *done)
{
    const struct inf_graph *graph = rewrite->graph;
    bool adds = graph->nodes[pair->before].attrs.binary.kind == INF_BINARY_ADD;
    if (adds && !has_no_padding(graph, &graph->nodes[pair->linear.node]))
        return fold_scale_before_offset(rewrite, pair, done);
    INF_TRY(adds ? add_offsets(rewrite, pair, done) : scale_inputs(rewrite, pair, done));
    if (!*done)
        return INF_OK;
    INF_TRY(inf_rewrite_set_input(rewrite, pair->linear.node, 0, pair->x));
    inf_rewrite_remove(rewrite, pair->before);
    return INF_OK;
}

enum inf_code inf_pass_fold_operand(struct inf_rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->graph->node_count; i++) {
        struct pair pair = {0};
        bool done = true;
        // A scale and an offset may follow each other.
        while (done && !rewrite->removed[i] && find_pair(rewrite, i, &pair))
            INF_TRY(fold_pair(rewrite, &pair, &done));
    }
    return INF_OK;
}
