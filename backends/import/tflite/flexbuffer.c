// SPDX-License-Identifier: Apache-2.0
// Reads FlexBuffers from untrusted bytes. The last bytes describe the root:
//
//     [root value] [type of the root] [bytes of the root value]
//     map:  [distance to the keys] [bytes of a key's distance] [count] | [values ...] [types ...]
//     keys: [count] | [distances to the keys ...]          key: text that ends with NUL
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

// Reads value number `index` of a map of `count` values at `map`.
static bool read_value(struct inf_span bytes, uint64_t map, uint64_t width, uint64_t count,
                       uint64_t index, double *out)
{
    uint64_t packed, at = map + index * width;
    if (!read_uint(bytes, map + count * width + index, 1, &packed))
        return false;
    enum flex_type type = (enum flex_type)(packed >> 2);
    if (type >= FLEX_INDIRECT_INT && type <= FLEX_INDIRECT_FLOAT) {
        type = (enum flex_type)(type - FLEX_INDIRECT_INT + FLEX_INT);
        if (!follow_distance(bytes, at, width, &at))
            return false;
        width = (uint64_t)1 << (packed & 3);
    }
    return read_number(bytes, type, at, width, out);
}

static bool is_key(struct inf_span bytes, uint64_t at, const char *key)
{
    size_t size = strlen(key) + 1;
    return inf_range_ok(at, size, bytes.size) && memcmp(bytes.data + at, key, size) == 0;
}

bool inf_flexbuffer_number(struct inf_span bytes, const char *key, double *out)
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
        double number;
        if (!follow_distance(bytes, keys + i * key_width, key_width, &at) ||
            !is_key(bytes, at, key))
            continue;
        if (!read_value(bytes, map, width, count, i, &number))
            return false;
        *out = number;
        return true;
    }
    return false;
}
