// SPDX-License-Identifier: Apache-2.0
// Chooses among the shaders for a convolution, and checks samples of what they compute.
#include "backends/vulkan/ops/conv_choice.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/storage/record.h"

static const char *const method_names[VK_CONV_METHODS] = {
    "strips", "tiles", "winograd", "blocks", "blocksf16", "matrices", "split", "depthwise"};

void vk_conv_choice_print(const struct vk_conv_choice *choice, char text[INF_RACE_WINNER_TEXT])
{
    const char *method = method_names[choice->method];
    if (choice->vectors != 0)
        snprintf(text, INF_RACE_WINNER_TEXT, "%s_%u_%u", method, choice->pixels, choice->vectors);
    else if (choice->pixels != 0)
        snprintf(text, INF_RACE_WINNER_TEXT, "%s_%u", method, choice->pixels);
    else
        snprintf(text, INF_RACE_WINNER_TEXT, "%s", method);
}

// Returns the key under which the winner for a convolution is recorded: its shapes, its kind, and
// whether weights and tensors are 16-bit. The activation and the residual hardly change which
// shader is fastest, so they are left out.
static uint64_t make_key(const struct vk_lowering *lowering, const struct vk_conv *conv,
                         enum vk_conv_method method)
{
    const struct vk_window *window = &conv->window;
    const uint32_t parts[] = {
        method == VK_CONV_DEPTHWISE,
        conv->images,
        window->in_h,
        window->in_w,
        window->in_c,
        window->out_h,
        window->out_w,
        window->out_c,
        window->kernel_h,
        window->kernel_w,
        window->stride_h,
        window->stride_w,
        window->dilation_h,
        window->dilation_w,
        (uint32_t)window->pad_top,
        (uint32_t)window->pad_left,
        conv->weights.groups,
        conv->transposed,
        lowering->half_weights,
    };
    uint64_t key =
        inf_record_hash(inf_race_results_seed(lowering->gpu->races), parts, sizeof parts);
    return key != 0 ? key : 1;
}

// Copies the recorded winner to *choice, if it is `rule` or one of the candidates.
static void take_winner(const struct vk_lowering *lowering, uint64_t key,
                        const struct vk_conv_choice *candidates, uint32_t count,
                        struct vk_conv_choice *choice)
{
    char winner[INF_RACE_WINNER_TEXT], name[INF_RACE_WINNER_TEXT];
    if (!inf_race_results_find(lowering->gpu->races, key, 0, winner))
        return;
    for (uint32_t i = 0; i < count; i++) {
        vk_conv_choice_print(&candidates[i], name);
        if (strcmp(name, winner) == 0)
            *choice = candidates[i];
    }
}

static bool is_same_choice(const struct vk_conv_choice *a, const struct vk_conv_choice *b)
{
    return a->method == b->method && a->pixels == b->pixels && a->vectors == b->vectors;
}

struct vk_conv_choice vk_conv_choose(const struct vk_lowering *lowering, const struct vk_conv *conv,
                                     struct vk_conv_choice rule,
                                     const struct vk_conv_choice *candidates, uint32_t count)
{
    struct vk_conv_candidates *wanted = lowering->candidates;
    if (lowering->forced != NULL)
        return *lowering->forced;
    if (lowering->gpu->races == NULL)
        return rule;
    uint64_t key = make_key(lowering, conv, rule.method);
    if (wanted != NULL) {
        *wanted = (struct vk_conv_candidates){.key = key, .conv = *conv};
        wanted->list[wanted->count++] = rule;
        for (uint32_t i = 0; i < count && wanted->count < VK_CONV_CANDIDATES; i++)
            if (!is_same_choice(&candidates[i], &rule))
                wanted->list[wanted->count++] = candidates[i];
    }
    take_winner(lowering, key, candidates, count, &rule);
    return rule;
}

// --- checking samples of results ---

// The number of results that are checked. They are spread over all pixels and channels by a step
// that has no factor in common with usual sizes.
#define SAMPLES 61u
#define STEP    7919u

// The sum of a result before the activation, and the sum of the absolute values of its terms.
struct sample {
    double sum, size;
};

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

// Adds the products of one tap with all input channels of the group.
static void add_tap(struct sample *sample, const struct vk_conv *conv, const float *pixel,
                    uint32_t tap, uint32_t out)
{
    const struct vk_conv_weights *weights = &conv->weights;
    bool depthwise = weights->groups == 1 && weights->group_in == 1 && conv->window.in_c > 1;
    uint32_t first =
        depthwise ? out / conv->window.group_out : out / weights->group_out * weights->group_in;
    for (uint32_t in = 0; in < weights->group_in; in++) {
        double product = (double)pixel[first + in] *
                         (double)weights->from[tap * weights->tap_stride + in * weights->in_stride +
                                               out * weights->out_stride];
        sample->sum += product;
        sample->size += fabs(product);
    }
}

static struct sample compute_sample(const struct vk_conv *conv, const float *bias, const float *x,
                                    size_t pixel, uint32_t out)
{
    const struct vk_window *window = &conv->window;
    uint32_t column = (uint32_t)(pixel % window->out_w);
    uint32_t row = (uint32_t)(pixel / window->out_w % window->out_h);
    size_t image = pixel / window->out_w / window->out_h;
    struct sample sample = {bias != NULL ? (double)bias[out] : 0, 0};
    sample.size = fabs(sample.sum);
    for (uint32_t tap = 0; tap < conv->weights.taps; tap++) {
        int64_t from_row = source_position(conv, row, tap / window->kernel_w, window->stride_h,
                                           window->dilation_h, window->pad_top, window->in_h);
        int64_t from_column =
            source_position(conv, column, tap % window->kernel_w, window->stride_w,
                            window->dilation_w, window->pad_left, window->in_w);
        if (from_row < 0 || from_column < 0)
            continue;
        size_t at = (image * window->in_h + (size_t)from_row) * window->in_w + (size_t)from_column;
        add_tap(&sample, conv, x + at * window->in_c, tap, out);
    }
    return sample;
}

// Applies the activation; returns NaN if it is none of the simple ones.
static double apply_activation(const struct vk_conv *conv, double value, uint32_t out)
{
    const struct vk_activation *activation = &conv->activation;
    switch (activation->function) {
    case FN_NONE:
        return value;
    case FN_CLIP:
        return fmin(fmax(value, (double)activation->low), (double)activation->high);
    case FN_LEAKY_RELU:
        return value >= 0
                   ? value
                   : value * (double)(activation->prelu ? conv->slopes[out] : activation->low);
    default:
        return (double)NAN;
    }
}

double vk_conv_sample_error(const struct vk_conv *conv, const float *bias, const float *x,
                            const float *y, double most)
{
    size_t pixels = (size_t)conv->images * conv->window.out_h * conv->window.out_w;
    size_t channels = conv->window.out_c;
    double largest = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t at = i * STEP * (pixels * channels / SAMPLES + 1) % (pixels * channels);
        uint32_t out = (uint32_t)(at % channels);
        struct sample sample = compute_sample(conv, bias, x, at / channels, out);
        if (!(sample.size <= most))
            continue;
        double wanted = apply_activation(conv, sample.sum, out);
        if (isnan(wanted))
            return -1;
        double error = fabs((double)y[at] - wanted);
        if (!(error <= (double)INFINITY) || isinf(error))
            return (double)INFINITY;
        largest = fmax(largest, error / fmax(sample.size, 1e-30));
    }
    return largest;
}
