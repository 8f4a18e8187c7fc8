// SPDX-License-Identifier: Apache-2.0
// Conversions from and to ONNX's narrow types. A narrow float is widened by a table of its 256
// codes. A number is rounded to a narrow float by a search: the positive numbers of the type are in
// the order of their codes, so the code of |x| is how many borders between neighbouring numbers are
// below |x|. A border is the middle of two neighbours if a tie goes to the lower one, and the
// largest number below the middle if a tie goes to the upper one:
//
//     numbers  0     1     2        even codes win ties:  |x| <= 0.5  -> 0
//     borders    0.5   1.5-                               |x| >= 1.5  -> 2
//
// A table of 256 codes then adds the sign. No operator of the graph needs to know the types.
#include "backends/import/onnx/narrow.h"

#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"

#define CODES 256

// TensorProto.DataType of the types that this file names.
enum narrow_type {
    E4M3FN = 17,
    E4M3FNUZ = 18,
    E5M2 = 19,
    E5M2FNUZ = 20,
    UINT4 = 21,
    INT4 = 22,
    E2M1 = 23,
    E8M0 = 24,
    UINT2 = 25,
    INT2 = 26,
};

// A narrow float type.
struct format {
    int32_t type;
    int32_t bits;        // sign, exponent and mantissa
    int32_t mantissa;    // bits of the mantissa
    int32_t bias;        // of the exponent
    uint32_t finite;     // count of the codes 0, 1, ... that are finite numbers
    uint32_t infinity;   // code of infinity; 0: the type has none
    uint32_t nan;        // code that a NaN becomes
    uint32_t overflow;   // code of numbers that are too large, if they do not saturate
    bool has_minus_zero; // true: a sign bit alone is -0
};

static const struct format formats[] = {
    {E4M3FN, 8, 3, 7, 0x7f, 0, 0x7f, 0x7f, true},
    {E4M3FNUZ, 8, 3, 8, 0x80, 0, 0x80, 0x80, false},
    {E5M2, 8, 2, 15, 0x7c, 0x7c, 0x7e, 0x7c, true},
    {E5M2FNUZ, 8, 2, 16, 0x80, 0, 0x80, 0x80, false},
    {E2M1, 4, 1, 1, 8, 0, 8, 7, true},
    {E8M0, 8, 0, 127, 0xff, 0, 0xff, 0xff, false},
};

static const struct format *find_format(int32_t type)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(formats); i++)
        if (formats[i].type == type)
            return &formats[i];
    return NULL;
}

static int32_t count_bits(int32_t type)
{
    const struct format *format = find_format(type);
    return format != NULL ? format->bits : type == UINT4 || type == INT4 ? 4 : 2;
}

static bool is_signed_integer(int32_t type)
{
    return type == INT4 || type == INT2;
}

enum inf_dtype inf_onnx_narrow_dtype(int64_t type)
{
    if (type < INF_ONNX_NARROW_TYPE_MIN || type > INF_ONNX_NARROW_TYPE_MAX)
        return INF_DTYPE_NONE;
    return is_signed_integer((int32_t)type) ? INF_DTYPE_I8 : INF_DTYPE_U8;
}

bool inf_onnx_narrow_range(int32_t type, double *low, double *high)
{
    if (inf_onnx_narrow_dtype(type) == INF_DTYPE_NONE || find_format(type) != NULL)
        return false;
    double count = ldexp(1, count_bits(type));
    *low = is_signed_integer(type) ? -count / 2 : 0;
    *high = *low + count - 1;
    return true;
}

uint32_t inf_onnx_narrow_wrap(struct inf_onnx_scope *s, uint32_t value, int32_t type)
{
    if (inf_build_ok(&s->b) && value >> INF_ONNX_NARROW_VALUE_BITS != 0)
        inf_build_fail(&s->b, INF_EXHAUSTED, "the graph has more than %u values",
                       1u << INF_ONNX_NARROW_VALUE_BITS);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    return INF_ONNX_NARROW_FIRST + value +
           ((uint32_t)(type - INF_ONNX_NARROW_TYPE_MIN) << INF_ONNX_NARROW_VALUE_BITS);
}

// --- tables of 256 elements ---

static uint32_t add_lookup(struct inf_onnx_scope *s, uint32_t x, uint32_t table)
{
    const uint32_t inputs[] = {x, table};
    struct inf_build_node node = inf_build_describe_list(INF_OP_LOOKUP, inputs, 2);
    return inf_build_value(&s->b, &node);
}

// Adds nodes that keep the lowest bits of each byte of x (UINT8 or INT8), and extend the sign of
// signed types.
static uint32_t add_low_bits(struct inf_onnx_scope *s, uint32_t x, int32_t type)
{
    uint32_t mask = (1u << count_bits(type)) - 1, sign = (mask + 1) / 2;
    uint8_t *data;
    uint32_t table =
        inf_build_const(&s->b, inf_onnx_narrow_dtype(type), &INF_SHAPE(CODES), (void *)&data);
    for (uint32_t i = 0; data != NULL && i < CODES; i++)
        data[i] = (uint8_t)(is_signed_integer(type) ? ((i & mask) ^ sign) - sign : i & mask);
    return add_lookup(s, x, table);
}

uint32_t inf_onnx_narrow_input(struct inf_onnx_scope *s, uint32_t value, int32_t type)
{
    if (count_bits(type) < 8)
        value = add_low_bits(s, value, type);
    return inf_onnx_narrow_wrap(s, value, type);
}

// --- converting to wider types ---

// Returns the number of a code without a sign. `code` may be one beyond the largest finite one: the
// number that would follow.
static double decode_magnitude(const struct format *format, uint32_t code)
{
    uint32_t fraction = code & ((1u << format->mantissa) - 1);
    int32_t exponent = (int32_t)(code >> format->mantissa);
    if (format->type == E8M0)
        return ldexp(1, exponent - format->bias);
    if (exponent == 0)
        return ldexp(fraction, 1 - format->bias - format->mantissa);
    return ldexp(fraction + (1u << format->mantissa), exponent - format->bias - format->mantissa);
}

static double decode_code(const struct format *format, uint32_t code)
{
    uint32_t sign = format->type == E8M0 ? 0 : 1u << (format->bits - 1);
    uint32_t size = code & ((1u << format->bits) - 1) & ~sign;
    bool is_negative = (code & sign) != 0;
    if (is_negative && size == 0 && !format->has_minus_zero)
        return NAN;
    double number = size < format->finite ? decode_magnitude(format, size)
                    : format->infinity != 0 && size == format->infinity ? INFINITY
                                                                        : NAN;
    return is_negative ? -number : number;
}

uint32_t inf_onnx_narrow_widen(struct inf_onnx_scope *s, uint32_t handle, enum inf_dtype dtype)
{
    const struct format *format = find_format(inf_onnx_narrow_type(handle));
    uint32_t value = inf_onnx_narrow_value(handle);
    float *data;
    if (format == NULL)
        return inf_build_cast(&s->b, value, dtype);
    uint32_t table = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(CODES), (void *)&data);
    for (uint32_t i = 0; data != NULL && i < CODES; i++)
        data[i] = (float)decode_code(format, i);
    return inf_build_cast(&s->b, add_lookup(s, value, table), dtype);
}

// --- rounding to floats ---

// Returns the border between the numbers of `code` and `code` + 1: the largest number of type
// `dtype` (FP32 or FP64) that rounds to `code`.
static double find_border(const struct format *format, uint32_t code, const char *mode,
                          enum inf_dtype dtype)
{
    double low = decode_magnitude(format, code), high = decode_magnitude(format, code + 1);
    double border = (low + high) / 2;
    bool tie_goes_up = code % 2 != 0;
    if (format->type == E8M0) {
        // ONNX's reference rounds the exponent in the bits of an FP32 number. Its lowest exponent
        // has no implicit 1, so mode "up" rounds all numbers above 0 to 2^-126 or more, and mode
        // "nearest" those above 2^-127.
        bool is_up = strcmp(mode, "up") == 0, is_down = strcmp(mode, "down") == 0;
        tie_goes_up = is_down || (!is_up && code > 0);
        border = is_down ? high : is_up ? (code == 0 ? 0 : low) : code == 0 ? low : border;
    }
    if (!tie_goes_up)
        return border;
    return dtype == INF_DTYPE_F32 ? (double)nextafterf((float)border, 0) : nextafter(border, 0);
}

// Adds a constant with the borders of the type in ascending order. The last one is that to numbers
// that are too large, if they are not saturated.
static uint32_t add_borders(struct inf_onnx_scope *s, const struct format *format,
                            const struct inf_onnx_rounding *rounding, enum inf_dtype dtype)
{
    uint32_t count = format->finite - (rounding->saturate ? 1 : 0);
    void *data;
    uint32_t borders = inf_build_const(&s->b, dtype, &INF_SHAPE(count), (void *)&data);
    for (uint32_t i = 0; data != NULL && i < count; i++) {
        double border = find_border(format, i, rounding->mode, dtype);
        if (dtype == INF_DTYPE_F32)
            ((float *)data)[i] = (float)border;
        else
            ((double *)data)[i] = border;
    }
    return borders;
}

// Adds nodes that count the borders below each element of x, as i32.
static uint32_t add_search(struct inf_onnx_scope *s, uint32_t x, uint32_t borders)
{
    const uint32_t inputs[] = {borders, inf_build_reshape(&s->b, x, (int64_t[]){-1}, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SEARCH_SORTED, inputs, 2);
    return inf_build_reshape_to(&s->b, inf_build_value(&s->b, &node), inf_build_shape(&s->b, x));
}

// Adds nodes that are true for negative numbers and for -0.
static uint32_t add_is_negative(struct inf_onnx_scope *s, uint32_t x)
{
    uint32_t zero = inf_build_scalar(&s->b, inf_build_dtype(&s->b, x), 0);
    uint32_t inverse = inf_build_unary(&s->b, INF_UNARY_RECIPROCAL, x);
    return inf_build_binary(&s->b, INF_BINARY_LOGICAL_OR,
                            inf_build_compare(&s->b, INF_COMPARE_LESS, x, zero),
                            inf_build_compare(&s->b, INF_COMPARE_LESS, inverse, zero));
}

// Adds a table from counts of borders to codes, for numbers of one sign.
static uint32_t add_codes(struct inf_onnx_scope *s, const struct format *format, bool is_negative)
{
    uint32_t sign = is_negative && format->type != E8M0 ? 1u << (format->bits - 1) : 0;
    uint8_t *data;
    uint32_t table = inf_build_const(&s->b, INF_DTYPE_U8, &INF_SHAPE(CODES), (void *)&data);
    for (uint32_t i = 0; data != NULL && i < CODES; i++) {
        uint32_t code = i < format->finite ? i : format->overflow;
        data[i] = (uint8_t)(code == 0 && !format->has_minus_zero ? 0 : code | sign);
    }
    return table;
}

static uint32_t round_to_float(struct inf_onnx_scope *s, uint32_t x, const struct format *format,
                               const struct inf_onnx_rounding *rounding)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    struct inf_onnx_rounding effective = *rounding;
    // FP32 holds all numbers of types of up to 16 bits. ONNX defines FLOAT8E8M0 on FP32 only.
    bool is_wide = dtype != INF_DTYPE_F32 && inf_dtype_size(dtype) > 2;
    dtype = is_wide && format->type != E8M0 ? INF_DTYPE_F64 : INF_DTYPE_F32;
    effective.saturate |= format->type == E2M1; // the type has no other choice
    x = inf_build_cast(&s->b, x, dtype);
    uint32_t size = inf_build_unary(&s->b, INF_UNARY_ABS, x);
    uint32_t count = inf_build_cast(
        &s->b, add_search(s, size, add_borders(s, format, &effective, dtype)), INF_DTYPE_U8);
    uint32_t code = inf_build_select(&s->b, add_is_negative(s, x),
                                     add_lookup(s, count, add_codes(s, format, true)),
                                     add_lookup(s, count, add_codes(s, format, false)));
    uint32_t is_nan = inf_build_compare(&s->b, INF_COMPARE_NOT_EQUAL, x, x);
    // ONNX makes NaN of infinity, even if numbers saturate.
    if (format->type == E8M0)
        is_nan = inf_build_binary(&s->b, INF_BINARY_LOGICAL_OR, is_nan,
                                  inf_build_compare(&s->b, INF_COMPARE_EQUAL, size,
                                                    inf_build_scalar(&s->b, dtype, INFINITY)));
    code =
        inf_build_select(&s->b, is_nan, inf_build_scalar(&s->b, INF_DTYPE_U8, format->nan), code);
    return inf_onnx_narrow_wrap(s, code, format->type);
}

// --- rounding to integers ---

static uint32_t round_to_integer(struct inf_onnx_scope *s, uint32_t x, int32_t type)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    if (inf_dtype_is_float(dtype) || dtype == INF_DTYPE_BOOL)
        x = inf_build_cast(&s->b, x, INF_DTYPE_I32);
    x = inf_build_binary_number(&s->b, INF_BINARY_BITWISE_AND, x, (1u << count_bits(type)) - 1);
    x = add_low_bits(s, inf_build_cast(&s->b, x, INF_DTYPE_U8), type);
    return inf_onnx_narrow_wrap(s, x, type);
}

uint32_t inf_onnx_narrow_round(struct inf_onnx_scope *s, uint32_t x, int32_t type,
                               const struct inf_onnx_rounding *rounding)
{
    const struct format *format = find_format(type);
    bool known = strcmp(rounding->mode, "up") == 0 || strcmp(rounding->mode, "down") == 0 ||
                 strcmp(rounding->mode, "nearest") == 0;
    if (!known)
        inf_build_fail(&s->b, INF_INVALID, "round_mode is '%.20s', wanted up, down or nearest",
                       rounding->mode);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    return format != NULL ? round_to_float(s, x, format, rounding) : round_to_integer(s, x, type);
}
