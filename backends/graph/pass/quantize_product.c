// SPDX-License-Identifier: Apache-2.0
// Products of bytes: a convolution or matrix product between dequantize and quantize becomes
// qconv2d or qmatmul. With x = sx * (bx - zx) and w = sw * (bw - zw), per output channel c
//
//   y = sum(x * w) + bias        becomes
//   by = zy + round((sum((bx - zx) * (bw - zw)) + bias / (sx * sw[c])) * sx * sw[c] / sy)
//
// The sum adds integers, so it is exact; a sum of floats would round each term.
#include "backends/graph/pass/quantize_product.h"

#include <assert.h>
#include <math.h>

#include "backends/graph/pass/linear.h"

// A float product that can become a product of bytes.
struct product {
    struct inf_quantize_match match;
    // index of the transpose or reshape between the dequantize node and the product; INF_NODE_NONE
    // if there is none
    uint32_t moved;
    struct inf_quantized x, w;
    const float *bias; // one element per channel; NULL if there is no bias
    size_t channels;   // number of output channels
};

static enum inf_code no_memory(const struct inf_rewrite *rewrite, uint32_t node)
{
    return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "node '%s': no memory for its constants",
                           rewrite->graph->nodes[node].name);
}

// Returns whether the weights have one scale, or one per output channel.
static bool fits_channels(const struct inf_graph *graph, const struct product *product,
                          int32_t axis)
{
    const struct inf_shape *w = &graph->values[product->w.bytes].shape;
    int32_t along = product->w.axis < 0 ? product->w.axis + w->rank : product->w.axis;
    return product->w.scale_count == 1 ||
           (product->w.scale_count == product->channels && along == axis);
}

// Finds the number of output channels. Returns false if there is no byte operator for this product.
static bool find_channels(struct inf_graph *graph, struct product *product)
{
    const struct inf_node *node = &graph->nodes[product->match.node];
    const struct inf_shape *w = &graph->values[product->w.bytes].shape;
    int32_t axis = w->rank - 1;
    if (node->op == INF_OP_MATMUL) {
        if (w->rank != 2 || node->attrs.matmul.transpose_a)
            return false;
        axis = node->attrs.matmul.transpose_b ? 0 : 1;
        product->channels = (size_t)w->dims[axis];
    } else if (node->op == INF_OP_DEPTHWISE_CONV2D) {
        axis = w->dims[3] == 1 ? 2 : -1;
        product->channels = (size_t)(w->dims[2] * w->dims[3]);
    } else {
        product->channels = (size_t)w->dims[3];
    }
    return product->channels > 0 && fits_channels(graph, product, axis);
}

// Finds the bytes from which `value` was dequantized, like inf_quantized_find(), but also accepts
// one node that only moves elements between the dequantize node and `value`. *out_moved is the
// index of that node, or INF_NODE_NONE.
static bool dequantized_and_moved(const struct inf_rewrite *rewrite, uint32_t value,
                                  struct inf_quantized *quantized, uint32_t *out_moved)
{
    const struct inf_graph *graph = rewrite->graph;
    *out_moved = INF_NODE_NONE;
    if (inf_quantized_find(graph, value, quantized))
        return true;
    uint32_t producer = inf_rewrite_sole_producer(rewrite, value);
    if (producer == INF_NODE_NONE)
        return false;
    const struct inf_node *node = &graph->nodes[producer];
    if (node->op != INF_OP_TRANSPOSE && node->op != INF_OP_RESHAPE &&
        node->op != INF_OP_EXPAND_DIMS && node->op != INF_OP_SQUEEZE)
        return false;
    *out_moved = producer;
    return inf_quantized_find(graph, node->inputs[0], quantized);
}

static bool find_product(struct inf_rewrite *rewrite, struct product *product)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *node = &graph->nodes[product->match.node];
    struct inf_activation_slot slot;
    if (node->op != INF_OP_CONV2D && node->op != INF_OP_DEPTHWISE_CONV2D &&
        node->op != INF_OP_MATMUL)
        return false;
    if (!inf_node_activation(node, &slot) ||
        !inf_clamp_narrow(&product->match.clamp, *slot.kind, *slot.min, *slot.max) ||
        !dequantized_and_moved(rewrite, node->inputs[0], &product->x, &product->moved) ||
        !inf_quantized_find(graph, node->inputs[1], &product->w) || product->x.scale_count != 1 ||
        !inf_graph_is_const(graph, product->w.bytes) || !find_channels(graph, product))
        return false;
    uint32_t bias = 2 < node->input_count ? node->inputs[2] : INF_VALUE_NONE;
    if (bias == INF_VALUE_NONE)
        return true;
    size_t count;
    if (!inf_graph_is_const(graph, bias) || !inf_shape_count(&graph->values[bias].shape, &count) ||
        count != product->channels)
        return false;
    product->bias = graph->values[bias].data->data;
    return true;
}

// Adds the constants of the product on bytes: the factor scale(x) * scale(w) / scale(y) for each
// scale of the weights, and the bias in units of scale(x) * scale(w). If there is no bias,
// *out_bias is INF_VALUE_NONE.
static enum inf_code add_terms(struct inf_rewrite *rewrite, const struct product *product,
                               uint32_t *out_scale, uint32_t *out_bias)
{
    const char *name = rewrite->graph->nodes[product->match.node].name;
    const struct inf_shape shape = INF_SHAPE((int64_t)product->channels);
    // Weights with one scale have one factor for all channels.
    const struct inf_shape scale_shape = INF_SHAPE((int64_t)product->w.scale_count);
    struct inf_blob *scale = inf_blob_create(product->w.scale_count * sizeof(float));
    struct inf_blob *bias = inf_blob_create(product->channels * sizeof(int32_t));
    if (scale == NULL || bias == NULL) {
        inf_blob_unref(&scale);
        inf_blob_unref(&bias);
        return no_memory(rewrite, product->match.node);
    }
    for (size_t i = 0; i < product->channels; i++) {
        float each = product->x.scales[0] * product->w.scales[product->w.scale_count == 1 ? 0 : i];
        double term =
            product->bias != NULL ? nearbyint((double)product->bias[i] / (double)each) : 0;
        if (i < product->w.scale_count)
            ((float *)scale->data)[i] = each / product->match.y.scales[0];
        ((int32_t *)bias->data)[i] = (int32_t)fmin(fmax(term, INT32_MIN), INT32_MAX);
    }
    enum inf_code code =
        inf_rewrite_add_const(rewrite, name, INF_DTYPE_F32, &scale_shape, scale, out_scale);
    *out_bias = INF_VALUE_NONE;
    if (code != INF_OK || product->bias == NULL) {
        inf_blob_unref(&bias);
        return code;
    }
    return inf_rewrite_add_const(rewrite, name, INF_DTYPE_I32, &shape, bias, out_bias);
}

#define COPY_WINDOW(to, from)                                                                      \
    do {                                                                                           \
        (to)->stride_h = (from)->stride_h;                                                         \
        (to)->stride_w = (from)->stride_w;                                                         \
        (to)->dilation_h = (from)->dilation_h;                                                     \
        (to)->dilation_w = (from)->dilation_w;                                                     \
        (to)->padding = (from)->padding;                                                           \
        (to)->pad_top = (from)->pad_top;                                                           \
        (to)->pad_bottom = (from)->pad_bottom;                                                     \
        (to)->pad_left = (from)->pad_left;                                                         \
        (to)->pad_right = (from)->pad_right;                                                       \
    } while (0)

static void set_product_attrs(struct inf_graph *graph, const struct product *product)
{
    const struct inf_node *node = &graph->nodes[product->match.node];
    struct inf_node *to = &graph->nodes[product->match.quantize];
    enum inf_dtype dtype = graph->values[product->match.y.bytes].dtype;
    int32_t min = inf_clamp_to_byte(graph, &product->match.y, product->match.clamp.min);
    int32_t max = inf_clamp_to_byte(graph, &product->match.y, product->match.clamp.max);
    to->op = node->op == INF_OP_MATMUL ? INF_OP_QMATMUL : INF_OP_QCONV2D;
    inf_attrs_init(&to->attrs, to->op);
    if (node->op == INF_OP_MATMUL) {
        to->attrs.qmatmul.transpose_b = node->attrs.matmul.transpose_b;
        to->attrs.qmatmul.dtype = dtype;
        to->attrs.qmatmul.min = min;
        to->attrs.qmatmul.max = max;
        return;
    }
    struct inf_attrs_qconv2d *attrs = &to->attrs.qconv2d;
    attrs->dtype = dtype;
    attrs->min = min;
    attrs->max = max;
    if (node->op == INF_OP_CONV2D) {
        COPY_WINDOW(attrs, &node->attrs.conv2d);
        attrs->groups = node->attrs.conv2d.groups;
    } else {
        COPY_WINDOW(attrs, &node->attrs.depthwise_conv2d);
        attrs->groups = (int32_t)graph->values[product->w.bytes].shape.dims[2];
    }
}

// Gives the weights the shape that qconv2d expects: [kh,kw,c,m] of a depthwise convolution becomes
// [kh,kw,1,c*m].
static enum inf_code add_weights(struct inf_rewrite *rewrite, const struct product *product,
                                 uint32_t *out_weights)
{
    const struct inf_value *w = &rewrite->graph->values[product->w.bytes];
    struct inf_shape shape = w->shape;
    *out_weights = product->w.bytes;
    if (rewrite->graph->nodes[product->match.node].op != INF_OP_DEPTHWISE_CONV2D)
        return INF_OK;
    shape.dims[2] = 1;
    shape.dims[3] = (int64_t)product->channels;
    return inf_rewrite_add_const(rewrite, w->name, w->dtype, &shape, inf_blob_ref(w->data),
                                 out_weights);
}

// Changes the node between dequantize and product, so that it moves the bytes of x instead of the
// floats.
static enum inf_code move_bytes(struct inf_rewrite *rewrite, struct product *product)
{
    struct inf_graph *graph = rewrite->graph;
    if (product->moved == INF_NODE_NONE)
        return INF_OK;
    INF_TRY(inf_rewrite_set_input(rewrite, product->moved, 0, product->x.bytes));
    uint32_t moved = graph->nodes[product->moved].outputs[0];
    graph->values[moved].dtype = graph->values[product->x.bytes].dtype;
    product->x.bytes = moved;
    return INF_OK;
}

static enum inf_code fuse_product(struct inf_rewrite *rewrite, struct product *product)
{
    uint32_t weights;
    uint32_t scale;
    uint32_t bias;
    INF_TRY(move_bytes(rewrite, product));
    INF_TRY(add_weights(rewrite, product, &weights));
    INF_TRY(add_terms(rewrite, product, &scale, &bias));
    set_product_attrs(rewrite->graph, product);
    const uint32_t inputs[] = {product->x.bytes,     weights,         bias,
                               product->x.zero,      product->w.zero, scale,
                               product->match.y.zero};
    INF_TRY(inf_quantize_set_inputs(rewrite, product->match.quantize, inputs,
                                    INF_ARRAY_LENGTH(inputs)));
    if (product->match.clamp_node != INF_NODE_NONE)
        inf_rewrite_remove(rewrite, product->match.clamp_node);
    inf_rewrite_remove(rewrite, product->match.node);
    return INF_OK;
}

enum inf_code inf_quantize_product(struct inf_rewrite *rewrite,
                                   const struct inf_quantize_match *match)
{
    struct product product = {.match = *match};
    assert(match->node != INF_NODE_NONE && match->y.scale_count == 1);
    return find_product(rewrite, &product) ? fuse_product(rewrite, &product) : INF_OK;
}
