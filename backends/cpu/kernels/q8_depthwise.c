// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of 8-bit numbers. Compiled once for each ISA level; INF_Q8_DEPTHWISE is
// the name of the table that it defines.
#include "backends/cpu/kernels/q8.h"
#include "backends/cpu/kernels/qvec.h"

#define WIDTH   ((size_t)4 * INF_QVEC_WIDTH) // channels in a block
#define VECTORS 4                            // vectors of sums in a block

INF_QVEC_INLINE inf_qvec_bytes load_some(const uint8_t *from, size_t count)
{
    uint8_t bytes[4 * INF_QVEC_WIDTH] = {0};
    memcpy(bytes, from, count);
    return qvec_bytes_load(bytes);
}

// Interleaves the bytes of the first `row_count` of four rows; the bytes of the other rows are 0.
// `whole` is true if a full block of channels may be read at each column.
INF_QVEC_INLINE void interleave_rows(const struct inf_q8_columns *columns, uint8_t *y,
                                     const size_t row_count, const bool whole)
{
    const inf_qvec_bytes flip = qvec_bytes_all(columns->flip);
    const size_t channels = columns->channels;
    inf_qvec_bytes rows[4];
    INF_QVEC_UNROLL
    for (size_t r = 0; r < 4; r++)
        rows[r] = qvec_bytes_all(0);
    for (size_t i = 0; i < columns->count; i++) {
        INF_QVEC_UNROLL
        for (size_t r = 0; r < 4; r++) {
            if (r >= row_count)
                continue;
            const uint8_t *from = columns->rows[r] + i * columns->steps[r];
            rows[r] = whole ? qvec_bytes_load(from) : load_some(from, channels);
            rows[r] = qvec_bytes_flip(rows[r], flip);
        }
        inf_qvec lanes[VECTORS];
        qvec_interleave(rows, lanes);
        memcpy(y + i * columns->y_step, lanes, sizeof(lanes));
    }
}

static void interleave_columns(const struct inf_q8_columns *columns, uint8_t *y)
{
    bool whole = columns->readable || columns->channels == WIDTH;
    size_t row_count = 0;
    while (row_count < 4 && columns->rows[row_count] != NULL)
        row_count++;
    if (whole && row_count == 3)
        interleave_rows(columns, y, 3, true);
    else if (whole && row_count == 4)
        interleave_rows(columns, y, 4, true);
    else
        interleave_rows(columns, y, row_count, whole);
}

// Requantises the sums of one pixel.
INF_QVEC_INLINE inf_qvec_bytes requantize_sums(const struct inf_q8_window *window,
                                               const inf_qvec *sums, const inf_qvec_end *end)
{
    inf_qvec_float y[VECTORS];
    INF_QVEC_UNROLL
    for (size_t v = 0; v < VECTORS; v++)
        y[v] = qvec_times(qvec_to_float(sums[v]),
                          qvec_float_load(window->requant.scale + v * INF_QVEC_WIDTH));
    return qvec_finish(y, end);
}

// Adds the products of the weights' ninth bits (struct inf_q8_carry) to the sums of one pixel.
INF_QVEC_INLINE void add_carries(const struct inf_q8_window *window, const uint8_t *columns,
                                 inf_qvec *sums)
{
    for (size_t c = 0; c < window->carry_count; c++) {
        const struct inf_q8_carry *carry = &window->carries[c];
        const uint8_t *from =
            columns + (carry->segment * window->tap_step * window->fours + carry->quad) * 4 * WIDTH;
        INF_QVEC_UNROLL
        for (size_t v = 0; v < VECTORS; v++) {
            inf_qvec_x x = qvec_x(qvec_load((const int32_t *)(from + v * WIDTH)));
            inf_qvec_w twice = qvec_w(carry->w + v * WIDTH);
            sums[v] = qvec_dot(qvec_dot(sums[v], x, twice), x, twice);
            sums[v] = qvec_dot(sums[v], x, qvec_w(carry->w + (4 + v) * WIDTH));
        }
    }
}

// Computes the bytes of one pixel.
INF_QVEC_INLINE inf_qvec_bytes compute_pixel(const struct inf_q8_window *window,
                                             const uint8_t *columns, const inf_qvec_end *end,
                                             const size_t kernel, const size_t fours)
{
    const int8_t *w = window->w;
    inf_qvec sums[VECTORS];
    INF_QVEC_UNROLL
    for (size_t v = 0; v < VECTORS; v++)
        sums[v] = qvec_load(window->bias + v * INF_QVEC_WIDTH);
    for (size_t k = 0; k < kernel; k++) {
        const uint8_t *from = columns + k * window->tap_step * fours * 4 * WIDTH;
        for (size_t four = 0; four < fours; four++) {
            INF_QVEC_UNROLL
            for (size_t v = 0; v < VECTORS; v++, from += WIDTH, w += WIDTH) {
                inf_qvec_x x = qvec_x(qvec_load((const int32_t *)from));
                sums[v] = qvec_dot(sums[v], x, qvec_w(w));
            }
        }
    }
    add_carries(window, columns, sums);
    return requantize_sums(window, sums, end);
}

// The weights and biases of a window with HELD_TAPS taps and one group of four rows, which are read
// once for all pixels of a call.
#define HELD_TAPS 3
struct held {
    inf_qvec_w w[HELD_TAPS][VECTORS];
    inf_qvec bias[VECTORS];
};

INF_QVEC_INLINE void hold_weights(const struct inf_q8_window *window, struct held *held)
{
    INF_QVEC_UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
        held->bias[v] = qvec_load(window->bias + v * INF_QVEC_WIDTH);
        INF_QVEC_UNROLL
        for (size_t k = 0; k < HELD_TAPS; k++)
            held->w[k][v] = qvec_w(window->w + (k * VECTORS + v) * WIDTH);
    }
}

INF_QVEC_INLINE inf_qvec_bytes compute_held(const struct inf_q8_window *window,
                                            const struct held *held, const uint8_t *columns,
                                            const inf_qvec_end *end)
{
    inf_qvec sums[VECTORS];
    INF_QVEC_UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
        sums[v] = held->bias[v];
        INF_QVEC_UNROLL
        for (size_t k = 0; k < HELD_TAPS; k++) {
            const uint8_t *from = columns + (k * window->tap_step * 4 + v) * WIDTH;
            sums[v] = qvec_dot(sums[v], qvec_x(qvec_load((const int32_t *)from)), held->w[k][v]);
        }
    }
    add_carries(window, columns, sums);
    return requantize_sums(window, sums, end);
}

INF_QVEC_INLINE void compute_pixels(const struct inf_q8_window *window, const uint8_t *columns,
                                    size_t pixels, uint8_t *y, const size_t kernel,
                                    const size_t fours)
{
    const bool holds = kernel == HELD_TAPS && fours == 1;
    const size_t step = window->x_step * fours * 4 * WIDTH;
    const struct inf_q8_requant *requant = &window->requant;
    const inf_qvec_end end = qvec_end(requant->low, requant->high, requant->zero, requant->flip);
    struct held held;
    if (holds)
        hold_weights(window, &held);
    for (; pixels > 0; pixels--, columns += step, y += window->y_step) {
        inf_qvec_bytes bytes = holds ? compute_held(window, &held, columns, &end)
                                     : compute_pixel(window, columns, &end, kernel, fours);
        // If pixels are neighbours, the next ones replace what is written behind one of them.
        bool packed = window->y_step == window->channels && pixels * window->y_step >= WIDTH;
        if (window->channels == WIDTH || packed) {
            qvec_bytes_store(y, bytes);
        } else {
            uint8_t some[4 * INF_QVEC_WIDTH];
            qvec_bytes_store(some, bytes);
            memcpy(y, some, window->channels);
        }
    }
}

static void run_window(const struct inf_q8_window *window, const uint8_t *columns, size_t pixels,
                       uint8_t *y)
{
    size_t kernel = window->kernel;
    size_t fours = window->fours;
    if (kernel == HELD_TAPS && fours == 1)
        compute_pixels(window, columns, pixels, y, HELD_TAPS, 1);
    else if (kernel == 5 && fours == 2)
        compute_pixels(window, columns, pixels, y, 5, 2);
    else
        compute_pixels(window, columns, pixels, y, kernel, fours);
}

const struct inf_q8_depthwise INF_Q8_DEPTHWISE = {WIDTH, interleave_columns, run_window};
