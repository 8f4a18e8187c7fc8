// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx on strings.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/keys.h"
#include "backends/import/onnx/op_table.h"

static void lower_string_concat(struct inf_onnx_scope *s)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_STRING_JOIN, s->inputs, 2);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// Lowers StringSplit. An empty or absent delimiter means runs of white space, as in Python.
static void lower_string_split(struct inf_onnx_scope *s)
{
    uint32_t values[2], delimiter = inf_onnx_attr_string(s, "delimiter", "");
    struct inf_build_node node =
        inf_build_describe(INF_OP_STRING_SPLIT, s->inputs[0], delimiter, INF_VALUE_NONE);
    bool is_empty = inf_onnx_attr_text(s, "delimiter", "")[0] == '\0';
    node.output_count = 2;
    node.attrs.string_split.kind = is_empty ? INF_SPLIT_SPACE : INF_SPLIT_DELIMITER;
    node.attrs.string_split.splits_max = INF_MAX(inf_onnx_attr_int(s, "maxsplit", -1), -1);
    inf_build_emit(&s->b, &node, values);
    s->outputs[0] = values[0];
    if (s->output_count > 1)
        s->outputs[1] = inf_build_cast(&s->b, values[1], INF_DTYPE_I64);
}

static void lower_regex_full_match(struct inf_onnx_scope *s)
{
    uint32_t pattern = inf_onnx_attr_string(s, "pattern", "");
    struct inf_build_node node =
        inf_build_describe(INF_OP_STRING_MATCH, s->inputs[0], pattern, INF_VALUE_NONE);
    s->outputs[0] = inf_build_value(&s->b, &node);
    inf_onnx_check_patterns(s, pattern);
}

// --- StringNormalizer ---

static uint32_t change_case(struct inf_onnx_scope *s, uint32_t x, bool upper)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_STRING_CASE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.string_case.upper = upper;
    return inf_build_value(&s->b, &node);
}

// Adds nodes that compute which elements of the list x are no stop words.
static uint32_t find_kept(struct inf_onnx_scope *s, uint32_t x, uint32_t stop_words)
{
    int64_t axis = 1;
    const struct inf_ints axes = {.count = 1, .values = {1}};
    int64_t count = inf_build_known_dim(&s->b, stop_words, 0);
    if (inf_onnx_attr_int(s, "is_case_sensitive", 0) != 0)
        return inf_build_compare(&s->b, INF_COMPARE_EQUAL, inf_onnx_find_keys(s, x, stop_words),
                                 inf_build_scalar(&s->b, INF_DTYPE_I32, (double)count));
    uint32_t wide = inf_build_expand_dims(&s->b, change_case(s, x, false), &axis, 1);
    uint32_t equal =
        inf_build_compare(&s->b, INF_COMPARE_EQUAL, wide, change_case(s, stop_words, false));
    return inf_build_unary(&s->b, INF_UNARY_LOGICAL_NOT,
                           inf_build_reduce(&s->b, INF_REDUCE_ANY, equal, &axes, false));
}

// Adds nodes that select the elements of the list x at which `kept` is true, or one empty string if
// it is true nowhere.
static uint32_t select_kept(struct inf_onnx_scope *s, uint32_t x, uint32_t kept)
{
    uint64_t *empty;
    struct inf_build_node node = inf_build_describe_list(INF_OP_NONZERO, &kept, 1);
    uint32_t places = inf_build_reshape(&s->b, inf_build_value(&s->b, &node), (int64_t[]){-1}, 1);
    uint32_t count = inf_build_dim_value(&s->b, places, 0);
    // Put an empty string behind x and its place behind the places, and cut it off if it is not
    // the only one.
    uint32_t all[] = {x, inf_build_const(&s->b, INF_DTYPE_BYTES, &INF_SHAPE(1), &empty)};
    uint32_t behind[] = {places, inf_build_dim_value(&s->b, x, 0)};
    uint32_t one = inf_build_list(&s->b, (int64_t[]){1}, 1);
    uint32_t slice[] = {inf_build_concat(&s->b, behind, 2, 0),
                        inf_build_list(&s->b, (int64_t[]){0}, 1),
                        inf_build_binary(&s->b, INF_BINARY_MAX, count, one), one};
    node = inf_build_describe_list(INF_OP_SLICE, slice, 4);
    uint32_t chosen = inf_build_value(&s->b, &node);
    return inf_build_gather(&s->b, inf_build_concat(&s->b, all, 2, 0), chosen, 0);
}

static void lower_string_normalizer(struct inf_onnx_scope *s)
{
    const char *action = inf_onnx_attr_text(s, "case_change_action", "NONE");
    uint32_t stop_words = inf_onnx_attr_strings(s, "stopwords");
    uint32_t x = s->inputs[0];
    int32_t rank = inf_build_rank(&s->b, x);
    (void)inf_onnx_find_attr(s, "locale"); // letters are those of Unicode, whatever the language
    (void)inf_onnx_find_attr(s, "is_case_sensitive");
    bool is_upper = strcmp(action, "UPPER") == 0, is_lower = strcmp(action, "LOWER") == 0;
    if (!is_upper && !is_lower && strcmp(action, "NONE") != 0)
        inf_build_fail(&s->b, INF_INVALID, "case_change_action is '%.20s'", action);
    if (inf_build_ok(&s->b) && rank != 1 && (rank != 2 || inf_build_known_dim(&s->b, x, 0) != 1))
        inf_build_fail(&s->b, INF_INVALID, "x is not of shape [C] or [1,C]");
    if (!inf_build_ok(&s->b))
        return;
    uint32_t flat = rank == 1 ? x : inf_build_reshape(&s->b, x, (int64_t[]){-1}, 1);
    uint32_t y = is_upper || is_lower ? change_case(s, flat, is_upper) : flat;
    if (stop_words != INF_VALUE_NONE && inf_build_known_dim(&s->b, stop_words, 0) > 0)
        y = select_kept(s, y, find_kept(s, flat, stop_words));
    s->outputs[0] = rank == 1 ? y : inf_build_expand_dims(&s->b, y, (int64_t[]){0}, 1);
}

static const struct inf_onnx_op ops[] = {
    {"StringConcat", lower_string_concat, 2, 2, 1, 0},
    {"StringSplit", lower_string_split, 1, 1, 2, 0},
    {"StringNormalizer", lower_string_normalizer, 1, 1, 1, 0},
    {"RegexFullMatch", lower_regex_full_match, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_text = {ops, INF_ARRAY_LENGTH(ops)};
