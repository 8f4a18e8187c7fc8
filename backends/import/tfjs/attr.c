// SPDX-License-Identifier: Apache-2.0
// Reads the attributes of a node by type, in both encodings of the format. Strings are base64 or
// lists of bytes; types are names or numbers.
#include "backends/import/tfjs/attr.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

// Finds the member `kind` ("i", "s", "list") of attribute `key`. steps[2] is that member; the lower
// elements of `steps` are its parents. *found is false if the node has no such attribute.
static enum inf_code find_attr(const struct inf_tfjs_node *node, const char *key, const char *kind,
                               struct inf_json steps[3], bool *found, struct inf_error *err)
{
    *found = false;
    INF_TRY(inf_json_find(&node->json, "attr", &steps[0], err));
    if (steps[0].value == NULL)
        return INF_OK;
    INF_TRY(inf_json_find(&steps[0], key, &steps[1], err));
    if (steps[1].value == NULL)
        return INF_OK;
    *found = true;
    return inf_json_get(&steps[1], kind, &steps[2], err);
}

enum inf_code inf_tfjs_attr_int(const struct inf_tfjs_node *node, const char *key, int32_t min,
                                int32_t max, int32_t *out, struct inf_error *err)
{
    struct inf_json steps[3];
    bool found;
    int64_t value;
    INF_TRY(find_attr(node, key, "i", steps, &found, err));
    if (!found)
        return INF_OK;
    INF_TRY(inf_json_int(&steps[2], min, max, &value, err));
    *out = (int32_t)value;
    return INF_OK;
}

enum inf_code inf_tfjs_attr_float(const struct inf_tfjs_node *node, const char *key, float *out,
                                  struct inf_error *err)
{
    struct inf_json steps[3];
    bool found;
    double value;
    INF_TRY(find_attr(node, key, "f", steps, &found, err));
    if (!found)
        return INF_OK;
    INF_TRY(inf_json_number(&steps[2], &value, err));
    if (!isfinite((float)value))
        return inf_json_fail(&steps[2], err, "a number that a float holds");
    *out = (float)value;
    return INF_OK;
}

enum inf_code inf_tfjs_attr_bool(const struct inf_tfjs_node *node, const char *key, bool *out,
                                 struct inf_error *err)
{
    struct inf_json steps[3];
    bool found;
    INF_TRY(find_attr(node, key, "b", steps, &found, err));
    return found ? inf_json_bool(&steps[2], out, err) : INF_OK;
}

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

// Decodes base64. Returns false unless the result and a NUL byte fit into `out`.
static bool decode_base64(const char *text, char *out, size_t out_size)
{
    size_t length = strlen(text), size = 0;
    while (length > 0 && text[length - 1] == '=')
        length--;
    unsigned bits = 0, bit_count = 0;
    for (size_t i = 0; i < length; i++) {
        int value = base64_value(text[i]);
        if (value < 0)
            return false;
        bits = (bits << 6 | (unsigned)value) & 0xfffu;
        bit_count += 6;
        if (bit_count < 8)
            continue;
        bit_count -= 8;
        if (size + 1 == out_size)
            return false;
        out[size++] = (char)(bits >> bit_count & 0xff);
    }
    out[size] = '\0';
    return true;
}

// Reads a string that is encoded as a list of its bytes.
static enum inf_code read_byte_list(const struct inf_json *json, char *out, size_t out_size,
                                    struct inf_error *err)
{
    size_t size;
    INF_TRY(inf_json_array(json, &size, err));
    if (size >= out_size)
        return inf_json_fail(json, err, "a shorter text");
    for (size_t i = 0; i < size; i++) {
        struct inf_json item = inf_json_at(json, i);
        int64_t byte;
        INF_TRY(inf_json_int(&item, 1, 255, &byte, err));
        out[i] = (char)byte;
    }
    out[size] = '\0';
    return INF_OK;
}

// Reads a string. Unprintable bytes become '?'.
static enum inf_code read_raw(const struct inf_json *json, char *out, size_t size,
                              struct inf_error *err)
{
    const char *text;
    if (inf_json_is_array(json)) {
        INF_TRY(read_byte_list(json, out, size, err));
    } else {
        INF_TRY(inf_json_string(json, &text, err));
        if (!decode_base64(text, out, size))
            return inf_json_fail(json, err, "a short text in base64");
    }
    for (char *c = out; *c != '\0'; c++)
        if (!isprint((unsigned char)*c))
            *c = '?';
    return INF_OK;
}

static enum inf_code read_text(const struct inf_json *json, struct inf_tfjs_text *out,
                               struct inf_error *err)
{
    INF_TRY(read_raw(json, out->text, sizeof out->text, err));
    for (char *c = out->text; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return INF_OK;
}

enum inf_code inf_tfjs_attr_raw(const struct inf_tfjs_node *node, const char *key, char *text,
                                size_t size, struct inf_error *err)
{
    struct inf_json steps[3];
    bool found;
    text[0] = '\0';
    INF_TRY(find_attr(node, key, "s", steps, &found, err));
    return found ? read_raw(&steps[2], text, size, err) : INF_OK;
}

enum inf_code inf_tfjs_attr_text(const struct inf_tfjs_node *node, const char *key,
                                 struct inf_tfjs_text *out, struct inf_error *err)
{
    struct inf_json steps[3];
    bool found;
    INF_TRY(find_attr(node, key, "s", steps, &found, err));
    return found ? read_text(&steps[2], out, err) : INF_OK;
}

enum inf_code inf_tfjs_attr_key(const struct inf_tfjs_node *node, const char *key,
                                struct inf_arena *arena, const char **out, struct inf_error *err)
{
    struct inf_json steps[3];
    bool found;
    size_t size;
    INF_TRY(find_attr(node, key, "s", steps, &found, err));
    if (!found) {
        inf_fail(err, INF_INVALID, "has no attribute %s", key);
        return inf_tfjs_node_error(node, INF_INVALID, err);
    }
    if (!inf_json_is_array(&steps[2]))
        return inf_json_string(&steps[2], out, err);
    INF_TRY(inf_json_array(&steps[2], &size, err));
    char *text = inf_arena_alloc(arena, size + 1);
    if (text == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the attributes of the model");
    for (size_t i = 0; i < size; i++) {
        struct inf_json item = inf_json_at(&steps[2], i);
        int64_t byte;
        INF_TRY(inf_json_int(&item, 1, 255, &byte, err));
        text[i] = (char)byte;
    }
    *out = text;
    return INF_OK;
}

enum inf_code inf_tfjs_attr_function(const struct inf_tfjs_node *node, const char *key,
                                     const char **out, struct inf_error *err)
{
    struct inf_json steps[3], name;
    bool found;
    INF_TRY(find_attr(node, key, "func", steps, &found, err));
    if (!found) {
        inf_fail(err, INF_INVALID, "has no attribute %s", key);
        return inf_tfjs_node_error(node, INF_INVALID, err);
    }
    INF_TRY(inf_json_get(&steps[2], "name", &name, err));
    return inf_json_name(&name, out, err);
}

// Finds the list attribute `key`: steps[3] is its list of elements of type `kind`, and *count is
// the length.
static enum inf_code find_list(const struct inf_tfjs_node *node, const char *key, const char *kind,
                               struct inf_json steps[4], size_t *count, struct inf_error *err)
{
    bool found;
    *count = 0;
    INF_TRY(find_attr(node, key, "list", steps, &found, err));
    if (!found)
        return INF_OK;
    INF_TRY(inf_json_find(&steps[2], kind, &steps[3], err));
    return steps[3].value != NULL ? inf_json_array(&steps[3], count, err) : INF_OK;
}

enum inf_code inf_tfjs_attr_list_size(const struct inf_tfjs_node *node, const char *key,
                                      const char *kind, size_t *count, struct inf_error *err)
{
    struct inf_json steps[4];
    return find_list(node, key, kind, steps, count, err);
}

enum inf_code inf_tfjs_attr_ints(const struct inf_tfjs_node *node, const char *key, int32_t *items,
                                 uint32_t capacity, uint32_t *count, struct inf_error *err)
{
    struct inf_json steps[4];
    size_t size;
    INF_TRY(find_list(node, key, "i", steps, &size, err));
    if (size > capacity)
        return inf_json_fail(&steps[3], err, "fewer elements");
    for (size_t i = 0; i < size; i++) {
        struct inf_json item = inf_json_at(&steps[3], i);
        int64_t value;
        INF_TRY(inf_json_int(&item, INT32_MIN, INT32_MAX, &value, err));
        items[i] = (int32_t)value;
    }
    *count = (uint32_t)size;
    return INF_OK;
}

enum inf_code inf_tfjs_attr_texts(const struct inf_tfjs_node *node, const char *key,
                                  struct inf_tfjs_text *items, uint32_t capacity, uint32_t *count,
                                  struct inf_error *err)
{
    struct inf_json steps[4];
    size_t size;
    INF_TRY(find_list(node, key, "s", steps, &size, err));
    if (size > capacity)
        return inf_json_fail(&steps[3], err, "fewer elements");
    for (size_t i = 0; i < size; i++) {
        struct inf_json item = inf_json_at(&steps[3], i);
        INF_TRY(read_text(&item, &items[i], err));
    }
    *count = (uint32_t)size;
    return INF_OK;
}

// The types in TensorFlow's DataType, by number.
static const struct {
    const char *name;
    enum inf_dtype dtype;
} data_types[] = {
    [1] = {"DT_FLOAT", INF_DTYPE_F32},     [2] = {"DT_DOUBLE", INF_DTYPE_F32},
    [3] = {"DT_INT32", INF_DTYPE_I32},     [4] = {"DT_UINT8", INF_DTYPE_I32},
    [5] = {"DT_INT16", INF_DTYPE_I32},     [6] = {"DT_INT8", INF_DTYPE_I32},
    [7] = {"DT_STRING", INF_DTYPE_BYTES},  [8] = {"DT_COMPLEX64", INF_DTYPE_NONE},
    [9] = {"DT_INT64", INF_DTYPE_I32},     [10] = {"DT_BOOL", INF_DTYPE_BOOL},
    [14] = {"DT_BFLOAT16", INF_DTYPE_F32}, [17] = {"DT_UINT16", INF_DTYPE_I32},
    [19] = {"DT_HALF", INF_DTYPE_F32},     [20] = {"DT_RESOURCE", INF_DTYPE_NONE},
    [21] = {"DT_VARIANT", INF_DTYPE_NONE}, [22] = {"DT_UINT32", INF_DTYPE_I32},
    [23] = {"DT_UINT64", INF_DTYPE_I32},
};

enum inf_code inf_tfjs_attr_dtype(const struct inf_tfjs_node *node, const char *key,
                                  enum inf_dtype *out, struct inf_error *err)
{
    struct inf_json steps[3];
    bool found;
    int64_t number = 0;
    INF_TRY(find_attr(node, key, "type", steps, &found, err));
    if (!found)
        return INF_OK;
    const char *name = "";
    if (inf_json_is_string(&steps[2]))
        INF_TRY(inf_json_string(&steps[2], &name, err));
    if (strncmp(name, "DT_", 3) == 0) {
        for (size_t i = 0; i < INF_ARRAY_LENGTH(data_types); i++)
            if (data_types[i].name != NULL && strcmp(data_types[i].name, name) == 0)
                number = (int64_t)i;
    } else {
        INF_TRY(inf_json_int(&steps[2], 0, INT32_MAX, &number, err));
    }
    if ((size_t)number < INF_ARRAY_LENGTH(data_types) &&
        data_types[number].dtype != INF_DTYPE_NONE) {
        *out = data_types[number].dtype;
        return INF_OK;
    }
    inf_fail(err, INF_UNSUPPORTED, "%s is %.40s (%lld), wanted a number type or bool", key,
             (size_t)number < INF_ARRAY_LENGTH(data_types) && data_types[number].name != NULL
                 ? data_types[number].name
                 : name,
             (long long)number);
    return inf_tfjs_node_error(node, INF_UNSUPPORTED, err);
}

enum inf_code inf_tfjs_shape_read(const struct inf_json *json, struct inf_shape *out,
                                  struct inf_error *err)
{
    struct inf_json unknown, list;
    bool unknown_rank = false;
    size_t rank = 0;
    INF_TRY(inf_json_find(json, "unknownRank", &unknown, err));
    if (unknown.value != NULL)
        INF_TRY(inf_json_bool(&unknown, &unknown_rank, err));
    *out = (struct inf_shape){.rank = unknown_rank ? INF_RANK_UNKNOWN : 0};
    INF_TRY(inf_json_find(json, "dim", &list, err));
    if (unknown_rank || list.value == NULL)
        return INF_OK;
    INF_TRY(inf_json_array(&list, &rank, err));
    if (rank > INF_LIMIT_RANK)
        return inf_json_fail(&list, err, "at most 8 dimensions");
    out->rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        struct inf_json dim = inf_json_at(&list, i), size;
        INF_TRY(inf_json_get(&dim, "size", &size, err));
        INF_TRY(inf_json_int(&size, INF_DIM_UNKNOWN, INF_LIMIT_DIM - 1, &out->dims[i], err));
    }
    return INF_OK;
}

enum inf_code inf_tfjs_attr_shape(const struct inf_tfjs_node *node, const char *key,
                                  struct inf_shape *out, struct inf_error *err)
{
    struct inf_json steps[3];
    bool found;
    *out = (struct inf_shape){.rank = INF_RANK_UNKNOWN};
    INF_TRY(find_attr(node, key, "shape", steps, &found, err));
    return found ? inf_tfjs_shape_read(&steps[2], out, err) : INF_OK;
}

enum inf_code inf_tfjs_node_error(const struct inf_tfjs_node *node, enum inf_code code,
                                  struct inf_error *err)
{
    return inf_error_prefix(err, code, "node '%.180s' (%.40s)", node->name, node->op);
}
