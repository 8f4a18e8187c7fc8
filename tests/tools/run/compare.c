// SPDX-License-Identifier: Apache-2.0
// Compares outputs with recorded ones within a tolerance.
#include "tests/tools/run/compare.h"

#include <math.h>
#include <string.h>

#include "backends/base/half.h"

#define ELEMENT(type)                                                                              \
    {                                                                                              \
        type element;                                                                              \
        memcpy(&element, (const char *)data + index * sizeof(element), sizeof(element));           \
        return (double)element;                                                                    \
    }

static double element_at(const void *data, enum inf_dtype dtype, size_t index)
{
    switch (dtype) {
    case INF_DTYPE_BOOL:
    case INF_DTYPE_U8:
        ELEMENT(uint8_t)
    case INF_DTYPE_U16:
        ELEMENT(uint16_t)
    case INF_DTYPE_U32:
        ELEMENT(uint32_t)
    case INF_DTYPE_U64:
        ELEMENT(uint64_t)
    case INF_DTYPE_I8:
        ELEMENT(int8_t)
    case INF_DTYPE_I16:
        ELEMENT(int16_t)
    case INF_DTYPE_I32:
        ELEMENT(int32_t)
    case INF_DTYPE_I64:
        ELEMENT(int64_t)
    case INF_DTYPE_F32:
        ELEMENT(float)
    case INF_DTYPE_F64:
        ELEMENT(double)
    case INF_DTYPE_F16: {
        uint16_t bits;
        memcpy(&bits, (const char *)data + index * sizeof(bits), sizeof(bits));
        return (double)inf_half_to_float(bits);
    }
    case INF_DTYPE_BF16: {
        uint16_t bits;
        memcpy(&bits, (const char *)data + index * sizeof(bits), sizeof(bits));
        return (double)inf_bf16_to_float(bits);
    }
    default:
        return NAN;
    }
}

// Returns true if the element is close enough to the reference. NaN matches only NaN.
// A float may always differ by `least`.
static bool is_within(double got, double reference, bool is_float, double least,
                      const struct tool_tolerance *tolerance)
{
    if (isnan(got) || isnan(reference))
        return isnan(got) && isnan(reference);
    if (got == reference)
        return true;
    double allowed =
        is_float ? tolerance->atol + tolerance->rtol * fabs(reference) : tolerance->lsb;
    if (is_float && tolerance->of_larger > 0)
        allowed = tolerance->of_larger * fmax(1, fabs(reference));
    if (is_float)
        allowed = fmax(allowed, least);
    return fabs(got - reference) <= allowed;
}

// Returns the largest finite absolute value of a tensor; 0 if there is none.
static double find_largest(const struct inf_npy *tensor)
{
    double largest = 0;
    size_t count = inf_shape_elements(&tensor->shape);
    for (size_t i = 0; i < count; i++) {
        double magnitude = fabs(element_at(tensor->data, tensor->dtype, i));
        if (isfinite(magnitude) && magnitude > largest)
            largest = magnitude;
    }
    return largest;
}

struct tool_difference tool_compare(const void *got, const struct inf_npy *reference,
                                    const struct tool_tolerance *tolerance)
{
    struct tool_difference difference = {.count = inf_shape_elements(&reference->shape)};
    bool is_float = inf_dtype_is_float(reference->dtype);
    double least = tolerance->of_largest > 0 && reference->dtype == INF_DTYPE_F32
                       ? tolerance->of_largest * find_largest(reference)
                       : 0;
    size_t top_got = 0;
    size_t top_reference = 0;
    double sum = 0;
    for (size_t i = 0; i < difference.count; i++) {
        double a = element_at(got, reference->dtype, i);
        double b = element_at(reference->data, reference->dtype, i);
        double distance = a == b ? 0 : fabs(a - b);
        if (!is_within(a, b, is_float, least, tolerance))
            difference.outside++;
        // Written so that it is also true if the distance is NaN, so that max_abs keeps a NaN.
        if (!(distance <= difference.max_abs))
            difference.max_abs = distance;
        double relative = distance == 0 ? 0 : distance / fabs(b);
        if (!(relative <= difference.max_rel))
            difference.max_rel = relative;
        sum += distance;
        if (a > element_at(got, reference->dtype, top_got))
            top_got = i;
        if (b > element_at(reference->data, reference->dtype, top_reference))
            top_reference = i;
    }
    difference.mean_abs = difference.count > 0 ? sum / (double)difference.count : 0;
    difference.same_top = top_got == top_reference;
    difference.ok =
        (double)difference.outside <= tolerance->mismatch_fraction * (double)difference.count &&
        (tolerance->mean_lsb == 0 || difference.mean_abs <= tolerance->mean_lsb) &&
        (!tolerance->top1 || difference.same_top);
    return difference;
}

struct tool_difference tool_compare_strings(const struct inf_strings *strings, const uint64_t *got,
                                            const uint64_t *reference, size_t count)
{
    struct tool_difference difference = {.count = count};
    for (size_t i = 0; i < count; i++) {
        struct inf_span has, wanted;
        bool same = inf_strings_get(strings, got[i], &has, NULL) == INF_OK &&
                    inf_strings_get(strings, reference[i], &wanted, NULL) == INF_OK &&
                    inf_string_compare(has, wanted) == 0;
        difference.outside += !same;
    }
    difference.ok = difference.outside == 0;
    return difference;
}
