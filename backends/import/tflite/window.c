// SPDX-License-Identifier: Apache-2.0
// Reads the windows of convolutions and pooling from options.
#include "backends/import/tflite/window.h"

// The largest stride, dilation or window size of the graph's operators.
#define SIZE_MAX_16 65535

// Numbers of the enum Padding.
enum padding {
    PADDING_SAME,
    PADDING_VALID,
};

int32_t inf_tflite_window_size(struct inf_tflite_scope *s, uint32_t id, const char *field,
                               int32_t fallback)
{
    int64_t size = inf_tflite_option(s, INF_FB_I32, id, field, fallback);
    if (size >= 1 && size <= SIZE_MAX_16)
        return (int32_t)size;
    inf_build_fail(&s->b, INF_INVALID, "option %s is %lld, wanted 1 to %d", field, (long long)size,
                   SIZE_MAX_16);
    return 1;
}

enum inf_padding inf_tflite_window_padding(struct inf_tflite_scope *s)
{
    int64_t padding = inf_tflite_option(s, INF_FB_I8, 0, "padding", PADDING_SAME);
    if (padding != PADDING_SAME && padding != PADDING_VALID)
        inf_build_fail(&s->b, INF_INVALID, "option padding is %lld, wanted 0 or 1",
                       (long long)padding);
    return padding == PADDING_SAME ? INF_PADDING_SAME : INF_PADDING_VALID;
}

struct inf_tflite_window inf_tflite_window_read(struct inf_tflite_scope *s,
                                                const struct inf_tflite_window_fields *fields)
{
    struct inf_tflite_window window = {.dilation = {1, 1}};
    window.padding = inf_tflite_window_padding(s);
    window.stride[0] = inf_tflite_window_size(s, fields->stride_h, "stride_h", 0);
    window.stride[1] = inf_tflite_window_size(s, fields->stride_w, "stride_w", 0);
    if (fields->dilation_h == 0)
        return window;
    window.dilation[0] = inf_tflite_window_size(s, fields->dilation_h, "dilation_h_factor", 1);
    window.dilation[1] = inf_tflite_window_size(s, fields->dilation_w, "dilation_w_factor", 1);
    return window;
}
