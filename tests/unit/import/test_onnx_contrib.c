// SPDX-License-Identifier: Apache-2.0
// Tests of operators of com.microsoft: sizes that are unknown while the model is imported, caches
// of keys, and hostile attributes. The tool run_contrib compares results with recorded ones.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/import/onnx_run_kit.h"

TestSuite(onnx_contrib, .init = set_up, .fini = tear_down);

// --- helpers that write models ---

static struct inf_pb_writer open_model(void)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 7);
    return writer;
}

// Opens a node of com.microsoft. `inputs` is a list of names separated by spaces; "-" is an absent
// input.
static void open_contrib(struct inf_pb_writer *writer, const char *op, const char *inputs,
                         const char *output)
{
    char text[128], *rest = NULL;
    inf_pb_open(writer, 1);
    snprintf(text, sizeof text, "%s", inputs);
    for (char *name = strtok_r(text, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest))
        inf_pb_put_text(writer, 1, strcmp(name, "-") == 0 ? "" : name);
    inf_pb_put_text(writer, 2, output);
    inf_pb_put_text(writer, 4, op);
    inf_pb_put_text(writer, 7, "com.microsoft");
}

static void put_input(struct inf_pb_writer *writer, const char *name, int32_t type,
                      struct inf_shape shape)
{
    inf_onnx_put_port(writer, 11, name, type, shape.dims, (uint32_t)shape.rank);
}

static void close_model(struct inf_pb_writer *writer, uint32_t output_rank)
{
    inf_onnx_put_port(writer, 12, "y", FLOAT, (int64_t[]){-1, -1, -1, -1}, output_rank);
    inf_pb_close(writer);
}

// Writes an initialiser of type UINT8 and rank 3.
static void put_bytes(struct inf_pb_writer *writer, const char *name, const int64_t *dims,
                      const uint8_t *data, size_t size)
{
    inf_pb_open(writer, 5);
    for (int i = 0; i < 3; i++)
        inf_pb_put_int(writer, 1, dims[i]);
    inf_pb_put_int(writer, 2, UINT8);
    inf_pb_put_text(writer, 8, name);
    inf_pb_put_bytes(writer, 9, data, size);
    inf_pb_close(writer);
}

// --- attention ---

// All queries are zeros, so all visible keys have the same weight and an output is the mean of the
// visible values.
Test(onnx_contrib, multi_head_attention_takes_any_batch_and_sequence)
{
    struct inf_pb_writer writer = open_model();
    open_contrib(&writer, "MultiHeadAttention", "q k v", "y");
    inf_onnx_put_attr_int(&writer, "num_heads", 2);
    inf_onnx_put_attr_int(&writer, "unidirectional", 1);
    inf_pb_close(&writer);
    put_input(&writer, "q", FLOAT, INF_SHAPE(-1, -1, 4));
    put_input(&writer, "k", FLOAT, INF_SHAPE(-1, -1, 4));
    put_input(&writer, "v", FLOAT, INF_SHAPE(-1, -1, 4));
    close_model(&writer, 3);
    load_model(&writer);
    static const float zeros[24];
    const float two[] = {1, 2, 3, 4, 3, 6, 5, 0}, one[] = {7, 8, 9, 10, 1, 2, 3, 4};
    const struct inf_shape long_shape = INF_SHAPE(1, 2, 4), wide = INF_SHAPE(2, 1, 4);
    cr_assert_eq(run_model((struct inf_shape[]){long_shape, long_shape, long_shape},
                           (const void *[]){zeros, zeros, two}),
                 INF_OK, "%s", err.text);
    expect_output(0, &long_shape, (float[]){1, 2, 3, 4, 2, 4, 4, 2});
    cr_assert_eq(
        run_model((struct inf_shape[]){wide, wide, wide}, (const void *[]){zeros, zeros, one}),
        INF_OK, "%s", err.text);
    expect_output(0, &wide, one);
}

static void load_group_query(int64_t window)
{
    struct inf_pb_writer writer = open_model();
    open_contrib(&writer, "GroupQueryAttention", "q k v past_k past_v lengths total", "y");
    inf_pb_put_text(&writer, 2, "present_k");
    inf_pb_put_text(&writer, 2, "present_v");
    inf_onnx_put_attr_int(&writer, "num_heads", 2);
    inf_onnx_put_attr_int(&writer, "kv_num_heads", 1);
    inf_onnx_put_attr_int(&writer, "local_window_size", window);
    inf_pb_close(&writer);
    put_input(&writer, "q", FLOAT, INF_SHAPE(-1, -1, 4));
    put_input(&writer, "k", FLOAT, INF_SHAPE(-1, -1, 2));
    put_input(&writer, "v", FLOAT, INF_SHAPE(-1, -1, 2));
    put_input(&writer, "past_k", FLOAT, INF_SHAPE(-1, 1, -1, 2));
    put_input(&writer, "past_v", FLOAT, INF_SHAPE(-1, 1, -1, 2));
    put_input(&writer, "lengths", INT32, INF_SHAPE(-1));
    put_input(&writer, "total", INT32, INF_SHAPE(1));
    inf_onnx_put_port(&writer, 12, "present_v", FLOAT, (int64_t[]){-1, -1, -1, -1}, 4);
    close_model(&writer, 3);
    load_model(&writer);
}

// Runs the model with one new key for each of two rows. The cache has room for 4 keys of each row;
// the first row has 1 key in it, the second row has 2. Expects output 0, the cache of values after
// the run.
static void run_step(void)
{
    static const float zeros[16];
    const float values[] = {3, 6, 9, 0}, past[] = {1, 2, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 0, 0, 0, 0};
    const int32_t lengths[] = {1, 2}, total = 3;
    const struct inf_shape cache = INF_SHAPE(2, 1, 4, 2), row = INF_SHAPE(2, 1, 2);
    const struct inf_shape shapes[] = {INF_SHAPE(2, 1, 4), row,         row, cache, cache,
                                       INF_SHAPE(2),       INF_SHAPE(1)};
    cr_assert_eq(
        run_model(shapes, (const void *[]){zeros, zeros, values, zeros, past, lengths, &total}),
        INF_OK, "%s", err.text);
    expect_output(0, &cache, (float[]){1, 2, 3, 6, 0, 0, 0, 0, 1, 1, 2, 2, 9, 0, 0, 0});
}

Test(onnx_contrib, group_query_attention_puts_new_keys_behind_those_of_each_row)
{
    load_group_query(-1);
    run_step();
    expect_output(1, &INF_SHAPE(2, 1, 4), (float[]){2, 4, 2, 4, 4, 1, 4, 1});
}

Test(onnx_contrib, a_window_hides_older_keys)
{
    load_group_query(1);
    run_step();
    expect_output(1, &INF_SHAPE(2, 1, 4), (float[]){3, 6, 3, 6, 9, 0, 9, 0});
}

// --- weights in blocks ---

// Writes a MatMulNBits of 4 bits without zero points. `extra` are the inputs after the scales.
static struct inf_pb_writer open_nbits(int64_t k, int64_t n, int64_t block, const char *extra)
{
    char inputs[64];
    struct inf_pb_writer writer = open_model();
    snprintf(inputs, sizeof inputs, "x w scales %s", extra);
    open_contrib(&writer, "MatMulNBits", inputs, "y");
    inf_onnx_put_attr_int(&writer, "K", k);
    inf_onnx_put_attr_int(&writer, "N", n);
    inf_onnx_put_attr_int(&writer, "bits", 4);
    inf_onnx_put_attr_int(&writer, "block_size", block);
    inf_pb_close(&writer);
    return writer;
}

static struct inf_pb_writer write_nbits(int64_t k, int64_t n, int64_t block)
{
    // One row of 16 weights of 4 bits. The byte 0x98 holds the numbers 8 and 9. The default zero
    // point is 8, so their weights are 0 and 1 times the scale.
    const uint8_t weights[] = {0x98, 0x98, 0x98, 0x98, 0x98, 0x98, 0x98, 0x98};
    struct inf_pb_writer writer = open_nbits(k, n, block, "");
    put_input(&writer, "x", FLOAT, INF_SHAPE(-1, 16));
    put_bytes(&writer, "w", (int64_t[]){1, 1, 8}, weights, sizeof weights);
    inf_onnx_put_floats(&writer, "scales", (int64_t[]){1}, 1, (float[]){0.5f});
    close_model(&writer, 2);
    return writer;
}

Test(onnx_contrib, constant_weights_of_4_bits_stay_packed)
{
    struct inf_pb_writer writer = write_nbits(16, 1, 16);
    float x[16];
    for (int i = 0; i < 16; i++)
        x[i] = (float)i;
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(1, 16), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 1), (float[]){0.5f * (1 + 3 + 5 + 7 + 9 + 11 + 13 + 15)});
    cr_assert_eq(inf_executable_graph(executable)->node_count, 1);
    cr_assert_eq(inf_executable_graph(executable)->nodes[0].op, INF_OP_MATMUL_BLOCKS);
}

// Writes an initialiser of type INT32 with the block of each of `count` columns.
static void put_index(struct inf_pb_writer *writer, const int32_t *index, size_t count)
{
    inf_pb_open(writer, 5);
    inf_pb_put_int(writer, 1, (int64_t)count);
    inf_pb_put_int(writer, 2, INT32);
    inf_pb_put_text(writer, 8, "index");
    inf_pb_put_bytes(writer, 9, index, count * sizeof(*index));
    inf_pb_close(writer);
}

// `count` weights in 2 blocks, with the scales 1 and 10 and the zero points 8 and 7. Weight i is
// the number i % 16, and element i of x is i, so that a weight at a wrong place is noticed. Expects
// a graph of `nodes` nodes, the last of which is of kind `op`.
static void check_index(const int32_t *index, int count, enum inf_op op, uint32_t nodes)
{
    float x[32], wanted = 0;
    uint8_t weights[16] = {0}, zeros = 0x78;
    struct inf_pb_writer writer = open_nbits(count, 1, 16, "zeros index");
    for (int i = 0; i < count; i++) {
        x[i] = (float)i;
        weights[i / 2] |= (uint8_t)(i % 16 << i % 2 * 4);
        wanted += x[i] * (float)(index[i] == 0 ? i % 16 - 8 : 10 * (i % 16 - 7));
    }
    put_input(&writer, "x", FLOAT, INF_SHAPE(-1, count));
    put_bytes(&writer, "w", (int64_t[]){1, 2, 8}, weights, sizeof weights);
    put_bytes(&writer, "zeros", (int64_t[]){1, 1, 1}, &zeros, 1);
    inf_onnx_put_floats(&writer, "scales", (int64_t[]){2}, 1, (float[]){1, 10});
    put_index(&writer, index, (size_t)count);
    close_model(&writer, 2);
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(1, count), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 1), &wanted);
    const struct inf_graph *graph = inf_executable_graph(executable);
    cr_assert_eq(graph->nodes[graph->node_count - 1].op, op);
    cr_assert_eq(graph->node_count, nodes);
}

Test(onnx_contrib, blocks_in_their_usual_order_need_no_index)
{
    int32_t index[32];
    for (int i = 0; i < 32; i++)
        index[i] = i / 16;
    check_index(index, 32, INF_OP_MATMUL_BLOCKS, 1);
}

Test(onnx_contrib, columns_are_sorted_by_the_index_of_their_block)
{
    int32_t index[32];
    for (int i = 0; i < 32; i++)
        index[i] = i % 2;
    check_index(index, 32, INF_OP_MATMUL_BLOCKS, 2);
}

Test(onnx_contrib, the_last_block_may_have_fewer_columns)
{
    int32_t index[24];
    for (int i = 0; i < 24; i++)
        index[i] = i % 3 == 0;
    check_index(index, 24, INF_OP_MATMUL_BLOCKS, 2);
}

// The weights are few, so they are folded.
Test(onnx_contrib, blocks_of_different_sizes_are_computed_by_plain_operators)
{
    int32_t index[32] = {0};
    for (int i = 0; i < 10; i++)
        index[3 * i] = 1;
    check_index(index, 32, INF_OP_MATMUL, 1);
    for (int i = 0; i < 24; i++) // the first block has 8 columns, the second 16
        index[i] = i % 3 != 0;
    drop_model();
    check_index(index, 24, INF_OP_MATMUL, 1);
}

static void expect_refused(struct inf_pb_writer writer, const char *part)
{
    struct inf_graph *graph = NULL;
    cr_assert_neq(import_model(&writer, &graph), INF_OK);
    cr_assert_not_null(strstr(err.text, part), "%s", err.text);
}

Test(onnx_contrib, refuses_blocks_that_do_not_fit_the_weights)
{
    expect_refused(write_nbits(0, 1, 16), "K is 0");
    expect_refused(write_nbits(16, -1, 16), "N is -1");
    expect_refused(write_nbits(16, 1, 9), "block_size is 9");
    expect_refused(write_nbits(16, 1, INT32_MAX), "block_size");
    expect_refused(write_nbits(INT32_MAX, INT32_MAX, 16), "K is");
    // Valid attributes that do not match the size of the constant w.
    expect_refused(write_nbits(1 << 20, 1 << 20, 8), "");
    expect_refused(write_nbits(16, 2, 16), "");
    expect_refused(write_nbits(32, 1, 16), "");
}
