// SPDX-License-Identifier: Apache-2.0
// Operators that compute features: counts of n-grams, and selected columns.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/keys.h"
#include "backends/import/onnx/op_table.h"

// The most columns of a TfIdfVectorizer.
#define COLUMNS_MAX (1 << 20)

// --- operator TfIdfVectorizer, which counts n-grams ---

// The n-grams of one length that TfIdfVectorizer counts, stored one after the other.
struct grams {
    const int64_t *items;
    int64_t count; // number of n-grams
    int64_t length;
};

// Adds nodes that count each n-gram in x [..., size]. Consecutive items of an n-gram are `step`
// elements apart in x. The result is [..., grams], f32.
static uint32_t count_grams(struct inf_onnx_scope *s, uint32_t x, const struct grams *grams,
                            int64_t step)
{
    int32_t rank = inf_build_rank(&s->b, x);
    int64_t reach = (grams->length - 1) * step;
    uint32_t found = INF_VALUE_NONE;
    for (int64_t i = 0; inf_build_ok(&s->b) && i < grams->length; i++) {
        int64_t *data, axis = rank;
        uint32_t items = inf_build_const(&s->b, INF_DTYPE_I64, &INF_SHAPE(grams->count), &data);
        for (int64_t j = 0; data != NULL && j < grams->count; j++)
            data[j] = grams->items[j * grams->length + i];
        // As many items as begin an n-gram; the end counts from the end of x.
        int64_t end = i * step < reach ? i * step - reach : INT64_MAX;
        uint32_t part = inf_build_slice(&s->b, x, rank - 1, i * step, end, 1);
        part = inf_build_expand_dims(&s->b, part, &axis, 1);
        part = inf_build_compare(&s->b, INF_COMPARE_EQUAL, part, items);
        found = i == 0 ? part : inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, found, part);
    }
    struct inf_ints places = {.count = 1, .values = {rank - 1}};
    return inf_build_reduce(&s->b, INF_REDUCE_SUM, inf_build_cast(&s->b, found, INF_DTYPE_F32),
                            &places, false);
}

// A list of integers in an attribute, which may be long.
struct ints {
    const int64_t *values;
    int64_t count;
};

// The attributes of a TfIdfVectorizer node.
struct vectorizer {
    int32_t shortest, longest, skips;
    struct ints starts, columns, pool;
    uint32_t texts; // the pool if it has strings, a constant; x and `pool` are places in it
    int64_t width;  // number of columns of y
};

// Sets *out to the integers of an attribute. Returns false if it is absent.
static bool read_ints(struct inf_onnx_scope *s, const char *name, struct ints *out)
{
    uint32_t value = inf_onnx_attr_long_ints(s, name);
    *out = (struct ints){NULL, 0};
    if (value == INF_VALUE_NONE || !inf_build_ok(&s->b))
        return false;
    out->count = inf_build_known_dim(&s->b, value, 0);
    out->values = s->b.graph->values[value].data->data;
    return true;
}

// Makes the pool of a vectorizer of strings the places of its strings. A string that occurs several
// times has the place of the first one, which looking it up in x gives, too.
static void number_texts(struct inf_onnx_scope *s, struct vectorizer *v)
{
    const struct inf_string_pool *strings = inf_shared_strings_pool(s->b.graph->strings);
    v->texts = inf_onnx_attr_strings(s, "pool_strings");
    if (v->texts == INF_VALUE_NONE) {
        inf_build_fail(&s->b, INF_INVALID, "has neither pool_int64s nor pool_strings");
        return;
    }
    int64_t *places, count = inf_build_known_dim(&s->b, v->texts, 0);
    (void)inf_build_const(&s->b, INF_DTYPE_I64, &INF_SHAPE(count), &places);
    if (places == NULL)
        return;
    inf_onnx_number_keys(strings, s->b.graph->values[v->texts].data->data, (uint32_t)count, places,
                         &s->b);
    v->pool = (struct ints){places, count};
}

static void read_vectorizer(struct inf_onnx_scope *s, struct vectorizer *v)
{
    v->shortest = inf_onnx_attr_int(s, "min_gram_length", 0);
    v->longest = inf_onnx_attr_int(s, "max_gram_length", 0);
    v->skips = inf_onnx_attr_int(s, "max_skip_count", 0);
    v->texts = INF_VALUE_NONE;
    (void)read_ints(s, "ngram_counts", &v->starts);
    (void)read_ints(s, "ngram_indexes", &v->columns);
    if (!read_ints(s, "pool_int64s", &v->pool) || v->pool.count == 0)
        number_texts(s, v);
    if (v->shortest < 1 || v->longest < v->shortest || v->skips < 0 || v->longest > v->starts.count)
        inf_build_fail(&s->b, INF_INVALID, "n-grams of %d to %d items, %lld lengths in the pool",
                       v->shortest, v->longest, (long long)v->starts.count);
    v->width = 0;
    for (int64_t i = 0; i < v->columns.count; i++) {
        if (v->columns.values[i] < 0 || v->columns.values[i] >= COLUMNS_MAX)
            inf_build_fail(&s->b, INF_INVALID, "ngram_indexes[%lld] is %lld", (long long)i,
                           (long long)v->columns.values[i]);
        v->width = INF_MAX(v->width, v->columns.values[i] + 1);
    }
}

// Returns the n-grams of one length. *first is the index of the first one among all n-grams.
static struct grams find_grams(struct inf_onnx_scope *s, const struct vectorizer *v, int32_t length,
                               int64_t *first)
{
    struct grams grams = {.length = length};
    *first = 0;
    for (int32_t i = 1; inf_build_ok(&s->b) && i <= length; i++) {
        int64_t begin = v->starts.values[i - 1];
        int64_t end = i < v->starts.count ? v->starts.values[i] : v->pool.count;
        if (begin < 0 || end < begin || end > v->pool.count || (end - begin) % i != 0) {
            inf_build_fail(&s->b, INF_INVALID, "ngram_counts[%d] is %lld", i - 1, (long long)begin);
            return grams;
        }
        grams.items = &v->pool.values[begin];
        *first += grams.count;
        grams.count = (end - begin) / i;
    }
    if (*first + grams.count > v->columns.count)
        inf_build_fail(&s->b, INF_INVALID, "ngram_indexes has %lld numbers, the pool more n-grams",
                       (long long)v->columns.count);
    return grams;
}

// Adds nodes that move the counts [..., grams] of n-grams to their columns, [..., width].
static uint32_t move_to_columns(struct inf_onnx_scope *s, const struct vectorizer *v,
                                uint32_t counts, int64_t first, int64_t grams)
{
    int32_t *table, rank = inf_build_rank(&s->b, counts);
    uint32_t places = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(v->width), &table);
    int64_t amounts[2 * INF_LIMIT_RANK] = {0};
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    for (int64_t i = 0; i < v->width; i++)
        table[i] = (int32_t)grams; // a column of zeros, behind those of the n-grams
    for (int64_t i = 0; i < grams; i++) {
        int32_t *place = &table[v->columns.values[first + i]];
        if (*place != grams)
            inf_build_fail(&s->b, INF_UNSUPPORTED, "two n-grams are counted in column %lld",
                           (long long)v->columns.values[first + i]);
        *place = (int32_t)i;
    }
    amounts[2 * (rank - 1) + 1] = 1;
    counts = inf_build_pad(&s->b, counts, amounts, rank, INF_PAD_CONSTANT, INF_VALUE_NONE);
    return inf_build_gather(&s->b, counts, places, rank - 1);
}

// Weights the counts as selected by `mode`. Each weight belongs to an n-gram, and so to a column.
static uint32_t weight_counts(struct inf_onnx_scope *s, const struct vectorizer *v, uint32_t counts)
{
    const char *mode = inf_onnx_attr_text(s, "mode", "TF");
    uint32_t given = inf_onnx_attr_floats(s, "weights"), weights = INF_VALUE_NONE;
    if (strcmp(mode, "TF") != 0 && strcmp(mode, "IDF") != 0 && strcmp(mode, "TFIDF") != 0)
        inf_build_fail(&s->b, INF_INVALID, "mode is '%.20s'", mode);
    if (strcmp(mode, "IDF") == 0) {
        uint32_t none = inf_build_scalar(&s->b, INF_DTYPE_F32, 0);
        counts = inf_build_cast(&s->b, inf_build_compare(&s->b, INF_COMPARE_GREATER, counts, none),
                                INF_DTYPE_F32);
    }
    if (strcmp(mode, "TF") == 0 || given == INF_VALUE_NONE)
        return counts;
    float *table;
    weights = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(v->width), &table);
    if (inf_build_known_dim(&s->b, given, 0) != v->columns.count)
        inf_build_fail(&s->b, INF_INVALID, "weights has %lld numbers, wanted %lld",
                       (long long)inf_build_known_dim(&s->b, given, 0),
                       (long long)v->columns.count);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    const float *numbers = s->b.graph->values[given].data->data;
    for (int64_t i = 0; i < v->columns.count; i++)
        table[v->columns.values[i]] = numbers[i];
    return inf_build_mul(&s->b, counts, weights);
}

static void lower_tfidf(struct inf_onnx_scope *s)
{
    struct vectorizer v = {0};
    uint32_t x = s->inputs[0], sum = INF_VALUE_NONE;
    read_vectorizer(s, &v);
    if (inf_build_ok(&s->b) &&
        (v.texts != INF_VALUE_NONE) != (inf_build_dtype(&s->b, x) == INF_DTYPE_BYTES))
        inf_build_fail(&s->b, INF_INVALID, "x is %s, and its n-grams are of another type",
                       inf_dtype_name(inf_build_dtype(&s->b, x)));
    if (v.texts != INF_VALUE_NONE)
        x = inf_onnx_find_keys(s, x, v.texts);
    x = inf_build_cast(&s->b, x, INF_DTYPE_I64);
    int32_t rank = inf_build_rank(&s->b, x);
    int64_t size = inf_build_dim(&s->b, x, -1);
    if (rank != 1 && rank != 2)
        inf_build_fail(&s->b, INF_INVALID, "x has rank %d, wanted 1 or 2", rank);
    // Start the sum of the counts with zeros of the right shape: x may have no items.
    const struct inf_ints last = {.count = 1, .values = {rank - 1}};
    uint32_t zero = inf_build_cast(&s->b, inf_build_reduce(&s->b, INF_REDUCE_SUM, x, &last, true),
                                   INF_DTYPE_F32);
    float *none;
    sum = inf_build_add(
        &s->b, inf_build_binary_number(&s->b, INF_BINARY_MUL, zero, 0),
        inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(INF_MAX(v.width, 1)), &none));
    for (int32_t length = v.shortest; inf_build_ok(&s->b) && length <= v.longest; length++) {
        int64_t first;
        struct grams grams = find_grams(s, &v, length, &first);
        // n-grams of one item have no gaps, so one step is enough.
        int32_t steps = length == 1 ? 1 : v.skips + 1;
        uint32_t counts = INF_VALUE_NONE;
        for (int32_t step = 1; inf_build_ok(&s->b) && grams.count > 0 && step <= steps; step++) {
            if (size != INF_DIM_UNKNOWN && size - (int64_t)(length - 1) * step < 1)
                break;
            uint32_t more = count_grams(s, x, &grams, step);
            counts = step == 1 ? more : inf_build_add(&s->b, counts, more);
        }
        if (counts != INF_VALUE_NONE)
            sum = inf_build_add(&s->b, sum, move_to_columns(s, &v, counts, first, grams.count));
    }
    s->outputs[0] = weight_counts(s, &v, sum);
}

// --- operator ArrayFeatureExtractor, which selects columns ---

static void lower_array_feature(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    uint32_t indices = inf_build_reshape(&s->b, s->inputs[1], (int64_t[]){-1}, 1);
    int32_t rank = inf_build_rank(&s->b, x);
    if (rank == 1)
        x = inf_build_expand_dims(&s->b, x, (int64_t[]){0}, 1);
    s->outputs[0] = inf_build_gather(&s->b, x, indices, INF_MAX(rank - 1, 1));
}

static const struct inf_onnx_op ops[] = {
    {"TfIdfVectorizer", lower_tfidf, 1, 1, 1, 0},
    {"ai.onnx.ml::ArrayFeatureExtractor", lower_array_feature, 2, 2, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_feature = {ops, INF_ARRAY_LENGTH(ops)};
