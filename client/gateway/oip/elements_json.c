// SPDX-License-Identifier: Apache-2.0
// Converts the elements of tensors from and to JSON. An iterative parser keeps its state between
// calls, so that the event loop serves other clients while a large tensor is read. Integers are
// checked against the range of the element type, and reals are not accepted for integers.
#include "client/gateway/oip/elements_json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "proto/core/bytes_tensor.h"

// The range of each integer type: -min to max.
static const struct {
    uint64_t min, max;
} ranges[] = {
    [INFERD_BOOL] = {0, 1},
    [INFERD_UINT8] = {0, UINT8_MAX},
    [INFERD_UINT16] = {0, UINT16_MAX},
    [INFERD_UINT32] = {0, UINT32_MAX},
    [INFERD_UINT64] = {0, UINT64_MAX},
    [INFERD_INT8] = {(uint64_t)INT8_MAX + 1, INT8_MAX},
    [INFERD_INT16] = {(uint64_t)INT16_MAX + 1, INT16_MAX},
    [INFERD_INT32] = {(uint64_t)INT32_MAX + 1, INT32_MAX},
    [INFERD_INT64] = {(uint64_t)INT64_MAX + 1, INT64_MAX},
};

// Words that are values of FP32 and FP64 in Triton's JSON.
static const struct {
    const char *text;
    double value;
} words[] = {
    {"NaN", (double)NAN},  {"Infinity", (double)INFINITY},   {"Inf", (double)INFINITY},
    {"-NaN", (double)NAN}, {"-Infinity", -(double)INFINITY}, {"-Inf", -(double)INFINITY},
};

static bool is_real_type(const inferd_tensor *tensor)
{
    return tensor->dtype == INFERD_FP32 || tensor->dtype == INFERD_FP64;
}

// Returns the minimum size of an element in bytes, which is its size unless it is a string.
static size_t element_bytes(const inferd_tensor *tensor)
{
    return tensor->dtype == INFERD_BYTES ? INF_BYTES_LENGTH_SIZE : inferd_dtype_size(tensor->dtype);
}

size_t inf_json_elements_room(const struct inf_json_elements *elements)
{
    const inferd_tensor *tensor = elements->tensor;
    size_t text = tensor->dtype == INFERD_BYTES ? (size_t)(elements->end - elements->at) : 0;
    return elements->count * element_bytes(tensor) + text;
}

enum inf_code inf_json_elements_begin(struct inf_json_elements *elements,
                                      const inferd_tensor *tensor, struct inf_span data,
                                      struct inf_error *err)
{
    const char *text = (const char *)data.data;
    size_t count = tensor->size / element_bytes(tensor);
    *elements = (struct inf_json_elements){
        .tensor = tensor, .at = text, .end = text + data.size, .count = count};
    if (tensor->dtype == INFERD_FP16 || tensor->dtype == INFERD_BF16)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "input '%s': %s tensors are sent as binary data only", tensor->name,
                               inferd_dtype_name(tensor->dtype));
    // Each element but the last needs at least a digit and a comma.
    if (count > data.size / 2)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "input '%s': 'data' is no array of %zu elements", tensor->name,
                               count);
    return INF_OK;
}

static enum inf_code fail_shape(const struct inf_json_elements *elements, struct inf_error *err)
{
    const inferd_tensor *tensor = elements->tensor;
    if (elements->levels > 1)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                               "input '%s': the arrays in 'data' do not have the shape",
                               tensor->name);
    return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                           "input '%s': 'data' is no array of %zu elements", tensor->name,
                           elements->count);
}

static enum inf_code fail_element(const struct inf_json_elements *elements, struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                           "input '%s': element %zu is no %s", elements->tensor->name,
                           elements->next, inferd_dtype_name(elements->tensor->dtype));
}

static enum inf_code fail_range(const struct inf_json_elements *elements,
                                const struct inf_number *number, struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                           "input '%s': element %zu, %.*s, is out of the range of %s",
                           elements->tensor->name, elements->next,
                           (int)INF_MIN(number->size, (size_t)40), number->text,
                           inferd_dtype_name(elements->tensor->dtype));
}

// Returns true, and moves elements->at behind it, if `word` is next in the text.
static bool take_word(struct inf_json_elements *elements, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(elements->end - elements->at) < size || memcmp(elements->at, word, size) != 0)
        return false;
    elements->at += size;
    return true;
}

static void store_real(struct inf_json_elements *elements, double value)
{
    void *data = elements->tensor->data;
    if (elements->tensor->dtype == INFERD_FP64)
        ((double *)data)[elements->next] = value;
    else
        ((float *)data)[elements->next] = (float)value;
}

static enum inf_code take_real(struct inf_json_elements *elements, struct inf_error *err)
{
    struct inf_number number;
    if (!inf_number_scan(elements->at, elements->end, &number)) {
        for (size_t i = 0; i < INF_ARRAY_LENGTH(words); i++)
            if (take_word(elements, words[i].text)) {
                store_real(elements, words[i].value);
                return INF_OK;
            }
        return fail_element(elements, err);
    }
    bool wide = elements->tensor->dtype == INFERD_FP64;
    double value = wide ? inf_number_double(&number) : (double)inf_number_float(&number);
    if (isinf(value))
        return fail_range(elements, &number, err);
    store_real(elements, value);
    elements->at += number.size;
    return INF_OK;
}

static void store_integer(struct inf_json_elements *elements, uint64_t value)
{
    // Little-endian: the low bytes come first.
    size_t size = inferd_dtype_size(elements->tensor->dtype);
    memcpy((uint8_t *)elements->tensor->data + elements->next * size, &value, size);
}

static enum inf_code take_integer(struct inf_json_elements *elements, struct inf_error *err)
{
    const inferd_tensor *tensor = elements->tensor;
    if (tensor->dtype == INFERD_BOOL) {
        bool is_true = take_word(elements, "true");
        if (is_true || take_word(elements, "false")) {
            store_integer(elements, is_true);
            return INF_OK;
        }
    }
    struct inf_number number;
    uint64_t magnitude;
    if (!inf_number_scan(elements->at, elements->end, &number) || number.real)
        return fail_element(elements, err);
    if (!inf_number_magnitude(&number, &magnitude) ||
        magnitude > (number.negative ? ranges[tensor->dtype].min : ranges[tensor->dtype].max))
        return fail_range(elements, &number, err);
    store_integer(elements, number.negative ? -magnitude : magnitude);
    elements->at += number.size;
    return INF_OK;
}

// Sets the number of levels when the first item of the outermost array is next.
static void set_levels(struct inf_json_elements *elements)
{
    const inferd_tensor *tensor = elements->tensor;
    bool nested = *elements->at == '[' && tensor->rank > 1;
    elements->levels = nested ? tensor->rank : 1;
    elements->dims[0] = elements->count;
    for (int i = 0; nested && i < tensor->rank; i++)
        elements->dims[i] = (size_t)tensor->shape[i];
}

// Takes a string, or a part of it that ends about at `stop`.
static enum inf_code take_string(struct inf_json_elements *elements, const char *stop,
                                 struct inf_error *err)
{
    if (elements->strings.to == NULL)
        elements->strings.to = elements->tensor->data;
    if (!inf_json_string_read(&elements->strings, &elements->at, stop, elements->end))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "input '%s': element %zu is no string", elements->tensor->name,
                               elements->next);
    return INF_OK;
}

// Takes a number, or a string or a part of it that ends about at `stop`.
static enum inf_code take_element(struct inf_json_elements *elements, const char *stop,
                                  struct inf_error *err)
{
    if (elements->tensor->dtype == INFERD_BYTES)
        return take_string(elements, stop, err);
    return is_real_type(elements->tensor) ? take_real(elements, err) : take_integer(elements, err);
}

// Takes an element, a part of one that ends about at `stop`, or an opening bracket.
static enum inf_code take_item(struct inf_json_elements *elements, const char *stop,
                               struct inf_error *err)
{
    if (elements->level == 1 && elements->levels == 0)
        set_levels(elements);
    if (elements->level == 0 || elements->level < elements->levels) {
        if (*elements->at != '[')
            return fail_shape(elements, err);
        elements->at++;
        elements->done[elements->level++] = 0;
        return INF_OK;
    }
    // The arrays that are complete have the right sizes, so the index is within the tensor if the
    // arrays that are open have room.
    size_t *done = &elements->done[elements->level - 1];
    if (*done == elements->dims[elements->level - 1])
        return fail_shape(elements, err);
    INF_TRY(take_element(elements, stop, err));
    if (elements->strings.length != NULL)
        return INF_OK;
    elements->next++;
    ++*done;
    elements->after_item = true;
    return INF_OK;
}

// Takes a comma or a closing bracket.
static enum inf_code take_separator(struct inf_json_elements *elements, struct inf_error *err)
{
    size_t done = elements->done[elements->level - 1], wanted = elements->dims[elements->level - 1];
    char c = *elements->at++;
    if (c == ',' && done < wanted) {
        elements->after_item = false;
        return INF_OK;
    }
    if (c != ']' && c != ',')
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "input '%s': 'data' is no valid JSON behind element %zu",
                               elements->tensor->name, elements->next);
    if (c == ',' || done != wanted)
        return fail_shape(elements, err);
    elements->after_item = true;
    if (--elements->level > 0)
        elements->done[elements->level - 1]++;
    return INF_OK;
}

enum inf_code inf_json_elements_read(struct inf_json_elements *elements, size_t bytes_max,
                                     bool *done, struct inf_error *err)
{
    size_t left = (size_t)(elements->end - elements->at);
    const char *stop = left > bytes_max ? elements->at + bytes_max : elements->end;
    while (elements->at < stop) {
        char c = *elements->at;
        if (elements->strings.length != NULL) {
            INF_TRY(take_item(elements, stop, err));
            continue;
        }
        if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
            elements->at++;
            continue;
        }
        // An empty array has a closing bracket instead of an item.
        bool empty = c == ']' && elements->level > 0 && elements->done[elements->level - 1] == 0;
        if (empty && elements->levels == 0)
            set_levels(elements);
        if (elements->after_item && elements->level == 0)
            return fail_shape(elements, err);
        INF_TRY(elements->after_item || empty ? take_separator(elements, err)
                                              : take_item(elements, stop, err));
    }
    *done = elements->at == elements->end;
    if (*done && elements->level != 0)
        return fail_shape(elements, err);
    return INF_OK;
}

static int64_t load_signed(const inferd_tensor *tensor, size_t index)
{
    const void *data = tensor->data;
    switch (tensor->dtype) {
    case INFERD_INT8:
        return ((const int8_t *)data)[index];
    case INFERD_INT16:
        return ((const int16_t *)data)[index];
    case INFERD_INT32:
        return ((const int32_t *)data)[index];
    default:
        return ((const int64_t *)data)[index];
    }
}

static uint64_t load_unsigned(const inferd_tensor *tensor, size_t index)
{
    uint64_t value = 0;
    size_t size = inferd_dtype_size(tensor->dtype);
    memcpy(&value, (const uint8_t *)tensor->data + index * size, size);
    return value;
}

size_t inf_json_element_print(char to[INF_JSON_ELEMENT_BYTES], const inferd_tensor *tensor,
                              size_t index)
{
    bool is_true = false;
    switch (tensor->dtype) {
    case INFERD_FP32:
        return inf_number_print_float(to, ((const float *)tensor->data)[index]);
    case INFERD_FP64:
        return inf_number_print_double(to, ((const double *)tensor->data)[index]);
    case INFERD_BOOL:
        is_true = ((const uint8_t *)tensor->data)[index] != 0;
        memcpy(to, is_true ? "true" : "false", is_true ? 4 : 5);
        return is_true ? 4 : 5;
    case INFERD_INT8:
    case INFERD_INT16:
    case INFERD_INT32:
    case INFERD_INT64:
        return inf_number_print_signed(to, load_signed(tensor, index));
    default:
        return inf_number_print_unsigned(to, load_unsigned(tensor, index));
    }
}
