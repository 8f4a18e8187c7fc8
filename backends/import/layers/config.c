// SPDX-License-Identifier: Apache-2.0
// Reads the configurations of layers. Keys may have Python's or TensorFlow.js's spelling.
#include "backends/import/layers/config.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define KEY_SIZE 64

// Converts the spelling of a key from Python's to TensorFlow.js's: "pool_size" becomes "poolSize".
static void write_camel_case(const char *key, char camel[KEY_SIZE])
{
    size_t length = 0;
    for (const char *c = key; *c != '\0' && length + 1 < KEY_SIZE; c++) {
        bool is_next = *c == '_' && c[1] != '\0';
        if (is_next)
            c++;
        camel[length++] = is_next ? (char)toupper((unsigned char)*c) : *c;
    }
    camel[length] = '\0';
}

enum inf_code inf_layers_find(const struct inf_json *config, const char *key, struct inf_json *out,
                              struct inf_error *err)
{
    char camel[KEY_SIZE];
    write_camel_case(key, camel);
    struct inf_json found;
    if (!inf_json_has(config, key) && inf_json_find(config, camel, &found, NULL) == INF_OK &&
        found.value != NULL) {
        // Find the key in the document, because *out must not point to the local copy of the key.
        void *iterator = NULL;
        while (inf_json_next(config, &iterator, out))
            if (strcmp(out->key, camel) == 0)
                return INF_OK;
    }
    return inf_json_find(config, key, out, err);
}

bool inf_layers_same_word(const char *word, const char *name)
{
    for (;; word++, name++) {
        while (*word == '_')
            word++;
        while (*name == '_')
            name++;
        if (tolower((unsigned char)*word) != tolower((unsigned char)*name))
            return false;
        if (*word == '\0')
            return true;
    }
}

enum inf_code inf_layers_int(const struct inf_json *config, const char *key, int32_t min,
                             int32_t max, int32_t *out, struct inf_error *err)
{
    struct inf_json json;
    int64_t number;
    INF_TRY(inf_layers_find(config, key, &json, err));
    if (json.value == NULL)
        return INF_OK;
    INF_TRY(inf_json_int(&json, min, max, &number, err));
    *out = (int32_t)number;
    return INF_OK;
}

static enum inf_code read_float(const struct inf_json *json, float *out, struct inf_error *err)
{
    double number;
    INF_TRY(inf_json_number(json, &number, err));
    if (!isfinite((float)number))
        return inf_json_fail(json, err, "a number that fits 32 bits");
    *out = (float)number;
    return INF_OK;
}

enum inf_code inf_layers_float(const struct inf_json *config, const char *key, float *out,
                               struct inf_error *err)
{
    struct inf_json json;
    INF_TRY(inf_layers_find(config, key, &json, err));
    return json.value != NULL ? read_float(&json, out, err) : INF_OK;
}

enum inf_code inf_layers_bool(const struct inf_json *config, const char *key, bool *out,
                              struct inf_error *err)
{
    struct inf_json json;
    INF_TRY(inf_layers_find(config, key, &json, err));
    return json.value != NULL ? inf_json_bool(&json, out, err) : INF_OK;
}

enum inf_code inf_layers_text(const struct inf_json *config, const char *key, const char **out,
                              struct inf_error *err)
{
    struct inf_json json;
    INF_TRY(inf_layers_find(config, key, &json, err));
    return json.value != NULL ? inf_json_name(&json, out, err) : INF_OK;
}

enum inf_code inf_layers_choice(const struct inf_json *config, const char *key,
                                const char *const *words, int32_t *out, struct inf_error *err)
{
    struct inf_json json;
    const char *word;
    INF_TRY(inf_layers_find(config, key, &json, err));
    if (json.value == NULL)
        return INF_OK;
    INF_TRY(inf_json_name(&json, &word, err));
    char wanted[160] = "";
    for (int32_t i = 0; words[i] != NULL; i++) {
        if (inf_layers_same_word(word, words[i])) {
            *out = i;
            return INF_OK;
        }
        size_t used = strlen(wanted);
        snprintf(wanted + used, sizeof wanted - used, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    return inf_json_fail(&json, err, wanted);
}

enum inf_code inf_layers_int_list(const struct inf_json *config, const char *key,
                                  struct inf_layers_range range, int32_t *items, uint32_t capacity,
                                  uint32_t *count, struct inf_error *err)
{
    struct inf_json json;
    INF_TRY(inf_layers_find(config, key, &json, err));
    if (json.value == NULL)
        return INF_OK;
    size_t length = 1;
    bool is_list = inf_json_is_array(&json);
    if (is_list)
        INF_TRY(inf_json_array(&json, &length, err));
    if (length > capacity) {
        char wanted[48];
        snprintf(wanted, sizeof wanted, "at most %u integers", capacity);
        return inf_json_fail(&json, err, wanted);
    }
    for (size_t i = 0; i < length; i++) {
        struct inf_json item = is_list ? inf_json_at(&json, i) : json;
        int64_t number;
        INF_TRY(inf_json_int(&item, range.min, range.max, &number, err));
        items[i] = (int32_t)number;
    }
    *count = (uint32_t)length;
    return INF_OK;
}

enum inf_code inf_layers_ints(const struct inf_json *config, const char *key,
                              struct inf_layers_range range, int32_t *items, uint32_t count,
                              struct inf_error *err)
{
    uint32_t found = count;
    INF_TRY(inf_layers_int_list(config, key, range, items, count, &found, err));
    if (found == count)
        return INF_OK;
    struct inf_json json;
    INF_TRY(inf_layers_find(config, key, &json, err));
    if (found != 1 || inf_json_is_array(&json))
        return inf_json_fail(&json, err, count == 2 ? "2 integers" : "an integer per axis");
    for (uint32_t i = 1; i < count; i++)
        items[i] = items[0];
    return INF_OK;
}

enum inf_code inf_layers_floats(const struct inf_json *config, const char *key, float *items,
                                uint32_t capacity, uint32_t *count, struct inf_error *err)
{
    struct inf_json json;
    INF_TRY(inf_layers_find(config, key, &json, err));
    if (json.value == NULL)
        return INF_OK;
    size_t length = 1;
    bool is_list = inf_json_is_array(&json);
    if (is_list)
        INF_TRY(inf_json_array(&json, &length, err));
    if (length == 0 || length > capacity)
        return inf_json_fail(&json, err, "a number, or a list of numbers");
    for (size_t i = 0; i < length; i++) {
        struct inf_json item = is_list ? inf_json_at(&json, i) : json;
        INF_TRY(read_float(&item, &items[i], err));
    }
    *count = (uint32_t)length;
    return INF_OK;
}

static enum inf_code read_side(const struct inf_json *json, int32_t *out, struct inf_error *err)
{
    int64_t number;
    INF_TRY(inf_json_int(json, 0, 65535, &number, err));
    *out = (int32_t)number;
    return INF_OK;
}

// Reads how many elements to add or cut before and after one axis: one number for both, or two
// numbers.
static enum inf_code read_sides(const struct inf_json *json, int32_t sides[2],
                                struct inf_error *err)
{
    size_t count;
    if (!inf_json_is_array(json)) {
        INF_TRY(read_side(json, &sides[0], err));
        sides[1] = sides[0];
        return INF_OK;
    }
    INF_TRY(inf_json_array(json, &count, err));
    if (count != 2)
        return inf_json_fail(json, err, "2 integers");
    for (size_t i = 0; i < 2; i++) {
        struct inf_json item = inf_json_at(json, i);
        INF_TRY(read_side(&item, &sides[i], err));
    }
    return INF_OK;
}

enum inf_code inf_layers_sides(const struct inf_json *config, const char *key, uint32_t axes,
                               int32_t before_after[2][2], struct inf_error *err)
{
    struct inf_json json;
    size_t count;
    INF_TRY(inf_layers_find(config, key, &json, err));
    if (json.value == NULL)
        return INF_OK;
    if (axes == 1 || !inf_json_is_array(&json)) {
        INF_TRY(read_sides(&json, before_after[0], err));
        memcpy(before_after[1], before_after[0], sizeof before_after[0]);
        return INF_OK;
    }
    INF_TRY(inf_json_array(&json, &count, err));
    if (count != axes)
        return inf_json_fail(&json, err, "a list of 2, for height and width");
    for (uint32_t i = 0; i < axes; i++) {
        struct inf_json item = inf_json_at(&json, i);
        INF_TRY(read_sides(&item, before_after[i], err));
    }
    return INF_OK;
}

enum inf_code inf_layers_shape(const struct inf_json *json, struct inf_shape *out,
                               struct inf_error *err)
{
    size_t count;
    INF_TRY(inf_json_array(json, &count, err));
    if (count > INF_LIMIT_RANK)
        return inf_json_fail(json, err, "at most 8 dimensions");
    *out = (struct inf_shape){.rank = (int32_t)count};
    for (size_t i = 0; i < count; i++) {
        struct inf_json item = inf_json_at(json, i);
        out->dims[i] = INF_DIM_UNKNOWN;
        if (!inf_json_is_null(&item))
            INF_TRY(inf_json_int(&item, -1, INF_LIMIT_DIM - 1, &out->dims[i], err));
    }
    return INF_OK;
}
