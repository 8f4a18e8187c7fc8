// SPDX-License-Identifier: Apache-2.0
// The pass `recognize`: replaces gelu, silu, hard swish, and RMS and layer normalisations that
// exporters write with sums, products and powers by one node, and padding that they write as a
// concatenation.
//
//     x * (erf(x / sqrt(2)) + 1) * 0.5                                   gelu
//     x * 0.5 * (tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)) + 1)          gelu_tanh
//     x * sigmoid(x)                                                     silu
//     x * clip(x + 3, 0, 6) / 6                                          hard_swish
//     x * clip(x / 6 + 0.5, 0, 1)                                        hard_swish
//
// The idea: products are flattened to a list of factors and one constant, so that the order of the
// factors does not matter. Products are visited from the last to the first, so that the outermost
// product of a form comes first. An inner node of a form is kept if a node outside the form reads
// it. Constants may differ from the exact ones by TOLERANCE, because exporters round them; the
// results then differ by about the same relative error.
#include "backends/graph/pass/recognize.h"

#include <math.h>

#include "backends/graph/pass/passes.h"

#define TOLERANCE   1e-5
#define FACTORS_MAX 3

// --- products as a list of factors ---

struct product {
    uint32_t factors[FACTORS_MAX];
    uint32_t count;
    double scale;
};

// Multiplies *scale by the constant factors of `value`, and returns the value without them. Stops
// at a node that has other readers.
static uint32_t strip_scale(const struct inf_rewrite *rewrite, uint32_t value, double *scale)
{
    uint32_t x;
    double factor;
    while (inf_rewrite_sole_producer(rewrite, value) != INF_NODE_NONE &&
           inf_recognize_scalar(rewrite->graph, value, INF_BINARY_MUL, &x, &factor)) {
        *scale *= factor;
        value = x;
    }
    return value;
}

// Adds the factors of `value` to the product. `top` is the result of the whole product, which may
// have any number of readers. Returns false if there are too many factors.
static bool flatten_product(const struct inf_rewrite *rewrite, uint32_t value, bool top,
                            struct product *product)
{
    const struct inf_graph *graph = rewrite->graph;
    uint32_t x;
    double factor;
    bool inner = top || inf_rewrite_sole_producer(rewrite, value) != INF_NODE_NONE;
    if (inner && inf_recognize_scalar(graph, value, INF_BINARY_MUL, &x, &factor)) {
        product->scale *= factor;
        return flatten_product(rewrite, x, false, product);
    }
    const struct inf_node *node = inner ? inf_recognize_binary(graph, value, INF_BINARY_MUL) : NULL;
    if (node != NULL)
        return flatten_product(rewrite, node->inputs[0], false, product) &&
               flatten_product(rewrite, node->inputs[1], false, product);
    if (product->count == FACTORS_MAX)
        return false;
    product->factors[product->count++] = value;
    return true;
}

static bool is_near(double value, double wanted)
{
    return fabs(value - wanted) <= TOLERANCE * fabs(wanted);
}

// --- matching gelu and silu ---

// Returns true if `value` is x^3 * scale for the value x.
static bool is_cube(const struct inf_rewrite *rewrite, uint32_t value, uint32_t x, double *scale)
{
    const struct inf_graph *graph = rewrite->graph;
    uint32_t base;
    float power;
    value = strip_scale(rewrite, value, scale);
    const struct inf_node *node = inf_recognize_binary(graph, value, INF_BINARY_POW);
    if (node != NULL)
        return node->inputs[0] == x &&
               inf_rewrite_read_scalar(graph, node->inputs[1], graph->values[x].shape.rank,
                                       &power) &&
               power == 3.0f;
    node = inf_recognize_binary(graph, value, INF_BINARY_MUL);
    for (uint32_t i = 0; node != NULL && i < 2; i++) {
        double inner = 1;
        uint32_t square = strip_scale(rewrite, node->inputs[1 - i], &inner);
        if (node->inputs[i] == x && inf_recognize_square(graph, square, &base) && base == x) {
            *scale *= inner;
            return true;
        }
    }
    return false;
}

// Returns true if `value` is scale * (x + 0.044715 x^3), in one of the forms
//     (x + c * x^3) * scale          x * scale * (1 + c * x^2)
static bool is_gelu_argument(const struct inf_rewrite *rewrite, uint32_t value, uint32_t x,
                             double *scale)
{
    const struct inf_graph *graph = rewrite->graph;
    value = strip_scale(rewrite, value, scale);
    const struct inf_node *sum = inf_recognize_binary(graph, value, INF_BINARY_ADD);
    for (uint32_t i = 0; sum != NULL && i < 2; i++) {
        double cubic = 1;
        if (sum->inputs[i] == x && is_cube(rewrite, sum->inputs[1 - i], x, &cubic) &&
            is_near(cubic, 0.044715))
            return true;
    }
    const struct inf_node *product = inf_recognize_binary(graph, value, INF_BINARY_MUL);
    for (uint32_t i = 0; product != NULL && i < 2; i++) {
        uint32_t square, base;
        double one, quadratic = 1, outer = 1;
        if (strip_scale(rewrite, product->inputs[i], &outer) != x ||
            !inf_recognize_scalar(graph, product->inputs[1 - i], INF_BINARY_ADD, &square, &one))
            continue;
        square = strip_scale(rewrite, square, &quadratic);
        if (one == 1 && inf_recognize_square(graph, square, &base) && base == x &&
            is_near(quadratic, 0.044715)) {
            *scale *= outer;
            return true;
        }
    }
    return false;
}

// Returns true if `factor` is 1 + erf(x / sqrt(2)) or 1 + tanh(...), and sets *kind.
static bool is_gelu_factor(const struct inf_rewrite *rewrite, uint32_t factor, uint32_t x,
                           enum inf_unary_kind *kind)
{
    const struct inf_graph *graph = rewrite->graph;
    uint32_t inner;
    double one, scale = 1;
    if (!inf_recognize_scalar(graph, factor, INF_BINARY_ADD, &inner, &one) || one != 1)
        return false;
    const struct inf_node *node = inf_recognize_unary(graph, inner, INF_UNARY_ERF);
    if (node != NULL) {
        *kind = INF_UNARY_GELU;
        return strip_scale(rewrite, node->inputs[0], &scale) == x && is_near(scale, sqrt(0.5));
    }
    node = inf_recognize_unary(graph, inner, INF_UNARY_TANH);
    *kind = INF_UNARY_GELU_TANH;
    return node != NULL && is_gelu_argument(rewrite, node->inputs[0], x, &scale) &&
           is_near(scale, sqrt(2 / acos(-1.0)));
}

// Returns true if `value` is clip(u, 0, *max), and sets *inner to u.
static bool is_clip_from_zero(const struct inf_graph *graph, uint32_t value, uint32_t *inner,
                              float *max)
{
    uint32_t producer = graph->values[value].producer;
    if (producer == INF_NODE_NONE || graph->values[value].dtype != INF_DTYPE_F32)
        return false;
    const struct inf_node *node = &graph->nodes[producer];
    *inner = node->inputs[0];
    *max = node->op == INF_OP_CLIP ? node->attrs.clip.max : 6;
    return node->op == INF_OP_CLIP
               ? node->attrs.clip.min == 0
               : node->op == INF_OP_UNARY && node->attrs.unary.kind == INF_UNARY_RELU6;
}

// Returns true if `factor` is clip(x + 3, 0, 6), or clip(x / 6 + 0.5, 0, 1), which is a sixth of
// it. The product with x has the constant factor `scale`, which must make it hard_swish(x).
static bool is_hard_swish_factor(const struct inf_graph *graph, uint32_t factor, uint32_t x,
                                 double scale)
{
    uint32_t sum, inner, base;
    float max;
    double offset, sixth;
    if (!is_clip_from_zero(graph, factor, &sum, &max) ||
        !inf_recognize_scalar(graph, sum, INF_BINARY_ADD, &inner, &offset))
        return false;
    if (max == 6)
        return inner == x && offset == 3 && is_near(scale, 1.0 / 6);
    return max == 1 && offset == 0.5 && scale == 1 &&
           inf_recognize_scalar(graph, inner, INF_BINARY_MUL, &base, &sixth) && base == x &&
           is_near(sixth, 1.0 / 6);
}

// Finds the function of x that the product computes. Returns false if it is none of the functions
// listed at the top of this file.
static bool find_function(const struct inf_rewrite *rewrite, const struct product *product,
                          uint32_t *x, enum inf_unary_kind *kind)
{
    for (uint32_t i = 0; product->count == 2 && i < 2; i++) {
        uint32_t factor = product->factors[1 - i];
        *x = product->factors[i];
        if (product->scale == 0.5 && is_gelu_factor(rewrite, factor, *x, kind))
            return true;
        const struct inf_node *node =
            inf_recognize_unary(rewrite->graph, factor, INF_UNARY_SIGMOID);
        *kind = INF_UNARY_SILU;
        if (product->scale == 1 && node != NULL && node->inputs[0] == *x)
            return true;
        *kind = INF_UNARY_HARD_SWISH;
        if (is_hard_swish_factor(rewrite->graph, factor, *x, product->scale))
            return true;
    }
    return false;
}

static enum inf_code recognize_function(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_node *node = &rewrite->graph->nodes[index];
    struct product product = {.scale = 1};
    enum inf_unary_kind kind;
    uint32_t x;
    if (node->op != INF_OP_BINARY || !flatten_product(rewrite, node->outputs[0], true, &product) ||
        !find_function(rewrite, &product, &x, &kind))
        return INF_OK;
    INF_TRY(inf_recognize_replace(rewrite, index, INF_OP_UNARY, x));
    node->attrs.unary.kind = kind;
    return INF_OK;
}

enum inf_code inf_pass_recognize(struct inf_rewrite *rewrite)
{
    uint32_t node_count = rewrite->graph->node_count;
    for (uint32_t i = node_count; i-- > 0;)
        INF_TRY(recognize_function(rewrite, i));
    // In forward order, because the scale and the offset follow the normalisation.
    for (uint32_t i = 0; i < node_count; i++)
        if (!rewrite->removed[i])
            INF_TRY(inf_recognize_norm(rewrite, i));
    for (uint32_t i = 0; i < node_count; i++)
        if (!rewrite->removed[i])
            INF_TRY(inf_recognize_pad(rewrite, i));
    return INF_OK;
}
