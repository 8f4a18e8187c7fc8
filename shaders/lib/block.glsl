// What the shaders share whose work groups copy blocks of x to shared memory (conv_block.comp,
// conv_matrix.comp). They define these constants first: ROWS (pixels of a block), DEPTH (values of
// k in shared memory), STRIDE (distance of two values of k in `from`) and GROUP (invocations). They
// declare `from`, in which value k of pixel i is number k * STRIDE + i.

// The vectors of four values of k that each invocation copies in a slice, each of one pixel.
const uint PARTS = DEPTH / 4;
const uint COPIES = ROWS * PARTS / GROUP;

// The pixels that this invocation copies.
uint image[COPIES], y_at[COPIES], x_at[COPIES];

// Chooses the pixels for this invocation, from pixel `first` of the block on. Pixels beyond the
// last one copy the last one again.
void choose_pixels(uint local, uint first)
{
    [[unroll]] for (uint n = 0; n < COPIES; n++) {
        uint pixel = min(first + (local + n * GROUP) / PARTS, p.strips - 1);
        x_at[n] = pixel % p.out_w;
        y_at[n] = pixel / p.out_w % p.out_h;
        image[n] = pixel / p.out_w / p.out_h;
    }
}

// Copies DEPTH values of the block's pixels, from value k on. Values from `total` on are 0.
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

// Stores the sums of one vector of channels of one pixel. Does nothing beyond the end of y.
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
