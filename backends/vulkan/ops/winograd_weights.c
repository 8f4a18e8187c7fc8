// SPDX-License-Identifier: Apache-2.0
// Transforms the weights of a 3x3 convolution on the host, when a program is compiled. Sums are in
// double, so that the transform adds no rounding error but the last one.
#include "backends/vulkan/ops/winograd_weights.h"

// Transforms the weights of an input and an output channel. Writes one number to each matrix; the
// matrices are `matrix` numbers apart.
static void transform_filter(const struct vk_winograd_packing *packing,
                             double transform[INF_WINOGRAD_SIDE_MAX][3], const float *from,
                             float *to, size_t matrix)
{
    unsigned side = inf_winograd_side(packing->form);
    size_t step = packing->weights->tap_stride;
    for (unsigned row = 0; row < side; row++) {
        double sums[3] = {0};
        for (unsigned tap = 0; tap < 9; tap++)
            sums[tap % 3] += transform[row][tap / 3] * (double)from[tap * step];
        for (unsigned column = 0; column < side; column++, to += matrix)
            *to = (float)(transform[column][0] * sums[0] + transform[column][1] * sums[1] +
                          transform[column][2] * sums[2]);
    }
}

void vk_winograd_pack(void *bytes, const void *context)
{
    const struct vk_winograd_packing *packing = context;
    const struct vk_conv_weights *weights = packing->weights;
    size_t rows = packing->rows, across = packing->across;
    size_t matrix = (weights->group_out + across - 1) / across * rows * across;
    double transform[INF_WINOGRAD_SIDE_MAX][3];
    inf_winograd_weight_matrix(packing->form, transform);
    for (uint32_t in = 0; in < weights->group_in; in++) {
        for (uint32_t out = 0; out < weights->group_out; out++) {
            const float *from = weights->from + out * weights->out_stride + in * weights->in_stride;
            float *to = (float *)bytes + (out / across * rows + in) * across + out % across;
            transform_filter(packing, transform, from, to, matrix);
        }
    }
}
