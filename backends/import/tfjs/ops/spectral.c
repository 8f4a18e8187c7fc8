// SPDX-License-Identifier: Apache-2.0
// Fourier transforms, and conversions between real and complex numbers.
#include "backends/import/common/dft.h"
#include "backends/import/tfjs/complex.h"
#include "backends/import/tfjs/op_table.h"
#include "backends/import/tfjs/region.h"

// Returns the real and imaginary parts of input 0. Fails if the input is real.
static enum inf_code read_parts(struct inf_tfjs_scope *scope, const uint32_t **out,
                                struct inf_error *err)
{
    const struct inf_tfjs_node *source = &scope->source->nodes[scope->node->inputs[0].node];
    if (!source->is_complex)
        return inf_tfjs_fail(scope, err, INF_INVALID, "its input is real, wanted complex numbers");
    *out = source->values;
    return INF_OK;
}

static enum inf_code lower_complex(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    return inf_tfjs_finish_complex(scope, scope->inputs[0], scope->inputs[1], err);
}

static enum inf_code lower_part(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    const uint32_t *parts;
    INF_TRY(read_parts(scope, &parts, err));
    return inf_tfjs_result(scope, parts[scope->op->kind], err);
}

// Lowers ComplexAbs: the square root of the sum of both squares.
static enum inf_code lower_abs(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    const uint32_t *parts;
    uint32_t squares[2], sum;
    INF_TRY(read_parts(scope, &parts, err));
    for (int i = 0; i < 2; i++) {
        struct inf_build_node square =
            inf_build_describe(INF_OP_UNARY, parts[i], INF_VALUE_NONE, INF_VALUE_NONE);
        square.attrs.unary.kind = INF_UNARY_SQUARE;
        INF_TRY(inf_tfjs_emit(scope, &square, &squares[i], err));
    }
    struct inf_build_node add =
        inf_build_describe(INF_OP_BINARY, squares[0], squares[1], INF_VALUE_NONE);
    add.attrs.binary.kind = INF_BINARY_ADD;
    INF_TRY(inf_tfjs_emit(scope, &add, &sum, err));
    struct inf_build_node root =
        inf_build_describe(INF_OP_UNARY, sum, INF_VALUE_NONE, INF_VALUE_NONE);
    root.attrs.unary.kind = INF_UNARY_SQRT;
    return inf_tfjs_finish(scope, &root, err);
}

// Sets *length to the second input of RFFT and IRFFT. If it is absent, uses the length that follows
// from the last axis of the first input.
static enum inf_code read_length(struct inf_tfjs_scope *scope, enum inf_dft_kind kind,
                                 int64_t *length, struct inf_error *err)
{
    const struct inf_shape *x = &inf_tfjs_input(scope, 0)->shape;
    struct inf_tfjs_ints given = {.count = 0};
    if (scope->input_count > 1) {
        INF_TRY(inf_tfjs_const_ints(scope, 1, "fft_length", &given, err));
        if (given.count != 1 || given.values[0] < 1)
            return inf_tfjs_fail(scope, err, INF_INVALID,
                                 "fft_length is no list of one number of 1 or more");
        *length = given.values[0];
        return INF_OK;
    }
    *length = x->rank > 0 ? x->dims[x->rank - 1] : 0;
    if (*length < 1)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "how many points it transforms is not known");
    if (kind == INF_DFT_REAL_INVERSE)
        *length = *length > 1 ? 2 * (*length - 1) : 1;
    return INF_OK;
}

static enum inf_code lower_dft(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_dft dft = {.kind = (enum inf_dft_kind)scope->op->kind,
                          .real = scope->inputs[0],
                          .imaginary = INF_VALUE_NONE};
    const uint32_t *parts;
    uint32_t real, imaginary;
    if (dft.kind != INF_DFT_REAL_FORWARD) {
        INF_TRY(read_parts(scope, &parts, err));
        dft.imaginary = parts[1];
    }
    INF_TRY(read_length(scope, dft.kind, &dft.length, err));
    INF_TRY(inf_tfjs_library_count(scope->library, 4, err));
    enum inf_code code =
        inf_graph_add_dft(scope->graph, scope->node->name, &dft, &real, &imaginary, err);
    if (code != INF_OK)
        return inf_tfjs_node_error(scope->node, code, err);
    return imaginary == INF_VALUE_NONE ? inf_tfjs_result(scope, real, err)
                                       : inf_tfjs_finish_complex(scope, real, imaginary, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Complex", lower_complex, 2, 2, 0},
    {"Real", lower_part, 1, 1, 0, .takes_complex = true},
    {"Imag", lower_part, 1, 1, 1, .takes_complex = true},
    {"ComplexAbs", lower_abs, 1, 1, 0, .takes_complex = true},
    {"FFT", lower_dft, 1, 1, INF_DFT_FORWARD, .takes_complex = true},
    {"IFFT", lower_dft, 1, 1, INF_DFT_INVERSE, .takes_complex = true},
    {"RFFT", lower_dft, 1, 2, INF_DFT_REAL_FORWARD},
    {"IRFFT", lower_dft, 1, 2, INF_DFT_REAL_INVERSE, .takes_complex = true},
};

const struct inf_tfjs_op_table inf_tfjs_ops_spectral = {ops, INF_ARRAY_LENGTH(ops)};
