// SPDX-License-Identifier: Apache-2.0
// Fourier transforms. In ONNX, complex numbers have a last axis of size two, and real numbers have
// a last axis of size one.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/common/dft.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

#define TURN 6.283185307179586

// Adds the real (0) or imaginary (1) part of x, with axis `axis` of x moved to the end. The
// imaginary part of a real x is 0.
static uint32_t take_part(struct inf_onnx_scope *s, uint32_t x, int32_t part, int32_t axis)
{
    int64_t perm[INF_LIMIT_RANK];
    int32_t rank = inf_build_rank(&s->b, x), count = 0;
    for (int32_t i = 0; i < rank - 1; i++)
        if (i != axis)
            perm[count++] = i;
    perm[count] = axis;
    if (part == 1 && inf_build_dim(&s->b, x, -1) != 2) {
        int64_t pads[2 * INF_LIMIT_RANK] = {0};
        pads[2 * rank - 1] = 1;
        x = inf_build_pad(&s->b, x, pads, rank, INF_PAD_CONSTANT, INF_VALUE_NONE);
    }
    x = inf_build_gather(&s->b, x, inf_build_scalar(&s->b, INF_DTYPE_I32, part), rank - 1);
    return inf_build_transpose(&s->b, x, perm, rank - 1);
}

// Joins the real and the imaginary part (if any) to y, as its last axis. The last axis of the parts
// is axis `axis` of y.
static uint32_t join_parts(struct inf_onnx_scope *s, const uint32_t *parts, uint32_t count,
                           int32_t axis)
{
    uint32_t wide[2];
    int64_t perm[INF_LIMIT_RANK];
    int32_t rank = inf_build_rank(&s->b, parts[0]) + 1;
    for (uint32_t i = 0; i < count; i++)
        wide[i] = inf_build_expand_dims(&s->b, parts[i], (int64_t[]){rank - 1}, 1);
    uint32_t y = count > 1 ? inf_build_concat(&s->b, wide, count, rank - 1) : wide[0];
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i < axis ? i : i == axis ? rank - 2 : i == rank - 1 ? i : i - 1;
    return inf_build_transpose(&s->b, y, perm, rank);
}

// Returns the number of parts of x, the size of its last axis: 1 if x is real, 2 if it is complex.
// Returns INF_DIM_UNKNOWN if the size is not known.
static int64_t count_parts(struct inf_onnx_scope *s, uint32_t x)
{
    int64_t parts = inf_build_dim(&s->b, x, -1);
    if (inf_build_ok(&s->b) && parts != 1 && parts != 2 && parts != INF_DIM_UNKNOWN)
        inf_build_fail(&s->b, INF_INVALID, "the last axis of x has %lld elements, wanted 1 or 2",
                       (long long)parts);
    if (inf_build_ok(&s->b) && !inf_dtype_is_float(inf_build_dtype(&s->b, x)))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "x is %s, wanted a float",
                       inf_dtype_name(inf_build_dtype(&s->b, x)));
    return parts;
}

static int32_t read_dft_axis(struct inf_onnx_scope *s, int32_t rank)
{
    int64_t axis = s->opset < 20 ? inf_onnx_attr_int(s, "axis", 1)
                   : inf_onnx_input(s, 2) == INF_VALUE_NONE
                       ? -2
                       : inf_build_const_int(&s->b, s->inputs[2], "axis");
    int32_t settled = inf_build_axis(&s->b, axis, rank);
    if (inf_build_ok(&s->b) && settled == rank - 1)
        inf_build_fail(&s->b, INF_INVALID, "axis is the last one, which has the parts of numbers");
    return settled;
}

// Adds the number of points of a transform as an i64 scalar: `length` or, if that is
// INF_VALUE_NONE, what follows from the size of the last axis of x.
static uint32_t add_dft_length(struct inf_onnx_scope *s, const struct inf_dft *dft, uint32_t length)
{
    struct inf_builder *b = &s->b;
    if (length == INF_VALUE_NONE) {
        length = inf_build_cast(b, inf_build_dim_value(b, dft->real, -1), INF_DTYPE_I64);
        if (dft->kind == INF_DFT_REAL_INVERSE) {
            length = inf_build_binary_number(b, INF_BINARY_SUB, length, 1);
            length = inf_build_binary_number(b, INF_BINARY_MUL, length, 2);
            length = inf_build_binary_number(b, INF_BINARY_MAX, length, 1);
        }
    }
    return inf_build_cast(b, inf_build_reshape(b, length, NULL, 0), INF_DTYPE_I64);
}

// The matrices of a transform whose length is not known, each [elements of x, elements of y].
struct open_matrices {
    uint32_t cosines, sines;
};

// Adds nodes that compute the matrices which backends/import/common/dft.c makes of known lengths.
static struct open_matrices add_open_matrices(struct inf_onnx_scope *s, const struct inf_dft *dft,
                                              uint32_t length)
{
    struct inf_builder *b = &s->b;
    bool half = dft->kind == INF_DFT_REAL_INVERSE, inverse = half || dft->kind == INF_DFT_INVERSE;
    uint32_t count = inf_build_cast(b, length, INF_DTYPE_F64), terms = length;
    uint32_t size = inf_build_reshape(b, inf_build_dim_value(b, dft->real, -1), NULL, 0);
    uint32_t row = inf_build_range(b, inf_build_cast(b, size, INF_DTYPE_I64));
    row = inf_build_expand_dims(b, row, (int64_t[]){1}, 1);
    if (half || dft->kind == INF_DFT_REAL_FORWARD)
        terms = inf_build_binary_number(b, INF_BINARY_ADD,
                                        inf_build_binary_number(b, INF_BINARY_DIV, length, 2), 1);
    uint32_t column = inf_build_range(b, half ? length : terms);
    // Reduce the angle modulo a full turn in integers, so that it stays small and exact.
    uint32_t turns = inf_build_mul(b, row, column);
    turns = inf_build_cast(b, inf_build_binary(b, INF_BINARY_MOD, turns, length), INF_DTYPE_F64);
    uint32_t angle = inf_build_binary_number(b, INF_BINARY_MUL, turns, TURN);
    angle = inf_build_div(b, angle, count);
    // Rows beyond the transform have the factor 0.
    uint32_t factor = inf_build_cast(
        b, inf_build_compare(b, INF_COMPARE_LESS, row, half ? terms : length), INF_DTYPE_F64);
    if (half) { // a term that stands for a pair of mirrored ones counts twice
        uint32_t twice = inf_build_binary_number(b, INF_BINARY_MUL, row, 2);
        twice = inf_build_binary(b, INF_BINARY_MOD, twice, length);
        twice = inf_build_compare(b, INF_COMPARE_NOT_EQUAL, twice,
                                  inf_build_scalar(b, INF_DTYPE_I64, 0));
        twice =
            inf_build_binary_number(b, INF_BINARY_ADD, inf_build_cast(b, twice, INF_DTYPE_F64), 1);
        factor = inf_build_mul(b, factor, twice);
    }
    if (inverse)
        factor = inf_build_div(b, factor, count);
    uint32_t cosines = inf_build_mul(b, inf_build_unary(b, INF_UNARY_COS, angle), factor);
    uint32_t sines = inf_build_mul(b, inf_build_unary(b, INF_UNARY_SIN, angle), factor);
    if (inverse)
        sines = inf_build_unary(b, INF_UNARY_NEG, sines);
    enum inf_dtype dtype = inf_build_dtype(b, dft->real);
    return (struct open_matrices){inf_build_cast(b, cosines, dtype),
                                  inf_build_cast(b, sines, dtype)};
}

// Adds a transform of x whose size or length is not known at import:
//   (a + ib) e^-it = (a cos t + b sin t) + i (b cos t - a sin t)
// parts[1] is INF_VALUE_NONE if the result is real.
static void add_open_dft(struct inf_onnx_scope *s, const struct inf_dft *dft, uint32_t length,
                         uint32_t parts[2])
{
    struct inf_builder *b = &s->b;
    struct open_matrices m = add_open_matrices(s, dft, add_dft_length(s, dft, length));
    bool is_complex = dft->imaginary != INF_VALUE_NONE;
    parts[0] = inf_build_matmul(b, dft->real, m.cosines);
    if (is_complex)
        parts[0] = inf_build_add(b, parts[0], inf_build_matmul(b, dft->imaginary, m.sines));
    parts[1] = INF_VALUE_NONE;
    if (dft->kind == INF_DFT_REAL_INVERSE)
        return;
    parts[1] = inf_build_unary(b, INF_UNARY_NEG, inf_build_matmul(b, dft->real, m.sines));
    if (is_complex)
        parts[1] = inf_build_add(b, inf_build_matmul(b, dft->imaginary, m.cosines), parts[1]);
}

static void lower_dft(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], length = inf_onnx_input(s, 1), parts[2];
    bool inverse = inf_onnx_attr_int(s, "inverse", 0) != 0;
    bool half = inf_onnx_attr_int(s, "onesided", 0) != 0;
    int32_t rank = inf_build_rank(&s->b, x);
    int64_t count = count_parts(s, x);
    int32_t axis = read_dft_axis(s, rank);
    if (count == INF_DIM_UNKNOWN) // a real x is complex too, with the imaginary part 0
        count = half && !inverse ? 1 : 2;
    if (inf_build_ok(&s->b) && half && (count == 2) != inverse)
        inf_build_fail(&s->b, INF_INVALID, "onesided with %lld parts of a number and inverse %d",
                       (long long)count, inverse);
    if (!inf_build_ok(&s->b))
        return;
    struct inf_dft dft = {.kind = half      ? inverse ? INF_DFT_REAL_INVERSE : INF_DFT_REAL_FORWARD
                                  : inverse ? INF_DFT_INVERSE
                                            : INF_DFT_FORWARD,
                          .imaginary = INF_VALUE_NONE};
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    int64_t size = inf_build_dim(&s->b, x, axis);
    bool is_open =
        size == INF_DIM_UNKNOWN || (length != INF_VALUE_NONE && !inf_build_is_const(&s->b, length));
    dft.length = size;
    if (dft.kind == INF_DFT_REAL_INVERSE)
        dft.length = dft.length > 1 ? 2 * (dft.length - 1) : 1;
    if (length != INF_VALUE_NONE && !is_open)
        dft.length = inf_build_const_int(&s->b, length, "dft_length");
    x = inf_build_cast(&s->b, x, dtype == INF_DTYPE_F64 ? INF_DTYPE_F64 : INF_DTYPE_F32);
    dft.real = take_part(s, x, 0, axis);
    if (count == 2)
        dft.imaginary = take_part(s, x, 1, axis);
    if (is_open)
        add_open_dft(s, &dft, length, parts);
    else if (inf_build_ok(&s->b))
        s->b.code =
            inf_graph_add_dft(s->b.graph, s->node->name, &dft, &parts[0], &parts[1], s->b.err);
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_cast(
            &s->b, join_parts(s, parts, parts[1] == INF_VALUE_NONE ? 1 : 2, axis), dtype);
}

// --- operator STFT, the short-time Fourier transform ---

// Adds filters [length,1,1,2*terms]: the cosines of all terms, then their sines, negated as in
// e^-it.
static uint32_t add_wave_filter(struct inf_onnx_scope *s, int64_t length, int64_t terms)
{
    float *data;
    if (inf_build_ok(&s->b) &&
        (length < 1 || length > INF_DFT_MATRIX_MAX || length * terms > INF_DFT_MATRIX_MAX / 2))
        inf_build_fail(&s->b, INF_EXHAUSTED,
                       "frame_length is %lld: wanted 1 or more, and a matrix of at "
                       "most %lld elements",
                       (long long)length, (long long)INF_DFT_MATRIX_MAX);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t filter =
        inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(length, 1, 1, 2 * terms), &data);
    for (int64_t i = 0; data != NULL && i < length; i++)
        for (int64_t k = 0; k < terms; k++) {
            double angle = TURN * (double)(i * k % length) / (double)length;
            data[i * 2 * terms + k] = (float)cos(angle);
            data[i * 2 * terms + terms + k] = (float)-sin(angle);
        }
    return filter;
}

static int64_t read_frame_length(struct inf_onnx_scope *s)
{
    uint32_t window = inf_onnx_input(s, 2), length = inf_onnx_input(s, 3);
    int64_t result = length != INF_VALUE_NONE   ? inf_build_const_int(&s->b, length, "frame_length")
                     : window != INF_VALUE_NONE ? inf_build_known_dim(&s->b, window, 0)
                                                : inf_build_known_dim(&s->b, s->inputs[0], 1);
    if (inf_build_ok(&s->b) && window != INF_VALUE_NONE &&
        inf_build_known_dim(&s->b, window, 0) != result)
        inf_build_fail(&s->b, INF_INVALID, "window has %lld elements, frame_length is %lld",
                       (long long)inf_build_dim(&s->b, window, 0), (long long)result);
    return result;
}

// Lowers STFT to a convolution of the signal with windowed waves, which works for frames of any
// length.
static void lower_stft(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], window = inf_onnx_input(s, 2);
    bool half = inf_onnx_attr_int(s, "onesided", 1) != 0;
    int64_t step = inf_build_const_int(&s->b, s->inputs[1], "frame_step"),
            length = read_frame_length(s);
    int64_t count = count_parts(s, x);
    if (inf_build_ok(&s->b) &&
        (inf_build_rank(&s->b, x) != 3 || count != 1 || step < 1 || step > 65535))
        inf_build_fail(
            &s->b, INF_UNSUPPORTED,
            "a signal of rank %d with %lld parts of a number and frame_step %lld, wanted "
            "[batch,n,1] and 1 to 65535",
            inf_build_rank(&s->b, x), (long long)count, (long long)step);
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    // Decline f64, because the filter is f32 and has only 24 bits of precision.
    if (inf_build_ok(&s->b) && dtype == INF_DTYPE_F64)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "the signal is FP64, wanted FP32, FP16 or BF16");
    int64_t terms = half ? length / 2 + 1 : length;
    uint32_t filter = add_wave_filter(s, length, terms);
    if (!inf_build_ok(&s->b))
        return;
    if (window != INF_VALUE_NONE) {
        window = inf_build_cast(&s->b, window, INF_DTYPE_F32);
        filter = inf_build_mul(&s->b, filter,
                               inf_build_expand_dims(&s->b, window, (int64_t[]){1, 2, 3}, 3));
    }
    x = inf_build_expand_dims(&s->b, inf_build_cast(&s->b, x, INF_DTYPE_F32), (int64_t[]){2}, 1);
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_CONV2D, (const uint32_t[]){x, filter}, 2);
    node.attrs.conv2d.stride_h = (int32_t)step;
    uint32_t y = inf_build_value(&s->b, &node); // shape: [batch,frames,1,2*terms]
    const uint32_t shape[] = {inf_build_dim_value(&s->b, y, 0), inf_build_dim_value(&s->b, y, 1),
                              inf_build_list(&s->b, (int64_t[]){2, terms}, 2)};
    y = inf_build_reshape_to(&s->b, y, inf_build_concat(&s->b, shape, 3, 0));
    s->outputs[0] =
        inf_build_cast(&s->b, inf_build_transpose(&s->b, y, (int64_t[]){0, 1, 3, 2}, 4), dtype);
}

// --- operator MelWeightMatrix ---

// The constants of a MelWeightMatrix.
struct mel {
    int64_t bands, length, rate;
    double low, high; // edges in Hz
};

// Returns the bin of the spectrum at which triangle `index` begins; its peak is at the next index,
// its end at the one after that. The edges are at equal distances on the mel scale.
static int64_t find_mel_bin(const struct mel *mel, int64_t index)
{
    double low = 2595 * log10(1 + mel->low / 700), high = 2595 * log10(1 + mel->high / 700);
    double at = low + (double)index * (high - low) / (double)(mel->bands + 2);
    double hertz = 700 * (pow(10, at / 2595) - 1);
    return (int64_t)floor((double)(mel->length + 1) * hertz / (double)mel->rate);
}

// Lowers MelWeightMatrix: [bins of the spectrum, bands], a triangle of weights for each band.
static void lower_mel_weights(struct inf_onnx_scope *s)
{
    double numbers[5] = {0};
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < 5; i++)
        if (!inf_build_const_number(&s->b, s->inputs[i], &numbers[i]))
            inf_build_fail(&s->b, INF_UNSUPPORTED, "input %u is not constant", i);
    int32_t type = inf_onnx_attr_int(s, "output_datatype", 1);
    bool fits = numbers[0] >= 1 && numbers[0] <= 1 << 16 && numbers[1] >= 1 &&
                numbers[1] <= 1 << 24 && numbers[2] >= 1 && numbers[2] <= INT32_MAX &&
                numbers[3] >= 0 && numbers[4] >= numbers[3] && numbers[4] <= INT32_MAX &&
                inf_onnx_dtype(type) != INF_DTYPE_NONE;
    struct mel mel = {.bands = 1, .length = 1, .rate = 1};
    if (fits)
        mel = (struct mel){(int64_t)numbers[0], (int64_t)numbers[1], (int64_t)numbers[2],
                           numbers[3], numbers[4]};
    int64_t bins = mel.length / 2 + 1;
    if (!fits || find_mel_bin(&mel, mel.bands + 1) >= bins)
        inf_build_fail(&s->b, INF_INVALID, "%g bands of a spectrum of %g from %g to %g Hz at %g",
                       numbers[0], numbers[1], numbers[3], numbers[4], numbers[2]);
    float *data;
    if (!inf_build_ok(&s->b))
        return;
    uint32_t y = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(bins, mel.bands), &data);
    for (int64_t i = 0; data != NULL && i < mel.bands; i++) {
        int64_t first = find_mel_bin(&mel, i), peak = find_mel_bin(&mel, i + 1);
        int64_t end = find_mel_bin(&mel, i + 2);
        if (first == peak)
            data[peak * mel.bands + i] = 1;
        for (int64_t j = first; first < peak && j <= peak; j++)
            data[j * mel.bands + i] = (float)((double)(j - first) / (double)(peak - first));
        for (int64_t j = peak; j < end; j++)
            data[j * mel.bands + i] = (float)((double)(end - j) / (double)(end - peak));
    }
    s->outputs[0] = inf_build_cast(&s->b, y, inf_onnx_dtype(type));
}

static const struct inf_onnx_op ops[] = {
    {"MelWeightMatrix", lower_mel_weights, 5, 5, 1, 0},
    {"DFT", lower_dft, 1, 3, 1, 0},
    {"STFT", lower_stft, 2, 4, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_spectral = {ops, INF_ARRAY_LENGTH(ops)};
