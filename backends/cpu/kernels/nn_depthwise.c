// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions. Compiled once for each ISA level; INF_NN_DEPTHWISE is the name of the
// table that it defines.
//
// A call computes one or two rows of results in blocks of up to six pixels. For each vector of
// channels of a block, each pixel of x is loaded once in a row and used for all taps and results
// that read it.
#include "backends/cpu/kernels/nn.h"
#include "backends/cpu/kernels/vec.h"

#define BLOCK_MAX 6
// Pixels of x that a block of BLOCK_MAX results reads in a row.
#define PIXELS_MAX ((BLOCK_MAX - 1) * 2 + 5)
#define TAPS_MAX   5

struct shape {
    // `taps` is the height and width of the window. `rows` is the number of result rows in a call.
    size_t taps, stride, rows;
};

struct block {
    ptrdiff_t first; // index in x of the pixel where the first window of the block starts
    size_t output;   // index in y of the first pixel of the block
    size_t channel;
};

// Loads the pixels in a row of x that the windows of the block cover. If `edge` is true, some of
// these pixels are padding and become 0.
INF_VEC_INLINE void load_pixels(const struct inf_depthwise *d, const struct block *block,
                                const float *row, const size_t count, const int edge, inf_vec *x)
{
    const float *from = row + block->channel;
    INF_VEC_UNROLL
    for (size_t i = 0; i < count; i++) {
        ptrdiff_t pixel = block->first + (ptrdiff_t)i;
        if (edge && (pixel < 0 || pixel >= (ptrdiff_t)d->width))
            x[i] = vec_all(0);
        else
            x[i] = vec_load(from + pixel * (ptrdiff_t)d->step);
    }
}

// Prefetches the pixels that the next block reads and the current block does not. These pixels are
// in too many places for the hardware prefetcher.
INF_VEC_INLINE void prefetch_next_block(const struct inf_depthwise *d, const struct block *block,
                                        const float *row, const size_t first, const size_t count)
{
    const float *from = row + block->channel;
    INF_VEC_UNROLL
    for (size_t i = first; i < first + count; i++)
        __builtin_prefetch(from + (block->first + (ptrdiff_t)i) * (ptrdiff_t)d->step, 0, 2);
}

INF_VEC_INLINE void store_pixel(const struct inf_depthwise *d, const struct block *block,
                                inf_vec sum, size_t row, size_t pixel)
{
    if (d->slopes != NULL)
        sum = vec_slope(sum, vec_load(d->slopes + block->channel));
    sum = vec_min(vec_all(d->max), vec_max(vec_all(d->min), sum));
    vec_store(d->y[row] + (block->output + pixel) * d->step + block->channel, sum);
}

INF_VEC_INLINE void compute_block(const struct inf_depthwise *d, const struct block *block,
                                  const struct shape shape, const size_t pixels, const int edge)
{
    inf_vec sum[2][BLOCK_MAX];
    inf_vec x[PIXELS_MAX];
    INF_VEC_UNROLL
    for (size_t o = 0; o < shape.rows; o++) {
        INF_VEC_UNROLL
        for (size_t i = 0; i < pixels; i++)
            sum[o][i] = vec_load(d->bias + block->channel);
    }
    const float *w = d->w + block->channel;
    INF_VEC_UNROLL
    for (size_t r = 0; r < (shape.rows - 1) * shape.stride + shape.taps; r++) {
        if (d->rows[r] == NULL)
            continue;
        const size_t count = (pixels - 1) * shape.stride + shape.taps;
        load_pixels(d, block, d->rows[r], count, edge, x);
        // Prefetch only rows of x that the previous row of results did not read, because the other
        // rows are in the cache.
        if (d->prefetches && r + shape.stride >= shape.taps)
            prefetch_next_block(d, block, d->rows[r], count, pixels * shape.stride);
        INF_VEC_UNROLL
        for (size_t o = 0; o < shape.rows; o++) {
            // Skip row `r` of x if no window of result row `o` covers it.
            if (r < o * shape.stride || r - o * shape.stride >= shape.taps)
                continue;
            const float *taps = w + (r - o * shape.stride) * shape.taps * d->channels;
            INF_VEC_UNROLL
            for (size_t k = 0; k < shape.taps; k++) {
                inf_vec tap = vec_load(taps + k * d->channels);
                INF_VEC_UNROLL
                for (size_t i = 0; i < pixels; i++)
                    sum[o][i] = vec_fma(x[i * shape.stride + k], tap, sum[o][i]);
            }
        }
    }
    INF_VEC_UNROLL
    for (size_t o = 0; o < shape.rows; o++) {
        INF_VEC_UNROLL
        for (size_t i = 0; i < pixels; i++)
            store_pixel(d, block, sum[o][i], o, i);
    }
}

// Computes all channels of a block. The last vector overlaps the previous one, so that the last
// vector ends at the last channel.
INF_VEC_INLINE void all_channels(const struct inf_depthwise *d, struct block block,
                                 const struct shape shape, const size_t pixels, const int edge)
{
    for (size_t c = d->first; c < d->end; c += INF_VEC_WIDTH) {
        block.channel = c + INF_VEC_WIDTH <= d->end ? c : d->end - INF_VEC_WIDTH;
        compute_block(d, &block, shape, pixels, edge);
    }
}

INF_VEC_INLINE void one_block(const struct inf_depthwise *d, size_t output, size_t pixels,
                              const struct shape shape)
{
    struct block block = {.first = (ptrdiff_t)(output * shape.stride) - d->pad, .output = output};
    ptrdiff_t end = block.first + (ptrdiff_t)((pixels - 1) * shape.stride + shape.taps);
    if (block.first >= 0 && end <= (ptrdiff_t)d->width) {
        switch (pixels) {
        case 6:
            all_channels(d, block, shape, 6, 0);
            return;
        case 5:
            all_channels(d, block, shape, 5, 0);
            return;
        default:
            break;
        }
    }
    switch (pixels) {
    case 6:
        all_channels(d, block, shape, 6, 1);
        break;
    case 5:
        all_channels(d, block, shape, 5, 1);
        break;
    case 4:
        all_channels(d, block, shape, 4, 1);
        break;
    case 3:
        all_channels(d, block, shape, 3, 1);
        break;
    case 2:
        all_channels(d, block, shape, 2, 1);
        break;
    default:
        all_channels(d, block, shape, 1, 1);
        break;
    }
}

// Computes a row of results, cut into blocks of nearly equal size.
INF_VEC_INLINE void all_blocks(const struct inf_depthwise *d, const struct shape shape)
{
    size_t blocks = (d->output_width + BLOCK_MAX - 1) / BLOCK_MAX;
    size_t least = d->output_width / blocks;
    size_t larger = d->output_width % blocks;
    size_t output = 0;
    for (size_t i = 0; i < blocks; i++) {
        size_t pixels = least + (i < larger);
        one_block(d, output, pixels, shape);
        output += pixels;
    }
}

static void three_1_one(const struct inf_depthwise *d)
{
    all_blocks(d, (struct shape){3, 1, 1});
}

static void three_1(const struct inf_depthwise *d)
{
    if (d->y[1] == NULL)
        three_1_one(d);
    else
        all_blocks(d, (struct shape){3, 1, 2});
}

static void three_2(const struct inf_depthwise *d)
{
    all_blocks(d, (struct shape){3, 2, 1});
}

static void five_1(const struct inf_depthwise *d)
{
    all_blocks(d, (struct shape){5, 1, 1});
}

static void five_2(const struct inf_depthwise *d)
{
    all_blocks(d, (struct shape){5, 2, 1});
}

const struct inf_nn_depthwise INF_NN_DEPTHWISE = {
    .width = INF_VEC_WIDTH,
    .form = {three_1, three_2, five_1, five_2},
};
