// SPDX-License-Identifier: Apache-2.0
// Softmax and normalisations along the last axis.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/ops/softmax16.h"

// The least norm that L2_NORMALIZATION divides by.
#define L2_EPSILON 1e-6

// The most elements of a row whose sum of exponentials fits 31 bits.
#define SOFTMAX16_DEPTH_MAX 65536

// Returns true if a softmax is computed in fixed point, as all runtimes of TFLite do: from 16-bit
// integers to 16-bit integers in units of 2^-15.
static bool is_fixed_softmax(struct inf_tflite_scope *s, float beta)
{
    const struct inf_tflite_quantization *x = &inf_tflite_input_tensor(s, 0)->quantization;
    const struct inf_tflite_quantization *y = &inf_tflite_output_tensor(s, 0)->quantization;
    const struct inf_shape *shape = &inf_tflite_input_tensor(s, 0)->signature;
    if (inf_tflite_type_info(inf_tflite_input_tensor(s, 0)->type).dtype != INF_DTYPE_I16 ||
        inf_tflite_type_info(inf_tflite_output_tensor(s, 0)->type).dtype != INF_DTYPE_I16)
        return false;
    return x->count == 1 && y->count == 1 && y->zeros[0] == 0 && x->scales[0] > 0 && beta > 0 &&
           fabsf(y->scales[0] * 32768 - 1) < 1e-3f && shape->rank > 0 &&
           shape->dims[shape->rank - 1] >= 1 && shape->dims[shape->rank - 1] <= SOFTMAX16_DEPTH_MAX;
}

static void lower_softmax(struct inf_tflite_scope *s)
{
    float beta = inf_tflite_option_float(s, 0, "beta");
    if (inf_build_ok(&s->b) && is_fixed_softmax(s, beta)) {
        double scale = (double)inf_tflite_input_tensor(s, 0)->quantization.scales[0];
        s->outputs[0] = inf_tflite_softmax16(&s->b, inf_tflite_stored(s, 0), scale * (double)beta);
        return;
    }
    uint32_t x = inf_tflite_real(s, 0);
    if (beta != 1)
        x = inf_build_binary_number(&s->b, INF_BINARY_MUL, x, beta);
    s->outputs[0] = inf_build_softmax(&s->b, x, -1, false);
}

static void lower_log_softmax(struct inf_tflite_scope *s)
{
    s->outputs[0] = inf_build_softmax(&s->b, inf_tflite_real(s, 0), -1, true);
}

static void lower_l2_normalization(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_real(s, 0);
    struct inf_ints last = {.count = 1, .values = {inf_build_rank(&s->b, x) - 1}};
    if (inf_build_ok(&s->b) && last.values[0] < 0)
        inf_build_fail(&s->b, INF_INVALID, "x is a scalar, wanted at least one axis");
    uint32_t squares = inf_build_unary(&s->b, INF_UNARY_SQUARE, x);
    uint32_t norm = inf_build_reduce(&s->b, INF_REDUCE_SUM, squares, &last, true);
    norm = inf_build_unary(&s->b, INF_UNARY_SQRT, norm);
    norm = inf_build_binary_number(&s->b, INF_BINARY_MAX, norm, L2_EPSILON);
    s->outputs[0] = inf_tflite_activate(s, inf_build_div(&s->b, x, norm), 0);
}

static void lower_local_response(struct inf_tflite_scope *s)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_LRN, inf_tflite_real(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    int32_t radius = inf_tflite_option_int(s, 0, "radius");
    node.attrs.lrn.before = radius;
    node.attrs.lrn.after = radius;
    node.attrs.lrn.bias = inf_tflite_option_float(s, 1, "bias");
    node.attrs.lrn.alpha = inf_tflite_option_float(s, 2, "alpha");
    node.attrs.lrn.beta = inf_tflite_option_float(s, 3, "beta");
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_SOFTMAX, NULL, lower_softmax, 1, 1, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_SOFTMAX, 0},
    {INF_TFLITE_LOG_SOFTMAX, NULL, lower_log_softmax, 1, 1, 1, INF_TFLITE_MODE_REAL, 0, 0},
    {INF_TFLITE_L2_NORMALIZATION, NULL, lower_l2_normalization, 1, 1, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_L2_NORM, 0},
    {INF_TFLITE_LOCAL_RESPONSE_NORMALIZATION, NULL, lower_local_response, 1, 1, 1,
     INF_TFLITE_MODE_REAL, INF_TFLITE_OPTIONS_LOCAL_RESPONSE_NORM, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_norm = {ops, INF_ARRAY_LENGTH(ops)};
