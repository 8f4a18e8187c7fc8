// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx.ml that map values to other values: labels and categories, strings included.
// ZipMap gives the scores as a tensor: a tensor cannot be a list of maps, and the columns are in
// the order of the class labels.
#include <stdio.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/keys.h"
#include "backends/import/onnx/op_table.h"

// Adds nodes that map x: element keys[i] becomes values[i], any other one becomes `fallback`.
static uint32_t map_values(struct inf_onnx_scope *s, uint32_t keys, uint32_t values,
                           uint32_t fallback)
{
    uint32_t table[] = {values, inf_build_reshape(&s->b, fallback, (int64_t[]){1}, 1)};
    if (inf_build_ok(&s->b) &&
        inf_build_known_dim(&s->b, keys, 0) != inf_build_known_dim(&s->b, values, 0))
        inf_build_fail(&s->b, INF_INVALID, "%lld keys for %lld values",
                       (long long)inf_build_known_dim(&s->b, keys, 0),
                       (long long)inf_build_known_dim(&s->b, values, 0));
    return inf_build_gather(&s->b, inf_build_concat(&s->b, table, 2, 0),
                            inf_onnx_find_keys(s, s->inputs[0], keys), 0);
}

// Returns the keys or values of a LabelEncoder, a list: the attribute of the kind that is present.
static uint32_t read_list(struct inf_onnx_scope *s, const char *prefix)
{
    char names[4][32];
    static const char *const ends[] = {"strings", "int64s", "floats", "tensor"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(ends); i++)
        snprintf(names[i], sizeof names[i], "%s_%s", prefix, ends[i]);
    uint32_t list = inf_onnx_attr_strings(s, names[0]);
    if (list == INF_VALUE_NONE)
        list = inf_onnx_attr_long_ints(s, names[1]);
    if (list == INF_VALUE_NONE)
        list = inf_onnx_attr_floats(s, names[2]);
    if (list == INF_VALUE_NONE)
        list = inf_onnx_attr_tensor(s, names[3]);
    if (list == INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "has no %s", prefix);
    return list;
}

// Returns the value of elements that are no key, of the type of the values.
static uint32_t read_default(struct inf_onnx_scope *s, enum inf_dtype dtype)
{
    uint32_t text = inf_onnx_attr_string(s, "default_string", "_Unused");
    int64_t whole = inf_onnx_attr_int(s, "default_int64", -1);
    float real = inf_onnx_attr_float(s, "default_float", -0.0f);
    uint32_t tensor = inf_onnx_attr_tensor(s, "default_tensor");
    if (tensor != INF_VALUE_NONE)
        return tensor;
    if (dtype == INF_DTYPE_BYTES)
        return text;
    return inf_build_scalar(&s->b, dtype, inf_dtype_is_float(dtype) ? (double)real : (double)whole);
}

// Lowers the first version of LabelEncoder: a string becomes its place in classes_strings, or an
// integer becomes the string at that place.
static void lower_first_encoder(struct inf_onnx_scope *s)
{
    uint32_t classes = inf_onnx_attr_strings(s, "classes_strings");
    bool is_text = inf_build_dtype(&s->b, s->inputs[0]) == INF_DTYPE_BYTES;
    uint32_t fallback = read_default(s, is_text ? INF_DTYPE_I64 : INF_DTYPE_BYTES);
    if (classes == INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "has no classes_strings");
    if (!inf_build_ok(&s->b))
        return;
    uint32_t places = inf_build_iota(&s->b, INF_DTYPE_I64, inf_build_known_dim(&s->b, classes, 0));
    s->outputs[0] = is_text ? map_values(s, classes, places, fallback)
                            : map_values(s, places, classes, fallback);
}

static void lower_label_encoder(struct inf_onnx_scope *s)
{
    if (s->opset < 2) {
        lower_first_encoder(s);
        return;
    }
    uint32_t keys = read_list(s, "keys"), values = read_list(s, "values");
    uint32_t fallback = read_default(s, inf_build_dtype(&s->b, values));
    s->outputs[0] = map_values(s, keys, values, fallback);
}

static void lower_category_mapper(struct inf_onnx_scope *s)
{
    uint32_t numbers = inf_onnx_attr_long_ints(s, "cats_int64s");
    uint32_t texts = inf_onnx_attr_strings(s, "cats_strings");
    bool is_text = inf_build_dtype(&s->b, s->inputs[0]) == INF_DTYPE_BYTES;
    uint32_t fallback = read_default(s, is_text ? INF_DTYPE_I64 : INF_DTYPE_BYTES);
    if (numbers == INF_VALUE_NONE || texts == INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "lacks cats_int64s or cats_strings");
    if (inf_build_ok(&s->b))
        s->outputs[0] = is_text ? map_values(s, texts, numbers, fallback)
                                : map_values(s, numbers, texts, fallback);
}

// Lowers OneHotEncoder: adds a last axis with one element for each category, which is 1 for the
// category of x and else 0. If x is in no category, all elements are 0.
static void lower_one_hot(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], cats = inf_onnx_attr_labels(s, "cats_int64s", "cats_strings");
    int64_t axis = inf_build_rank(&s->b, x);
    if (inf_onnx_attr_int(s, "zeros", 1) != 1)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "zeros is not 1");
    if (!inf_build_ok(&s->b))
        return;
    if (inf_build_dtype(&s->b, x) != INF_DTYPE_BYTES)
        x = inf_build_cast(&s->b, x, INF_DTYPE_I64);
    uint32_t place = inf_onnx_find_keys(s, x, cats);
    place = inf_build_expand_dims(&s->b, place, &axis, 1);
    uint32_t all = inf_build_iota(&s->b, INF_DTYPE_I32, inf_build_known_dim(&s->b, cats, 0));
    s->outputs[0] = inf_build_cast(&s->b, inf_build_compare(&s->b, INF_COMPARE_EQUAL, place, all),
                                   INF_DTYPE_F32);
}

static void lower_zip_map(struct inf_onnx_scope *s)
{
    (void)inf_onnx_find_attr(s, "classlabels_int64s");
    (void)inf_onnx_find_attr(s, "classlabels_strings");
    s->outputs[0] = s->inputs[0];
}

static const struct inf_onnx_op ops[] = {
    {"ai.onnx.ml::LabelEncoder", lower_label_encoder, 1, 1, 1, 0},
    {"ai.onnx.ml::CategoryMapper", lower_category_mapper, 1, 1, 1, 0},
    {"ai.onnx.ml::OneHotEncoder", lower_one_hot, 1, 1, 1, 0},
    {"ai.onnx.ml::ZipMap", lower_zip_map, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_label = {ops, INF_ARRAY_LENGTH(ops)};
