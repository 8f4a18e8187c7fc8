// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml on numbers: the preprocessing that converters of scikit-learn and similar
// libraries write, and linear models. Results are FP32, except that Binarizer keeps the type of x
// and class labels are INT64 or BYTES.
#include "backends/import/onnx/classic/classes.h"

#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/keys.h"
#include "backends/import/onnx/op_table.h"

static uint32_t add_features(struct inf_onnx_scope *s)
{
    return inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_F32);
}

// Lowers Scaler: (x - offset) * scale. Offset and scale are one number, or one for each feature.
static void lower_scaler(struct inf_onnx_scope *s)
{
    uint32_t x = add_features(s), offset = inf_onnx_attr_floats(s, "offset");
    uint32_t scale = inf_onnx_attr_floats(s, "scale");
    if (offset != INF_VALUE_NONE)
        x = inf_build_sub(&s->b, x, offset);
    s->outputs[0] = scale != INF_VALUE_NONE ? inf_build_mul(&s->b, x, scale) : x;
}

// Lowers Normalizer: divides each row by its maximum (MAX), the sum of its absolute values (L1), or
// its Euclidean length (L2). If the divisor is 0, the row is unchanged.
static void lower_normalizer(struct inf_onnx_scope *s)
{
    static const struct {
        const char *name;
        enum inf_reduce_kind kind;
    } norms[] = {{"MAX", INF_REDUCE_MAX}, {"L1", INF_REDUCE_L1}, {"L2", INF_REDUCE_L2}};
    const char *norm = inf_onnx_attr_text(s, "norm", "MAX");
    const struct inf_ints last = {.count = 1, .values = {inf_build_rank(&s->b, s->inputs[0]) - 1}};
    uint32_t x = add_features(s), one = inf_build_scalar(&s->b, INF_DTYPE_F32, 1);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(norms); i++) {
        if (strcmp(norms[i].name, norm) != 0)
            continue;
        uint32_t size = inf_build_reduce(&s->b, norms[i].kind, x, &last, true);
        uint32_t is_zero = inf_build_compare(&s->b, INF_COMPARE_EQUAL, size,
                                             inf_build_scalar(&s->b, INF_DTYPE_F32, 0));
        s->outputs[0] = inf_build_div(&s->b, x, inf_build_select(&s->b, is_zero, one, size));
        return;
    }
    inf_build_fail(&s->b, INF_INVALID, "norm is '%.20s', wanted MAX, L1 or L2", norm);
}

// Lowers Binarizer: 1 for elements above the threshold, else 0. The result has the type of x.
static void lower_binarizer(struct inf_onnx_scope *s)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, s->inputs[0]);
    double threshold = (double)inf_onnx_attr_float(s, "threshold", 0);
    uint32_t above = inf_build_compare(&s->b, INF_COMPARE_GREATER, s->inputs[0],
                                       inf_build_scalar(&s->b, dtype, threshold));
    s->outputs[0] = inf_build_cast(&s->b, above, dtype);
}

// Lowers Imputer of floats: replaces elements that equal `replaced_value_float` by the imputed
// value of their feature. If that attribute is NaN, elements that are NaN are replaced.
static void lower_imputer(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], values = inf_onnx_attr_floats(s, "imputed_value_floats");
    float replaced = inf_onnx_attr_float(s, "replaced_value_float", 0);
    if (values == INF_VALUE_NONE || inf_build_dtype(&s->b, x) != INF_DTYPE_F32)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "x is %s, wanted FP32 and imputed_value_floats",
                       inf_dtype_name(inf_build_dtype(&s->b, x)));
    if (!inf_build_ok(&s->b))
        return;
    // An element is NaN if it differs from itself.
    uint32_t other = isnan(replaced) ? x : inf_build_scalar(&s->b, INF_DTYPE_F32, (double)replaced);
    uint32_t lacks = inf_build_compare(
        &s->b, isnan(replaced) ? INF_COMPARE_NOT_EQUAL : INF_COMPARE_EQUAL, x, other);
    s->outputs[0] = inf_build_select(&s->b, lacks, values, x);
}

// Lowers FeatureVectorizer: concatenates the inputs [rows, features] along the features.
static void lower_vectorizer(struct inf_onnx_scope *s)
{
    uint32_t parts[INF_LIMIT_NODE_INPUTS];
    (void)inf_onnx_find_attr(s, "inputdimensions"); // repeats the shapes of the inputs
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->input_count; i++) {
        parts[i] = inf_build_cast(&s->b, s->inputs[i], INF_DTYPE_F32);
        if (inf_build_rank(&s->b, parts[i]) == 1)
            parts[i] = inf_build_expand_dims(&s->b, parts[i], (int64_t[]){1}, 1);
    }
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_concat(&s->b, parts, s->input_count, 1);
}

// --- linear models ---

// Returns the number of features of x. If only a run knows it, it follows from the coefficients and
// the number of outputs, which is that of the intercepts or `outputs` (0: not known).
static int64_t count_features(struct inf_onnx_scope *s, uint32_t x, uint32_t weights,
                              uint32_t intercepts, int64_t outputs)
{
    if (intercepts != INF_VALUE_NONE)
        outputs = inf_build_known_dim(&s->b, intercepts, 0);
    if (inf_build_dim(&s->b, x, -1) != INF_DIM_UNKNOWN || weights == INF_VALUE_NONE || outputs < 1)
        return inf_build_known_dim(&s->b, x, -1);
    return inf_build_known_dim(&s->b, weights, 0) / outputs;
}

// Adds nodes that compute x [rows, features] times the transposed coefficients [outputs, features],
// plus the intercepts if they are present. `outputs` is the number of outputs if an attribute says
// it, else 0. Sets *out_count to the number of outputs.
static uint32_t add_linear(struct inf_onnx_scope *s, int64_t outputs, int64_t *out_count)
{
    uint32_t x = add_features(s), weights = inf_onnx_attr_floats(s, "coefficients");
    uint32_t intercepts = inf_onnx_attr_floats(s, "intercepts");
    int64_t features = count_features(s, x, weights, intercepts, outputs);
    if (weights == INF_VALUE_NONE || inf_build_rank(&s->b, x) != 2)
        inf_build_fail(&s->b, INF_INVALID, "lacks coefficients, or x is no matrix");
    int64_t count = inf_build_ok(&s->b) ? inf_build_known_dim(&s->b, weights, 0) : 0;
    if (inf_build_ok(&s->b) && (features < 1 || count < 1 || count % features != 0))
        inf_build_fail(&s->b, INF_INVALID, "%lld coefficients do not divide into %lld features",
                       (long long)count, (long long)features);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    *out_count = count / features;
    weights = inf_build_reshape(&s->b, weights, (int64_t[]){*out_count, features}, 2);
    uint32_t y =
        inf_build_matmul(&s->b, x, inf_build_transpose(&s->b, weights, (int64_t[]){1, 0}, 2));
    return intercepts == INF_VALUE_NONE ? y : inf_build_add(&s->b, y, intercepts);
}

static void lower_linear_regressor(struct inf_onnx_scope *s)
{
    int64_t count = 0, targets = inf_onnx_attr_int(s, "targets", 1);
    uint32_t y = add_linear(s, targets, &count);
    if (inf_build_ok(&s->b) && count != targets)
        inf_build_fail(&s->b, INF_INVALID, "targets is %lld, the coefficients are for %lld",
                       (long long)targets, (long long)count);
    s->outputs[0] = inf_onnx_post_transform(s, y);
}

// Lowers LinearClassifier. Outputs: the label of the largest score of each row, and all scores.
// With one row of coefficients for two classes, the sign of the score decides.
static void lower_linear_classifier(struct inf_onnx_scope *s)
{
    int64_t count = 0;
    (void)inf_onnx_find_attr(s, "multi_class"); // ONNX Runtime ignores it
    struct inf_onnx_classes classes = {
        .labels = inf_onnx_attr_labels(s, "classlabels_ints", "classlabels_strings")};
    uint32_t y = add_linear(s, 0, &count);
    if (!inf_build_ok(&s->b))
        return;
    classes.count = inf_build_known_dim(&s->b, classes.labels, 0);
    if (count == 1 && classes.count == 2) {
        inf_onnx_choose_of_two(s, &classes, y, 0);
        inf_onnx_set_scores(s, inf_onnx_pair_scores(s, y, true));
    } else if (count != classes.count) {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "%lld labels for %lld scores, wanted as many",
                       (long long)classes.count, (long long)count);
    } else {
        inf_onnx_choose_class(s, &classes, y);
    }
}

static const struct inf_onnx_op ops[] = {
    {"ai.onnx.ml::Scaler", lower_scaler, 1, 1, 1, 0},
    {"ai.onnx.ml::Normalizer", lower_normalizer, 1, 1, 1, 0},
    {"ai.onnx.ml::Binarizer", lower_binarizer, 1, 1, 1, 0},
    {"ai.onnx.ml::Imputer", lower_imputer, 1, 1, 1, 0},
    {"ai.onnx.ml::FeatureVectorizer", lower_vectorizer, 1, INF_LIMIT_NODE_INPUTS, 1, 0},
    {"ai.onnx.ml::LinearRegressor", lower_linear_regressor, 1, 1, 1, 0},
    {"ai.onnx.ml::LinearClassifier", lower_linear_classifier, 1, 1, 2, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_classic = {ops, INF_ARRAY_LENGTH(ops)};
