// SPDX-License-Identifier: Apache-2.0
// Transforms of tiles for Winograd's algorithm. Compiled once for each ISA level;
// INF_WINOGRAD_TABLE is the name of the table that this file defines.
//
// A vector holds neighbouring channels of one pixel, so no operation combines lanes of a vector.
// Each function transforms the columns of the tile and then the rows. B' and A' are not stored as
// matrices: the results for the points p and -p are the sum and the difference of an even and an
// odd part, which are computed once. `whole`, `rest` and the points p[i] are those of struct
// inf_winograd_factors. A line (row or column) of inputs d becomes v, where n = 2 * pairs:
//
//     v[0]      = d[n]   + sum of whole[k] d[2k]
//     v[n + 1]  = d[n+1] + sum of whole[k] d[2k+1]
//     even[i]   = d[n]   + sum of rest[i][k] d[2k+2]
//     odd[i]    = d[n-1] + sum of rest[i][k] d[2k+1]
//     v[1 + 2i] = even[i] + p[i] odd[i],   v[2 + 2i] = even[i] - p[i] odd[i]
#include "backends/cpu/kernels/winograd.h"

#include <stdbool.h>

#include "backends/cpu/kernels/vec.h"

#define SIDE_MAX (2 * INF_WINOGRAD_FORMS + 2)
#define TILE_MAX (2 * INF_WINOGRAD_FORMS)

// Transforms a line of 2 * pairs + 2 inputs, d[0], d[step], ..., in place.
INF_VEC_INLINE void transform_inputs(const struct inf_winograd_factors *factors, const size_t pairs,
                                     inf_vec *d, const size_t step)
{
    const size_t n = 2 * pairs;
    inf_vec v[SIDE_MAX];
    inf_vec first = d[n * step];
    inf_vec last = d[(n + 1) * step];
    INF_VEC_UNROLL
    for (size_t k = 0; k < pairs; k++) {
        inf_vec factor = vec_all(factors->whole[k]);
        first = vec_fma(factor, d[2 * k * step], first);
        last = vec_fma(factor, d[(2 * k + 1) * step], last);
    }
    INF_VEC_UNROLL
    for (size_t i = 0; i < pairs; i++) {
        inf_vec even = d[n * step];
        inf_vec odd = d[(n - 1) * step];
        INF_VEC_UNROLL
        for (size_t k = 0; k + 1 < pairs; k++) {
            inf_vec factor = vec_all(factors->rest[i][k]);
            even = vec_fma(factor, d[(2 * k + 2) * step], even);
            odd = vec_fma(factor, d[(2 * k + 1) * step], odd);
        }
        odd *= vec_all(factors->powers[i][1]);
        v[1 + 2 * i] = even + odd;
        v[2 + 2 * i] = even - odd;
    }
    d[0] = first;
    INF_VEC_UNROLL
    for (size_t i = 1; i <= n; i++)
        d[i * step] = v[i];
    d[(n + 1) * step] = last;
}

// Transforms one vector of channels of a tile of inputs. The first lane of the vector is channel
// `channel`. Only the first `count` lanes are channels of x.
INF_VEC_INLINE void transform_channels(const struct inf_winograd_factors *factors,
                                       const struct inf_winograd_in *tile, const size_t pairs,
                                       size_t channel, size_t count)
{
    const size_t side = 2 * pairs + 2;
    inf_vec d[SIDE_MAX * SIDE_MAX];
    const float *x = tile->x + channel;
    INF_VEC_UNROLL
    for (size_t column = 0; column < side; column++) {
        const float *from = x + column * tile->pixel_step;
        INF_VEC_UNROLL
        for (size_t row = 0; row < side; row++, from += tile->row_step)
            if (count == INF_VEC_WIDTH)
                d[row * side + column] = vec_load(from);
            else
                d[row * side + column] = vec_load_some(from, count);
        transform_inputs(factors, pairs, &d[column], side);
    }
    float *v = tile->v + channel;
    INF_VEC_UNROLL
    for (size_t row = 0; row < side; row++) {
        transform_inputs(factors, pairs, &d[row * side], 1);
        INF_VEC_UNROLL
        for (size_t column = 0; column < side; column++, v += tile->matrix_step)
            vec_store(v, d[row * side + column]);
    }
}

INF_VEC_INLINE void transform_tile_in(const struct inf_winograd_factors *factors,
                                      const struct inf_winograd_in *tile, const size_t pairs)
{
    size_t channel = 0;
    for (; channel + INF_VEC_WIDTH <= tile->channels; channel += INF_VEC_WIDTH)
        transform_channels(factors, tile, pairs, channel, INF_VEC_WIDTH);
    if (channel < tile->channels)
        transform_channels(factors, tile, pairs, channel, tile->channels - channel);
}

// Transforms a line of 2 * pairs + 2 sums, m[0], m[step], ..., to 2 * pairs results y.
INF_VEC_INLINE void transform_sums(const struct inf_winograd_factors *factors, const size_t pairs,
                                   const inf_vec *m, const size_t step, inf_vec *y)
{
    const size_t n = 2 * pairs;
    // For each pair of points p and -p: the sum (parts[0]) and the difference (parts[1]) of m.
    inf_vec parts[2][INF_WINOGRAD_FORMS];
    inf_vec first = m[0];
    INF_VEC_UNROLL
    for (size_t i = 0; i < pairs; i++) {
        parts[0][i] = m[(1 + 2 * i) * step] + m[(2 + 2 * i) * step];
        parts[1][i] = m[(1 + 2 * i) * step] - m[(2 + 2 * i) * step];
        first += parts[0][i];
    }
    y[0] = first;
    INF_VEC_UNROLL
    for (size_t k = 1; k < n; k++) {
        inf_vec sum = vec_all(factors->powers[0][k]) * parts[k % 2][0];
        INF_VEC_UNROLL
        for (size_t i = 1; i < pairs; i++)
            sum = vec_fma(vec_all(factors->powers[i][k]), parts[k % 2][i], sum);
        y[k] = sum;
    }
    y[n - 1] += m[(n + 1) * step];
}

// Adds the bias and the residual to `y`, one vector of results of a pixel, applies slopes and
// bounds, and stores it. The vector begins with column `column`.
INF_VEC_INLINE void store_result(const struct inf_winograd_out *tile, size_t row, size_t pixel,
                                 size_t column, inf_vec y)
{
    float *to = tile->y + row * tile->row_step + pixel * tile->pixel_step + column;
    y += vec_load(tile->bias + column);
    if (tile->residual != NULL && column < tile->residual_columns) {
        const float *from =
            tile->residual + row * tile->residual_row_step + pixel * tile->residual_step + column;
        if (column + INF_VEC_WIDTH <= tile->residual_columns)
            y += vec_load(from);
        else
            y += vec_load_some(from, tile->residual_columns - column);
    }
    if (tile->slopes != NULL)
        y = vec_slope(y, vec_load(tile->slopes + column));
    y = vec_min(vec_all(tile->max), vec_max(vec_all(tile->min), y));
    if (column + INF_VEC_WIDTH <= tile->columns)
        vec_store(to, y);
    else
        vec_store_some(to, y, tile->columns - column);
}

INF_VEC_INLINE void transform_tile_out(const struct inf_winograd_factors *factors,
                                       const struct inf_winograd_out *tile, const size_t pairs)
{
    const size_t side = 2 * pairs + 2;
    const size_t n = 2 * pairs;
    for (size_t column = 0; column < tile->columns; column += INF_VEC_WIDTH) {
        inf_vec half[TILE_MAX * SIDE_MAX];
        INF_VEC_UNROLL
        for (size_t c = 0; c < side; c++) {
            inf_vec m[SIDE_MAX];
            inf_vec y[TILE_MAX];
            const float *from = tile->sums + column + c * tile->matrix_step;
            INF_VEC_UNROLL
            for (size_t r = 0; r < side; r++, from += side * tile->matrix_step)
                m[r] = vec_load(from);
            transform_sums(factors, pairs, m, 1, y);
            INF_VEC_UNROLL
            for (size_t r = 0; r < n; r++)
                half[r * side + c] = y[r];
        }
        for (size_t r = 0; r < tile->rows; r++) {
            inf_vec y[TILE_MAX];
            transform_sums(factors, pairs, &half[r * side], 1, y);
            INF_VEC_UNROLL
            for (size_t p = 0; p < n; p++)
                if (p < tile->pixels)
                    store_result(tile, r, p, column, y[p]);
        }
    }
}

#define FORM(number)                                                                               \
    static void transform_in_##number(const struct inf_winograd_factors *factors,                  \
                                      const struct inf_winograd_in *tile)                          \
    {                                                                                              \
        transform_tile_in(factors, tile, (number) / 2);                                            \
    }                                                                                              \
    static void transform_out_##number(const struct inf_winograd_factors *factors,                 \
                                       const struct inf_winograd_out *tile)                        \
    {                                                                                              \
        transform_tile_out(factors, tile, (number) / 2);                                           \
    }

FORM(2)
FORM(4)
FORM(6)

const struct inf_winograd INF_WINOGRAD_TABLE = {
    .in = {transform_in_2, transform_in_4, transform_in_6},
    .out = {transform_out_2, transform_out_4, transform_out_6},
};
