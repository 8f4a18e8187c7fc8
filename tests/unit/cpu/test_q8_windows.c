// SPDX-License-Identifier: Apache-2.0
// Copies of the windows of an 8-bit product: every byte, up to the end of memory that ends with x.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/cpu/quantized/windows.h"
#include "tests/support/device/fence.h"

#define FLIP       0x80
#define PADDING    77
#define OUTPUTS    64
#define WINDOW_MAX 256

// Returns the byte of x under a tap, as the copy must have it.
static uint8_t wanted_byte(const struct inf_q8_windows *windows, const uint8_t *x, int64_t row,
                           int64_t column, size_t channel)
{
    if (row < 0 || row >= windows->height.input || column < 0 || column >= windows->width.input)
        return PADDING;
    size_t pixel = (size_t)(row * windows->width.input + column);
    return x[pixel * windows->channels + channel] ^ FLIP;
}

// Copies all windows of one image that ends at an inaccessible page, and compares them.
static void check_windows(const struct inf_q8_windows *windows)
{
    static uint8_t copies[OUTPUTS * OUTPUTS * WINDOW_MAX];
    const struct inf_window *h = &windows->height, *w = &windows->width;
    const struct inf_q8_params terms = {.flip = FLIP, .x_zero = PADDING};
    size_t size = (size_t)(h->input * w->input) * windows->channels;
    size_t window_size = (size_t)(h->kernel * w->kernel) * windows->inputs;
    size_t step = window_size + INF_Q8_WINDOW_SLACK;
    size_t count = (size_t)(h->output * w->output);
    struct fence fence = {0};
    uint8_t *x = fence_bytes(&fence, size, 0, 0);
    cr_assert_leq(count * step, sizeof copies);
    for (size_t i = 0; i < size; i++)
        x[i] = (uint8_t)(i * 37 + i / 256);
    struct inf_q8_cursor cursor = inf_q8_windows_start(windows, x, 0, 0);
    inf_q8_windows_copy(windows, &terms, &cursor, count, copies, step);
    for (size_t pixel = 0; pixel < count; pixel++) {
        const uint8_t *copy = copies + pixel * step;
        int64_t top = (int64_t)pixel / w->output * h->stride - h->pad_before;
        int64_t left = (int64_t)pixel % w->output * w->stride - w->pad_before;
        for (int64_t tap = 0; tap < h->kernel * w->kernel; tap++)
            for (size_t c = 0; c < windows->inputs; c++, copy++)
                cr_assert_eq(*copy,
                             wanted_byte(windows, x, top + tap / w->kernel * h->dilation,
                                         left + tap % w->kernel * w->dilation, c),
                             "pixel %zu, tap %ld, channel %zu", pixel, (long)tap, c);
    }
    fence_fini(&fence);
}

Test(q8_windows, are_copied_up_to_the_end_of_memory)
{
    static const size_t channels[] = {1, 3, 5, 16, 19};
    for (int64_t rows = 1; rows <= 3; rows++)
        for (int64_t stride = 1; stride <= 2; stride++)
            for (int64_t dilation = 1; dilation <= 2; dilation++)
                for (int64_t pad = 0; pad <= 1; pad++)
                    for (size_t c = 0; c < sizeof channels / sizeof *channels; c++) {
                        struct inf_window w = {.input = 29,
                                               .kernel = 3,
                                               .stride = stride,
                                               .dilation = dilation,
                                               .pad_before = pad};
                        w.output = (w.input + 2 * pad - 2 * dilation - 1) / stride + 1;
                        struct inf_window h = {
                            .input = rows, .output = 1, .kernel = rows, .stride = 1, .dilation = 1};
                        check_windows(&(struct inf_q8_windows){.height = h,
                                                               .width = w,
                                                               .channels = channels[c],
                                                               .groups = 1,
                                                               .inputs = channels[c],
                                                               .images = 1});
                    }
}
