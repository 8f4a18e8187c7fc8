// SPDX-License-Identifier: Apache-2.0
// Tests of products whose weights are in blocks behind DequantizeLinear. Expected values are those
// of the definition: (number - zero point) * scale, computed here.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/unit/import/onnx_run_kit.h"

#define DEPTH   40 // the last block of 16 has 8 weights
#define BLOCK   16
#define BLOCKS  3
#define COLUMNS 5

TestSuite(onnx_blocks, .init = set_up, .fini = tear_down);

// A type of the weights: its bits, and the least of its numbers.
static const struct type {
    int32_t type, bits, low;
} types[] = {{INT8, 8, -128}, {UINT8, 8, 0}, {INT4, 4, -8},
             {UINT4, 4, 0},   {INT2, 2, -2}, {UINT2, 2, 0}};

static int weights[DEPTH][COLUMNS], zeros[BLOCKS][COLUMNS];
static float scales[BLOCKS][COLUMNS], x[2][DEPTH], wanted[2 * COLUMNS];

// Draws the operands, and computes the product. All numbers are small, so that it is exact.
static void draw_operands(const struct type *type, bool has_zeros)
{
    srand(7);
    for (int c = 0; c < COLUMNS; c++) {
        for (int b = 0; b < BLOCKS; b++) {
            zeros[b][c] = has_zeros ? rand() % (1 << type->bits) + type->low : 0;
            scales[b][c] = (float)(1 + rand() % 8) / 8;
        }
        for (int k = 0; k < DEPTH; k++)
            weights[k][c] = rand() % (1 << type->bits) + type->low;
    }
    for (int row = 0; row < 2; row++) {
        for (int k = 0; k < DEPTH; k++)
            x[row][k] = (float)(rand() % 9 - 4);
        for (int c = 0; c < COLUMNS; c++) {
            float sum = 0;
            for (int k = 0; k < DEPTH; k++)
                sum +=
                    x[row][k] * (float)(weights[k][c] - zeros[k / BLOCK][c]) * scales[k / BLOCK][c];
            wanted[row * COLUMNS + c] = sum;
        }
    }
}

// Adds an initialiser [rows, COLUMNS] with the numbers packed as ONNX does: row by row, the first
// in the lowest bits.
static void put_numbers(struct inf_pb_writer *writer, const char *name, const struct type *type,
                        int rows, int (*numbers)[COLUMNS])
{
    uint8_t data[DEPTH * COLUMNS] = {0};
    for (int i = 0; i < rows * COLUMNS; i++) {
        int bit = i * type->bits, number = numbers[i / COLUMNS][i % COLUMNS];
        data[bit / 8] |= (uint8_t)((number & ((1 << type->bits) - 1)) << bit % 8);
    }
    inf_pb_open(writer, 5);
    inf_pb_put_int(writer, 1, rows);
    inf_pb_put_int(writer, 1, COLUMNS);
    inf_pb_put_int(writer, 2, type->type);
    inf_pb_put_text(writer, 8, name);
    inf_pb_put_bytes(writer, 9, data, ((size_t)rows * COLUMNS * (size_t)type->bits + 7) / 8);
    inf_pb_close(writer);
}

// Writes a model y = x * w, z = x * w of dequantised weights. `depth` is the last axis of x.
static struct inf_pb_writer write_products(const struct type *type, bool has_zeros, int64_t depth)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 25);
    inf_pb_open(&writer, 7);
    put_numbers(&writer, "q", type, DEPTH, weights);
    inf_onnx_put_floats(&writer, "s", (int64_t[]){BLOCKS, COLUMNS}, 2, scales[0]);
    if (has_zeros)
        put_numbers(&writer, "zero", type, BLOCKS, zeros);
    inf_pb_open(&writer, 1);
    inf_pb_put_text(&writer, 1, "q");
    inf_pb_put_text(&writer, 1, "s");
    if (has_zeros)
        inf_pb_put_text(&writer, 1, "zero");
    inf_pb_put_text(&writer, 2, "w");
    inf_pb_put_text(&writer, 4, "DequantizeLinear");
    inf_onnx_put_attr_int(&writer, "axis", 0);
    inf_onnx_put_attr_int(&writer, "block_size", BLOCK);
    inf_pb_close(&writer);
    for (int i = 0; i < 2; i++) {
        const char *output = i == 0 ? "y" : "z";
        inf_onnx_open_node(&writer, "MatMul", "x", "w", output);
        inf_pb_close(&writer);
        inf_onnx_put_port(&writer, 12, output, FLOAT, (int64_t[]){-1, COLUMNS}, 2);
    }
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){-1, depth}, 2);
    inf_pb_close(&writer);
    return writer;
}

static const struct inf_graph *run_products(struct inf_pb_writer *writer)
{
    load_model(writer);
    cr_assert_eq(run_model(&INF_SHAPE(2, DEPTH), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, COLUMNS), wanted);
    expect_output(1, &INF_SHAPE(2, COLUMNS), wanted);
    return inf_executable_graph(executable);
}

Test(onnx_blocks, stay_packed_for_products)
{
    for (size_t i = 0; i < 2 * INF_ARRAY_LENGTH(types); i++) {
        const struct type *type = &types[i / 2];
        bool has_zeros = i % 2 != 0;
        draw_operands(type, has_zeros);
        struct inf_pb_writer writer = write_products(type, has_zeros, DEPTH);
        const struct inf_graph *graph = run_products(&writer);
        cr_assert_eq(graph->node_count, 2, "type %d", type->type);
        for (uint32_t node = 0; node < 2; node++) {
            cr_assert_eq(graph->nodes[node].op, INF_OP_MATMUL_BLOCKS);
            cr_assert_eq(graph->nodes[node].attrs.matmul_blocks.bits, type->bits);
            cr_assert_eq(graph->nodes[node].attrs.matmul_blocks.block, BLOCK);
            cr_assert_not(graph->nodes[node].attrs.matmul_blocks.rounds_x);
            // Both products read the same weights.
            cr_assert_eq(graph->nodes[node].inputs[1], graph->nodes[0].inputs[1]);
        }
    }
}

// The number of scales does not determine the depth: columns of 33 to 48 weights all have three
// blocks. So the weights are packed only if the depth of x is known.
Test(onnx_blocks, become_floats_if_the_depth_of_x_is_not_known)
{
    draw_operands(&types[2], true);
    struct inf_pb_writer writer = write_products(&types[2], true, -1);
    const struct inf_graph *graph = run_products(&writer);
    cr_assert_eq(graph->nodes[0].op, INF_OP_MATMUL);
    cr_assert_neq(run_model(&INF_SHAPE(1, DEPTH + 1), (const void *[]){x}), INF_OK);
}

// If the blocks are parts of rows and not of columns, the weights become floats.
Test(onnx_blocks, along_the_other_axis_are_floats)
{
    static int rows[COLUMNS][COLUMNS];
    struct inf_pb_writer writer = {0};
    draw_operands(&types[2], false);
    for (int k = 0; k < COLUMNS; k++)
        for (int c = 0; c < COLUMNS; c++)
            rows[k][c] = weights[k][c];
    inf_onnx_put_head(&writer, 25);
    inf_pb_open(&writer, 7);
    put_numbers(&writer, "q", &types[2], COLUMNS, rows);
    inf_onnx_put_floats(&writer, "s", (int64_t[]){COLUMNS, 1}, 2, (float[]){1, 2, 3, 4, 5});
    inf_onnx_open_node(&writer, "DequantizeLinear", "q", "s", "w");
    inf_onnx_put_attr_int(&writer, "axis", 1);
    inf_onnx_put_attr_int(&writer, "block_size", BLOCK);
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "MatMul", "x", "w", "y");
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){-1, COLUMNS}, 2);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){-1, COLUMNS}, 2);
    inf_pb_close(&writer);
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(1, COLUMNS), (const void *[]){x}), INF_OK, "%s", err.text);
    float sums[COLUMNS] = {0};
    for (int k = 0; k < COLUMNS; k++)
        for (int c = 0; c < COLUMNS; c++)
            sums[c] += x[0][k] * (float)(rows[k][c] * (k + 1));
    expect_output(0, &INF_SHAPE(1, COLUMNS), sums);
    cr_assert_eq(inf_executable_graph(executable)->nodes[0].op, INF_OP_MATMUL);
}

// --- transposed weights ---

// Adds transposed weights "w" [COLUMNS, DEPTH, 1, ...] of `rank` axes with blocks along axis 1.
static void put_rows(struct inf_pb_writer *writer, const struct type *type, int rank)
{
    uint8_t data[DEPTH * COLUMNS] = {0};
    float turned[COLUMNS * BLOCKS];
    const int64_t dims[] = {COLUMNS, BLOCKS, 1, 1};
    for (int i = 0; i < COLUMNS * DEPTH; i++) {
        int bit = i * type->bits, number = weights[i % DEPTH][i / DEPTH];
        data[bit / 8] |= (uint8_t)((number & ((1 << type->bits) - 1)) << bit % 8);
    }
    for (int i = 0; i < COLUMNS * BLOCKS; i++)
        turned[i] = scales[i % BLOCKS][i / BLOCKS];
    inf_pb_open(writer, 5);
    for (int i = 0; i < rank; i++)
        inf_pb_put_int(writer, 1, i == 1 ? DEPTH : dims[i]);
    inf_pb_put_int(writer, 2, type->type);
    inf_pb_put_text(writer, 8, "q");
    inf_pb_put_bytes(writer, 9, data, ((size_t)DEPTH * COLUMNS * (size_t)type->bits + 7) / 8);
    inf_pb_close(writer);
    inf_onnx_put_floats(writer, "s", dims, (uint32_t)rank, turned);
    inf_onnx_open_node(writer, "DequantizeLinear", "q", "s", "w");
    inf_onnx_put_attr_int(writer, "axis", 1);
    inf_onnx_put_attr_int(writer, "block_size", BLOCK);
    inf_pb_close(writer);
}

static struct inf_pb_writer open_rows(const struct type *type, int rank)
{
    struct inf_pb_writer writer = {0};
    draw_operands(type, false);
    inf_onnx_put_head(&writer, 25);
    inf_pb_open(&writer, 7);
    put_rows(&writer, type, rank);
    return writer;
}

static void run_rows(struct inf_pb_writer *writer, const struct inf_shape *x_shape,
                     const struct inf_shape *y_shape, const float *sums)
{
    struct inf_shape open = *x_shape;
    open.dims[0] = -1;
    inf_onnx_put_port(writer, 11, "x", FLOAT, open.dims, (uint32_t)open.rank);
    inf_onnx_put_port(writer, 12, "y", FLOAT, (int64_t[]){-1, -1, -1, -1}, (uint32_t)y_shape->rank);
    inf_pb_close(writer);
    load_model(writer);
    cr_assert_eq(run_model(x_shape, (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, y_shape, sums);
}

static uint32_t count_nodes(enum inf_op op)
{
    const struct inf_graph *ran = inf_executable_graph(executable);
    uint32_t count = 0;
    for (uint32_t i = 0; i < ran->node_count; i++)
        count += ran->nodes[i].op == op;
    return count;
}

Test(onnx_blocks, of_transposed_weights_stay_packed_for_products)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(types); i++) {
        struct inf_pb_writer writer = open_rows(&types[i], 2);
        inf_onnx_open_node(&writer, "Gemm", "x", "w", "y");
        inf_onnx_put_attr_int(&writer, "transB", 1);
        inf_pb_close(&writer);
        run_rows(&writer, &INF_SHAPE(2, DEPTH), &INF_SHAPE(2, COLUMNS), wanted);
        cr_expect_eq(count_nodes(INF_OP_MATMUL_BLOCKS), 1u);
        cr_expect_eq(count_nodes(INF_OP_MATMUL), 0u);

        writer = open_rows(&types[i], 2);
        inf_onnx_open_node(&writer, "Transpose", "w", NULL, "t");
        inf_pb_close(&writer);
        inf_onnx_open_node(&writer, "MatMul", "x", "t", "y");
        inf_pb_close(&writer);
        run_rows(&writer, &INF_SHAPE(2, DEPTH), &INF_SHAPE(2, COLUMNS), wanted);
        cr_expect_eq(count_nodes(INF_OP_MATMUL_BLOCKS), 1u);

        // A Transpose that changes nothing.
        writer = open_rows(&types[i], 2);
        inf_onnx_open_node(&writer, "Transpose", "w", NULL, "t");
        INF_ONNX_INTS(&writer, "perm", 0, 1);
        inf_pb_close(&writer);
        inf_onnx_open_node(&writer, "Gemm", "x", "t", "y");
        inf_onnx_put_attr_int(&writer, "transB", 1);
        inf_pb_close(&writer);
        run_rows(&writer, &INF_SHAPE(2, DEPTH), &INF_SHAPE(2, COLUMNS), wanted);
        cr_expect_eq(count_nodes(INF_OP_MATMUL_BLOCKS), 1u);
    }
}

Test(onnx_blocks, of_a_filter_of_one_tap_stay_packed)
{
    struct inf_pb_writer writer = open_rows(&types[2], 4);
    inf_onnx_open_node(&writer, "Conv", "x", "w", "y");
    inf_pb_close(&writer);
    run_rows(&writer, &INF_SHAPE(2, DEPTH, 1, 1), &INF_SHAPE(2, COLUMNS, 1, 1), wanted);
    cr_expect_eq(count_nodes(INF_OP_MATMUL_BLOCKS), 1u);
    cr_expect_eq(count_nodes(INF_OP_CONV2D), 0u);

    // Every second pixel is a convolution.
    writer = open_rows(&types[2], 4);
    inf_onnx_open_node(&writer, "Conv", "x", "w", "y");
    INF_ONNX_INTS(&writer, "strides", 2, 2);
    inf_pb_close(&writer);
    run_rows(&writer, &INF_SHAPE(2, DEPTH, 1, 1), &INF_SHAPE(2, COLUMNS, 1, 1), wanted);
    cr_expect_eq(count_nodes(INF_OP_MATMUL_BLOCKS), 0u);
}

// If a product sums along the axis without blocks, it reads floats.
Test(onnx_blocks, are_not_mistaken_for_their_transpose)
{
    struct inf_pb_writer writer = open_rows(&types[2], 2);
    inf_onnx_open_node(&writer, "Gemm", "x", "w", "y");
    inf_pb_close(&writer);
    float sums[DEPTH] = {0};
    for (int k = 0; k < DEPTH; k++)
        for (int c = 0; c < COLUMNS; c++)
            sums[k] += x[0][c] * (float)weights[k][c] * scales[k / BLOCK][c];
    run_rows(&writer, &INF_SHAPE(1, COLUMNS), &INF_SHAPE(1, DEPTH), sums);
    cr_expect_eq(count_nodes(INF_OP_MATMUL_BLOCKS), 0u);
}

// Loads y = w[x] for a table w of `rows` rows of `width` numbers in blocks of 16, of which each is
// the number of its row times that of its block, both from 1.
static void load_table(int64_t rows, int64_t width)
{
    int8_t data[8 * 48];
    float factors[8 * 3];
    int64_t count = (width + BLOCK - 1) / BLOCK;
    for (int64_t i = 0; i < rows * width; i++)
        data[i] = (int8_t)(i / width + 1);
    for (int64_t i = 0; i < rows * count; i++)
        factors[i] = (float)(i % count + 1);
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 25);
    inf_pb_open(&writer, 7);
    inf_pb_open(&writer, 5);
    inf_pb_put_int(&writer, 1, rows);
    inf_pb_put_int(&writer, 1, width);
    inf_pb_put_int(&writer, 2, INT8);
    inf_pb_put_text(&writer, 8, "q");
    inf_pb_put_bytes(&writer, 9, data, (size_t)(rows * width));
    inf_pb_close(&writer);
    inf_onnx_put_floats(&writer, "s", (int64_t[]){rows, count}, 2, factors);
    inf_onnx_open_node(&writer, "DequantizeLinear", "q", "s", "w");
    inf_onnx_put_attr_int(&writer, "block_size", BLOCK);
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "Gather", "w", "x", "y");
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 11, "x", INT64, (int64_t[]){-1}, 1);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){-1, width}, 2);
    inf_pb_close(&writer);
    load_model(&writer);
}

Test(onnx_blocks, of_the_rows_that_a_run_gathers_are_widened)
{
    static const int64_t places[] = {3, -1};
    for (int64_t width = 24; width <= 32; width += 8) {
        float rows[2 * 32];
        for (int64_t i = 0; i < 2 * width; i++)
            rows[i] = (float)((i < width ? 4 : 8) * (i % width / BLOCK + 1));
        load_table(8, width);
        cr_assert_eq(run_model(&INF_SHAPE(2), (const void *[]){places}), INF_OK, "%s", err.text);
        expect_output(0, &INF_SHAPE(2, width), rows);
        const struct inf_graph *ran = inf_executable_graph(executable);
        bool has_bytes = false;
        for (uint32_t i = 0; i < ran->value_count; i++)
            has_bytes |= ran->values[i].data != NULL && ran->values[i].dtype == INF_DTYPE_I8;
        // A table whose last block is shorter becomes floats.
        cr_expect_eq(has_bytes, width == 32);
    }
}
