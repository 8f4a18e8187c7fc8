// SPDX-License-Identifier: Apache-2.0
// From scores to classes: the functions of the attribute post_transform, and the choice of a label.
// Where the specification of ai.onnx.ml is silent, as on classifiers with one score for two
// classes, this follows ONNX Runtime, which exporters test with.
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/classic/classes.h"

// Adds the inverse of the normal distribution's integral, by Winitzki's approximation of the
// inverse error function with the constant that ONNX Runtime has.
static uint32_t add_probit(struct inf_builder *b, uint32_t p)
{
    uint32_t x = inf_build_binary_number(b, INF_BINARY_SUB,
                                         inf_build_binary_number(b, INF_BINARY_MUL, p, 2), 1);
    uint32_t one = inf_build_scalar(b, INF_DTYPE_F32, 1);
    uint32_t rest = inf_build_mul(b, inf_build_sub(b, one, x), inf_build_add(b, one, x));
    uint32_t log = inf_build_unary(b, INF_UNARY_LOG, rest);
    uint32_t half = inf_build_binary_number(b, INF_BINARY_MUL, log, 0.5);
    half = inf_build_binary_number(b, INF_BINARY_ADD, half, 2 / (3.14159 * 0.147));
    uint32_t square = inf_build_sub(b, inf_build_mul(b, half, half),
                                    inf_build_binary_number(b, INF_BINARY_MUL, log, 1 / 0.147));
    uint32_t root = inf_build_sub(b, inf_build_unary(b, INF_UNARY_SQRT, square), half);
    uint32_t size = inf_build_unary(b, INF_UNARY_SQRT, root);
    uint32_t negative =
        inf_build_compare(b, INF_COMPARE_LESS, x, inf_build_scalar(b, INF_DTYPE_F32, 0));
    uint32_t y = inf_build_select(b, negative, inf_build_unary(b, INF_UNARY_NEG, size), size);
    return inf_build_binary_number(b, INF_BINARY_MUL, y, M_SQRT2);
}

// Adds a softmax along the last axis in which scores of 0 stay 0 and the others share the sum.
// Like ONNX Runtime, treats scores within 1e-7 of 0 as 0, and multiplies them by e^-max.
static uint32_t add_softmax_zero(struct inf_builder *b, uint32_t x)
{
    const struct inf_ints axis = {.count = 1, .values = {inf_build_rank(b, x) - 1}};
    uint32_t top = inf_build_reduce(b, INF_REDUCE_MAX, x, &axis, true);
    uint32_t is_zero =
        inf_build_compare(b, INF_COMPARE_LESS_EQUAL, inf_build_unary(b, INF_UNARY_ABS, x),
                          inf_build_scalar(b, INF_DTYPE_F32, 1e-7));
    uint32_t power = inf_build_unary(b, INF_UNARY_EXP, inf_build_sub(b, x, top));
    uint32_t small = inf_build_mul(
        b, x, inf_build_unary(b, INF_UNARY_EXP, inf_build_unary(b, INF_UNARY_NEG, top)));
    uint32_t zero = inf_build_scalar(b, INF_DTYPE_F32, 0);
    uint32_t sum =
        inf_build_reduce(b, INF_REDUCE_SUM, inf_build_select(b, is_zero, zero, power), &axis, true);
    return inf_build_div(b, inf_build_select(b, is_zero, small, power), sum);
}

uint32_t inf_onnx_apply_transform(struct inf_onnx_scope *s, uint32_t x, const char *name)
{
    if (strcmp(name, "SOFTMAX") == 0)
        return inf_build_softmax(&s->b, x, -1, false);
    if (strcmp(name, "LOGISTIC") == 0)
        return inf_build_unary(&s->b, INF_UNARY_SIGMOID, x);
    if (strcmp(name, "SOFTMAX_ZERO") == 0)
        return add_softmax_zero(&s->b, x);
    if (strcmp(name, "PROBIT") == 0)
        return add_probit(&s->b, x);
    if (strcmp(name, "NONE") != 0)
        inf_build_fail(&s->b, INF_INVALID, "post_transform is '%.20s'", name);
    return x;
}

uint32_t inf_onnx_post_transform(struct inf_onnx_scope *s, uint32_t x)
{
    return inf_onnx_apply_transform(s, x, inf_onnx_attr_text(s, "post_transform", "NONE"));
}

void inf_onnx_choose_label(struct inf_onnx_scope *s, const struct inf_onnx_classes *classes,
                           uint32_t y)
{
    struct inf_build_node node = inf_build_describe(INF_OP_ARG, y, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.arg.axis = 1;
    s->outputs[0] = inf_build_gather(&s->b, classes->labels, inf_build_value(&s->b, &node), 0);
}

void inf_onnx_choose_class(struct inf_onnx_scope *s, const struct inf_onnx_classes *classes,
                           uint32_t y)
{
    inf_onnx_choose_label(s, classes, y);
    inf_onnx_set_scores(s, inf_onnx_post_transform(s, y));
}

uint32_t inf_onnx_pair_scores(struct inf_onnx_scope *s, uint32_t y, bool from_one)
{
    const char *name = inf_onnx_attr_text(s, "post_transform", "NONE");
    bool is_logistic = strcmp(name, "LOGISTIC") == 0;
    if (strcmp(name, "PROBIT") == 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "post_transform is PROBIT for one score of two");
    uint32_t other = from_one && !is_logistic
                         ? inf_build_sub(&s->b, inf_build_scalar(&s->b, INF_DTYPE_F32, 1), y)
                         : inf_build_unary(&s->b, INF_UNARY_NEG, y);
    const uint32_t both[] = {other, y};
    uint32_t scores = inf_build_concat(&s->b, both, 2, 1);
    return is_logistic ? inf_build_unary(&s->b, INF_UNARY_SIGMOID, scores) : scores;
}

void inf_onnx_choose_of_two(struct inf_onnx_scope *s, const struct inf_onnx_classes *classes,
                            uint32_t y, double border)
{
    uint32_t above = inf_build_compare(&s->b, INF_COMPARE_GREATER, y,
                                       inf_build_scalar(&s->b, INF_DTYPE_F32, border));
    uint32_t index =
        inf_build_reshape(&s->b, inf_build_cast(&s->b, above, INF_DTYPE_I32), (int64_t[]){-1}, 1);
    s->outputs[0] = inf_build_gather(&s->b, classes->labels, index, 0);
}

void inf_onnx_set_scores(struct inf_onnx_scope *s, uint32_t scores)
{
    if (s->output_count > 1)
        s->outputs[1] = scores;
}
