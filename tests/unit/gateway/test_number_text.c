// SPDX-License-Identifier: Apache-2.0
// Numbers of JSON texts. The C library's strtof(), strtod() and printf() are the oracle.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/oip/number_text.h"

#define ROUNDS 200000

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 11 ^ *state << 21;
}

static bool scan_text(const char *text, struct inf_number *number)
{
    return inf_number_scan(text, text + strlen(text) + 1, number);
}

static void check_text(const char *text)
{
    struct inf_number number;
    cr_assert(scan_text(text, &number), "%s", text);
    cr_assert_eq(number.size, strlen(text), "%s: %zu", text, number.size);
    float narrow = inf_number_float(&number), want_narrow = strtof(text, NULL);
    double wide = inf_number_double(&number), want_wide = strtod(text, NULL);
    cr_assert_eq(memcmp(&narrow, &want_narrow, sizeof narrow), 0, "%s: %a, not %a", text,
                 (double)narrow, (double)want_narrow);
    cr_assert_eq(memcmp(&wide, &want_wide, sizeof wide), 0, "%s: %a, not %a", text, wide,
                 want_wide);
}

Test(number_text, reads_texts_like_the_c_library)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "-0.0",
        "0e5",
        "1",
        "-1",
        "0.1",
        "3.5",
        "1e10",
        "1E+10",
        "1e-10",
        "1e22",
        "1e23",
        "9007199254740992",
        "9007199254740993",
        "9007199254740992.9",
        "18446744073709551615",
        "18446744073709551616",
        "9999999999999999999",
        "10000000000000000000",
        "123456789012345678901",
        // Borders between two floats, and numbers just beside them.
        "16777217",
        "16777217.0000000001",
        "16777216.9999999999",
        "16777219",
        "1.00000005960464477539",
        "1.000000059604644775390625",
        "1.0000000596046447753906251",
        "1.0000000596046447753906249",
        "33554434.0000000000000000001",
        "0.000000059604644775390625",
        // The largest and the smallest values, and their borders.
        "3.4028234663852886e38",
        "3.4028235677973366e38",
        "3.4028235677973365e38",
        "3.5e38",
        "1e39",
        "1e400",
        "-1e400",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "1e-45",
        "7e-46",
        "1.17549435e-38",
        "5e-324",
        "2e-324",
        "2.2250738585072011e-308",
        "1e-400",
        "1e-99999999999",
        "1e99999999999",
        "0e99999999999",
        "0.00000000000000000000000000000000000000000001",
        "0.00012345678901234567",
        "0.000000000012345678901234567890",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_text(texts[i]);
}

Test(number_text, reads_random_texts_like_the_c_library)
{
    uint64_t state = 7;
    char text[128];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t bits = next_random(&state);
        uint32_t low = (uint32_t)(bits >> 16);
        float narrow;
        double wide;
        memcpy(&narrow, &low, sizeof narrow);
        memcpy(&wide, &bits, sizeof wide);
        if (!isfinite(narrow) || !isfinite(wide))
            continue;
        snprintf(text, sizeof text, "%.*e", (int)(bits % 20), (double)narrow);
        check_text(text);
        snprintf(text, sizeof text, "%.*e", (int)(bits % 20), wide);
        check_text(text);
        // What Python writes of a float32, and digits on both sides of the point.
        snprintf(text, sizeof text, "%.17g", (double)(float)((double)(bits % 1000003) / 1e5));
        check_text(text);
        snprintf(text, sizeof text, "%" PRIu64 ".%0*" PRIu64, bits % 100000, (int)(bits % 15) + 1,
                 bits >> 20);
        check_text(text);
        // The exact middle between two floats, and beside it.
        uint32_t middle = (uint32_t)(bits >> 38) | 0x800000u;
        snprintf(text, sizeof text, "%" PRIu32 ".5%s", middle,
                 i % 3 == 0 ? "" : "0000000000000001");
        check_text(text);
        snprintf(text, sizeof text, "%" PRIu32 ".4999999999999999", middle);
        check_text(text);
    }
}

Test(number_text, doubles_beside_the_border_of_two_floats_are_rounded_right)
{
    uint64_t state = 3;
    for (int i = 0; i < ROUNDS / 4; i++) {
        uint64_t bits = next_random(&state);
        // 29 bits are lost: half of the last place of a float, and up to 8 units of the double.
        uint64_t pattern = (bits >> 20 & 0x7fffffULL) << 29 | 0x10000000u;
        uint64_t exponent = 1023 + bits % 30;
        pattern = (exponent << 52 | pattern) + bits / 7 % 17 - 8;
        double value;
        char text[64];
        memcpy(&value, &pattern, sizeof value);
        for (int digits = 14; digits <= 19; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, value);
            check_text(text);
        }
    }
}

Test(number_text, refuses_what_is_no_number)
{
    static const char *const texts[] = {"",   "-",   "+1", ".5",  "1.",  "01",  "-01", "00", "1.e5",
                                        "1e", "1e+", "e5", "--1", "NaN", "inf", "x1",  "1.x"};
    struct inf_number number;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        cr_assert(!scan_text(texts[i], &number), "%s", texts[i]);
}

Test(number_text, ends_before_what_follows_the_number)
{
    static const struct {
        const char *text;
        size_t size;
    } cases[] = {{"1,2", 1}, {"1.5]", 3}, {"-2e3 ", 4}, {"0x10", 1}, {"1e5.5", 3}, {"1-2", 1}};
    struct inf_number number;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(scan_text(cases[i].text, &number));
        cr_assert_eq(number.size, cases[i].size, "%s", cases[i].text);
    }
}

Test(number_text, limits_the_size_of_a_text)
{
    char text[INF_NUMBER_TEXT_MAX + 2] = "0.";
    struct inf_number number;
    memset(text + 2, '3', INF_NUMBER_TEXT_MAX - 2);
    check_text(text);
    text[INF_NUMBER_TEXT_MAX] = '3';
    cr_assert(!scan_text(text, &number));
}

Test(number_text, integers_keep_all_64_bits)
{
    static const struct {
        const char *text;
        uint64_t magnitude;
        bool ok;
    } cases[] = {{"0", 0, true},
                 {"-7", 7, true},
                 {"9223372036854775808", (uint64_t)1 << 63, true},
                 {"18446744073709551615", UINT64_MAX, true},
                 {"18446744073709551616", 0, false},
                 {"99999999999999999999", 0, false},
                 {"184467440737095516150", 0, false},
                 {"1.0", 0, false},
                 {"1e2", 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct inf_number number;
        uint64_t magnitude;
        cr_assert(scan_text(cases[i].text, &number));
        cr_assert_eq(inf_number_magnitude(&number, &magnitude), cases[i].ok, "%s", cases[i].text);
        if (cases[i].ok)
            cr_assert_eq(magnitude, cases[i].magnitude, "%s", cases[i].text);
    }
}

// The number of digits without leading and trailing zeros.
static size_t count_digits(const char *text)
{
    size_t count = 0, zeros = 0;
    for (; *text != '\0' && *text != 'e'; text++) {
        if (*text >= '1' && *text <= '9') {
            count += zeros + 1;
            zeros = 0;
        } else if (*text == '0' && count > 0) {
            zeros++;
        }
    }
    return count;
}

static void check_float(float value)
{
    char text[INF_NUMBER_PRINT_BYTES + 1], other[64];
    text[inf_number_print_float(text, value)] = '\0';
    cr_assert_eq(strtof(text, NULL), value, "%a: %s", (double)value, text);
    int least = 0;
    do
        snprintf(other, sizeof other, "%.*e", least++, (double)value);
    while (strtof(other, NULL) != value);
    cr_assert_eq(count_digits(text), count_digits(other), "%s, not %s", text, other);
    struct inf_number number;
    cr_assert(scan_text(text, &number) && number.real && number.size == strlen(text), "%s", text);
}

static void check_double(double value)
{
    char text[INF_NUMBER_PRINT_BYTES + 1], other[64];
    text[inf_number_print_double(text, value)] = '\0';
    cr_assert_eq(strtod(text, NULL), value, "%a: %s", value, text);
    int least = 0;
    do
        snprintf(other, sizeof other, "%.*e", least++, value);
    while (strtod(other, NULL) != value);
    cr_assert_eq(count_digits(text), count_digits(other), "%s, not %s", text, other);
    struct inf_number number;
    cr_assert(scan_text(text, &number) && number.real && number.size == strlen(text), "%s", text);
}

Test(number_text, prints_the_shortest_text_that_reads_back)
{
    uint64_t state = 11;
    for (int i = 0; i < ROUNDS / 4; i++) {
        uint64_t bits = next_random(&state);
        uint32_t low = (uint32_t)(bits >> 16);
        float narrow;
        double wide;
        memcpy(&narrow, &low, sizeof narrow);
        memcpy(&wide, &bits, sizeof wide);
        if (isfinite(narrow))
            check_float(narrow);
        if (isfinite(wide))
            check_double(wide);
        check_float((float)(bits % 2000) / 1000.0f);
        check_double((double)(bits % 2000) / 1000.0);
        check_double((double)(float)((double)(bits % 1000003) / 1e5));
        low &= 0x7fffff; // subnormal
        memcpy(&narrow, &low, sizeof narrow);
        check_float(narrow);
    }
    for (int exponent = -45; exponent <= 38; exponent++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", exponent);
        check_float(strtof(text, NULL));
        check_float(nextafterf(strtof(text, NULL), 0));
    }
    for (int exponent = -323; exponent <= 308; exponent++) {
        char text[16];
        snprintf(text, sizeof text, "1e%d", exponent);
        check_double(strtod(text, NULL));
        check_double(nextafter(strtod(text, NULL), 0));
    }
}

Test(number_text, prints_the_usual_forms)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.0, "0.0"},
                 {-0.0, "-0.0"},
                 {1.0, "1.0"},
                 {-1.5, "-1.5"},
                 {0.25, "0.25"},
                 {100.0, "100.0"},
                 {1e15, "1000000000000000.0"},
                 {1e16, "1e16"},
                 {0.0001, "0.0001"},
                 {0.00001, "1e-5"},
                 {1.5e-7, "1.5e-7"},
                 {-2.5e20, "-2.5e20"},
                 {NAN, "NaN"},
                 {INFINITY, "Infinity"},
                 {-INFINITY, "-Infinity"},
                 {123456.0, "123456.0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[INF_NUMBER_PRINT_BYTES + 1];
        text[inf_number_print_double(text, cases[i].value)] = '\0';
        cr_assert_str_eq(text, cases[i].text);
        text[inf_number_print_float(text, (float)cases[i].value)] = '\0';
        cr_assert_str_eq(text, cases[i].text);
    }
}

Test(number_text, prints_integers)
{
    char text[INF_NUMBER_PRINT_BYTES + 1];
    text[inf_number_print_unsigned(text, UINT64_MAX)] = '\0';
    cr_assert_str_eq(text, "18446744073709551615");
    text[inf_number_print_signed(text, INT64_MIN)] = '\0';
    cr_assert_str_eq(text, "-9223372036854775808");
    text[inf_number_print_signed(text, 0)] = '\0';
    cr_assert_str_eq(text, "0");
}
