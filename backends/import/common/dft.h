// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms along the last axis, as products with matrices of sines and cosines.
// They work for any length. A complex tensor is two values of equal shape, f32 or f64.
#ifndef INF_BACKENDS_IMPORT_COMMON_DFT_H
#define INF_BACKENDS_IMPORT_COMMON_DFT_H

#include "backends/graph/graph.h"

enum inf_dft_kind {
    INF_DFT_FORWARD,      // complex to complex
    INF_DFT_INVERSE,      // complex to complex, divided by the length
    INF_DFT_REAL_FORWARD, // real input to the first length / 2 + 1 terms
    INF_DFT_REAL_INVERSE, // the first length / 2 + 1 terms to real output
};

// The largest number of elements of one matrix. A transform of 2048 points needs 2048 * 2048.
#define INF_DFT_MATRIX_MAX ((int64_t)1 << 22)

// The transform to add: its kind, its length and its input x.
struct inf_dft {
    enum inf_dft_kind kind;
    int64_t length; // number of points; x is cut or padded with zeros to this length
    // The values of x; `imaginary` is INF_VALUE_NONE if and only if x is real.
    uint32_t real, imaginary;
};

// Adds the nodes of a transform, named `name`, and infers their shapes. *out_imaginary is
// INF_VALUE_NONE for INF_DFT_REAL_INVERSE.
//
// INF_INVALID      x is a scalar, or of another type, or the length is less than 1.
// INF_UNSUPPORTED  (OPERATOR) the last axis of x has no size yet.
// INF_EXHAUSTED    INF_DFT_MATRIX_MAX, or memory.
enum inf_code inf_graph_add_dft(struct inf_graph *graph, const char *name,
                                const struct inf_dft *dft, uint32_t *out_real,
                                uint32_t *out_imaginary, struct inf_error *err) INF_NODISCARD;

#endif
