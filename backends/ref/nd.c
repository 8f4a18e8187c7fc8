// SPDX-License-Identifier: Apache-2.0
// Windows in any number of dimensions: conv_nd, conv_nd_transpose, pool_nd, and dilation2d. The
// kernels are plain walks over every tap of every element, because models spend little time in
// these operators.
#include <math.h>

#include "backends/graph/shape/infer.h"
#include "backends/ref/kernels.h"

// Maximum spatial axes: batch and channels are two more axes.
#define AXES_MAX (INF_LIMIT_RANK - 2)

// The windows of a node along all spatial axes, and the tap (position in the window) that is being
// visited.
struct taps {
    int32_t axes;
    struct inf_window windows[AXES_MAX];
    int64_t strides[AXES_MAX]; // strides of the tensor that the taps read, in elements
    int32_t tap[AXES_MAX];     // position of the current tap in the window
    size_t number;             // number of the current tap in row-major order
};

// Returns a struct taps at the first tap of the node's windows, for reading `tensor`.
static struct taps taps_of(const struct inf_ref_call *call, const struct inf_ref_tensor *tensor)
{
    struct taps taps = {.axes = tensor->shape->rank - 2};
    int64_t strides[INF_LIMIT_RANK];
    inf_shape_strides(tensor->shape, strides);
    for (int32_t i = 0; i < taps.axes; i++) {
        inf_node_window_nd(call->graph, call->node, i, &taps.windows[i]);
        taps.strides[i] = strides[1 + i];
    }
    return taps;
}

// Moves to the next tap. After the last tap, returns false and goes back to the first one.
static bool next_tap(struct taps *taps)
{
    taps->number++;
    for (int32_t i = taps->axes - 1; i >= 0; i--) {
        if (++taps->tap[i] < taps->windows[i].kernel)
            return true;
        taps->tap[i] = 0;
    }
    taps->number = 0;
    return false;
}

// Computes which element of x lies under the current tap of the window for output element
// `position`. Returns false if that element is in the padding.
static bool tap_at(const struct taps *taps, const int64_t *position, size_t *at)
{
    *at = 0;
    for (int32_t i = 0; i < taps->axes; i++) {
        const struct inf_window *window = &taps->windows[i];
        int64_t place = position[i] * window->stride - window->pad_before +
                        (int64_t)taps->tap[i] * window->dilation;
        if (place < 0 || place >= window->input)
            return false;
        *at += (size_t)(place * taps->strides[i]);
    }
    return true;
}

// Computes which element of a transposed convolution's input contributes to `position` of its
// output through the current tap. Returns false if none does.
static bool source_at(const struct taps *taps, const int64_t *position, size_t *at)
{
    *at = 0;
    for (int32_t i = 0; i < taps->axes; i++) {
        const struct inf_window *window = &taps->windows[i];
        int64_t place = position[i] + window->pad_before - (int64_t)taps->tap[i] * window->dilation;
        if (place < 0 || place % window->stride != 0 || place / window->stride >= window->output)
            return false;
        *at += (size_t)(place / window->stride * taps->strides[i]);
    }
    return true;
}

// Returns the number of elements of one picture of `tensor`: all axes except the first, which is
// the batch.
static size_t picture_size(const struct inf_ref_tensor *tensor)
{
    return inf_ref_extent(tensor->shape, 1, tensor->shape->rank);
}

static size_t channels_of(const struct inf_ref_tensor *tensor)
{
    return (size_t)tensor->shape->dims[tensor->shape->rank - 1];
}

enum inf_code inf_ref_conv_nd(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0], *filter = &call->inputs[1];
    const struct inf_ref_tensor *y = &call->outputs[0];
    size_t groups = (size_t)call->node->attrs.conv_nd.groups;
    size_t in = channels_of(x) / groups, out = channels_of(y);
    struct taps taps = taps_of(call, x);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t channel = (size_t)walk.index[walk.rank - 1];
        size_t base = (size_t)walk.index[0] * picture_size(x) + channel / (out / groups) * in;
        double sum = inf_ref_has_input(call, 2) ? inf_ref_get(&call->inputs[2], channel) : 0;
        do {
            size_t at;
            bool inside = tap_at(&taps, &walk.index[1], &at);
            for (size_t c = 0; inside && c < in; c++)
                sum += inf_ref_get(x, base + at + c) *
                       inf_ref_get(filter, (taps.number * in + c) * out + channel);
        } while (next_tap(&taps));
        inf_ref_put(y, i, sum);
    }
    return INF_OK;
}

enum inf_code inf_ref_conv_nd_transpose(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0], *filter = &call->inputs[1];
    const struct inf_ref_tensor *y = &call->outputs[0];
    size_t groups = (size_t)call->node->attrs.conv_nd_transpose.groups;
    size_t in = channels_of(x), out = channels_of(y) / groups;
    struct taps taps = taps_of(call, x);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t channel = (size_t)walk.index[walk.rank - 1], first = channel / out * (in / groups);
        size_t base = (size_t)walk.index[0] * picture_size(x);
        double sum = inf_ref_has_input(call, 3) ? inf_ref_get(&call->inputs[3], channel) : 0;
        do {
            size_t at;
            bool inside = source_at(&taps, &walk.index[1], &at);
            for (size_t c = first; inside && c < first + in / groups; c++)
                sum += inf_ref_get(x, base + at + c) *
                       inf_ref_get(filter, (taps.number * out + channel % out) * in + c);
        } while (next_tap(&taps));
        inf_ref_put(y, i, sum);
    }
    return INF_OK;
}

// --- pool_nd ---

// The sum, count and maximum over the elements of one pooling window that were visited so far.
struct pooled {
    double sum;
    size_t count;
    bool found;
    size_t best; // index in x of the largest element
};

static bool is_greater(const struct inf_ref_tensor *x, size_t a, size_t b)
{
    if (inf_dtype_is_float(x->dtype))
        return inf_ref_get(x, a) > inf_ref_get(x, b);
    return inf_ref_load_int(x, a) > inf_ref_load_int(x, b);
}

static void add_element(const struct inf_attrs_pool_nd *attrs, const struct inf_ref_tensor *x,
                        size_t at, struct pooled *pooled)
{
    double value = inf_ref_get(x, at);
    pooled->count++;
    if (attrs->kind == INF_POOL_LP)
        value = pow(fabs(value), attrs->p);
    pooled->sum += value;
    // As in pool2d, a NaN never replaces the largest element, but the first element always counts,
    // even if it is -infinity.
    if (value != value || (pooled->found && !is_greater(x, at, pooled->best)))
        return;
    pooled->found = true;
    pooled->best = at;
}

// Returns how many taps of the window are in x or its padding.
static size_t padded_count(const struct taps *taps, const int64_t *position)
{
    size_t count = 1;
    for (int32_t i = 0; i < taps->axes; i++) {
        const struct inf_window *window = &taps->windows[i];
        size_t inside = 0;
        for (int32_t tap = 0; tap < window->kernel; tap++)
            inside += position[i] * window->stride + (int64_t)tap * window->dilation <
                      window->pad_before + window->input + window->pad_after;
        count *= inside;
    }
    return count;
}

// Converts index `at` of x to the index order that the attributes request.
static int64_t index_of(const struct inf_attrs_pool_nd *attrs, const struct inf_ref_tensor *x,
                        size_t at)
{
    size_t picture = at / picture_size(x), within = at % picture_size(x);
    size_t channels = channels_of(x), places = picture_size(x) / channels;
    if (attrs->index_channels_first)
        within = within % channels * places + within / channels;
    return (int64_t)(within + (attrs->index_batch ? picture * picture_size(x) : 0));
}

static void put_pooled(const struct inf_ref_call *call, size_t i, const struct pooled *pooled,
                       size_t padded)
{
    const struct inf_attrs_pool_nd *attrs = &call->node->attrs.pool_nd;
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    size_t count = attrs->count_padding ? padded : pooled->count;
    if (count == 0 && attrs->zero_if_empty)
        count = 1;
    if (attrs->kind == INF_POOL_AVERAGE)
        inf_ref_put(y, i, pooled->sum / (double)count);
    else if (attrs->kind == INF_POOL_LP)
        inf_ref_put(y, i, pow(pooled->sum, 1.0 / attrs->p));
    else if (pooled->found)
        inf_ref_copy(y, i, x, pooled->best, 1);
    else if (inf_dtype_is_float(y->dtype))
        inf_ref_put(y, i, -INFINITY);
    else
        inf_ref_store_int(y, i, inf_ref_int_min(y->dtype));
    if (call->node->output_count > 1)
        inf_ref_store_int(&call->outputs[1], i,
                          pooled->found ? index_of(attrs, x, pooled->best) : -1);
}

enum inf_code inf_ref_pool_nd(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    struct taps taps = taps_of(call, x);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t base = (size_t)walk.index[0] * picture_size(x) + (size_t)walk.index[walk.rank - 1];
        struct pooled pooled = {0};
        do {
            size_t at;
            if (tap_at(&taps, &walk.index[1], &at))
                add_element(&call->node->attrs.pool_nd, x, base + at, &pooled);
        } while (next_tap(&taps));
        put_pooled(call, i, &pooled, padded_count(&taps, &walk.index[1]));
    }
    return INF_OK;
}

// --- dilation2d ---

enum inf_code inf_ref_dilation2d(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0], *filter = &call->inputs[1];
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct taps taps = {.axes = 2};
    inf_node_windows(call->graph, call->node, &taps.windows[0], &taps.windows[1]);
    taps.strides[1] = x->shape->dims[3];
    taps.strides[0] = x->shape->dims[2] * x->shape->dims[3];
    bool is_float = inf_dtype_is_float(y->dtype);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t channel = (size_t)walk.index[3];
        size_t base = (size_t)walk.index[0] * picture_size(x) + channel;
        double largest = is_float ? -INFINITY : (double)inf_ref_int_min(y->dtype);
        do {
            size_t at;
            if (tap_at(&taps, &walk.index[1], &at))
                largest =
                    fmax(largest, inf_ref_get(x, base + at) +
                                      inf_ref_get(filter, taps.number * channels_of(x) + channel));
        } while (next_tap(&taps));
        inf_ref_put(y, i, largest);
    }
    return INF_OK;
}
