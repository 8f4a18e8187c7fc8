// SPDX-License-Identifier: Apache-2.0
// Operators that compute features: counts of n-grams, and selected columns.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

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
    int64_t last = inf_build_known_dim(&s->b, x, rank - 1) - reach;
    uint32_t found = INF_VALUE_NONE;
    for (int64_t i = 0; inf_build_ok(&s->b) && i < grams->length; i++) {
        int64_t *data, axis = rank;
        uint32_t items = inf_build_const(&s->b, INF_DTYPE_I64, &INF_SHAPE(grams->count), &data);
        for (int64_t j = 0; data != NULL && j < grams->count; j++)
            data[j] = grams->items[j * grams->length + i];
        uint32_t part = inf_build_slice(&s->b, x, rank - 1, i * step, i * step + last, 1);
        part = inf_build_expand_dims(&s->b, part, &axis, 1);
        part = inf_build_compare(&s->b, INF_COMPARE_EQUAL, part, items);
        found = i == 0 ? part : inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, found, part);
    }
    struct inf_ints places = {.count = 1, .values = {rank - 1}};
    return inf_build_reduce(&s->b, INF_REDUCE_SUM, inf_build_cast(&s->b, found, INF_DTYPE_F32),
                            &places, false);
}

// The attributes of a TfIdfVectorizer node.
struct vectorizer {
    int32_t shortest, longest, skips;
    struct inf_build_ints starts, columns, pool;
    int64_t width; // number of columns of y
};

static void read_vectorizer(struct inf_onnx_scope *s, struct vectorizer *v)
{
    v->shortest = inf_onnx_attr_int(s, "min_gram_length", 0);
    v->longest = inf_onnx_attr_int(s, "max_gram_length", 0);
    v->skips = inf_onnx_attr_int(s, "max_skip_count", 0);
    (void)inf_onnx_attr_ints(s, "ngram_counts", &v->starts);
    (void)inf_onnx_attr_ints(s, "ngram_indexes", &v->columns);
    if (!inf_onnx_attr_ints(s, "pool_int64s", &v->pool))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has no pool_int64s: its n-grams are strings");
    if (v->shortest < 1 || v->longest < v->shortest || v->skips < 0 ||
        (uint32_t)v->longest > v->starts.count)
        inf_build_fail(&s->b, INF_INVALID, "n-grams of %d to %d items, %u lengths in the pool",
                       v->shortest, v->longest, v->starts.count);
    v->width = 0;
    for (uint32_t i = 0; i < v->columns.count; i++) {
        if (v->columns.values[i] < 0 || v->columns.values[i] >= 1 << 16)
            inf_build_fail(&s->b, INF_INVALID, "ngram_indexes[%u] is %lld", i,
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
        int64_t end = (uint32_t)i < v->starts.count ? v->starts.values[i] : v->pool.count;
        if (begin < 0 || end < begin || end > v->pool.count || (end - begin) % i != 0) {
            inf_build_fail(&s->b, INF_INVALID, "ngram_counts[%d] is %lld", i - 1, (long long)begin);
            return grams;
        }
        grams.items = &v->pool.values[begin];
        *first += grams.count;
        grams.count = (end - begin) / i;
    }
    if (*first + grams.count > v->columns.count)
        inf_build_fail(&s->b, INF_INVALID, "ngram_indexes has %u numbers, the pool more n-grams",
                       v->columns.count);
    return grams;
}

// Adds the matrix [grams, width] that maps counts of n-grams to columns.
static uint32_t add_column_matrix(struct inf_onnx_scope *s, const struct vectorizer *v,
                                  int64_t first, int64_t count)
{
    float *data;
    uint32_t matrix = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(count, v->width), &data);
    for (int64_t i = 0; data != NULL && i < count; i++)
        data[i * v->width + v->columns.values[first + i]] = 1;
    return matrix;
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
    if (inf_build_known_dim(&s->b, given, 0) != v->columns.count)
        inf_build_fail(&s->b, INF_INVALID, "weights has %lld numbers, wanted %u",
                       (long long)inf_build_known_dim(&s->b, given, 0), v->columns.count);
    weights = inf_build_matmul(&s->b, given, add_column_matrix(s, v, 0, v->columns.count));
    return inf_build_mul(&s->b, counts, weights);
}

static void lower_tfidf(struct inf_onnx_scope *s)
{
    struct vectorizer v = {0};
    uint32_t x = inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_I64), sum = INF_VALUE_NONE;
    int32_t rank = inf_build_rank(&s->b, x);
    int64_t size = inf_build_known_dim(&s->b, x, -1);
    read_vectorizer(s, &v);
    if (rank != 1 && rank != 2)
        inf_build_fail(&s->b, INF_INVALID, "x has rank %d, wanted 1 or 2", rank);
    // Start the sum of the counts with zeros of the right shape.
    uint32_t zero = inf_build_binary_number(&s->b, INF_BINARY_MUL,
                                            inf_build_slice(&s->b, x, rank - 1, 0, 1, 1), 0);
    float *none;
    sum = inf_build_add(
        &s->b, inf_build_cast(&s->b, zero, INF_DTYPE_F32),
        inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(INF_MAX(v.width, 1)), &none));
    for (int32_t length = v.shortest; inf_build_ok(&s->b) && length <= v.longest; length++) {
        int64_t first;
        struct grams grams = find_grams(s, &v, length, &first);
        // n-grams of one item have no gaps, so one step is enough.
        int32_t steps = length == 1 ? 1 : v.skips + 1;
        uint32_t counts = INF_VALUE_NONE;
        for (int32_t step = 1; inf_build_ok(&s->b) && grams.count > 0 && step <= steps; step++) {
            if (size - (int64_t)(length - 1) * step < 1)
                break;
            uint32_t more = count_grams(s, x, &grams, step);
            counts = step == 1 ? more : inf_build_add(&s->b, counts, more);
        }
        if (counts != INF_VALUE_NONE)
            sum = inf_build_add(
                &s->b, sum,
                inf_build_matmul(&s->b, counts, add_column_matrix(s, &v, first, grams.count)));
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
