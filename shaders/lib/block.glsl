// Functions for shaders whose work groups compute a block of results together (conv_block.comp,
// conv_matrix.comp). They copy slices of x to shared memory, and store sums in y.
//
// A pixel of the result needs one value of x for each tap of the window and input channel. These
// values are numbered by `k`: the tap times the number of input channels, plus the channel.
//
// The shader includes window.glsl, source.glsl, outside.glsl and added.glsl, and defines before
// this file:
//   ROWS    pixels of the result in a block
//   DEPTH   values of k in a slice, a multiple of four
//   STRIDE  numbers in `from` between value k and value k + 1 of a pixel
//   GROUP   invocations of the work group; divides ROWS * DEPTH / 4
//   NUMBER  type of the numbers in `from`
//   from    shared array; value k of a slice is at k * STRIDE + i for pixel i of the block
//   bias    vectors of four channels: the biases, followed by the slopes of prelu
// It also declares the specialisation constants X_VECTOR, Y_VECTOR, ONE_TAP, PRELU, ACTIVATION and
// ADDED.

// A slice has PARTS vectors of four values of k for each pixel. Each invocation copies COPIES of
// these vectors.
const uint PARTS = DEPTH / 4;
const uint COPIES = ROWS * PARTS / GROUP;

// For each vector that this invocation copies: the image, row and column of its pixel in y.
uint image[COPIES], y_at[COPIES], x_at[COPIES];

// Chooses the pixels that invocation `local` copies. `first` is the first pixel of the block.
// Places behind the last pixel of y get a copy of the last pixel.
void choose_pixels(uint local, uint first)
{
    [[unroll]] for (uint n = 0; n < COPIES; n++) {
        uint pixel = min(first + (local + n * GROUP) / PARTS, p.strips - 1);
        x_at[n] = pixel % p.out_w;
        y_at[n] = pixel / p.out_w % p.out_h;
        image[n] = pixel / p.out_w / p.out_h;
    }
}

// Copies values k to k + DEPTH - 1 of all pixels of the block to `from`. All invocations call it
// together, each copies its part. Values from `total` on are 0.
void copy_pixels(Picture picture, uint local, uint k, uint total)
{
    uint kernel_w = ONE_TAP ? 1 : p.kernel_w, group_in = p.group_in;
    [[unroll]] for (uint n = 0; n < COPIES; n++) {
        uint place = local + n * GROUP;
        uint part = place % PARTS * 4, to = place / PARTS;
        vec4 four = vec4(0.0);
        if (X_VECTOR) {
            // The four values have the same tap.
            uint tap = (k + part) / group_in, c = (k + part) % group_in;
            if (k + part < total)
                four = load4(source(picture, image[n], y_at[n], x_at[n], tap / kernel_w,
                                    tap % kernel_w), c);
        } else {
            [[unroll]] for (uint i = 0; i < 4; i++) {
                uint tap = (k + part + i) / group_in, c = (k + part + i) % group_in;
                if (k + part + i < total)
                    four[i] = load(source(picture, image[n], y_at[n], x_at[n], tap / kernel_w,
                                          tap % kernel_w), c);
            }
        }
        [[unroll]] for (uint i = 0; i < 4; i++)
            from[(part + i) * STRIDE + to] = NUMBER(four[i]);
    }
}

// Finishes four channels of a pixel: adds the added operand to `result`, which are their sums with
// the biases, applies the activation, and stores them in y. `block` is the number of this vector of
// channels. Stores nothing beyond the end of y.
void store_sums(uint pixel, uint block, vec4 result)
{
    uint blocks = p.blocks;
    if (pixel >= p.strips || block >= blocks)
        return;
#if defined(F16) && defined(HALF)
    // The activation may make it finite again.
    if (!all(lessThan(abs(result), vec4(3.0e38))))
        status[STATUS_OVERFLOWED] = 1;
#endif
    if (ADDED != ADDED_NOTHING)
        result += added_to(pixel, block * 4, p.added);
    vec4 low = PRELU ? bias[blocks + block] : vec4(p.low);
    result = activate4(ACTIVATION, result, low, p.high);
    uint to = pixel * p.out_c + block * 4;
    if (Y_VECTOR) {
        put_y4(to / 4, result);
    } else {
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (block * 4 + i < p.out_c)
                put_y(to + i, result[i]);
    }
}
