// SPDX-License-Identifier: Apache-2.0
// Reads and prints the numbers of tensors in JSON.
//
// jansson makes an object of each number and calls strtod() for it, which takes 0.2 us. strtof()
// and strtod() alone take 50 to 100 ns. The functions here take about 10 ns for the usual numbers,
// and call strtof() and strtod() for all others, so that every result is correctly rounded.
//
// Reading. Up to 19 digits fit a 64-bit integer exactly, and 10^0 to 10^22 are exact as doubles.
//   double: if the digits fit 53 bits, digits * 10^e is one operation on exact operands, so that
//           IEEE 754 rounds it correctly (Clinger's fast path).
//   float:  the digits are rounded to a double, and multiplied or divided: two operations, each
//           with an error of at most half a unit in the last place (2^-53). Rounding the result to
//           a float is correct unless the border between two floats lies within that error. The
//           lower 29 bits of the double tell: at such a border they are 0x10000000.
//
// Printing. Nine digits always read back as the same float, and fewer digits can. If n digits do,
// then n + 1 digits do, so that a binary search finds the least n. Each attempt is read back by the
// exact reader above, so that an error in scaling can cost a digit but never the value.
#include "client/gateway/oip/number_text.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Maximum number of decimal digits that always fit 64 bits.
#define DIGITS_MAX 19
// Maximum power of ten that is exact as a double.
#define POWER_MAX 22
// Exponents beyond this make every number zero or infinity, whatever its digits.
#define EXPONENT_MAX 99999
// Distance from the border between two floats at which rounding a double is safe, in units of its
// last place. The errors of the two operations are together less than 2 units.
#define SAFE_DISTANCE 4

static const double powers[POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// Moves *text behind its digits and appends them to *digits, which can overflow. Returns the number
// of digits.
static size_t take_digits(const char **text, const char *end, uint64_t *digits)
{
    const char *begin = *text, *at = begin;
    for (; at < end && is_digit(*at); at++)
        *digits = *digits * 10 + (uint64_t)(*at - '0');
    *text = at;
    return (size_t)(at - begin);
}

// Returns the number of zeros before the first other digit of `text`.
static size_t count_leading_zeros(const char *text)
{
    size_t zeros = 0;
    for (; *text == '0' || *text == '.'; text++)
        zeros += *text == '0';
    return zeros;
}

// Takes the exponent at *text, which begins with 'e' or 'E'. Returns false if it has no digits.
static bool take_exponent(const char **text, const char *end, int *exponent)
{
    const char *at = *text + 1;
    bool negative = at < end && *at == '-';
    at += at < end && (*at == '-' || *at == '+');
    const char *digits = at;
    int value = 0;
    for (; at < end && is_digit(*at); at++)
        value = value > EXPONENT_MAX ? value : value * 10 + (*at - '0');
    *exponent = negative ? -value : value;
    *text = at;
    return at > digits;
}

bool inf_number_scan(const char *text, const char *end, struct inf_number *number)
{
    const char *at = text;
    uint64_t digits = 0;
    *number = (struct inf_number){.text = text, .negative = at < end && *at == '-'};
    at += number->negative;
    const char *first = at;
    size_t count = take_digits(&at, end, &digits);
    if (count == 0 || (count > 1 && *first == '0'))
        return false;
    size_t fraction = 0;
    if (at < end && *at == '.') {
        at++;
        fraction = take_digits(&at, end, &digits);
        number->real = true;
        if (fraction == 0)
            return false;
    }
    int exponent = 0;
    if (at < end && (*at == 'e' || *at == 'E')) {
        number->real = true;
        if (!take_exponent(&at, end, &exponent))
            return false;
    }
    number->size = (size_t)(at - text);
    if (number->size > INF_NUMBER_TEXT_MAX)
        return false;
    count += fraction;
    number->truncated = count > DIGITS_MAX && count - count_leading_zeros(first) > DIGITS_MAX;
    number->digits = digits;
    number->exponent = exponent - (int)fraction;
    return true;
}

bool inf_number_magnitude(const struct inf_number *number, uint64_t *magnitude)
{
    *magnitude = number->digits;
    if (number->real)
        return false;
    if (!number->truncated)
        return true;
    *magnitude = 0;
    for (size_t i = number->negative; i < number->size; i++)
        if (__builtin_mul_overflow(*magnitude, (uint64_t)10, magnitude) ||
            __builtin_add_overflow(*magnitude, (uint64_t)(number->text[i] - '0'), magnitude))
            return false;
    return true;
}

// Returns digits * 10^exponent for |exponent| <= POWER_MAX, with an error of at most half a unit in
// the last place for each of the two roundings.
static double scale_digits(uint64_t digits, int exponent)
{
    return exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
}

// Sets *value to digits * 10^exponent if it can be computed exactly enough for a float.
static bool compute_float(uint64_t digits, int exponent, float *value)
{
    if (exponent < -POWER_MAX || exponent > POWER_MAX)
        return false;
    double wide = scale_digits(digits, exponent);
    uint64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    int64_t distance = (int64_t)(bits & 0x1fffffff) - 0x10000000;
    if (wide >= (double)FLT_MAX || (distance >= -SAFE_DISTANCE && distance <= SAFE_DISTANCE))
        return false;
    *value = (float)wide;
    return true;
}

// Sets *value to digits * 10^exponent if one rounding computes it.
static bool compute_double(uint64_t digits, int exponent, double *value)
{
    if (exponent < -POWER_MAX || exponent > POWER_MAX || digits > (uint64_t)1 << DBL_MANT_DIG)
        return false;
    *value = scale_digits(digits, exponent);
    return true;
}

float inf_number_float(const struct inf_number *number)
{
    float value;
    if (number->truncated || !compute_float(number->digits, number->exponent, &value))
        return strtof(number->text, NULL);
    return number->negative ? -value : value;
}

double inf_number_double(const struct inf_number *number)
{
    double value;
    if (number->truncated || !compute_double(number->digits, number->exponent, &value))
        return strtod(number->text, NULL);
    return number->negative ? -value : value;
}

// --- printing ---

// Returns value * 10^exponent, with an error of a few units in the last place.
static double scale_value(double value, int exponent)
{
    for (; exponent > POWER_MAX; exponent -= POWER_MAX)
        value *= powers[POWER_MAX];
    for (; exponent < -POWER_MAX; exponent += POWER_MAX)
        value /= powers[POWER_MAX];
    return exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
}

// Prints `value`, which needs at most 20 bytes.
static size_t print_digits(char *to, uint64_t value)
{
    char reversed[INF_NUMBER_PRINT_BYTES];
    size_t size = 0;
    do {
        reversed[size++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (size_t i = 0; i < size; i++)
        to[i] = reversed[size - 1 - i];
    return size;
}

size_t inf_number_print_unsigned(char to[INF_NUMBER_PRINT_BYTES], uint64_t value)
{
    return print_digits(to, value);
}

size_t inf_number_print_signed(char to[INF_NUMBER_PRINT_BYTES], int64_t value)
{
    to[0] = '-';
    return value < 0 ? 1 + print_digits(to + 1, -(uint64_t)value)
                     : print_digits(to, (uint64_t)value);
}

// Writes `count` zeros, and returns the number of bytes.
static size_t write_zeros(char *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] = '0';
    return count > 0 ? (size_t)count : 0;
}

// Writes digits * 10^exponent. Numbers from 1e-4 to 1e16 have no exponent, as in Python.
static size_t write_decimal(char *to, bool negative, uint64_t digits, int exponent)
{
    for (; digits != 0 && digits % 10 == 0; exponent++)
        digits /= 10;
    char text[INF_NUMBER_PRINT_BYTES];
    int count = (int)print_digits(text, digits);
    int point = count + exponent; // the number is 0.DIGITS * 10^point
    size_t at = 0;
    if (negative)
        to[at++] = '-';
    if (point < -3 || point > 16) {
        to[at++] = text[0];
        if (count > 1)
            to[at++] = '.';
        memcpy(to + at, text + 1, (size_t)count - 1);
        at += (size_t)count - 1;
        to[at++] = 'e';
        if (point < 1)
            to[at++] = '-';
        return at + print_digits(to + at, (uint64_t)abs(point - 1));
    }
    int whole = point < 0 ? 0 : point < count ? point : count; // digits before the point
    memcpy(to + at, text, (size_t)whole);
    at += (size_t)whole;
    at += write_zeros(to + at, whole == 0 ? 1 : point - count);
    to[at++] = '.';
    at += write_zeros(to + at, whole == count ? 1 : -point);
    memcpy(to + at, text + whole, (size_t)(count - whole));
    return at + (size_t)(count - whole);
}

// Prints zero, NaN and infinities. Returns 0 for every other value.
static size_t print_special(char *to, double value)
{
    const char *text = isnan(value)     ? "NaN"
                       : isinf(value)   ? (value > 0 ? "Infinity" : "-Infinity")
                       : value != 0     ? ""
                       : signbit(value) ? "-0.0"
                                        : "0.0";
    size_t size = strlen(text);
    memcpy(to, text, size);
    return size;
}

// Returns the exponent of the first digit of a positive value, which can be 1 too large or too
// small next to a power of ten.
static int find_exponent(double value)
{
    return (int)floor(log10(value));
}

// Returns true if digits * 10^exponent reads back as `value`.
static bool float_reads_back(float value, uint64_t digits, int exponent)
{
    float read;
    char text[INF_NUMBER_PRINT_BYTES];
    if (compute_float(digits, exponent, &read))
        return read == value;
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, exponent);
    return strtof(text, NULL) == value;
}

size_t inf_number_print_float(char to[INF_NUMBER_PRINT_BYTES], float value)
{
    float magnitude = fabsf(value);
    size_t special = print_special(to, (double)value);
    if (special > 0)
        return special;
    int exponent = find_exponent((double)magnitude) - (FLT_DECIMAL_DIG - 1);
    double scaled = scale_value((double)magnitude, -exponent);
    int low = 1, high = FLT_DECIMAL_DIG;
    while (low < high) {
        int count = (low + high) / 2, dropped = FLT_DECIMAL_DIG - count;
        if (float_reads_back(magnitude, (uint64_t)llrint(scaled / powers[dropped]),
                             exponent + dropped))
            high = count;
        else
            low = count + 1;
    }
    int dropped = FLT_DECIMAL_DIG - high;
    return write_decimal(to, value < 0, (uint64_t)llrint(scaled / powers[dropped]),
                         exponent + dropped);
}

size_t inf_number_print_double(char to[INF_NUMBER_PRINT_BYTES], double value)
{
    double magnitude = fabs(value), read;
    size_t special = print_special(to, value);
    if (special > 0)
        return special;
    // If any number of at most 15 digits reads back as the value, the nearest one of 15 digits is
    // equal to it.
    int exponent = find_exponent(magnitude) - (DBL_DIG - 1);
    uint64_t digits = (uint64_t)llrint(scale_value(magnitude, -exponent));
    if (compute_double(digits, exponent, &read) && read == magnitude)
        return write_decimal(to, value < 0, digits, exponent);
    // Below DBL_MIN there are fewer significant digits.
    for (int count = magnitude < DBL_MIN ? 1 : DBL_DIG; count <= DBL_DECIMAL_DIG; count++) {
        char text[INF_NUMBER_PRINT_BYTES];
        snprintf(text, sizeof text, "%.*e", count - 1, magnitude);
        if (count < DBL_DECIMAL_DIG && strtod(text, NULL) != magnitude)
            continue;
        struct inf_number number;
        inf_number_scan(text, text + strlen(text) + 1, &number);
        return write_decimal(to, value < 0, number.digits, number.exponent);
    }
    return 0; // not reached: 17 digits always read back
}
