// SPDX-License-Identifier: Apache-2.0
// Turns float operators between dequantize and quantize into operators on bytes.
//
// A quantized model file (ONNX QDQ) describes arithmetic on bytes by floats: every operator has a
// dequantize before each operand and a quantize behind it. Computed literally, that is slower than
// the float model. Around each quantize node this pass looks for one of these patterns, where
// [clamp] is an optional relu, relu6 or clip:
//
//     dequantize -> conv2d, depthwise_conv2d, matmul [clamp] -> quantize  =>  qconv2d, qmatmul
//     dequantize -> add, sub, mul [clamp] -> quantize                     =>  qbinary
//     dequantize -> function of one number [clamp] -> quantize            =>  lookup
//     dequantize -> node that only moves elements -> quantize             =>  the node on bytes
//     dequantize -> pad with 0 -> quantize                                =>  pad with zero points
//     dequantize -> transpose or reshape -> one of the products           =>  both on bytes
//     dequantize -> mean, average pool, bilinear resize -> quantize       =>  with scale 1
//
// The fourth, fifth and last hold if both sides have the same scale and zero point. With scale 1,
// sums are those of integers, which floats hold exactly, so that all devices round the same number.
// Operands of qbinary must have one shape, because devices have kernels for that case only.
//
// Results: qbinary, lookup and moves give exactly the bits that the floats gave. A product sums
// integers exactly and rounds once (quantize_product.c); floats round every term, so results may
// differ by 1.
//
// Transposes of dequantized constants are swapped with the dequantize first, so that constant
// folding works on bytes and the weights stay bytes.
#include <math.h>

#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/quantize_lookup.h"
#include "backends/graph/pass/quantize_product.h"
#include "backends/graph/pass/quantized.h"
#include "backends/graph/pass/rewrite.h"

// --- replacing sums and products of two tensors, and operators that only move elements ---

static enum inf_code fuse_binary(struct inf_rewrite *rewrite, struct inf_quantize_match *match)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *node = &graph->nodes[match->node];
    struct inf_quantized a;
    struct inf_quantized b;
    const struct inf_attrs_binary *attrs = &node->attrs.binary;
    enum inf_binary_kind kind = attrs->kind;
    if (node->op != INF_OP_BINARY ||
        (kind != INF_BINARY_ADD && kind != INF_BINARY_SUB && kind != INF_BINARY_MUL) ||
        !inf_clamp_narrow(&match->clamp, attrs->activation, attrs->activation_min,
                          attrs->activation_max) ||
        !inf_quantized_find(graph, node->inputs[0], &a) ||
        !inf_quantized_find(graph, node->inputs[1], &b) || a.scale_count != 1 ||
        b.scale_count != 1 ||
        !inf_shape_equal(&graph->values[a.bytes].shape, &graph->values[b.bytes].shape))
        return INF_OK;
    struct inf_node *to = &graph->nodes[match->quantize];
    const uint32_t inputs[] = {a.bytes,        b.bytes, a.scale, b.scale,
                               match->y.scale, a.zero,  b.zero,  match->y.zero};
    to->op = INF_OP_QBINARY;
    inf_attrs_init(&to->attrs, to->op);
    to->attrs.qbinary.kind = kind;
    to->attrs.qbinary.dtype = graph->values[match->y.bytes].dtype;
    to->attrs.qbinary.min = inf_clamp_to_byte(graph, &match->y, match->clamp.min);
    to->attrs.qbinary.max = inf_clamp_to_byte(graph, &match->y, match->clamp.max);
    INF_TRY(inf_quantize_set_inputs(rewrite, match->quantize, inputs, INF_ARRAY_LENGTH(inputs)));
    if (match->clamp_node != INF_NODE_NONE)
        inf_rewrite_remove(rewrite, match->clamp_node);
    inf_rewrite_remove(rewrite, match->node);
    return INF_OK;
}

static bool moves_elements(const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_POOL2D:
        return node->attrs.pool2d.kind == INF_POOL_MAX;
    case INF_OP_IDENTITY:
    case INF_OP_RESHAPE:
    case INF_OP_EXPAND_DIMS:
    case INF_OP_SQUEEZE:
    case INF_OP_TRANSPOSE:
    case INF_OP_SLICE:
    case INF_OP_DEPTH_TO_SPACE:
    case INF_OP_SPACE_TO_DEPTH:
    case INF_OP_CONCAT:
        return true;
    default:
        return false;
    }
}

// Returns true if the node pads with 0, which the zero point stands for.
static bool pads_zeros(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->op != INF_OP_PAD || node->attrs.pad.mode != INF_PAD_CONSTANT)
        return false;
    if (node->input_count < 3 || node->inputs[2] == INF_VALUE_NONE)
        return true;
    const struct inf_blob *value = graph->values[node->inputs[2]].data;
    return value != NULL && *(const float *)value->data == 0;
}

// Converts a node that only moves elements, or pads with 0, to bytes, if its operands and its
// result have the same scale and zero point.
static enum inf_code fuse_move(struct inf_rewrite *rewrite, const struct inf_quantize_match *match)
{
    struct inf_graph *graph = rewrite->graph;
    const struct inf_node *node = &graph->nodes[match->node];
    uint32_t count = node->op == INF_OP_CONCAT ? node->input_count : 1;
    bool pads = pads_zeros(graph, node);
    struct inf_quantized x;
    if (match->clamp_node != INF_NODE_NONE || !(moves_elements(node) || pads))
        return INF_OK;
    for (uint32_t i = 0; i < count; i++)
        if (!inf_quantized_find(graph, node->inputs[i], &x) ||
            !inf_quantized_equal(graph, &x, &match->y))
            return INF_OK;
    for (uint32_t i = 0; i < count; i++) {
        (void)inf_quantized_find(graph, graph->nodes[match->node].inputs[i], &x);
        INF_TRY(inf_rewrite_set_input(rewrite, match->node, i, x.bytes));
    }
    if (pads) {
        node = &graph->nodes[match->node];
        const uint32_t inputs[] = {node->inputs[0], node->inputs[1], match->y.zero};
        INF_TRY(inf_quantize_set_inputs(rewrite, match->node, inputs, INF_ARRAY_LENGTH(inputs)));
    }
    inf_rewrite_absorb(rewrite, match->node, match->quantize);
    return INF_OK;
}

// Returns true if scaling the operand of the node by a factor scales its result by that factor.
static bool is_homogeneous(const struct inf_node *node)
{
    return (node->op == INF_OP_POOL2D && node->attrs.pool2d.kind == INF_POOL_AVERAGE) ||
           (node->op == INF_OP_RESIZE && node->attrs.resize.kind == INF_RESIZE_BILINEAR) ||
           (node->op == INF_OP_REDUCE && node->attrs.reduce.kind == INF_REDUCE_MEAN);
}

// Returns the dequantize node from which only homogeneous nodes compute `value`. It and the nodes
// between have one reader each. Returns INF_NODE_NONE if there is no such node.
static uint32_t find_dequantize(const struct inf_rewrite *rewrite, uint32_t value)
{
    const struct inf_node *nodes = rewrite->graph->nodes;
    uint32_t node = inf_rewrite_sole_producer(rewrite, value);
    while (node != INF_NODE_NONE && is_homogeneous(&nodes[node]))
        node = inf_rewrite_sole_producer(rewrite, nodes[node].inputs[0]);
    return node != INF_NODE_NONE && nodes[node].op == INF_OP_DEQUANTIZE ? node : INF_NODE_NONE;
}

// If the nodes between a dequantize and a quantize node are homogeneous, and both have the same
// scale and zero point, sets both scales to 1.
static enum inf_code use_unit_scale(struct inf_rewrite *rewrite,
                                    const struct inf_quantize_match *match)
{
    struct inf_graph *graph = rewrite->graph;
    const struct inf_node *node = &graph->nodes[match->node];
    struct inf_quantized x;
    uint32_t dequantize, one;
    if (match->clamp_node != INF_NODE_NONE || !is_homogeneous(node))
        return INF_OK;
    dequantize = find_dequantize(rewrite, node->outputs[0]);
    if (dequantize == INF_NODE_NONE ||
        !inf_quantized_find(graph, graph->nodes[dequantize].outputs[0], &x) ||
        !inf_quantized_equal(graph, &x, &match->y) || x.scales[0] == 1)
        return INF_OK;
    const struct inf_shape shape = graph->values[x.scale].shape;
    struct inf_blob *blob = inf_blob_create(sizeof(float));
    if (blob == NULL)
        return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its scale", node->name);
    *(float *)blob->data = 1;
    INF_TRY(inf_rewrite_add_const(rewrite, node->name, INF_DTYPE_F32, &shape, blob, &one));
    INF_TRY(inf_rewrite_set_input(rewrite, dequantize, 1, one));
    return inf_rewrite_set_input(rewrite, match->quantize, 1, one);
}

// --- running the pass over all nodes of the graph ---

// Swaps the dequantize node of a constant with the transpose `index`, its only reader, so that
// bytes are transposed and folded instead of floats.
static enum inf_code sink_dequantize(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *transpose = &graph->nodes[index];
    uint32_t producer = inf_rewrite_sole_producer(rewrite, transpose->inputs[0]);
    if (producer == INF_NODE_NONE || graph->nodes[producer].op != INF_OP_DEQUANTIZE)
        return INF_OK;
    struct inf_node *dequantize = &graph->nodes[producer];
    struct inf_value *bytes = &graph->values[dequantize->inputs[0]];
    const struct inf_ints perm = transpose->attrs.transpose.perm;
    int32_t rank = bytes->shape.rank;
    int32_t axis = dequantize->attrs.dequantize.axis;
    if (bytes->data == NULL || !inf_quantized_is_byte(bytes->dtype) || perm.count != rank)
        return INF_OK;
    axis = axis < 0 ? axis + rank : axis;
    uint32_t *inputs = dequantize->inputs;
    uint32_t input_count = dequantize->input_count;
    uint32_t between = transpose->inputs[0];
    uint32_t *alone = transpose->inputs;
    alone[0] = inputs[0];
    inputs[0] = between;
    dequantize->op = INF_OP_TRANSPOSE;
    dequantize->inputs = alone;
    dequantize->input_count = 1;
    dequantize->attrs = transpose->attrs;
    transpose->op = INF_OP_DEQUANTIZE;
    transpose->inputs = inputs;
    transpose->input_count = input_count;
    inf_attrs_init(&transpose->attrs, INF_OP_DEQUANTIZE);
    transpose->attrs.dequantize.axis = 0;
    for (int32_t i = 0; i < rank; i++) {
        int64_t from = perm.values[i] < 0 ? perm.values[i] + rank : perm.values[i];
        graph->values[between].shape.dims[i] = bytes->shape.dims[from];
        if (from == axis)
            transpose->attrs.dequantize.axis = i;
    }
    graph->values[between].dtype = bytes->dtype;
    rewrite->changed = true;
    return INF_OK;
}

static enum inf_code visit_quantize(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_graph *graph = rewrite->graph;
    const struct inf_node *node = &graph->nodes[index];
    struct inf_quantize_match match = {
        .quantize = index, .clamp_node = INF_NODE_NONE, .clamp = {-INFINITY, INFINITY}};
    if (graph->values[node->inputs[0]].dtype != INF_DTYPE_F32 ||
        !inf_quantized_read(graph, node, node->outputs[0], &match.y) || match.y.scale_count != 1)
        return INF_OK;
    match.node = inf_rewrite_sole_producer(rewrite, node->inputs[0]);
    if (match.node != INF_NODE_NONE && inf_clamp_read(&graph->nodes[match.node], &match.clamp)) {
        match.clamp_node = match.node;
        match.node = inf_rewrite_sole_producer(rewrite, graph->nodes[match.clamp_node].inputs[0]);
    }
    if (match.node == INF_NODE_NONE)
        return INF_OK;
    INF_TRY(inf_quantize_product(rewrite, &match));
    if (rewrite->removed[match.node])
        return INF_OK;
    INF_TRY(fuse_binary(rewrite, &match));
    if (!rewrite->removed[match.node])
        INF_TRY(inf_quantize_lookup(rewrite, &match));
    if (!rewrite->removed[match.node])
        INF_TRY(use_unit_scale(rewrite, &match));
    return rewrite->removed[match.node] ? INF_OK : fuse_move(rewrite, &match);
}

enum inf_code inf_pass_quantize(struct inf_rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->graph->node_count; i++) {
        if (rewrite->removed[i])
            continue;
        if (rewrite->graph->nodes[i].op == INF_OP_TRANSPOSE)
            INF_TRY(sink_dequantize(rewrite, i));
        else if (rewrite->graph->nodes[i].op == INF_OP_QUANTIZE)
            INF_TRY(visit_quantize(rewrite, i));
    }
    return INF_OK;
}
