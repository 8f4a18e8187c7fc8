// SPDX-License-Identifier: Apache-2.0
// Inner loops on 8-bit numbers. q8_gemm.c, q8_depthwise.c and q8_eltwise.c are compiled once for each
// instruction set, each giving a table; all give the same bits.
//
// x is unsigned and weights are signed: who calls turns INT8 into UINT8 by adding 128, and the other way
// round, and moves the zero points likewise.
#ifndef INF_BACKENDS_CPU_KERNELS_Q8_H
#define INF_BACKENDS_CPU_KERNELS_Q8_H

#include <stddef.h>
#include <stdint.h>

#define INF_Q8_ROWS_MAX    12
#define INF_Q8_VECTORS_MAX 2 // of a panel

// What becomes of sums: 32-bit integers where scale is NULL, else bytes
//     round(min(max(sum * scale, low), high)) + zero
struct inf_q8_requant {
    const float *scale; // by column, filled up
    float low, high;
    int32_t zero;
};

// The columns of a product that are computed together, and what is the same for all its pixels.
struct inf_q8_panel {
    size_t segments;
    size_t quads;         // of four bytes in a segment
    const int8_t *w;      // [segments][quads][columns of the panel, filled up][4]
    const int32_t *bias;  // filled up
    const int32_t *zeros; // of the weights, filled up; NULL: all 0
    struct inf_q8_requant requant;
    size_t y_step;  // elements from pixel to pixel
    size_t columns; // that are written: all of the panel but for a part of its last vector
};

// Some pixels times one panel.
struct inf_q8_gemm {
    const uint8_t *const *a; // by segment: its part of the first pixel
    size_t a_step;           // bytes from pixel to pixel, in each segment
    const int32_t *sums;     // of the bytes of each pixel, where the panel has zeros
    void *y;                 // bytes, or 32-bit integers where there is no scale
};

typedef void inf_q8_gemm_fn(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm);

struct inf_q8_gemms {
    const char *name;                                          // of the instruction set, for people
    size_t width;                                              // columns of a vector
    size_t rows_max;                                           // most pixels of one call
    inf_q8_gemm_fn *gemm[INF_Q8_VECTORS_MAX][INF_Q8_ROWS_MAX]; // by vectors - 1, pixels - 1
};

// Some columns of a few rows of x, for depthwise windows.
struct inf_q8_columns {
    const uint8_t
        *rows[4];    // the first column of each; NULL: there is no such row, and 0 in its place
    size_t step;     // bytes from column to column
    size_t count;    // columns
    size_t channels; // bytes of a column: all of a block, or fewer where these are the only ones
    uint8_t flip;    // what makes bytes of rows unsigned, by exclusive or
    size_t y_step;   // bytes between interleaved columns
};

// A depthwise window on a block of channels.
struct inf_q8_window {
    size_t kernel;                 // columns of taps
    size_t fours;                  // of rows of taps, the last filled up
    size_t tap_step;               // columns from tap to tap
    size_t x_step;                 // columns of x from pixel to pixel of y
    size_t y_step;                 // bytes from pixel to pixel
    size_t channels;               // of the block that are written
    const int8_t *w;               // [kernel][fours][interleaved]
    const int32_t *bias;           // interleaved, as the following
    const int32_t *zeros;          // of the weights; NULL: all 0
    struct inf_q8_requant requant; // scale is given; zero is 0 to 255
    uint8_t y_flip;                // what becomes of bytes at last, by exclusive or
};

// Depthwise windows work on blocks of channels. Bytes of four rows of one column are interleaved, so that
// a 32-bit lane has what one channel has there; the sums of a window are sums over interleaved columns.
// Columns serve all windows that they are part of. In which order an instruction set has the lanes is its own
// business: weights are interleaved by the same function, and 32-bit numbers as four rows of their bytes.
struct inf_q8_depthwise {
    size_t width; // channels of a block: a column interleaved has 4 * width bytes
    void (*interleave)(const struct inf_q8_columns *columns, uint8_t *y);
    // `columns`: [columns][fours][interleaved], from the first tap of the first pixel.
    void (*run)(const struct inf_q8_window *window, const uint8_t *columns, size_t pixels,
                uint8_t *y);
};

// What bytes stand for: (byte - zero) * scale.
struct inf_q8_scaling {
    float scale;
    int32_t zero;    // of operands: after `flip`
    uint8_t flip;    // of operands: what makes a byte unsigned, by exclusive or
    float low, high; // of results: bounds, less the zero point
};

enum inf_q8_binary {
    INF_Q8_ADD,
    INF_Q8_SUB,
    INF_Q8_MUL,
    INF_Q8_BINARY_COUNT
};

// y = a op b of what the bytes stand for. `scalings`: of a, b and y.
typedef void inf_q8_binary_fn(size_t count, const uint8_t *a, const uint8_t *b,
                              const struct inf_q8_scaling *scalings, uint8_t *y);

struct inf_q8_eltwise {
    // What is no number becomes 0 within the bounds; results of the others are rounded once divided.
    void (*quantize)(size_t count, const float *x, const struct inf_q8_scaling *y_is, uint8_t *y);
    void (*dequantize)(size_t count, const uint8_t *x, const struct inf_q8_scaling *x_is, float *y);
    inf_q8_binary_fn *binary[INF_Q8_BINARY_COUNT];
};

// What one instruction set has.
struct inf_q8 {
    const struct inf_q8_gemms *gemm;
    const struct inf_q8_eltwise *eltwise;
    const struct inf_q8_depthwise *depthwise;
    const struct inf_q8_depthwise *depthwise_half; // of smaller blocks, for the last channels
};

// Tables that this build may have; the levels of isa.h have those of this processor.
extern const struct inf_q8_gemms inf_gemm_q8_baseline, inf_gemm_q8_avx2, inf_gemm_q8_vnni,
    inf_gemm_q8_neon, inf_gemm_q8_dotprod;
extern const struct inf_q8_eltwise inf_eltwise_q8_baseline, inf_eltwise_q8_avx2,
    inf_eltwise_q8_vnni, inf_eltwise_q8_neon, inf_eltwise_q8_dotprod;
extern const struct inf_q8_depthwise inf_depthwise_q8_baseline, inf_depthwise_q8_avx2,
    inf_depthwise_q8_vnni, inf_depthwise_q8_vnni_half, inf_depthwise_q8_neon,
    inf_depthwise_q8_dotprod;

#endif
