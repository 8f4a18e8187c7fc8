// SPDX-License-Identifier: Apache-2.0
// Reads the weights of a TensorFlow.js model into blobs. A manifest is untrusted: types, shapes,
// quantisation and sizes are checked before memory is allocated, and duplicate names are refused.
// Stored numbers (8 and 16-bit affine, half precision) are decoded piece by piece while the file is
// read.
#include "backends/import/common/weights.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "proto/core/bytes_tensor.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

// How the elements of a weight are stored in the file.
enum storage {
    STORED_PLAIN,     // the bytes of the elements are the same as in memory
    STORED_AFFINE_8,  // one byte q per element; value = q * scale + min
    STORED_AFFINE_16, // two bytes q per element; value = q * scale + min
    STORED_HALF,      // 16-bit floats (binary16)
    STORED_COMPLEX,   // two floats per element; such a weight is skipped
    STORED_STRINGS,   // a length of 4 bytes and the text per element
};

struct encoding {
    enum storage storage;
    double scale, min;
};

static size_t find_stored_size(const struct encoding *encoding, enum inf_dtype dtype)
{
    switch (encoding->storage) {
    case STORED_PLAIN:
        return inf_dtype_size(dtype);
    case STORED_AFFINE_8:
        return 1;
    case STORED_AFFINE_16:
    case STORED_HALF:
        return 2;
    case STORED_COMPLEX:
        return 8;
    case STORED_STRINGS:
        break;
    }
    return 0;
}

static enum inf_code read_shape(struct inf_weight *weight, const struct inf_json *json,
                                struct inf_error *err)
{
    struct inf_json list;
    size_t rank;
    INF_TRY(inf_json_get(json, "shape", &list, err));
    INF_TRY(inf_json_array(&list, &rank, err));
    if (rank > INF_LIMIT_RANK)
        return inf_json_fail(&list, err, "at most 8 dimensions");
    weight->shape.rank = (int32_t)rank;
    for (size_t i = 0; i < rank; i++) {
        struct inf_json dim = inf_json_at(&list, i);
        INF_TRY(inf_json_int(&dim, 0, INF_LIMIT_DIM - 1, &weight->shape.dims[i], err));
    }
    return INF_OK;
}

static enum inf_code read_type(struct inf_weight *weight, struct encoding *encoding,
                               const struct inf_json *json, struct inf_error *err)
{
    static const struct {
        const char *name;
        enum inf_dtype dtype;
        enum storage storage;
    } types[] = {
        {"float32", INF_DTYPE_F32, STORED_PLAIN},      {"int32", INF_DTYPE_I32, STORED_PLAIN},
        {"bool", INF_DTYPE_BOOL, STORED_PLAIN},        {"string", INF_DTYPE_BYTES, STORED_STRINGS},
        {"complex64", INF_DTYPE_NONE, STORED_COMPLEX},
    };
    struct inf_json type;
    INF_TRY(inf_json_get(json, "dtype", &type, err));
    INF_TRY(inf_json_name(&type, &weight->type_name, err));
    for (size_t i = 0; i < INF_ARRAY_LENGTH(types); i++)
        if (strcmp(types[i].name, weight->type_name) == 0) {
            weight->dtype = types[i].dtype;
            encoding->storage = types[i].storage;
            return INF_OK;
        }
    return inf_fail(err, INF_UNSUPPORTED,
                    "weight '%s': dtype '%s', known: float32, int32, bool, string, complex64",
                    weight->name, weight->type_name);
}

// Reads scale and minimum, and checks that every number that can be stored is within the range of
// the dtype.
static enum inf_code read_affine(const struct inf_weight *weight, struct encoding *encoding,
                                 const struct inf_json *json, struct inf_error *err)
{
    struct inf_json scale, min;
    INF_TRY(inf_json_get(json, "scale", &scale, err));
    INF_TRY(inf_json_number(&scale, &encoding->scale, err));
    INF_TRY(inf_json_get(json, "min", &min, err));
    INF_TRY(inf_json_number(&min, &encoding->min, err));
    double q_max = encoding->storage == STORED_AFFINE_8 ? UINT8_MAX : UINT16_MAX;
    double first = encoding->min, last = encoding->min + q_max * encoding->scale;
    bool is_int = weight->dtype == INF_DTYPE_I32;
    double low = is_int ? (double)INT32_MIN : (double)-FLT_MAX;
    double high = is_int ? (double)INT32_MAX : (double)FLT_MAX;
    if (first >= low && first <= high && last >= low && last <= high)
        return INF_OK;
    return inf_fail(err, INF_INVALID,
                    "weight '%s': quantisation with scale %g and min %g leaves the range of %s",
                    weight->name, encoding->scale, encoding->min, weight->type_name);
}

static enum inf_code read_quantization(const struct inf_weight *weight, struct encoding *encoding,
                                       const struct inf_json *json, struct inf_error *err)
{
    struct inf_json quantization, type, original;
    const char *name, *original_name;
    INF_TRY(inf_json_find(json, "quantization", &quantization, err));
    if (quantization.value == NULL)
        return INF_OK;
    INF_TRY(inf_json_get(&quantization, "dtype", &type, err));
    INF_TRY(inf_json_name(&type, &name, err));
    INF_TRY(inf_json_find(&quantization, "original_dtype", &original, err));
    if (original.value != NULL)
        INF_TRY(inf_json_name(&original, &original_name, err));

    bool is_number = weight->dtype == INF_DTYPE_F32 || weight->dtype == INF_DTYPE_I32;
    if (strcmp(name, "float16") == 0 && weight->dtype == INF_DTYPE_F32) {
        encoding->storage = STORED_HALF;
        return INF_OK;
    }
    if (strcmp(name, "uint8") == 0 && is_number)
        encoding->storage = STORED_AFFINE_8;
    else if (strcmp(name, "uint16") == 0 && is_number)
        encoding->storage = STORED_AFFINE_16;
    else
        return inf_fail(err, INF_UNSUPPORTED,
                        "weight '%s': %s quantised as '%s', known: float32 as uint8, uint16 or "
                        "float16, int32 as uint8 or uint16",
                        weight->name, weight->type_name, name);
    return read_affine(weight, encoding, &quantization, err);
}

static void decode_affine(const struct encoding *encoding, const uint8_t *stored, size_t count,
                          enum inf_dtype dtype, void *elements)
{
    for (size_t i = 0; i < count; i++) {
        unsigned q;
        if (encoding->storage == STORED_AFFINE_8)
            q = stored[i];
        else
            q = stored[2 * i] | (unsigned)stored[2 * i + 1] << 8;
        double value = q * encoding->scale + encoding->min;
        if (dtype == INF_DTYPE_F32)
            ((float *)elements)[i] = (float)value;
        else
            ((int32_t *)elements)[i] = (int32_t)fmin(floor(value + 0.5), INT32_MAX);
    }
}

static void decode_half(const uint8_t *stored, size_t count, float *elements)
{
    for (size_t i = 0; i < count; i++)
        elements[i] = inf_half_to_float((uint16_t)(stored[2 * i] | stored[2 * i + 1] << 8));
}

// Decodes elements that are not stored as in memory into `data`, one piece of the file at a time.
static enum inf_code read_encoded(struct inf_shards *shards, const struct inf_weight *weight,
                                  const struct encoding *encoding, size_t count,
                                  struct inf_error *err)
{
    enum {
        PIECE = 4096
    };
    uint8_t stored[PIECE * 2];
    size_t width = find_stored_size(encoding, weight->dtype);
    size_t element_size = inf_dtype_size(weight->dtype);
    for (size_t done = 0; done < count;) {
        size_t piece = INF_MIN(count - done, (size_t)PIECE);
        INF_TRY(inf_shards_read(shards, stored, piece * width, err));
        void *elements = (char *)weight->data->data + done * element_size;
        if (encoding->storage == STORED_HALF)
            decode_half(stored, piece, elements);
        else
            decode_affine(encoding, stored, piece, weight->dtype, elements);
        done += piece;
    }
    return INF_OK;
}

// Reads strings as they are stored, without interpreting them: a length and the text for each.
static enum inf_code read_strings(struct inf_shards *shards, struct inf_weight *weight,
                                  size_t count, struct inf_error *err)
{
    size_t size = 0, capacity = 0;
    uint8_t *bytes = NULL;
    enum inf_code code = INF_OK;
    for (size_t i = 0; code == INF_OK && i < count; i++) {
        uint8_t head[INF_BYTES_LENGTH_SIZE];
        code = inf_shards_read(shards, head, sizeof head, err);
        uint32_t length = code != INF_OK ? 0
                                         : head[0] | (uint32_t)head[1] << 8 |
                                               (uint32_t)head[2] << 16 | (uint32_t)head[3] << 24;
        size_t end = size + sizeof head + length;
        if (code == INF_OK && length > inf_shards_left(shards))
            code = inf_shards_read(shards, NULL, length, err); // fails: the file is too short
        if (code == INF_OK && end > capacity) {
            capacity = 2 * end;
            uint8_t *grown = realloc(bytes, capacity);
            code = grown != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory for its text");
            bytes = grown != NULL ? grown : bytes;
        }
        if (code == INF_OK) {
            memcpy(bytes + size, head, sizeof head);
            code = inf_shards_read(shards, bytes + size + sizeof head, length, err);
            size = end;
        }
    }
    weight->data = code == INF_OK ? inf_blob_create(size) : NULL;
    if (code == INF_OK && weight->data == NULL)
        code = inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes of text", size);
    if (code == INF_OK && size > 0)
        memcpy(weight->data->data, bytes, size);
    free(bytes);
    return code;
}

// Reads the elements of one weight.
static enum inf_code read_data(struct inf_shards *shards, struct inf_weight *weight,
                               const struct encoding *encoding, struct inf_error *err)
{
    char text[INF_SHAPE_TEXT_SIZE];
    size_t count, size_bytes, stored_bytes;
    enum inf_dtype sized = weight->dtype != INF_DTYPE_NONE ? weight->dtype : INF_DTYPE_U64;
    if (!inf_shape_count(&weight->shape, &count) ||
        !inf_shape_bytes(&weight->shape, sized, &size_bytes) ||
        !inf_size_mul(count, find_stored_size(encoding, weight->dtype), &stored_bytes))
        return inf_fail(err, INF_EXHAUSTED, "shape %s needs more than %" PRIu64 " bytes",
                        inf_shape_print(&weight->shape, text), INF_LIMIT_TENSOR_BYTES);
    if (encoding->storage == STORED_STRINGS)
        return read_strings(shards, weight, count, err);
    // The file is too short. The read fails before memory for the elements is allocated.
    if (encoding->storage == STORED_COMPLEX || stored_bytes > inf_shards_left(shards))
        return inf_shards_read(shards, NULL, stored_bytes, err);

    weight->data = inf_blob_create_unset(size_bytes);
    if (weight->data == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes", size_bytes);
    if (encoding->storage != STORED_PLAIN)
        return read_encoded(shards, weight, encoding, count, err);
    INF_TRY(inf_shards_read(shards, weight->data->data, size_bytes, err));
    if (weight->dtype == INF_DTYPE_BOOL)
        for (uint8_t *truth = weight->data->data, *end = truth + count; truth < end; truth++)
            *truth = *truth != 0;
    return INF_OK;
}

static enum inf_code read_weight(struct inf_shards *shards, struct inf_weight *weight,
                                 const struct inf_json *json, struct inf_error *err)
{
    struct encoding encoding = {0};
    struct inf_json name;
    INF_TRY(inf_json_get(json, "name", &name, err));
    INF_TRY(inf_json_name(&name, &weight->name, err));
    INF_TRY(read_type(weight, &encoding, json, err));
    INF_TRY(read_shape(weight, json, err));
    INF_TRY(read_quantization(weight, &encoding, json, err));
    enum inf_code code = read_data(shards, weight, &encoding, err);
    return code == INF_OK ? INF_OK : inf_error_prefix(err, code, "weight '%.200s'", weight->name);
}

static enum inf_code read_group(struct inf_weights *weights, const struct inf_json *group,
                                const struct inf_shard_place *place, struct inf_tally *tally,
                                struct inf_error *err)
{
    struct inf_json paths, list;
    size_t count;
    INF_TRY(inf_json_get(group, "weights", &list, err));
    INF_TRY(inf_json_array(&list, &count, err));
    INF_TRY(inf_json_get(group, "paths", &paths, err));
    struct inf_weight *items =
        realloc(weights->items, (weights->count + count + 1) * sizeof *weights->items);
    if (items == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %zu weights", count);
    weights->items = items;

    INF_CLEANUP(inf_shards_destroy) struct inf_shards *shards = NULL;
    INF_TRY(inf_shards_open(&shards, place, &paths, tally, err));
    for (size_t i = 0; i < count; i++) {
        struct inf_json json = inf_json_at(&list, i);
        struct inf_weight *weight = &weights->items[weights->count++];
        *weight = (struct inf_weight){0};
        INF_TRY(read_weight(shards, weight, &json, err));
    }
    return inf_shards_finish(shards, err);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct inf_weight *)a)->name, ((const struct inf_weight *)b)->name);
}

// --- refusing duplicate names ---

struct names {
    const char **items;
    size_t count;
};

// Appends the names in the list `key` of a group: names of weights, or names of shards.
static enum inf_code list_names(struct names *names, const struct inf_json *group, const char *key,
                                struct inf_error *err)
{
    struct inf_json list;
    size_t count;
    INF_TRY(inf_json_get(group, key, &list, err));
    INF_TRY(inf_json_array(&list, &count, err));
    bool of_weights = strcmp(key, "weights") == 0;
    if (!of_weights && names->count + count > INF_LIMIT_MODEL_SHARDS)
        return inf_fail(err, INF_EXHAUSTED, "the manifest names %zu shards, at most %u are allowed",
                        names->count + count, INF_LIMIT_MODEL_SHARDS);
    const char **items = realloc(names->items, (names->count + count + 1) * sizeof *items);
    if (items == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %zu names", count);
    names->items = items;
    for (size_t i = 0; i < count; i++) {
        struct inf_json name = inf_json_at(&list, i);
        struct inf_json weight = name;
        if (of_weights)
            INF_TRY(inf_json_get(&weight, "name", &name, err));
        INF_TRY(inf_json_name(&name, &names->items[names->count], err));
        names->count++;
    }
    return INF_OK;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Refuses a manifest that names a weight or a shard twice, before anything is read. Otherwise a
// small manifest could cause a large file to be read thousands of times.
static enum inf_code check_repeats(const struct inf_json *manifest, size_t group_count,
                                   const char *key, struct inf_error *err)
{
    struct names names = {0};
    enum inf_code code = INF_OK;
    for (size_t i = 0; i < group_count && code == INF_OK; i++) {
        struct inf_json group = inf_json_at(manifest, i);
        code = list_names(&names, &group, key, err);
    }
    if (code == INF_OK && names.count > 0)
        qsort(names.items, names.count, sizeof *names.items, compare_texts);
    for (size_t i = 1; i < names.count && code == INF_OK; i++)
        if (strcmp(names.items[i - 1], names.items[i]) == 0)
            code = inf_fail(err, INF_INVALID, "%s '%s': is in the manifest twice",
                            strcmp(key, "weights") == 0 ? "weight" : "shard", names.items[i]);
    free(names.items);
    return code;
}

static enum inf_code read_groups(struct inf_weights *weights, const struct inf_json *manifest,
                                 const struct inf_shard_place *place, struct inf_tally *tally,
                                 struct inf_error *err)
{
    size_t group_count = 0;
    if (manifest->value != NULL)
        INF_TRY(inf_json_array(manifest, &group_count, err));
    INF_TRY(check_repeats(manifest, group_count, "weights", err));
    INF_TRY(check_repeats(manifest, group_count, "paths", err));
    for (size_t i = 0; i < group_count; i++) {
        struct inf_json group = inf_json_at(manifest, i);
        INF_TRY(read_group(weights, &group, place, tally, err));
    }
    if (weights->count > 0)
        qsort(weights->items, weights->count, sizeof *weights->items, compare_names);
    return INF_OK;
}

enum inf_code inf_weights_read(struct inf_weights **out_weights, const struct inf_json *manifest,
                               const struct inf_shard_place *place, struct inf_tally *tally,
                               struct inf_error *err)
{
    struct inf_weights *weights = calloc(1, sizeof *weights);
    if (weights == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the weights");
    enum inf_code code = read_groups(weights, manifest, place, tally, err);
    if (code == INF_OK)
        *out_weights = weights;
    else
        inf_weights_destroy(&weights);
    return code;
}

void inf_weights_destroy(struct inf_weights **weights)
{
    if (*weights == NULL)
        return;
    for (size_t i = 0; i < (*weights)->count; i++)
        inf_blob_unref(&(*weights)->items[i].data);
    free((*weights)->items);
    free(*weights);
    *weights = NULL;
}

const struct inf_weight *inf_weights_find(const struct inf_weights *weights, const char *name)
{
    const struct inf_weight key = {.name = name};
    if (weights->count == 0)
        return NULL;
    return bsearch(&key, weights->items, weights->count, sizeof key, compare_names);
}
