// SPDX-License-Identifier: Apache-2.0
// The kernels of strings and sparse tensors. Expected values come from ONNX's and TensorFlow's
// documentation, from FarmHash's and MurmurHash3's published values, and from Python.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"

#define OPERANDS 5

// A node whose operands are constants; it is measured and computed as in an interpreted run.
static struct {
    struct inf_graph *graph;
    uint32_t inputs[OPERANDS], count;
    struct inf_node *node;
    struct inf_string_pool pool;
    struct inf_blob *outputs[3];
    struct inf_error err;
} one;

static void end_case(void)
{
    for (size_t i = 0; i < sizeof one.outputs / sizeof *one.outputs; i++)
        inf_blob_unref(&one.outputs[i]);
    inf_graph_destroy(&one.graph);
    inf_string_pool_fini(&one.pool);
    memset(&one, 0, sizeof one);
}

TestSuite(text, .fini = end_case);

static void begin_case(void)
{
    end_case();
    cr_assert_eq(inf_graph_create(&one.graph, NULL), INF_OK);
}

static void add_input(enum inf_dtype dtype, struct inf_shape shape, const void *data)
{
    size_t size;
    cr_assert(inf_shape_bytes(&shape, dtype, &size));
    struct inf_blob *blob = inf_blob_create(size);
    if (size > 0)
        memcpy(blob->data, data, size);
    cr_assert_eq(
        inf_graph_add_const(one.graph, "x", dtype, &shape, blob, &one.inputs[one.count++], NULL),
        INF_OK);
}

static void add_strings(struct inf_shape shape, const char *const *strings)
{
    uint64_t handles[64];
    for (size_t i = 0; i < inf_shape_elements(&shape); i++)
        cr_assert_eq(
            inf_string_pool_add(inf_shared_strings_pool(one.graph->strings),
                                (struct inf_span){(const uint8_t *)strings[i], strlen(strings[i])},
                                &handles[i], NULL),
            INF_OK);
    add_input(INF_DTYPE_BYTES, shape, handles);
}

#define STRINGS(...) ((const char *const[]){__VA_ARGS__})
#define TEXT(string) add_strings((struct inf_shape){0}, STRINGS(string))

static void add_node(enum inf_op op, uint32_t output_count)
{
    uint32_t index;
    cr_assert_eq(inf_graph_add_node(one.graph, op, "node", "", one.inputs, one.count, output_count,
                                    &index, &one.err),
                 INF_OK, "%s", one.err.text);
    one.node = &one.graph->nodes[index];
}

static enum inf_code run_node(void)
{
    const struct inf_evaluator *ref = inf_ref_evaluator();
    struct inf_shape shapes[3];
    bool known = true;
    one.graph->run_strings = &one.pool;
    INF_TRY(inf_shape_infer_node(one.graph, 0, &one.err));
    for (uint32_t i = 0; i < one.node->output_count; i++) {
        shapes[i] = one.graph->values[one.node->outputs[i]].shape;
        known &= inf_shape_known(&shapes[i]);
    }
    if (!known)
        INF_TRY(ref->measure(ref->context, one.graph, 0, shapes, &one.err));
    for (uint32_t i = 0; i < one.node->output_count; i++) {
        struct inf_value *value = &one.graph->values[one.node->outputs[i]];
        size_t size;
        value->shape = shapes[i];
        cr_assert(inf_shape_bytes(&shapes[i], value->dtype, &size));
        one.outputs[i] = inf_blob_create(size);
    }
    return ref->run(ref->context, one.graph, 0, one.outputs, NULL, &one.err);
}

static void compute_node(void)
{
    cr_assert_eq(run_node(), INF_OK, "%s", one.err.text);
}

static void expect_shape(uint32_t output, enum inf_dtype dtype, struct inf_shape shape)
{
    const struct inf_value *value = &one.graph->values[one.node->outputs[output]];
    char text[INF_SHAPE_TEXT_SIZE];
    cr_assert_eq(value->dtype, dtype);
    cr_assert(inf_shape_equal(&value->shape, &shape), "output %u is %s", output,
              inf_shape_print(&value->shape, text));
}

static void expect_strings(struct inf_shape shape, const char *const *wanted)
{
    const struct inf_strings strings = {inf_shared_strings_pool(one.graph->strings), &one.pool};
    expect_shape(0, INF_DTYPE_BYTES, shape);
    for (size_t i = 0; i < inf_shape_elements(&shape); i++) {
        struct inf_span got;
        cr_assert_eq(inf_strings_get(&strings, ((uint64_t *)one.outputs[0]->data)[i], &got, NULL),
                     INF_OK);
        cr_assert(got.size == strlen(wanted[i]) &&
                      (got.size == 0 || memcmp(got.data, wanted[i], got.size) == 0),
                  "element %zu is '%.*s', wanted '%s'", i, (int)got.size, (const char *)got.data,
                  wanted[i]);
    }
}

static void expect_data(uint32_t output, enum inf_dtype dtype, struct inf_shape shape,
                        const void *wanted)
{
    expect_shape(output, dtype, shape);
    if (one.outputs[output]->size_bytes > 0)
        cr_assert_eq(memcmp(one.outputs[output]->data, wanted, one.outputs[output]->size_bytes), 0);
}

#define I32(...) ((const int32_t[]){__VA_ARGS__})
#define I64(...) ((const int64_t[]){__VA_ARGS__})

Test(text, joins_broadcast_strings)
{
    begin_case();
    add_strings(INF_SHAPE(2, 1), STRINGS("abc", ""));
    add_strings(INF_SHAPE(2), STRINGS("x", "\xc3\xbc"));
    add_node(INF_OP_STRING_JOIN, 1);
    compute_node();
    expect_strings(INF_SHAPE(2, 2), STRINGS("abcx", "abc\xc3\xbc", "x", "\xc3\xbc"));
}

// The letters of other alphabets, and bytes that are no UTF-8.
Test(text, changes_the_case_of_unicode)
{
    static const char *const mixed[] = {"Monday", "\xc3\x84\xc3\xb6\xce\xa3", "\xd0\x96",
                                        "a\xff\x42", // a letter B behind a byte that is none
                                        "\xc8\xba"};
    begin_case();
    add_strings(INF_SHAPE(5), mixed);
    add_node(INF_OP_STRING_CASE, 1);
    compute_node();
    expect_strings(INF_SHAPE(5), STRINGS("monday", "\xc3\xa4\xc3\xb6\xcf\x83", "\xd0\xb6",
                                         "a\xff"
                                         "b",
                                         "\xe2\xb1\xa5"));
    begin_case();
    add_strings(INF_SHAPE(2), mixed);
    add_node(INF_OP_STRING_CASE, 1);
    one.node->attrs.string_case.upper = true;
    compute_node();
    expect_strings(INF_SHAPE(2), STRINGS("MONDAY", "\xc3\x84\xc3\x96\xce\xa3"));
}

// Python: bytes.decode('utf-8', 'replace').
Test(text, repairs_what_is_no_utf8)
{
    begin_case();
    add_strings(INF_SHAPE(6), STRINGS("ok \xc3\xbc", "\xff", "a\xc3", "\xe6\x97 \xe6",
                                      "\xed\xa0\x80", "\xf0\x9d\x84\xf0"));
    add_node(INF_OP_STRING_REPAIR, 1);
    compute_node();
    expect_strings(INF_SHAPE(6),
                   STRINGS("ok \xc3\xbc", "\xef\xbf\xbd", "a\xef\xbf\xbd",
                           "\xef\xbf\xbd \xef\xbf\xbd", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
                           "\xef\xbf\xbd\xef\xbf\xbd"));
}

static void begin_split(const char *string, const char *delimiter, enum inf_split_kind kind)
{
    begin_case();
    add_strings(INF_SHAPE(2), STRINGS(string, ""));
    TEXT(delimiter);
    add_node(INF_OP_STRING_SPLIT, 2);
    one.node->attrs.string_split.kind = kind;
}

// Python: str.split().
Test(text, splits_at_delimiters)
{
    begin_split("a..b.c.", ".", INF_SPLIT_DELIMITER);
    compute_node();
    expect_strings(INF_SHAPE(2, 5), STRINGS("a", "", "b", "c", "", "", "", "", "", ""));
    expect_data(1, INF_DTYPE_I32, INF_SHAPE(2), I32(5, 0));
    begin_split("a--b-c", "--", INF_SPLIT_DELIMITER);
    compute_node();
    expect_strings(INF_SHAPE(2, 2), STRINGS("a", "b-c", "", ""));
    begin_split("a.b.c", ".", INF_SPLIT_DELIMITER);
    one.node->attrs.string_split.splits_max = 1;
    compute_node();
    expect_strings(INF_SHAPE(2, 2), STRINGS("a", "b.c", "", ""));
    begin_split(" a \t b\nc ", "", INF_SPLIT_SPACE);
    compute_node();
    expect_strings(INF_SHAPE(2, 3), STRINGS("a", "b", "c", "", "", ""));
    begin_split("  a b  c ", "", INF_SPLIT_SPACE);
    one.node->attrs.string_split.splits_max = 1;
    compute_node();
    expect_strings(INF_SHAPE(2, 2), STRINGS("a", "b  c ", "", ""));
    begin_split("   ", "", INF_SPLIT_SPACE);
    compute_node();
    expect_data(1, INF_DTYPE_I32, INF_SHAPE(2), I32(0, 0));
}

// TensorFlow: tf.compat.v1.strings.split with several delimiters, and tf.strings.bytes_split.
Test(text, splits_at_bytes)
{
    begin_split("a,b;;c", ",;", INF_SPLIT_ANY_BYTE);
    compute_node();
    expect_strings(INF_SHAPE(2, 4), STRINGS("a", "b", "", "c", "", "", "", ""));
    expect_data(1, INF_DTYPE_I32, INF_SHAPE(2), I32(4, 1));
    begin_split("a,b;;c", ",;", INF_SPLIT_ANY_BYTE);
    one.node->attrs.string_split.skip_empty = true;
    compute_node();
    expect_data(1, INF_DTYPE_I32, INF_SHAPE(2), I32(3, 0));
    begin_split("h\xc3\xbc", "", INF_SPLIT_BYTES);
    compute_node();
    expect_strings(INF_SHAPE(2, 3), STRINGS("h", "\xc3", "\xbc", "", "", ""));
}

Test(text, divides_into_tokens)
{
    begin_case();
    add_strings(INF_SHAPE(2), STRINGS("a-bc--d", "e"));
    add_strings(INF_SHAPE(1), STRINGS("-"));
    TEXT("#");
    add_node(INF_OP_STRING_TOKENS, 1);
    one.node->attrs.string_tokens.kind = INF_TOKENS_SEPARATED;
    one.node->attrs.string_tokens.mark = true;
    compute_node();
    expect_strings(INF_SHAPE(2, 5), STRINGS("\2", "a", "bc", "d", "\3", "\2", "e", "\3", "#", "#"));
    begin_case();
    add_strings(INF_SHAPE(1), STRINGS("ab \xc3\xbc"
                                      "12 3"));
    add_strings(INF_SHAPE(1), STRINGS("\\d+|[^\\d\\s]+"));
    TEXT("");
    add_node(INF_OP_STRING_TOKENS, 1);
    one.node->attrs.string_tokens.kind = INF_TOKENS_MATCHED;
    one.node->attrs.string_tokens.characters_min = 2;
    compute_node();
    expect_strings(INF_SHAPE(1, 2), STRINGS("ab", "12"));
}

Test(text, finds_sorted_keys)
{
    begin_case();
    add_strings(INF_SHAPE(6), STRINGS("b", "", "zz", "a", "aa", "A"));
    add_strings(INF_SHAPE(4), STRINGS("", "a", "b", "zz"));
    add_node(INF_OP_STRING_FIND, 1);
    compute_node();
    expect_data(0, INF_DTYPE_I32, INF_SHAPE(6), I32(2, 0, 3, 1, -1, -1));
}

Test(text, compares_and_counts_by_content)
{
    begin_case();
    add_strings(INF_SHAPE(3), STRINGS("yes", "no", ""));
    add_strings(INF_SHAPE(3), STRINGS("yes", "yes", ""));
    add_node(INF_OP_COMPARE, 1);
    compute_node();
    expect_data(0, INF_DTYPE_BOOL, INF_SHAPE(3), (const uint8_t[]){1, 0, 1});
    begin_case();
    add_strings(INF_SHAPE(5), STRINGS("b", "a", "b", "", "a"));
    add_node(INF_OP_UNIQUE, 4);
    one.node->attrs.unique.sorted = true;
    one.graph->run_strings = &one.pool;
    cr_assert_eq(inf_shape_infer_node(one.graph, 0, NULL), INF_OK);
}

static void expect_text(enum inf_dtype dtype, const void *number, const char *wanted)
{
    begin_case();
    add_input(dtype, (struct inf_shape){0}, number);
    add_node(INF_OP_CAST, 1);
    one.node->attrs.cast.dtype = INF_DTYPE_BYTES;
    compute_node();
    expect_strings((struct inf_shape){0}, STRINGS(wanted));
}

// ONNX's Cast: numbers as text; NumPy's shortest digits.
Test(text, writes_numbers)
{
    expect_text(INF_DTYPE_F32, &(float){0.1f}, "0.1");
    expect_text(INF_DTYPE_F32, &(float){16777216}, "16777216");
    expect_text(INF_DTYPE_F64, &(double){0.1}, "0.1");
    expect_text(INF_DTYPE_F64, &(double){1.0 / 3}, "0.3333333333333333");
    expect_text(INF_DTYPE_F32, &(float){-__builtin_inff()}, "-INF");
    expect_text(INF_DTYPE_F32, &(float){__builtin_nanf("")}, "NaN");
    expect_text(INF_DTYPE_I64, &(int64_t){INT64_MIN}, "-9223372036854775808");
    expect_text(INF_DTYPE_U64, &(uint64_t){UINT64_MAX}, "18446744073709551615");
    expect_text(INF_DTYPE_BOOL, &(uint8_t){1}, "1");
}

static enum inf_code read_number(const char *text, enum inf_dtype dtype)
{
    begin_case();
    TEXT(text);
    add_node(INF_OP_CAST, 1);
    one.node->attrs.cast.dtype = dtype;
    return run_node();
}

Test(text, reads_numbers)
{
    cr_assert_eq(read_number("-128", INF_DTYPE_I8), INF_OK);
    cr_assert_eq(*(int8_t *)one.outputs[0]->data, -128);
    cr_assert_eq(read_number("18446744073709551615", INF_DTYPE_U64), INF_OK);
    cr_assert_eq(*(uint64_t *)one.outputs[0]->data, UINT64_MAX);
    cr_assert_eq(read_number("1e-7", INF_DTYPE_F32), INF_OK);
    cr_assert_float_eq(*(float *)one.outputs[0]->data, 1e-7f, 0);
    static const char *const wrong[] = {"", "-", "1.5", "128", "1a", "99999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_assert_eq(read_number(wrong[i], INF_DTYPE_I8), INF_INVALID, "'%s'", wrong[i]);
    cr_assert_str_eq(one.err.text, "node 'node' (cast): '99999999999999999999999' is no INT8");
}

// Fingerprint64 of strings of each range of lengths that it distinguishes.
Test(text, hashes_as_farmhash_does)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } known[] = {
        {"", 0x9ae16a3b2f90404f},
        {"a", 0xb3454265b6df75e3},
        {"abc", 0x24a5b3a074e7f369},
        {"abcdef", 0xc329379e6a03c2cd},
        {"abcdefgh", 0xfee9d22990c82909},
        {"0123456789'01234", 0x4283d4ef43627f64},
        {"0123456789=012345", 0x46a7416ed4861e3b},
        {"C is as portable as Stonehedge!!", 0xb944f8a16261e414},
        {"Discard medicine more than two years old.", 0xe8f89ab6df9bdd25},
        {"For every action there is an equal and opposite government program.", 0x55182f8859eca4ce},
        {"The fugacity of a constituent in a mixture of gases at a given temperature is "
         "proportional to its mole fraction.  Lewis-Randall Rule",
         0x098eff6958c5e91a},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        begin_case();
        TEXT(known[i].text);
        add_node(INF_OP_STRING_HASH, 1);
        one.node->attrs.string_hash.buckets = INT32_MAX;
        compute_node();
        expect_data(0, INF_DTYPE_I64, (struct inf_shape){0},
                    I64((int64_t)(known[i].hash % INT32_MAX)));
    }
    // The example of tf.strings.to_hash_bucket_fast.
    begin_case();
    add_strings(INF_SHAPE(3), STRINGS("Hello", "TensorFlow", "2.x"));
    add_node(INF_OP_STRING_HASH, 1);
    one.node->attrs.string_hash.buckets = 3;
    compute_node();
    expect_data(0, INF_DTYPE_I64, INF_SHAPE(3), I64(0, 2, 2));
}

// Values of scikit-learn's murmurhash3_32, which ONNX Runtime's tests use, too.
Test(text, hashes_as_murmur_does)
{
    begin_case();
    add_strings(INF_SHAPE(1), STRINGS("foo"));
    add_node(INF_OP_MURMUR_HASH, 1);
    compute_node();
    expect_data(0, INF_DTYPE_I32, INF_SHAPE(1), I32(-156908512));
    begin_case();
    add_strings(INF_SHAPE(1), STRINGS("foo"));
    add_node(INF_OP_MURMUR_HASH, 1);
    one.node->attrs.murmur_hash.seed = 42;
    compute_node();
    expect_data(0, INF_DTYPE_I32, INF_SHAPE(1), I32(-1322301282));
}

static void begin_ngrams(int64_t width, int32_t pads, bool keep)
{
    begin_case();
    add_strings(INF_SHAPE(4), STRINGS("aa", "bb", "cc", "dd"));
    add_input(INF_DTYPE_I32, INF_SHAPE(4), I32(0, 3, 3, 4));
    TEXT("|");
    TEXT("LP");
    TEXT("RP");
    add_node(INF_OP_STRING_NGRAMS, 2);
    one.node->attrs.string_ngrams.widths = (struct inf_ints){.count = 1, .values = {width}};
    one.node->attrs.string_ngrams.pads_max = pads;
    one.node->attrs.string_ngrams.keep_short = keep;
}

// TensorFlow's ngrams_test and string_ngrams_op_test define these.
Test(text, joins_ngrams)
{
    begin_ngrams(2, 0, false);
    compute_node();
    expect_strings(INF_SHAPE(2), STRINGS("aa|bb", "bb|cc"));
    expect_data(1, INF_DTYPE_I32, INF_SHAPE(4), I32(0, 2, 2, 2));
    begin_ngrams(2, 0, true);
    compute_node();
    expect_strings(INF_SHAPE(3), STRINGS("aa|bb", "bb|cc", "dd"));
    begin_ngrams(3, -1, false);
    compute_node();
    expect_data(1, INF_DTYPE_I32, INF_SHAPE(4), I32(0, 5, 7, 10));
    cr_assert_eq(one.graph->values[one.node->outputs[0]].shape.dims[0], 10);
    begin_ngrams(2, 1, false);
    ((int32_t *)one.graph->values[one.inputs[1]].data->data)[2] = 9;
    cr_assert_eq(run_node(), INF_INVALID);
}

// The example of tf.sparse.fill_empty_rows.
Test(text, fills_empty_rows_of_sparse_tensors)
{
    begin_case();
    add_input(INF_DTYPE_I32, INF_SHAPE(4, 2), I32(0, 1, 0, 3, 2, 0, 3, 1));
    add_strings(INF_SHAPE(4), STRINGS("a", "b", "c", "d"));
    add_input(INF_DTYPE_I32, (struct inf_shape){0}, I32(5));
    TEXT("default");
    add_node(INF_OP_SPARSE_FILL_ROWS, 3);
    compute_node();
    expect_data(0, INF_DTYPE_I32, INF_SHAPE(6, 2), I32(0, 1, 0, 3, 1, 0, 2, 0, 3, 1, 4, 0));
    expect_data(2, INF_DTYPE_I32, INF_SHAPE(4), I32(0, 1, 3, 4));
    begin_case();
    add_input(INF_DTYPE_I32, INF_SHAPE(1, 1), I32(5));
    add_input(INF_DTYPE_F32, INF_SHAPE(1), &(float){1});
    add_input(INF_DTYPE_I32, (struct inf_shape){0}, I32(5));
    add_input(INF_DTYPE_F32, (struct inf_shape){0}, &(float){2});
    add_node(INF_OP_SPARSE_FILL_ROWS, 3);
    cr_assert_eq(run_node(), INF_INVALID);
}

Test(text, makes_no_strings_without_a_pool)
{
    const struct inf_evaluator *ref = inf_ref_evaluator();
    begin_case();
    TEXT("a");
    TEXT("b");
    add_node(INF_OP_STRING_JOIN, 1);
    cr_assert_eq(inf_shape_infer_node(one.graph, 0, NULL), INF_OK);
    one.outputs[0] = inf_blob_create(8);
    cr_assert_eq(ref->run(ref->context, one.graph, 0, one.outputs, NULL, NULL), INF_UNSUPPORTED);
}

Test(text, refuses_arithmetic_on_strings)
{
    begin_case();
    TEXT("a");
    TEXT("b");
    add_node(INF_OP_BINARY, 1);
    cr_assert_eq(inf_shape_infer_node(one.graph, 0, &one.err), INF_UNSUPPORTED);
    begin_case();
    TEXT("a");
    add_node(INF_OP_NONZERO, 1);
    cr_assert_eq(inf_shape_infer_node(one.graph, 0, &one.err), INF_UNSUPPORTED);
}
