// SPDX-License-Identifier: Apache-2.0
// Inner loops on 8-bit numbers. q8_gemm.c, q8_depthwise.c and q8_eltwise.c are compiled once for
// each ISA level; each compilation defines one table. All levels give the same bits.
//
// x is unsigned and weights are signed. The caller converts between INT8 and UINT8 by adding 128
// modulo 256, and moves the zero points by the same amount.
#ifndef INF_BACKENDS_CPU_KERNELS_Q8_H
#define INF_BACKENDS_CPU_KERNELS_Q8_H

#include <stddef.h>
#include <stdint.h>

#define INF_Q8_ROWS_MAX    12
#define INF_Q8_VECTORS_MAX 2 // most vectors in a panel

// Requantisation of sums. Without scale, sums stay 32-bit integers. With scale they become bytes:
//
//     round(min(max(sum * scale, low), high)) + zero
struct inf_q8_requant {
    const float *scale; // by column, padded; NULL: sums are stored as 32-bit integers
    float low, high;
    int32_t zero;
};

// The columns of a product that one call computes, and the parameters that are the same for all
// pixels.
struct inf_q8_panel {
    size_t segments;
    size_t quads;        // groups of four bytes in a segment
    const int8_t *w;     // [segments][quads][columns with padding][4]
    const int32_t *bias; // by column, padded
    // Zero points of the weights by column, padded; NULL: all zero points are 0.
    const int32_t *zeros;
    struct inf_q8_requant requant;
    size_t y_step;  // elements from pixel to pixel
    size_t columns; // columns that are written: all except the padding of the last vector
};

// Some pixels that are multiplied with one panel.
struct inf_q8_gemm {
    const uint8_t *const *a; // by segment: pointer to the operand of the first pixel
    size_t a_step;           // bytes from pixel to pixel within a segment
    const int32_t *sums;     // sum of the bytes of each pixel; set if the panel has zeros
    void *y;                 // results: bytes, or 32-bit integers if there is no scale
};

typedef void inf_q8_gemm_fn(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm);

struct inf_q8_gemms {
    const char *name; // name of the ISA level, for display
    size_t width;     // columns in a vector
    size_t rows_max;  // largest number of pixels in one call
    // By number of vectors - 1, and number of pixels - 1.
    inf_q8_gemm_fn *gemm[INF_Q8_VECTORS_MAX][INF_Q8_ROWS_MAX];
};

// Some columns of four rows of x, to be interleaved for depthwise windows.
struct inf_q8_columns {
    // The first column of each row. NULL: the row does not exist and counts as zeros.
    const uint8_t *rows[4];
    size_t step;     // bytes from column to column
    size_t count;    // columns
    size_t channels; // bytes in a column: a whole block, or fewer if fewer channels are left
    uint8_t flip;    // 0 or 128: byte ^ flip is the unsigned number
    size_t y_step;   // bytes between interleaved columns
};

// A depthwise window on a block of channels.
struct inf_q8_window {
    size_t kernel;                 // columns of taps
    size_t fours;                  // groups of four rows of taps, the last one padded
    size_t tap_step;               // columns from tap to tap
    size_t x_step;                 // columns of x from pixel to pixel of y
    size_t y_step;                 // bytes from pixel to pixel
    size_t channels;               // channels of the block that are written
    const int8_t *w;               // [kernel][fours][interleaved]
    const int32_t *bias;           // interleaved, like `zeros`
    const int32_t *zeros;          // zero points of the weights; NULL: all zero points are 0
    struct inf_q8_requant requant; // `scale` is not NULL; `zero` is 0 to 255
    uint8_t y_flip;                // 0 or 128: the result is exclusive-ored with it
};

// Depthwise windows are computed for blocks of channels. The bytes of four rows of a column are
// interleaved, so that a 32-bit lane holds four taps of one channel, and one dot instruction adds
// four products:
//
//     rows r0..r3 of a column, channels a b c ..:    a0 b0 c0 ..  /  a1 b1 c1 ..  /  a2 ..  /  a3
// ..
//     interleaved:                                   a0 a1 a2 a3  b0 b1 b2 b3  c0 c1 c2 c3 ..
//
// All windows that contain a column use the same interleaved column. The order of lanes differs
// between ISA levels. The same function therefore also interleaves the weights and, as four rows of
// bytes, the 32-bit numbers.
struct inf_q8_depthwise {
    size_t width; // channels in a block: an interleaved column has 4 * width bytes
    void (*interleave)(const struct inf_q8_columns *columns, uint8_t *y);
    // `columns` is [columns][fours][interleaved], starting at the first tap of the first pixel.
    void (*run)(const struct inf_q8_window *window, const uint8_t *columns, size_t pixels,
                uint8_t *y);
};

// The byte b represents the number (b - zero) * scale.
struct inf_q8_scaling {
    float scale;
    int32_t zero;    // of an operand: the zero point after `flip`
    uint8_t flip;    // of an operand: 0 or 128; byte ^ flip is the unsigned number
    float low, high; // of a result: the bounds minus the zero point
};

enum inf_q8_binary {
    INF_Q8_ADD,
    INF_Q8_SUB,
    INF_Q8_MUL,
    INF_Q8_BINARY_COUNT
};

// y = a op b, computed on the numbers that the bytes represent. `scalings` are those of a, b and y,
// in this order.
typedef void inf_q8_binary_fn(size_t count, const uint8_t *a, const uint8_t *b,
                              const struct inf_q8_scaling *scalings, uint8_t *y);

struct inf_q8_eltwise {
    // NaN becomes 0, clamped to the bounds. Quotients are rounded once.
    void (*quantize)(size_t count, const float *x, const struct inf_q8_scaling *y_is, uint8_t *y);
    void (*dequantize)(size_t count, const uint8_t *x, const struct inf_q8_scaling *x_is, float *y);
    inf_q8_binary_fn *binary[INF_Q8_BINARY_COUNT];
};

// The tables of one ISA level.
struct inf_q8 {
    const struct inf_q8_gemms *gemm;
    const struct inf_q8_eltwise *eltwise;
    const struct inf_q8_depthwise *depthwise;
    const struct inf_q8_depthwise *depthwise_half; // smaller blocks, for the last channels
};

// The tables that a build may define. isa.h gives the tables that this processor uses.
extern const struct inf_q8_gemms inf_gemm_q8_baseline, inf_gemm_q8_avx2, inf_gemm_q8_vnni,
    inf_gemm_q8_neon, inf_gemm_q8_dotprod;
extern const struct inf_q8_eltwise inf_eltwise_q8_baseline, inf_eltwise_q8_avx2,
    inf_eltwise_q8_vnni, inf_eltwise_q8_neon, inf_eltwise_q8_dotprod;
extern const struct inf_q8_depthwise inf_depthwise_q8_baseline, inf_depthwise_q8_avx2,
    inf_depthwise_q8_vnni, inf_depthwise_q8_vnni_half, inf_depthwise_q8_neon,
    inf_depthwise_q8_dotprod;

#endif
