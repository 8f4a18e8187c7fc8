// SPDX-License-Identifier: Apache-2.0
// Normalisations: softmax and batch_norm.
#include <math.h>

#include "backends/ref/kernels.h"

// Computes the softmax of `count` elements that are `stride` elements apart and begin at element
// `at`. Computes the logarithm of the softmax if `log_of_it`.
static void softmax_line(const struct inf_ref_tensor *x, const struct inf_ref_tensor *y, size_t at,
                         size_t stride, size_t count, bool log_of_it)
{
    double largest = -INFINITY;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, inf_ref_get(x, at + i * stride));
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += exp(inf_ref_get(x, at + i * stride) - largest);
    for (size_t i = 0; i < count; i++) {
        double value = inf_ref_get(x, at + i * stride) - largest;
        inf_ref_put(y, at + i * stride, log_of_it ? value - log(sum) : exp(value) / sum);
    }
}

enum inf_code inf_ref_softmax(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_softmax *attrs = &call->node->attrs.softmax;
    const struct inf_ref_tensor *x = &call->inputs[0];
    int32_t axis = inf_ref_axis(attrs->axis, x->shape->rank);
    size_t outer = inf_ref_extent(x->shape, 0, axis);
    size_t count = (size_t)x->shape->dims[axis];
    size_t inner = inf_ref_extent(x->shape, axis + 1, x->shape->rank);
    for (size_t i = 0; i < outer; i++)
        for (size_t j = 0; j < inner; j++)
            softmax_line(x, &call->outputs[0], i * count * inner + j, inner, count, attrs->log);
    return INF_OK;
}

enum inf_code inf_ref_batch_norm(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    double epsilon = call->node->attrs.batch_norm.epsilon;
    size_t channels = (size_t)x->shape->dims[x->shape->rank - 1];
    for (size_t i = 0; i < y->count; i++) {
        size_t channel = i % channels;
        double scale = inf_ref_get(&call->inputs[1], channel);
        double offset = inf_ref_get(&call->inputs[2], channel);
        double mean = inf_ref_get(&call->inputs[3], channel);
        double variance = inf_ref_get(&call->inputs[4], channel);
        double value = (inf_ref_get(x, i) - mean) / sqrt(variance + epsilon);
        inf_ref_put(y, i, value * scale + offset);
    }
    return INF_OK;
}
