// Convolution and product with a constant matrix, of bytes. An invocation computes four channels of
// a strip of PIXELS pixels. It multiplies four input channels of a pixel, which are packed into a
// word, by four weights of an output channel at a time (dot4). The weights are
// [tap][four input channels][block of four output channels], four words for a block.
//
// The result is the sum of (x - x zero) * (w - w zero). The start of the sum, which the host
// computes, has all terms of this product that depend on no x. If the weights have zero points, the
// invocation also needs the sum of x. All sums are modulo 2^32. Requires lib/bytes.glsl and dot4().
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "invocation.glsl"
#include "window.glsl"

layout(constant_id = 1) const uint PIXELS = 4;
layout(constant_id = 2) const bool X_VECTOR = false; // channels can be read in words
layout(constant_id = 3) const bool Y_VECTOR = false; // channels can be written in words
layout(constant_id = 4) const bool ONE_TAP = false;  // 1x1 window that never reaches outside
layout(constant_id = 5) const bool SUMS = false;     // y is the sums in 32 bits
layout(constant_id = 6) const bool W_ZERO = false;   // the weights have zero points
const bool TRANSPOSED = false;

layout(binding = 1) readonly buffer Weights { uvec4 weights[]; };
#include "requantize.glsl"
#include "source.glsl"

// Returns `count` channels of a pixel, at most four, as signed bytes. The bytes after them are
// undefined. `at` is the index of the first channel.
uint load_packed(uint at, uint count, uint pad, uint flip)
{
    if (!ONE_TAP && at == OUTSIDE)
        return pad;
    if (X_VECTOR)
        return x_packed[at / 4] ^ flip;
    uint word = 0;
    for (uint k = 0; k < count; k++)
        word |= uint(x_bytes[at + k]) << (8 * k);
    return word ^ flip;
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint blocks = p.blocks, group_in = p.group_in, out_c = p.out_c;
    uint block = id % blocks;
    uint strip = id / blocks;
    uint first = strip % p.strips * PIXELS;
    uint row = strip / p.strips % p.out_h;
    uint image = strip / p.strips / p.out_h;
    uint group = block / p.group_blocks;
    Picture picture = picture_of_window();
    uint last = p.out_w - 1;
    uint kernel_h = ONE_TAP ? 1 : p.kernel_h, kernel_w = ONE_TAP ? 1 : p.kernel_w;
    uint pad = channels[0].x, flip = channels[0].y;

    ivec4 sum[PIXELS];
    int total[PIXELS]; // the sum of x
    [[unroll]] for (uint t = 0; t < PIXELS; t++) {
        sum[t] = ivec4(channels[1 + block]);
        total[t] = 0;
    }
    uint from = block;
    for (uint ky = 0; ky < kernel_h; ky++) {
        for (uint kx = 0; kx < kernel_w; kx++) {
            uint at[PIXELS];
            for (uint t = 0; t < PIXELS; t++)
                at[t] = source(picture, image, row, min(first + t, last), ky, kx);
            for (uint c = 0; c < group_in; c += 4, from += blocks) {
                uvec4 weight = weights[from];
                uint count = min(group_in - c, 4);
                uint ones = 0x01010101u >> (32 - 8 * count);
                [[unroll]] for (uint t = 0; t < PIXELS; t++) {
                    uint place = !ONE_TAP && at[t] == OUTSIDE ? OUTSIDE
                        : at[t] + group * group_in + c;
                    uint word = load_packed(place, count, pad, flip);
                    sum[t] += ivec4(dot4(word, weight.x), dot4(word, weight.y),
                        dot4(word, weight.z), dot4(word, weight.w));
                    if (W_ZERO)
                        total[t] += dot4(word, ones);
                }
            }
        }
    }

    uint inner = block % p.group_blocks * 4;
    uint to = ((image * p.out_h + row) * p.out_w + first) * out_c + group * p.group_out + inner;
    for (uint t = 0; t < PIXELS; t++, to += out_c) {
        if (first + t > last)
            break;
        if (W_ZERO)
            sum[t] -= total[t] * ivec4(channels[1 + 2 * blocks + block]);
        put_sums(to, block, p.group_out - inner, sum[t]);
    }
}
