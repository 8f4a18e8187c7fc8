// SPDX-License-Identifier: Apache-2.0
// Tests of narrow types: every code of every float type against its definition (narrow_codes.h),
// casts to them against a search for the nearest number, and which operators take them.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/import/narrow_codes.h"
#include "tests/unit/import/onnx_run_kit.h"

#define PIECE 64 // elements of one run

TestSuite(onnx_narrow, .init = set_up, .fini = tear_down);

// A float type of at most 8 bits with a sign. `overflow` is the code of numbers that are too large
// and do not saturate, without the sign.
struct format {
    int32_t type;
    const float *numbers;
    int bits;
    uint8_t nan, overflow, largest;
    bool has_minus_zero;
};

static const struct format formats[] = {
    {17, e4m3fn_numbers, 8, 0x7f, 0x7f, 0x7e, true},
    {18, e4m3fnuz_numbers, 8, 0x80, 0x80, 0x7f, false},
    {19, e5m2_numbers, 8, 0x7e, 0x7c, 0x7b, true},
    {20, e5m2fnuz_numbers, 8, 0x80, 0x80, 0x7f, false},
    {23, e2m1_numbers, 4, 0x08, 0x07, 0x07, true},
};

// --- helpers ---

static void open_cast(struct inf_pb_writer *writer, int32_t from, int32_t to)
{
    *writer = (struct inf_pb_writer){0};
    inf_onnx_put_head(writer, 25);
    inf_pb_open(writer, 7);
    inf_onnx_put_port(writer, 11, "x", from, (int64_t[]){PIECE}, 1);
    inf_onnx_put_port(writer, 12, "y", to, (int64_t[]){PIECE}, 1);
    inf_onnx_open_node(writer, "Cast", "x", NULL, "y");
    inf_onnx_put_attr_int(writer, "to", to);
}

static void load_cast(int32_t from, int32_t to, bool saturate, const char *mode)
{
    struct inf_pb_writer writer;
    open_cast(&writer, from, to);
    inf_onnx_put_attr_int(&writer, "saturate", saturate);
    if (mode != NULL)
        inf_onnx_put_attr_text(&writer, "round_mode", mode);
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    load_model(&writer);
}

static void run_piece(const void *x)
{
    cr_assert_eq(run_model(&INF_SHAPE(PIECE), (const void *[]){x}), INF_OK, "%s", err.text);
}

static bool is_same(float a, float b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

// --- from codes to numbers ---

static void expect_numbers(int32_t type, const float *wanted)
{
    load_cast(type, FLOAT, true, NULL);
    for (int first = 0; first < 256; first += PIECE) {
        uint8_t x[PIECE + 16];
        for (int i = 0; i < PIECE; i++)
            x[i] = (uint8_t)(first + i);
        run_piece(x);
        for (int i = 0; i < PIECE; i++)
            cr_assert(is_same(buffers[0][i], wanted[first + i]), "type %d code %d: %a, wanted %a",
                      type, first + i, buffers[0][i], wanted[first + i]);
    }
}

Test(onnx_narrow, every_code_has_the_number_of_its_definition)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(formats); i++)
        expect_numbers(formats[i].type, formats[i].numbers);
    expect_numbers(E8M0, e8m0_numbers);
}

// Clients may send any bytes; only the lowest bits of a byte count.
Test(onnx_narrow, integers_of_an_input_have_their_lowest_bits)
{
    static const struct {
        int32_t type, bits;
        bool is_signed;
    } types[] = {{UINT4, 4, false}, {INT4, 4, true}, {UINT2, 2, false}, {INT2, 2, true}};
    for (size_t t = 0; t < INF_ARRAY_LENGTH(types); t++) {
        float wanted[256];
        int count = 1 << types[t].bits;
        for (int i = 0; i < 256; i++) {
            int low = i % count;
            wanted[i] = (float)(types[t].is_signed && low >= count / 2 ? low - count : low);
        }
        expect_numbers(types[t].type, wanted);
    }
}

// --- from numbers to codes ---

// Returns the code of x: the nearest number of its sign, of two nearest the even code.
static uint8_t find_code(const struct format *format, double x, bool saturate)
{
    uint8_t sign = (uint8_t)(signbit(x) ? 1 << (format->bits - 1) : 0), best = 0;
    double size = fabs(x), largest = (double)format->numbers[format->largest];
    double step = largest - (double)format->numbers[format->largest - 1];
    bool is_tie = size == largest + step / 2 && format->largest % 2 == 0;
    if (isnan(x))
        return format->nan;
    if (size >= largest + step / 2 && !is_tie && !saturate && format->bits == 8)
        return format->overflow == format->nan && !format->has_minus_zero ? format->nan
                                                                          : format->overflow | sign;
    size = fmin(size, largest);
    for (uint8_t code = 1; code <= format->largest; code++) {
        double distance = fabs((double)format->numbers[code] - size);
        double before = fabs((double)format->numbers[best] - size);
        if (distance < before || (distance == before && code % 2 == 0))
            best = code;
    }
    return best == 0 && !format->has_minus_zero ? 0 : best | sign;
}

// Fills `x` with numbers around code `code` and the middle to the next one: the middle itself, and
// the nearest doubles or floats on both sides of it.
static int add_probes(const struct format *format, uint8_t code, bool wide, double *x)
{
    double low = (double)format->numbers[code];
    double next = code < format->largest ? (double)format->numbers[code + 1]
                                         : 2 * low - (double)format->numbers[format->largest - 1];
    double middle = (low + next) / 2;
    int count = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        x[count++] = sign * low;
        x[count++] = sign * middle;
        x[count++] = sign * (wide ? nextafter(middle, 0) : (double)nextafterf((float)middle, 0));
        x[count++] = sign * (wide ? nextafter(middle, INFINITY)
                                  : (double)nextafterf((float)middle, INFINITY));
    }
    return count;
}

static void expect_codes(const struct format *format, const double *x, bool saturate, bool wide)
{
    float narrow[PIECE + 16];
    for (int i = 0; i < PIECE; i++)
        narrow[i] = (float)x[i];
    run_piece(wide ? (const void *)x : narrow);
    const uint8_t *codes = (const uint8_t *)buffers[0];
    for (int i = 0; i < PIECE; i++)
        cr_assert_eq(codes[i], find_code(format, x[i], saturate),
                     "type %d, saturate %d: %a is %#x, wanted %#x", format->type, saturate, x[i],
                     codes[i], find_code(format, x[i], saturate));
}

Test(onnx_narrow, floats_round_to_the_nearest_code_and_ties_to_even)
{
    static const double special[] = {0.0,   -0.0,   INFINITY, -INFINITY, (double)NAN, 1e6,     -1e6,
                                     1e-30, -1e-30, 3e38,     -1.17e-38, 480.001,     61440.01};
    for (size_t f = 0; f < INF_ARRAY_LENGTH(formats); f++)
        for (int way = 0; way < 4; way++) {
            const struct format *format = &formats[f];
            bool saturate = way % 2 == 0, wide = way / 2 == 1;
            double x[PIECE + 16] = {0};
            load_cast(wide ? DOUBLE : FLOAT, format->type, saturate, NULL);
            for (size_t i = 0; i < INF_ARRAY_LENGTH(special); i++)
                x[i] = wide ? special[i] : (double)(float)special[i];
            expect_codes(format, x, saturate, wide);
            for (int code = 0, count = 0; code <= format->largest; code++) {
                count += add_probes(format, (uint8_t)code, wide, x + count);
                if (count == PIECE || code == format->largest)
                    expect_codes(format, x, saturate, wide);
                count %= PIECE;
            }
        }
}

// ONNX defines the rounding to FLOAT8E8M0 on the bits of FP32.
static uint8_t round_exponent(float x, const char *mode, bool saturate)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t exponent = bits >> 23 & 0xff, fraction = bits & 0x7fffff;
    bool up = strcmp(mode, "up") == 0 ? fraction != 0
              : strcmp(mode, "down") == 0
                  ? false
                  : (fraction & 0x400000) != 0 && ((fraction & 0x3fffff) != 0 || exponent > 0);
    if (exponent == 0xff)
        return 0xff;
    return (uint8_t)(exponent + (up && !(saturate && exponent == 0xfe)));
}

Test(onnx_narrow, exponents_round_as_the_mode_says)
{
    static const char *const modes[] = {"up", "down", "nearest"};
    for (int way = 0; way < 6; way++) {
        const char *mode = modes[way / 2];
        bool saturate = way % 2 == 0;
        load_cast(FLOAT, E8M0, saturate, mode);
        for (int first = -128; first < 128; first += 8) {
            float x[PIECE + 16] = {0};
            for (int i = 0; i < PIECE; i++) {
                static const float parts[] = {
                    1, 1.25f, 1.5f, 1.75f, 0x1.7ffffep0f, 0x1.800002p0f, -1.5f, 0x1.fffffep0f};
                x[i] = ldexpf(parts[i % 8], first + i / 8);
            }
            x[0] = first == 0 ? 0 : first == 8 ? INFINITY : first == 16 ? NAN : x[0];
            run_piece(x);
            for (int i = 0; i < PIECE; i++)
                cr_assert_eq(((const uint8_t *)buffers[0])[i], round_exponent(x[i], mode, saturate),
                             "%s: %a is %#x, wanted %#x", mode, x[i],
                             ((const uint8_t *)buffers[0])[i],
                             round_exponent(x[i], mode, saturate));
        }
    }
}

Test(onnx_narrow, integers_keep_their_lowest_bits)
{
    int64_t x[PIECE + 16] = {0, 7, 8, -8, -9, 15, 16, INT64_MAX, INT64_MIN, ((int64_t)1 << 32) + 3};
    load_cast(INT64, INT4, true, NULL);
    run_piece(x);
    static const int8_t wanted[] = {0, 7, -8, -8, 7, -1, 0, -1, 0, 3};
    for (size_t i = 0; i < sizeof wanted; i++)
        cr_assert_eq(((const int8_t *)buffers[0])[i], wanted[i]);
    load_cast(INT64, UINT2, true, NULL);
    run_piece(x);
    static const uint8_t pairs[] = {0, 3, 0, 0, 3, 3, 0, 3, 0, 3};
    for (size_t i = 0; i < sizeof pairs; i++)
        cr_assert_eq(((const uint8_t *)buffers[0])[i], pairs[i]);
}

// --- which operators take narrow tensors ---

// Imports a model that applies an operator to `a` and `b` of these types.
static enum inf_code import_binary(const char *op, int32_t a, int32_t b)
{
    struct inf_pb_writer writer = {0};
    struct inf_graph *graph = NULL;
    inf_onnx_put_head(&writer, 25);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "a", a, (int64_t[]){2}, 1);
    inf_onnx_put_port(&writer, 11, "b", b, (int64_t[]){2}, 1);
    inf_onnx_put_port(&writer, 12, "y", a, (int64_t[]){-1}, 1);
    inf_onnx_open_node(&writer, op, "a", "b", "y");
    if (strcmp(op, "Concat") == 0)
        inf_onnx_put_attr_int(&writer, "axis", 0);
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    enum inf_code code = import_model(&writer, &graph);
    inf_graph_destroy(&graph);
    return code;
}

Test(onnx_narrow, operators_take_the_types_they_are_made_for)
{
    cr_assert_eq(import_binary("Concat", INT4, INT4), INF_OK, "%s", err.text);
    cr_assert_eq(import_binary("Gather", INT4, INT64), INF_OK, "%s", err.text);
    cr_assert_eq(import_binary("Concat", INT4, UINT4), INF_UNSUPPORTED);
    cr_assert_not_null(strstr(err.text, "input 1 is UINT4, which it does not take beside input 0"),
                       "%s", err.text);
    cr_assert_eq(import_binary("Concat", INT4, INT8), INF_UNSUPPORTED);
    cr_assert_eq(import_binary("Concat", INT8, INT4), INF_UNSUPPORTED);
    cr_assert_eq(import_binary("Add", INT4, INT4), INF_UNSUPPORTED);
    cr_assert_not_null(strstr(err.text, "input 0 is INT4, which it does not take"), "%s", err.text);
    cr_assert_eq(import_binary("Gather", INT8, INT4), INF_UNSUPPORTED);
    cr_assert_eq(import_binary("DequantizeLinear", INT4, INT4), INF_UNSUPPORTED);
    cr_assert_eq(import_binary("QuantizeLinear", INT4, FLOAT), INF_UNSUPPORTED);
}

Test(onnx_narrow, cast_refuses_unknown_round_modes)
{
    struct inf_graph *graph = NULL;
    struct inf_pb_writer writer;
    open_cast(&writer, FLOAT, E8M0);
    inf_onnx_put_attr_text(&writer, "round_mode", "sideways");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    cr_assert_eq(import_model(&writer, &graph), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "round_mode is 'sideways'"), "%s", err.text);
}

// Imports y = DequantizeLinear(x, 0.5, zero) of x and zero of these types.
static enum inf_code import_dequantize(int32_t type, int32_t zero, struct inf_graph **graph)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 25);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", type, (int64_t[]){2}, 1);
    inf_onnx_put_port(&writer, 11, "z", zero, NULL, 0);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){2}, 1);
    inf_onnx_put_floats(&writer, "s", NULL, 0, (float[]){0.5f});
    inf_pb_open(&writer, 1);
    for (int i = 0; i < 3; i++)
        inf_pb_put_text(&writer, 1, (const char *[]){"x", "s", "z"}[i]);
    inf_pb_put_text(&writer, 2, "y");
    inf_pb_put_text(&writer, 4, "DequantizeLinear");
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    return import_model(&writer, graph);
}

Test(onnx_narrow, dequantising_subtracts_the_zero_point_of_the_same_type)
{
    static const struct inf_shape shapes[] = {INF_SHAPE(2), {.rank = 0}};
    const struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    struct inf_graph *graph = NULL;
    cr_assert_eq(import_dequantize(INT4, INT8, &graph), INF_INVALID);
    cr_assert_eq(import_dequantize(INT8, INT4, &graph), INF_INVALID);
    cr_assert_eq(import_dequantize(E4M3FN, E8M0, &graph), INF_INVALID);
    cr_assert_eq(import_dequantize(E4M3FN, E4M3FN, &graph), INF_OK, "%s", err.text);
    cr_assert_eq(inf_model_create(&model, &graph, &device, 1, &passes, &err), INF_OK, "%s",
                 err.text);
    static const uint8_t x[2 + 64] = {0x38, 0xc0}, zero[1 + 64] = {0x40}; // 1, -2; 2
    cr_assert_eq(run_model(shapes, (const void *[]){x, zero}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2), (float[]){-0.5f, -2});
}

// A branch that a run chooses takes a narrow initialiser of the graph around it.
Test(onnx_narrow, branches_take_narrow_tensors_from_outside)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 25);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "go", 9, NULL, 0);
    inf_onnx_put_port(&writer, 11, "n", E4M3FN, (int64_t[]){2}, 1);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){2}, 1);
    inf_onnx_open_node(&writer, "If", "go", NULL, "y");
    for (int branch = 0; branch < 2; branch++) {
        inf_pb_open(&writer, 5);
        inf_pb_put_text(&writer, 1, branch == 0 ? "then_branch" : "else_branch");
        inf_pb_put_int(&writer, 20, 5);
        inf_pb_open(&writer, 6);
        inf_onnx_put_port(&writer, 12, "z", FLOAT, (int64_t[]){2}, 1);
        inf_onnx_open_node(&writer, "Cast", "n", NULL, branch == 0 ? "z" : "w");
        inf_onnx_put_attr_int(&writer, "to", FLOAT);
        inf_pb_close(&writer);
        if (branch == 1) {
            inf_onnx_open_node(&writer, "Neg", "w", NULL, "z");
            inf_pb_close(&writer);
        }
        inf_pb_close(&writer);
        inf_pb_close(&writer);
    }
    inf_pb_close(&writer);
    inf_pb_close(&writer);
    load_model(&writer);
    const struct inf_shape shapes[] = {{.rank = 0}, INF_SHAPE(2)};
    static const uint8_t numbers[2 + 64] = {0x38, 0xc0}; // 1 and -2
    for (uint8_t go = 0; go < 2; go++) {
        const uint8_t condition[64] = {go};
        cr_assert_eq(run_model(shapes, (const void *[]){condition, numbers}), INF_OK, "%s",
                     err.text);
        expect_output(0, &INF_SHAPE(2), go ? (float[]){1, -2} : (float[]){-1, 2});
    }
}
