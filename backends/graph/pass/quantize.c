// SPDX-License-Identifier: Apache-2.0
// Float operators between dequantize and quantize become operators on bytes.
//
//     dequantize -> conv2d, depthwise_conv2d, matmul [-> relu, relu6, clip] -> quantize    qconv2d, qmatmul
//     dequantize -> add, sub, mul [-> relu, relu6, clip] -> quantize                       qbinary
//     dequantize -> what moves elements, max pooling -> quantize alike                     the same on bytes
//     dequantize -> a transpose or new shape -> what becomes an operator on bytes          the same on bytes
//
// Operands of qbinary have one shape: devices have loops for that only. qbinary and moves give the bits that the floats gave. Of products the sum is exact and rounded once,
// where floats round each term and the sum: results may differ by 1. Dequantised constants are moved
// behind their transposes first, so that the bytes are what is transposed and folded.
#include <math.h>
#include <stdlib.h>

#include "backends/graph/pass/pass_private.h"

// What a value of bytes stands for.
struct meaning {
    uint32_t bytes;       // the value
    uint32_t scale, zero; // values; zero INF_VALUE_NONE where absent
    int32_t axis;         // of scale and zero
    const float *scales;
    size_t scale_count;
};

// Bounds of a result before it is quantised.
struct bounds {
    float min, max;
};

static bool is_byte(enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_U8 || dtype == INF_DTYPE_I8;
}

static uint32_t input_of(const struct inf_node *node, uint32_t index)
{
    return index < node->input_count ? node->inputs[index] : INF_VALUE_NONE;
}

// Reads scale and zero point of a quantize or dequantize node, constants, for `bytes`.
static bool read_meaning(const struct inf_graph *graph, const struct inf_node *node, uint32_t bytes,
                         struct meaning *meaning)
{
    uint32_t scale = node->inputs[1];
    uint32_t zero = input_of(node, 2);
    if (!is_byte(graph->values[bytes].dtype) || !inf_graph_is_const(graph, scale) ||
        graph->values[scale].dtype != INF_DTYPE_F32 ||
        (zero != INF_VALUE_NONE && !inf_graph_is_const(graph, zero)))
        return false;
    *meaning = (struct meaning){bytes, scale, zero, 0, graph->values[scale].data->data, 0};
    meaning->axis =
        node->op == INF_OP_QUANTIZE ? node->attrs.quantize.axis : node->attrs.dequantize.axis;
    if (!inf_shape_count(&graph->values[scale].shape, &meaning->scale_count) ||
        meaning->scale_count == 0)
        return false;
    size_t zero_count;
    if (zero != INF_VALUE_NONE && (!inf_shape_count(&graph->values[zero].shape, &zero_count) ||
                                   zero_count != meaning->scale_count ||
                                   graph->values[zero].dtype != graph->values[bytes].dtype))
        return false;
    for (size_t i = 0; i < meaning->scale_count; i++)
        if (!isnormal(meaning->scales[i]) || meaning->scales[i] < 0)
            return false;
    return true;
}

// What `value` was dequantised from.
static bool dequantized(const struct inf_graph *graph, uint32_t value, struct meaning *meaning)
{
    uint32_t producer = value != INF_VALUE_NONE ? graph->values[value].producer : INF_NODE_NONE;
    if (producer == INF_NODE_NONE || graph->nodes[producer].op != INF_OP_DEQUANTIZE ||
        graph->values[value].dtype != INF_DTYPE_F32)
        return false;
    const struct inf_node *node = &graph->nodes[producer];
    return read_meaning(graph, node, node->inputs[0], meaning);
}

// The zero point of a meaning of one.
static int32_t zero_of(const struct inf_graph *graph, const struct meaning *meaning)
{
    if (meaning->zero == INF_VALUE_NONE)
        return 0;
    const uint8_t *zero = graph->values[meaning->zero].data->data;
    return graph->values[meaning->zero].dtype == INF_DTYPE_I8 ? (int8_t)*zero : *zero;
}

// Whether both stand for the same with the same bytes.
static bool same_meaning(const struct inf_graph *graph, const struct meaning *a,
                         const struct meaning *b)
{
    return graph->values[a->bytes].dtype == graph->values[b->bytes].dtype && a->scale_count == 1 &&
           b->scale_count == 1 && a->scales[0] == b->scales[0] &&
           zero_of(graph, a) == zero_of(graph, b);
}

// --- bounds ---

static bool narrow(struct bounds *bounds, enum inf_activation activation, float min, float max)
{
    switch (activation) {
    case INF_ACTIVATION_NONE:
        return true;
    case INF_ACTIVATION_RELU:
        min = 0, max = INFINITY;
        break;
    case INF_ACTIVATION_RELU6:
        min = 0, max = 6;
        break;
    case INF_ACTIVATION_CLIP:
        break;
    default:
        return false;
    }
    // What comes before is cut by what came behind it.
    bounds->min = fminf(fmaxf(min, bounds->min), bounds->max);
    bounds->max = fminf(fmaxf(max, bounds->min), bounds->max);
    return true;
}

// Whether a node only cuts its input, in which case `bounds` are narrowed.
static bool is_cut(const struct inf_node *node, struct bounds *bounds)
{
    if (node->op == INF_OP_CLIP)
        return narrow(bounds, INF_ACTIVATION_CLIP, node->attrs.clip.min, node->attrs.clip.max);
    if (node->op != INF_OP_UNARY)
        return false;
    if (node->attrs.unary.kind == INF_UNARY_RELU)
        return narrow(bounds, INF_ACTIVATION_RELU, 0, 0);
    return node->attrs.unary.kind == INF_UNARY_RELU6 && narrow(bounds, INF_ACTIVATION_RELU6, 0, 0);
}

// A bound as a byte of y.
static int32_t bound_of(const struct inf_graph *graph, const struct meaning *y, float bound)
{
    bool is_signed = graph->values[y->bytes].dtype == INF_DTYPE_I8;
    float value = nearbyintf(bound / y->scales[0]) + (float)zero_of(graph, y);
    return (int32_t)fminf(fmaxf(value, is_signed ? -128 : 0), is_signed ? 127 : 255);
}

// --- changing nodes ---

// Makes input `index` of a node `value`, which may be none.
static enum inf_code set_input(struct inf_rewrite *rewrite, uint32_t node, uint32_t index,
                               uint32_t value)
{
    if (value != INF_VALUE_NONE)
        return inf_rewrite_set_input(rewrite, node, index, value);
    struct inf_node *changed = &rewrite->graph->nodes[node];
    if (index < changed->input_count) {
        inf_rewrite_drop_use(rewrite, changed->inputs[index]);
        changed->inputs[index] = INF_VALUE_NONE;
    }
    return INF_OK;
}

// Gives a node these inputs, the last first: what it has already may be among them.
static enum inf_code set_inputs(struct inf_rewrite *rewrite, uint32_t node, const uint32_t *inputs,
                                uint32_t count)
{
    while (count-- > 0)
        INF_TRY(set_input(rewrite, node, count, inputs[count]));
    return INF_OK;
}

static enum inf_code no_memory(const struct inf_rewrite *rewrite, uint32_t node)
{
    return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "node '%s': no memory for its constants",
                           rewrite->graph->nodes[node].name);
}

// --- products ---

// A product between dequantize and quantize.
struct product {
    uint32_t node, quantize, cut; // cut INF_NODE_NONE: none
    uint32_t moved; // what lies between dequantize and the product; INF_NODE_NONE: nothing
    struct meaning x, w, y;
    const float *bias; // NULL: none
    size_t channels;
    struct bounds bounds;
};

// Whether scales of the weights are one, or one a channel.
static bool fits_channels(const struct inf_graph *graph, const struct product *product,
                          int32_t axis)
{
    const struct inf_shape *w = &graph->values[product->w.bytes].shape;
    int32_t along = product->w.axis < 0 ? product->w.axis + w->rank : product->w.axis;
    return product->w.scale_count == 1 ||
           (product->w.scale_count == product->channels && along == axis);
}

// The channels of a product and where its weights have them; false where it cannot be one of bytes.
static bool find_channels(struct inf_graph *graph, struct product *product)
{
    const struct inf_node *node = &graph->nodes[product->node];
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

// What `value` was dequantised from, perhaps before a node *out_moved moved all of it.
static bool dequantized_and_moved(const struct inf_rewrite *rewrite, uint32_t value,
                                  struct meaning *meaning, uint32_t *out_moved)
{
    const struct inf_graph *graph = rewrite->graph;
    *out_moved = INF_NODE_NONE;
    if (dequantized(graph, value, meaning))
        return true;
    uint32_t producer = inf_rewrite_sole_producer(rewrite, value);
    if (producer == INF_NODE_NONE)
        return false;
    const struct inf_node *node = &graph->nodes[producer];
    if (node->op != INF_OP_TRANSPOSE && node->op != INF_OP_RESHAPE &&
        node->op != INF_OP_EXPAND_DIMS && node->op != INF_OP_SQUEEZE)
        return false;
    *out_moved = producer;
    return dequantized(graph, node->inputs[0], meaning);
}

static bool find_product(struct inf_rewrite *rewrite, struct product *product)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *node = &graph->nodes[product->node];
    struct inf_activation_slot slot;
    if (node->op != INF_OP_CONV2D && node->op != INF_OP_DEPTHWISE_CONV2D &&
        node->op != INF_OP_MATMUL)
        return false;
    if (!inf_node_activation(node, &slot) ||
        !narrow(&product->bounds, *slot.kind, *slot.min, *slot.max) ||
        !dequantized_and_moved(rewrite, node->inputs[0], &product->x, &product->moved) ||
        !dequantized(graph, node->inputs[1], &product->w) || product->x.scale_count != 1 ||
        !inf_graph_is_const(graph, product->w.bytes) || !find_channels(graph, product))
        return false;
    uint32_t bias = input_of(node, 2);
    if (bias == INF_VALUE_NONE)
        return true;
    size_t count;
    if (!inf_graph_is_const(graph, bias) || !inf_shape_count(&graph->values[bias].shape, &count) ||
        count != product->channels)
        return false;
    product->bias = graph->values[bias].data->data;
    return true;
}

// Scales and the bias of a product as constants. *out_bias is INF_VALUE_NONE where there is none.
static enum inf_code add_terms(struct inf_rewrite *rewrite, const struct product *product,
                               uint32_t *out_scale, uint32_t *out_bias)
{
    const char *name = rewrite->graph->nodes[product->node].name;
    const struct inf_shape shape = INF_SHAPE((int64_t)product->channels);
    struct inf_blob *scale = inf_blob_create(product->channels * sizeof(float));
    struct inf_blob *bias = inf_blob_create(product->channels * sizeof(int32_t));
    if (scale == NULL || bias == NULL) {
        inf_blob_unref(&scale);
        inf_blob_unref(&bias);
        return no_memory(rewrite, product->node);
    }
    for (size_t i = 0; i < product->channels; i++) {
        float each = product->x.scales[0] * product->w.scales[product->w.scale_count == 1 ? 0 : i];
        double term =
            product->bias != NULL ? nearbyint((double)product->bias[i] / (double)each) : 0;
        ((float *)scale->data)[i] = each / product->y.scales[0];
        ((int32_t *)bias->data)[i] = (int32_t)fmin(fmax(term, INT32_MIN), INT32_MAX);
    }
    enum inf_code code =
        inf_rewrite_add_const(rewrite, name, INF_DTYPE_F32, &shape, scale, out_scale);
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
    const struct inf_node *node = &graph->nodes[product->node];
    struct inf_node *to = &graph->nodes[product->quantize];
    enum inf_dtype dtype = graph->values[product->y.bytes].dtype;
    int32_t min = bound_of(graph, &product->y, product->bounds.min);
    int32_t max = bound_of(graph, &product->y, product->bounds.max);
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

// The weights as the node on bytes has them: [kh,kw,c,m] of depthwise windows becomes [kh,kw,1,c*m].
static enum inf_code add_weights(struct inf_rewrite *rewrite, const struct product *product,
                                 uint32_t *out_weights)
{
    const struct inf_value *w = &rewrite->graph->values[product->w.bytes];
    struct inf_shape shape = w->shape;
    *out_weights = product->w.bytes;
    if (rewrite->graph->nodes[product->node].op != INF_OP_DEPTHWISE_CONV2D)
        return INF_OK;
    shape.dims[2] = 1;
    shape.dims[3] = (int64_t)product->channels;
    return inf_rewrite_add_const(rewrite, w->name, w->dtype, &shape, inf_blob_ref(w->data),
                                 out_weights);
}

// Moves the bytes of x instead of what they stand for.
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
    const uint32_t inputs[] = {product->x.bytes, weights, bias,           product->x.zero,
                               product->w.zero,  scale,   product->y.zero};
    INF_TRY(set_inputs(rewrite, product->quantize, inputs, INF_ARRAY_LENGTH(inputs)));
    if (product->cut != INF_NODE_NONE)
        inf_rewrite_remove(rewrite, product->cut);
    inf_rewrite_remove(rewrite, product->node);
    return INF_OK;
}

// --- element by element ---

static enum inf_code fuse_binary(struct inf_rewrite *rewrite, struct product *at)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *node = &graph->nodes[at->node];
    struct meaning a;
    struct meaning b;
    const struct inf_attrs_binary *attrs = &node->attrs.binary;
    enum inf_binary_kind kind = attrs->kind;
    if (node->op != INF_OP_BINARY ||
        (kind != INF_BINARY_ADD && kind != INF_BINARY_SUB && kind != INF_BINARY_MUL) ||
        !narrow(&at->bounds, attrs->activation, attrs->activation_min, attrs->activation_max) ||
        !dequantized(graph, node->inputs[0], &a) || !dequantized(graph, node->inputs[1], &b) ||
        a.scale_count != 1 || b.scale_count != 1 ||
        !inf_shape_equal(&graph->values[a.bytes].shape, &graph->values[b.bytes].shape))
        return INF_OK;
    struct inf_node *to = &graph->nodes[at->quantize];
    const uint32_t inputs[] = {a.bytes,     b.bytes, a.scale, b.scale,
                               at->y.scale, a.zero,  b.zero,  at->y.zero};
    to->op = INF_OP_QBINARY;
    inf_attrs_init(&to->attrs, to->op);
    to->attrs.qbinary.kind = kind;
    to->attrs.qbinary.dtype = graph->values[at->y.bytes].dtype;
    to->attrs.qbinary.min = bound_of(graph, &at->y, at->bounds.min);
    to->attrs.qbinary.max = bound_of(graph, &at->y, at->bounds.max);
    INF_TRY(set_inputs(rewrite, at->quantize, inputs, INF_ARRAY_LENGTH(inputs)));
    if (at->cut != INF_NODE_NONE)
        inf_rewrite_remove(rewrite, at->cut);
    inf_rewrite_remove(rewrite, at->node);
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

// Moves bytes where floats were moved between dequantize and a quantize to the same.
static enum inf_code fuse_move(struct inf_rewrite *rewrite, const struct product *at)
{
    struct inf_graph *graph = rewrite->graph;
    const struct inf_node *node = &graph->nodes[at->node];
    uint32_t count = node->op == INF_OP_CONCAT ? node->input_count : 1;
    struct meaning x;
    if (at->cut != INF_NODE_NONE || !moves_elements(node))
        return INF_OK;
    for (uint32_t i = 0; i < count; i++)
        if (!dequantized(graph, node->inputs[i], &x) || !same_meaning(graph, &x, &at->y))
            return INF_OK;
    for (uint32_t i = 0; i < count; i++) {
        (void)dequantized(graph, graph->nodes[at->node].inputs[i], &x);
        INF_TRY(inf_rewrite_set_input(rewrite, at->node, i, x.bytes));
    }
    inf_rewrite_absorb(rewrite, at->node, at->quantize);
    return INF_OK;
}

// --- the pass ---

// Swaps the dequantize node `index` of a constant with a transpose that alone reads it.
static enum inf_code sink(struct inf_rewrite *rewrite, uint32_t index)
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
    if (bytes->data == NULL || !is_byte(bytes->dtype) || perm.count != rank)
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
    struct product at = {.quantize = index, .cut = INF_NODE_NONE, .bounds = {-INFINITY, INFINITY}};
    if (graph->values[node->inputs[0]].dtype != INF_DTYPE_F32 ||
        !read_meaning(graph, node, node->outputs[0], &at.y) || at.y.scale_count != 1)
        return INF_OK;
    at.node = inf_rewrite_sole_producer(rewrite, node->inputs[0]);
    if (at.node != INF_NODE_NONE && is_cut(&graph->nodes[at.node], &at.bounds)) {
        at.cut = at.node;
        at.node = inf_rewrite_sole_producer(rewrite, graph->nodes[at.cut].inputs[0]);
    }
    if (at.node == INF_NODE_NONE)
        return INF_OK;
    struct product found = at;
    if (find_product(rewrite, &found))
        return fuse_product(rewrite, &found);
    INF_TRY(fuse_binary(rewrite, &at));
    return rewrite->gone[at.node] ? INF_OK : fuse_move(rewrite, &at);
}

enum inf_code inf_pass_quantize(struct inf_rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->graph->node_count; i++) {
        if (rewrite->gone[i])
            continue;
        if (rewrite->graph->nodes[i].op == INF_OP_TRANSPOSE)
            INF_TRY(sink(rewrite, i));
        else if (rewrite->graph->nodes[i].op == INF_OP_QUANTIZE)
            INF_TRY(visit_quantize(rewrite, i));
    }
    return INF_OK;
}
