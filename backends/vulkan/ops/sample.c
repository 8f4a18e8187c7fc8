// SPDX-License-Identifier: Apache-2.0
// Computes samples of results in double, from the operands that a shader read.
#include "backends/vulkan/ops/sample.h"

#include <math.h>

// The number of results of a convolution or a product that are checked.
#define SAMPLES 61u
// This step spreads the samples over all rows and columns. It is a prime number, so that it has no
// factor in common with usual sizes.
#define STEP 7919u

// Adds the product of two numbers.
static void add_product(struct vk_sample *sample, double a, double b)
{
    sample->sum += a * b;
    sample->size += fabs(a * b);
}

// Returns the row or column of x that tap `tap` of the window covers, or -1 if that is padding.
static int64_t source_position(const struct vk_conv *conv, uint32_t at, uint32_t tap,
                               uint32_t stride, uint32_t dilation, int32_t pad, uint32_t size)
{
    int64_t position = conv->transposed ? (int64_t)at + pad - (int64_t)tap * dilation
                                        : (int64_t)at * stride + (int64_t)tap * dilation - pad;
    if (conv->transposed) {
        if (position < 0 || position % stride != 0)
            return -1;
        position /= stride;
    }
    return position >= 0 && position < size ? position : -1;
}

// Adds the products of one tap with all input channels of the group. `pixel` is NULL outside the
// image.
static void add_tap(struct vk_sample *sample, const struct vk_conv *conv, const float *pixel,
                    double pixel_min, uint32_t tap, uint32_t out)
{
    const struct vk_conv_weights *weights = &conv->weights;
    bool depthwise = weights->groups == 1 && weights->group_in == 1 && conv->window.in_c > 1;
    uint32_t first =
        depthwise ? out / conv->window.group_out : out / weights->group_out * weights->group_in;
    for (uint32_t in = 0; in < weights->group_in; in++) {
        double x = pixel != NULL ? (double)pixel[first + in] : 0;
        double weight = (double)weights->from[tap * weights->tap_stride + in * weights->in_stride +
                                              out * weights->out_stride];
        if (pixel != NULL)
            add_product(sample, x, weight);
        if (fabs(x) < pixel_min)
            sample->size += (pixel_min - fabs(x)) * fabs(weight);
    }
}

static struct vk_sample compute_conv(const struct vk_sampled *sampled, size_t at)
{
    const struct vk_conv *conv = sampled->node;
    const float *x = sampled->inputs[0], *bias = sampled->inputs[1];
    const struct vk_window *window = &conv->window;
    size_t pixel = at / window->out_c;
    uint32_t out = (uint32_t)(at % window->out_c);
    uint32_t column = (uint32_t)(pixel % window->out_w);
    uint32_t row = (uint32_t)(pixel / window->out_w % window->out_h);
    size_t image = pixel / window->out_w / window->out_h;
    struct vk_sample sample = {bias != NULL ? (double)bias[out] : 0, 0};
    sample.size = fabs(sample.sum);
    for (uint32_t tap = 0; tap < conv->weights.taps; tap++) {
        int64_t from_row = source_position(conv, row, tap / window->kernel_w, window->stride_h,
                                           window->dilation_h, window->pad_top, window->in_h);
        int64_t from_column =
            source_position(conv, column, tap % window->kernel_w, window->stride_w,
                            window->dilation_w, window->pad_left, window->in_w);
        const float *from = NULL;
        if (from_row >= 0 && from_column >= 0)
            from = x + ((image * window->in_h + (size_t)from_row) * window->in_w +
                        (size_t)from_column) *
                           window->in_c;
        add_tap(&sample, conv, from, sampled->pixel_min, tap, out);
    }
    return sample;
}

static struct vk_sample compute_product(const struct vk_sampled *sampled, size_t at)
{
    const struct vk_product *product = sampled->node;
    const struct vk_product_push *push = &product->push;
    size_t column = at % push->n, row = at / push->n % push->m, batch = at / push->n / push->m;
    size_t a = row * push->a_row, b = column * push->b_column;
    for (uint32_t i = 0; i < push->batch_axes; i++) {
        a += batch % push->batch_dims[i] * push->a_batch[i];
        b += batch % push->batch_dims[i] * push->b_batch[i];
        batch /= push->batch_dims[i];
    }
    struct vk_sample sample = {product->bias ? (double)sampled->inputs[2][column] : 0, 0};
    sample.size = fabs(sample.sum);
    for (size_t k = 0; k < push->k; k++)
        add_product(&sample, (double)sampled->inputs[0][a + k * push->a_column],
                    (double)sampled->inputs[1][b + k * push->b_row]);
    return sample;
}

// Applies the activation; returns NaN if it is none of the simple ones.
static double apply_activation(const struct vk_sampled *sampled, double value, size_t channel)
{
    const struct vk_activation *activation = &sampled->activation;
    switch (activation->function) {
    case FN_NONE:
        return value;
    case FN_CLIP:
        return fmin(fmax(value, (double)activation->low), (double)activation->high);
    case FN_LEAKY_RELU:
        return value >= 0 ? value
                          : value * (double)(activation->prelu ? sampled->slopes[channel]
                                                               : activation->low);
    default:
        return (double)NAN;
    }
}

double vk_sample_error(const struct vk_sampled *sampled, const float *y, double most)
{
    double largest = 0;
    for (size_t i = 0; i < sampled->samples; i++) {
        size_t at = i * STEP * (sampled->count / sampled->samples + 1) % sampled->count;
        struct vk_sample sample = sampled->compute(sampled, at);
        if (!(sample.size <= most))
            continue;
        double wanted = apply_activation(sampled, sample.sum, at % sampled->channels);
        if (isnan(wanted))
            return -1;
        double error = fabs((double)y[at] - wanted);
        if (!isfinite(error))
            return (double)INFINITY;
        largest = fmax(largest, error / fmax(sample.size, 1e-30));
    }
    return largest;
}

double vk_conv_sample_error(const struct vk_conv *conv, const float *bias, const float *x,
                            const float *y, double most, double pixel_min)
{
    const struct vk_window *window = &conv->window;
    const struct vk_sampled sampled = {.node = conv,
                                       .inputs = {x, bias},
                                       .count = (size_t)conv->images * window->out_h *
                                                window->out_w * window->out_c,
                                       .channels = window->out_c,
                                       .samples = SAMPLES,
                                       .activation = conv->activation,
                                       .slopes = conv->slopes,
                                       .pixel_min = pixel_min,
                                       .compute = compute_conv};
    return vk_sample_error(&sampled, y, most);
}

double vk_product_sample_error(const struct vk_product *product, const float *a, const float *b,
                               const float *bias, const float *y, double most)
{
    const struct vk_product_push *push = &product->push;
    const struct vk_sampled sampled = {
        .node = product,
        .inputs = {a, b, bias},
        .count = (size_t)product->batch * push->m * push->n,
        .channels = push->n,
        .samples = SAMPLES,
        .activation = {product->function, push->low, push->high, false},
        .compute = compute_product};
    return vk_sample_error(&sampled, y, most);
}
