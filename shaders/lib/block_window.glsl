// A convolution for shaders whose work groups compute a block of results together (conv_block.comp,
// conv_matrix.comp): chooses the block, copies slices of x and of the weights to shared memory, and
// stores sums in y. lib/block_pair.glsl has the same functions for the product of two tensors.
//
// A pixel of the result needs one value of x for each tap of the window and input channel. These
// values are numbered by `k`: the tap times the number of input channels, plus the channel. Weights
// have the layout of conv.comp. The convolution must have one group of channels.
//
// The shader defines before this file:
//   ROWS     pixels of the result in a block
//   COLUMNS  vectors of four channels in a block
//   DEPTH    values of k in a slice, a multiple of four
//   STRIDE   numbers in `from` between value k and value k + 1 of a pixel
//   GROUP    invocations of the work group; divides ROWS * DEPTH / 4
//   SPLITS   work groups that share the sums of a block; if there are several, sums are stored
//            in y as [split][pixel][vector of four channels], without what store_sums() adds
//   NUMBER   type of the numbers in `from`
//   from     shared array; value k of a slice is at k * STRIDE + i for pixel i of the block
//   put_weight(depth, channel, value)
//            stores the weight of one channel of the block for one value of k of the slice
//   put_weights(depth, column, vector)
//            stores the weights of the four channels of vector `column` of the block
// The shader also declares the specialisation constant ACTIVATION.
#include "lib/window.glsl"

layout(constant_id = 3) const bool X_VECTOR = false; // the channels of x are a multiple of four
layout(constant_id = 4) const bool Y_VECTOR = false;
layout(constant_id = 5) const bool TRANSPOSED = false;
layout(constant_id = 6) const bool PRELU = false;
// True for a 1x1 window that never reaches outside the image.
layout(constant_id = 7) const bool ONE_TAP = false;
layout(constant_id = 8) const uint ADDED = ADDED_NOTHING;

READS(0, x)
READS(1, w)
layout(binding = 2) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
READS(3, added)
WRITES(4, y)

#include "lib/source.glsl"
#include "lib/outside.glsl"
#include "lib/added.glsl"
#include "lib/block_store.glsl"

// A slice has PARTS vectors of four values of k for each pixel. Each invocation copies COPIES of
// these vectors.
const uint PARTS = DEPTH / 4;
const uint COPIES = ROWS * PARTS / GROUP;

// For each vector that this invocation copies: the image, row and column of its pixel in y.
uint image[COPIES], y_at[COPIES], x_at[COPIES];
uint split; // the part of the sums that this work group adds
Picture picture;

// Chooses the block of this work group: `first` is its first pixel, and `tile` its first vector of
// four channels. Also chooses the pixels that invocation `local` copies; places behind the last
// pixel of y get a copy of the last pixel. Returns false if there is no block for this work group.
bool choose_block(uint local, out uint first, out uint tile)
{
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint tiles = (p.blocks + COLUMNS - 1) / COLUMNS;
    tile = group % tiles * COLUMNS;
    uint down = (p.strips + ROWS - 1) / ROWS;
    first = group / tiles % down * ROWS;
    split = group / tiles / down;
    picture = picture_of_window();
    [[unroll]] for (uint n = 0; n < COPIES; n++) {
        uint pixel = min(first + (local + n * GROUP) / PARTS, p.strips - 1);
        x_at[n] = pixel % p.out_w;
        y_at[n] = pixel / p.out_w % p.out_h;
        image[n] = pixel / p.out_w / p.out_h;
    }
    return split < SPLITS;
}

// Returns the part of the sums that this work group adds: 0 to SPLITS - 1.
uint choose_split()
{
    return split;
}

// Returns the number of values of k.
uint count_terms()
{
    return (ONE_TAP ? 1 : p.kernel_h * p.kernel_w) * p.group_in;
}

// Copies values k to k + DEPTH - 1 of all pixels of the block to `from`. All invocations call this
// function together, and each copies its part. Values from `total` on are 0.
void copy_pixels(uint local, uint k, uint total)
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

// Copies the weights for values k to k + DEPTH - 1 and for the vectors of the block from `tile` on.
// All invocations call this function together, and each copies its part.
void copy_weights(uint local, uint tile, uint k, uint total)
{
    uint blocks = p.blocks;
    for (uint place = local; place < DEPTH * COLUMNS; place += GROUP) {
        uint depth = place / COLUMNS, column = place % COLUMNS;
        vec4 four = k + depth < total && tile + column < blocks
            ? w4((k + depth) * blocks + tile + column) : vec4(0.0);
        put_weights(depth, column, four);
    }
}

// Returns the biases of vector `block` of four channels; arbitrary numbers if there is no such
// vector.
vec4 load_bias(uint block)
{
    if (SPLITS > 1)
        return vec4(0.0);
    return bias[min(block, p.blocks - 1)];
}

// Finishes four channels of a pixel: adds the added operand to `result`, which are their sums with
// the biases, applies the activation, and stores them in y. `block` is the number of this vector of
// channels. Stores nothing beyond the end of y.
void store_sums(uint pixel, uint block, vec4 result)
{
    uint blocks = p.blocks;
    if (pixel >= p.strips || block >= blocks)
        return;
    report_overflow(result);
    if (SPLITS > 1) {
        put_y4((split * p.strips + pixel) * blocks + block, result);
        return;
    }
    if (ADDED != ADDED_NOTHING)
        result += added_to(pixel, block * 4, p.added);
    vec4 low = PRELU ? bias[blocks + block] : vec4(p.low);
    result = activate4(ACTIVATION, result, low, p.high);
    store_vector(pixel * p.out_c, block, p.out_c, result);
}
