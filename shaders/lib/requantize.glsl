// Operands that products of bytes share, and the conversion of their sums to results. Requires
// lib/window.glsl, lib/bytes.glsl and the constants SUMS and Y_VECTOR.
BYTE_BUFFERS(0, readonly, x)
// The first vector holds: the zero point of x as a signed byte, repeated four times; what the bytes
// of x are combined with by XOR to become signed; the zero point of y. One vector for each block of
// four output channels follows of each of: the start of the sum, the scale as the bits of a float,
// and the zero point of the weights.
layout(binding = 2) readonly buffer Channels { uvec4 channels[]; };
BYTE_BUFFERS(3, writeonly, y)

// Returns what `value` becomes as ops.def says: rounded to an integer with ties to even, plus the
// zero point, and between the bounds. NaN becomes the lower bound.
ivec4 requantized(ivec4 sum, vec4 scale, int zero)
{
    vec4 value = vec4(sum) * scale, low = vec4(p.low), high = vec4(p.high);
    value = mix(low, value, greaterThan(value, low));
    value = mix(high, value, lessThan(value, high));
    return ivec4(roundEven(value)) + ivec4(zero);
}

// Stores the results of block `block` of one pixel, the first at element `to`. `valid` is the
// number of channels in the block, of which the last one may have fewer than four.
void put_sums(uint to, uint block, uint valid, ivec4 sum)
{
    uvec4 result = uvec4(sum);
    if (!SUMS)
        result = uvec4(requantized(sum, uintBitsToFloat(channels[1 + p.blocks + block]),
            int(channels[0].z)));
    if (!SUMS && Y_VECTOR) {
        y_packed[to / 4] = word_of(result);
    } else {
        [[unroll]] for (uint k = 0; k < 4; k++) {
            if (k >= valid)
                continue;
            if (SUMS)
                y_packed[to + k] = result[k];
            else
                y_bytes[to + k] = uint8_t(result[k]);
        }
    }
}
