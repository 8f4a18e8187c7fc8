// SPDX-License-Identifier: Apache-2.0
// Convolutions: conv2d, depthwise_conv2d, conv2d_transpose. Taps in the padding are skipped, so
// that an infinite weight is never multiplied by a padding zero.
#include "backends/graph/shape/infer.h"
#include "backends/ref/kernels.h"

// The number of output channels that are summed at once, because their filter elements are adjacent
// in memory.
#define BLOCK 64

// A convolution of any of the three kinds, with its operands.
struct conv {
    const struct inf_ref_tensor *x, *filter, *y;
    const struct inf_ref_tensor *bias, *alpha; // NULL if absent
    struct inf_window height, width;
    struct inf_ref_activation activation;
    size_t x_channels, y_channels;
    size_t group_in, group_out; // number of input and output channels of one group of a conv2d
};

static struct conv prepare_conv(const struct inf_ref_call *call, uint32_t bias_index)
{
    struct conv conv = {
        .x = &call->inputs[0],
        .filter = &call->inputs[1],
        .y = &call->outputs[0],
        .bias = inf_ref_has_input(call, bias_index) ? &call->inputs[bias_index] : NULL,
        .alpha = inf_ref_has_input(call, bias_index + 1) ? &call->inputs[bias_index + 1] : NULL,
        .activation = inf_ref_node_activation(call->node),
    };
    inf_node_windows(call->graph, call->node, &conv.height, &conv.width);
    conv.x_channels = (size_t)conv.x->shape->dims[3];
    conv.y_channels = (size_t)conv.y->shape->dims[3];
    return conv;
}

// Computes which element of the input lies under tap `tap` of the window for output element
// `position`, along one axis. Returns false if that element is in the padding.
static bool tap_at(const struct inf_window *window, int64_t position, int32_t tap, size_t *at)
{
    int64_t place =
        position * window->stride - window->pad_before + (int64_t)tap * window->dilation;
    if (place < 0 || place >= window->input)
        return false;
    *at = (size_t)place;
    return true;
}

static double finish_element(const struct conv *conv, double sum, size_t channel)
{
    if (conv->bias != NULL)
        sum += inf_ref_get(conv->bias, channel);
    double slope = conv->alpha != NULL ? inf_ref_get(conv->alpha, channel) : 0;
    return inf_ref_activate(&conv->activation, sum, slope);
}

// The image, row and column of one output pixel.
struct place {
    size_t image;
    int64_t row, column;
};

static size_t element_of(const struct inf_ref_tensor *tensor, size_t image, size_t row,
                         size_t column)
{
    const int64_t *dims = tensor->shape->dims;
    return ((image * (size_t)dims[1] + row) * (size_t)dims[2] + column) * (size_t)dims[3];
}

// Adds the products of one tap (one position in the filter window) to sums[0..count-1], which
// belong to the `count` output channels from `first` on.
static void add_tap(const struct conv *conv, double *sums, size_t x_at, size_t filter_at,
                    size_t count)
{
    for (size_t c = 0; c < conv->group_in; c++) {
        double x = inf_ref_get(conv->x, x_at + c);
        size_t row = filter_at + c * conv->y_channels;
        for (size_t j = 0; j < count; j++)
            sums[j] += x * inf_ref_get(conv->filter, row + j);
    }
}

// Computes output channels [first, first + count) of one pixel; all belong to one group.
static void conv_block(const struct conv *conv, const struct place *at, size_t first, size_t count)
{
    double sums[BLOCK] = {0};
    size_t x_channel = first / conv->group_out * conv->group_in;
    for (int32_t ky = 0; ky < conv->height.kernel; ky++) {
        size_t row;
        if (!tap_at(&conv->height, at->row, ky, &row))
            continue;
        for (int32_t kx = 0; kx < conv->width.kernel; kx++) {
            size_t column;
            if (!tap_at(&conv->width, at->column, kx, &column))
                continue;
            size_t tap = (size_t)ky * (size_t)conv->width.kernel + (size_t)kx;
            add_tap(conv, sums, element_of(conv->x, at->image, row, column) + x_channel,
                    tap * conv->group_in * conv->y_channels + first, count);
        }
    }
    size_t y_at = element_of(conv->y, at->image, (size_t)at->row, (size_t)at->column) + first;
    for (size_t j = 0; j < count; j++)
        inf_ref_put(conv->y, y_at + j, finish_element(conv, sums[j], first + j));
}

static void conv_place(const struct conv *conv, const struct place *at)
{
    for (size_t group = 0; group < conv->y_channels; group += conv->group_out)
        for (size_t done = 0; done < conv->group_out; done += BLOCK)
            conv_block(conv, at, group + done, INF_MIN((size_t)BLOCK, conv->group_out - done));
}

static void depthwise_place(const struct conv *conv, const struct place *at)
{
    size_t multiplier = (size_t)conv->filter->shape->dims[3];
    size_t y_at = element_of(conv->y, at->image, (size_t)at->row, (size_t)at->column);
    for (size_t channel = 0; channel < conv->y_channels; channel++) {
        double sum = 0;
        for (int32_t ky = 0; ky < conv->height.kernel; ky++) {
            size_t row;
            if (!tap_at(&conv->height, at->row, ky, &row))
                continue;
            for (int32_t kx = 0; kx < conv->width.kernel; kx++) {
                size_t column;
                if (!tap_at(&conv->width, at->column, kx, &column))
                    continue;
                size_t tap = (size_t)ky * (size_t)conv->width.kernel + (size_t)kx;
                size_t x_at = element_of(conv->x, at->image, row, column) + channel / multiplier;
                sum += inf_ref_get(conv->x, x_at) *
                       inf_ref_get(conv->filter, tap * conv->y_channels + channel);
            }
        }
        inf_ref_put(conv->y, y_at + channel, finish_element(conv, sum, channel));
    }
}

// Computes which element along an axis of the transposed convolution's input contributes to
// `position` of its output through tap `tap`. Returns false if none does.
static bool source_of(const struct inf_window *window, int64_t position, int32_t tap, size_t *at)
{
    int64_t place = position + window->pad_before - (int64_t)tap * window->dilation;
    if (place < 0 || place % window->stride != 0 || place / window->stride >= window->output)
        return false;
    *at = (size_t)(place / window->stride);
    return true;
}

static double transposed_sum(const struct conv *conv, const struct place *at, size_t channel)
{
    double sum = 0;
    for (int32_t ky = 0; ky < conv->height.kernel; ky++) {
        size_t row;
        if (!source_of(&conv->height, at->row, ky, &row))
            continue;
        for (int32_t kx = 0; kx < conv->width.kernel; kx++) {
            size_t column;
            if (!source_of(&conv->width, at->column, kx, &column))
                continue;
            size_t tap = (size_t)ky * (size_t)conv->width.kernel + (size_t)kx;
            size_t x_at = element_of(conv->x, at->image, row, column);
            size_t filter_at = (tap * conv->y_channels + channel) * conv->x_channels;
            for (size_t c = 0; c < conv->x_channels; c++)
                sum += inf_ref_get(conv->x, x_at + c) * inf_ref_get(conv->filter, filter_at + c);
        }
    }
    return sum;
}

static void transposed_place(const struct conv *conv, const struct place *at)
{
    size_t y_at = element_of(conv->y, at->image, (size_t)at->row, (size_t)at->column);
    for (size_t channel = 0; channel < conv->y_channels; channel++)
        inf_ref_put(conv->y, y_at + channel,
                    finish_element(conv, transposed_sum(conv, at, channel), channel));
}

static enum inf_code each_place(const struct inf_ref_call *call, const struct conv *conv,
                                void (*compute)(const struct conv *conv, const struct place *at),
                                struct inf_error *err)
{
    const int64_t *dims = conv->y->shape->dims;
    for (int64_t image = 0; image < dims[0]; image++)
        for (int64_t row = 0; row < dims[1]; row++)
            for (int64_t column = 0; column < dims[2]; column++) {
                INF_TRY(inf_ref_check_cancelled(call, err));
                compute(conv, &(struct place){(size_t)image, row, column});
            }
    return INF_OK;
}

enum inf_code inf_ref_conv2d(const struct inf_ref_call *call, struct inf_error *err)
{
    struct conv conv = prepare_conv(call, 2);
    size_t groups = (size_t)call->node->attrs.conv2d.groups;
    conv.group_in = conv.x_channels / groups;
    conv.group_out = conv.y_channels / groups;
    return each_place(call, &conv, conv_place, err);
}

enum inf_code inf_ref_depthwise_conv2d(const struct inf_ref_call *call, struct inf_error *err)
{
    struct conv conv = prepare_conv(call, 2);
    return each_place(call, &conv, depthwise_place, err);
}

enum inf_code inf_ref_conv2d_transpose(const struct inf_ref_call *call, struct inf_error *err)
{
    struct conv conv = prepare_conv(call, 3);
    return each_place(call, &conv, transposed_place, err);
}
