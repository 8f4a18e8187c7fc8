// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and parts of complex numbers. A complex tensor is two values of the graph: its
// real part is the value of the tensor, and the frame has its imaginary part.
#include "backends/graph/build/operators.h"
#include "backends/import/common/dft.h"
#include "backends/import/tflite/op_table.h"

// Returns the imaginary part of input 0. Latches INF_INVALID if the input is not complex.
static uint32_t find_imaginary(struct inf_tflite_scope *s)
{
    uint32_t imaginary = s->frame->imaginary[s->op->inputs.items[0]];
    if (imaginary == INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "its input is not complex");
    return imaginary;
}

static void lower_real(struct inf_tflite_scope *s)
{
    (void)find_imaginary(s);
    s->outputs[0] = inf_tflite_stored(s, 0);
}

static void lower_imag(struct inf_tflite_scope *s)
{
    s->outputs[0] = find_imaginary(s);
}

static void lower_complex_abs(struct inf_tflite_scope *s)
{
    uint32_t real = inf_build_unary(&s->b, INF_UNARY_SQUARE, inf_tflite_stored(s, 0));
    uint32_t imaginary = inf_build_unary(&s->b, INF_UNARY_SQUARE, find_imaginary(s));
    s->outputs[0] = inf_build_unary(&s->b, INF_UNARY_SQRT, inf_build_add(&s->b, real, imaginary));
}

// Exchanges the last two axes.
static uint32_t swap_axes(struct inf_tflite_scope *s, uint32_t x)
{
    int64_t perm[INF_LIMIT_RANK];
    int32_t rank = inf_build_rank(&s->b, x);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return inf_build_transpose(&s->b, x, perm, rank);
}

// Transforms along the last axis. *imaginary is INF_VALUE_NONE if the input is real.
static void add_dft(struct inf_tflite_scope *s, enum inf_dft_kind kind, int64_t length,
                    uint32_t *real, uint32_t *imaginary)
{
    struct inf_dft dft = {.kind = kind, .length = length, .real = *real, .imaginary = *imaginary};
    if (inf_build_ok(&s->b))
        s->b.code = inf_graph_add_dft(s->b.graph, s->b.name, &dft, real, imaginary, s->b.err);
}

static void lower_rfft2d(struct inf_tflite_scope *s)
{
    struct inf_build_ints lengths =
        inf_build_const_ints(&s->b, inf_tflite_list(s, 1), "the lengths");
    uint32_t real = inf_tflite_stored(s, 0), imaginary = INF_VALUE_NONE;
    if (inf_build_ok(&s->b) && (lengths.count != 2 || inf_build_rank(&s->b, real) < 2))
        inf_build_fail(&s->b, INF_INVALID, "has %u lengths and %d axes, wanted 2 and at least 2",
                       lengths.count, inf_build_rank(&s->b, real));
    if (!inf_build_ok(&s->b))
        return;
    add_dft(s, INF_DFT_REAL_FORWARD, lengths.values[1], &real, &imaginary);
    real = swap_axes(s, real);
    imaginary = swap_axes(s, imaginary);
    add_dft(s, INF_DFT_FORWARD, lengths.values[0], &real, &imaginary);
    s->outputs[0] = swap_axes(s, real);
    s->frame->imaginary[s->op->outputs.items[0]] = swap_axes(s, imaginary);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_RFFT2D, NULL, lower_rfft2d, 2, 2, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_REAL, NULL, lower_real, 1, 1, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_IMAG, NULL, lower_imag, 1, 1, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_COMPLEX_ABS, NULL, lower_complex_abs, 1, 1, 1, INF_TFLITE_MODE_STORED, 0, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_spectral = {ops, INF_ARRAY_LENGTH(ops)};
