// SPDX-License-Identifier: Apache-2.0
// Lowers pooling and resizing.
#include <math.h>
#include <string.h>

#include "backends/vulkan/ops/bytes.h"
#include "backends/vulkan/ops/ops.h"

// Sets how many channels of a pixel one invocation computes: four if their number is a multiple of
// four, otherwise one. Returns true for four.
static bool finish_window(struct vk_window *window, const struct inf_shape *y)
{
    bool vector = window->in_c % 4 == 0;
    window->blocks = vector ? window->in_c / 4 : window->in_c;
    window->count = (uint32_t)y->dims[0] * window->out_h * window->out_w * window->blocks;
    return vector;
}

// The largest window whose size is a specialisation constant. Larger windows are not faster with
// constants, and each size needs its own pipeline.
#define SQUARE_MAX 3

// Returns the side of a pool's windows if they are square, at most SQUARE_MAX wide, and always
// inside the image; otherwise 0.
static uint32_t square_inside(const struct vk_window *window)
{
    uint32_t kernel = window->kernel_h;
    bool inside = window->pad_top == 0 && window->pad_left == 0 &&
                  (window->out_h - 1) * window->stride_h + kernel <= window->in_h &&
                  (window->out_w - 1) * window->stride_w + kernel <= window->in_w;
    return inside && window->kernel_w == kernel && kernel <= SQUARE_MAX ? kernel : 0;
}

// Returns how many pixels of a row an invocation computes. The number divides the width.
static uint32_t strip_pixels(const struct vk_lowering *lowering, uint32_t width)
{
    uint32_t pixels = lowering->gpu->base.info.kind == INF_DEVICE_SOFTWARE ? 8 : 1;
    while (width % pixels != 0)
        pixels /= 2;
    return pixels;
}

// Returns the iterations of loops for `pixels` pixels, each of which computes a window less its
// padding. Loops over a window of constant size are unrolled.
static uint64_t count_iterations(const struct vk_window *window, uint32_t pixels)
{
    uint32_t rows = INF_MIN(window->kernel_h, window->in_h);
    uint32_t columns = INF_MIN(window->kernel_w, window->in_w);
    if (square_inside(window) != 0)
        return VK_FEW_ITERATIONS;
    return vk_loop(pixels, vk_loop(rows, vk_loop(columns, VK_NO_LOOPS))).run;
}

enum inf_code vk_lower_pool(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    enum inf_dtype dtype = vk_input_dtype(lowering, 0);
    bool largest = lowering->node->attrs.pool2d.kind == INF_POOL_MAX;
    bool bytes = largest && vk_is_byte(dtype);
    INF_TRY(bytes ? vk_need_byte_storage(lowering, err) : vk_need_f32(lowering, 0, err));
    struct vk_window window;
    vk_window_init(&window, lowering, vk_input_shape(lowering, 0), y);
    bool vector = finish_window(&window, y);
    if (!largest && lowering->node->attrs.pool2d.kind != INF_POOL_AVERAGE)
        return vk_decline(lowering, err, "this kind is not built");
    uint32_t pixels = strip_pixels(lowering, window.out_w);
    window.strips = window.out_w / pixels;
    window.count /= pixels;
    struct vk_dispatch dispatch = {.variant = {bytes ? INF_SHADER_POOL_BYTES : INF_SHADER_POOL,
                                               {largest, vector, square_inside(&window), pixels,
                                                dtype == INF_DTYPE_I8 ? 0x80 : 0}},
                                   .invocations = window.count};
    vk_set_push_constants(&dispatch, &window, sizeof(window));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, &dispatch, 0, vector);
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, count_iterations(&window, pixels), err);
}

// --- operator resize ---

// One axis of a resize, and the mapping from positions of the output to positions of the input.
struct scale {
    uint32_t input, output;
    const struct inf_attrs_resize *attrs;
};

struct scales {
    struct scale height, width;
};

static uint32_t clamp_position(double position, uint32_t input)
{
    return (uint32_t)fmin(fmax(position, 0), (double)input - 1);
}

// Writes one entry of the resize table: the positions of the two neighbours, the weight of the
// second neighbour as float bits, and an unused word.
static void fill_position(const struct scale *scale, uint32_t position, uint32_t row[4])
{
    const struct inf_attrs_resize *attrs = scale->attrs;
    bool corners = attrs->align_corners && scale->output > 1;
    double ratio = (double)(corners ? scale->input - 1 : scale->input) /
                   (double)(corners ? scale->output - 1 : scale->output);
    double half = attrs->half_pixel_centers ? 0.5 : 0.0;
    double at = ratio * ((double)position + half);
    if (attrs->kind == INF_RESIZE_NEAREST) {
        row[0] = clamp_position(attrs->align_corners ? floor(at + 0.5) : floor(at), scale->input);
        return;
    }
    at -= half;
    row[0] = clamp_position(floor(at), scale->input);
    row[1] = clamp_position(ceil(at), scale->input);
    float weight = (float)(at - (double)row[0]);
    memcpy(&row[2], &weight, sizeof(weight));
}

static void fill_table(void *bytes, const void *context)
{
    const struct scales *scales = context;
    uint32_t(*rows)[4] = bytes;
    for (uint32_t i = 0; i < scales->height.output; i++)
        fill_position(&scales->height, i, *rows++);
    for (uint32_t i = 0; i < scales->width.output; i++)
        fill_position(&scales->width, i, *rows++);
}

enum inf_code vk_lower_resize(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_resize *attrs = &lowering->node->attrs.resize;
    const struct inf_shape *x = vk_input_shape(lowering, 0), *y = vk_output_shape(lowering, 0);
    if (attrs->kind != INF_RESIZE_BILINEAR && attrs->kind != INF_RESIZE_NEAREST)
        return vk_decline(lowering, err, "this kind is not built");
    if (attrs->kind == INF_RESIZE_BILINEAR)
        INF_TRY(vk_need_f32(lowering, 0, err));
    if (inf_dtype_size(vk_input_dtype(lowering, 0)) != 4)
        return vk_decline(lowering, err, "%s is not built",
                          inf_dtype_name(vk_input_dtype(lowering, 0)));
    struct vk_window window = {.in_h = (uint32_t)x->dims[1],
                               .in_w = (uint32_t)x->dims[2],
                               .in_c = (uint32_t)x->dims[3],
                               .out_h = (uint32_t)y->dims[1],
                               .out_w = (uint32_t)y->dims[2],
                               .out_c = (uint32_t)y->dims[3]};
    bool vector = finish_window(&window, y);
    struct scales scales = {.height = {window.in_h, window.out_h, attrs},
                            .width = {window.in_w, window.out_w, attrs}};
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_RESIZE, {attrs->kind == INF_RESIZE_BILINEAR, vector}},
        .invocations = window.count};
    vk_set_push_constants(&dispatch, &window, sizeof(window));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, &dispatch, 0, vector);
    INF_TRY(vk_bind_packed(lowering, &dispatch, ((size_t)window.out_h + window.out_w) * 16,
                           fill_table, &scales, err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}
