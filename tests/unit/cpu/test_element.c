// SPDX-License-Identifier: Apache-2.0
// The loops over elements of all types, at every ISA level of this processor, compared with
// literals and with plain 128-bit arithmetic. Operands end at a guard page, so that a read beyond
// them crashes.
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/cpu/kernels/isa.h"
#include "proto/core/attributes.h"
#include "tests/support/device/fence.h"

#define LENGTH_MAX 133

static struct fence fences[4];

static void drop_operands(void)
{
    for (int i = 0; i < 4; i++)
        fence_fini(&fences[i]);
}

TestSuite(element, .fini = drop_operands);

static const size_t lengths[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 65, LENGTH_MAX};

#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static const struct {
    enum inf_dtype dtype;
    int bits; // number of bits; negative for a signed integer type, 0 for a float type
} types[] = {
    {INF_DTYPE_BOOL, 1},  {INF_DTYPE_U8, 8},  {INF_DTYPE_U16, 16},  {INF_DTYPE_U32, 32},
    {INF_DTYPE_U64, 64},  {INF_DTYPE_I8, -8}, {INF_DTYPE_I16, -16}, {INF_DTYPE_I32, -32},
    {INF_DTYPE_I64, -64}, {INF_DTYPE_F32, 0}, {INF_DTYPE_F64, 0},
};

#define TYPES (sizeof(types) / sizeof(types[0]))

static size_t size_of(enum inf_dtype dtype)
{
    switch (dtype) {
    case INF_DTYPE_BOOL:
    case INF_DTYPE_U8:
    case INF_DTYPE_I8:
        return 1;
    case INF_DTYPE_U16:
    case INF_DTYPE_I16:
        return 2;
    case INF_DTYPE_U64:
    case INF_DTYPE_I64:
    case INF_DTYPE_F64:
        return 8;
    default:
        return 4;
    }
}

static uint64_t state = 1;

static uint64_t draw_bits(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 7 ^ state << 29;
}

// Fills memory with bytes that are likely to be extreme: all bits set, no bits set, or few bits
// set.
static void scatter_bytes(unsigned char *to, size_t count, size_t size, enum inf_dtype dtype)
{
    static const float floats[] = {0.0f,   -0.0f,    1.5f,      -1.5f,  255.5f,   -0.99f,
                                   3e9f,   -3e9f,    1e19f,     -1e19f, 1e30f,    2147483648.0f,
                                   1e-42f, INFINITY, -INFINITY, NAN,    32767.9f, 127.5f};
    for (size_t i = 0; i < count; i++) {
        uint64_t value = draw_bits();
        double number = (double)floats[value % (sizeof(floats) / sizeof(floats[0]))];
        float single = (float)number;
        if (value >> 60 < 4)
            value = value >> 40 & 1 ? UINT64_MAX : 0;
        else if (value >> 60 < 8)
            value = (uint64_t)1 << (size * 8 - 1);
        if (dtype == INF_DTYPE_F32)
            memcpy(&value, &single, sizeof(single));
        else if (dtype == INF_DTYPE_F64)
            memcpy(&value, &number, sizeof(number));
        memcpy(to + i * size, &value, size);
    }
}

static __int128 integer_at(const unsigned char *from, int type_bits, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, from, size);
    if (type_bits == 1)
        return value != 0;
    if (type_bits < 0) // the type is signed, so the value is sign-extended
        return (__int128)(int64_t)(value << (64 - size * 8)) >> (64 - size * 8);
    return value;
}

static double float_at(const unsigned char *from, size_t size)
{
    float single;
    double number;
    memcpy(&single, from, sizeof(single));
    if (size == sizeof(single))
        return (double)single;
    memcpy(&number, from, sizeof(number));
    return number;
}

// Returns the result of converting a float to an integer type with `type_bits` bits (negative:
// signed): truncated and clamped to the range of the type.
static __int128 truncate_float(double value, int type_bits)
{
    if (type_bits == 1)
        return value != 0;
    if (isnan(value))
        return 0;
    double least = type_bits < 0 ? -ldexp(1, -type_bits - 1) : 0;
    double beyond = ldexp(1, type_bits < 0 ? -type_bits - 1 : type_bits);
    if (value <= least)
        return (__int128)least;
    return value >= beyond ? (__int128)beyond - 1 : (__int128)value;
}

static void check_cast(const struct inf_isa *isa, size_t from, size_t to, size_t count)
{
    size_t from_size = size_of(types[from].dtype);
    size_t to_size = size_of(types[to].dtype);
    unsigned char *x = fence_bytes(&fences[0], count * from_size, 0, 0);
    unsigned char *y = fence_bytes(&fences[1], count * to_size, 64, 0xaa);
    scatter_bytes(x, count, from_size, types[from].dtype);
    isa->element->cast[types[from].dtype][types[to].dtype](count, x, y);
    cr_assert_eq(y[-1], 0xaa);
    for (size_t i = 0; i < count; i++) {
        bool real = types[from].bits == 0;
        double number = real ? float_at(x + i * from_size, from_size) : 0;
        __int128 whole = real ? 0 : integer_at(x + i * from_size, types[from].bits, from_size);
        if (types[to].bits == 0) {
            double got = float_at(y + i * to_size, to_size);
            double wanted = real ? number : (double)whole;
            if (to_size == 4)
                wanted = (double)(float)wanted;
            cr_assert(got == wanted || (isnan(got) && isnan(wanted)), "%s: %d to %d: %g, not %g",
                      isa->name, types[from].dtype, types[to].dtype, got, wanted);
            continue;
        }
        __int128 wanted = real ? truncate_float(number, types[to].bits) : whole;
        uint64_t low = types[to].bits == 1 ? wanted != 0 : (uint64_t)wanted;
        cr_assert_eq(memcmp(y + i * to_size, &low, to_size), 0, "%s: %d to %d, element %zu",
                     isa->name, types[from].dtype, types[to].dtype, i);
    }
}

Test(element, casts_between_all_types)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (size_t from = 0; from < TYPES; from++)
            for (size_t to = 0; to < TYPES; to++)
                for (size_t i = 0; i < LENGTHS; i++)
                    check_cast(inf_isa_level(level), from, to, lengths[i]);
}

// Bits of floats at which the rounding to 16 bits changes: the largest halves and those beyond
// them, the smallest normal and denormal halves, ties, and NaNs.
static const uint32_t borders[] = {
    0,          0x80000000, 0x33000000, 0x33000001, 0x32ffffff, 0x387fe000, 0x387fefff, 0x387ff000,
    0x38800000, 0x477fe000, 0x477fefff, 0x477ff000, 0x47800000, 0x7f7fffff, 0x7f800000, 0xff800000,
    0x7f800001, 0x7fc00000, 0xffffffff, 0x3f801000, 0x3f803000, 0x3f808000, 0x3f818000, 0x00000001};

static uint32_t border_bits(size_t i)
{
    return i < INF_ARRAY_LENGTH(borders) ? borders[i] : (uint32_t)draw_bits();
}

Test(element, casts_of_16_bit_floats_are_the_same_bits_at_every_level)
{
    enum {
        HALVES = 65536
    };
    static uint16_t halves[HALVES], rounded[HALVES];
    static float floats[HALVES];
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_element *loops = inf_isa_level(level)->element;
        for (size_t i = 0; i < HALVES; i++)
            halves[i] = (uint16_t)i;
        for (int brain = 0; brain < 2; brain++) {
            enum inf_dtype half = brain ? INF_DTYPE_BF16 : INF_DTYPE_F16;
            loops->cast[half][INF_DTYPE_F32](HALVES, halves, floats);
            for (size_t i = 0; i < HALVES; i++) {
                float wanted = brain ? inf_bf16_to_float(halves[i]) : inf_half_to_float(halves[i]);
                cr_assert_eq(memcmp(&floats[i], &wanted, sizeof(wanted)), 0, "%s: %zx",
                             inf_isa_level(level)->name, i);
            }
            for (size_t i = 0; i < HALVES; i++) {
                uint32_t bits = border_bits(i);
                memcpy(&floats[i], &bits, sizeof(bits));
            }
            loops->cast[INF_DTYPE_F32][half](HALVES - 3, floats, rounded);
            for (size_t i = 0; i < HALVES - 3; i++) {
                uint16_t wanted =
                    brain ? inf_bf16_from_float(floats[i]) : inf_half_from_float(floats[i]);
                cr_assert_eq(rounded[i], wanted, "%s: %a", inf_isa_level(level)->name,
                             (double)floats[i]);
            }
        }
    }
}

Test(element, clamps_floats_to_the_range_of_the_type)
{
    const float x[8] = {2147483648.0f, -2147483648.0f, NAN,   2147483520.0f,
                        -1e30f,        1e30f,          -0.9f, 255.9f};
    const int32_t wanted[8] = {INT32_MAX, INT32_MIN, 0, 2147483520, INT32_MIN, INT32_MAX, 0, 255};
    const uint8_t bytes[8] = {255, 0, 0, 255, 0, 255, 0, 255};
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_element *loops = inf_isa_level(level)->element;
        int32_t y[8];
        uint8_t small[8];
        loops->cast[INF_DTYPE_F32][INF_DTYPE_I32](8, x, y);
        cr_assert_eq(memcmp(y, wanted, sizeof(wanted)), 0, "%s", inf_isa_level(level)->name);
        loops->cast[INF_DTYPE_F32][INF_DTYPE_U8](8, x, small);
        cr_assert_eq(memcmp(small, bytes, sizeof(bytes)), 0, "%s", inf_isa_level(level)->name);
    }
}

static bool compare_matches(enum inf_element_compare kind, bool less, bool equal)
{
    switch (kind) {
    case INF_ELEMENT_EQUAL:
        return equal;
    case INF_ELEMENT_NOT_EQUAL:
        return !equal;
    case INF_ELEMENT_LESS:
        return less;
    default:
        return less || equal;
    }
}

static void check_compare(const struct inf_isa *isa, size_t type, size_t count)
{
    size_t size = size_of(types[type].dtype);
    unsigned char *a = fence_bytes(&fences[0], count * size, 0, 0);
    unsigned char *b = fence_bytes(&fences[1], count * size, 0, 0);
    scatter_bytes(a, count, size, types[type].dtype);
    scatter_bytes(b, count, size, types[type].dtype);
    for (int kind = 0; kind < INF_ELEMENT_COMPARE_COUNT; kind++) {
        unsigned char *y = fence_bytes(&fences[2], count, 64, 0xaa);
        isa->element->compare[kind][types[type].dtype](count, a, b, y);
        for (size_t i = 0; i < count; i++) {
            bool less, equal;
            if (types[type].bits == 0) {
                double left = float_at(a + i * size, size), right = float_at(b + i * size, size);
                less = left < right;
                equal = left == right;
            } else {
                __int128 left = integer_at(a + i * size, types[type].bits, size);
                __int128 right = integer_at(b + i * size, types[type].bits, size);
                less = left < right;
                equal = left == right;
            }
            cr_assert_eq(y[i], compare_matches((enum inf_element_compare)kind, less, equal),
                         "%s: kind %d of type %d, element %zu", isa->name, kind, types[type].dtype,
                         i);
        }
    }
}

Test(element, compares_numbers_and_nan)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (size_t type = 0; type < TYPES; type++)
            for (size_t i = 0; i < LENGTHS; i++)
                check_compare(inf_isa_level(level), type, lengths[i]);
}

static __int128 binary_of(enum inf_element_binary kind, __int128 a, __int128 b)
{
    switch (kind) {
    case INF_ELEMENT_ADD:
        return a + b;
    case INF_ELEMENT_SUB:
        return a - b;
    case INF_ELEMENT_MUL:
        return (__int128)((unsigned __int128)a * (unsigned __int128)b);
    case INF_ELEMENT_MIN:
        return a < b ? a : b;
    case INF_ELEMENT_MAX:
        return a > b ? a : b;
    case INF_ELEMENT_AND:
        return a & b;
    case INF_ELEMENT_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static void check_binary(const struct inf_isa *isa, size_t type, size_t count)
{
    size_t size = size_of(types[type].dtype);
    unsigned char *a = fence_bytes(&fences[0], count * size, 0, 0);
    unsigned char *b = fence_bytes(&fences[1], count * size, 0, 0);
    scatter_bytes(a, count, size, types[type].dtype);
    scatter_bytes(b, count, size, types[type].dtype);
    for (int kind = 0; kind < INF_ELEMENT_BINARY_COUNT; kind++) {
        inf_element_binary_fn *loop = isa->element->binary[kind][types[type].dtype];
        bool is_bool = types[type].dtype == INF_DTYPE_BOOL;
        cr_assert_eq(loop != NULL, types[type].bits != 0 && (!is_bool || kind >= INF_ELEMENT_AND));
        if (loop == NULL)
            continue;
        unsigned char *y = fence_bytes(&fences[2], count * size, 64, 0xaa);
        loop(count, a, b, y);
        for (size_t i = 0; i < count; i++) {
            uint64_t wanted = (uint64_t)binary_of((enum inf_element_binary)kind,
                                                  integer_at(a + i * size, types[type].bits, size),
                                                  integer_at(b + i * size, types[type].bits, size));
            cr_assert_eq(memcmp(y + i * size, &wanted, size), 0,
                         "%s: kind %d of type %d, element %zu", isa->name, kind, types[type].dtype,
                         i);
        }
    }
}

Test(element, integers_wrap_around)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (size_t type = 0; type < TYPES; type++)
            for (size_t i = 0; i < LENGTHS; i++)
                check_binary(inf_isa_level(level), type, lengths[i]);
}

static void check_choice(const struct inf_isa *isa, size_t index, size_t count)
{
    size_t size = (size_t)1 << index;
    unsigned char *condition = fence_bytes(&fences[0], count, 0, 0);
    unsigned char *a = fence_bytes(&fences[1], count * size, 0, 0);
    unsigned char *b = fence_bytes(&fences[2], count * size, 0, 0);
    unsigned char *y = fence_bytes(&fences[3], count * size, 64, 0xaa);
    for (size_t i = 0; i < count; i++)
        condition[i] = (unsigned char)(draw_bits() % 3);
    scatter_bytes(a, count, size, INF_DTYPE_NONE);
    scatter_bytes(b, count, size, INF_DTYPE_NONE);
    isa->element->select[index](count, condition, a, b, y);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(memcmp(y + i * size, (condition[i] != 0 ? a : b) + i * size, size), 0,
                     "%s: %zu bytes, element %zu", isa->name, size, i);
    isa->element->fill[index](count, a + (count - 1) * size, y);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(memcmp(y + i * size, a + (count - 1) * size, size), 0, "%s", isa->name);
    cr_assert_eq(y[-1], 0xaa);
}

Test(element, selects_and_fills_whole_elements)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++)
        for (size_t index = 0; index < INF_ELEMENT_SIZES; index++)
            for (size_t i = 0; i < LENGTHS; i++)
                check_choice(inf_isa_level(level), index, lengths[i]);
}
