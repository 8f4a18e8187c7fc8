// SPDX-License-Identifier: Apache-2.0
// Casts between strings and numbers.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/ref/text.h"

// The longest text that is read as a number. The exact value of any double has fewer digits.
#define NUMBER_BYTES 1100

// --- numbers to strings ---

// Writes `value` with the fewest digits from which the element type reads the same number.
static int print_float(char *text, size_t size, double value, enum inf_dtype dtype)
{
    if (isnan(value))
        return snprintf(text, size, "NaN");
    if (isinf(value))
        return snprintf(text, size, value < 0 ? "-INF" : "INF");
    bool is_double = dtype == INF_DTYPE_F64;
    int length = 0;
    for (int digits = 1; digits <= (is_double ? 17 : 9); digits++) {
        length = snprintf(text, size, "%.*g", digits, value);
        if (is_double ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value)
            break;
    }
    return length;
}

static enum inf_code print_numbers(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    char text[64];
    for (size_t i = 0; i < x->count; i++) {
        int length;
        if (inf_dtype_is_float(x->dtype))
            length = print_float(text, sizeof text, inf_ref_get(x, i), x->dtype);
        else if (x->dtype == INF_DTYPE_U64)
            length =
                snprintf(text, sizeof text, "%llu", (unsigned long long)inf_ref_load_int(x, i));
        else
            length = snprintf(text, sizeof text, "%lld", (long long)inf_ref_load_int(x, i));
        const struct inf_span string = {(const uint8_t *)text, (size_t)length};
        INF_TRY(inf_ref_store_string(call, &call->outputs[0], i, string, err));
    }
    return INF_OK;
}

// --- strings to numbers ---

static enum inf_code refuse_text(const char *text, enum inf_dtype dtype, struct inf_error *err)
{
    return inf_fail(err, INF_INVALID, "'%.40s' is no %s", text, inf_dtype_name(dtype));
}

static enum inf_code parse_float(const char *text, const struct inf_ref_tensor *y, size_t index,
                                 struct inf_error *err)
{
    char *end;
    double value = strtod(text, &end);
    // strtod() also reads hexadecimal numbers, which no format for numbers in text files has.
    if (end == text || *end != '\0' || isspace((unsigned char)text[0]) ||
        strpbrk(text, "xX(") != NULL)
        return refuse_text(text, y->dtype, err);
    inf_ref_store(y, index, value);
    return INF_OK;
}

static enum inf_code parse_integer(const char *text, const struct inf_ref_tensor *y, size_t index,
                                   struct inf_error *err)
{
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    __int128 value = 0;
    if (*digits == '\0')
        return refuse_text(text, y->dtype, err);
    for (; *digits != '\0'; digits++) {
        if (*digits < '0' || *digits > '9' || value > inf_ref_int_max(INF_DTYPE_U64))
            return refuse_text(text, y->dtype, err);
        value = value * 10 + (*digits - '0');
    }
    value = text[0] == '-' ? -value : value;
    if (value < inf_ref_int_min(y->dtype) || value > inf_ref_int_max(y->dtype))
        return refuse_text(text, y->dtype, err);
    inf_ref_store_int(y, index, value);
    return INF_OK;
}

static enum inf_code parse_numbers(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    char text[NUMBER_BYTES + 1];
    for (size_t i = 0; i < y->count; i++) {
        struct inf_span string;
        INF_TRY(inf_ref_load_string(call, &call->inputs[0], i, &string, err));
        size_t length = INF_MIN(string.size, (size_t)NUMBER_BYTES);
        if (length > 0)
            memcpy(text, string.data, length);
        text[length] = '\0';
        if (length < string.size || strlen(text) < length)
            return refuse_text(text, y->dtype, err);
        INF_TRY(inf_dtype_is_float(y->dtype) ? parse_float(text, y, i, err)
                                             : parse_integer(text, y, i, err));
    }
    return INF_OK;
}

enum inf_code inf_ref_cast_strings(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    if (x->dtype != INF_DTYPE_BYTES)
        return print_numbers(call, err);
    if (y->dtype != INF_DTYPE_BYTES)
        return parse_numbers(call, err);
    inf_ref_copy(y, 0, x, 0, y->count);
    return INF_OK;
}
