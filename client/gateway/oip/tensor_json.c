// SPDX-License-Identifier: Apache-2.0
// Converts the elements of tensors from and to JSON. Integers are checked against the range of the
// element type, and reals are not accepted for integers.
#include "client/gateway/oip/tensor_json.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "client/gateway/oip/json_guard.h"

// The range of each integer type. jansson's integers have 64 bits with a sign, so UINT64 ends at
// INT64_MAX.
static const struct {
    int64_t min, max;
} ranges[] = {
    [INFERD_BOOL] = {0, 1},
    [INFERD_UINT8] = {0, UINT8_MAX},
    [INFERD_UINT16] = {0, UINT16_MAX},
    [INFERD_UINT32] = {0, UINT32_MAX},
    [INFERD_UINT64] = {0, INT64_MAX},
    [INFERD_INT8] = {INT8_MIN, INT8_MAX},
    [INFERD_INT16] = {INT16_MIN, INT16_MAX},
    [INFERD_INT32] = {INT32_MIN, INT32_MAX},
    [INFERD_INT64] = {INT64_MIN, INT64_MAX},
};

static enum inf_code fail_value(const inferd_tensor *tensor, size_t index, struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                           "input '%s': element %zu is no %s", tensor->name, index,
                           inferd_dtype_name(tensor->dtype));
}

static enum inf_code store_integer(const inferd_tensor *tensor, size_t index, const json_t *value,
                                   struct inf_error *err)
{
    bool boolean = tensor->dtype == INFERD_BOOL && json_is_boolean(value);
    if (!json_is_integer(value) && !boolean)
        return fail_value(tensor, index, err);
    int64_t number = boolean ? json_is_true(value) : json_integer_value(value);
    if (number < ranges[tensor->dtype].min || number > ranges[tensor->dtype].max)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "input '%s': element %zu, %" PRId64 ", is out of the range of %s",
                               tensor->name, index, number, inferd_dtype_name(tensor->dtype));
    // Little-endian: the low bytes come first.
    size_t size = inferd_dtype_size(tensor->dtype);
    memcpy((uint8_t *)tensor->data + index * size, &number, size);
    return INF_OK;
}

static enum inf_code store_real(const inferd_tensor *tensor, size_t index, const json_t *value,
                                struct inf_error *err)
{
    if (!json_is_number(value))
        return fail_value(tensor, index, err);
    double number = json_number_value(value);
    if (tensor->dtype == INFERD_FP64) {
        ((double *)tensor->data)[index] = number;
        return INF_OK;
    }
    if (fabs(number) > (double)FLT_MAX)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "input '%s': element %zu is out of the range of FP32", tensor->name,
                               index);
    ((float *)tensor->data)[index] = (float)number;
    return INF_OK;
}

// Stores the elements of `data`, which are nested arrays for the dimensions from `level` on. *next
// is the index of the next element of the tensor, and is moved behind the stored elements.
static enum inf_code store_level(const inferd_tensor *tensor, const json_t *data, int level,
                                 size_t *next, struct inf_error *err)
{
    if (!json_is_array(data) || json_array_size(data) != (size_t)tensor->shape[level])
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                               "input '%s': the arrays in 'data' do not have the shape",
                               tensor->name);
    bool real = tensor->dtype == INFERD_FP32 || tensor->dtype == INFERD_FP64;
    for (size_t i = 0; i < json_array_size(data); i++) {
        const json_t *value = json_array_get(data, i);
        if (level + 1 < tensor->rank)
            INF_TRY(store_level(tensor, value, level + 1, next, err));
        else
            INF_TRY(real ? store_real(tensor, (*next)++, value, err)
                         : store_integer(tensor, (*next)++, value, err));
    }
    return INF_OK;
}

enum inf_code inf_oip_tensor_from_json(const inferd_tensor *tensor, const json_t *data,
                                       struct inf_error *err)
{
    if (tensor->dtype == INFERD_FP16 || tensor->dtype == INFERD_BF16)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "input '%s': %s tensors are sent as binary data only", tensor->name,
                               inferd_dtype_name(tensor->dtype));
    size_t next = 0;
    size_t count = tensor->size / inferd_dtype_size(tensor->dtype);
    bool nested = tensor->rank > 1 && json_is_array(json_array_get(data, 0));
    if (nested)
        return store_level(tensor, data, 0, &next, err);
    if (!json_is_array(data) || json_array_size(data) != count)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "input '%s': 'data' is no array of %zu elements", tensor->name,
                               count);
    inferd_tensor flat = *tensor;
    flat.rank = 1;
    flat.shape[0] = (int64_t)count;
    return store_level(&flat, data, 0, &next, err);
}

static int64_t load_integer(const inferd_tensor *tensor, size_t index)
{
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case INFERD_UINT16:
        return ((const uint16_t *)data)[index];
    case INFERD_UINT32:
        return ((const uint32_t *)data)[index];
    case INFERD_INT8:
        return ((const int8_t *)data)[index];
    case INFERD_INT16:
        return ((const int16_t *)data)[index];
    case INFERD_INT32:
        return ((const int32_t *)data)[index];
    case INFERD_INT64:
        return ((const int64_t *)data)[index];
    default:
        return ((const uint8_t *)data)[index];
    }
}

static enum inf_code print_real(const inferd_tensor *tensor, size_t index, FILE *out,
                                struct inf_error *err)
{
    bool wide = tensor->dtype == INFERD_FP64;
    double value =
        wide ? ((const double *)tensor->data)[index] : (double)((const float *)tensor->data)[index];
    if (!isfinite(value))
        return inf_fail(err, INF_RANGE,
                        "output '%s': element %zu is not finite, which JSON cannot express; ask "
                        "for binary data",
                        tensor->name, index);
    // The least number of digits with which every value of the type reads back unchanged.
    fprintf(out, wide ? "%.17g" : "%.9g", value);
    return INF_OK;
}

enum inf_code inf_oip_tensor_to_json(const inferd_tensor *tensor, FILE *out, struct inf_error *err)
{
    size_t count = tensor->size / inferd_dtype_size(tensor->dtype);
    if (tensor->dtype == INFERD_FP16 || tensor->dtype == INFERD_BF16 || count > INF_OIP_JSON_VALUES)
        return inf_fail(err, INF_INVALID,
                        "output '%s': %zu elements of %s are returned as binary data only",
                        tensor->name, count, inferd_dtype_name(tensor->dtype));
    fputc('[', out);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            fputc(',', out);
        if (tensor->dtype == INFERD_FP32 || tensor->dtype == INFERD_FP64)
            INF_TRY(print_real(tensor, i, out, err));
        else if (tensor->dtype == INFERD_BOOL)
            fputs(load_integer(tensor, i) != 0 ? "true" : "false", out);
        else if (tensor->dtype == INFERD_UINT64)
            fprintf(out, "%" PRIu64, ((const uint64_t *)tensor->data)[i]);
        else
            fprintf(out, "%" PRId64, load_integer(tensor, i));
    }
    fputc(']', out);
    return INF_OK;
}
