// SPDX-License-Identifier: Apache-2.0
// Inner loops on 8-bit numbers. q8_gemm.c, q8_depthwise.c and q8_eltwise.c are compiled once for
// each ISA level; each compilation defines one table of functions. All levels compute identical
// results, bit for bit.
//
// The input x is unsigned and weights are signed. The caller converts between INT8 and UINT8 by
// adding 128 modulo 256, and adds the same amount to the zero points.
#ifndef INF_BACKENDS_CPU_KERNELS_Q8_H
#define INF_BACKENDS_CPU_KERNELS_Q8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/map/lookup.h"
#include "backends/cpu/kernels/tile_shape.h"

#define INF_Q8_ROWS_MAX          (2 * INF_TILE_CALL_ROWS) // most pixels of a call
#define INF_Q8_VECTORS_MAX       2                        // most vectors in a panel
#define INF_Q8_PANEL_COLUMNS_MAX 32 // most columns in a panel, at any ISA level

// Requantisation: how 32-bit sums are converted to results. If `scale` is NULL, the results are the
// sums themselves. Otherwise the results are bytes:
//
//     (round(min(max(sum * scale, low), high)) + zero) ^ flip
struct inf_q8_requant {
    const float *scale; // indexed by column, padded; NULL: sums are stored as 32-bit integers
    float low, high;
    int32_t zero; // low + zero and high + zero are 0 to 255
    uint8_t flip; // 0, or 128 for signed results
};

// Weights are signed bytes, but a weight minus its zero point may need nine bits. The packed byte
// is the low eight bits, as a signed number. The rest is 256 times the carry of the weight, which
// is -1, 0 or 1. This struct has the carries of a group of four rows as two blocks of bytes in the
// layout of `w`. The products with the first block, INF_Q8_CARRY_TWICE times the carries, are added
// twice, and those with the second block, INF_Q8_CARRY_ONCE times the carries, once:
// 2 * 127 + 2 = 256.
struct inf_q8_carry {
    // Of a panel: the segment and the group of four bytes. Of a depthwise window: the tap along the
    // width and the group of four rows.
    size_t segment, quad;
    const int8_t *w;
};

#define INF_Q8_CARRY_TWICE  127
#define INF_Q8_CARRY_ONCE   2
#define INF_Q8_CARRY_BLOCKS 2

// The columns of a product that one kernel call computes, with their weights, and the parameters
// that are the same for all pixels.
struct inf_q8_panel {
    size_t segments;
    // Number of groups of four bytes in a segment (a contiguous part of a pixel's operand).
    // The four bytes of a group are multiplied together.
    size_t quads;
    const int8_t *w;     // [segments][quads][columns with padding][4]
    const int32_t *bias; // bias, indexed by column, padded
    // Zero points of the weights, indexed by column, padded; NULL: all zero points are 0.
    const int32_t *zeros;
    const struct inf_q8_carry *carries;
    size_t carry_count;
    struct inf_q8_requant requant;
    size_t y_step;     // elements between the results of neighbouring pixels
    size_t columns;    // columns that are written: all except the padding of the last vector
    size_t tile_depth; // inf_tile_depth(quads); for kernels with `begin`
};

// Operands and results of one kernel call, which multiplies some pixels with one panel of weights.
struct inf_q8_gemm {
    // Indexed by segment (contiguous part of an operand): the operand of the first pixel. If
    // `widen` of the ISA level is not NULL, that function wrote the operand.
    const uint8_t *const *a;
    size_t pixels;       // pixels of the call; read only by kernels with `begin`
    size_t a_step;       // bytes between the operands of neighbouring pixels
    const int32_t *sums; // sum of the bytes of each pixel; NULL unless the panel has zero points
    void *y;             // results: bytes, or 32-bit integers if there is no scale
};

typedef void inf_q8_gemm_fn(const struct inf_q8_panel *panel, const struct inf_q8_gemm *gemm);

// XORs each byte of `quads` groups of four bytes at `from` with `flip`, and widens it to a 16-bit
// number. Writes the numbers in the order in which the kernels of this ISA level read them. `to`
// has 8 bytes for each group.
typedef void inf_q8_widen_fn(uint8_t *to, const uint8_t *from, size_t quads, uint8_t flip);

struct inf_q8_gemms {
    const char *name; // name of the ISA level, for display
    size_t width;     // columns in a vector
    size_t rows_max;  // largest number of pixels in one call
    // Widens the operands of pixels for the kernels; NULL: the kernels read bytes. The caller
    // widens a pixel once and then multiplies it with several panels.
    inf_q8_widen_fn *widen;
    // Returns the sum of `count` bytes, each XORed with `flip`.
    int32_t (*sum)(const uint8_t *bytes, size_t count, uint8_t flip);
    // Copies `count` bytes, each XORed with `flip`. The ranges do not overlap.
    void (*copy)(uint8_t *to, const uint8_t *from, size_t count, uint8_t flip);
    // The kernels: gemm[v - 1][p - 1] computes p pixels and v vectors of columns.
    inf_q8_gemm_fn *gemm[INF_Q8_VECTORS_MAX][INF_Q8_ROWS_MAX];
    // Prepares this thread for calls with panels of this tile_depth, until it calls end(). NULL:
    // not needed. Kernels with this function read operands of up to INF_TILE_CALL_ROWS pixels,
    // from each multiple of it on, whatever gemm->pixels is; those behind the last pixel may have
    // any values.
    void (*begin)(size_t tile_depth);
    void (*end)(void);
};

// Input of interleave() (see struct inf_q8_depthwise below): some columns of four rows of x.
struct inf_q8_columns {
    // The address of the first column in each of the four rows. NULL if the row does not exist; its
    // bytes are then 0.
    const uint8_t *rows[4];
    size_t steps[4]; // bytes between neighbouring columns of each row
    size_t count;    // columns
    // bytes in a column: one for each channel of the block; the last block may have fewer
    size_t channels;
    bool readable; // a whole block of bytes may be read at each column; those behind `channels` are
                   // of any value, and so are their lanes in the interleaved columns
    uint8_t flip;  // 0 or 128: byte ^ flip is the unsigned number
    size_t y_step; // bytes between neighbouring interleaved columns (4 rows of one column)
};

// A depthwise window on one block of channels. x, w and bias are in interleaved order, which is
// described at struct inf_q8_depthwise below.
struct inf_q8_window {
    size_t kernel; // taps along the width
    size_t fours;  // groups of four rows of taps; rows that complete the last group are 0
    // Steps in x, in interleaved columns (4 rows of one column of the input, stored together):
    size_t tap_step;     // from one tap of the window to the next
    size_t x_step;       // from the window of one pixel of y to that of the next
    size_t y_step;       // bytes between neighbouring pixels of y
    size_t channels;     // channels of the block that are written
    const int8_t *w;     // weights [kernel][fours][interleaved bytes]
    const int32_t *bias; // bias of the channels, interleaved
    const struct inf_q8_carry *carries;
    size_t carry_count;
    struct inf_q8_requant requant; // `scale` is not NULL, and is interleaved
};

// Depthwise windows are computed for blocks of `width` channels. The bytes of four rows of a column
// of x are interleaved, so that a 32-bit lane holds four taps of one channel, and one dot
// instruction adds four products. With channels a, b, c and rows 0 to 3:
//
//     row 0          a0 b0 c0 ..
//     row 1          a1 b1 c1 ..
//     row 2          a2 b2 c2 ..
//     row 3          a3 b3 c3 ..
//     interleaved    a0 a1 a2 a3  b0 b1 b2 b3  c0 c1 c2 c3 ..
//
// A column is interleaved once and used by all windows that contain it. The order of the lanes
// depends on the ISA level. Therefore weights are interleaved by the same function, and so are
// 32-bit numbers such as the bias, whose four bytes are passed as four rows.
struct inf_q8_depthwise {
    size_t width; // channels in a block; four interleaved rows of a column need 4 * width bytes
    void (*interleave)(const struct inf_q8_columns *columns, uint8_t *y);
    // Computes `pixels` pixels of y. `columns` is [columns][fours][interleaved bytes], and starts
    // at the first tap of the first pixel.
    void (*run)(const struct inf_q8_window *window, const uint8_t *columns, size_t pixels,
                uint8_t *y);
};

// How bytes represent numbers: byte b stands for (b - zero) * scale.
struct inf_q8_scaling {
    float scale;
    int32_t zero;    // for an operand: its zero point after XOR with `flip`
    uint8_t flip;    // for an operand: 0 or 128; byte ^ flip is the unsigned number
    float low, high; // for a result: the bounds minus the zero point
    // Of INF_Q8_SUM only: for an operand its factor; for a result the shift of the sum.
    int32_t factor;
};

enum inf_q8_binary {
    INF_Q8_ADD,
    INF_Q8_SUB,
    INF_Q8_MUL,
    INF_Q8_SUM,     // a * factor + b * factor, shifted right with halves up; see inf_qsum_factors()
    INF_Q8_PRODUCT, // the product of the integers times the scale of y
    INF_Q8_BINARY_COUNT
};

// Computes y[i] = a[i] op b[i] on the numbers that the bytes represent. `scalings` has the scalings
// of a, b and y, in this order.
typedef void inf_q8_binary_fn(size_t count, const uint8_t *a, const uint8_t *b,
                              const struct inf_q8_scaling *scalings, uint8_t *y);

struct inf_q8_eltwise {
    // Converts floats to bytes. NaN is converted like 0 and then clamped to the bounds. Each
    // quotient is rounded once.
    void (*quantize)(size_t count, const float *x, const struct inf_q8_scaling *y_is, uint8_t *y);
    void (*dequantize)(size_t count, const uint8_t *x, const struct inf_q8_scaling *x_is, float *y);
    inf_q8_binary_fn *binary[INF_Q8_BINARY_COUNT];
    // The first two functions for signed numbers of 16 bits; `flip` has no meaning for these.
    void (*quantize_wide)(size_t count, const float *x, const struct inf_q8_scaling *y_is,
                          int16_t *y);
    void (*dequantize_wide)(size_t count, const int16_t *x, const struct inf_q8_scaling *x_is,
                            float *y);
};

struct inf_digit_loops; // blocks.h

// The 8-bit kernel tables of one ISA level.
struct inf_q8 {
    const struct inf_q8_gemms *gemm;
    const struct inf_q8_eltwise *eltwise;
    const struct inf_q8_depthwise *depthwise;
    // Loops for the last channels of x: their blocks have fewer channels than those of `depthwise`.
    const struct inf_q8_depthwise *depthwise_half;
    const struct inf_q8_lookup *lookup;
    // Kernels for the same operands as those of `gemm`, in tile registers; NULL if there are none.
    const struct inf_q8_gemms *gemm_tile;
    // Products of floats with weights in bytes, for panels of the float loops of this level, and of
    // the half width; NULL if the level has no dot products of bytes.
    const struct inf_digit_loops *digits, *digits_half;
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives the
// tables that this processor uses.
extern const struct inf_q8_gemms inf_gemm_q8_baseline, inf_gemm_q8_avx2, inf_gemm_q8_avx_vnni,
    inf_gemm_q8_vnni, inf_gemm_q8_amx, inf_gemm_q8_neon, inf_gemm_q8_dotprod;
extern const struct inf_q8_eltwise inf_eltwise_q8_baseline, inf_eltwise_q8_avx2,
    inf_eltwise_q8_avx_vnni, inf_eltwise_q8_vnni, inf_eltwise_q8_neon, inf_eltwise_q8_dotprod;
extern const struct inf_q8_depthwise inf_depthwise_q8_baseline, inf_depthwise_q8_avx2,
    inf_depthwise_q8_avx_vnni, inf_depthwise_q8_vnni, inf_depthwise_q8_vnni_half,
    inf_depthwise_q8_neon, inf_depthwise_q8_dotprod;

#endif
