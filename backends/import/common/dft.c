// SPDX-License-Identifier: Apache-2.0
// Builds a discrete Fourier transform as one or two matrix products for each output. The matrices
// hold cosines and sines of the angles 2 pi * row * column / length, including scale factors and
// the mirrored terms of real transforms.
// Example, 4 points, real input x: real = x C and imaginary = -x S, with C[r][c] = cos(pi r c / 2)
// and S[r][c] = sin(pi r c / 2).
#include "backends/import/common/dft.h"

#include <math.h>

#include "backends/graph/shape/infer.h"

#define TURN 6.283185307179586

// The matrices of one transform: y = x * matrix, along the last axis.
struct matrices {
    struct inf_graph *graph;
    const char *name;
    const struct inf_dft *dft;
    int64_t rows, columns; // elements of x and y along the last axis
    int32_t rank;
    struct inf_error *err;
};

// Returns the factor with which x[row] contributes to y[column]: a cosine, or a sine with its sign.
static double compute_coefficient(const struct matrices *m, int64_t row, int64_t column, bool sine)
{
    int64_t length = m->dft->length;
    // Reduce the angle modulo a full turn in integers, so that it stays small and exact.
    double angle = TURN * (double)(row * column % length) / (double)length;
    double value = sine ? sin(angle) : cos(angle);
    switch (m->dft->kind) {
    case INF_DFT_FORWARD:
    case INF_DFT_REAL_FORWARD:
        return value;
    case INF_DFT_INVERSE:
        return (sine ? -value : value) / (double)length;
    case INF_DFT_REAL_INVERSE:
        // The input has only one of each pair of mirrored terms, so a term that stands for a pair
        // counts twice.
        return (row == 0 || 2 * row == length ? 1 : 2) * (sine ? -value : value) / (double)length;
    }
    return 0;
}

// Adds the matrix of cosines, or `sign` times the matrix of sines, in x's type. Rows and columns
// beyond the transform are 0.
static enum inf_code add_matrix(const struct matrices *m, bool sine, double sign, uint32_t *out)
{
    enum inf_dtype dtype = m->graph->values[m->dft->real].dtype;
    struct inf_blob *data =
        inf_blob_create((size_t)m->rows * (size_t)m->columns * inf_dtype_size(dtype));
    if (data == NULL)
        return inf_fail(m->err, INF_EXHAUSTED, "no memory for a Fourier transform of %lld points",
                        (long long)m->dft->length);
    bool half = m->dft->kind == INF_DFT_REAL_INVERSE;
    int64_t terms = half ? m->dft->length / 2 + 1 : m->dft->length;
    for (int64_t row = 0; row < INF_MIN(m->rows, terms); row++)
        for (int64_t column = 0; column < m->columns; column++) {
            double element = sign * compute_coefficient(m, row, column, sine);
            int64_t at = row * m->columns + column;
            if (dtype == INF_DTYPE_F64)
                ((double *)data->data)[at] = element;
            else
                ((float *)data->data)[at] = (float)element;
        }
    struct inf_shape shape = INF_SHAPE(m->rows, m->columns);
    return inf_graph_add_const(m->graph, m->name, dtype, &shape, data, out, m->err);
}

static enum inf_code add_node(const struct matrices *m, enum inf_op op, const uint32_t *inputs,
                              uint32_t count, const union inf_attrs *attrs, uint32_t *out)
{
    uint32_t index;
    INF_TRY(inf_graph_add_node(m->graph, op, m->name, "Fourier", inputs, count, 1, &index, m->err));
    m->graph->nodes[index].attrs = *attrs;
    *out = m->graph->nodes[index].outputs[0];
    return inf_shape_infer_node(m->graph, index, m->err);
}

// Multiplies x by a matrix. A tensor of rank 1 is treated as a matrix with one row.
static enum inf_code add_product(const struct matrices *m, uint32_t x, uint32_t matrix,
                                 uint32_t *out)
{
    union inf_attrs attrs;
    if (m->rank == 1) {
        inf_attrs_init(&attrs, INF_OP_EXPAND_DIMS);
        attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {0}};
        INF_TRY(add_node(m, INF_OP_EXPAND_DIMS, &x, 1, &attrs, &x));
    }
    inf_attrs_init(&attrs, INF_OP_MATMUL);
    INF_TRY(add_node(m, INF_OP_MATMUL, (uint32_t[]){x, matrix}, 2, &attrs, out));
    if (m->rank != 1)
        return INF_OK;
    inf_attrs_init(&attrs, INF_OP_SQUEEZE);
    attrs.squeeze.axes = (struct inf_ints){.count = 1, .values = {0}};
    return add_node(m, INF_OP_SQUEEZE, out, 1, &attrs, out);
}

// Adds nodes that multiply value a by the matrix of cosines and value b by `sign` times the matrix
// of sines, and sets *out to the sum. If b is INF_VALUE_NONE, only a is multiplied.
static enum inf_code add_products(const struct matrices *m, uint32_t a, uint32_t b, double sign,
                                  uint32_t *out)
{
    uint32_t matrix, terms[2];
    INF_TRY(add_matrix(m, false, 1, &matrix));
    INF_TRY(add_product(m, a, matrix, &terms[0]));
    *out = terms[0];
    if (b == INF_VALUE_NONE)
        return INF_OK;
    INF_TRY(add_matrix(m, true, sign, &matrix));
    INF_TRY(add_product(m, b, matrix, &terms[1]));
    union inf_attrs attrs;
    inf_attrs_init(&attrs, INF_OP_BINARY);
    attrs.binary.kind = INF_BINARY_ADD;
    return add_node(m, INF_OP_BINARY, terms, 2, &attrs, out);
}

// Adds the nodes of the transform, which follow from e^-it = cos t - i sin t:
//   (a + ib) e^-it = (a cos t + b sin t) + i (b cos t - a sin t)
static enum inf_code build_parts(const struct matrices *m, uint32_t *out_real,
                                 uint32_t *out_imaginary)
{
    const struct inf_dft *dft = m->dft;
    *out_imaginary = INF_VALUE_NONE;
    INF_TRY(add_products(m, dft->real, dft->imaginary, 1, out_real));
    if (dft->kind == INF_DFT_REAL_INVERSE)
        return INF_OK;
    if (dft->imaginary != INF_VALUE_NONE)
        return add_products(m, dft->imaginary, dft->real, -1, out_imaginary);
    uint32_t matrix;
    INF_TRY(add_matrix(m, true, -1, &matrix));
    return add_product(m, dft->real, matrix, out_imaginary);
}

enum inf_code inf_graph_add_dft(struct inf_graph *graph, const char *name,
                                const struct inf_dft *dft, uint32_t *out_real,
                                uint32_t *out_imaginary, struct inf_error *err)
{
    const struct inf_shape *x = &graph->values[dft->real].shape;
    struct matrices m = {.graph = graph, .name = name, .dft = dft, .rank = x->rank, .err = err};
    if (x->rank == 0 || dft->length < 1)
        return inf_fail(err, INF_INVALID, "a Fourier transform of %lld points of a rank-%d tensor",
                        (long long)dft->length, x->rank);
    enum inf_dtype dtype = graph->values[dft->real].dtype;
    if (dtype != INF_DTYPE_F32 && dtype != INF_DTYPE_F64)
        return inf_fail(err, INF_INVALID, "a Fourier transform of %s", inf_dtype_name(dtype));
    if (x->rank < 0 || x->dims[x->rank - 1] < 0)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "how many points it transforms is not known");
    m.rows = x->dims[x->rank - 1];
    m.columns = dft->kind == INF_DFT_REAL_FORWARD ? dft->length / 2 + 1 : dft->length;
    if (m.rows < 1 || m.rows > INF_DFT_MATRIX_MAX || dft->length > INF_DFT_MATRIX_MAX ||
        m.rows * m.columns > INF_DFT_MATRIX_MAX)
        return inf_fail(err, INF_EXHAUSTED,
                        "a Fourier transform of %lld points of %lld elements needs a matrix of "
                        "1 to %lld elements",
                        (long long)dft->length, (long long)m.rows, (long long)INF_DFT_MATRIX_MAX);
    return build_parts(&m, out_real, out_imaginary);
}
