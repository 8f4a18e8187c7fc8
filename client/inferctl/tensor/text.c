// SPDX-License-Identifier: Apache-2.0
// Converts tensors to text. Elements of every type are read as doubles.
#include "client/inferctl/tensor/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/inferctl/text/json_value.h"

const char *tensor_shape_text(const inferd_tensor *tensor, char text[TENSOR_SHAPE_TEXT])
{
    size_t at = 0;
    if (tensor->rank < 0) {
        snprintf(text, TENSOR_SHAPE_TEXT, "any");
        return text;
    }
    text[at++] = '[';
    for (int i = 0; i < tensor->rank && at < TENSOR_SHAPE_TEXT - 2; i++) {
        const char *comma = i > 0 ? "," : "";
        at += (size_t)(tensor->shape[i] < 0
                           ? snprintf(text + at, TENSOR_SHAPE_TEXT - at, "%s?", comma)
                           : snprintf(text + at, TENSOR_SHAPE_TEXT - at, "%s%lld", comma,
                                      (long long)tensor->shape[i]));
    }
    snprintf(text + (at < TENSOR_SHAPE_TEXT - 2 ? at : TENSOR_SHAPE_TEXT - 2), 2, "]");
    return text;
}

json_t *tensor_shape_json(const inferd_tensor *tensor)
{
    if (tensor->rank < 0)
        return json_null();
    json_t *shape = json_value_must(json_array());
    for (int i = 0; i < tensor->rank; i++)
        json_array_append_new(shape, tensor->shape[i] < 0 ? json_null()
                                                          : json_value_whole(tensor->shape[i]));
    return shape;
}

size_t tensor_count(const inferd_tensor *tensor)
{
    size_t element = inferd_dtype_size(tensor->dtype);
    size_t strings = 1;
    for (int i = 0; tensor->dtype == INFERD_BYTES && i < tensor->rank; i++)
        strings *= (size_t)tensor->shape[i];
    if (tensor->dtype == INFERD_BYTES)
        return strings;
    return element == 0 ? 0 : tensor->size / element;
}

// Returns the value of a binary16 number, which has a sign, 5 bits of exponent and 10 bits of
// mantissa.
static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1f;
    double mantissa = bits & 0x3ff;
    double magnitude = exponent == 0x1f ? (mantissa != 0 ? (double)NAN : (double)INFINITY)
                       : exponent == 0  ? ldexp(mantissa, -24)
                                        : ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static double bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return (double)value;
}

double tensor_element(const inferd_tensor *tensor, size_t index)
{
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case INFERD_BOOL:
    case INFERD_UINT8:
        return ((const uint8_t *)data)[index];
    case INFERD_UINT16:
        return ((const uint16_t *)data)[index];
    case INFERD_UINT32:
        return ((const uint32_t *)data)[index];
    case INFERD_UINT64:
        return (double)((const uint64_t *)data)[index];
    case INFERD_INT8:
        return ((const int8_t *)data)[index];
    case INFERD_INT16:
        return ((const int16_t *)data)[index];
    case INFERD_INT32:
        return ((const int32_t *)data)[index];
    case INFERD_INT64:
        return (double)((const int64_t *)data)[index];
    case INFERD_FP16:
        return half_value(((const uint16_t *)data)[index]);
    case INFERD_BF16:
        return bf16_value(((const uint16_t *)data)[index]);
    case INFERD_FP32:
        return (double)((const float *)data)[index];
    case INFERD_FP64:
        return ((const double *)data)[index];
    case INFERD_BYTES:
        break;
    }
    return (double)NAN;
}

struct tensor_summary tensor_summarise(const inferd_tensor *tensor)
{
    struct tensor_summary summary = {.min = INFINITY, .max = -INFINITY};
    size_t count = tensor_count(tensor);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double value = tensor_element(tensor, i);
        if (isnan(value)) {
            summary.nan_count++;
            continue;
        }
        summary.min = fmin(summary.min, value);
        summary.max = fmax(summary.max, value);
        sum += value;
    }
    size_t numbers = count - summary.nan_count;
    summary.mean = numbers > 0 ? sum / (double)numbers : (double)NAN;
    if (numbers == 0)
        summary.min = summary.max = (double)NAN;
    return summary;
}

bool tensor_is_class_vector(const inferd_tensor *tensor)
{
    size_t count = tensor_count(tensor);
    bool is_float = tensor->dtype == INFERD_FP32 || tensor->dtype == INFERD_FP16 ||
                    tensor->dtype == INFERD_BF16 || tensor->dtype == INFERD_FP64;
    return is_float && tensor->rank >= 1 && tensor->rank <= 2 && count >= 2 && count <= 100000 &&
           (size_t)tensor->shape[tensor->rank - 1] == count;
}

size_t tensor_top(const inferd_tensor *tensor, size_t count, size_t *indices)
{
    size_t found = 0;
    size_t total = tensor_count(tensor);
    for (size_t i = 0; i < total; i++) {
        double value = tensor_element(tensor, i);
        if (isnan(value))
            continue;
        size_t at = found;
        while (at > 0 && tensor_element(tensor, indices[at - 1]) < value)
            at--;
        if (at == count)
            continue;
        if (found < count)
            found++;
        memmove(indices + at + 1, indices + at, (found - at - 1) * sizeof *indices);
        indices[at] = i;
    }
    return found;
}
