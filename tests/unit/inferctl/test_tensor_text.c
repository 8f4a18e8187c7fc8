// SPDX-License-Identifier: Apache-2.0
// Tests of the conversion of tensors to text.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "client/inferctl/tensor/text.h"

static inferd_tensor make_row(inferd_dtype dtype, void *data, size_t size)
{
    return (inferd_tensor){.name = "t",
                           .dtype = dtype,
                           .rank = 2,
                           .shape = {1, (int64_t)(size / inferd_dtype_size(dtype))},
                           .data = data,
                           .size = size};
}

Test(tensor_text, shapes_are_lists)
{
    char text[TENSOR_SHAPE_TEXT];
    inferd_tensor tensor = {.rank = 0};
    cr_assert_str_eq(tensor_shape_text(&tensor, text), "[]");
    tensor = (inferd_tensor){.rank = 4, .shape = {-1, 224, 0, 3}};
    cr_assert_str_eq(tensor_shape_text(&tensor, text), "[?,224,0,3]");
    tensor = (inferd_tensor){.rank = 8};
    for (int i = 0; i < 8; i++)
        tensor.shape[i] = 2147483647;
    cr_assert_str_eq(tensor_shape_text(&tensor, text),
                     "[2147483647,2147483647,2147483647,2147483647,2147483647,2147483647,"
                     "2147483647,2147483647]");
    json_t *json = tensor_shape_json(&(inferd_tensor){.rank = 2, .shape = {-1, 7}});
    cr_assert_eq(json_array_size(json), 2u);
    cr_assert(json_is_null(json_array_get(json, 0)));
    cr_assert_eq(json_integer_value(json_array_get(json, 1)), 7);
    json_decref(json);
}

Test(tensor_text, elements_of_every_type_are_read)
{
    static uint8_t bytes[] = {0, 255};
    static int8_t chars[] = {-128, 127};
    static uint16_t shorts[] = {0, 65535};
    static int16_t signed_shorts[] = {-32768, 32767};
    static uint32_t words[] = {0, 4294967295u};
    static int32_t ints[] = {-2147483647 - 1, 2147483647};
    static uint64_t longs[] = {0, 1ull << 63};
    static int64_t signed_longs[] = {-(1ll << 62), 1};
    static float floats[] = {-1.5f, 3e38f};
    static double doubles[] = {-1e300, 1e-300};
    // The binary16 values are -2, 65504 (the largest), 2^-24 (the smallest above 0) and 1. The
    // bfloat16 values are -2 and 1.
    static uint16_t halves[] = {0xc000, 0x7bff};
    static uint16_t tiny[] = {0x0001, 0x3c00};
    static uint16_t brains[] = {0xc000, 0x3f80};
    const struct {
        inferd_dtype dtype;
        void *data;
        double first, second;
    } cases[] = {
        {INFERD_BOOL, (uint8_t[]){0, 1}, 0, 1},
        {INFERD_UINT8, bytes, 0, 255},
        {INFERD_INT8, chars, -128, 127},
        {INFERD_UINT16, shorts, 0, 65535},
        {INFERD_INT16, signed_shorts, -32768, 32767},
        {INFERD_UINT32, words, 0, 4294967295.0},
        {INFERD_INT32, ints, -2147483648.0, 2147483647.0},
        {INFERD_UINT64, longs, 0, 9223372036854775808.0},
        {INFERD_INT64, signed_longs, -4611686018427387904.0, 1},
        {INFERD_FP16, halves, -2, 65504},
        {INFERD_FP16, tiny, 5.9604644775390625e-8, 1},
        {INFERD_BF16, brains, -2, 1},
        {INFERD_FP32, floats, -1.5, (double)3e38f},
        {INFERD_FP64, doubles, -1e300, 1e-300},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        inferd_tensor tensor =
            make_row(cases[i].dtype, cases[i].data, 2 * inferd_dtype_size(cases[i].dtype));
        cr_assert_eq(tensor_count(&tensor), 2u, "case %zu", i);
        cr_expect_eq(tensor_element(&tensor, 0), cases[i].first, "case %zu", i);
        cr_expect_eq(tensor_element(&tensor, 1), cases[i].second, "case %zu", i);
    }
    inferd_tensor odd = make_row(INFERD_FP16, (uint16_t[]){0xfc00, 0x7e00}, 4);
    cr_assert_eq(tensor_element(&odd, 0), -(double)INFINITY);
    cr_assert(isnan(tensor_element(&odd, 1)));
}

Test(tensor_text, summary_counts_nans_apart)
{
    float numbers[] = {2, NAN, -4, 8, NAN};
    inferd_tensor tensor = make_row(INFERD_FP32, numbers, sizeof numbers);
    struct tensor_summary summary = tensor_summarise(&tensor);
    cr_assert_eq(summary.min, -4.0);
    cr_assert_eq(summary.max, 8.0);
    cr_assert_eq(summary.mean, 2.0);
    cr_assert_eq(summary.nan_count, 2u);
    float infinite[] = {1, INFINITY, -INFINITY};
    tensor = make_row(INFERD_FP32, infinite, sizeof infinite);
    summary = tensor_summarise(&tensor);
    cr_assert_eq(summary.min, -(double)INFINITY);
    cr_assert_eq(summary.max, (double)INFINITY);
    cr_assert(isnan(summary.mean));
    cr_assert_eq(summary.nan_count, 0u);
    for (size_t size = 0; size <= 4; size += 4) { // no elements, and then one NaN
        tensor = make_row(INFERD_FP32, (float[]){NAN}, size);
        summary = tensor_summarise(&tensor);
        cr_assert(isnan(summary.min) && isnan(summary.max) && isnan(summary.mean));
        cr_assert_eq(summary.nan_count, size / 4);
    }
}

Test(tensor_text, top_is_sorted_and_stable)
{
    float scores[] = {0.5f, NAN, 0.9f, 0.5f, -INFINITY, 0.9f, 0.1f};
    inferd_tensor tensor = make_row(INFERD_FP32, scores, sizeof scores);
    size_t indices[10];
    static const size_t wanted[] = {2, 5, 0, 3, 6, 4};
    cr_assert_eq(tensor_top(&tensor, 10, indices), 6u);
    for (size_t i = 0; i < 6; i++)
        cr_assert_eq(indices[i], wanted[i], "place %zu is %zu", i, indices[i]);
    cr_assert_eq(tensor_top(&tensor, 3, indices), 3u);
    for (size_t i = 0; i < 3; i++)
        cr_assert_eq(indices[i], wanted[i], "place %zu is %zu", i, indices[i]);
    cr_assert_eq(tensor_top(&tensor, 1, indices), 1u);
    cr_assert_eq(indices[0], 2u);
}

Test(tensor_text, class_vectors_are_one_row_of_floats)
{
    float scores[6] = {0};
    inferd_tensor tensor = make_row(INFERD_FP32, scores, sizeof scores);
    cr_assert(tensor_is_class_vector(&tensor)); // of shape [1,6]
    tensor.shape[0] = 2;
    tensor.shape[1] = 3;
    cr_assert_not(tensor_is_class_vector(&tensor)); // of shape [2,3]
    tensor.rank = 1;
    tensor.shape[0] = 6;
    cr_assert(tensor_is_class_vector(&tensor)); // of shape [6]
    tensor = make_row(INFERD_FP32, scores, sizeof scores[0]);
    cr_assert_not(tensor_is_class_vector(&tensor)); // of shape [1,1]
    tensor = make_row(INFERD_INT32, scores, sizeof scores);
    cr_assert_not(tensor_is_class_vector(&tensor));
    tensor = (inferd_tensor){.dtype = INFERD_FP32, .data = scores, .size = 4};
    cr_assert_not(tensor_is_class_vector(&tensor)); // of shape []
}
