// SPDX-License-Identifier: Apache-2.0
// The TFLite importer: small models and what becomes of their constants, files that are cut off or
// changed at every byte, and error texts.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/graph/shape/verify.h"
#include "backends/import/tflite/tflite.h"
#include "backends/ref/ref.h"
#include "tests/support/models/tflite_writer.h"

enum {
    FLOAT32 = 0,
    FLOAT16 = 1,
    INT32 = 2,
    UINT8 = 3,
    STRING = 5,
    INT8 = 9,
    INT4 = 17,
};
enum {
    OPERATOR_ADD = 0,
    OPERATOR_CONV_2D = 3,
    OPERATOR_DEQUANTIZE = 6,
    OPERATOR_FULLY_CONNECTED = 9,
    OPERATOR_LSH_PROJECTION = 15,
    OPERATOR_RNN = 24,
    OPERATOR_CALL = 31,
    OPERATOR_BROADCAST_ARGS = 145,
    OPTIONS_RNN = 7,
    OPTIONS_FULLY_CONNECTED = 8,
    OPTIONS_ADD = 11,
    OPTIONS_CALL = 16,
};

static struct tflite_file file;
static struct inf_graph *graph;
static struct inf_error err;

static void tear_down(void)
{
    inf_graph_destroy(&graph);
}

TestSuite(tflite, .fini = tear_down);

static enum inf_code import_bytes(struct inf_span bytes)
{
    char producer[64];
    struct inf_import_options options = {.evaluator = inf_ref_evaluator()};
    inf_graph_destroy(&graph);
    err = (struct inf_error){0};
    return inf_tflite_import(&graph, producer, bytes, NULL, &options, &err);
}

static void expect_imported(void)
{
    cr_assert_eq(import_bytes(tflite_bytes(&file)), INF_OK, "%s", err.text);
    cr_assert_eq(inf_graph_verify(graph, &err), INF_OK, "%s", err.text);
}

static void expect_refused(enum inf_code code, const char *part)
{
    cr_expect_eq(import_bytes(tflite_bytes(&file)), code, "%s", err.text);
    cr_expect_not_null(strstr(err.text, part), "'%s' lacks '%s'", err.text, part);
    cr_expect_null(graph);
}

// y = RELU(x + 1), with x [2].
static struct tflite_places write_add(void)
{
    static const float one[] = {1, 1};
    static const struct tflite_tensor tensors[] = {
        {.name = "x", .type = FLOAT32, .rank = 1, .shape = {2}},
        {.name = "one", .type = FLOAT32, .rank = 1, .shape = {2}, .data = one, .data_bytes = 8},
        {.name = "y", .type = FLOAT32, .rank = 1, .shape = {2}}};
    static const uint8_t sizes[] = {1};
    static const uint64_t options[] = {1};
    return tflite_write(&file, &(struct tflite_model){.builtin = OPERATOR_ADD,
                                                      .tensors = tensors,
                                                      .tensor_count = 3,
                                                      .options_type = OPTIONS_ADD,
                                                      .option_sizes = sizes,
                                                      .options = options,
                                                      .option_count = 1});
}

// y = DEQUANTIZE(constant): the importer converts the constant, so y is the result of the
// conversion.
static void write_constant(const struct tflite_tensor *constant, uint32_t rank,
                           const int32_t *shape)
{
    struct tflite_tensor tensors[] = {*constant, {.name = "y", .type = FLOAT32, .rank = rank}};
    memcpy(tensors[1].shape, shape, rank * sizeof *shape);
    tflite_write(&file, &(struct tflite_model){
                            .builtin = OPERATOR_DEQUANTIZE, .tensors = tensors, .tensor_count = 2});
}

// Runs the passes, and returns the elements of the constant from which output 0 is computed. Only
// nodes with a single operand may be between the constant and the output.
static const float *fold_output(void)
{
    struct inf_pass_options options = {.evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
    uint32_t value = graph->outputs[0].value;
    while (graph->values[value].data == NULL) {
        cr_assert_neq(graph->values[value].producer, INF_NODE_NONE);
        value = graph->nodes[graph->values[value].producer].inputs[0];
    }
    return graph->values[value].data->data;
}

Test(tflite, a_model_has_the_inputs_and_outputs_of_its_first_subgraph)
{
    write_add();
    expect_imported();
    cr_assert_eq(graph->input_count, 1);
    cr_expect_str_eq(graph->inputs[0].name, "x");
    cr_assert_eq(graph->output_count, 1);
    cr_expect_str_eq(graph->outputs[0].name, "y");
    cr_assert_eq(graph->node_count, 2);
    cr_expect_eq(graph->nodes[0].op, INF_OP_BINARY);
    cr_expect_eq(graph->nodes[1].attrs.unary.kind, INF_UNARY_RELU);
}

Test(tflite, constants_become_floats)
{
    static const uint16_t halves[] = {0x3c00, 0xc000}; // 1, -2
    write_constant(
        &(struct tflite_tensor){
            .name = "h", .type = FLOAT16, .rank = 1, .shape = {2}, .data = halves, .data_bytes = 4},
        1, (const int32_t[]){2});
    expect_imported();
    const float *y = fold_output();
    cr_expect(y[0] == 1 && y[1] == -2);
    // The tensor has one scale and one zero point (0 and 1) for each index of axis 1.
    static const int8_t bytes[] = {1, 2, -3, 4};
    static const float scales[] = {0.5f, 2};
    static const int64_t zeros[] = {0, 1};
    write_constant(&(struct tflite_tensor){.name = "q",
                                           .type = INT8,
                                           .rank = 2,
                                           .shape = {2, 2},
                                           .data = bytes,
                                           .data_bytes = 4,
                                           .scales = scales,
                                           .zeros = zeros,
                                           .scale_count = 2,
                                           .axis = 1},
                   2, (const int32_t[]){2, 2});
    expect_imported();
    y = fold_output();
    cr_expect(y[0] == 0.5f && y[1] == 2 && y[2] == -1.5f && y[3] == 6);
    // The first of two elements is in the lower four bits: -8, 7, -1.
    static const uint8_t narrow[] = {0x78, 0x0f};
    write_constant(&(struct tflite_tensor){.name = "n",
                                           .type = INT4,
                                           .rank = 1,
                                           .shape = {3},
                                           .data = narrow,
                                           .data_bytes = 2,
                                           .scales = (const float[]){2},
                                           .zeros = (const int64_t[]){0},
                                           .scale_count = 1},
                   1, (const int32_t[]){3});
    expect_imported();
    y = fold_output();
    cr_expect(y[0] == -16 && y[1] == 14 && y[2] == -2);
}

Test(tflite, shapes_broadcast)
{
    static const int32_t a[] = {3}, b[] = {2, 1};
    static const struct tflite_tensor tensors[] = {
        {.name = "a", .type = INT32, .rank = 1, .shape = {1}, .data = a, .data_bytes = 4},
        {.name = "b", .type = INT32, .rank = 1, .shape = {2}, .data = b, .data_bytes = 8},
        {.name = "y", .type = INT32, .rank = 1, .shape = {2}}};
    tflite_write(&file, &(struct tflite_model){.builtin = OPERATOR_BROADCAST_ARGS,
                                               .tensors = tensors,
                                               .tensor_count = 3});
    expect_imported();
    const int32_t *y = (const int32_t *)fold_output();
    cr_expect(y[0] == 2 && y[1] == 3, "%d %d", y[0], y[1]);
}

Test(tflite, a_quantized_product_becomes_one_operator_on_bytes)
{
    static const float scale[] = {0.5f};
    static const int64_t zero[] = {-1};
    static const int8_t weights[] = {1, 2, 3, 4, 5, 6};
    static const int32_t bias[] = {10, -10};
    const struct tflite_tensor tensors[] = {
        {.name = "x",
         .type = INT8,
         .rank = 2,
         .shape = {1, 3},
         .scales = scale,
         .zeros = zero,
         .scale_count = 1},
        {.name = "w",
         .type = INT8,
         .rank = 2,
         .shape = {2, 3},
         .data = weights,
         .data_bytes = 6,
         .scales = scale,
         .zeros = (const int64_t[]){0},
         .scale_count = 1},
        {.name = "b", .type = INT32, .rank = 1, .shape = {2}, .data = bias, .data_bytes = 8},
        {.name = "y",
         .type = INT8,
         .rank = 2,
         .shape = {1, 2},
         .scales = scale,
         .zeros = zero,
         .scale_count = 1}};
    static const uint8_t sizes[] = {1};
    static const uint64_t relu[] = {1};
    tflite_write(&file, &(struct tflite_model){.builtin = OPERATOR_FULLY_CONNECTED,
                                               .tensors = tensors,
                                               .tensor_count = 4,
                                               .options_type = OPTIONS_FULLY_CONNECTED,
                                               .option_sizes = sizes,
                                               .options = relu,
                                               .option_count = 1});
    expect_imported();
    struct inf_pass_options options = {.evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
    cr_assert_eq(graph->node_count, 1);
    const struct inf_node *node = &graph->nodes[0];
    cr_assert_eq(node->op, INF_OP_QMATMUL);
    cr_expect_eq(node->attrs.qmatmul.min, -1, "RELU cuts at the zero point");
    cr_expect_eq(((const int32_t *)graph->values[node->inputs[2]].data->data)[1], -10);
}

// TFLite's kernels round activations beside 8-bit weights, so that the product may round them too.
Test(tflite, activations_of_a_dynamic_range_product_may_be_rounded)
{
    static const int8_t weights[2 * 512] = {1, -2, 127};
    static const float scale[] = {0.5f};
    const struct tflite_tensor tensors[] = {
        {.name = "x", .type = FLOAT32, .rank = 2, .shape = {1, 512}},
        {.name = "w",
         .type = INT8,
         .rank = 2,
         .shape = {2, 512},
         .data = weights,
         .data_bytes = sizeof weights,
         .scales = scale,
         .zeros = (const int64_t[]){0},
         .scale_count = 1},
        {.name = "y", .type = FLOAT32, .rank = 2, .shape = {1, 2}}};
    static const uint8_t sizes[] = {1};
    static const uint64_t no_activation[] = {0};
    tflite_write(&file, &(struct tflite_model){.builtin = OPERATOR_FULLY_CONNECTED,
                                               .tensors = tensors,
                                               .tensor_count = 3,
                                               .options_type = OPTIONS_FULLY_CONNECTED,
                                               .option_sizes = sizes,
                                               .options = no_activation,
                                               .option_count = 1});
    expect_imported();
    const struct inf_node *node = &graph->nodes[graph->node_count - 1];
    cr_assert_eq(node->op, INF_OP_MATMUL_BLOCKS, "operator %d", (int)node->op);
    cr_expect_eq(node->attrs.matmul_blocks.bits, 8);
    cr_expect(node->attrs.matmul_blocks.rounds_x);
}

// Writes a model with the custom operator Convolution2DTransposeBias and these options. Its
// operands are constants: a picture of 2 x 2 pixels, a filter of 3 x 3 ones, and a bias of 10.
static void write_transpose_bias(const int32_t *options, uint32_t option_bytes)
{
    static const float x[] = {1, 2, 3, 4}, filter[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, bias[] = {10};
    static const struct tflite_tensor tensors[] = {
        {.name = "x",
         .type = FLOAT32,
         .rank = 4,
         .shape = {1, 2, 2, 1},
         .data = x,
         .data_bytes = 16},
        {.name = "f",
         .type = FLOAT32,
         .rank = 4,
         .shape = {1, 3, 3, 1},
         .data = filter,
         .data_bytes = 36},
        {.name = "b", .type = FLOAT32, .rank = 1, .shape = {1}, .data = bias, .data_bytes = 4},
        {.name = "y", .type = FLOAT32, .rank = 4, .shape = {1, 4, 4, 1}}};
    tflite_write(&file, &(struct tflite_model){.custom = "Convolution2DTransposeBias",
                                               .tensors = tensors,
                                               .tensor_count = 4,
                                               .custom_options = options,
                                               .custom_option_bytes = option_bytes});
}

Test(tflite, a_transposed_convolution_with_bias_has_the_padding_that_its_options_name)
{
    // Lists of options. Each has a padding (1: same, 2: valid), the stride of the width, and the
    // stride of the height.
    static const int32_t same[] = {1, 2, 2}, valid[] = {2, 2, 1}, wrong[] = {3, 2, 2};
    // With padding `same` and stride 2, 2 x 2 pixels become 4 x 4. The sums are 5 x 5, so one row
    // and one column are cut off. Half of one, rounded down, is 0 at the top and at the left, so
    // the last row and the last column are cut off.
    static const float same_sums[] = {11, 11, 13, 12, 11, 11, 13, 12,
                                      14, 14, 20, 16, 13, 13, 17, 14};
    static const float valid_sums[] = {11, 11, 13, 12, 12, 14, 14, 20, 16, 16,
                                       14, 14, 20, 16, 16, 13, 13, 17, 14, 14};
    write_transpose_bias(same, sizeof same);
    expect_imported();
    cr_assert_arr_eq(fold_output(), same_sums, sizeof same_sums);
    inf_graph_destroy(&graph);
    write_transpose_bias(valid, sizeof valid);
    expect_imported();
    cr_assert_arr_eq(fold_output(), valid_sums, sizeof valid_sums);
    inf_graph_destroy(&graph);
    write_transpose_bias(wrong, sizeof wrong);
    expect_refused(INF_INVALID, "has padding 3 and strides 2, 2");
    write_transpose_bias(same, sizeof same - 1);
    expect_refused(INF_INVALID, "has options of 11 bytes, wanted at least 12");
}

// Writes y = DEQUANTIZE(h), with a sparse constant h of 4 bytes and this many elements.
static void write_sparse(int32_t rows, int32_t columns)
{
    static const uint16_t halves[] = {0x3c00, 0xc000};
    write_constant(&(struct tflite_tensor){.name = "h",
                                           .type = FLOAT16,
                                           .rank = 2,
                                           .shape = {rows, columns},
                                           .data = halves,
                                           .data_bytes = 4,
                                           .is_sparse = true},
                   2, (const int32_t[]){rows, columns});
}

Test(tflite, a_few_sparse_bytes_are_no_large_tensor)
{
    // Each byte may stand for 256 elements, and a file may have 2^20 more.
    write_sparse((1 << 20) + 4 * 256, 1);
    expect_refused(INF_INVALID, "field dim_metadata: has 0 elements");
    write_sparse((1 << 20) + 5 * 256, 1);
    expect_refused(INF_EXHAUSTED, "tensor 'h' has 4 bytes of sparse data, too few");
    write_sparse(1 << 15, 1 << 14);
    expect_refused(INF_EXHAUSTED, "tensor 'h' has 4 bytes of sparse data, too few");
}

Test(tflite, a_call_may_have_no_input)
{
    // The subgraph calls itself, so that the import ends with a refusal.
    static const struct tflite_tensor tensors[] = {
        {.name = "y", .type = FLOAT32, .rank = 1, .shape = {2}}};
    tflite_write(&file, &(struct tflite_model){.builtin = OPERATOR_CALL,
                                               .tensors = tensors,
                                               .tensor_count = 1,
                                               .options_type = OPTIONS_CALL,
                                               .option_sizes = (const uint8_t[]){4},
                                               .options = (const uint64_t[]){0},
                                               .option_count = 1});
    expect_refused(INF_INVALID, "runs itself");
}

Test(tflite, a_variable_becomes_an_input_and_an_output)
{
    static const float weights[] = {1, 0, 0, 1}, bias[] = {0, 0};
    static const struct tflite_tensor tensors[] = {
        {.name = "x", .type = FLOAT32, .rank = 2, .shape = {1, 2}},
        {.name = "w",
         .type = FLOAT32,
         .rank = 2,
         .shape = {2, 2},
         .data = weights,
         .data_bytes = 16},
        {.name = "r",
         .type = FLOAT32,
         .rank = 2,
         .shape = {2, 2},
         .data = weights,
         .data_bytes = 16},
        {.name = "b", .type = FLOAT32, .rank = 1, .shape = {2}, .data = bias, .data_bytes = 8},
        {.name = "h", .type = FLOAT32, .rank = 2, .shape = {1, 2}, .is_variable = true},
        {.name = "y", .type = FLOAT32, .rank = 2, .shape = {1, 2}}};
    static const uint8_t sizes[] = {1};
    static const uint64_t relu[] = {1};
    tflite_write(&file, &(struct tflite_model){.builtin = OPERATOR_RNN,
                                               .tensors = tensors,
                                               .tensor_count = 6,
                                               .options_type = OPTIONS_RNN,
                                               .option_sizes = sizes,
                                               .options = relu,
                                               .option_count = 1});
    expect_imported();
    cr_assert_eq(graph->input_count, 2);
    cr_expect_str_eq(graph->inputs[1].name, "h_in");
    cr_assert_eq(graph->output_count, 2);
    cr_expect_str_eq(graph->outputs[1].name, "h_out");
    cr_expect_neq(graph->values[graph->outputs[1].value].producer, INF_NODE_NONE);
}

Test(tflite, refusals_name_what_is_wrong)
{
    struct tflite_places places = write_add();
    tflite_set(&file, places.root, 0, 2, 4);
    expect_refused(INF_UNSUPPORTED, "table Model, field version: is 2, wanted 3");
    places = write_add();
    tflite_set(&file, places.op, 0, 5, 4);
    expect_refused(INF_INVALID, "table Operator, field opcode_index: is 5, there are 1");
    places = write_add();
    tflite_set(&file, places.op, 3, 1, 1);
    expect_refused(INF_INVALID, "operator 'y' (ADD): has builtin options of type 1, wanted 11");
    places = write_add();
    tflite_set(&file, places.tensors[0], 1, 77, 1);
    expect_refused(INF_INVALID, "of 'x' is 77, which is no type of the schema");
    places = write_add();
    tflite_set(&file, places.tensors[0], 1, STRING, 1);
    expect_refused(INF_UNSUPPORTED, "tensor types not supported: STRING (1 tensor)");
    places = write_add();
    tflite_set(&file, places.tensors[1], 2, 9, 4);
    expect_refused(INF_INVALID, "field buffer: of 'one' is 9, there are 4");
    write_add();
    file.data[4] = 'X';
    expect_refused(INF_INVALID, "lacks the identifier TFL3");
    struct tflite_model model = {.custom = "MyOp",
                                 .tensors = (const struct tflite_tensor[]){{"x", .rank = 0}, {"y"}},
                                 .tensor_count = 2};
    tflite_write(&file, &model);
    expect_refused(INF_UNSUPPORTED, "operators not supported: custom operator MyOp (1 node)");
    model.custom = NULL;
    model.builtin = OPERATOR_LSH_PROJECTION;
    tflite_write(&file, &model);
    expect_refused(INF_UNSUPPORTED, "operators not supported: LSH_PROJECTION (1 node)");
}

// Imports bytes that may be anything. They must become a verified graph or an error text.
static void try_bytes(const uint8_t *data, size_t size)
{
    enum inf_code code = import_bytes((struct inf_span){data, size});
    if (code == INF_OK) {
        cr_assert_eq(inf_graph_verify(graph, &err), INF_OK, "%s", err.text);
        return;
    }
    cr_assert_null(graph);
    cr_assert(code == INF_INVALID || code == INF_UNSUPPORTED || code == INF_EXHAUSTED, "%d: %s",
              code, err.text);
    cr_assert_neq(err.text[0], '\0');
    cr_assert_null(strpbrk(err.text, "\n\r\t\033"), "%s", err.text);
}

Test(tflite, a_file_may_end_at_any_byte)
{
    write_add();
    size_t imported = 0;
    for (size_t size = 0; size < file.size; size++) {
        // Import a copy that has exactly `size` bytes, so that AddressSanitizer reports a read
        // beyond its end.
        uint8_t *copy = malloc(INF_MAX(size, (size_t)1));
        memcpy(copy, file.data, size);
        try_bytes(copy, size);
        imported += graph != NULL;
        free(copy);
    }
    // Only the padding behind the last table may be missing.
    cr_expect_leq(imported, 8);
}

Test(tflite, any_byte_may_be_wrong)
{
    static const uint8_t wrong[] = {0x00, 0x01, 0x04, 0x7f, 0x80, 0xff};
    write_add();
    for (size_t at = 0; at < file.size; at++)
        for (size_t i = 0; i < sizeof wrong; i++) {
            uint8_t saved = file.data[at];
            file.data[at] = wrong[i];
            try_bytes(file.data, file.size);
            file.data[at] = saved;
        }
}
