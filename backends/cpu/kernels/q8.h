// SPDX-License-Identifier: Apache-2.0
// Inner loops on 8-bit numbers. q8_gemm.c and q8_depthwise.c are compiled once for each instruction
// set, each giving a table; all give the same bits.
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
struct inf_q8_end {
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
    struct inf_q8_end end;
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

// Tables that this build may have; the levels of isa.h have those of this processor.
extern const struct inf_q8_gemms inf_gemm_q8_baseline, inf_gemm_q8_avx2, inf_gemm_q8_vnni;

#endif
