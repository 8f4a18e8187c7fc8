// SPDX-License-Identifier: Apache-2.0
// Normalisations (softmax, batch_norm, lrn over neighbouring channels, normalize over axes), and
// quantisation.
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

enum inf_code inf_ref_lrn(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_lrn *attrs = &call->node->attrs.lrn;
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t channels = x->shape->dims[x->shape->rank - 1];
    for (size_t i = 0; i < y->count; i++) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        int64_t channel = (int64_t)i % channels;
        int64_t first = INF_MAX(channel - attrs->before, (int64_t)0);
        int64_t last = INF_MIN(channel + attrs->after, channels - 1);
        double sum = 0;
        for (int64_t c = first; c <= last; c++) {
            double value = inf_ref_get(x, i - (size_t)channel + (size_t)c);
            sum += value * value;
        }
        inf_ref_put(y, i, inf_ref_get(x, i) / pow(attrs->bias + attrs->alpha * sum, attrs->beta));
    }
    return INF_OK;
}

// Computes mean and variance of the elements that the walk `go` visits. For rms normalisation,
// computes 0 and the mean square instead.
static void compute_moments(const struct inf_ref_tensor *x, size_t base, struct inf_ref_walk *go,
                            size_t count, bool rms, double *mean, double *variance)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++, inf_ref_walk_next(go))
        sum += inf_ref_get(x, base + (size_t)go->offsets[0]);
    *mean = rms ? 0 : sum / (double)count;
    for (size_t i = 0; i < count; i++, inf_ref_walk_next(go)) {
        double distance = inf_ref_get(x, base + (size_t)go->offsets[0]) - *mean;
        squares += distance * distance;
    }
    *variance = squares / (double)count;
}

enum inf_code inf_ref_normalize(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_normalize *attrs = &call->node->attrs.normalize;
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    struct inf_ref_walk whole, stay, go;
    inf_ref_walk_init(&whole, x->shape);
    for (uint32_t i = 0; i < 3; i++)
        if (inf_ref_has_input(call, i))
            inf_ref_walk_broadcast(&whole, i, call->inputs[i].shape);
    inf_ref_walk_split(&whole, &attrs->axes, &stay, &go);
    size_t count = 1, groups = 1;
    for (int32_t i = 0; i < go.rank; i++)
        count *= (size_t)go.dims[i];
    for (int32_t i = 0; i < stay.rank; i++)
        groups *= (size_t)stay.dims[i];
    for (size_t i = 0; count != 0 && i < groups; i++, inf_ref_walk_next(&stay)) {
        double mean, variance;
        compute_moments(x, (size_t)stay.offsets[0], &go, count, attrs->kind == INF_NORMALIZE_RMS,
                        &mean, &variance);
        double divisor = sqrt(variance + attrs->epsilon);
        for (size_t j = 0; j < count; j++, inf_ref_walk_next(&go)) {
            size_t at = (size_t)(stay.offsets[0] + go.offsets[0]);
            double value = (inf_ref_get(x, at) - mean) / divisor;
            if (inf_ref_has_input(call, 1))
                value *= inf_ref_get(&call->inputs[1], (size_t)(stay.offsets[1] + go.offsets[1]));
            if (inf_ref_has_input(call, 2))
                value += inf_ref_get(&call->inputs[2], (size_t)(stay.offsets[2] + go.offsets[2]));
            inf_ref_put(y, at, value);
        }
    }
    return INF_OK;
}

// --- quantize and dequantize ---

// Returns the index in `parameter` (a scale or zero point) of the element that applies to element
// `i` of x.
static size_t parameter_of(const struct inf_ref_tensor *parameter, const struct inf_shape *x,
                           int32_t axis_attr, size_t i)
{
    if (parameter->count == 1)
        return 0;
    int32_t axis = inf_ref_axis(axis_attr, x->rank);
    return i / inf_ref_extent(x, axis + 1, x->rank) % (size_t)x->dims[axis];
}

// Returns x[i] / scale, rounded once to float, or to double if x is FP64. Devices divide in the
// same type, so rounding to an integer later gives the same result on all devices.
static double compute_quotient(const struct inf_ref_tensor *x, size_t i, double scale)
{
    double value = inf_ref_get(x, i);
    return x->dtype == INF_DTYPE_F64 ? value / scale : (double)((float)value / (float)scale);
}

enum inf_code inf_ref_quantize(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    int32_t axis = call->node->attrs.quantize.axis;
    const struct inf_ref_tensor *x = &call->inputs[0], *scale = &call->inputs[1];
    const struct inf_ref_tensor *zero = inf_ref_has_input(call, 2) ? &call->inputs[2] : NULL;
    const struct inf_ref_tensor *y = &call->outputs[0];
    for (size_t i = 0; i < y->count; i++) {
        double divisor = inf_ref_get(scale, parameter_of(scale, x->shape, axis, i));
        double value = nearbyint(compute_quotient(x, i, divisor));
        if (zero != NULL)
            value += inf_ref_get(zero, parameter_of(zero, x->shape, axis, i));
        inf_ref_put(y, i, value); // clamps to the type's range
    }
    return INF_OK;
}

enum inf_code inf_ref_dequantize(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    int32_t axis = call->node->attrs.dequantize.axis;
    const struct inf_ref_tensor *x = &call->inputs[0], *scale = &call->inputs[1];
    const struct inf_ref_tensor *zero = inf_ref_has_input(call, 2) ? &call->inputs[2] : NULL;
    const struct inf_ref_tensor *y = &call->outputs[0];
    for (size_t i = 0; i < y->count; i++) {
        __int128 value = inf_ref_load_int(x, i);
        if (zero != NULL)
            value -= inf_ref_load_int(zero, parameter_of(zero, x->shape, axis, i));
        inf_ref_put(y, i,
                    (double)value * inf_ref_get(scale, parameter_of(scale, x->shape, axis, i)));
    }
    return INF_OK;
}
