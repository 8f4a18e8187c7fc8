// SPDX-License-Identifier: Apache-2.0
// The core of the protocol library: error texts, byte ranges, shapes and element types.
#include <criterion/criterion.h>
#include <string.h>

#include "proto/core/shape.h"
#include "proto/core/span.h"
#include "proto/core/status.h"
#include "proto/core/tensor_name.h"

Test(status, prefix_keeps_code_and_text)
{
    struct inf_error err;
    enum inf_code code = inf_fail_reason(&err, INF_RANGE, INF_REASON_REGION_BOUNDS, "offset %d", 7);
    cr_assert_eq(inf_error_prefix(&err, code, "tensor '%s'", "x"), INF_RANGE);
    cr_assert_str_eq(err.text, "tensor 'x': offset 7");
    cr_assert_eq(err.reason, INF_REASON_REGION_BOUNDS);
}

Test(status, prefix_cuts_what_does_not_fit)
{
    struct inf_error err;
    char big[2000];
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    enum inf_code code = inf_fail(&err, INF_INVALID, "%s", big);
    inf_error_prefix(&err, code, "%s", big);
    cr_assert_eq(strlen(err.text), sizeof err.text - 1);
}

Test(status, cuts_no_character_in_two)
{
    // Texts that end in the middle of U+00E9, U+20AC or U+1F600, and the texts that remain after
    // trimming.
    static const char *const texts[][2] = {
        {"", ""},
        {"abc", "abc"},
        {"a\xc3\xa9", "a\xc3\xa9"},
        {"a\xc3", "a"},
        {"a\xe2\x82\xac", "a\xe2\x82\xac"},
        {"a\xe2\x82", "a"},
        {"a\xe2", "a"},
        {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
        {"\xf0\x9f\x98", ""},
        {"\xc3\xa9\xf0\x9f", "\xc3\xa9"},
        {"\xf0", ""},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(texts); i++) {
        char text[16];
        strcpy(text, texts[i][0]);
        inf_text_trim(text);
        cr_assert_str_eq(text, texts[i][1], "text %zu", i);
    }
    struct inf_error err;
    char big[2000] = "";
    for (int i = 0; i < 600; i++)
        strcat(big, "\xe2\x82\xac");
    inf_fail(&err, INF_INVALID, "%s", big);
    cr_assert_eq(strlen(err.text) % 3, 0);
    cr_assert_gt(strlen(err.text), sizeof err.text - 4);
}

// The text has control characters, a truncated character, an overlong encoding and a surrogate.
Test(status, shows_nothing_that_breaks_a_line)
{
    struct inf_error err;
    inf_fail(&err, INF_INVALID, "'%s'", "a\n\x1b[1m\x7f\xc2\x85\xc3\xa9\xc3(\xc0\xaf\xed\xa0\x80");
    cr_assert_str_eq(err.text,
                     "'a??[1m???\xc3\xa9?(?"
                     "?"
                     "?"
                     "?"
                     "?'");
    inf_error_prefix(&err, INF_INVALID, "%s", "model\t");
    cr_assert_str_eq(err.text,
                     "model?: 'a??[1m???\xc3\xa9?(?"
                     "?"
                     "?"
                     "?"
                     "?'");
}

Test(status, every_reason_has_a_name)
{
    for (int reason = 0; reason < INF_REASON_COUNT; reason++)
        cr_assert_not_null(inf_reason_name((enum inf_reason)reason));
    cr_assert_str_eq(inf_reason_name(INF_REASON_QUEUE_FULL), "QUEUE_FULL");
    cr_assert_str_eq(inf_code_name(INF_INVALID), "INVALID_ARGUMENT");
}

Test(span, range_never_wraps)
{
    cr_assert(inf_range_ok(0, 0, 0));
    cr_assert(inf_range_ok(8, 8, 16));
    cr_assert_not(inf_range_ok(9, 8, 16));
    cr_assert_not(inf_range_ok(UINT64_MAX, 1, 16));
    cr_assert_not(inf_range_ok(32, UINT64_MAX - 31, 64));
}

Test(shape, bytes_refuses_overflow_and_unknown)
{
    size_t bytes = 7;
    struct inf_shape shape = INF_SHAPE(1 << 30, 1 << 30, 1 << 30, 4);
    cr_assert_not(inf_shape_bytes(&shape, INF_DTYPE_F32, &bytes));
    shape = INF_SHAPE(2, INF_DIM_UNKNOWN);
    cr_assert_not(inf_shape_bytes(&shape, INF_DTYPE_F32, &bytes));
    shape = INF_SHAPE(INF_LIMIT_DIM);
    cr_assert_not(inf_shape_bytes(&shape, INF_DTYPE_U8, &bytes));
    cr_assert_eq(bytes, 7, "untouched on failure");
    shape = INF_SHAPE(1 << 30, 1 << 30, 0);
    cr_assert(inf_shape_bytes(&shape, INF_DTYPE_F32, &bytes));
    cr_assert_eq(bytes, 0);
    shape = (struct inf_shape){0};
    cr_assert(inf_shape_bytes(&shape, INF_DTYPE_I64, &bytes));
    cr_assert_eq(bytes, 8);
}

Test(shape, broadcasts_as_numpy_does)
{
    struct inf_shape result;
    struct inf_shape a = INF_SHAPE(8, 1, 6, 1);
    struct inf_shape b = INF_SHAPE(7, 1, 5);
    cr_assert(inf_shape_broadcast(&a, &b, &result));
    struct inf_shape wanted = INF_SHAPE(8, 7, 6, 5);
    cr_assert(inf_shape_equal(&result, &wanted));
    a = INF_SHAPE(2, 3);
    b = INF_SHAPE(2);
    cr_assert_not(inf_shape_broadcast(&a, &b, &result));
    a = INF_SHAPE(INF_DIM_UNKNOWN, 1);
    b = INF_SHAPE(4, INF_DIM_UNKNOWN);
    cr_assert(inf_shape_broadcast(&a, &b, &result));
    wanted = INF_SHAPE(4, INF_DIM_UNKNOWN);
    cr_assert(inf_shape_equal(&result, &wanted));
}

Test(shape, prints_for_people)
{
    char text[INF_SHAPE_TEXT_SIZE];
    struct inf_shape shape = INF_SHAPE(1, INF_DIM_UNKNOWN, 3);
    cr_assert_str_eq(inf_shape_print(&shape, text), "[1,?,3]");
    shape = (struct inf_shape){0};
    cr_assert_str_eq(inf_shape_print(&shape, text), "[]");
    for (int i = 0; i < INF_LIMIT_RANK; i++)
        shape.dims[i] = INF_LIMIT_DIM - 1;
    shape.rank = INF_LIMIT_RANK;
    cr_assert_lt(strlen(inf_shape_print(&shape, text)), (size_t)INF_SHAPE_TEXT_SIZE);
}

Test(tensor_name, means_the_same_with_and_without_the_number_of_the_first_output)
{
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {{"x", "x", true},      {"x", "x:0", true},    {"x:0", "x", true},
                 {"x:0", "x:0", true},  {"x", "y:0", false},   {"x", "x:1", false},
                 {"x:1", "x:0", false}, {"x", "x:0:0", false}, {":0", "", false},
                 {":0", ":0", true},    {"x0", "x", false},    {"", "", true}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        cr_expect_eq(inf_tensor_name_matches(pairs[i].a, pairs[i].b), pairs[i].same,
                     "'%s' and '%s'", pairs[i].a, pairs[i].b);
}

Test(tensor_name, finds_the_exact_name_first)
{
    const struct {
        int number;
        const char *name;
    } tensors[] = {{1, "x:0"}, {2, "x"}, {3, "y:0"}, {4, "z"}};
    const struct inf_tensor_names *names = INF_TENSOR_NAMES(tensors, 4);
    cr_expect_eq(inf_tensor_names_find(names, "x", 1), 1u);
    cr_expect_eq(inf_tensor_names_find(names, "x:0", 3), 0u);
    cr_expect_eq(inf_tensor_names_find(names, "y", 1), 2u);
    cr_expect_eq(inf_tensor_names_find(names, "z:0=file", 3), 3u);
    cr_expect_eq(inf_tensor_names_find(names, "z:1", 3), 4u);
    cr_expect_eq(inf_tensor_names_find(INF_TENSOR_NAMES(&tensors[0], 0), "x", 1), 0u);
}

Test(dtype, names_are_those_of_the_open_inference_protocol)
{
    static const char *const names[] = {"BOOL", "UINT8", "UINT16", "UINT32", "UINT64",
                                        "INT8", "INT16", "INT32",  "INT64",  "FP16",
                                        "BF16", "FP32",  "FP64"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(names); i++)
        cr_assert_str_eq(inf_dtype_name(inf_dtype_parse(names[i])), names[i]);
    cr_assert_eq(inf_dtype_parse("FP31"), INF_DTYPE_NONE);
    cr_assert_eq(inf_dtype_size((enum inf_dtype)99), 0u);
}
