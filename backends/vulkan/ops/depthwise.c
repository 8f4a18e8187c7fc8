// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions: each channel of the input has its own windows.
#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/ops.h"
#include "backends/vulkan/ops/shader_choice.h"

// The number of rows that an invocation of a depthwise convolution computes. On a GPU the sums of
// these rows must fit into registers; llvmpipe keeps the sums in memory.
#define DEPTHWISE_ROWS          2
#define DEPTHWISE_ROWS_SOFTWARE 4

// Returns true if the window is square and of a common size, so that the shader can have its size
// as one specialisation constant.
static bool is_square(const struct vk_window *window)
{
    return window->kernel_h == window->kernel_w && window->stride_h == window->stride_w &&
           window->dilation_h == 1 && window->dilation_w == 1 &&
           (window->kernel_h == 3 || window->kernel_h == 5) && window->stride_h <= 2;
}

// Returns the size of the window if the shader can have it as a specialisation constant, so that an
// invocation computes several rows and loads each pixel once for them; otherwise 0.
static uint32_t constant_kernel(const struct vk_lowering *lowering, const struct vk_window *window)
{
    bool software = lowering->gpu->base.info.kind == INF_DEVICE_SOFTWARE;
    return is_square(window) && (software || window->kernel_h == 3) ? window->kernel_h : 0;
}

// Chooses how many pixels of how many rows an invocation computes.
static struct vk_shader_choice choose_sizes(const struct vk_lowering *lowering,
                                            const struct vk_conv *conv, uint32_t kernel)
{
    static const struct vk_shader_choice candidates[] = {
        {VK_BY_DEPTHWISE, 4, 1}, {VK_BY_DEPTHWISE, 2, 1}, {VK_BY_DEPTHWISE, 1, 1},
        {VK_BY_DEPTHWISE, 8, 1}, {VK_BY_DEPTHWISE, 4, 2}, {VK_BY_DEPTHWISE, 2, 2},
        {VK_BY_DEPTHWISE, 1, 2}, {VK_BY_DEPTHWISE, 2, 4}, {VK_BY_DEPTHWISE, 4, 4},
    };
    // Without a constant window there is a fixed number of rows: one.
    const uint32_t one_row = 4;
    const struct vk_window *window = &conv->window;
    bool software = lowering->gpu->base.info.kind == INF_DEVICE_SOFTWARE;
    uint32_t rows = software ? DEPTHWISE_ROWS_SOFTWARE : DEPTHWISE_ROWS;
    bool single = kernel == 0 || window->out_h == 1;
    struct vk_shader_choice rule = {
        VK_BY_DEPTHWISE, INF_MIN(vk_strip_pixels(lowering, window->out_w), kernel != 0 ? 4u : 8u),
        single ? 1 : rows};
    return vk_conv_choose(lowering, conv, rule, candidates,
                          single ? one_row : (uint32_t)INF_ARRAY_LENGTH(candidates));
}

// Emits depthwise.comp, whose window has the size `kernel`, or any size if `kernel` is 0.
static enum inf_code emit_depthwise(struct vk_lowering *lowering, struct vk_conv *conv,
                                    struct vk_shader_choice sizes, uint32_t kernel,
                                    struct inf_error *err)
{
    struct vk_window *window = &conv->window;
    uint32_t rows = sizes.vectors;
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_DEPTHWISE,
                    {conv->activation.function, sizes.pixels,
                     window->out_c % 4 == 0 && window->group_out == 1, conv->activation.prelu,
                     kernel, kernel != 0 ? window->stride_h : 1, rows}}};
    INF_TRY(vk_conv_bind_operands(lowering, &dispatch, conv, err));
    vk_read_through_view(lowering, &dispatch, 0, dispatch.variant.constants[2] != 0);
    vk_read_through_view(lowering, &dispatch, 1, true);
    vk_conv_finish_window(conv, vk_reduce_pixels(lowering, &dispatch));
    window->count =
        conv->images * ((window->out_h + rows - 1) / rows) * window->strips * window->blocks;
    dispatch.invocations = window->count;
    dispatch.cost = vk_conv_macs(conv);
    vk_set_push_constants(&dispatch, window, sizeof(*window));
    // Loops over a window of constant size are unrolled.
    uint64_t iterations =
        kernel != 0 ? VK_FEW_ITERATIONS : vk_window_loops(window, VK_NO_LOOPS).run;
    return vk_emit_dispatch(lowering, &dispatch, iterations, err);
}

enum inf_code vk_lower_depthwise(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *filter = vk_input_shape(lowering, 1); // filter layout: [kh,kw,c,m]
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_const(lowering, 1, inf_shape_elements(filter), err));
    struct vk_conv conv = {.activation = vk_node_activation(lowering->node),
                           .bias_index = 2,
                           .images = (uint32_t)x->dims[0]};
    struct vk_window *window = &conv.window;
    vk_window_init(window, lowering, x, vk_output_shape(lowering, 0));
    INF_TRY(vk_conv_check_activation(lowering, &conv, err));
    conv.weights = (struct vk_conv_weights){
        .from = vk_const_data(lowering, 1),
        .taps = window->kernel_h * window->kernel_w,
        .group_in = 1,
        .group_out = window->out_c,
        .groups = 1,
        .tap_stride = window->out_c,
        .in_stride = 1,
        .out_stride = 1,
    };
    window->group_in = 1;
    window->group_out = (uint32_t)filter->dims[3];
    uint32_t kernel = constant_kernel(lowering, window);
    return emit_depthwise(lowering, &conv, choose_sizes(lowering, &conv, kernel), kernel, err);
}
