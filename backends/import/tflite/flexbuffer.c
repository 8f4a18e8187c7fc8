// SPDX-License-Identifier: Apache-2.0
// Reads FlexBuffers from untrusted bytes. The last bytes describe the root:
//
//     [root value] [type of the root] [bytes of the root value]
//     map:  [distance to the keys] [bytes of a key's distance] [count] | [values ...] [types ...]
//     keys: [count] | [distances to the keys ...]          key: text that ends with NUL
//     list: [count] | [values ...], all of one type
//
// A reference points at "|". Distances are counted backwards from where they are stored. The lower
// two bits of a type say how many bytes the values below it have, the upper six what it is.
#include "backends/import/tflite/flexbuffer.h"

#include <string.h>

enum flex_type {
    FLEX_INT = 1,
    FLEX_UINT = 2,
    FLEX_FLOAT = 3,
    FLEX_INDIRECT_INT = 6,
    FLEX_INDIRECT_UINT = 7,
    FLEX_INDIRECT_FLOAT = 8,
    FLEX_MAP = 9,
    FLEX_INTS = 11,
    FLEX_UINTS = 12,
    FLEX_BOOL = 26,
};

static bool is_width(uint64_t width)
{
    return width == 1 || width == 2 || width == 4 || width == 8;
}

// Reads an unsigned number of `width` bytes. Returns false if it is outside of the bytes.
static bool read_uint(struct inf_span bytes, uint64_t at, uint64_t width, uint64_t *out)
{
    *out = 0;
    if (!is_width(width) || !inf_range_ok(at, width, bytes.size))
        return false;
    memcpy(out, bytes.data + at, width);
    return true;
}

// Follows the distance at `at`.
static bool follow_distance(struct inf_span bytes, uint64_t at, uint64_t width, uint64_t *out)
{
    uint64_t distance;
    if (!read_uint(bytes, at, width, &distance) || distance > at)
        return false;
    *out = at - distance;
    return true;
}

static bool read_number(struct inf_span bytes, enum flex_type type, uint64_t at, uint64_t width,
                        double *out)
{
    uint64_t bits;
    float single;
    if (!read_uint(bytes, at, width, &bits))
        return false;
    switch (type) {
    case FLEX_INT:
        *out = width == 1   ? (double)(int8_t)bits
               : width == 2 ? (double)(int16_t)bits
               : width == 4 ? (double)(int32_t)bits
                            : (double)(int64_t)bits;
        return true;
    case FLEX_UINT:
    case FLEX_BOOL:
        *out = (double)bits;
        return true;
    case FLEX_FLOAT:
        memcpy(&single, &bits, sizeof single);
        if (width == 8)
            memcpy(out, &bits, sizeof *out);
        else
            *out = single;
        return width >= 4;
    default:
        return false;
    }
}

// A value of a map: its packed type, where it is stored, and the bytes of what is stored there.
struct value {
    enum flex_type type;
    uint64_t at, width, inner_width;
};

static bool read_value(struct inf_span bytes, struct value value, double *out)
{
    if (value.type >= FLEX_INDIRECT_INT && value.type <= FLEX_INDIRECT_FLOAT) {
        value.type = (enum flex_type)(value.type - FLEX_INDIRECT_INT + FLEX_INT);
        if (!follow_distance(bytes, value.at, value.width, &value.at))
            return false;
        value.width = value.inner_width;
    }
    return read_number(bytes, value.type, value.at, value.width, out);
}

static bool is_key(struct inf_span bytes, uint64_t at, const char *key)
{
    size_t size = strlen(key) + 1;
    return inf_range_ok(at, size, bytes.size) && memcmp(bytes.data + at, key, size) == 0;
}

// Finds the value called `key` in the map that `bytes` are.
static bool find_value(struct inf_span bytes, const char *key, struct value *value)
{
    uint64_t root_width, packed, map, keys, key_width, count, at;
    if (bytes.size < 3 || !read_uint(bytes, bytes.size - 1, 1, &root_width) ||
        !read_uint(bytes, bytes.size - 2, 1, &packed) ||
        (enum flex_type)(packed >> 2) != FLEX_MAP || !is_width(root_width) ||
        bytes.size - 2 < root_width ||
        !follow_distance(bytes, bytes.size - 2 - root_width, root_width, &map))
        return false;
    uint64_t width = (uint64_t)1 << (packed & 3);
    if (map < 3 * width || !follow_distance(bytes, map - 3 * width, width, &keys) ||
        !read_uint(bytes, map - 2 * width, width, &key_width) ||
        !read_uint(bytes, map - width, width, &count) || count > bytes.size)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        if (!follow_distance(bytes, keys + i * key_width, key_width, &at) ||
            !is_key(bytes, at, key))
            continue;
        if (!read_uint(bytes, map + count * width + i, 1, &packed))
            return false;
        *value = (struct value){.type = (enum flex_type)(packed >> 2),
                                .at = map + i * width,
                                .width = width,
                                .inner_width = (uint64_t)1 << (packed & 3)};
        return true;
    }
    return false;
}

bool inf_flexbuffer_number(struct inf_span bytes, const char *key, double *out)
{
    struct value value;
    double number;
    if (!find_value(bytes, key, &value) || !read_value(bytes, value, &number))
        return false;
    *out = number;
    return true;
}

bool inf_flexbuffer_integers(struct inf_span bytes, const char *key, int64_t *out,
                             uint32_t capacity, uint32_t *count)
{
    struct value value;
    uint64_t at, size;
    if (!find_value(bytes, key, &value) || (value.type != FLEX_INTS && value.type != FLEX_UINTS) ||
        !follow_distance(bytes, value.at, value.width, &at) || at < value.inner_width ||
        !read_uint(bytes, at - value.inner_width, value.inner_width, &size) || size > capacity)
        return false;
    enum flex_type type = value.type == FLEX_INTS ? FLEX_INT : FLEX_UINT;
    for (uint64_t i = 0; i < size; i++) {
        double number;
        if (!read_number(bytes, type, at + i * value.inner_width, value.inner_width, &number))
            return false;
        out[i] = number < 0x1p53 && number > -0x1p53 ? (int64_t)number : INT64_MAX;
    }
    *count = (uint32_t)size;
    return true;
}
